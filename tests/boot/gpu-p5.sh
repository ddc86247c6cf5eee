#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2
# tree: enabled gpu
# console: NODESTRAP verdict=ok
# A p5.48xlarge from power-on: NVSwitches on PCI, fabric manager on the host, 32 EFA devices.
[ -d /vmtest ] || exec "$(dirname "$0")/../run-boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

cat $E >out/events; cp /run/nodestrap/status.json out/
modprobe mlx5_ib
{ cat /etc/fake-nvml; gpu_states; nvidia-smi -L; nvidia-smi -mig 1; nvidia-smi mig -cgi 1g.10gb,1g.10gb -C; gpu_states; nvidia-smi -L; nvidia-ctk cdi generate --output=/run/cdi/nvidia.yaml; seen_by_plugin; cat $E; } >out/sys 2>&1
nodestrap plan $(sources) >out/plan
try "x" test -d /sys/bus/pci
finish
