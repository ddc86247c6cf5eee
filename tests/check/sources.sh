#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commands without -c read what the units of this boot read. So `init` by hand changes nothing on a healthy node.
# shellcheck source=tests/mock/bad.sh
# shellcheck disable=SC2154  # tmp, root, code and cache are set there
. "$(dirname "$0")/../mock/bad.sh"
good >"$tmp/user-data"; mock --imds "$fixtures/imds-m5" --user-data "$tmp/user-data"
machine
drop_ins=$root/etc/eks/nodeadm.d list=$root/etc/nodestrap/sources recorded=$root/run/nodestrap/sources
mkdir -p "$drop_ins" "$root/etc/nodestrap"
printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 42}}}\n' >"$drop_ins/10.yaml"; chmod 600 "$drop_ins/10.yaml"
chmod go-w "$tmp" "$root" "$root/etc" "$root"/etc/{eks,nodestrap} "$drop_ins"
boot=(init --root "$root" -c imds://user-data -c file:///etc/eks/nodeadm.d/ --config-cache "$cache")
typed() { "$nodestrap" "$@" --root "$root" >"$tmp/out" 2>"$tmp/err"; code=$?; }
as_unit() { bash -c 'export SYSTEMD_EXEC_PID=$$; exec "$@"' bash "$nodestrap" "$@" >"$tmp/out" 2>"$tmp/err"; code=$?; }
ends() { same_word "$code" "$1" && says "$2"; }
max_pods() { grep -oE '"maxPods": [0-9]+' "$tmp/out" | same_word "$(cat)" "$1"; }
tells() { grep -qF -- "$1" "$tmp/out" || { cat "$tmp/out" "$tmp/err"; false; }; }
id() { sed -n 's/.*Plan \(sha256:[0-9a-f]*\)$/\1/p' "$tmp/out"; }

# ---- what a boot read ----
typed config dump
ok "before any boot the user data is all" max_pods ''
"$nodestrap" "${boot[@]}" 2>/dev/null
ok "an init by hand records nothing" test ! -e "$recorded"
as_unit "${boot[@]}"
ok "a unit records what it reads" diff - "$recorded" <<-X
	imds://user-data
	file:///etc/eks/nodeadm.d/
	config-cache $cache
	X
typed config dump
ok "config dump reads it, too" max_pods '"maxPods": 42'
ok "and says so" says "Reads imds://user-data file:///etc/eks/nodeadm.d/, as /run/nodestrap/sources says."
typed plan
ok "plan is that of the boot" same_word "$(id)" "$(verdict planId)"
ok "without a word of a difference" lacks plan-differs
listing >"$tmp/before"; typed init; listing >"$tmp/after"
ok "init by hand changes nothing" unchanged
ok "and has the same plan" says "Applying plan $(verdict planId)."
typed plan -c imds://user-data
ok "a source on the command line counts alone" lacks 'Reads '
sed -i s/42/43/ "$drop_ins/10.yaml"; typed plan --output json
ok "another configuration than at boot is told" tells "the last run of this boot had another plan, sha256:$(verdict planId | cut -c 8-14)…: its sources have changed since"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
        chmod 755 "$tmp"; setpriv --reuid=65534 --clear-groups "$nodestrap" plan --output json --root "$root" >"$tmp/out" 2>"$tmp/err"; code=$?
        ok "another user is told of what he may not read" tells "this user cannot read it, so its settings are missing here"
        ok "and that the plan differs for it" tells "you cannot read all of its sources"
fi
ln -sf "$(realpath "$nodestrap")" "$tmp/nodeadm"; "$tmp/nodeadm" config dump --root "$root" >"$tmp/out" 2>"$tmp/err"
ok "called nodeadm, it reads the user data alone" max_pods ''
typed doctor; ok "doctor does not look into an image for them" lacks 'Reads '

# ---- what an image says ----
rm "$recorded"; printf '# of this image\n\nfile:///etc/eks/nodeadm.d/\nimds://user-data\n' >"$list"
typed config dump
ok "where no boot has recorded any, the list of the image counts" max_pods '"maxPods": 43'
listed() { # LINES WORDS: the list with these lines is refused with these words
        printf '%b' "$1" >"$list"; typed config check; ends 12 "$2"
}
ok "a line that is not a source" listed 'imds://user-data\nhttp://x\n' '/etc/nodestrap/sources, line 2: cannot read "http://x" as a source'
ok "a path without a scheme" listed '/etc/eks/nodeadm.d\n' '/etc/nodestrap/sources, line 1: cannot read "/etc/eks/nodeadm.d" as a source'
ok "standard input" listed '-\n' '/etc/nodestrap/sources, line 1: cannot read "-" as a source'
ok "a list without a source" listed '# none\n' '/etc/nodestrap/sources: names no source'
ok "one that is too long" listed "$(printf '#%070000d' 0)" '/etc/nodestrap/sources: cannot be read as a list of sources'
echo imds://user-data >"$list"; chmod 666 "$list"; typed config check
ok "one that anybody can write" ends 12 "is writable by users other than root"
rm "$list"; mkdir "$list"; typed config check
ok "a directory" ends 12 "/etc/nodestrap/sources: cannot be read as a list of sources: Is a directory"
as_unit "${boot[@]}"
ok "a unit that names its sources does not look at it" same_word "$code" 0
rm -r "$list" "$recorded"

# ---- a machine that has no user data ----
vendor=$root/sys/devices/virtual/dmi/id/sys_vendor; mkdir -p "${vendor%/*}"; chmod -R u+w "${vendor%/*}"
endpoint=$AWS_EC2_METADATA_SERVICE_ENDPOINT
echo QEMU >"$vendor"; typed config check
ok "with an endpoint variable the service is asked anywhere" ends 0 "The configuration is valid."
unset AWS_EC2_METADATA_SERVICE_ENDPOINT; typed plan
ok "elsewhere than on EC2 plan says what to type" ends 12 "no configuration: this machine is not an EC2 instance (/sys/devices/virtual/dmi/id/sys_vendor: QEMU) and has no user data; name a file: nodestrap plan -c file://PATH"
export AWS_EC2_METADATA_SERVICE_ENDPOINT=$endpoint
mock --imds "$fixtures/imds-m5" --user-data "$tmp/user-data" --fault imds:status=403@/latest/api/token
typed config check
ok "a service that is switched off is asked once" ends 12 "HTTP 403: the metadata service is switched off in the metadata options of this instance"
ok "and not again" sent 1 'PUT /latest/api/token'

done_testing
