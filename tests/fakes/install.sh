#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fakes/install.sh TREE FIXTURE [WORD…]
# Puts the fakes and a machine into a tree that is unpacked over a guest before it boots. Words:
#   gen1 gen2      the AMI's generation (EKSAMI at 81fec2e; its later revisions); without either nothing loads the driver and no unit of NVIDIA's is enabled
#   gen3           those of autumn 2026: programs, libraries and units of the driver come at boot, all units lie in /etc/systemd/system,
#                  fabric manager has a condition and retries, the toolkit writes the CDI file by itself
#   prebuilt       with gen3: the modules are in the list of modules from the start, the libraries are not there
#   gridd          the licence daemon of the GRID driver: its installer enables it on the image of the first generation; with gen3 its
#                  unit comes with the driver and no script enables it (EKSAMI setup-nvidia.sh)
#   neuron         EKS's image for Trainium and Inferentia: its driver is in the list of modules, and a unit puts another one in its place
#                  on inf1 (awslabs/amazon-eks-ami#2579)
#   no-drop-ins    ours are missing, as with the program alone in place of nodeadm
#   imex           the IMEX unit is enabled, as some packages ship it
#   dcgm           DCGM's daemon is installed and enabled, as where hosts are monitored
#   monitor        the same daemon in a unit of the user with an unknown name
#   umad           /etc/modules-load.d/ib-umad.conf, as EKS's AMI has it
#   many           for tests that power on many machines in one guest (tests/boot/lib/gpu.sh): all fixtures, a containerd that starts in
#                  no time, the first generation's units, none of them enabled
#   tuning-wrong   kernel settings that cost GPUs time (tests/fixtures/tuning-wrong.txt)
#   no-vpd         no PCI function shows vital product data (NVIDIA/gpu-driver-container#606)
#   NAME=VALUE     /etc/fakes/NAME
#   -NAME          without that program: -nvidia-ctk, -ibstat
set -eu; here=$(dirname "$(realpath "$0")"); tree=$1 fixture=$2; shift 2
U=$tree/usr/lib/systemd/system S=$tree/etc/systemd/system
enable() { mkdir -p "$S/$2.wants"; ln -sf "/usr/lib/systemd/system/$1" "$S/$2.wants/$1"; }
enable_etc() { mkdir -p "$S/multi-user.target.wants"; ln -sf "../$1" "$S/multi-user.target.wants/$2"; }

