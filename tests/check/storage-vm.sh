#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real disks in the everyday suite: a virtual machine with three of them, where its image is there already (making it takes a minute).
here=$(dirname "$(realpath "$0")")
[ "${NODESTRAP_TEST_REQUIRE:-0}" = 1 ] || export NODESTRAP_TEST_NO_BUILD=1
exec "$here/../run/boot.sh" "$here/../vm/storage-short.sh"
