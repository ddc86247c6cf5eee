#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
. /usr/lib/fakes/lib.sh
pause "$(script ldcache-takes 20)"
: >$FAKES/ldcache; event "ldcache"
