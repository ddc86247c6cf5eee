#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nodestrap-prove a thousand times on GPUs that are well: no run has a finding. In every second run the times are wrong by up to 10 %.
# Then the helper is killed at each of its calls of CUDA. Each time the devices phase fails, with one finding.
set -u; unit=${HELPERS:-$(dirname "$0")/../../build/tests/helpers}/../unit count=0 bad=0
again() {       # PROGRAM VARIABLE=VALUE: its tests, of which one runs so often
        while IFS= read -r line; do
                case $line in
                1..*) ;;
                ok*|not\ ok*) count=$((count + 1)); sed -E "s/^((not )?ok) [0-9]+ - /\1 $count - $1: /" <<<"$line"; [[ $line = ok* ]] || bad=1 ;;
                *) echo "$line" ;;
                esac
        done < <(env "$2" "$unit/$1" 2>&1)
        count=$((count + 1))
        if wait $!; then echo "ok $count - $1 with $2 exits with 0"; else bad=1; echo "not ok $count - $1 with $2 exits with 0"; fi
}
again test-prove-gpus RUNS=1000
again test-prove EACH=1
echo "1..$count"; exit $bad
