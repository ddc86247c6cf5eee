#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A good configuration on a machine that does not take it: what cannot be written, who is in the way, who interrupts, who calls wrongly.
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
        ok "$1" fails 40 EFILE "$2"
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
        ok 'with some space freed it succeeds' same_word "$code" 0
        umount "$root/etc"
        rmdir "$root/etc" && mv "$root/etc.real" "$root/etc"
        mkdir -p "$root${cache%/*}" && mount -t tmpfs -o size=16k none "$root${cache%/*}" && echo '{"spec": {}}' >"$root$cache" && cat /dev/zero >"$root${cache%/*}/filler" 2>/dev/null
        init --config-cache "$cache"
        ok 'no room for the cached configuration' same_word "$code" 0
        ok 'no room for the cached configuration: it is said' says "$cache cannot be written; the next run reads its sources again"
        ok 'no room for the cached configuration: an older one does not stay' test ! -e "$root$cache"
        umount "$root${cache%/*}"
        mount -t tmpfs -o ro none "$root/run"
        init
        ok 'a read-only /run' same_word "$code" 40
        ok 'a read-only /run: nothing is begun' unchanged
        ok 'a read-only /run: the last line says what it is for' says_last '(40 EFILE) at detect: /run/nodestrap/lock cannot be created: Read-only file system; make /run writable for root'
        ok 'a read-only /run: one warning that the status is old' same_word "$(grep -c 'status.json and metrics.prom beside it are out of date' "$tmp/err")" 1
        umount "$root/run"
else
        skip 'read-only and full file systems' 'no mount namespaces here'
fi

# In the way: nodestrap replaces only files, and writes through nothing else.
settled
rm "$root$config" && mkdir "$root$config"
init
withheld 'a directory where a file belongs' write-file:$config 'cannot be written: Is a directory; move the directory away'
settled
echo 'not ours' >"$root/elsewhere"
ln -sf /elsewhere "$root$config"
init
ok 'a symbolic link where a file belongs: init succeeds' same_word "$code" 0
ok 'a symbolic link: what it points to is as it was' same_word "$(cat "$root/elsewhere")" 'not ours'
ok 'a symbolic link: a file is there instead' test ! -L "$root$config"
settled
rm -r "${root:?}/run" && echo >"$root/run"
init
ok 'a file at /run' same_word "$code" 40
ok 'a file at /run: nothing is begun' unchanged

