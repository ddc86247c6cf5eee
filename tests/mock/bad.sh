# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tests/check/bad-*.sh, brings lib.sh along: a machine below $root on which an earlier init went well, and runs of init that
# are to fail. Whatever fails must leave that machine as it is, and must not show what only the user data may know.
#   settled makes it again and runs init there with the configuration of good(); $cache is the file of --config-cache
#   good                   prints a NodeConfig full of canaries, whose lines may be followed by more of spec
#   init OPTION...         runs it; what it said is in $tmp/err, its exit code in $code
#   fails CODE WORD STEP   judges that run: the exit code, the last line, status and metrics, silence about canaries, no message twice,
#                          and not one file touched (reports in /run/nodestrap apart)
#   says_last WORDS        the last line on stderr, which is the one that an operator sees, has these words
# shellcheck source=tests/mock/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
nodestrap=${NODESTRAP:-build/nodestrap}
# shellcheck disable=SC2154  # lib.sh sets them
fixtures=$here/../fixtures
# shellcheck disable=SC2154
root=$tmp/root cache=/run/eks/nodeadm/config.json code=0
canaries='CANARY|mock/secret|session\+token'
CA=LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmdvb2QKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=
good() {
        cat <<-X
	apiVersion: node.eks.aws/v1alpha1
	kind: NodeConfig
	spec:
	  cluster: {name: demo, apiServerEndpoint: "https://api.example", certificateAuthority: $CA, cidr: 10.100.0.0/16}
	  featureGates: {InstanceIdNodeName: true}
	  instance:
	    environment:
	      default: {HTTPS_PROXY: "http://me:CANARYproxy@127.0.0.1:9", no_proxy: "127.0.0.1,.example", DB: CANARYdefault}
	      kubelet: {TOKEN: CANARYkubelet}
	  containerd:
	    config: |
	      [plugins."io.containerd.cri.v1.images".registry.configs."r.example".auth]
	      password = "CANARYtoml"
	X
}
machine() {
        rm -rf "$root" && mkdir -p "$root/proc/sys/kernel/random"
        "$fixtures/expand.sh" "${fixture:-m5-large}" "$root"
        echo "$RANDOM-$RANDOM" >"$root/proc/sys/kernel/random/boot_id"
}
init() {
        # The files that the two phases keep for each other would answer in place of the service.
        rm -f "$root/run/nodestrap/facts.json"
        listing >"$tmp/before"
        "$nodestrap" init --root "$root" "$@" >"$tmp/out" 2>"$tmp/err"
        code=$?
        listing >"$tmp/after"
}
# Everything but the reports; what is not there before a run may not be there behind it.
listing() {
        (cd "$root" && find . \( \( -path ./run/nodestrap -o -path ./var/lib/nodestrap/unwell.json \) -prune \) -o -type f -exec sha256sum {} + -o -printf '%p %y %m %l\n' | sort)
}
settled() {
        machine
        good >"$root/good.yaml"
        init -c file:///good.yaml --config-cache "$cache"
        [ "$code" = 0 ] || { echo "Bail out! the good configuration fails"; cat "$tmp/err"; exit 1; }
}
verdict() { sed -n "s/^ \"$1\": \"\\?\\([^\"]*\\)\"\\?,\$/\\1/p" "$root/run/nodestrap/status.json"; }
same_word() { [ "$1" = "$2" ] || { echo "$1 is not $2"; cat "$tmp/err"; false; }; }
unchanged() { diff "$tmp/before" "$tmp/after"; }
silent() { ! grep -rE -- "$canaries" "$tmp/out" "$tmp/err" "$root/run/nodestrap/status.json" "$root/run/nodestrap/metrics.prom"; }
not_twice() { [ -z "$(sed -E 's/^nodestrap: (error: |warning: |failed \([^)]*\) at [a-z]+: )?//' "$tmp/err" | sort | uniq -d)" ] || { cat "$tmp/err"; false; }; }
last_line() { tail -1 "$tmp/err"; }
says_last() { last_line | grep -qF -- "$1" || { cat "$tmp/err"; false; }; }
reported() {
        same_word "$code" "$1" && same_word "$(last_line | sed -E 's/^(nodestrap: failed \([0-9]+ [A-Z0-9]+\) at [^ ]*): .*/\1/')" "nodestrap: failed ($1 $2) at $3" &&
                same_word "$(verdict code)" "$2" && same_word "$(verdict exit)" "$1" && same_word "$(verdict step)" "$3" &&
                grep -qF "verdict=\"failed\",code=\"$2\",step=\"$3\"} 1" "$root/run/nodestrap/metrics.prom"
}
fails() { reported "$@" && silent && not_twice && unchanged; }