mkdir -p "$tree/vmtest/machine" "$tree"/etc/{fakes,nvidia-imex,modprobe.d,eks/nvidia} "$tree/usr/lib/fakes" "$U" "$S/containerd.service.d"
"$here/../fixtures/expand.sh" "$fixture" "$tree/vmtest/machine"
install -D -t "$tree/usr/bin" "$here"/{nv-fabricmanager,nvidia-fabricmanager-start.sh,nvidia-persistenced,nvidia-imex,nvidia-imex-ctl,nvidia-smi,nvidia-ctk,nv-hostengine,kubelet}
install -D -t "$tree/usr/sbin" "$here"/{modprobe,ibstat}; cp "$here/modprobe" "$tree/usr/sbin/rmmod"
install -D -t "$tree/opt/nvidia/nvlsm/sbin" "$here/nvlsm"
install -m 644 -t "$tree/usr/lib/fakes" "$here"/{lib.sh,gpus.py}; install -t "$tree/usr/lib/fakes" "$here/machine"
install -D -m 644 -t "$tree/usr/lib/x86_64-linux-gnu" "${FAKES:-$here/../../build/tests/fakes}"/lib{nvidia-ml,cuda}.so.1
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
        gen3)   O=$tree/opt/nvidia/trees/lts; mkdir -p "$O"/{units,usr/{bin,lib64,share}} "$S/nvidia-fabricmanager.service.d"
                install -m 644 -t "$S" "$here"/units/gen3/*.{service,path}; install -t "$tree/etc/eks/nvidia" "$here"/ami/{resolve-driver,setup-nvidia,usr-copy,ldcache-update}.sh
                install -t "$tree/etc/eks" "$here"/ami/{set-nvidia-clocks,nvidia-fabricmanager-condition}.sh
                install -m 644 "$here/units/gen2/condition.conf" "$S/nvidia-fabricmanager.service.d/10-condition.conf"
                install -m 644 "$here/units/gen3/retry.conf" "$S/nvidia-fabricmanager.service.d/20-retry.conf"
                mv "$U"/nvidia-{fabricmanager,persistenced}.service "$O/units/"; rm "$U/set-nvidia-clocks.service"
                mv "$U/nvidia-imex.service" "$S/"
                mv "$tree"/usr/bin/{nv-fabricmanager,nvidia-fabricmanager-start.sh,nvidia-persistenced,nvidia-imex,nvidia-imex-ctl,nvidia-smi} "$O/usr/bin/"
                mv "$tree"/usr/lib/x86_64-linux-gnu/lib{nvidia-ml,cuda}.so.1 "$O/usr/lib64/"; mv "$tree/usr/share/nvidia" "$O/usr/share/"
                for unit in nvidia-{driver-resolve,setup,ldcache-update,cdi-refresh}.service nvidia-cdi-refresh.path; do enable_etc $unit $unit; done
                for copy in bin lib64 share; do enable_etc nvidia-usr-copy@.service nvidia-usr-copy@$copy.service; done;;
        prebuilt) dep=$tree/usr/lib/modules/$(uname -r); mkdir -p "$dep"; echo kernel/drivers/video/nvidia.ko: >"$dep/modules.dep";;
        gridd)  if [ -d "$tree/opt/nvidia/trees/lts" ]; then install -m 644 -t "$O/units" "$here"/units/gridd/*.service; install -t "$O/usr/bin" "$here/nvidia-gridd"
                else install -m 644 -t "$U" "$here"/units/gridd/*.service; install -t "$tree/usr/bin" "$here/nvidia-gridd"; [[ " $* " = *" many "* ]] || enable nvidia-gridd.service multi-user.target; fi;;
        neuron) dep=$tree/usr/lib/modules/$(uname -r); mkdir -p "$dep"; echo kernel/drivers/extra/neuron.ko: >"$dep/modules.dep"
                install -m 644 -t "$S" "$here"/units/neuron/*.service; install -t "$tree/etc/eks" "$here"/ami/neuron-package-install.sh
                enable_etc neuron-package-install.service neuron-package-install.service;;
        no-drop-ins) rm "$U"/nvidia-*.service.d/10-nodestrap.conf;;
        imex)   if [ -e "$S/nvidia-imex.service" ]; then enable_etc nvidia-imex.service nvidia-imex.service; else enable nvidia-imex.service multi-user.target; fi;;
        dcgm)   enable nvidia-dcgm.service multi-user.target;;
        tuning-wrong) "$here/../fixtures/expand.sh" "$word" "$tree/vmtest/machine";;
        no-vpd) rm "$tree"/vmtest/machine/sys/bus/pci/devices/*/vpd;;
        monitor) cp "$here/units/nvidia-dcgm.service" "$U/monitor.service"; enable monitor.service multi-user.target;;
        umad)   echo ib_umad >"$tree/etc/modules-load.d/ib-umad.conf";;
        *=*)    printf '%s\n' "${word#*=}" >"$tree/etc/fakes/${word%%=*}";;
        many)   mkdir -p "$tree/vmtest/fixtures"; cp "$here"/../fixtures/{expand.sh,*.txt} "$here/imds.sh" "$tree/vmtest/fixtures/"
                install -m 644 -t "$U" "$here"/units/gen1/*.service; install -t "$tree/etc/eks" "$here"/ami/{nvidia-kmod-load,set-nvidia-clocks}.sh
                printf '[Unit]\nDescription=Stub of containerd\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n' >"$S/containerd.service"
                mkdir -p "$tree/etc/eks"; echo 2.1.5 >"$tree/etc/eks/containerd-version.txt"
                printf '#!/bin/sh\n' | install -D /dev/stdin "$tree/usr/bin/ctr";;   # the real one waits 10 s for a containerd that is none
        -*)     find "$tree/usr/bin" "$tree/usr/sbin" "$tree/opt" -name "${word#-}" -delete;;
        *)      echo "$0: no word $word" >&2; exit 1;;
esac; done
