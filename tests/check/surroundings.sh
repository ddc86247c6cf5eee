#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Callers that leave the program with odd descriptors, signals, masks and environments: init ends as it would without them.
# shellcheck source=tests/mock/lib.sh
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
fixtures=$(realpath "$(dirname "$0")/../fixtures")
root=$tmp/root
fresh() { rm -rf "$root" && mkdir "$root" && "$fixtures/expand.sh" m5-large "$root"; }
init() { "$nodestrap" init --skip run --root "$root" "$@"; }
digest() { (cd "$root" && find etc var -type f -exec sha256sum {} + | sort; find etc var -type d -printf '%m %p\n' | sort); }
as_expected() { diff <(digest) "$tmp/expected"; }
cat >"$tmp/userdata" <<'END'
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: c, apiServerEndpoint: "https://e", certificateAuthority: Y2E=, cidr: 10.100.0.0/16}
  featureGates: {InstanceIdNodeName: true}
END
mock --imds "$fixtures/imds-m5" --user-data "$tmp/userdata"

fresh
ok 'init in good order' init
digest >"$tmp/expected"

# A file that is opened as descriptor 2 must not get messages.
closed() { (exec <&- >&- 2>&-; init --development); }
fresh
ok 'init without stdin, stdout and stderr' closed
ok 'writes the same files' as_expected
no_message() { ! grep -rl 'nodestrap: ' "$root"; }
ok 'and no message into any file' no_message
dump() { (exec 2>&-; "$nodestrap" config dump -c "file://$tmp/userdata" -c file:///nonexistent -o "$tmp/dump"); [ $? = 12 ] && [ ! -e "$tmp/dump" ]; }
ok 'an error without stderr has its exit code' dump

# The reader of the messages has gone: the first one may end a pipeline, but not a boot.
unread() { { init --development; echo $? >"$tmp/rc"; } 2>&1 | true; [ "$(cat "$tmp/rc")" = 0 ]; }
fresh
ok 'init whose stderr nobody reads' unread
ok 'writes the same files' as_expected
pipeline() { "$nodestrap" config schema | head -c 1 >/dev/null; [[ ${PIPESTATUS[0]} =~ ^(0|141)$ ]]; }
ok 'what is printed ends with its reader, silently' pipeline

# The file of --config-output may hold secrets: no other user may read it, whatever file was there before.
echo old >"$tmp/output"; chmod 644 "$tmp/output"
ok 'a document replaces a file that others could read' "$nodestrap" config dump -c "file://$tmp/userdata" -o "$tmp/output"
only_ours() { [ "$(stat -c '%a %F' "$tmp/output")" = '600 regular file' ] && grep -q '"kind": "NodeConfig"' "$tmp/output"; }
ok 'which only its owner can read then' only_ours
mkdir "$tmp/link"; echo else >"$tmp/link/target"; ln -s target "$tmp/link/name"
refused() { ! "$nodestrap" config dump -c "file://$tmp/userdata" -o "$tmp/link/name" 2>"$tmp/err" && grep -q 'is a link' "$tmp/err"; }
ok 'a link is refused' refused
ok 'and what it leads to is left alone' [ "$(cat "$tmp/link/target")" = else ]
piped() { "$nodestrap" config dump -c "file://$tmp/userdata" -o /dev/stdout | grep -q '"kind": "NodeConfig"'; }
ok 'a link to the standard output is not' piped
substituted() { "$nodestrap" config dump -c "file://$tmp/userdata" -o >(cat >"$tmp/substituted"); wait $!; grep -q '"kind": "NodeConfig"' "$tmp/substituted"; }
ok 'nor one to a pipe' substituted
mistyped() { ! "$nodestrap" config dump -c "file://$tmp/userdata" -o "$tmp/no/such/file" 2>/dev/null && [ ! -e "$tmp/no" ]; }
ok 'directories are not made' mistyped
ok 'a device is written to' "$nodestrap" config dump -c "file://$tmp/userdata" -o /dev/null
ok 'and stays one' [ -c /dev/null ]

masked() { (umask 077; init); }
fresh
ok 'init with umask 077' masked
ok 'makes directories that daemons can read' as_expected

# Without the journal behind stderr there are no priorities in front of the lines (systemd.exec(5), $JOURNAL_STREAM).
redirected() { ! JOURNAL_STREAM=1:2 init 2>&1 | grep '^<'; }
ok 'stderr that was redirected is not the journal' redirected

hostile() {
        env -i POSIXLY_CORRECT=1 TZ=:/nonexistent LC_ALL=tr_TR.UTF-8 TMPDIR=/nonexistent AWS_EC2_METADATA_SERVICE_ENDPOINT="$AWS_EC2_METADATA_SERVICE_ENDPOINT" \
                "$nodestrap" init --skip run --root "$root"
}
fresh
ok 'init with hardly any environment, and that hostile' hostile
ok 'writes the same files' as_expected

says_usage() { local words=$1; shift; "$nodestrap" "$@" 2>"$tmp/err"; [ $? = 2 ] && says "$words"; }
ok 'an unknown letter is named, wherever it stands' says_usage 'option -z is unknown' plan --root / -z
ok 'among others, too' says_usage 'option -z is unknown' plan -hz
ok 'a missing value is told' says_usage 'option --root lacks its value' plan --root
ok 'and one that is too much' says_usage 'option --strict takes no value' config check --strict=yes
ok 'the nearest name is told' says_usage 'did you mean --strict?' config check --strickt
ok 'an abbreviation of two is none' says_usage 'option --con is unknown' plan --con x
ok 'behind -- there are no options' says_usage 'doctor takes no "--strict" after its name' doctor -- --strict

# The root in other words.
slash() { "$nodestrap" init --skip run --root "$root/"; }
relative() { (cd "$tmp" && "$nodestrap" init --skip run --root root//../root/.); }
fresh
ok 'a root with a slash at its end' slash
ok 'is the same root' as_expected
fresh
ok 'a relative root' relative
ok 'is the same root' as_expected

# The cache by a relative name, which below another root starts there; and without user data it serves.
cache() { (cd "$tmp" && init --config-cache cache.json 2>"$tmp/err") && [ "$(stat -c %a "$root/cache.json")" = 600 ] && lacks warning; }
ok 'a cache with a relative name' cache
mock --imds "$fixtures/imds-m5" --user-data /dev/null
ok 'serves where there is no user data' init --config-cache cache.json
ok 'with the same files' as_expected

full() { ! "$nodestrap" "$@" >/dev/full; }
for command in --help --version 'config schema' "config dump -c file://$tmp/userdata" \
               "plan -c file://$tmp/userdata --instance-type m5.large --kubelet-version 1.33.1 --containerd-version 2.1.5"; do
        # shellcheck disable=SC2086
        ok "${command%% -c*} that cannot be printed is a failure" full $command
done

# Anybody may open the directory of the status, and so lock it; that must not keep a node from booting.
mkdir -p "$root/run/nodestrap"
mock --imds "$fixtures/imds-m5" --user-data "$tmp/userdata"
exec 8<"$root/run/nodestrap"
flock 8
ok 'a lock that others can take is not the one that counts' timeout 60 "$nodestrap" init --skip run --root "$root"
exec 8<&-
mode() { [ "$(stat -c %a "$root/run/nodestrap/lock")" = 600 ]; }
ok 'ours is closed to them' mode

# Called by hand in a boot that another bootstrapper's units have: init does as it is told, and says so.
ln -s "$nodestrap" "$tmp/nodeadm"
by() { [ -z "$1" ] || ln -sfT "$1" "$root/run/eks-bootstrapper"; "$2" init --skip run --root "$root" 2>"$tmp/err"; }
warns() { by "$@" && grep -q "two-bootstrappers: the $1 units configured this boot" "$tmp/err" && grep -q two-bootstrappers "$root/run/nodestrap/status.json"; }
is_silent() { by "$@" && ! grep -q two-bootstrappers "$tmp/err"; }
fresh
mkdir -p "$root/run"
ok 'init in a boot that is nobody'"'"'s' is_silent '' "$nodestrap"
ok 'in its own' is_silent nodestrap "$nodestrap"
ok 'in one of nodeadm'"'"'s units it warns' warns nodeadm "$nodestrap"
ok 'called nodeadm, too, where they are the other ones' warns nodestrap "$tmp/nodeadm"
ok 'and not in its own' is_silent nodeadm "$tmp/nodeadm"
done_testing
