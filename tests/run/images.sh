#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run/images.sh [SCRIPT... [arm64]]
# Makes what these scripts boot, what they get of other suites, and Kubernetes. For a script with an arm64 guest, or by that word, it makes
# the root for cross builds. Without a SCRIPT it makes what all tests want. It makes nothing twice, and a test that wants the same waits.
# Exit 1: something could not be made, and the test that wants it says so once more.
set -u; cd "$(dirname "$0")/../.." || exit 1; tools=tests/tools bad=0
unset NODESTRAP_TEST_NO_BUILD
all=''; [ $# -gt 0 ] || { all=1; set -- tests/{boot,vm,exhaustive,cluster}/*.sh arm64; }
scripts=(); for word; do [ "$word" = arm64 ] || scripts+=("$word"); done
head_of() { sed -n "s/^# $1: //p" "${scripts[@]:-/dev/null}"; }
peer() { $tools/peers.sh --cached "$@" >/dev/null || bad=1; }

# "SUITE [PACKAGES]" of every script, most wanted first
images() {
        printf '%s\n' bookworm trixie
        head_of run | grep -v ^host | awk '{
                suite = "bookworm"; packages = ""
                for (i = 2; i < NF; i++) { if ($i == "-S") suite = $(i + 1); if ($i == "-a") packages = $(i + 1) }
                print suite, packages }' | sort
}
while read -r suite packages; do
        $tools/vmboot.sh --build -S "$suite" ${packages:+-a "$packages"} </dev/null >/dev/null || bad=1
done < <(images | awk '{ sub(/ $/, "") } !seen[$0]++')
arm64_guests() { head_of run | grep -q -- '-A arm64'; }
! arm64_guests || $tools/vmboot.sh --build -A arm64 >/dev/null || bad=1
if arm64_guests || [ "${!#}" = arm64 ]; then $tools/cross.sh --build >/dev/null || bad=1; peer qemu-user trixie qemu-user; fi
! head_of tree | grep -qw containerd2 || peer containerd2 sid containerd
! head_of tree | grep -qw containerds || { peer containerd2 sid containerd; $tools/kube.sh --containerd >/dev/null || bad=1; }
! head_of tree | grep -qw schemas || $tools/schemas.sh >/dev/null || bad=1
! head_of tree | grep -qw plugins || $tools/kube.sh --plugins >/dev/null || bad=1
! head_of tree | grep -qw kube || peer cni trixie containernetworking-plugins
if [ -n "$all" ]; then
        peer amazon-ec2-utils trixie amazon-ec2-utils
        peer valgrind trixie valgrind
        peer prometheus bookworm prometheus prometheus-node-exporter
        peer openssl-fips trixie openssl-provider-fips
        $tools/libcurl.sh >/dev/null || bad=1
        $tools/ptxas.sh >/dev/null || true      # its test skips where PyPI cannot be reached
fi
versions=$(if [ -n "$all" ]; then $tools/kube.sh --list; else head_of kube | sort -uV; fi | xargs)
# shellcheck disable=SC2086 # words
[ -z "$versions" ] || $tools/kube.sh $versions >/dev/null || bad=1
exit $bad
