#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -S bookworm -d 0 -a cloud-init -t 600
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# tree: enabled networkd
# console: NODESTRAP verdict=ok
# From power-on, with bookworm's kernel, systemd, cloud-init and containerd, over a network that networkd brings up; then a reboot.
[ -d /vmtest ] || exec "$(dirname "$0")/../run-boot.sh" "$0"
. /vmtest/guest.sh

case $VMTEST_BOOT in
1) check_node
   check_cloud_init
   plan >/vmtest/out/plan.1
   systemctl reboot
   exit;;
esac
# The second boot: the same machine, the same input.
try "after a reboot: the first phase succeeded" exited nodestrap-config 0
try "after a reboot: nodestrap-run.service is active" active nodestrap-run
try "after a reboot: kubelet is active" active kubelet
try "after a reboot: kubelet was started once" starts 1
try "after a reboot: the plan is the same" sh -c "nodestrap plan $(sources) --output json | cmp - out/plan.1"
try "after a reboot: kubelet got exactly the planned flags" python3 compare.py kubelet out/plan.1 /run/recording-kubelet/argv
try "after a reboot: no ordering cycle was broken" no_cycle

finish
