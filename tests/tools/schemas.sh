#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: schemas.sh
# Prints a directory with published schemas, for the examples. nodepools.yaml and ec2nodeclasses.yaml are CRDs of Karpenter, from its Go
# module. nodereadinessrules.yaml is that of the node readiness controller, from its own. eks.json is the API of EKS, from botocore.
# Each is fetched once: 20 MB, of which 1 MB stays. A Go proxy may refuse the node readiness controller; then that file is missing.
# NODESTRAP_TEST_NO_BUILD=1 takes what is there.
set -eu; here=$(dirname "$(realpath "$0")"); . "$here/lib.sh"
case ${1-} in '') ;; *) usage; exit;; esac
KARPENTER=github.com/aws/karpenter-provider-aws@v1.15.1 READINESS=sigs.k8s.io/node-readiness-controller@v0.5.0
BOTOCORE=1.44.8 SUM=76342a76c338701db80dcb8afe1c9bd079283d6fffbb9d881442abb02a215043
root; D=$BASE/schemas-1; mkdir -p "$D"
exec 9>"$D.lock"; flock 9
wanted=''; for f in nodepools.yaml ec2nodeclasses.yaml eks.json; do [ -s "$D/$f" ] || wanted+=" $f"; done
[ -n "$wanted" ] || { echo "$D"; exit; }
[ "${NODESTRAP_TEST_NO_BUILD:-0}" = 0 ] || skip "no$wanted in $D yet (make images makes it)"
need python3; python3 -m pip --version >/dev/null 2>&1 || skip "no pip for python3 here"
command -v go >/dev/null || {
        go=$("$here/peers.sh" --cached golang trixie-backports golang-1.26-go golang-1.26-src 9>&-) || skip "no Go 1.26"
        export PATH=$go/usr/lib/go-1.26/bin:$PATH; }
tmp=$(mktemp -d -p "$BASE"); trap 'rm -rf "$tmp"' EXIT
export GOMODCACHE=$tmp/mod GOFLAGS=-modcacherw GOTOOLCHAIN=local GOWORK=off

# of MODULE@VERSION, FILE of it to FILE of $D. Go may call itself too old for the module, and has it then.
of_module() {
        local module=$1 zip; shift
        (cd "$tmp" && timeout 300 go mod download -json "$module") >"$tmp/said" 2>&1 || :
        zip=$(sed -n 's/.*"Zip": "\(.*\)".*/\1/p' "$tmp/said"); [ -n "$zip" ] || return
        while [ $# -gt 0 ]; do
                python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' "$zip" "$module/$1" >"$tmp/file" &&
                        mv "$tmp/file" "$D/$2" || return
                shift 2
        done
}
of_module $KARPENTER pkg/apis/crds/karpenter.sh_nodepools.yaml nodepools.yaml pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml ec2nodeclasses.yaml ||
        skip "$KARPENTER cannot be downloaded"
[ -s "$D/nodereadinessrules.yaml" ] || of_module $READINESS config/crd/bases/readiness.node.x-k8s.io_nodereadinessrules.yaml nodereadinessrules.yaml ||
        say "$READINESS cannot be downloaded"
echo "botocore==$BOTOCORE --hash=sha256:$SUM" >"$tmp/requirements"
timeout 300 python3 -m pip -q --disable-pip-version-check download --no-deps --only-binary :all: --require-hashes -d "$tmp" -r "$tmp/requirements" >&2 ||
        skip "botocore $BOTOCORE cannot be downloaded"
python3 -c 'import gzip, sys, zipfile; sys.stdout.buffer.write(gzip.decompress(zipfile.ZipFile(sys.argv[1]).read("botocore/data/eks/2017-11-01/service-2.json.gz")))' \
        "$tmp"/*.whl >"$tmp/file"
mv "$tmp/file" "$D/eks.json"
echo "$D"
