#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled containerd_enabled kubelet_enabled stores_if_any kept_results
# A soft reboot keeps /run, and what it says of the disks: daemons that the image enables by themselves wait for them all the same.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

skipped() { is "$(journalctl -b -o cat -u "$1" | grep -c 'skipped, no trigger condition')" "$2"; }
check() { # WORDS SKIPPED
        try "$1the run phase is active" active nodestrap-run
        try "$1containerd is active" active containerd
        try "$1kubelet is active" active kubelet
        for unit in containerd kubelet; do
                try "$1$unit was too early by itself" skipped $unit "$2"
        done
        try "$1the run phase has said so" test -e /run/nodestrap/mounts-ready -a -e /run/nodestrap/kubelet-may-start
        try "$1no ordering cycle was broken" no_cycle
}

if [ ! -e out/first ]; then
        check '' 1 >out/first
        touch -d '1 hour ago' /run/nodeadm/init
        systemctl soft-reboot
        exec tail -f /dev/null          # until it ends this userspace
fi
cat out/first
check 'after a soft reboot: ' 2
try "the marker of the run phase is this userspace's" is "$(find /run/nodeadm/init -mmin -30)" /run/nodeadm/init
try "a second init succeeds" sh -c "nodestrap init $(sources) --config-cache /run/eks/nodeadm/config.json 2>out/second-init"
try "and changes nothing" python3 compare.py unchanged /run/nodestrap/status.json

finish
