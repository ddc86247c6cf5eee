#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Facts 7.2: by DMI and PCI alone; a machine without a GPU is a clean end. In the third generation the tree that is chosen is moved.
. /usr/lib/fakes/lib.sh
[ -n "$(gpus)" ] || exit 0
scripted driver-fails && { event "driver-failed"; die "$(script driver-fails)"; }
mkdir -p /opt/nvidia/current; [ ! -d /opt/nvidia/trees/lts ] || mv -T /opt/nvidia/trees/lts /opt/nvidia/current || exit
case $(cat /sys/devices/virtual/dmi/id/product_name) in g4dn.*|g5.*|g5g.*) echo 'options nvidia NVreg_EnableGpuFirmware=0' >/etc/modprobe.d/nvidia-disable-gsp.conf;; esac
echo open >/opt/nvidia/current/.driver-flavor
echo 'options nvidia NVreg_CoherentGPUMemoryMode=driver' >/etc/modprobe.d/40-eks-nvidia-openrm.conf
