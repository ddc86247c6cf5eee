#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 1 -v /dev/sdb:400M -v xvdca:400M -v /dev/sdd:400M -v xvdd:400M -t 600
# tree: storage storage_stubs ec2_utils
# A volume by its id, its names from the launch template, the kernel's and udev's (tests/vm/lib/volumes_names.py). QEMU's drives have
# EBS's model, serial numbers and vendor data; the rules are those of amazon-ec2-utils.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
exec python3 /vmtest/volumes_names.py
