#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -d 2 -e -t 600
# imds: imds-m5 storage-raid0
# spec: {instance: {localStorage: {expectedDisks: 2}}}
# tree: storage storage_stubs enabled endurance disturbed
# The short form of tests/torture/endurance/machine.sh: a reboot in the run phase, and signals to the devices phase. Also a child that the
# kernel kills when memory runs out.
[ -d /vmtest ] || DISTURBED="${DISTURBED-reboot nodestrap-run 0.5;oom}" exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/machine.sh
