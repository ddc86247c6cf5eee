#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Facts 7.2: by DMI and PCI alone; a machine without a GPU is a clean end.
. /usr/lib/fakes/lib.sh
[ -n "$(gpus)" ] || exit 0
scripted driver-fails && { event "driver-failed"; die "$(script driver-fails)"; }
mkdir -p /opt/nvidia/current; echo open >/opt/nvidia/current/.driver-flavor
echo 'options nvidia NVreg_CoherentGPUMemoryMode=driver' >/etc/modprobe.d/40-eks-nvidia-openrm.conf
