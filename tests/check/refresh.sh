#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The scripts with which a maintainer compares the tables of conf/ with public data (tests/oracles/refresh.py).
exec python3 "$(dirname "$0")/../oracles/refresh.py"
