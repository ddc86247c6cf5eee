#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: [TYPES=all] plans.sh
# arm64 and x86-64 plan the same bytes, so the same id. Types: one of each architecture, class of NVSwitch and maker of accelerators, or
# all.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154 # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
top=$(realpath "$here/../..") arm=$(realpath "${NODESTRAP:-$here/../../build-arm64/nodestrap}")
x86=$(realpath "${NATIVE:-$top/build/nodestrap}")
cat >"$tmp/node.yaml" <<END
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: training
    apiServerEndpoint: https://A1B2C3D4.gr7.us-west-2.eks.amazonaws.com
    certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==
    cidr: 10.100.0.0/16
  kubelet:
    maxPodsExpression: max_pods - 3
  instance:
    localStorage: {strategy: RAID0}
  featureGates: {InstanceIdNodeName: true}
END
types=$(awk -F, -v all="${TYPES-}" '/^[^#,]*\./ && (all == "all" || !seen[$11, $12, substr($5, 1, index($5, "-"))]++) { print $1 }' "$top/conf/instance-types.csv")
all() {         # PROGRAM DIRECTORY
        local type
        mkdir "$2"
        for type in $types; do
                "$1" plan -c "file://$tmp/node.yaml" --instance-type "$type" --kubelet-version 1.34.2 --containerd-version 2.1.5 \
                        --driver-version 595.58.03 --output json >"$2/$type" 2>"$2/$type.err" || { echo "$type: exit $?"; cat "$2/$type.err"; return 1; }
        done
}
files() {       # PROGRAM DIRECTORY: those of a tray of a GB200 rack
        mkdir "$2" && "$1" plan -c "file://$top/conf/examples/p6e-gb200.userdata" --instance-type p6e-gb200.36xlarge --kubelet-version 1.34.2 \
                --containerd-version 2.1.5 --driver-version 580.159.04 --write-to "$2" >"$2.text"
}
machine() { od -An -tu2 -j18 -N2 "$1" | tr -d ' '; }      # e_machine (elf(5)): 62 is x86-64, 183 arm64
ok "one program is for arm64 and the other for x86-64" test "$(machine "$arm") $(machine "$x86")" = "183 62"
ok "arm64 plans for $(wc -w <<<"$types") types" all "$arm" "$tmp/arm"
ok "x86-64 plans each instance type" all "$x86" "$tmp/x86"
ok "the planned instance types have both architectures" eval 'grep -lq aarch64 "$tmp"/arm/* && grep -lq x86_64 "$tmp"/arm/*'
ok "every plan has an id" test "$(grep -lE '"planId": "sha256:[0-9a-f]{64}"' "$tmp"/arm/* | wc -l)" = "$(wc -w <<<"$types")"
ok "both programs print the same plans byte for byte" diff -r "$tmp/arm" "$tmp/x86"
ok "each planned file is the same on both architectures" eval 'files "$arm" "$tmp/a" && files "$x86" "$tmp/x" && diff -r "$tmp/a" "$tmp/x" && diff "$tmp/a.text" "$tmp/x.text"'
done_testing
