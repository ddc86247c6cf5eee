#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is every command of the README one that works, and all that it shows the program's own? (tests/oracles/readme.py)
exec python3 "$(dirname "$0")/../oracles/readme.py" "${NODESTRAP:-build/nodestrap}"
