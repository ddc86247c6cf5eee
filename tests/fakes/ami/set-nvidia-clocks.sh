#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Facts 7.1: nvidia-smi six times, each of which holds the GPUs; it gives up where the first does not get along with the driver.
. /usr/lib/fakes/lib.sh
loaded nvidia || { event "clocks-failed"; die "no driver"; }
nvidia-smi -q >/dev/null || { event "clocks-failed"; die "nvidia-smi check failed"; }
for query in memory graphics; do nvidia-smi -q --query-supported-clocks=$query >/dev/null; done
clocks=$(script highest-clocks); [ -z "$clocks" ] || nvidia-smi --applications-clocks "$clocks" || die "clocks cannot be set"
event "clocks-of-the-ami"
