#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says the schema of NodeConfig the same of a document as the decoder? (tests/schema-oracle.py)
exec python3 "$(dirname "$0")/../schema-oracle.py" "${NODESTRAP:-build/nodestrap}" "$(dirname "$0")/../userdata"
