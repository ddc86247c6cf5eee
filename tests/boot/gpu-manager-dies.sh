#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: p5-48xlarge many
# tree: gpu
# console: nodestrap: failed \(33 EFABRICMANAGER\) at check-unit:nvidia-fabricmanager.service: .* has died since it started
# Fabric manager has ended before kubelet may start, with each type of unit. kubelet does not start, and nodestrap reports its last words,
# but not on the console. CUDA would fail on GPUs that look well (Azure/AgentBaker#1269).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

# With these words for power_on fabric manager dies after all steps of nodestrap but the last.
LATE="fm-leaves=cdi-begins ctk-waits=fm-died"
unit_is() { mkdir -p /run/systemd/system/nvidia-fabricmanager.service.d; printf '%b' "$1" >/run/systemd/system/nvidia-fabricmanager.service.d/test.conf; systemctl daemon-reload; }
FOREGROUND='[Service]\nType=simple\nPIDFile=\nRemainAfterExit=yes\n'      # as in bottlerocket-os/bottlerocket-kernel-kit
state() { echo "$(property nvidia-fabricmanager ActiveState) $(property nvidia-fabricmanager SubState)"; }
said='.*journalctl -u nvidia-fabricmanager.service and /var/log/fabricmanager.log$'

# shellcheck disable=SC2086 # words
power_on p5-48xlarge $LATE
fails 33 EFABRICMANAGER "nvidia-fabricmanager.service has died since it started: (its process exited with status 0|its processes are gone); $said" "a fabric manager that forks and exits with 0"
try "the error has the last message of fabric manager" says "^detected a fatal NVSwitch error"
try "the journal entry of the failure lacks that message" no in_journal 'nodestrap: .*detected a fatal NVSwitch error'
try "the unit of the dead fabric manager is inactive" is "$(state)" "inactive dead"
rm /etc/fakes/fm-leaves /etc/fakes/ctk-waits
try "the next run succeeds without the fault" systemctl restart nodestrap-run
try "kubelet sees a complete fabric" kubelet_saw 'gpus=8 fabric=completed'

# shellcheck disable=SC2086
power_on p5-48xlarge $LATE fm-leaves-status=7
fails 33 EFABRICMANAGER "has died since it started: its process exited with status 7; $said" "a fabric manager that forks and exits with 7"
power_on p5-48xlarge fm-leaves=yes ctk-waits=fm-died
fails 33 EFABRICMANAGER "has died since it started: (its process exited with status 0|its processes are gone); $said" "a fabric manager that dies at once"

power_on p5-48xlarge fm-foreground=yes; unit_is "$FOREGROUND"
try "the node comes up if a fabric manager in the foreground lives" node_starts
# shellcheck disable=SC2086
power_on p5-48xlarge $LATE fm-foreground=yes; unit_is "$FOREGROUND"
fails 33 EFABRICMANAGER "has died since it started: its process exited with status 0; $said" "a fabric manager in the foreground whose unit stays active when it ends"
try "the unit of the foreground fabric manager stays active after its end" is "$(state)" "active exited"

power_on p4d-24xlarge fm-foreground=yes; unit_is "$FOREGROUND"; spec '{accelerator: {nvidia: {health: require}}}'
try "the node comes up with A100 and a fabric manager in the foreground" node_starts

power_on p5-48xlarge; unit_is '[Service]\nType=oneshot\nPIDFile=\nRemainAfterExit=yes\n'
try "the node comes up if the fabric manager of a oneshot unit lives" node_starts
try "the oneshot unit of fabric manager is active after its command" is "$(state)" "active exited"
# shellcheck disable=SC2086
power_on p5-48xlarge $LATE; unit_is '[Service]\nType=oneshot\nPIDFile=\nRemainAfterExit=yes\n'
fails 33 EFABRICMANAGER "has died since it started: its process exited with status 0; $said" "a fabric manager that a oneshot unit has started"

# shellcheck disable=SC2086
power_on p5-48xlarge $LATE; unit_is '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=200ms\n'
# On a slow machine the check runs between an end and the next start. Otherwise it waits in vain for fabric manager to stay up.
fails 33 EFABRICMANAGER "nvidia-fabricmanager.service has died since it started: .*systemd restarted it [0-9]+ times?" "a fabric manager that systemd restarts again and again"
power_on p5-48xlarge fm-fails-once=yes; unit_is '[Service]\nRestart=on-failure\nRestartSec=200ms\n'
try "the node comes up if systemd restarts fabric manager at the beginning" node_starts

power_on p6-b200 nvlsm-leaves=cdi-begins ctk-waits=nvlsm-died
fails 33 EFABRICMANAGER 'NVLSM has died since nvidia-fabricmanager.service started it' "a subnet manager that dies"
power_on p6-b200
try "the node comes up if the subnet manager stays up" node_starts

finish
