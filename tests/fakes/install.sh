#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fakes/install.sh TREE FIXTURE [WORD…]
# Puts the fakes and a machine into a tree that is unpacked over a guest before it boots. Words:
#   gen1 gen2      the AMI's generation (EKSAMI at 81fec2e; its later revisions); without either nothing loads the driver and no unit of NVIDIA's is enabled
#   imex           the IMEX unit is enabled, as some packages ship it
#   umad           /etc/modules-load.d/ib-umad.conf, as EKS's AMI has it
#   many           for tests that power on many machines in one guest (tests/boot/lib/gpu.sh): all fixtures, a containerd that starts in
#                  no time, the first generation's units, none of them enabled
#   NAME=VALUE     /etc/fakes/NAME
#   -NAME          without that program: -nvidia-ctk, -ibstat
set -eu; here=$(dirname "$(realpath "$0")"); tree=$1 fixture=$2; shift 2
U=$tree/usr/lib/systemd/system S=$tree/etc/systemd/system
enable() { mkdir -p "$S/$2.wants"; ln -sf "/usr/lib/systemd/system/$1" "$S/$2.wants/$1"; }

mkdir -p "$tree/vmtest/machine" "$tree"/etc/{fakes,nvidia-imex,modprobe.d,eks/nvidia} "$tree/usr/lib/fakes" "$U" "$S/containerd.service.d"
"$here/../fixtures/expand.sh" "$fixture" "$tree/vmtest/machine"
install -D -t "$tree/usr/bin" "$here"/{nv-fabricmanager,nvidia-fabricmanager-start.sh,nvidia-persistenced,nvidia-imex,nvidia-imex-ctl,nvidia-smi,nvidia-ctk,kubelet}
install -D -t "$tree/usr/sbin" "$here"/{modprobe,ibstat}
install -D -t "$tree/opt/nvidia/nvlsm/sbin" "$here/nvlsm"
install -m 644 -t "$tree/usr/lib/fakes" "$here"/{lib.sh,gpus.py}; install -t "$tree/usr/lib/fakes" "$here/machine"
install -D -m 644 -t "$tree/usr/lib/x86_64-linux-gnu" "${FAKES:-$here/../../build/tests/fakes}/libnvidia-ml.so.1"
install -m 644 -t "$U" "$here"/units/*.service
printf 'DAEMONIZE=1\n' | install -D -m 644 /dev/stdin "$tree/usr/share/nvidia/nvswitch/fabricmanager.cfg"
printf 'daemon false\n' | install -D -m 644 /dev/stdin "$tree/usr/share/nvidia/nvlsm/nvlsm.conf"
printf '[Unit]\nDescription=The fake machine is powered on\nDefaultDependencies=no\nBefore=sysinit.target nodestrap-config.service nvidia-driver-resolve.service systemd-modules-load.service\nAfter=local-fs-pre.target vmfakes.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/lib/fakes/machine up /vmtest/machine\n' >"$U/fake-machine.service"
enable fake-machine.service sysinit.target
printf '[Service]\nExecStartPre=/bin/bash -c ". /usr/lib/fakes/lib.sh; event containerd"\n' >"$S/containerd.service.d/event.conf"
runtime=usr/bin/nvidia-container-runtime
[ ! -e "$tree/vmtest/machine/$runtime" ] || install -D -t "$tree/usr/bin" "$tree/vmtest/machine/$runtime"

for word; do case $word in
        gen1)   install -m 644 -t "$U" "$here"/units/gen1/*.service; install -t "$tree/etc/eks" "$here"/ami/{nvidia-kmod-load,set-nvidia-clocks}.sh
                for unit in nvidia-kmod-load nvidia-persistenced nvidia-fabricmanager set-nvidia-clocks; do enable $unit.service multi-user.target; done;;
        gen2)   install -m 644 -t "$U" "$here"/units/gen2/*.service; install -t "$tree/etc/eks/nvidia" "$here"/ami/{resolve-driver,setup-nvidia}.sh
                install -t "$tree/etc/eks" "$here"/ami/{set-nvidia-clocks,nvidia-fabricmanager-condition}.sh
                install -D -m 644 "$here/units/gen2/condition.conf" "$U/nvidia-fabricmanager.service.d/10-condition.conf"
                for unit in nvidia-driver-resolve nvidia-setup; do enable $unit.service multi-user.target; done;;
        imex)   enable nvidia-imex.service multi-user.target;;
        umad)   echo ib_umad >"$tree/etc/modules-load.d/ib-umad.conf";;
        *=*)    printf '%s\n' "${word#*=}" >"$tree/etc/fakes/${word%%=*}";;
        many)   mkdir -p "$tree/vmtest/fixtures"; cp "$here"/../fixtures/{expand.sh,*.txt} "$here/imds.sh" "$tree/vmtest/fixtures/"
                install -m 644 -t "$U" "$here"/units/gen1/*.service; install -t "$tree/etc/eks" "$here"/ami/{nvidia-kmod-load,set-nvidia-clocks}.sh
                printf '[Unit]\nDescription=Stub of containerd\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n' >"$S/containerd.service"
                mkdir -p "$tree/etc/eks"; echo 2.1.5 >"$tree/etc/eks/containerd-version.txt";;
        -*)     find "$tree/usr/bin" "$tree/usr/sbin" "$tree/opt" -name "${word#-}" -delete;;
        *)      echo "$0: no word $word" >&2; exit 1;;
esac; done
