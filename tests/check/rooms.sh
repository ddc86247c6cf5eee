#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# src/README.md says which room of src uses which, and the includes agree (tests/oracles/rooms.py).
exec python3 "$(dirname "$0")/../oracles/rooms.py" "$(dirname "$0")/../../src"
