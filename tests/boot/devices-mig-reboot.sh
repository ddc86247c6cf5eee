#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# gpu: p4d-24xlarge gen1 reset-fails=unsupported
# spec: {accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.5gb: 7}}]}}}
# script: echo begun >>/var/lib/script; read -r _ </run/go
# script: echo ended >>/var/lib/script
# tree: enabled gpu watcher
# watcher: [ -e /var/lib/watched ] || { { grep -c begun /var/lib/script; systemctl show -P ActiveState nodestrap-devices; systemctl list-jobs reboot.target --no-legend | grep -c reboot; } >/var/lib/watched; echo >/run/go; }
# console: set-mig-mode:mig: MIG mode of all 8 GPUs takes effect .*this machine reboots now, once
# console: NODESTRAP verdict=ok
# Dividing the A100 of this p4d.24xlarge takes a reboot. It waits for the user script: cloud-init notes that scripts have run before it runs
# them, and would not run this one again.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

try "the devices phase ends while the script runs, and requests no reboot" is "$(paste -sd' ' /var/lib/watched)" "1 failed 0"
try "the script ran once, to its end" is "$(paste -sd' ' /var/lib/script)" "begun ended"
try "the machine was started twice" is "$(grep -c ^power-on /var/lib/power-on)" 2
check_gpu_node fm-active 'cdi-generated devices=56' 'kubelet gpus=8 fabric=not-supported instances=56 cdi=yes'

finish
