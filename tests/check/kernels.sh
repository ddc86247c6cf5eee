#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The NVIDIA assembler takes the kernels for each architecture that `prove` runs on, and refuses what the fake libcuda refuses
# (tests/unit/test-kernels.c has what they compute). No GPU runs them here.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
kernels=$here/../../src/prove/kernels.ptx
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
if ! ptxas=$("$here/../tools/ptxas.sh" 2>"$tmp/why"); then
        if [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] || grep -q 'cannot be downloaded' "$tmp/why"; then skip 'the CUDA assembler ptxas is available' "$(tail -1 "$tmp/why")"
        else ok 'the CUDA assembler ptxas is available' cat "$tmp/why" /nonexistent; fi
        done_testing; exit
fi

takes() { "$ptxas" --gpu-name "sm_$1" --warning-as-error -v -o "$tmp/cubin" "$2" 2>"$tmp/err" || { cat "$tmp/err"; false; }; }
for architecture in 80 86 89 90 100 103 120; do
        ok "ptxas takes the kernels for sm_$architecture" takes "$architecture" "$kernels"
        entries() { [ "$(grep -c "Compiling entry function 'ns_" "$tmp/err")" = 3 ] || { cat "$tmp/err"; false; }; }
        ok "ptxas compiles all three kernels for sm_$architecture" entries
        spills() { ! grep -E '[1-9][0-9]* bytes (spill|stack)' "$tmp/err"; }
        ok "the kernels for sm_$architecture spill no registers" spills
done
refuses() { sed "$1" "$kernels" >"$tmp/other.ptx"; ! cmp -s "$kernels" "$tmp/other.ptx" && ! "$ptxas" --gpu-name sm_80 -o "$tmp/cubin" "$tmp/other.ptx" 2>"$tmp/err"; }
for change in 's/mul\.lo\.u64/mul.lo.u46/' 's/add\.u64/add.u32/' 's/bra LOOP/bra LOOK/' 's/%salt;/%sald;/' 's/\.version 7\.0/.version 6.5/' \
        's/\.target sm_80/.target sm_75/' 's/row\.col/row.row/' 's/{%b0, %b1}/{%b0}/' 's/ld\.param\.u64 %salt, \[salt\]/ld.param.u64 %salt, [sald]/'; do
        ok "ptxas refuses the kernels with $change" refuses "$change"
done
old() { ! "$ptxas" --gpu-name sm_75 -o "$tmp/cubin" "$kernels" 2>"$tmp/err"; }
ok 'ptxas refuses the kernels for a T4' old
done_testing
