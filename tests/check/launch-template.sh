#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Launch templates beside their NodeConfig: the examples of AWS's guides, and their mutations (tests/oracles/launch_template.py)
exec python3 "$(dirname "$0")/../oracles/launch_template.py" "${NODESTRAP:-build/nodestrap}"
