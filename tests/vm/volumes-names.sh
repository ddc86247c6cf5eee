#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 1 -v /dev/sdb:400M -v xvdca:400M -v /dev/sdd:400M -v xvdd:400M -t 600
# tree: storage storage_stubs ec2_utils
# A volume by its id, and by its names from the launch template, the kernel and udev (tests/vm/lib/volumes_names.py). The drives of QEMU
# have model, serial numbers and vendor data of EBS; the rules are those of amazon-ec2-utils.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_names.py
