#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen1 fabric-takes=300 fabric-waits=clocks-of-the-ami,cdi-generated list-takes=6 cdi-takes=6
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# The fabric of this p5.48xlarge comes last and slowly. Independent steps run in parallel, and only kubelet waits. status marks the step
# that took so long.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

# beside ID… : these ended before the fabric was there; kubelet began afterwards.
beside() { python3 - "$@" <<'END'
import json, sys
runs = json.load(open("/run/nodestrap/status.json"))["runs"]
first = {}              # of each action, in whichever process it ended first
for a in sorted((a for run in runs.values() for a in run["actions"] if a["endUsec"]), key=lambda a: a["endUsec"]): first.setdefault(a["id"], a)
there = first["await-fabric:fabric"]["endUsec"]
late = [i for i in sys.argv[1:] if not first[i]["endUsec"] < there]
if late or first["start-unit:kubelet.service"]["beginUsec"] < there: sys.exit(f"{late} after {there}: {[first[i] for i in late]}")
END
}
critical() { python3 -c 'import json, sys
path = [s["id"] for s in json.load(open("/run/nodestrap/status.json"))["criticalPath"]]
at = [path.index(i) for i in sys.argv[1:]]
sys.exit(f"{path}" if at != sorted(at) or path[-1] != sys.argv[-1] else 0)' "$@"; }
marked() { nodestrap status --long | grep -F -- "|> $1" && ! nodestrap status --long | grep -F -- "|> $2"; }

systemctl start nodestrap-run           # until it is over
try "the node is up" is "$(value verdict)" ok
try "containerd, EFA, the GPU list, clocks and CDI do not wait for the fabric" beside start-unit:containerd.service check-efa:efa list-gpus:nvidia-smi set-clocks:clocks \
        generate-cdi:/var/run/cdi/nvidia.yaml
try "kubelet starts with all GPUs, a complete fabric and CDI" happened 'kubelet gpus=8 fabric=completed instances=0 cdi=yes'
try "the critical path leads from the driver over the fabric to kubelet" critical load-module:nvidia start-unit:nvidia-fabricmanager.service await-fabric:fabric start-unit:kubelet.service
try "status marks the fabric as critical, and EFA not" marked await-fabric:fabric check-efa:efa
try "status says which step took longest" sh -c "nodestrap status --long | grep -E '^critical path \(>\): kubelet started .*; [0-9.]+ s of await-fabric:fabric'"
try "the picture marks the critical path" sh -c "nodestrap status --output svg | grep -c '<g class=\"critical ' | grep -x '[0-9]*[1-9]'"

finish
