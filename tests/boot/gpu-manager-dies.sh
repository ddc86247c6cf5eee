#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: p5-48xlarge many
# tree: gpu
# console: nodestrap: failed \(33 EFABRICMANAGER\) at check-unit:nvidia-fabricmanager.service: .* has died since its start
# Fabric manager has ended before kubelet may start, with each type of unit. kubelet does not start, and nodestrap reports its last words,
# but not on the console. CUDA would fail on GPUs that look well (Azure/AgentBaker#1269).
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

# power_on's words with which it dies behind all of our steps but the last.
LATE="fm-leaves=cdi-begins ctk-waits=fm-died"
unit_is() { mkdir -p /run/systemd/system/nvidia-fabricmanager.service.d; printf '%b' "$1" >/run/systemd/system/nvidia-fabricmanager.service.d/test.conf; systemctl daemon-reload; }
FOREGROUND='[Service]\nType=simple\nPIDFile=\nRemainAfterExit=yes\n'      # as in bottlerocket-os/bottlerocket-kernel-kit
state() { echo "$(property nvidia-fabricmanager ActiveState) $(property nvidia-fabricmanager SubState)"; }
said='.*journalctl -u nvidia-fabricmanager.service and /var/log/fabricmanager.log$'

# shellcheck disable=SC2086 # words
power_on p5-48xlarge $LATE
fails 33 EFABRICMANAGER "nvidia-fabricmanager.service has died since its start: (its process exited with status 0|its processes are gone); $said" "one that forked and ended well"
try "the error has the last message of fabric manager" says "^detected a fatal NVSwitch error"
try "the journal entry of the failure lacks that message" no in_journal 'nodestrap: .*detected a fatal NVSwitch error'
try "fabric manager is dead" is "$(state)" "inactive dead"
rm /etc/fakes/fm-leaves /etc/fakes/ctk-waits
try "the next run starts it again" systemctl restart nodestrap-run
try "kubelet sees a complete fabric" kubelet_saw 'gpus=8 fabric=completed'

# shellcheck disable=SC2086
power_on p5-48xlarge $LATE fm-leaves-status=7
fails 33 EFABRICMANAGER "has died since its start: its process exited with status 7; $said" "one that forked and failed"
power_on p5-48xlarge fm-leaves=yes ctk-waits=fm-died
fails 33 EFABRICMANAGER "has died since its start: (its process exited with status 0|its processes are gone); $said" "one that dies at once"

power_on p5-48xlarge fm-foreground=yes; unit_is "$FOREGROUND"
try "one in the foreground that stays active when it ends: the node comes up while it lives" node_starts
# shellcheck disable=SC2086
power_on p5-48xlarge $LATE fm-foreground=yes; unit_is "$FOREGROUND"
fails 33 EFABRICMANAGER "has died since its start: its process exited with status 0; $said" "one in the foreground that stays active when it ends"
try "fabric manager is active, without a process" is "$(state)" "active exited"

power_on p4d-24xlarge fm-foreground=yes; unit_is "$FOREGROUND"; spec '{accelerator: {nvidia: {health: require}}}'
try "A100, of which nothing tells when its links are trained: the node comes up" node_starts

power_on p5-48xlarge; unit_is '[Service]\nType=oneshot\nPIDFile=\nRemainAfterExit=yes\n'
try "the child of a oneshot: the node comes up while it lives" node_starts
try "fabric manager stays active, without a process" is "$(state)" "active exited"
# shellcheck disable=SC2086
power_on p5-48xlarge $LATE; unit_is '[Service]\nType=oneshot\nPIDFile=\nRemainAfterExit=yes\n'
fails 33 EFABRICMANAGER "has died since its start: its process exited with status 0; $said" "the child of a oneshot"

# shellcheck disable=SC2086
power_on p5-48xlarge $LATE; unit_is '[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=200ms\n'
# A slow machine looks between an end and the next start; else the check waits for it to stay up, in vain.
fails 33 EFABRICMANAGER "nvidia-fabricmanager.service has died since its start: .*systemd restarted it [0-9]+ times?" "one that systemd restarts again and again"
power_on p5-48xlarge fm-fails-once=yes; unit_is '[Service]\nRestart=on-failure\nRestartSec=200ms\n'
try "one that systemd had to restart at the beginning: the node comes up" node_starts

power_on p6-b200 nvlsm-leaves=cdi-begins ctk-waits=nvlsm-died
fails 33 EFABRICMANAGER 'NVLSM has died since nvidia-fabricmanager.service started it' "a subnet manager that dies"
power_on p6-b200
try "the node comes up if fabric manager stays up" node_starts

finish
