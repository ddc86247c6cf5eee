#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `token`, `config`, `plan`, `doctor`, `status` and `wait` give up of root's powers before they read what others wrote, what of them a path
# on the command line keeps, and that nobody else reads the memory of a process that holds secrets, and what is said where root is refused
# something (tests/oracles/power.py).
exec python3 "$(dirname "$0")/../oracles/power.py" --nodestrap "${NODESTRAP:-build/nodestrap}" --apply-tool "${HELPERS:-build/tests/helpers}/apply-tool"
