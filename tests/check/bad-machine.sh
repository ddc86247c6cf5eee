#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A good configuration on a machine that does not take it: files that cannot be written, paths in the way, signals, wrong calls.
[ -n "${OWN_MOUNTS-}" ] || ! unshare -m true 2>/dev/null || OWN_MOUNTS=1 exec unshare -m "$0"
# shellcheck source=tests/mock/bad.sh
. "$(dirname "$0")/../mock/bad.sh"
good >"$tmp/user-data"
{ good; echo '  kubelet: {flags: [--v=5]}'; } >"$tmp/changed"
mock --imds "$fixtures/imds-m5" --user-data "$tmp/changed"
settled
step=write-file:/etc/eks/kubelet/environment config=/etc/kubernetes/kubelet/config.json
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
no_leftovers() { [ -z "$(find "$root" -name '.*.tmp')" ] || { find "$root" -name '.*.tmp'; false; }; }
# withheld DESCRIPTION STEP WORDS: a run that could not write one of the files has written none of them
withheld() {
        ok "$1: init fails with exit status 40" fails 40 EFILE "$2"
        ok "$1: the last line says why and what next" says_last "$3"
        ok "$1: no temporary file stays" no_leftovers
}
if [ -n "${OWN_MOUNTS-}" ]; then
        mount --bind "$root/etc" "$root/etc" && mount -o remount,bind,ro "$root/etc"
        init --config-cache "$cache"
        withheld 'a read-only /etc' $step 'cannot be written: Read-only file system; findmnt shows how it is mounted, dmesg whether errors caused that'
        umount "$root/etc"
        mv "$root/etc" "$root/etc.real" && mkdir "$root/etc"
        mount -t tmpfs -o size=96k none "$root/etc" && cp -a "$root/etc.real/." "$root/etc" && cat /dev/zero >"$root/etc/filler" 2>/dev/null
        init --config-cache "$cache"
        withheld 'a full disk' $step 'cannot be written: No space left on device; free some space or inodes on that file system (df -h, df -i), then run nodestrap again'
        rm "$root/etc/filler"
        init --config-cache "$cache"
        ok 'init succeeds after some space is freed' same_word "$code" 0
        umount "$root/etc"
        rmdir "$root/etc" && mv "$root/etc.real" "$root/etc"
        mkdir -p "$root${cache%/*}" && mount -t tmpfs -o size=16k none "$root${cache%/*}" && echo '{"spec": {}}' >"$root$cache" && cat /dev/zero >"$root${cache%/*}/filler" 2>/dev/null
        init --config-cache "$cache"
        ok 'no room for the cached configuration: init succeeds' same_word "$code" 0
        ok 'no room for the cached configuration: a message says so' says "$cache cannot be written; the next run reads its sources again"
        ok 'no room for the cached configuration: an older one does not stay' test ! -e "$root$cache"
        umount "$root${cache%/*}"
        mount -t tmpfs -o ro none "$root/run"
        init
        ok 'a read-only /run: init exits with 40' same_word "$code" 40
        ok 'a read-only /run: init changes nothing' unchanged
        ok 'a read-only /run: the last line names the lock and says what to do' says_last '(40 EFILE) at detect: /run/nodestrap/lock cannot be created: Read-only file system; make /run writable by root'
        ok 'a read-only /run: one warning says that the status is old' same_word "$(grep -c 'status.json and metrics.prom beside it are out of date' "$tmp/err")" 1
        umount "$root/run"
else
        skip 'read-only and full file systems' 'no mount namespaces here'
fi

# Paths in the way: nodestrap replaces only files, and does not write through a link.
settled
rm "$root$config" && mkdir "$root$config"
init
withheld 'a directory where a file belongs' write-file:$config 'cannot be written: Is a directory; move the directory away'
settled
echo 'not ours' >"$root/elsewhere"
ln -sf /elsewhere "$root$config"
init
ok 'a symbolic link where a file belongs: init succeeds' same_word "$code" 0
ok 'a symbolic link where a file belongs: its target is as it was' same_word "$(cat "$root/elsewhere")" 'not ours'
ok 'a symbolic link where a file belongs: a file replaces it' test ! -L "$root$config"
settled
rm -r "${root:?}/run" && echo >"$root/run"
init
ok 'a file at /run: init exits with 40' same_word "$code" 40
ok 'a file at /run: init changes nothing' unchanged

