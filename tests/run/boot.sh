#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run/boot.sh SCRIPT
# Boots a guest for one script of tests/boot or tests/vm and prints the TAP that the script prints inside it. Such a script calls
# this by itself when it is started outside of a guest, so it can be given to tests/run/tap.sh. Its head says what it wants:
#   # run: nsboot.sh OPTION…        the tool of tests/tools and its options
#                                 with -A arm64 the programs are those of build-arm64, which cross.sh makes here
#   # type: TYPE                  the instance type that the metadata service says
#   # imds: NAME [USER-DATA]        metadata from tests/fixtures/NAME, user data from tests/fixtures/user-data/USER-DATA, or a path from conf/ on
#   # metadata: PATH VALUE          and this below meta-data/; may stand several times
#   # gpu: FIXTURE [WORD…]          with tree: gpu: the machine (tests/fixtures/FIXTURE.txt) and what else is so there, functions gpu_WORD
#   # spec: {KEY: …}                one more part of the NodeConfig, in YAML; may stand several times
#   # interfaces: N OPTION…         with tree: interfaces: a card for each interface of tests/fakes/interfaces.py OPTION…, the first N from power-on
#   # tree: WORD…                   what the guest gets besides the installed program, functions tree_WORD below
#   # drop-in: UNIT LINE            one more line of a drop-in of that unit
#   # script: LINE                 one more line of the shell script in the user data; may stand several times
#   # signed: OPTION…               the user data is signed (config sign OPTION…) with the one key that the guest trusts, and its identity document,
#                                 too; with imds: alone
#   # changed: EXPRESSION         of sed, for what was signed
#   # watcher: LINE                with tree: watcher: a line of what runs once the devices phase is over
#   # vpc: OPTION…                  with tree: vpc: network interfaces that tests/fakes/interfaces.py makes, with a VPC around them
#   # environment: NAME=VALUE…      of the tool: imds.py's variables
#   # kernel: ARGUMENT…             on the command line of the guest's kernel (vmboot.sh)
#   # console: REGEX                one more TAP line: the console shows a line that matches; may stand several times
#   # console-lacks: REGEX          the same: no line does
# $NODESTRAP is the program, $HELPERS and $FAKES the folders of the test programs; without $NODESTRAP all of them are made here. $KEEP is a
# directory that gets all results. Exit: 0, or 1 after a failure; a skipped script says so in TAP.
set -u; top=$(realpath "$(dirname "$0")/../.."); here=$top/tests; script=$(realpath "$1"); name=${script#"$here"/}
head_of() { sed -n "s/^# $1: //p" "$script"; }
fails() { printf '1..1\nnot ok 1 - %s: %s\n' "$name" "$1"; exit 1; }
if [ -z "${NODESTRAP-}" ]; then         # scripts that are started at the same time do not make it over each other
        flock "$top/Makefile" make -s -C "$top" guest-programs >&2 || fails "make guest-programs failed"
        NODESTRAP=$top/build/nodestrap
fi
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
NODESTRAP=$(realpath "$NODESTRAP") here_made=$NODESTRAP
if [[ " $(head_of run) " = *" -A arm64"* ]]; then
        (cd "$top" && unset MAKEFLAGS MAKELEVEL MFLAGS SAN O CC AR NM CFLAGS CPPFLAGS LDFLAGS LDLIBS PKG_CONFIG && flock Makefile tests/tools/cross.sh make -s -j2 O=build-arm64 CC=aarch64-linux-gnu-gcc guest-programs) >"$W/cross" 2>&1; rc=$?
        reason=$(sed -n 's/.*skip: //p' "$W/cross" | tail -1)
        if [ $rc = 77 ] && [ -n "$reason" ]; then echo "1..0 # SKIP $name: $reason"; exit 0; fi
        [ $rc = 0 ] || { tail -20 "$W/cross" >&2; fails "the programs for arm64 cannot be made"; }
        NODESTRAP=$top/build-arm64/nodestrap HELPERS='' FAKES=''
fi
HELPERS=${HELPERS:-$(dirname "$NODESTRAP")/tests/helpers} FAKES=${FAKES:-$(dirname "$NODESTRAP")/tests/fakes}
tree=$W/tree out=$W/out type=$(head_of type) cards='' units=/usr/lib/systemd/system; mkdir -p "$out"
enable() { mkdir -p "$tree/etc/systemd/system/$2.wants"; ln -sf "$units/$1" "$tree/etc/systemd/system/$2.wants/$1"; }

tree_enabled() { local phase; for phase in config devices run; do enable nodestrap-$phase.service multi-user.target; done; }
tree_no_devices_unit() { rm "$tree/etc/systemd/system/multi-user.target.wants/nodestrap-devices.service"; }
tree_watcher() {                        # behind the devices phase, whatever else goes on; /run/go is a pipe, which a user script may wait for
        mkdir -p "$tree/vmtest" "$tree/etc/tmpfiles.d"; echo 'p /run/go 0600' >"$tree/etc/tmpfiles.d/go.conf"; head_of watcher >"$tree/vmtest/watcher"
        printf '[Unit]\nDefaultDependencies=no\nAfter=nodestrap-devices.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nWorkingDirectory=/vmtest\nExecStart=/bin/bash /vmtest/watcher\n' >"$tree/etc/systemd/system/watcher.service"
        mkdir -p "$tree/etc/systemd/system/multi-user.target.wants"; ln -s ../watcher.service "$tree/etc/systemd/system/multi-user.target.wants/"
}
tree_driver_later() { mv "$tree/usr/bin/nvidia-smi" "$tree/vmtest/"; } # a user script installs it
tree_hook_enabled() { enable nodestrap-boot-hook.service multi-user.target; }
tree_vpc() {                            # they are there from power-on, as are DHCP servers; what udev would do for them is done by coldplug
        local s=$tree/etc/systemd/system unit; cp "$here/tools/veths.py" "$here/fakes/interfaces.py" "$here"/boot/lib/{power-on,coldplug} "$tree/vmtest/"; head_of vpc >"$tree/vmtest/vpc-options"
        mkdir -p "$s/sysinit.target.wants"; for unit in vpc coldplug; do ln -s ../$unit.service "$s/sysinit.target.wants/"; done
        enable systemd-networkd.service multi-user.target; enable systemd-networkd-wait-online.service network-online.target
        printf '[Unit]\nDefaultDependencies=no\nAfter=vmfakes.service vmimds.service\nBefore=systemd-networkd.service\nSurviveFinalKillSignal=yes\n[Service]\nType=exec\nExecStartPre=/bin/bash /vmtest/power-on\nExecStart=/usr/bin/python3 /vmtest/veths.py serve /vmtest/table /vmtest/vpc\n' >"$s/vpc.service"
        printf '[Unit]\nDefaultDependencies=no\nAfter=vpc.service\n[Service]\nType=oneshot\nExecStart=/bin/bash /vmtest/coldplug\n' >"$s/coldplug.service"
        [[ " $(head_of tree) " = *" binary_alone "* ]] || sed '/^BindsTo=/d;/^After=/s/sys-subsystem[^ ]*device//' "$top/units/nodestrap-udev-net-manager@.service" >"$s/nodestrap-udev-net-manager@.service"     # there are no devices
}
tree_never_listed() {                   # beside those, two interfaces that the metadata service never lists, their events 3 s apart
        local s=$tree/etc/systemd/system; mkdir -p "$s/nodestrap-udev-net-manager@.service.d"
        printf '[Unit]\nDefaultDependencies=no\nAfter=vpc.service\n[Service]\nType=oneshot\nExecStart=/bin/bash /vmtest/never.sh\n' >"$s/never.service"; ln -s ../never.service "$s/sysinit.target.wants/"
        cat >"$tree/vmtest/never.sh" <<'END'
for n in 8 9; do
        ip link add eth$n address 0a:00:00:00:00:0$n type veth peer name p$n; mkdir -p /run/udev/data; echo E:NODESTRAP_INTERFACE=1 >/run/udev/data/n$(cat /sys/class/net/eth$n/ifindex)
        systemctl start --no-block nodestrap-udev-net-manager@eth$n; [ $n = 9 ] || sleep 3
done
END
        printf '[Unit]\nStartLimitBurst=4\n' >"$s/nodestrap-udev-net-manager@.service.d/ends.conf"      # or the boot would not be over for minutes
}
tree_resolved() {                       # with a unit that basic.target waits for behind the network (awslabs/amazon-eks-ami#2703)
        local s=$tree/etc/systemd/system; mkdir -p "$s"/paths.target.wants; enable systemd-resolved.service sysinit.target
        printf '[Unit]\nDescription=Watch resolv.conf\nWants=network-online.target\nAfter=network-online.target\n[Path]\nPathChanged=/run/systemd/resolve/resolv.conf\nUnit=resolv-changed.service\n' >"$s/resolv-monitor.path"
        printf '[Service]\nType=oneshot\nExecStart=/bin/true\n' >"$s/resolv-changed.service"; ln -s ../resolv-monitor.path "$s/paths.target.wants/"
}
tree_networkd() {                       # the network comes up during the boot, so that "after the network" means something
        enable systemd-networkd.service multi-user.target; enable systemd-networkd-wait-online.service network-online.target
        mkdir -p "$tree/etc/systemd/network"
        # Link-local ones are probed for seconds (systemd.network(5)), and EC2 gives none
        printf '[Match]\nName=eth0\n\n[Network]\nLinkLocalAddressing=no\n\n[Address]\nAddress=169.254.169.10/24\nDuplicateAddressDetection=none\n' >"$tree/etc/systemd/network/10-eth0.network"
}
tree_hook_early() {                     # a primary and a second interface, the latter decided in an earlier boot; networkd hears of its file when it runs already
        local d=$tree/etc/systemd/system u
        enable nodestrap-boot-hook.service multi-user.target; enable systemd-networkd.service multi-user.target; mkdir -p "$d/sysinit.target.wants" "$tree/vmtest"
        printf '[Unit]\nDefaultDependencies=no\nBefore=systemd-networkd.service\n[Service]\nType=oneshot\nExecStart=/bin/bash /vmtest/early.sh links\n' >"$d/early-links.service"
        printf '[Unit]\nDefaultDependencies=no\nAfter=systemd-networkd.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/bash /vmtest/early.sh second\n' >"$d/early-second.service"
        for u in early-links early-second; do ln -s "../$u.service" "$d/sysinit.target.wants/"; done
        printf '. /vmtest/guest.sh\n. /vmtest/hook.sh\nearly_$1\n' >"$tree/vmtest/early.sh"
}
tree_network() {                        # network interfaces as on EC2 (boot/lib/network.sh), all matched by the file of the image
        mkdir -p "$tree/usr/lib/systemd/network"; cp "$here"/boot/lib/network.sh "$here/tools/veths.py" "$here/fakes/interfaces.py" "$tree/vmtest/"
        printf '[Match]\nKind=veth\n\n[Link]\nMTUBytes=9001\n\n[Network]\nDHCP=yes\n' >"$tree/usr/lib/systemd/network/80-ec2.network"
}
tree_containerd2() {                    # a containerd 2.x in the place of the suite's 1.x
        local cache
        cache=$("$here/tools/peers.sh" --cached containerd2 sid containerd) || return
        mkdir -p "$tree/usr/bin"; cp "$cache"/usr/bin/containerd* "$cache/usr/bin/ctr" "$tree/usr/bin/"
}
tree_registry() {                       # tests/mock/registry.py on port 5000, as two registries; the credential provider has the login of the one
        local s=$tree/etc/systemd/system name d; cp "$here/mock/registry.py" "$tree/vmtest/"; mkdir -p "$s/sysinit.target.wants"
        printf '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/python3 /vmtest/registry.py --listen 127.0.0.1:5000 --login AWS:PASSWORD-nobody-may-see-0123 --log /run/registry.log\n' >"$s/registry.service"
        ln -s ../registry.service "$s/sysinit.target.wants/"
        for name in 123456789012.dkr.ecr.us-west-2.amazonaws.com plain.test; do
                d=$tree/etc/containerd/certs.d/$name; mkdir -p "$d"; printf 'server = "http://127.0.0.1:5000"\n[host."http://127.0.0.1:5000"]\ncapabilities = ["pull", "resolve"]\n' >"$d/hosts.toml"
        done
        install -D -m 755 /dev/stdin "$tree/etc/eks/image-credential-provider/ecr-credential-provider" <<'END'
#!/bin/sh
cat >>/run/nodestrap/asked
printf '{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Registry", "auth": {"*.dkr.ecr.*.amazonaws.com": {"username": "AWS", "password": "PASSWORD-nobody-may-see-0123"}}}'
END
}
tree_containerd_alias() {               # containerd.service is another name of its unit, as an image may have it
        local d=$tree/etc/systemd/system
        printf '[Unit]\nDescription=containerd under another name\n[Service]\nType=notify\nDelegate=yes\nKillMode=process\nRestart=always\nRestartSec=5\nExecStart=/usr/bin/containerd\n[Install]\nAlias=containerd.service\n' \
                >"$d/containerd-eks.service"
        ln -s containerd-eks.service "$d/containerd.service"
}
tree_real_kubelet() {                   # in the place of the recording one
        local kube; kube=$("$here/tools/kube.sh" 1.33.13) && cp "$kube/kubelet" "$tree/usr/bin/kubelet"
}
tree_soci_that_is_deaf() {              # an AMI with SOCI whose socket never answers, on a machine that is large enough for it
        local n d=$tree/etc/systemd/system
        [ "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" -ge 7340032 ] || return
        mkdir -p "$tree/usr/bin" "$tree/etc/eks"; printf '#!/bin/sh\nexec sleep infinity\n' >"$tree/usr/bin/soci-snapshotter-grpc"; chmod 755 "$tree/usr/bin/soci-snapshotter-grpc"
        printf '[Service]\nExecStart=/usr/bin/soci-snapshotter-grpc\n' >"$d/soci-snapshotter.service"
        python3 "$here/boot/lib/archive.py" "$tree/etc/eks/pause.tar" localhost/kubernetes/pause:latest
        for n in 0 1 2 3; do mkdir -p "$tree/vmtest/cpu/cpu$n"; done
        for n in config run; do
                mkdir -p "$d/nodestrap-$n.service.d"; printf '[Service]\nEnvironment=CPU_DIR=/vmtest/cpu NODE_DIR=/vmtest/none\n' >"$d/nodestrap-$n.service.d/cpus.conf"
        done
}
tree_containerd17() {                   # Debian 13's in a guest of another suite
        local root
        root=$("$here/tools/vmboot.sh" --build -S trixie) || return
        mkdir -p "$tree/usr/bin"; cp "$root"/usr/bin/containerd* "$root/usr/bin/ctr" "$tree/usr/bin/"
}
tree_ec2_utils() {                      # the udev rules of AWS, which ask for the vendor of its drives; those of QEMU have another
        local cache
        cache=$("$here/tools/peers.sh" --cached amazon-ec2-utils trixie amazon-ec2-utils) || return
        mkdir -p "$tree"/usr/{sbin,lib/udev/rules.d}
        cp "$cache"/usr/lib/udev/rules.d/* "$tree/usr/lib/udev/rules.d/" && cp "$cache/usr/lib/udev/ec2nvme-nsid" "$tree/usr/lib/udev/" &&
                sed 's/0x1D0F/0x1B36/' "$cache/usr/sbin/ebsnvme-id" >"$tree/usr/sbin/ebsnvme-id" && chmod 755 "$tree/usr/sbin/ebsnvme-id"
}
tree_kubelet_enabled() { mkdir -p "$tree/etc/systemd/system/multi-user.target.wants"; ln -sf ../kubelet.service "$tree/etc/systemd/system/multi-user.target.wants/"; }
tree_state_left() { mkdir -p "$tree/var/lib/kubelet"; printf '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}' >"$tree/var/lib/kubelet/cpu_manager_state"; }  # by a kubelet of an earlier boot
tree_kubelet_environment() { mkdir -p "$tree/etc/eks/kubelet"; echo NODEADM_KUBELET_ARGS=--v=1 >"$tree/etc/eks/kubelet/environment"; }
tree_swap() {                           # as kubelet reads of it: what nsboot.sh binds over /proc/swaps
        mkdir -p "$tree/vmtest/kernel" && printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0                              partition\t1048572\t\t0\t\t100\n' >"$tree/vmtest/kernel/swaps"
}
tree_kubelet_exits() { mkdir -p "$tree/etc/recording-kubelet"; echo 3 >"$tree/etc/recording-kubelet/exit"; }
tree_counting_kubelet() {               # notes what huge pages of 2 MiB each NUMA node has when it starts
        mkdir -p "$tree/etc/systemd/system/kubelet.service.d"
        printf '[Service]\nExecStartPre=/bin/sh -c "echo $$(cat /sys/devices/system/node/node[01]/hugepages/hugepages-2048kB/nr_hugepages) >/run/pages-at-kubelet"\n' \
                >"$tree/etc/systemd/system/kubelet.service.d/counting.conf"
}
tree_containerd_fails() {
        mkdir -p "$tree/etc/systemd/system/containerd.service.d"
        printf '[Service]\nExecStart=\nExecStart=/bin/false\nRestart=no\n' >"$tree/etc/systemd/system/containerd.service.d/fails.conf"
}
tree_canaries() {                       # a NodeConfig, for root alone, with a word of its own in all that is free there
        mkdir -p "$tree/etc/eks/nodeadm.d" && python3 "$here/boot/lib/canary.py" "$top/conf/nodeconfig.schema.json" "$tree/vmtest" && cp -p "$tree/vmtest/whole.yaml" "$tree/etc/eks/nodeadm.d/60-whole.yaml"
}
tree_containerd_mount_fails() {         # what /var/lib/containerd should be on never comes
        printf '[Unit]\nDescription=A disk that is not there\n[Mount]\nWhat=/dev/vmtest-absent\nWhere=/var/lib/containerd\nType=tmpfs\nOptions=nosuchoption\n' \
                >"$tree/etc/systemd/system/var-lib-containerd.mount"
}
tree_faults() {                         # where the nth call fails (tests/vm/lib/faults.py); $FAULTS: which
        mkdir -p "$tree/vmtest" && cp "$HELPERS/fault-tool" "$tree/vmtest/" && echo "${FAULTS-}" >"$tree/vmtest/faults-words"
}
tree_any_cuts() {                       # the power goes in one of the phases or beside them (tests/vm/lib/any_cuts.py); $CUTS: how often
        local phase d devices; mkdir -p "$tree/vmtest" "$tree/etc/systemd/system/sysinit.target.wants"; echo "${CUTS-}" >"$tree/vmtest/cuts-words"
        for phase in config devices run; do
                d=$tree/etc/systemd/system/nodestrap-$phase.service.d; mkdir -p "$d"
                # As the unit has it, and what the tool needs: a filter of its own, and memory of a process that may not be dumped. Also
                # the kernel log, which DeviceAllow= closes
                devices=''; ! grep -q ^DevicePolicy "$top/units/nodestrap-$phase.service" || devices='DeviceAllow=\/dev\/kmsg w\n'
                sed -n "s/^ExecStart=/[Service]\nCapabilityBoundingSet=CAP_SYS_PTRACE\nSystemCallFilter=seccomp\n${devices}ExecStart=\nExecStart=\/usr\/bin\/python3 \/vmtest\/any_cuts.py run $phase /p" "$top/units/nodestrap-$phase.service" >"$d/cut.conf"
        done
        printf '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/python3 /vmtest/any_cuts.py clock\n' >"$tree/etc/systemd/system/cut-clock.service"
        ln -s ../cut-clock.service "$tree/etc/systemd/system/sysinit.target.wants/"
}
tree_endurance() {                      # what tests/torture/endurance preloads, and its scripts for short forms; $INITS, $PARTS, $SIGNALS: how much
        cp "$here"/torture/endurance/{container,machine}.sh "$tree/vmtest/" && printf '%s=%q\n' INITS "${INITS:-1000}" PARTS "${PARTS-}" SIGNALS "${SIGNALS-}" >"$tree/vmtest/endurance.env" || return
        "${CC:-cc}" -shared -fPIC -O1 -o "$tree/vmtest/endurance.so" "$here/torture/endurance/preload.c"
}
tree_disturbed() {                      # /vmtest/next has a line for each boot: what disturbs it (tests/torture/endurance/disturb); $DISTURBED: other ones
        mkdir -p "$tree/etc/systemd/system/sysinit.target.wants"; cp "$here/torture/endurance/disturb" "$tree/vmtest/"
        tr ';' '\n' <<<"${DISTURBED:-storm;oom;unplug;reboot nodestrap-run 0.5;reboot nodestrap-devices 0}" >"$tree/vmtest/next"
        printf '[Unit]\nDefaultDependencies=no\nAfter=systemd-remount-fs.service\nBefore=nodestrap-config.service\n[Service]\nType=exec\nExecStart=/bin/bash /vmtest/disturb\n' >"$tree/etc/systemd/system/disturb.service"
        ln -s ../disturb.service "$tree/etc/systemd/system/sysinit.target.wants/"
}
tree_helpers() { cp "$HELPERS"/*-tool "$tree/vmtest/"; }
tree_containerd_version() {             # of the suite, as an EKS image says it: asking the program can take longer than it may here
        local version=1.6.20; [[ ! $(head_of run) =~ trixie|arm64 ]] || version=1.7.24
        [ ! -e "$tree/usr/bin/containerd" ] || version=$("$tree/usr/bin/containerd" --version | awk '{ print $3 }')     # of tree_containerd2
        mkdir -p "$tree/etc/eks"; echo $version >"$tree/etc/eks/containerd-version.txt"
}
tree_containerd_enabled() { enable containerd.service multi-user.target; }
tree_stores_if_any() {                  # the run phase says that the disks are ready, though there are none
        mkdir -p "$tree/etc/eks/nodeadm.d"
        printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  instance:\n    localStorage: {strategy: RAID0}\n' >"$tree/etc/eks/nodeadm.d/stores.yaml"
}
tree_kept_results() {                   # a soft reboot does not unmount the folder of the results
        mkdir -p "$tree/etc/systemd/system/vmtest-out.mount.d"; printf '[Unit]\nDefaultDependencies=no\n' >"$tree/etc/systemd/system/vmtest-out.mount.d/keep.conf"
}
tree_edits() {                          # what shell scripts of user data do between the phases
        printf '[Unit]\nDefaultDependencies=no\nAfter=nodestrap-config.service basic.target containerd.service\nBefore=nodestrap-run.service\n[Service]\nType=oneshot\nExecStart=/bin/sed -i s/ARGS=/ARGS=--edited=1@/;s/@/\\x20/ /etc/eks/kubelet/environment\nExecStart=/bin/systemctl restart containerd\nExecStart=/bin/systemctl restart kubelet\n' \
                >"$tree/etc/systemd/system/edits.service"
        mkdir -p "$tree/etc/systemd/system/multi-user.target.wants"; ln -sf ../edits.service "$tree/etc/systemd/system/multi-user.target.wants/"
}
tree_patched() {                        # a script adds kubelet arguments right behind the configuration phase
        mkdir -p "$tree/etc/systemd/system/nodestrap-config.service.d"
        printf '[Service]\nExecStartPost=/bin/sed -i "s/ARGS=/ARGS=--patched=1 /" /etc/eks/kubelet/environment\n' >"$tree/etc/systemd/system/nodestrap-config.service.d/patch.conf"
}
tree_read_only_etc() {
        printf '[Unit]\nDefaultDependencies=no\nAfter=local-fs.target\nBefore=nodestrap-config.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/mount --bind /etc /etc\nExecStart=/bin/mount -o remount,ro,bind /etc\n' \
                >"$tree/etc/systemd/system/read-only-etc.service"
        mkdir -p "$tree/etc/systemd/system/sysinit.target.wants"; ln -s ../read-only-etc.service "$tree/etc/systemd/system/sysinit.target.wants/"
}
tree_paced() {                          # a boot whose parts take their time: user scripts before the run phase, containerd, the test of the GPUs; by script user-takes, containerd-takes, prove-takes
        local s=$tree/etc/systemd/system; mkdir -p "$tree/usr/lib/fakes" "$s/multi-user.target.wants" "$tree/etc/eks"
        printf '#!/bin/bash\n. /usr/lib/fakes/lib.sh\npause "$(script "$1-takes" 0)"; event "$1-is-there"\n' | install -m 755 /dev/stdin "$tree/usr/lib/fakes/takes"
        printf '[Unit]\nDescription=Stub of cloud-init and its user scripts\nDefaultDependencies=no\nAfter=nodestrap-config.service basic.target\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/lib/fakes/takes user\n' >"$s/cloud-final.service"
        printf '[Unit]\nDescription=Stub of containerd\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/lib/fakes/takes containerd\n' >"$s/containerd.service"
        install -D -m 755 /dev/stdin "$tree/usr/lib/fakes/proves" <<'END'
#!/bin/bash
. /usr/lib/fakes/lib.sh
/usr/lib/fakes/takes prove
for gpu in $(gpus); do echo "{\"gpu\": \"$gpu\", \"done\": true}"; done; echo '{"done": true}'
END
        mkdir -p "$s/nodestrap-prove@.service.d"; printf '[Service]\nExecStart=\nExecStart=+/usr/lib/fakes/proves\n' >"$s/nodestrap-prove@.service.d/paced.conf"
        ln -sf ../cloud-final.service "$s/multi-user.target.wants/"; ln -sf /dev/null "$s/multi-user.target.wants/containerd.service"
        echo 2.1.5 >"$tree/etc/eks/containerd-version.txt"; printf '#!/bin/sh\n' | install -D /dev/stdin "$tree/usr/bin/ctr"
}
tree_serial() { bench_script cloud-final.service serial; }     # the same, one after the other, as a script behind the configuration of nodeadm would
tree_chain() { bench_script nodestrap-config.service chain; }   # kubelet waits for its longest chain alone; all else goes on beside that
bench_script() {                        # AFTER HOW: nothing of ours but the first phase
        local s=$tree/etc/systemd/system; rm -f "$s"/multi-user.target.wants/nodestrap-{run,devices}.service
        install -m 755 /dev/stdin "$tree/usr/lib/fakes/serial" <<'END'
#!/bin/bash
. /usr/lib/fakes/lib.sh
touch /run/nodestrap/{fabric-may-start,cdi-may-refresh,mounts-ready,kubelet-may-start}
aside() { if [ "$how" = chain ]; then "$@" >/dev/null 2>&1 & else "$@" >/dev/null; fi; }
cdi() { nvidia-smi -L && nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml; }
how=$1
[ "$how" = serial ] || systemctl start --no-block containerd
aside modprobe efa
pause "$(script driver-takes 10)"; modprobe -a nvidia nvidia-uvm nvidia-modeset
aside systemctl start nvidia-persistenced
systemctl start nvidia-fabricmanager
aside cdi
until gpu_states | awk '$2 != "completed" { exit 1 }'; do sleep 0.1; done
[ "$how" = chain ] || systemctl start containerd
systemctl start kubelet
END
        printf '[Unit]\nDefaultDependencies=no\nAfter=%s\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/lib/fakes/serial %s\n' "$1" "$2" >"$s/serial.service"
        ln -sf ../serial.service "$s/multi-user.target.wants/"
}
tree_apply_tool() {                     # plans as a test writes them
        mkdir -p "$tree/opt" && cp "$HELPERS/apply-tool" "$tree/opt/"
}
tree_storage() {                        # the library of tests/vm, and daemons that note what disk they find when they start
        local d name; cp "$here"/vm/lib/* "$here/tools/imds.py" "$tree/vmtest/"; cp -a "$here/fixtures/imds-m5" "$tree/vmtest/imds"
        mkdir -p "$tree/vmtest/bin"; for name in mdadm mkfs.xfs mkfs.ext4 cp; do ln -s ../tool "$tree/vmtest/bin/$name"; done
        for name in kubelet containerd; do
                d=$tree/etc/systemd/system/$name.service.d; mkdir -p "$d"
                printf '[Service]\nExecStartPre=/vmtest/started %s /var/lib/%s\n' $name $name >"$d/started.conf"
        done
}
tree_plans_here() {                     # what the program of this machine plans for models of others, of both architectures
        local t; mkdir -p "$tree/vmtest/plans"; cp "$top/conf/examples/p6e-gb200.userdata" "$tree/vmtest/plans/userdata"
        for t in p6e-gb200.36xlarge p5.48xlarge; do
                (cd "$tree/vmtest/plans" && exec env -i unshare -n "$here_made" plan -c file://userdata --instance-type $t --kubelet-version 1.34.2 --containerd-version 2.1.5 \
                        --driver-version 580.159.04 --output json >$t.json) || return
        done
}
tree_storage_units() {                  # what the image brings, and what the run phase finds (tests/vm/lib/natural.py)
        local d word
        for word in config.bake run.before; do
                d=$tree/etc/systemd/system/nodestrap-${word%.*}.service.d; mkdir -p "$d"
                printf '[Service]\nExecStartPre=+/usr/bin/python3 /vmtest/natural.py %s\n' "${word#*.}" >"$d/natural.conf"
        done
        mkdir -p "$tree/etc/systemd/system.conf.d"      # a device that never comes is given up soon
        printf '[Manager]\nDefaultDeviceTimeoutSec=3s\n' >"$tree/etc/systemd/system.conf.d/timeout.conf"
}
tree_storage_stubs() {                  # for hundreds of runs: daemons that start in no time
        local name
        for name in kubelet containerd; do
                printf '[Unit]\nDescription=Stub of %s\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n' $name >"$tree/etc/systemd/system/$name.service"
        done
        mkdir -p "$tree/etc/eks"; echo 2.1.5 >"$tree/etc/eks/containerd-version.txt"    # asking the program takes half a second there
        printf '#!/bin/sh\n' | install -D /dev/stdin "$tree/usr/bin/ctr"        # the real one waits 10 s for a containerd that is none
}
tree_ec2() {                            # the EC2 API on loopback
        mkdir -p "$tree/vmtest" "$tree/etc/systemd/system/sysinit.target.wants" "$tree/etc/systemd/system/nodestrap-config.service.d"
        cp "$here/mock/aws.py" "$here/mock/sigv4.py" "$tree/vmtest/"; ln -s ../mock-ec2.service "$tree/etc/systemd/system/sysinit.target.wants/"
        printf '[Unit]\nDefaultDependencies=no\nBefore=nodestrap-config.service\n[Service]\nExecStart=/usr/bin/python3 /vmtest/aws.py --imds /vmtest/imds --ec2-listen 127.0.0.1:8101 --ec2-name ip-10-11-12-13.us-west-2.compute.internal --key ASIAEXAMPLEEXAMPLE00:exampleexampleexampleexampleexample00000:example-session-token --log /vmtest/out/ec2.log\n' \
                >"$tree/etc/systemd/system/mock-ec2.service"
        local phase; for phase in config run; do
                mkdir -p "$tree/etc/systemd/system/nodestrap-$phase.service.d"
                printf '[Service]\nEnvironment=AWS_ENDPOINT_URL_EC2=http://127.0.0.1:8101\n' >"$tree/etc/systemd/system/nodestrap-$phase.service.d/ec2.conf"
        done
}
tree_throttled() {                      # with ec2: until the first phase is over; and the name is none that the metadata service knows
        local s=$tree/etc/systemd/system
        sed -i 's/ip-10-11-12-13/ip-10-11-12-99/;s/^ExecStart=.*/& --fault ec2:throttle --faults-while \/run\/throttled/;s/^ExecStart=/ExecStartPre=\/bin\/touch \/run\/throttled\n&/' "$s/mock-ec2.service"
        printf '[Unit]\nDefaultDependencies=no\nAfter=nodestrap-config.service\nBefore=nodestrap-run.service\n[Service]\nType=oneshot\nExecStart=/bin/rm /run/throttled\n' >"$s/throttled-no-more.service"
        mkdir -p "$s/multi-user.target.wants"; ln -s ../throttled-no-more.service "$s/multi-user.target.wants/"
}
tree_cluster() {                        # an API server's certificates, and the NodeConfig of its cluster
        command -v openssl >/dev/null && mkdir -p "$tree/vmtest" && cp "$here"/mock/*.py "$tree/vmtest/" && python3 "$here/mock/kube.py" pki "$tree/vmtest/pki" || return
        printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: training, apiServerEndpoint: "https://127.0.0.1:6443", certificateAuthority: %s, cidr: 10.100.0.0/16}\n  featureGates: {InstanceIdNodeName: true}\n' \
                "$(base64 -w0 "$tree/vmtest/pki/ca.crt")" >"$tree/vmtest/cluster.yaml"
}

tree_kube() {                           # the real kubelet ($KUBE) in EKS's image, network plugins ($CNI), the sandbox image; AWS is that of $CLUSTER
        local s=$tree/etc/systemd/system aws=$here/fakes/al2023/rootfs/etc
        mkdir -p "$tree"/{opt/cni/bin,etc/cni/net.d,etc/ssl/certs,etc/systemd/network} "$s/multi-user.target.wants"
        cp "$here"/cluster/lib/ready.sh "$tree/vmtest/" && cp "$here/cluster/lib/guest.sh" "$tree/vmtest/cluster.sh" && cp "$KUBE/kubelet" "$tree/usr/bin/kubelet" &&
                "$KUBE/kubelet" --version >"$tree/etc/eks/kubelet-version.txt" && cp -a "$aws/sysctl.d" "$tree/etc/" && cp -a "$aws"/systemd/system/{kubelet.service,runtime.slice,containerd.service.d} "$s/" &&
                cp "$CNI"/usr/lib/cni/{bridge,host-local,loopback} "$tree/opt/cni/bin/" && cp "$CLUSTER/pki/aws-ca.crt" "$tree/etc/ssl/certs/ca-certificates.crt" || return
        ln -sf /dev/null "$s/multi-user.target.wants/containerd.service"; printf '127.0.0.1 localhost\n' | cat - "$CLUSTER/hosts" >"$tree/etc/hosts"
        printf '{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.0.3.0/24"}]]}}]}\n' \
                >"$tree/etc/cni/net.d/10-pods.conflist"
        printf '[Match]\nName=eth1\n\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\n' >"$tree/etc/systemd/network/10-eth1.network"; tree_networkd
        "${CC:-cc}" -static -Os -s -o "$W/pause" "$here/cluster/lib/pause.c" && python3 "$here/boot/lib/archive.py" "$tree/etc/eks/pause.tar" localhost/kubernetes/pause:latest "$W/pause"
}
tree_kubelet_oracle() {                 # with kube and containerd2: tests/oracles/kubelet.py
        mkdir -p "$tree/vmtest/conf" "$tree/vmtest/tests/oracles" && cp "$top"/conf/kubelet-*.csv "$tree/vmtest/conf/" && cp "$here"/oracles/{kubelet*,daemon.py} "$tree/vmtest/tests/oracles/"
}
tree_pods_network_later() {             # with kube: the pods' network comes when the test says so; and images for pods
        mv "$tree/etc/cni/net.d/10-pods.conflist" "$tree/vmtest/" && python3 "$here/boot/lib/archive.py" "$tree/vmtest/work.tar" localhost/work:latest "$(command -v busybox)" &&
                python3 "$here/boot/lib/archive.py" "$tree/vmtest/unused.tar" localhost/unused:latest "$(command -v busybox)" false
}
# with tree: kube, an image whose own units name no slice
tree_no_slices() { rm -r "$tree"/etc/systemd/system/{containerd.service.d,runtime.slice} && sed -i '/^Slice=/d' "$tree/etc/systemd/system/kubelet.service"; }

tree_cold_cache() {                     # what was unpacked a moment ago is on the disk alone, as when an instance is started
        local s=$tree/etc/systemd/system; mkdir -p "$s/sysinit.target.wants"; ln -s ../cold-cache.service "$s/sysinit.target.wants/"
        printf '[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/sh -c "sync; echo 3 >/proc/sys/vm/drop_caches"\n' >"$s/cold-cache.service"
}
tree_io_accounting() {                  # systemd counts what each unit reads
        mkdir -p "$tree/etc/systemd/system.conf.d"; printf '[Manager]\nDefaultIOAccounting=yes\n' >"$tree/etc/systemd/system.conf.d/io-accounting.conf"
}
tree_host_clock() { cp "$here/cluster/lib/clock.py" "$tree/vmtest/"; }
tree_aws_plugin() {                     # the tokens for kubelet come from the AWS CLI
        local phase d
        for phase in config devices run; do
                d=$tree/etc/systemd/system/nodestrap-$phase.service.d; mkdir -p "$d"
                sed -n 's/^ExecStart=/[Service]\nExecStart=\n&/; s/$/ --credential-plugin aws/; /nodestrap init/p' "$top/units/nodestrap-$phase.service" >"$d/aws-plugin.conf"
        done
}
tree_peer() {                           # in place of all of ours: $PEER, a build of nodeadm, by the two units of EKS's image
        local s=$tree/etc/systemd/system phase
        make -s -C "$top" install DESTDIR="$W/ours" BINARY="$NODESTRAP" >/dev/null && (cd "$W/ours" && find usr -type f -printf "$tree/%p\0" | xargs -0 rm -f) &&
                mkdir -p "$tree/etc/eks/nodeadm.d" "$s/multi-user.target.wants" && install "$PEER" "$tree/usr/bin/nodeadm" || return
        install "$here/bench/storage/peer.sh" "$tree/usr/bin/setup-local-disks"
        [ ! -e "${PEER%/*}/setup-local-disks" ] || install "${PEER%/*}/setup-local-disks" "$tree/usr/bin/"
        enable systemd-networkd-wait-online.service multi-user.target           # cloud-init of the image wants it
        for phase in config run; do cp "$here/fakes/al2023/rootfs/etc/systemd/system/nodeadm-$phase.service" "$s/"; ln -s "../nodeadm-$phase.service" "$s/multi-user.target.wants/"; done
}
tree_joined_enabled() { enable nodestrap-joined.service multi-user.target; }
tree_api() {                            # that cluster on loopback
        tree_cluster || return
        mkdir -p "$tree/etc/eks/nodeadm.d" "$tree/etc/systemd/system/sysinit.target.wants"; cp "$tree/vmtest/cluster.yaml" "$tree/etc/eks/nodeadm.d/"
        ln -s ../mock-kube.service "$tree/etc/systemd/system/sysinit.target.wants/"
        printf '[Unit]\nDefaultDependencies=no\nBefore=nodestrap-config.service\n[Service]\nExecStart=/usr/bin/python3 /vmtest/kube.py serve /vmtest/pki --listen 127.0.0.1:6443 --key ASIAEXAMPLEEXAMPLE00:exampleexampleexampleexampleexample00000:example-session-token --log /vmtest/out/kube.log\n' \
                >"$tree/etc/systemd/system/mock-kube.service"
}

tree_modprobe_edited() {                # a user script has options of its own for the driver, which is loaded already
        printf '[Unit]\nAfter=nodestrap-devices.service\nBefore=nodestrap-run.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c "echo options nvidia NVreg_ImexChannelCount=512 >/etc/modprobe.d/zzz-mine.conf"\n' \
                >"$tree/etc/systemd/system/modprobe-edited.service"
        mkdir -p "$tree/etc/systemd/system/multi-user.target.wants"; ln -sf ../modprobe-edited.service "$tree/etc/systemd/system/multi-user.target.wants/"
}
tree_failure_hook() {                   # what an image does about a failure, once a boot
        printf '[Unit]\nDefaultDependencies=no\nBefore=nodestrap-failed.target\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c "echo >>/var/lib/hook"\n' >"$tree/etc/systemd/system/hook.service"
        mkdir -p "$tree/etc/systemd/system/nodestrap-failed.target.wants"; ln -s ../hook.service "$tree/etc/systemd/system/nodestrap-failed.target.wants/"
}
tree_gpu() {                            # a machine with GPUs from power-on, and fakes of NVIDIA's programs (tests/fakes/install.sh)
        # shellcheck disable=SC2046 # words
        FAKES=$FAKES "$here/fakes/install.sh" "$tree" $(head_of gpu) || fails "the fakes cannot be installed"
        type=$(cat "$tree/vmtest/machine/sys/devices/virtual/dmi/id/product_name")
}

# Network cards whose interfaces nodestrap manages, and the first file for networkd of an EC2 image. A metadata service on loopback knows
# those of power-on. Our rule is as installed, but for the driver. That of those that come later is in /vmtest/later.
tree_interfaces() {
        local n rest index mac d=$tree/etc/systemd/system macs=latest/meta-data/network/interfaces/macs; read -r n rest <<<"$(head_of interfaces)"
        # shellcheck disable=SC2086 # words
        "$here/fakes/interfaces.py" "$tree/vmtest/imds" $rest >"$tree/vmtest/interfaces" || return
        mkdir -p "$tree/vmtest/later" "$d"/{sysinit,multi-user}.target.wants
        while read -r index mac _; do
                if [ "$index" -lt "$n" ]; then cards+=" -w $mac"; else cards+=" -w $mac:late"; mv "$tree/vmtest/imds/$macs/$mac" "$tree/vmtest/later/"; fi
        done <"$tree/vmtest/interfaces"
        cards+=" -T $(cat "$tree/vmtest/imds/latest/meta-data/instance-type")"
        cp "$here/tools/imds.py" "$here"/vm/lib/{storage,interfaces}.py "$here"/vm/lib/interfaces_*.py "$tree/vmtest/"
        printf '[Unit]\nDefaultDependencies=no\nBefore=systemd-networkd.service nodestrap-boot-hook.service nodestrap-config.service\n[Service]\nType=notify\nNotifyAccess=all\nEnvironment=IMDS_LOG=/vmtest/out/imds.log\nExecStartPre=/bin/mkdir -p /vmtest/out\nExecStartPre=-/sbin/ip address add 169.254.169.254/32 dev lo\nExecStart=/usr/bin/python3 /vmtest/imds.py serve 169.254.169.254 80 /vmtest/imds\n' \
                >"$d/mock-imds.service"; ln -s ../mock-imds.service "$d/sysinit.target.wants/"
        sed -i 's/vif|ena|ixgbevf/virtio_net/' "$tree/usr/lib/udev/rules.d/90-nodestrap.rules" || return
        mkdir -p "$tree/usr/lib/systemd/network"; printf '[Match]\nDriver=virtio_net\n\n[Link]\nMTUBytes=9001\n\n[Network]\nDHCP=yes\n' >"$tree/usr/lib/systemd/network/80-ec2.network"
        enable nodestrap-boot-hook.service multi-user.target
        enable systemd-networkd.service multi-user.target; enable systemd-networkd-wait-online.service network-online.target
}

tree_interfaces_named() {               # secondary ones have names that the kernel does not give, so that names can change hands
        local index mac; mkdir -p "$tree/etc/systemd/network"
        while read -r index mac _; do
                [ "$index" = 0 ] || printf '[Match]\nPermanentMACAddress=%s\n\n[Link]\nName=lan%s\n' "$mac" "$index" >"$tree/etc/systemd/network/10-${mac//:/}.link"
        done <"$tree/vmtest/interfaces"
}

tree_interfaces_alone() { echo 'down * 30' >"$tree/vmtest/imds/lag"; }         # the metadata service is not there at first

# EKS's image (tests/fakes/al2023), with its own nodeadm enabled as the provisioners do it. containerd is not: "/dev/null" takes away
# what Debian's package has enabled. Nothing waits for an interface in a container.
tree_al2023() {
        local s=$tree/etc/systemd/system unit; cp -a "$here/fakes/al2023/rootfs/." "$tree/"; mkdir -p "$tree/etc/eks/nodeadm.d"
        mkdir -p "$s"/{multi-user,sockets,cloud-init}.target.wants "$s/systemd-networkd-wait-online.service.d"
        for unit in nodeadm-boot-hook nodeadm-config nodeadm-run cni-cache-reset; do ln -sf ../$unit.service "$s/multi-user.target.wants/"; done
        for unit in containerd kubelet; do ln -sf ../ebs-initialize-bin@.service "$s/multi-user.target.wants/ebs-initialize-bin@$unit.service"; done
        for unit in cloud-init-local cloud-init cloud-config cloud-final; do enable $unit.service cloud-init.target; done
        enable cloud-init.target multi-user.target; ln -sf ../soci-snapshotter.socket "$s/sockets.target.wants/"
        enable systemd-networkd.service multi-user.target; enable systemd-networkd-wait-online.service network-online.target
        printf '[Service]\nExecStart=\nExecStart=/bin/true\n' >"$s/systemd-networkd-wait-online.service.d/container.conf"
        ln -sf /dev/null "$s/multi-user.target.wants/containerd.service"
}
tree_package() {                        # nothing is installed: the guest has /vmtest/nodestrap.deb, with the files and scripts of the package
        local p=$W/package name; command -v dpkg-deb >/dev/null || return; mkdir -p "$p/DEBIAN"
        make -s -C "$top" install DESTDIR="$p" BINARY="$NODESTRAP" >/dev/null && (cd "$p" && find usr -type f -printf "$tree/%p\0" | xargs -0 rm -f) || return
        for name in postinst prerm postrm; do
                sed -e /#DEBHELPER#/d -e "/^#ADVICE#/{r $top/conf/packaging/advice.sh" -e 'd}' -e "/^#REMOVAL#/{r $top/conf/packaging/removal.sh" -e 'd}' "$top/debian/nodestrap.$name" >"$p/DEBIAN/$name"
                chmod 755 "$p/DEBIAN/$name"
        done
        printf 'Package: nodestrap\nVersion: 0~test\nArchitecture: all\nMaintainer: nobody <nobody@nodestrap.example>\nDescription: the package under test\n' >"$p/DEBIAN/control"
        dpkg-deb --root-owner-group -Znone -b "$p" "$tree/vmtest/nodestrap.deb" >/dev/null
}
swapped() { echo nodeadm; [[ " $(head_of tree) " != *" vpc "* ]] || echo nodeadm-internal; }    # /sys of a fake machine has no interfaces
tree_swapped() { local n; for n in $(swapped); do mv "$tree/usr/bin/$n" "$tree/usr/bin/$n.aws"; ln -s nodestrap "$tree/usr/bin/$n"; done; }
tree_binary_alone() {                   # the program in place of nodeadm, and nothing else of the package
        local name
        make -s -C "$top" install DESTDIR="$W/alone" BINARY="$NODESTRAP" >/dev/null && (cd "$W/alone" && find usr -type f -printf "$tree/%p\0" | xargs -0 rm -f) &&
                rm -r "$tree"/usr/{lib,libexec,share/doc}/nodestrap && for name in $(swapped); do cp "$NODESTRAP" "$tree/usr/bin/$name" || return; done
}

cp -a "$here/boot/lib/tree" "$tree" && mkdir -p "$tree/vmtest" && cp "$here"/boot/lib/{guest.sh,gpu.sh,al2023.sh,sandbox.sh,compare.py,archive.py} "$tree/vmtest/" || exit 1
make -s -C "$top" install DESTDIR="$tree" BINARY="$NODESTRAP" >"$W/install" 2>&1 || { cat "$W/install" >&2; fails "make install failed"; }
cp "$here/boot/lib/hook.sh" "$HELPERS/networkd-tool" "$tree/vmtest/" || exit 1
mkdir -p "$tree/usr/lib/x86_64-linux-gnu"      # of a build with SAN=1
ldd "$tree/usr/bin/nodestrap" 2>/dev/null | awk '/lib(asan|ubsan)/ { print $3 }' | xargs -r cp -Lt "$tree/usr/lib/x86_64-linux-gnu"
head_of spec | while IFS= read -r spec; do
        mkdir -p "$tree/etc/eks/nodeadm.d"; n=$(find "$tree/etc/eks/nodeadm.d" -type f | wc -l)
        printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: %s\n' "$spec" >"$tree/etc/eks/nodeadm.d/5$n-spec.yaml"
done
head_of drop-in | while read -r unit line; do
        mkdir -p "$tree/etc/systemd/system/$unit.d" && printf '%s\n' "$line" >>"$tree/etc/systemd/system/$unit.d/test.conf"
done
for word in $(head_of tree); do
        "tree_$word" && continue
        [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] || fails "no $word here"
        printf '1..0 # SKIP %s: no %s here\n' "$name" "$word"
        exit
done
sign_user_data() {                      # TRUSTED IMDS: both ends made here
        local identity=$2/dynamic/instance-identity; mkdir -p "$1"
        openssl genpkey -algorithm ed25519 -out "$W/key.pem" && openssl pkey -in "$W/key.pem" -pubout -out "$1/boot.pub" || return
        openssl req -x509 -newkey rsa:2048 -nodes -keyout "$W/aws.key" -out "$1/aws.pem" -subj /CN=ec2 -days 9 2>/dev/null || return
        openssl smime -sign -in "$identity/document" -outform PEM -stream -nodetach -binary -md sha256 -signer "$1/aws.pem" -inkey "$W/aws.key" | sed '1d;$d' >"$identity/rsa2048"
        # shellcheck disable=SC2046 # options are words
        "$here_made" config sign -k "$W/key.pem" -c "file://$2/user-data" $(head_of signed) >"$W/signed" 2>/dev/null || return
        sed "$(head_of changed)" "$W/signed" >"$2/user-data"
}
read -r tool options <<<"$(head_of run)"; read -r imds userdata <<<"$(head_of imds)"; options+=$cards
[ -z "${CLUSTER-}" ] || options+=" -i $CLUSTER/imds"    # tests/run/cluster.sh
if [ -n "$imds" ]; then
        cp -a "$here/fixtures/$imds" "$W/imds"; ln -s latest "$W/imds/2009-04-04"       # the version that cloud-init asks for
        case $userdata in '') ;; conf/*) cp "$top/$userdata" "$W/imds/latest/user-data";; *) cp "$here/fixtures/user-data/$userdata" "$W/imds/latest/user-data";; esac
        head_of script >"$W/script"; [ ! -s "$W/script" ] || sed -i -e "/^systemctl is-active --quiet kubelet/r $W/script" "$W/imds/latest/user-data"
        while read -r path value; do printf %s "$value" | install -D /dev/stdin "$W/imds/latest/meta-data/$path"; done < <(head_of metadata)
        [ -z "$type" ] || "$here/fakes/imds.sh" "$W/imds" "$type"
        [ -z "$(head_of signed)" ] || sign_user_data "$tree/etc/nodestrap/trusted.d" "$W/imds/latest" || fails "the user data cannot be signed"
        options+=" -i $W/imds"
fi
# shellcheck disable=SC2086,SC2046 # options and variables are words
env $(head_of environment) NODESTRAP_TEST_APPEND="${NODESTRAP_TEST_APPEND-} $(head_of kernel)" "$here/tools/$tool" $options -o "$out" -p "$tree" "$script" >"$W/stdout" 2>"$W/stderr"; rc=$?
[ -z "${CLUSTER-}" ] || cp -a "$CLUSTER/log" "$out/cluster"
[ -z "${KEEP-}" ] || { mkdir -p "$KEEP/$name" && cp -a "$out/." "$KEEP/$name/"; }

reason=$(sed -n 's/.*skip: //p' "$W/stderr" | tail -1)
if [ $rc = 77 ] && [ -n "$reason" ]; then echo "1..0 # SKIP $name: $reason"; exit 0; fi
report=$(grep -E '^(ok|not ok|#|1\.\.)' "$out/stdout" 2>/dev/null)
planned=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' <<<"$report" | tail -1) bad=0
[ $rc = 0 ] || bad=1
if [ -z "$planned" ]; then
        planned=$(grep -cE '^(not )?ok ' <<<"$report"); bad=1
        planned=$((planned + 1)); report+=$'\n'"not ok $planned - $name: the guest gave no full report (exit $rc)"$'\n'$(tail -20 "$W/stderr" | sed 's/^/# /')
elif [ $rc != 0 ] && ! grep -q '^not ok' <<<"$report"; then
        planned=$((planned + 1)) report+=$'\n'"not ok $planned - $name: exit $rc"$'\n'$(tail -20 "$W/stderr" | sed 's/^/# /')
fi
grep -v '^1\.\.' <<<"$report"
while read -r regex; do
        planned=$((planned + 1))
        if cat "$out"/console* | tr -d '\r' | grep -qE -- "$regex"; then echo "ok $planned - the console shows $regex"
        else bad=1; echo "not ok $planned - the console shows $regex"; cat "$out"/console* | tr -d '\r' | tail -15 | sed 's/^/# /'; fi
done < <(head_of console)
while read -r regex; do
        planned=$((planned + 1))
        if ! cat "$out"/console* | tr -d '\r' | grep -E -- "$regex" >"$W/shown"; then echo "ok $planned - the console does not show $regex"
        else bad=1; echo "not ok $planned - the console does not show $regex"; sed 's/^/# /' "$W/shown"; fi
done < <(head_of console-lacks)
if [[ " $options " = *" -e "* ]]; then
        planned=$((planned + 1))
        if [ "$(cat "$out/ebs" 2>&1)" = untouched ]; then echo "ok $planned - nobody wrote to the EBS volume"
        else bad=1; echo "not ok $planned - nobody wrote to the EBS volume"; sed 's/^/# /' "$out/ebs"; fi
fi
echo "1..$planned"
[ "$bad" = 0 ] || { k=$(mktemp -d "${NODESTRAP_TEST_CACHE:-/var/cache/nodestrap-test}/failed.XXXXXX") && cp -a "$out/." "$k/" && echo "# results kept in $k"; }
exit "$bad"
