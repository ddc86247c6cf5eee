#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every command of the README works, and all output that it shows is that of the program. (tests/oracles/readme.py)
exec python3 "$(dirname "$0")/../oracles/readme.py" "${NODESTRAP:-build/nodestrap}"
