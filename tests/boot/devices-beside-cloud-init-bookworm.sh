#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# gpu: p5-48xlarge gen1
# script: read -r _ </run/go
# script: printf 'MIG_PARTITION=19,19,19,19,19,19,19\n' >/etc/default/mig; echo 500 >/proc/sys/net/ipv4/tcp_keepalive_time
# spec: {instance: {sysctl: {net.ipv4.tcp_keepalive_time: "600", net.ipv4.tcp_keepalive_probes: "7"}}}
# tree: enabled gpu watcher
# watcher: { cat /proc/sys/net/ipv4/tcp_keepalive_time; ls /run/cdi/nvidia.yaml; } >/run/watched; cp /run/fakes/events /run/events-then
# watcher: echo >/run/go
# console: NODESTRAP verdict=ok
# As devices-beside-cloud-init.sh, in Debian 12. The user script asks for MIG by the file of the image
# (https://docs.nvidia.com/datacenter/tesla/mig-user-guide/) and changes a kernel setting. The run phase does these again and leaves the
# rest.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

outcome() { python3 -c 'import json, sys
print(next((a["outcome"] for a in json.load(open("/run/nodestrap/status.json"))["runs"][sys.argv[1]]["actions"] if a["id"] == sys.argv[2]), "none"))' "$@"; }

try "the devices phase sets kernel settings and writes CDI while the user script runs" is "$(paste -sd' ' /run/watched)" "600 /run/cdi/nvidia.yaml"
try "the GPUs are undivided and kubelet is down while the user script runs" sh -c "grep -qx 'cdi-generated devices=8' /run/events-then && ! grep kubelet /run/events-then"
try "the run phase divides the GPUs, and the devices phase does not" is "$(outcome devices partition-gpus:mig) $(outcome devices,run partition-gpus:mig)" "none done"
try "the run phase writes the CDI file again" is "$(outcome devices,run generate-cdi:/var/run/cdi/nvidia.yaml)" "done"
try "the run phase restores the kernel setting that the script has changed" is "$(outcome devices set-sysctl:net.ipv4.tcp_keepalive_time) $(outcome devices,run set-sysctl:net.ipv4.tcp_keepalive_time) $(cat /proc/sys/net/ipv4/tcp_keepalive_time)" "done done 600"
try "the run phase leaves the kernel setting that the script has not changed" is "$(outcome devices,run set-sysctl:net.ipv4.tcp_keepalive_probes)" "unchanged"
try "the run phase leaves fabric manager as it is" is "$(outcome devices,run start-unit:nvidia-fabricmanager.service)" "unchanged"
check_cloud_init
check_gpu_node 'module nvidia$' fm-active 'cdi-generated devices=8' 'cdi-generated devices=56' 'kubelet gpus=8 fabric=completed instances=56 cdi=yes'

finish
