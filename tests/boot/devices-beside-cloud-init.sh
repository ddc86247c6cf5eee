#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# gpu: p5-48xlarge gen2
# script: read -r _ </run/go
# script: systemctl is-active nodestrap-devices >/run/script-saw; systemctl is-active nodestrap-run >>/run/script-saw || :
# tree: enabled gpu watcher
# watcher: { for u in nodestrap-devices cloud-final nodestrap-run kubelet; do systemctl show -P ActiveState $u; done; ls /run/cdi/nvidia.yaml; } >/run/watched 2>&1
# watcher: cp /run/fakes/events /run/events-then; cp /run/nodestrap/status.json /run/status-then
# watcher: nodestrap status --exit-code >/run/status-waiting; echo "$?" >>/run/status-waiting
# watcher: systemd-run -q --unit follower -p User=nobody -p SupplementaryGroups=systemd-journal -p RemainAfterExit=yes -p StandardOutput=file:/run/followed nodestrap status --follow
# watcher: echo >/run/go
# console: NODESTRAP verdict=ok
# A p5.48xlarge with real cloud-init and a user script that waits for the end of the devices phase. A devices phase that waited for
# cloud-init would never end.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

then_was() { python3 -c 'import json, sys
run = json.load(open("/run/status-then"))["runs"]["devices"]
sys.exit(0 if run["verdict"] == "ok" and {"start-unit:nvidia-fabricmanager.service", "generate-cdi:/var/run/cdi/nvidia.yaml"} <= {a["id"] for a in run["actions"] if a["outcome"] == "done"} else str(run))'; }
found_all_done() { python3 -c 'import json, sys
run = json.load(open("/run/nodestrap/status.json"))["runs"]["devices,run"]
changed = [a["id"] for a in run["actions"] if a["outcome"] != "unchanged" and a["id"].split(":")[0] not in ("write-file", "start-unit", "import-image")]
sys.exit("done again: " + ", ".join(changed) if changed or len(run["actions"]) < 20 else 0)'; }

try "the devices phase ends while the user script runs, before the run phase and kubelet" is "$(paste -sd' ' /run/watched)" "active activating inactive inactive /run/cdi/nvidia.yaml"
try "fabric manager and CDI are ready while the user script runs, and kubelet is not" sh -c "grep -q fm-active /run/events-then && grep -q cdi-generated /run/events-then && ! grep kubelet /run/events-then"
try "the devices phase has the verdict ok while the user script runs" then_was
try "the user script ends after the devices phase and before the run phase" is "$(paste -sd' ' /run/script-saw)" "active inactive"
try "the devices phase ends before cloud-init, by the clock of systemd" before "$(property nodestrap-devices ExecMainExitTimestampMonotonic)" "$(property cloud-final ExecMainExitTimestampMonotonic)"
try "the devices phase starts after the end of the config phase" before "$(property nodestrap-config ExecMainExitTimestampMonotonic)" "$(property nodestrap-devices ExecMainStartTimestampMonotonic)"
try "the run phase changes nothing that the devices phase has done" found_all_done
try "status has the verdict of the devices phase after the run phase" sh -c "nodestrap status --long | grep -E '^devices: ok, '"
try "status says what the boot waits for while the user script runs" sh -c "head -n 1 /run/status-waiting | grep '^waiting: ' && grep -E '^phases: .* run waiting' /run/status-waiting && tail -n 1 /run/status-waiting | grep -x 3"
follower_ended() { [ "$(property follower SubState)" != running ] || { cat /run/followed; return 1; }; }
try "status --follow of a member of systemd-journal ends with the boot" eventually follower_ended
try "status --follow exits with 0" is "$(property follower Result) $(property follower ExecMainStatus)" "success 0"
try "status --follow prints each step, then the verdict" sh -c "grep -E '^ *[0-9.]+ m?s  devices,run +begun' /run/followed && grep -E '  devices,run +(done|unchanged) +start-unit:kubelet.service' /run/followed && grep '^ok: ' /run/followed || { cat /run/followed; false; }"
try "the verdict has an entry in the journal" sh -c "journalctl -b -o json NODESTRAP_PHASES=devices OBJECT_SYSTEMD_UNIT=nodeadm-run.service | grep -q NODESTRAP_VERDICT"
check_cloud_init
check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
try "fabric manager was started once" once fm-

finish
