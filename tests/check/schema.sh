#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The schema of NodeConfig accepts and refuses the same documents as the decoder (tests/oracles/schema.py).
exec python3 "$(dirname "$0")/../oracles/schema.py" "${NODESTRAP:-build/nodestrap}" "$(dirname "$0")/../userdata"
