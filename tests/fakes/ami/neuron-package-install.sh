#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# awslabs/amazon-eks-ami#2579: on inf1 the driver that is installed, and may be loaded, gives way to version 2.21, which is built here.
. /usr/lib/fakes/lib.sh
grep -qhE '^PCI_ID=1D0F:706[4-7]' /sys/bus/pci/devices/*/uevent || exit 0
dep=$(modules_dep); rm -rf /run/fakes/machine/sys/module/neuron /dev/neuron*; sed -i /neuron.ko/d "$dep"; event "neuron-removed"
pause "$(script neuron-takes 20)"
scripted neuron-install-fails && die "$(script neuron-install-fails)"
echo kernel/drivers/extra/neuron.ko: >>"$dep"; event "neuron-2.21-installed"; modprobe neuron
