#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Launch templates with their NodeConfig: the examples of the AWS guides, and mutations of them (tests/oracles/launch_template.py)
exec python3 "$(dirname "$0")/../oracles/launch_template.py" "${NODESTRAP:-build/nodestrap}"
