#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2 fabric-takes=100000
# spec: {accelerator: {nvidia: {fabric: {timeout: 40s}}}}
# tree: enabled gpu
# console: NODESTRAP verdict=failed code=EFABRIC step=await-fabric:fabric
# If the fabric never completes, the boot waits only once. The devices phase waits for it; the run phase looks again and reports
# the whole wait.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

# waited RUN : how long, in whole seconds
waited() { python3 -c 'import json, sys
a = next(a for a in json.load(open("/run/nodestrap/status.json"))["runs"][sys.argv[1]]["actions"] if a["id"] == "await-fabric:fabric")
print((a["endUsec"] - a["beginUsec"]) // 1000000)' "$1"; }
told() { value text | sed -nE 's/.* after ([0-9]+) s.*/\1/p'; }
# The deadline of the plan, in whole seconds; a wait gives up 2 s before it.
planned() { plan | python3 -c 'import json, sys
print(next(a for a in json.load(sys.stdin)["actions"] if a["id"] == "await-fabric:fabric")["timeoutMs"] // 1000)'; }

try "both phases exit with 33" is "$(property nodestrap-devices ExecMainStatus) $(property nodestrap-run ExecMainStatus)" "33 33"
try "the verdict is EFABRIC in the devices phase" is "$(value verdict) $(value code) $(value runs devices,run phase)" "failed EFABRIC devices"
try "the plan has the deadline of the configuration" is "$(planned)" 40
try "the devices phase waits until its deadline" test "$(waited devices)" -ge $(($(planned) - 2))
try "the journal says that the run phase waits 10 s more" in_journal '^await-fabric:fabric: the devices phase waited .* for it in vain; the run phase waits 10\.0 s more$'
try "the run phase waits at least 9 s more" test "$(waited devices,run)" -ge 9
try "the message has the sum of both waits" test "$(told)" -ge $(($(waited devices) + 9))
try "containerd is active" active containerd
try "kubelet was not started" never_started
try "both units have failed" is "$(property nodestrap-devices ActiveState) $(property nodestrap-run ActiveState)" "failed failed"

# A later try follows a repair, and waits for the whole time.
rm /etc/fakes/fabric-takes; nvml_changed
try "the devices phase succeeds after the repair" systemctl restart nodestrap-devices
try "the run phase succeeds after the repair" systemctl restart nodestrap-run
try "the verdict is ok after the repair" is "$(value verdict)" ok
try "kubelet is active after the repair" active kubelet

finish
