#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
. /usr/lib/fakes/lib.sh
loaded nvidia || { event "clocks-failed"; die "no driver"; }
event "clocks-of-the-ami"
