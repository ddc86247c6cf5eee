# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Sourced by the fakes of this folder. In a guest they stand in for NVIDIA programs, the module loader and the AMI scripts of a GPU node.
# Each behaves as its original where the order of a boot depends on it, and names the report or document for that. The documents are
#   FMUG    https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
#   MIGUG   https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
#   IMEXG   https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/
#   EKSAMI  awslabs/amazon-eks-ami:templates/al2023/runtime/gpu/
#   OGKM    NVIDIA/open-gpu-kernel-modules
#   NVMODPROBE  NVIDIA/nvidia-modprobe
#   NCT     NVIDIA/nvidia-container-toolkit
# They share:
#   /etc/fakes/NAME      what a test wants to be different: script NAME [DEFAULT] prints its content
#   /run/fakes/events    one line for each thing that happened, in order; a test reads the order of a boot from it
#   /etc/fake-nvml       what the management library answers (libnvidia-ml.c): nvml_script writes it, with the lines of /etc/fakes/nvml
#   /etc/fake-cuda       what the driver API of CUDA does (libcuda.c): cuda_script writes it, with the lines of /etc/fakes/cuda
FAKES=/run/fakes; mkdir -p $FAKES
NVML_STATE=/var/lib/fake-nvml.state     # it outlasts a reboot as far as GPUs remember (MIGUG)

script() { cat "/etc/fakes/$1" 2>/dev/null || printf '%s' "${2-}"; }
scripted() { [ -e "/etc/fakes/$1" ]; }
event() { echo "$*" >>$FAKES/events; }
die() { echo "${0##*/}: $*" >&2; exit 1; }
loaded() { [ -e "/sys/module/$1" ]; }
# Seconds of the original, scaled down: a test has no 30 s. script speed: how many of them one second stands for.
pause() { sleep "$(awk -v s="$1" -v speed="$(script speed 60)" 'BEGIN { print s / speed }')"; }

# As long as this process lives, the GPUs are in use by another client, whose MIG mode cannot be set then (MIGUG).
holds_gpus() { exec 9<>/dev/nvidia-held; flock -s 9; [ "${1:-0}" = 0 ] || pause "$1"; }
# Daemons of the driver hold them: persistenced (NVIDIA/gpu-operator#118), fabric manager (nvidia-smi names it), nvidia_drm
# (NVIDIA/mig-parted#181). Then a reset fails, and a MIG mode that needs one does not become active.
attaches_to_gpus() { exec 9<>/dev/nvidia-attached; flock -s 9; }
daemon() {                              # daemon NAME SECONDS: a process of that name in the background, $!
        ln -sf "$(command -v sleep)" "$FAKES/$1"; setsid "$FAKES/$1" "$2" >/dev/null 2>&1 </dev/null &
}
modules_dep() { echo "/lib/modules/$(uname -r)/modules.dep"; }
depmod_runs() {                         # a new file beside the old one, renamed over it: two files, and a watcher sees each
        local f dep; dep=$(modules_dep); mkdir -p "${dep%/*}"
        for f in "$dep" "$dep.bin"; do echo "kernel/drivers/video/nvidia.ko:" >"$f.tmp"; mv "$f.tmp" "$f"; done
        event depmod
}

