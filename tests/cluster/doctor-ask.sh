#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: host
# kube: 1.37.0
# tree: containerd2
# cluster: down no-controllers
# doctor --ask has the real kubelet and containerd of this machine read the planned files, tells what they say, and leaves nothing of them. The
# machine is this one with an /etc of its own. Half of what is wrong stands there, as in an image, and no NodeConfig tells of it.
[ -n "${CLUSTER-}" ] || exec "$(dirname "$0")/../run/cluster.sh" "$0"
# shellcheck source=tests/cluster/lib/host.sh
. "$(dirname "$(realpath "$0")")/lib/host.sh"
wants runc python3

VERSION=$("$KUBE/kubelet" --version | sed 's/.* v//')
cp -a /etc etc; mount --bind etc /etc; mount -t tmpfs bin /usr/local/bin
for program in "$KUBE/kubelet" "$CONTAINERD" "${CONTAINERD%/*}/containerd-shim-runc-v2"; do
        touch "/usr/local/bin/${program##*/}"; mount --bind "$program" "/usr/local/bin/${program##*/}"
done
mkdir -p /etc/kubernetes/kubelet/config.json.d /etc/containerd/conf.d
CA=$(base64 -w 0 "$CLUSTER/pki/ca.crt") flags=''; [ -e /sys/fs/cgroup/cgroup.controllers ] || flags=', "--fail-cgroupv1=false"'        # this machine may have cgroup v1

