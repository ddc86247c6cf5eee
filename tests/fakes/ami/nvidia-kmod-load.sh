#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Facts 7.1: the flavour by the GPU, GSP firmware off on g4dn, g5 and g5g, CDMM on every type; without a GPU it fails.
. /usr/lib/fakes/lib.sh
[ -n "$(gpus)" ] || die "return: can only return from a function or sourced script"
scripted driver-fails && { event "driver-failed"; die "$(script driver-fails)"; }
echo 'options nvidia NVreg_CoherentGPUMemoryMode=driver' >/etc/modprobe.d/40-eks-nvidia-openrm.conf
case $(cat /sys/devices/virtual/dmi/id/product_name) in g4dn.*|g5.*|g5g.*) echo 'options nvidia NVreg_EnableGpuFirmware=0' >/etc/modprobe.d/nvidia-disable-gsp.conf;; esac
pause "$(script driver-takes 10)"
modprobe nvidia && modprobe nvidia-uvm && event "driver-loaded-by-the-ami"