# devices VENDOR CLASS-PREFIX: addresses of PCI functions, e.g. devices 10DE 302
devices() { grep -lsE "^PCI_ID=$1(:|$)" /sys/bus/pci/devices/*/uevent | xargs -r grep -l "^PCI_CLASS=$2" | cut -d/ -f6; }
gpus() { devices 10DE 30; }
part() { grep -qhE '^PCI_SUBSYS_ID=10DE:173[357]' /sys/bus/pci/devices/*/uevent; }     # EKSAMI nvidia-kmod-load.sh: a part of an L4
neurons() { devices '1D0F:7[0-9A-F]6[4-7]' 880; }        # aws-neuron/aws-neuron-driver:neuron_device.h
tray() { grep -qhE 'PCI_ID=10DE:(2941|31C2|31C3)' /sys/bus/pci/devices/*/uevent; }     # EKSAMI nvidia-fabricmanager-condition.sh: the switches are the rack's
# Ports of ConnectX functions, each a subnet manager's to choose (siderolabs/extensions#893): by the capability mask, whose bit 10 says IsSMDisabled.
SM_DISABLED=0x400
sm_disabled() { [ $(($(cat "$1/ports/1/cap_mask") & SM_DISABLED)) != 0 ]; }
port_guid() { printf '0x%016x' $((0x9c63c00300 + ${1##*[!0-9]})); }
driver_version() { cat /sys/module/nvidia/version 2>/dev/null; }

# ---- device nodes (NVMODPROBE modprobe-utils/nvidia-modprobe-utils.c) ----
node() { [ -c "/dev/$1" ] || { mkdir -p "$(dirname "/dev/$1")"; mknod -m "${4:-666}" "/dev/$1" c "$2" "$3"; }; }      # node NAME MAJOR MINOR [MODE]
major_of() { awk -v name="$1" '/^Block/ { exit } $2 == name { print $1; exit }' /proc/devices; }
gpu_minor() { awk '/^Device Minor/ { print $3 }' "/proc/driver/nvidia/gpus/$1/information"; }
# The nodes that a driver program makes when it first uses the GPUs: its own, and never those of nvidia_uvm.
driver_nodes() {
        local address; loaded nvidia || return 0; node nvidiactl 195 255
        for address in /proc/driver/nvidia/gpus/*; do address=${address##*/}; node "nvidia$(gpu_minor "$address")" 195 "$(gpu_minor "$address")"; done
}
# The minor of the capability of an instance, as in /proc/driver/nvidia-caps/mig-minors: cap_minor GPU INSTANCE. Its first compute instance
# has the next.
cap_minor() { echo $((3 + $1 * 135 + $2 * 9)); }
cap_nodes() {                           # of every MIG device; they exist only after a request (NVIDIA/mig-parted#82)
        local name address instance minor
        python3 /usr/lib/fakes/gpus.py names | while read -r name address _ instance; do
                [[ $name = *:* ]] || continue
                minor=$(cap_minor "$(gpu_minor "$address")" "$instance")
                node "nvidia-caps/nvidia-cap$minor" "$(major_of nvidia-caps)" "$minor" 444; node "nvidia-caps/nvidia-cap$((minor + 1))" "$(major_of nvidia-caps)" $((minor + 1)) 444
        done
}

