#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: trn2 neuron many
# tree: gpu
# console: NODESTRAP verdict=failed code=ENEURON step=await-devices
# console: nodestrap: failed \(33 ENEURON\) at await-devices:/dev/neuron\*: 15 of 16
# The faults of Trainium, one after the other, each on a machine that was just powered on.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

dep=$(modules_dep) pci=/sys/bus/pci/devices

power_on trn2 unbound=0000:14:00.0
fails 33 ENEURON "15 of 16 /dev/neuron.* exist; no driver is bound to 0000:14:00.0; the driver makes one for each" "a device that the driver cannot start"

power_on trn2; rm -r $pci/0000:27:00.0
fails 33 ENEURON '1 of 16 Neuron devices is missing \(trn2.48xlarge\)' "fifteen devices of sixteen on the bus"

power_on trn2 neuron-fails="Exec format error"
fails 33 ENEURON 'the kernel module neuron cannot be loaded.*Exec format error' "a driver of another kernel"
power_on trn2 module-neuron-missing=yes
fails 33 ENEURON 'the kernel module neuron cannot be loaded' "a driver that is listed and not there"

power_on trn2; mv "$dep" /root/dep; mv /etc/systemd/system/neuron-package-install.service /root/
try "an image without the driver: the node comes up" node_starts
try "an image without the driver: kubelet starts and sees no Neuron device" kubelet_saw 'gpus=0 neuron=0'
try "an image without the driver: status.json says that 16 Neuron devices are not set up" grep -q 'this image has no AWS Neuron driver .*: 16 Neuron devices are not set up' /run/nodestrap/status.json
try "an image without the driver: nodestrap does not try to load it" never 'module(-refused)? neuron'
mv /root/dep "$dep"; mv /root/neuron-package-install.service /etc/systemd/system/

power_on trn2; modprobe neuron
try "a driver that is loaded already: the node comes up" node_starts
try "a driver that is loaded already: nodestrap does not load it again" once 'module neuron'
try "a driver that is loaded already: kubelet sees all 16 devices" kubelet_saw 'gpus=0 neuron=16'

finish
