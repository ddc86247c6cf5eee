#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `token`, `config`, `plan`, `doctor`, `status` and `wait` give up powers of root before they read foreign files; a path on the command line
# keeps some. No other user reads the memory of a process that holds secrets. Messages say when root is refused something
# (tests/oracles/power.py).
exec python3 "$(dirname "$0")/../oracles/power.py" --nodestrap "${NODESTRAP:-build/nodestrap}" --apply-tool "${HELPERS:-build/tests/helpers}/apply-tool"