# Nothing else is missing here, so that the daemons alone decide how doctor ends.
mkdir lower; cp "$NODESTRAP" lower/nodestrap; mount -t overlay -o "lowerdir=$PWD/lower:/usr/bin" overlay /usr/bin; NODESTRAP=/usr/bin/nodestrap
cp "$(dirname "$(realpath "$0")")"/../../units/*.service /etc/systemd/system/
printf '[Service]\nExecStart=/usr/local/bin/kubelet $NODEADM_KUBELET_ARGS\nEnvironmentFile=/etc/eks/kubelet/environment\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/kubelet.service
mkdir -p /etc/systemd/system/multi-user.target.wants; ln -s -t /etc/systemd/system/multi-user.target.wants ../nodestrap-{config,devices,run}.service
for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1; do
        echo "${setting#*=}" >"${setting##*/}"; mount --bind "${setting##*/}" "/proc/sys/${setting%=*}"
done
find /sys/fs/cgroup -name 'nodestrap-ask.*' >others     # in control groups that are not ours; the doctor of this test leaves them
within=()
# All that a daemon, or doctor itself, could have left.
traces() {
        find /sys/fs/cgroup -name 'nodestrap-ask.*'; cut -d' ' -f 3- /proc/self/mountinfo
        find /etc /run/containerd /usr/libexec/kubernetes /var/lib/{kubelet,containerd} /var/log/pods /opt/lab /data -xdev -printf '%p %s %m\n' 2>/dev/null
        pgrep -l ^kubelet; pgrep -l ^containerd
}
asks() {        # FLAG of kubelet or '', its CONFIG, MORE of the spec
        cat >node.yaml <<-END
	apiVersion: node.eks.aws/v1alpha1
	kind: NodeConfig
	spec:
	  cluster: {name: training, apiServerEndpoint: "https://x.eks.amazonaws.com", cidr: 10.100.0.0/16, certificateAuthority: $CA}
	  kubelet:
	    flags: ["--v=2"$flags$1]
	    config: {${2-}}
	${3-}
	END
        traces >before
        "${within[@]}" "$NODESTRAP" doctor --ask -c file://"$PWD"/node.yaml --instance-type m5.large --kubelet-version "$VERSION" --containerd-version 2.1.9 \
                --output json >doctor.json 2>err
        rc=$?; traces >after
        python3 - doctor.json >said <<-END
	import json, sys
	for check in json.load(open(sys.argv[1]))["checks"]:
	    if check["code"] in ("asked", "plan"):
	        print(check["code"], check["subject"], check["verdict"], check.get("text") or "")
	END
}
no_answer() { # WORDS: that a check tells, and the last line of stderr; the other checks are there, too
        is_said "^asked .*unknown .*$1" && is "$rc" 70 && tail -n 1 err | grep -E -- "--ask got no answer: .*$1" && grep -q '"code": "unit' doctor.json || { cat err; grep -A4 '"failed"' doctor.json; return 1; }
}
is_said() { grep -E -- "$1" said || { cat said err; return 1; }; }
stand() { asks "$@" && { is "$rc" 0 || { cat err said; return 1; }; } && is_said '^asked containerd ok' && is_said '^asked kubelet ok'; }
refuses() { asks "${@:3}" && is_said "^asked $1 failed .*$2"; } # DAEMON WORDS and what asks() takes
leaves_nothing() { diff before after; }
drop_in() { printf '{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", %s\n' "$1" >/etc/kubernetes/kubelet/config.json.d/99-lab.conf; }
line=$'node.yaml, line [0-9]+: spec\\.'

try "settings that both take" stand '' 'maxPods: 50'
try "nothing is left of them" leaves_nothing
try "settings of the user for containerd, too" stand '' '' $'  containerd:\n    config: |\n      [plugins."io.containerd.cri.v1.images"]\n        max_concurrent_downloads = 7'
drop_in '"systemReservedCgroup": "/lab.slice/system", "systemReserved": {"cpu": "50m"}, "enforceNodeAllocatable": ["pods", "kube-reserved", "system-reserved"]}'
try "control groups that a boot has from systemd, of the NodeConfig and of the image" stand '' \
        'cgroupRoot: /lab/pods, kubeReservedCgroup: /lab.slice/daemons, enforceNodeAllocatable: [pods, kube-reserved]'
rm /etc/kubernetes/kubelet/config.json.d/99-lab.conf
try "places that are not there yet" stand ', "--root-dir=/data/kubelet"' 'podLogsDir: /data/pods' $'  containerd:\n    config: |\n      root = "/opt/lab/containerd"'
try "nothing is left of them, either" leaves_nothing

try "credentials by a file that is not there" refuses kubelet "${line}kubelet.flags\[[0-9]\]: kubelet refuses it: .*/etc/none.yaml" \
        ', "--image-credential-provider-config=/etc/none.yaml", "--image-credential-provider-bin-dir=/opt"'
try "a certificate that is not there" refuses kubelet "${line}kubelet: kubelet refuses it: .*/etc/none.crt" '' 'authentication: {x509: {clientCAFile: /etc/none.crt}}'
try "kubelet whose log is JSON" refuses kubelet "${line}kubelet: kubelet refuses it: [^{]*/etc/none.crt" '' \
        'logging: {format: json}, authentication: {x509: {clientCAFile: /etc/none.crt}}'
drop_in '"maxOpenFiles": -1}'
try "a drop-in of the image" refuses kubelet "${line}kubelet: kubelet refuses it: .*[mM]axOpenFiles" '' 'maxPods: 50'
drop_in '"maxPods": 5'
try "kubelet refuses a drop-in that is not JSON" refuses kubelet "${line}kubelet: kubelet refuses it: .*99-lab.conf" '' 'maxPods: 50'
try "nothing is left of those that refuse" leaves_nothing
rm /etc/kubernetes/kubelet/config.json.d/99-lab.conf
imports=$'  containerd:\n    config: |\n      imports = ["/etc/containerd/conf.d/*.toml"]'
echo '[plugins' >/etc/containerd/conf.d/lab.toml
try "a file of the image that is not TOML" refuses containerd "${line}containerd.config: containerd refuses it: .*toml" '' '' "$imports"
printf '[plugins."io.containerd.cri.v1.images".registry.mirrors."docker.io"]\nendpoint = ["https://mirror.lab"]\n' >/etc/containerd/conf.d/lab.toml
try "a mirror there, with which containerd stays and has no CRI" refuses containerd "${line}containerd.config: containerd refuses it: .*mirrors" '' '' "$imports"
try "doctor then does not blame kubelet" is_said '^asked kubelet unknown'
printf '[debug]\nformat = "json"\n' >/etc/containerd/conf.d/log.toml
try "doctor reads the refusal of containerd from a log in JSON" refuses containerd "${line}containerd.config: containerd refuses it: [^{]*mirrors" '' '' "$imports"
try "nothing is left of half a containerd" leaves_nothing

asks_where() { within=(unshare --mount bash -c "$1"$'\nexec "$@"' -); asks ''; within=(); }       # COMMANDS in a namespace of mounts
read_only() { asks_where 'for m in /sys/fs/cgroup /sys/fs/cgroup/*/; do ! mountpoint -q $m || mount -o remount,bind,ro $m || exit; done'; }
read_only; try "read-only control groups: no answer is a failure, and the other checks report" no_answer 'control group .*Read-only file system; give'
cp_is() { printf '#!/bin/sh\n%s\n' "$1" >/usr/local/bin/cp; chmod 755 /usr/local/bin/cp; }
cp_is 'exec sleep 1002'; asks ''
try "a cp that does not end" no_answer 'let nodestrap copy /etc: cp -a /etc/. hangs; look'
try "nothing is left of it" leaves_nothing
asks '' & until pgrep -f '^sleep 1002' >/dev/null; do sleep 0.1; done; pkill -TERM -x nodestrap; wait $!
try "a signal ends the wait for it" grep -E 'could not be tested: SIGTERM' err
try "doctor leaves nothing of that behind" leaves_nothing
asks '' & until pgrep -f '^sleep 1002' >/dev/null; do sleep 0.1; done; pkill -KILL -x nodestrap; wait $!
while pgrep -f '^sleep 1002' >/dev/null; do sleep 0.1; done
groups() { find /sys/fs/cgroup -name 'nodestrap-ask.*' | grep -vxFf others | grep .; }
try "a killed doctor leaves its control groups" groups
cp_is 'echo "cp: no space" >&2; exit 1'; asks ''
try "a cp that fails" no_answer 'let nodestrap copy /etc: cp -a /etc/. exited with 1: cp: no space; correct'
try "the next one removes them" no groups
rm /usr/local/bin/cp
box() {
        mount -t tmpfs box /mnt && mkdir /mnt/box && cd /mnt/box && mkdir usr etc proc sys dev run var tmp && for l in bin lib lib64 sbin; do cp -a /$l .; done &&
                for d in usr etc proc sys dev run var tmp; do mount --rbind /$d $d; done
}
asks_where "$(declare -f box); box && exec chroot . \"\$@\""
try "a chroot whose directory is not a mount" is_said 'make its mounts read-only: / is not a mount point; run mount --bind'

kubelet_is() { umount /usr/local/bin/kubelet; printf '#!/bin/sh\n%s\n' "$1" >/usr/local/bin/kubelet; chmod "${2-755}" /usr/local/bin/kubelet; }
printf '%s\n' 'E1127 02:46:12.3 5484 run.go:72] "command failed" err="it reads tulip\thorse\t battery and ends"' >/etc/words
kubelet_is 'cat /etc/words >&2; exit 1'
asks '' '' $'  containerd:\n    config: |\n      [plugins."io.containerd.cri.v1.images".registry.configs."r.lab".auth]\n        password = "tulip\\thorse\\t battery"'
try "a secret is hidden before its escapes are gone" is_said '^asked kubelet failed .*kubelet refuses it: it reads \(hidden\) and ends'
kubelet_is 'exec sleep 1000'; asks ''
try "a kubelet that neither starts nor exits is not an answer" no_answer 'it neither starts nor exits within'
chmod 644 /usr/local/bin/kubelet; asks ''
try "a kubelet that cannot be executed" is_said '/usr/local/bin/kubelet is not executable; chmod 755'
rm /usr/local/bin/kubelet; asks ''
try "a machine without kubelet" is_said 'kubelet is not in the PATH.*; install it'
touch /usr/local/bin/kubelet; mount --bind "$KUBE/kubelet" /usr/local/bin/kubelet

usage() { "$NODESTRAP" doctor "$@" 2>err; [ $? = 2 ] && grep -e "$WORDS" err; }
WORDS='without --root' try "--ask is an error with another root" usage --ask --root etc -c file://node.yaml
WORDS='-c FILE' try "--ask is an error beside a NodeConfig alone" usage --ask
finish
