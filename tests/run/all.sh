#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that CI runs, one suite after the other; each ends with a line of counts, and the last line is their sum. A suite that
# ends without such a line counts as one failure. SUITES="gcc lint" runs only those.
export NODESTRAP_LONG=1   # also what takes a minute to fail
set -u; cd "$(dirname "$0")/../.." || exit 1; passed=0 failed=0 skipped=0
make() { command make --no-print-directory -j"$(nproc)" "$@"; }
suite_gcc()      { make CC=gcc WERROR=1 check; }
suite_clang()    { make CC=clang WERROR=1 O=build-clang check-unit; }
suite_san()      { make SAN=1 check; }
suite_valgrind() { make valgrind; }
suite_arm64()    { make check-arm64; }
suite_lint()     { make lint; }
suite_package()  { make package; }
suite_boot()     { make check-boot; }
suite_vm()       { make check-vm; }
suite_cluster()  { NODESTRAP_TEST_NO_BUILD=$unmade NODESTRAP_TEST_KUBE=$newest make check-cluster; }
# What make check-exhaustive runs
suite_clang-check()   { make CC=clang WERROR=1 O=build-clang check; }
suite_exhaustive-vm() { make check-exhaustive-vm; }
suite_arm64-check()   { make check-arm64 ARM64=check; }
suite_arm64-san()     { make check-arm64 ARM64="SAN=1 check-unit"; }
suite_arm64-types()   { make check-arm64 ARM64="test T=tests/arm64/plans.sh TYPES=all"; }
suite_cluster-oldest() { NODESTRAP_TEST_NO_BUILD=$unmade NODESTRAP_TEST_KUBE=$oldest make check-cluster; }

suites=${SUITES:-gcc clang san valgrind lint package arm64 boot vm cluster} W=$(mktemp -d) images='' results=''
trap '[ -z "$images" ] || kill -- "-$images" 2>/dev/null; rm -rf "$W"' EXIT; trap 'exit 130' INT TERM

# Guests are made beside the first suites; whoever wants one before it is there waits for it. What cannot be made here is told by each
# test that wants it; what takes minutes to fail, as Kubernetes does, is not tried again.
export NODESTRAP_TEST_NO_BUILD=0; unmade=0
# The newest Kubernetes that a script names is enough here, and none where nobody asks for it.
mapfile -t kube < <(tests/tools/kube.sh --list)
newest=${NODESTRAP_TEST_KUBE:-${kube[-1]-}} oldest=${NODESTRAP_TEST_KUBE:-${kube[0]-}} NODESTRAP_TEST_KUBE=''
case " $suites " in *" cluster "*) NODESTRAP_TEST_KUBE+=" $newest";; esac
case " $suites " in *" cluster-oldest "*) NODESTRAP_TEST_KUBE+=" $oldest";; esac
export NODESTRAP_TEST_KUBE="${NODESTRAP_TEST_KUBE:-none}"
: >"$W/images"
for suite in $suites; do
        case $suite in clang|lint) continue;; esac
        setsid tests/run/images.sh >"$W/images" 2>&1 & images=$!
        break
done

run_suite() {   # NAME
        local begin=$SECONDS rc counts p=0 f=1 s=0
        echo "== $1"
        "suite_$1" 2>&1 | tee "$W/log"; rc=${PIPESTATUS[0]}
        # after the counts of a suite make may say why it ends
        counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$W/log" | tail -1)
        if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
                p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
                [ "$rc" = 0 ] || [ "$f" -gt 0 ] || f=1
        fi
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        results+="$1: $p passed, $f failed, $s skipped, $((SECONDS - begin)) s"$'\n'
}
for suite in $suites; do
        case $suite in package|arm64*|boot|vm|exhaustive-vm|cluster*)
                [ -z "$images" ] || { wait "$images" || unmade=1; images=; }        # by the end its number may be somebody else's
                [ ! -s "$W/images" ] || { echo "== images"; cat "$W/images"; : >"$W/images"; };;
        esac
        run_suite "$suite"
done
printf '== all\n%s%s\n' "$results" "in all: $((SECONDS / 60)) min $((SECONDS % 60)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
