#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/run/cluster.sh SCRIPT
#        tests/run/cluster.sh --list         the scripts of tests/cluster, of the versions in NODESTRAP_TEST_KUBE if that is set
# Runs one script of tests/cluster beside the control plane of a real cluster and prints its TAP. Such a script calls this by itself. Its head:
#   # kube: VERSION[/PROGRAM]       of kubelet and API server (tests/tools/kube.sh), or of that one where the script needs no other
#   # run: host                     the script runs on this machine, with tests/cluster/lib/host.sh
#   # run: vmboot.sh OPTION…        it runs in a guest, as all that tests/run/boot.sh boots, with that one's other lines too
#   # tree: containerd2             beside "run: host": $CONTAINERD is the newest containerd of Debian
#   # tree: containerds             beside "run: host": $CONTAINERDS are all that are here, a line each (tests/tools/containerds.sh)
#   # tree: schemas                 beside "run: host": $SCHEMAS is the directory of tests/tools/schemas.sh
#   # tree: plugins                 beside "run: host": $PLUGINS has a device plugin and a DRA driver (tests/tools/kube.sh)
#   # cluster: WORD…                of cluster_start (tests/cluster/lib/control-plane.sh)
#   # user-data: LINE               one more line of the NodeConfig that the instance has as user data, below spec; may stand several times
#   # beside: LINE                  a line of a shell script that runs here from power-on of a guest, with that file's functions
# All of it is in a network namespace with a loopback alone, and in namespaces of processes and mounts: several go at once, and nothing of
# it is left. Exit: 0, or 1 after a failure; a skipped script says so in TAP.
set -u; top=$(realpath "$(dirname "$0")/../.."); here=$top/tests
if [ "${1-}" = --list ]; then
        cd "$top" || exit; versions=" $(tests/tools/kube.sh --list | xargs) "
        mapfile -t guests < <(grep -l "^# run: vm" tests/cluster/*.sh | sort -r)      # the long ones begin first, ready-*.sh
        for script in "${guests[@]}" $(grep -l "^# run: host" tests/cluster/*.sh); do
                [[ $versions != *" $(sed -n 's/^# kube: //p' "$script") "* ]] || echo "$script"
        done
        exit
fi
inside=''; [ "${1-}" != --inside ] || { inside=1; shift; }
script=$(realpath "$1"); name=${script#"$here"/}
head_of() { sed -n "s/^# $1: //p" "$script"; }
fails() { printf '1..1\nnot ok 1 - %s: %s\n' "$name" "$1"; exit 1; }
# The message of a tool that could not run: a skip with its reason, or a failure.
cannot() {      # STATUS, its messages on stdin
        local said reason; said=$(cat); reason=$(sed -n 's/.*skip: //p' <<<"$said" | tail -1)
        if [ "$1" = 77 ] && [ -n "$reason" ]; then echo "1..0 # SKIP $name: $reason"; exit 0; fi
        fails "$(tail -1 <<<"$said")"
}
read -r tool options <<<"$(head_of run)"
if [ -z "$inside" ]; then
        if [ -z "${NODESTRAP-}" ]; then flock "$top/Makefile" make -s -C "$top" guest-programs >&2 || fails "make guest-programs failed"; fi
        W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
        KUBE=$("$here/tools/kube.sh" "$(head_of kube)" 2>"$W/said") || cannot $? <"$W/said"
        export KUBE W NODESTRAP="${NODESTRAP:-$top/build/nodestrap}"
        if [[ $tool = host && $(head_of tree) = *containerd2* ]]; then          # nothing can be fetched inside
                CONTAINERD=$("$here/tools/peers.sh" --cached containerd2 sid containerd 2>"$W/said")/usr/bin/containerd || cannot $? <"$W/said"
                export CONTAINERD
        fi
        if [[ $tool = host && $(head_of tree) = *containerds* ]]; then
                CONTAINERDS=$("$here/tools/containerds.sh" 2>"$W/said") || cannot 77 <<<"skip: $(tail -1 "$W/said")"
                newest=$KUBE/../bin/containerd; [ ! -x "$newest" ] || CONTAINERDS+=$'\n'$newest
                export CONTAINERDS
        fi
        if [[ $tool = host && $(head_of tree) = *schemas* ]]; then
                SCHEMAS=$("$here/tools/schemas.sh" 2>"$W/said") || cannot $? <"$W/said"
                export SCHEMAS
        fi
        if [[ $tool = host && $(head_of tree) = *plugins* ]]; then
                PLUGINS=$("$here/tools/kube.sh" --plugins 2>"$W/said") || cannot $? <"$W/said"
                export PLUGINS
        fi
        if [ "$tool" != host ]; then
                suite=$(sed -n 's/.*-S \([a-z]*\).*/\1/p' <<<"$options"); more=$(sed -n 's/.*-a \([^ ]*\).*/\1/p' <<<"$options")
                "$here/tools/vmboot.sh" --build -S "${suite:-bookworm}" ${more:+-a "$more"} >/dev/null 2>"$W/said" || cannot $? <"$W/said"
                CNI=$("$here/tools/peers.sh" --cached cni trixie containernetworking-plugins 2>"$W/said") || cannot $? <"$W/said"
                export CNI
        fi
        namespaces=(unshare --net --mount --pid --fork --kill-child --mount-proc)
        said=$("${namespaces[@]}" true 2>&1) || { [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] || fails "no namespaces here: $said"; cannot 77 <<<"skip: no namespaces here: $said"; }
        "${namespaces[@]}" bash "$0" --inside "$script"; exit
fi

trap 'exit 130' HUP INT TERM     # the first process of a namespace heeds none by itself, and all the others end with it
export CLUSTER=$W/cluster; mkdir -p "$CLUSTER"
ip link set lo up; for address in 10.0.2.100 10.0.2.101 10.0.2.103 169.254.169.254; do ip address add $address/32 dev lo; done
. "$here/cluster/lib/control-plane.sh"
make_instance
printf '127.0.0.1 localhost %s\n' "$(hostname)" | cat - "$CLUSTER/hosts" >"$W/hosts"; mount --bind "$W/hosts" /etc/hosts
# shellcheck disable=SC2046 # words
cluster_start $(head_of cluster) 2>"$W/said" || { sed 's/^/# /' "$W/said"; fails "the control plane does not start"; }
make_user_data; head_of user-data >>"$CLUSTER/imds/latest/user-data"
if [ "$tool" = host ]; then
        cd "$W" && timeout --foreground -k 10 900 "$script"; rc=$?
        [ $rc != 124 ] || echo "not ok - $name: not over after 900 s"
        [ $rc = 0 ] || { k=$(mktemp -d "${NODESTRAP_TEST_CACHE:-/var/cache/nodestrap-test}/failed.XXXXXX") && cp -a "$CLUSTER/log/." "$k/" && echo "# logs of the cluster kept in $k"; }
else
        head_of beside >"$CLUSTER/beside"; [ ! -s "$CLUSTER/beside" ] || spawn beside bash -c '. "$0"; . "$CLUSTER/beside"' "$here/cluster/lib/control-plane.sh"
        make_forwards
        "$here/run/boot.sh" "$script"; rc=$?
fi
[ -z "${KEEP-}" ] || [ "$tool" != host ] || { mkdir -p "$KEEP/$name" && cp -a "$CLUSTER/log" "$KEEP/$name/"; }
exit $rc
