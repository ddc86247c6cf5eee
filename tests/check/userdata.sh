#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every user-data case of tests/userdata, one TAP line each (tests/oracles/userdata.py).
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(python3 "$here/oracles/userdata.py" --dir "$here/userdata" --nodestrap "${NODESTRAP:-build/nodestrap}" 2>&1); rc=$?
n=0
for case in "$here"/userdata/cases/*/; do
        name=$(basename "$case"); n=$((n + 1))
        why=$(grep -F "FAIL $name: " <<<"$out")
        if [ -z "$why" ]; then echo "ok $n - $name"; else echo "not ok $n - $name"; sed 's/^/# /' <<<"$why"; fi
done
# Lines of the oracle about no single case: the index, or the program itself.
n=$((n + 1))
if [ "$rc" = 0 ] && grep -q " 0 failed" <<<"$out"; then echo "ok $n - index and totals"; else echo "not ok $n - index and totals"; tail -3 <<<"$out" | sed 's/^/# /'; fi
echo "1..$n"
