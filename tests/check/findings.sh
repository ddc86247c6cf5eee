#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The machine-readable output of config check, and its input (tests/oracles/findings.py, tests/oracles/sarif.py)
exec python3 "$(dirname "$0")/../oracles/findings.py" "${NODESTRAP:-build/nodestrap}" "$(dirname "$0")/../../conf/config-check.schema.json"
