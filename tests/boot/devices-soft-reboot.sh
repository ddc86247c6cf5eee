#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2 dcgm
# spec: {accelerator: {nvidia: {mig: [{devices: [0], profiles: {1g.10gb: 7}}]}}}
# tree: enabled gpu kept_results
# console: NODESTRAP verdict=ok
# A soft reboot of a p5.48xlarge with a divided GPU. The kernel, its driver, the instances and /run with the marks of all phases stay;
# daemons start again.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

outcome() { python3 -c 'import json, sys
print(*{a["outcome"] for r in json.load(open("/run/nodestrap/status.json"))["runs"].values() for a in r["actions"] if a["id"] == sys.argv[1]})' "$1"; }

if [ ! -e out/first ]; then
        check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=14' 'kubelet gpus=8 fabric=completed instances=7 cdi=yes' >out/first
        systemctl soft-reboot; exec tail -f /dev/null
fi
cat out/first
systemctl start nodestrap-run           # until it is over
try "after a soft reboot both units are active" is "$(property nodestrap-devices ActiveState) $(property nodestrap-run ActiveState)" "active active"
try "the verdict is ok after a soft reboot" is "$(value verdict)" ok
for u in nvidia-fabricmanager nvidia-persistenced nvidia-dcgm containerd kubelet; do try "$u is active" active $u; done
try "the instances stay as they are" is "$(outcome partition-gpus:mig)" unchanged
try "no unit failed" is "$(systemctl list-units --failed --plain --no-legend)" ""

finish
