#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Has nodestrap-codes(7) an entry for every code that the program can say, and none of a code that is not there? (tests/oracles/codes.py)
exec python3 "$(dirname "$0")/../oracles/codes.py"
