#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says the schema of NodeConfig the same of a document as the decoder? (tests/oracles/schema.py)
exec python3 "$(dirname "$0")/../oracles/schema.py" "${NODESTRAP:-build/nodestrap}" "$(dirname "$0")/../userdata"