# ---- the management library ----
# What it says on this machine: nothing before the driver (9: not loaded); then GPUs as they lie on the bus. They join the fabric in the
# time of script fabric-takes. It begins when fabric manager has configured the fabric (FMUG), or, on a tray, with the first question.
nvml_script() {
        local address model takes; takes=$(awk -v s="$(script fabric-takes 30)" -v speed="$(script speed 60)" 'BEGIN { print s / speed }')
        echo "state $NVML_STATE"; echo "held-by /dev/nvidia-held"
        printf 'attached %s\n' /dev/nvidia-attached /sys/module/nvidia_drm /sys/module/nvidia_modeset
        case $(cat /sys/bus/pci/devices/*/uevent 2>/dev/null | grep -oE 'PCI_ID=10DE:(20B[025]|23..|29..|318.|31C.|1EB8|2BB5|2C3A)' | head -1) in
        *20B0) model=a100-40;; *20B[25]) model=a100-80;; *2330) model=h100;; *2335) model=h200;; *2901) model=b200;; *3182) model=b300;;
        *2941) model=gb200;; *31C?) model=gb300;; *1EB8) model=t4;; *2BB5|*2C3A) model=rtx-pro-6000;; *) model=l4;;
        esac
        echo "model $model"
        case $model in b?00|gb?00) echo "clocks deprecated";; esac      # from R580 on, on Blackwell (nvml.h: NVML_ERROR_DEPRECATED)
        for address in $(gpus); do [[ " $(script unbound) " = *" $address "* ]] || echo "gpu $address"; done
        case $model in
        gb*)    echo "cluster 7b968a6dc8aa45e19e07e1e51be99c31 1"; echo "fabric all in-progress for ${takes}s then completed";;
        a100*)  [ -z "$(devices 10DE 680)" ] || echo "links-need $FAKES/fabric";;       # fabric manager trains them (FMUG)
        h*|b*)  if [ -n "$(devices 10DE 680)$(devices 15B3 '')" ]; then echo "fabric-needs $FAKES/fabric"; echo "fabric all in-progress for ${takes}s then completed"
                else echo "fabric all not-supported"; echo "links all all"; fi;;
        esac
        # A part of a GPU (EKSAMI nvidia-kmod-load.sh): NVIDIA/go-nvml:gen/nvml/nvml.h; clocks are the host's (docs.nvidia.com/vgpu, vGPU guest: not supported)
        ! part || printf 'clocks none\nauto-boost none\nlicense Workstation %s\n' $FAKES/license
        loaded nvidia || echo "error nvmlInit 9"
        script nvml
}
# CUDA has the same GPUs, with little memory. It finds none without the driver, and does not start without nvidia_uvm (gorgonia/cu#2).
cuda_script() {
        nvml_script | grep -E '^(model|gpu) '
        printf '%s\n' 'memory all 256' 'sms 2' 'needs /dev/nvidia-uvm'
        loaded nvidia || echo "error cuInit 100"
        script cuda
}
nvml_changed() {
        nvml_script >/etc/fake-nvml.new; mv /etc/fake-nvml.new /etc/fake-nvml
        cuda_script >/etc/fake-cuda.new; mv /etc/fake-cuda.new /etc/fake-cuda
}
fabric_registers_after() { local event; for event; do until grep -qE "^$event" $FAKES/events; do sleep 0.05; done; done; : >$FAKES/fabric; }
# script fabric-waits: not before all of these events, with commas between them
fabric_registers() { if scripted fabric-waits; then script fabric-waits | tr , '\n' | { mapfile -t events; fabric_registers_after "${events[@]}"; } & else : >$FAKES/fabric; fi; }
gpu_states() { python3 /usr/lib/fakes/gpus.py; }        # ADDRESS FABRIC MIG INSTANCES, one line a GPU
# The MIG state of the driver as one word: nodes of capabilities belong to one state (NVIDIA/mig-parted#82).
mig_state() { gpu_states | awk '{ print $1, $3, $4 }' | sha256sum | cut -c1-16; }
neuron_nodes() { find /dev -maxdepth 1 -name 'neuron[0-9]*' | wc -l; }
seen_by_plugin() {
        local all; [ -z "$(neurons)" ] || { echo "gpus=0 neuron=$(neuron_nodes)"; return; }
        [ -n "$(gpus)" ] || { echo "gpus=0"; return; }
        all=$(gpu_states 2>&1) || { echo "gpus=? ${all##*: }"; return; }
        [ -n "$all" ] || { echo "gpus=0"; return; }
        printf 'gpus=%s fabric=%s instances=%s cdi=%s%s\n' "$(wc -l <<<"$all")" "$(awk '{ print $2 }' <<<"$all" | sort -u | paste -sd,)" \
                "$(awk '{ n += $4 } END { print n }' <<<"$all")" "$(cdi_state)" "$(license_state)"
}
license_state() { ! part || { [ -e $FAKES/license ] && echo ' licensed' || echo ' unlicensed'; }; }
cdi_state() {                           # none; yes; stale: made for another division of the GPUs; without-uvm: containers in which CUDA finds no device
        [ -e /run/cdi/nvidia.yaml ] || { echo none; return; }
        grep -q 'path: /dev/nvidia-uvm$' /run/cdi/nvidia.yaml || { echo without-uvm; return; }
        if [ "$(cat /run/fakes/cdi.state)" = "$(mig_state)" ]; then echo yes; else echo stale; fi
}
