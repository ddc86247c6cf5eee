# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # for those who source it
# Sourced by tests of EBS volumes inside their guest, behind guest.sh. The volumes are NVMe over TCP within the guest, with model and serial
# numbers of EBS. They have any size, come when the test says, and go in the middle of a write if it says so.
NQN=nqn.2020-01.com.example:volume TARGET=/sys/kernel/config/nvmet P=/mnt/k8s-volumes
target() {                              # a port on loopback
        modprobe -a nvmet nvmet_tcp nvme_tcp || return
        mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config || return
        mkdir $TARGET/ports/1 && cd $TARGET/ports/1 || return
        echo ipv4 >addr_adrfam && echo tcp >addr_trtype && echo 127.0.0.1 >addr_traddr && echo 4420 >addr_trsvcid
}
id() { printf '0123456789abcde%02d' "$1"; }
volume() {                              # volume N SIZE [MODEL]: it exists, and `attach N` brings it
        mkdir $TARGET/subsystems/$NQN"$1" && cd $TARGET/subsystems/$NQN"$1" || return
        echo 1 >attr_allow_any_host && echo "${3:-Amazon Elastic Block Store}" >attr_model && echo "vol$(id "$1")" >attr_serial || return
        truncate -s "$2" "/vmtest/volume.$1" && mkdir namespaces/1 && echo "/vmtest/volume.$1" >namespaces/1/device_path && echo 1 >namespaces/1/enable || return
        ln -s "$PWD" $TARGET/ports/1/subsystems/
}
name_of() { local d; for d in /sys/block/nvme*n1; do [[ $d == *nvme*c*n1 ]] || [ "$(tr -d ' ' <"$d/device/serial" 2>/dev/null)" != "vol$(id "$1")" ] || { echo "${d##*/}"; return; }; done; return 1; }
attach() { echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$NQN$1" >/dev/nvme-fabrics && udevadm settle; }
detach() { local c; for c in /sys/class/nvme/nvme*; do [ "$(cat "$c/subsysnqn")" != "$NQN$1" ] || echo 1 >"$c/delete_controller"; done; udevadm settle; }
resize() { truncate -s "$2" "/vmtest/volume.$1" && echo 1 >$TARGET/subsystems/$NQN"$1"/namespaces/1/revalidate_size && udevadm settle; }
writes() { awk '{ print $5, $12 }' "/sys/block/$(name_of "$1")/stat"; }

python3 imds.py serve 127.0.0.1 8169 imds >imds.out & while [ ! -s imds.out ]; do read -rt 0.1 <> <(:); done
export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:8169
# user data: the volumes, and more below spec.instance
wants() { { cat node.head; printf '  instance:\n    storage:\n      volumes:\n'; printf '      - %s\n' "$@"; printf '%s' "$more"; } >node.yaml; }
more=
init() { nodestrap init --config-cache /run/eks/nodeadm/config.json -c file:///vmtest/node.yaml 2>err; local rc=$?; cat err; return $rc; }
refuses() { init; local rc=$?; [ $rc = 30 ] || { echo "exit $rc"; return 1; }; grep -qE -- "$1" err || { echo "missing: $1"; return 1; }; }
warns() { grep -q -- "$1" err; }
outcomes() { python3 -c 'import json; print(*sorted({a["outcome"] for run in json.load(open("/run/nodestrap/status.json"))["runs"].values() for a in run["actions"]}))'; }
plan_id() { nodestrap plan --output json -c file:///vmtest/node.yaml | python3 -c 'import json,sys; print(json.load(sys.stdin)["planId"])'; }
# all that a boot forgets: mounts, processes, /run
power_cycle() {
        local m; systemctl stop kubelet containerd
        for m in "$@"; do while mountpoint -q "$m"; do umount "$m" || return; done; done
        rm -rf /run/nodestrap /run/eks /run/nodeadm
}
shows() { is "$(findmnt -no "$2" --mountpoint "$1" | tail -1 | xargs)" "$3"; }
seen() { shows "$1" SOURCE "/dev/$(name_of "$2")${3-}"; }
below() { local rc; mount --bind / under && cat "under$1"; rc=$?; umount under; return $rc; }    # a file of the root disk, also below a mount
export D=/var/lib/containerd K=/var/lib/kubelet

