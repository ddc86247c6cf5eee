#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: ptxas.sh
# Prints the path of ptxas, NVIDIA's assembler for PTX, of CUDA 12.9: the first that knows sm_103 and sm_120. It comes as a wheel from PyPI
# (nvidia-cuda-nvcc-cu12), once: 40 MB, of which 35 MB stay. NODESTRAP_TEST_NO_BUILD=1 takes what is there.
set -eu; . "$(dirname "$(realpath "$0")")/lib.sh"
case ${1-} in '') ;; *) usage; exit;; esac
version=12.9.86 sum=5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
root; mkdir -p "$BASE"; program=$BASE/ptxas-$version
exec 9>"$BASE/ptxas.lock"; flock 9
[ ! -x "$program" ] || { echo "$program"; exit; }
[ "${NODESTRAP_TEST_NO_BUILD:-0}" = 0 ] || skip "no $program here yet (make images makes it)"
[ "$(uname -m)" = x86_64 ] || skip "this ptxas is for x86-64"
need python3; python3 -m pip --version >/dev/null 2>&1 || skip "no pip for python3 here"
tmp=$(mktemp -d -p "$BASE"); trap 'rm -rf "$tmp"' EXIT
echo "nvidia-cuda-nvcc-cu12==$version --hash=sha256:$sum" >"$tmp/requirements"
timeout 300 python3 -m pip -q --disable-pip-version-check download --no-deps --only-binary :all: --require-hashes -d "$tmp" -r "$tmp/requirements" >&2 ||
        skip "nvidia-cuda-nvcc-cu12 $version cannot be downloaded"
python3 -m zipfile -e "$tmp"/*.whl "$tmp"
chmod 755 "$tmp/nvidia/cuda_nvcc/bin/ptxas"
"$tmp/nvidia/cuda_nvcc/bin/ptxas" --version >&2 || skip "ptxas does not start here"
mv "$tmp/nvidia/cuda_nvcc/bin/ptxas" "$program"
echo "$program"
