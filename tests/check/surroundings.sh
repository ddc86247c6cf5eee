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
ok 'init succeeds with normal descriptors and a normal environment' init
digest >"$tmp/expected"

# A file that is opened as descriptor 2 must not get messages.
closed() { (exec <&- >&- 2>&-; init --development); }
fresh
ok 'init succeeds without stdin, stdout and stderr' closed
ok 'init without stdin, stdout and stderr writes the same files' as_expected
no_message() { ! grep -rl 'nodestrap: ' "$root"; }
ok 'init without stderr writes no message into a file' no_message
dump() { (exec 2>&-; "$nodestrap" config dump -c "file://$tmp/userdata" -c file:///nonexistent -o "$tmp/dump"); [ $? = 12 ] && [ ! -e "$tmp/dump" ]; }
ok 'config dump without stderr fails with its exit status' dump

# If the reader of the messages has ended, the first message may end a pipeline, but not a boot.
unread() { { init --development; echo $? >"$tmp/rc"; } 2>&1 | true; [ "$(cat "$tmp/rc")" = 0 ]; }
fresh
ok 'init succeeds if the reader of stderr has ended' unread
ok 'init without a reader of stderr writes the same files' as_expected
pipeline() { "$nodestrap" config schema | head -c 1 >/dev/null; [[ ${PIPESTATUS[0]} =~ ^(0|141)$ ]]; }
ok 'config schema ends with 0 or SIGPIPE when its reader ends' pipeline

# The file of --config-output may hold secrets: no other user may read it, whatever file was there before.
echo old >"$tmp/output"; chmod 644 "$tmp/output"
ok 'config dump -o replaces a file that other users could read' "$nodestrap" config dump -c "file://$tmp/userdata" -o "$tmp/output"
only_ours() { [ "$(stat -c '%a %F' "$tmp/output")" = '600 regular file' ] && grep -q '"kind": "NodeConfig"' "$tmp/output"; }
ok 'only the owner can read the file of config dump -o' only_ours
mkdir "$tmp/link"; echo else >"$tmp/link/target"; ln -s target "$tmp/link/name"
refused() { ! "$nodestrap" config dump -c "file://$tmp/userdata" -o "$tmp/link/name" 2>"$tmp/err" && grep -q 'is a link' "$tmp/err"; }
ok 'config dump -o refuses a link' refused
ok 'config dump -o does not change the target of a link' [ "$(cat "$tmp/link/target")" = else ]
piped() { "$nodestrap" config dump -c "file://$tmp/userdata" -o /dev/stdout | grep -q '"kind": "NodeConfig"'; }
ok 'config dump -o accepts /dev/stdout, which is a link' piped
substituted() { "$nodestrap" config dump -c "file://$tmp/userdata" -o >(cat >"$tmp/substituted"); wait $!; grep -q '"kind": "NodeConfig"' "$tmp/substituted"; }
ok 'config dump -o accepts a link to a pipe' substituted
mistyped() { ! "$nodestrap" config dump -c "file://$tmp/userdata" -o "$tmp/no/such/file" 2>/dev/null && [ ! -e "$tmp/no" ]; }
ok 'config dump -o does not make directories' mistyped
ok 'config dump -o writes to a device' "$nodestrap" config dump -c "file://$tmp/userdata" -o /dev/null
ok '/dev/null is still a device after config dump -o' [ -c /dev/null ]

masked() { (umask 077; init); }
fresh
ok 'init succeeds with umask 077' masked
ok 'init with umask 077 makes directories that daemons can read' as_expected

# If stderr is not the journal, the lines have no priority prefix (systemd.exec(5), $JOURNAL_STREAM).
redirected() { ! JOURNAL_STREAM=1:2 init 2>&1 | grep '^<'; }
ok 'lines on a redirected stderr have no priority prefix' redirected

hostile() {
        env -i POSIXLY_CORRECT=1 TZ=:/nonexistent LC_ALL=tr_TR.UTF-8 TMPDIR=/nonexistent AWS_EC2_METADATA_SERVICE_ENDPOINT="$AWS_EC2_METADATA_SERVICE_ENDPOINT" \
                "$nodestrap" init --skip run --root "$root"
}
fresh
ok 'init succeeds with a small and hostile environment' hostile
ok 'init with a hostile environment writes the same files' as_expected

says_usage() { local words=$1; shift; "$nodestrap" "$@" 2>"$tmp/err"; [ $? = 2 ] && says "$words"; }
ok 'an unknown option at the end is an error that names it' says_usage 'option -z is unknown' plan --root / -z
ok 'an unknown letter in a group of options is an error that names it' says_usage 'option -z is unknown' plan -hz
ok 'a missing value is an error that names the option' says_usage 'option --root lacks its value' plan --root
ok 'a value for an option without one is an error that names the option' says_usage 'option --strict takes no value' config check --strict=yes
ok 'the error for an unknown option suggests the nearest name' says_usage 'did you mean --strict?' config check --strickt
ok 'an ambiguous abbreviation of an option is an error' says_usage 'option --con is unknown' plan --con x
ok 'a word behind -- is not an option' says_usage 'doctor takes no "--strict" after its name' doctor -- --strict

# The same root in other spellings.
slash() { "$nodestrap" init --skip run --root "$root/"; }
relative() { (cd "$tmp" && "$nodestrap" init --skip run --root root//../root/.); }
fresh
ok 'init accepts a root with a slash at its end' slash
ok 'init with a slash at the end of the root writes the same files' as_expected
fresh
ok 'init accepts a relative root' relative
ok 'init with a relative root writes the same files' as_expected

# A relative name of the cache starts at --root. Without user data, init uses the cache.
cache() { (cd "$tmp" && init --config-cache cache.json 2>"$tmp/err") && [ "$(stat -c %a "$root/cache.json")" = 600 ] && lacks warning; }
ok 'init writes a cache with a relative name below the root' cache
mock --imds "$fixtures/imds-m5" --user-data /dev/null
ok 'init uses the cache if there is no user data' init --config-cache cache.json
ok 'init with the cache writes the same files' as_expected

full() { ! "$nodestrap" "$@" >/dev/full; }
for command in --help --version 'config schema' "config dump -c file://$tmp/userdata" \
               "plan -c file://$tmp/userdata --instance-type m5.large --kubelet-version 1.33.1 --containerd-version 2.1.5"; do
        # shellcheck disable=SC2086
        ok "${command%% -c*} fails if its output cannot be written" full $command
done

# Any user can open the directory of the status, and so lock it; that must not keep a node from booting.
mkdir -p "$root/run/nodestrap"
mock --imds "$fixtures/imds-m5" --user-data "$tmp/userdata"
exec 8<"$root/run/nodestrap"
flock 8
ok 'init succeeds while another process locks /run/nodestrap' timeout 60 "$nodestrap" init --skip run --root "$root"
exec 8<&-
mode() { [ "$(stat -c %a "$root/run/nodestrap/lock")" = 600 ]; }
ok 'the lock file has mode 600' mode

# init by hand in a boot that belongs to the units of another bootstrapper: it runs as usual, and warns.
ln -s "$nodestrap" "$tmp/nodeadm"
by() { [ -z "$1" ] || ln -sfT "$1" "$root/run/eks-bootstrapper"; "$2" init --skip run --root "$root" 2>"$tmp/err"; }
warns() { by "$@" && grep -q "two-bootstrappers: the $1 units configured the node in this boot" "$tmp/err" && grep -q two-bootstrappers "$root/run/nodestrap/status.json"; }
is_silent() { by "$@" && ! grep -q two-bootstrappers "$tmp/err"; }
fresh
mkdir -p "$root/run"
ok 'init does not warn in a boot without a bootstrapper' is_silent '' "$nodestrap"
ok 'init does not warn in a boot of the nodestrap units' is_silent nodestrap "$nodestrap"
ok 'init warns in a boot of the nodeadm units' warns nodeadm "$nodestrap"
ok 'init under the name nodeadm warns in a boot of the nodestrap units' warns nodestrap "$tmp/nodeadm"
ok 'init under the name nodeadm does not warn in a boot of the nodeadm units' is_silent nodeadm "$tmp/nodeadm"
done_testing
