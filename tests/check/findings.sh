#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What config check says to machines, and what it reads (tests/oracles/findings.py, tests/oracles/sarif.py)
exec python3 "$(dirname "$0")/../oracles/findings.py" "${NODESTRAP:-build/nodestrap}" "$(dirname "$0")/../../conf/config-check.schema.json"