# Facts that nodestrap needs of the machine
settled
rm "$root"/etc/eks/*-version.txt
init
ok 'no versions' fails 20 EFACTS detect
ok 'no versions: the first' says_last 'the version of kubelet is not known: /etc/eks/kubelet-version.txt does not exist below'
ok 'no versions: the second' says 'error: the version of containerd is not known: /etc/eks/containerd-version.txt does not exist'
echo unknown | tee "$root/etc/eks/kubelet-version.txt" >"$root/etc/eks/containerd-version.txt"
init
ok 'versions that are none' fails 20 EFACTS detect
ok 'versions that are none: the file is named' says_last '/etc/eks/kubelet-version.txt: its content is not valid: it has no version such as 1.33.4'

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
ok 'SIGTERM while the user data is waited for' fails 1 EINTERRUPTED source
ok 'is told from where' says_last "stopped by SIGTERM while asking the instance metadata service at $imds for /latest/user-data"
sed '/InstanceIdNodeName/d' "$tmp/changed" >"$tmp/by-name"
mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 --user-data "$tmp/by-name" --fault ec2:throttle
interrupted 'trying again'
ok 'SIGTERM while EC2 is waited for' fails 1 EINTERRUPTED detect
ok 'is told from where' says_last "stopped by SIGTERM while asking EC2 at $ec2 for DescribeInstances"
heeds=HUP by=HUP interrupted 'trying again'      # also where these tests run below nohup(1)
ok 'SIGHUP, of a session that is lost, is a request to stop, too' fails 1 EINTERRUPTED detect
ok 'by its own name' says_last "stopped by SIGHUP while asking EC2 at $ec2 for DescribeInstances"
mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 --user-data "$tmp/by-name" --fault 'ec2:throttle*1'
(trap '' HUP; by=HUP interrupted 'trying again'; exit "$code")
ok 'but not where nohup(1) has it ignored' same_word $? 0
settled
mock --imds "$fixtures/imds-m5" --user-data "$tmp/changed"
exec 7<"$root/run/nodestrap/lock"
flock 7
interrupted 'Another nodestrap process holds'
ok 'SIGTERM while another init is waited for' fails 1 EINTERRUPTED detect
ok 'is told' says_last 'stopped by SIGTERM; nothing was changed'

# Two at once: both wait for us, then one after the other does it all. The second plans when the first has ended.
listing >"$tmp/before"
for i in 1 2; do
        mkfifo "$tmp/said$i"
        "$nodestrap" init --root "$root" 2>"$tmp/said$i" 7<&- & pids[i]=$!
done
exec 5<"$tmp/said1" 6<"$tmp/said2"
for fd in 5 6; do while read -r line <&$fd && [[ $line != *waiting* ]]; do [[ $line != *'Applying plan'* ]] || early=1; done; done
ok 'neither plans before it is alone' same_word "${early:-0}" 0
exec 7<&-
for fd in 5 6; do cat <&$fd >"$tmp/end$fd"; done
for i in 1 2; do wait "${pids[i]}"; ok "the init that is number $i of two succeeds" same_word $? 0; done
ok 'one of them had something to do' same_word "$(cat "$tmp/end5" "$tmp/end6" | grep -c ' done, ')" 1
ok 'the other had not' same_word "$(cat "$tmp/end5" "$tmp/end6" | grep -c 'ok: nothing to change')" 1
ok 'no temporary file stays' no_leftovers

# A signal at any moment: no file is half written, and the last line is about it, unless it came before or after everything.
half=0 untold=0 at_exit=$(trap -p EXIT)
for ((i = 0; i < 12; i++)); do
        settled
        trap - EXIT             # which a child that is hit before it has become nodestrap would run, too
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
ok 'and is told' same_word $untold 0

# Called wrongly. usage WORDS ARGUMENT...
usage() {
        "$nodestrap" "${@:2}" >"$tmp/out" 2>"$tmp/err" </dev/null; code=$?
        ok "exit 2: $1" same_word $code 2
        ok "one line: $1" same_word "$(last_line)" "nodestrap: failed (2 EUSAGE) at $1"
        ok "no other: $1" same_word "$(wc -l <"$tmp/err")" 1
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
ok 'a source that is not there' same_word $code 12
ok 'is named' says_last "nodestrap: failed (12 ESOURCE) at source: /none.yaml: cannot be opened as a configuration source below $root: No such file or directory"
settled
init -c http://x
ok 'what is mistyped by hand is no verdict of the boot' eval '[ "$code" = 2 ] && says_last "at source: configuration source" && [ "$(verdict verdict)" = ok ] && unchanged'
bash -c 'export SYSTEMD_EXEC_PID=$$; exec "$@"' bash "$nodestrap" init --root "$root" -c http://x 2>"$tmp/err"; code=$?
ok 'what a unit says wrongly is one' reported 2 EUSAGE source
# A copy, since the build may lie where only root can look.
if [ "$(id -u)" = 0 ] && chmod 755 "$tmp" && install -m 755 "$nodestrap" "$tmp/nodestrap" && setpriv --reuid 65534 --clear-groups test -x "$tmp/nodestrap" 2>/dev/null; then
        setpriv --reuid 65534 --clear-groups "$tmp/nodestrap" init 2>"$tmp/err"; code=$?
        ok 'init without root' same_word $code 2
        ok 'is refused in one line' same_word "$(cat "$tmp/err")" \
                'nodestrap: failed (2 EUSAGE) at start: init changes the machine and needs root; nodestrap plan shows what it would do, without root'
else
        skip 'init without root' 'nobody else to be'
fi
done_testing
