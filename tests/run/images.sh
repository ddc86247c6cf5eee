#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run/images.sh
# Makes what the guests of tests/boot, tests/vm, tests/exhaustive and tests/cluster boot, what they get of other suites, the root for cross
# builds, and Kubernetes. What is there costs nothing;
# whoever wants the same at the same time waits for it. Exit 1: something could not be made, and whoever wants it says so once more.
set -u; cd "$(dirname "$0")/../.." || exit 1; tools=tests/tools bad=0
unset NODESTRAP_TEST_NO_BUILD

# "SUITE [PACKAGES]" of every script, most wanted first
images() {
        printf '%s\n' bookworm trixie
        sed -n 's/^# run: //p' tests/{boot,vm,exhaustive,cluster}/*.sh | grep -v ^host | awk '{
                suite = "bookworm"; packages = ""
                for (i = 2; i < NF; i++) { if ($i == "-S") suite = $(i + 1); if ($i == "-a") packages = $(i + 1) }
                print suite, packages }' | sort
}
while read -r suite packages; do
        $tools/vmboot.sh --build -S "$suite" ${packages:+-a "$packages"} </dev/null >/dev/null || bad=1
done < <(images | awk '{ sub(/ $/, "") } !seen[$0]++')
$tools/cross.sh --build >/dev/null || bad=1
$tools/peers.sh --cached qemu-user trixie qemu-user >/dev/null || bad=1
$tools/peers.sh --cached containerd2 sid containerd >/dev/null || bad=1
$tools/peers.sh --cached amazon-ec2-utils trixie amazon-ec2-utils >/dev/null || bad=1
$tools/peers.sh --cached valgrind trixie valgrind >/dev/null || bad=1
$tools/peers.sh --cached prometheus bookworm prometheus prometheus-node-exporter >/dev/null || bad=1
$tools/peers.sh --cached openssl-fips trixie openssl-provider-fips >/dev/null || bad=1
$tools/libcurl.sh >/dev/null || bad=1
$tools/peers.sh --cached cni trixie containernetworking-plugins >/dev/null || bad=1
$tools/vmboot.sh --build -A arm64 >/dev/null || bad=1
versions=$($tools/kube.sh --list)
# shellcheck disable=SC2086 # words
[ -z "$versions" ] || $tools/kube.sh $versions >/dev/null || bad=1
exit $bad
