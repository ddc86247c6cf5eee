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
ok "before any boot, config dump reads only the user data" max_pods ''
"$nodestrap" "${boot[@]}" 2>/dev/null
ok "init by hand does not record its sources" test ! -e "$recorded"
as_unit "${boot[@]}"
ok "init in a unit records its sources" diff - "$recorded" <<-X
	imds://user-data
	file:///etc/eks/nodeadm.d/
	config-cache $cache
	X
typed config dump
ok "config dump reads the recorded sources" max_pods '"maxPods": 42'
ok "config dump names the recorded sources" says "Reading imds://user-data file:///etc/eks/nodeadm.d/, as /run/nodestrap/sources says."
typed plan
ok "plan has the plan ID of the boot" same_word "$(id)" "$(verdict planId)"
ok "plan with unchanged sources has no plan-differs warning" lacks plan-differs
listing >"$tmp/before"; typed init; listing >"$tmp/after"
ok "init by hand changes nothing" unchanged
ok "init by hand applies the plan of the boot" says "Applying plan $(verdict planId)."
typed plan -c imds://user-data
ok "plan with -c does not read the recorded sources" lacks 'Reads '
sed -i s/42/43/ "$drop_ins/10.yaml"; typed plan --output json
ok "plan says that the sources have changed since the boot" tells "the last run in this boot had a different plan, sha256:$(verdict planId | cut -c 8-14)…: its sources have changed since"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
        chmod 755 "$tmp"; setpriv --reuid=65534 --clear-groups "$nodestrap" plan --output json --root "$root" >"$tmp/out" 2>"$tmp/err"; code=$?
        ok "for another user, plan says that it cannot read a source, so settings are missing" tells "this user cannot read it, so its settings are missing here"
        ok "for another user, plan says that this user cannot read all sources of the boot" tells "you cannot read all of its sources"
fi
ln -sf "$(realpath "$nodestrap")" "$tmp/nodeadm"; "$tmp/nodeadm" config dump --root "$root" >"$tmp/out" 2>"$tmp/err"
ok "nodeadm config dump reads only the user data" max_pods ''
typed doctor; ok "doctor does not read the recorded sources of an image" lacks 'Reads '

# ---- what an image says ----
rm "$recorded"; printf '# of this image\n\nfile:///etc/eks/nodeadm.d/\nimds://user-data\n' >"$list"
typed config dump
ok "if no boot has recorded sources, config dump reads the list of the image" max_pods '"maxPods": 43'
listed() { # LINES WORDS: the list with these lines is refused with these words
        printf '%b' "$1" >"$list"; typed config check; ends 12 "$2"
}
ok "a line of the list that is not a source is an error with its line number" listed 'imds://user-data\nhttp://x\n' '/etc/nodestrap/sources, line 2: cannot read "http://x" as a source'
ok "a path without a scheme in the list is an error with its line number" listed '/etc/eks/nodeadm.d\n' '/etc/nodestrap/sources, line 1: cannot read "/etc/eks/nodeadm.d" as a source'
ok "standard input in the list is an error with its line number" listed '-\n' '/etc/nodestrap/sources, line 1: cannot read "-" as a source'
ok "a list without a source is an error" listed '# none\n' '/etc/nodestrap/sources: names no source'
ok "a list that is too long is an error" listed "$(printf '#%070000d' 0)" '/etc/nodestrap/sources: cannot be read as a list of sources'
echo imds://user-data >"$list"; chmod 666 "$list"; typed config check
ok "a list that other users can write is an error" ends 12 "is writable by users other than root"
rm "$list"; mkdir "$list"; typed config check
ok "a directory in the place of the list is an error" ends 12 "/etc/nodestrap/sources: cannot be read as a list of sources: Is a directory"
as_unit "${boot[@]}"
ok "init in a unit that names its sources does not read the list" same_word "$code" 0
rm -r "$list" "$recorded"

# ---- a machine that has no user data ----
vendor=$root/sys/devices/virtual/dmi/id/sys_vendor; mkdir -p "${vendor%/*}"; chmod -R u+w "${vendor%/*}"
endpoint=$AWS_EC2_METADATA_SERVICE_ENDPOINT
echo QEMU >"$vendor"; typed config check
ok "with an endpoint variable, nodestrap reads user data on any machine" ends 0 "The configuration is valid."
unset AWS_EC2_METADATA_SERVICE_ENDPOINT; typed plan
ok "on a machine that is not in EC2, plan says which command to type" ends 12 "no configuration: this machine is not an EC2 instance (/sys/devices/virtual/dmi/id/sys_vendor: QEMU) and has no user data; name a file: nodestrap plan -c file://PATH"
export AWS_EC2_METADATA_SERVICE_ENDPOINT=$endpoint
mock --imds "$fixtures/imds-m5" --user-data "$tmp/user-data" --fault imds:status=403@/latest/api/token
typed config check
ok "the error says that the metadata service is switched off" ends 12 "HTTP 403: the metadata service is switched off in the metadata options of this instance"
ok "nodestrap does not retry a metadata service that is switched off" sent 1 'PUT /latest/api/token'

done_testing