# Facts that nodestrap needs of the machine
settled
rm "$root"/etc/eks/*-version.txt
init
ok 'missing versions: init fails with exit status 20' fails 20 EFACTS detect
ok 'missing versions: the last line names kubelet' says_last 'the version of kubelet is not known: /etc/eks/kubelet-version.txt does not exist below'
ok 'missing versions: stderr names containerd' says 'error: the version of containerd is not known: /etc/eks/containerd-version.txt does not exist'
echo unknown | tee "$root/etc/eks/kubelet-version.txt" >"$root/etc/eks/containerd-version.txt"
init
ok 'invalid versions: init fails with exit status 20' fails 20 EFACTS detect
ok 'invalid versions: the last line names the file' says_last '/etc/eks/kubelet-version.txt: its content is not valid: it has no version such as 1.33.4'

# SIGTERM: interrupted WORDS OPTION... starts init, waits for these words, and stops it.
settled
mkfifo "$tmp/said"
interrupted() {
        local line
        rm -f "$root/run/nodestrap/facts.json"
        listing >"$tmp/before"
        : >"$tmp/err"
        ${heeds:+env --default-signal="$heeds"} "$nodestrap" init --root "$root" "${@:2}" 2>"$tmp/said" >"$tmp/out" &
        while IFS= read -r line; do
                echo "$line" >>"$tmp/err"
                [[ $line != *"$1"* ]] || kill -"${by:-TERM}" $!
        done <"$tmp/said"
        wait $!; code=$?
        listing >"$tmp/after"
}
mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 --user-data "$tmp/changed" --fault status=503@/latest/user-data
interrupted 'trying again'
ok 'SIGTERM ends an init that waits for the user data' fails 1 EINTERRUPTED source
ok 'the message says that SIGTERM ended a request for the user data' says_last "stopped by SIGTERM while asking the instance metadata service at $imds for /latest/user-data"
sed '/InstanceIdNodeName/d' "$tmp/changed" >"$tmp/by-name"
mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 --user-data "$tmp/by-name" --fault ec2:throttle
interrupted 'trying again'
ok 'SIGTERM ends an init that waits for EC2' fails 1 EINTERRUPTED detect
ok 'the message says that SIGTERM ended a request to EC2' says_last "stopped by SIGTERM while asking EC2 at $ec2 for DescribeInstances"
heeds=HUP by=HUP interrupted 'trying again'      # even where these tests run below nohup(1)
ok 'SIGHUP of a lost session ends an init that waits for EC2' fails 1 EINTERRUPTED detect
ok 'the message says that SIGHUP ended a request to EC2' says_last "stopped by SIGHUP while asking EC2 at $ec2 for DescribeInstances"
mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 --user-data "$tmp/by-name" --fault 'ec2:throttle*1'
(trap '' HUP; by=HUP interrupted 'trying again'; exit "$code")
ok 'init ignores SIGHUP below nohup(1)' same_word $? 0
settled
mock --imds "$fixtures/imds-m5" --user-data "$tmp/changed"
exec 7<"$root/run/nodestrap/lock"
flock 7
interrupted 'Another nodestrap process holds'
ok 'SIGTERM ends an init that waits for another init' fails 1 EINTERRUPTED detect
ok 'the message says that SIGTERM stopped init before any change' says_last 'stopped by SIGTERM; nothing was changed'

# Two inits in parallel: both wait for this script, then run one after the other. The second plans when the first has ended.
listing >"$tmp/before"
for i in 1 2; do
        mkfifo "$tmp/said$i"
        "$nodestrap" init --root "$root" 2>"$tmp/said$i" 7<&- & pids[i]=$!
done
exec 5<"$tmp/said1" 6<"$tmp/said2"
for fd in 5 6; do while read -r line <&$fd && [[ $line != *waiting* ]]; do [[ $line != *'Applying plan'* ]] || early=1; done; done
ok 'neither of two inits plans before it is alone' same_word "${early:-0}" 0
exec 7<&-
for fd in 5 6; do cat <&$fd >"$tmp/end$fd"; done
for i in 1 2; do wait "${pids[i]}"; ok "init number $i of two succeeds" same_word $? 0; done
ok 'one of two inits has something to do' same_word "$(cat "$tmp/end5" "$tmp/end6" | grep -c ' done, ')" 1
ok 'the other of two inits has nothing to change' same_word "$(cat "$tmp/end5" "$tmp/end6" | grep -c 'ok: nothing to change')" 1
ok 'two inits leave no temporary file' no_leftovers

# A signal at any moment: no file is half written, and the last line is about it, unless it came before or after everything.
half=0 untold=0 at_exit=$(trap -p EXIT)
for ((i = 0; i < 12; i++)); do
        settled
        trap - EXIT             # a child that the signal hits before it becomes nodestrap would run it, too
        "$nodestrap" init --root "$root" 2>"$tmp/err" & pid=$!
        eval "$at_exit"
        for ((k = 0; k < i * 1000; k++)); do :; done    # not a wait for anything: any moment will do
        kill $pid 2>/dev/null; wait $pid; code=$?
        no_leftovers >/dev/null || half=1
        case $code in
        0 | 143) ;;             # 143: it had not begun
        1) grep -q 'failed (1 EINTERRUPTED) at ' "$tmp/err" || untold=1 ;;
        *) untold=$code ;;
        esac
done 2>/dev/null
ok 'a signal at any moment leaves no half-written file' same_word $half 0
ok 'init reports a signal that interrupts it' same_word $untold 0

# Called wrongly. usage WORDS ARGUMENT...
usage() {
        "$nodestrap" "${@:2}" >"$tmp/out" 2>"$tmp/err" </dev/null; code=$?
        ok "nodestrap exits with 2: $1" same_word $code 2
        ok "the last line says: $1" same_word "$(last_line)" "nodestrap: failed (2 EUSAGE) at $1"
        ok "stderr has one line: $1" same_word "$(wc -l <"$tmp/err")" 1
}
usage 'start: command "innit" is not known; see nodestrap --help; did you mean init?' innit
usage 'start: init takes no "user-data.yaml" after its name; name a source by -c, as in -c file://PATH' init user-data.yaml
usage 'start: status takes no "it all" after its name; see nodestrap status --help' status it all
usage 'start: no command given; nodestrap --help lists them'
usage 'start: option --skpi is unknown; see nodestrap init --help; did you mean --skip?' init --skpi run
usage 'start: option --timoeut is unknown; see nodestrap plan --help' plan --output json --timoeut 5m
usage 'start: option --timoeut is unknown; see nodestrap --help; did you mean --timeout?' --timoeut 5m plan
usage 'start: option --config-source lacks its value; see nodestrap init --help' init --config-source
usage 'start: --skip takes config, devices or run, not "both"' init --skip both
usage 'start: --daemon takes containerd or kubelet, not "docker"' init --daemon docker
usage 'start: init does not take --instance-type; see nodestrap init --help' init --instance-type m5.large
usage "start: --root $tmp/none: No such file or directory" plan --root "$tmp/none"
usage 'source: configuration source "http://x" is neither imds://user-data nor file://PATH' plan --root "$root" -c http://x
usage 'detect: --instance-type: this version does not know the instance type "m5.lagre"; did you mean m5.large?' plan --root "$root" -c file:///good.yaml --instance-type m5.lagre
usage 'detect: --instance-type: this version does not know the instance type "p5.99xlarge"; did you mean p5.48xlarge?' plan --root "$root" -c file:///good.yaml --instance-type p5.99xlarge
usage 'detect: --kubelet-version: cannot read "new" as a version; write one such as 1.33.4' plan --root "$root" -c file:///good.yaml --instance-type m5.large --kubelet-version new
usage 'detect: --driver-version: cannot read "new" as a version; write one such as 580.159.04' plan --root "$root" -c file:///good.yaml --instance-type g5.xlarge --driver-version new
usage 'start: plan does not take --config-output; see nodestrap plan --help; did you mean --output?' plan -o json
"$nodestrap" plan --root "$root" -c file:///none.yaml >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'plan exits with 12 if a source is missing' same_word $code 12
ok 'the message names the missing source' says_last "nodestrap: failed (12 ESOURCE) at source: /none.yaml: cannot be opened as a configuration source below $root: No such file or directory"
settled
init -c http://x
ok 'a wrong option by hand does not change the verdict of the boot' eval '[ "$code" = 2 ] && says_last "at source: configuration source" && [ "$(verdict verdict)" = ok ] && unchanged'
bash -c 'export SYSTEMD_EXEC_PID=$$; exec "$@"' bash "$nodestrap" init --root "$root" -c http://x 2>"$tmp/err"; code=$?
ok 'a wrong option of a unit changes the verdict of the boot' reported 2 EUSAGE source
# A copy, since the build may lie where only root can look.
if [ "$(id -u)" = 0 ] && chmod 755 "$tmp" && install -m 755 "$nodestrap" "$tmp/nodestrap" && setpriv --reuid 65534 --clear-groups test -x "$tmp/nodestrap" 2>/dev/null; then
        setpriv --reuid 65534 --clear-groups "$tmp/nodestrap" init 2>"$tmp/err"; code=$?
        ok 'init without root exits with 2' same_word $code 2
        ok 'init without root has one line that says why' same_word "$(cat "$tmp/err")" \
                'nodestrap: failed (2 EUSAGE) at start: init changes the machine and needs root; nodestrap plan shows what it would do, without root'
else
        skip 'init without root' 'nobody else to be'
fi
done_testing
