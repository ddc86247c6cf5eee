#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `nodestrap status` of boots that are well, have failed, run or wait: each phase and the exit status. JSON has the same facts, and a browser
# shows the picture.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
follower=''
trap '[ -z "$follower" ] || kill "$follower" 2>/dev/null; rm -r "$tmp"' EXIT
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") oracle=$here/../oracles/status.py
for kind in ok failed running long config; do mkdir "$tmp/$kind" && python3 "$oracle" boot $kind "$tmp/$kind" || { echo "Bail out! no status to show"; exit 1; }; done
mkdir "$tmp/none"
status() { local kind=$1; shift; "$nodestrap" status --root "$tmp/$kind" "$@" >"$tmp/out" 2>"$tmp/err"; }
ends() { local want=$1 rc; shift; status "$@"; rc=$?; [ $rc = "$want" ] || { echo "$rc"; cat "$tmp/err"; false; }; }
shows() { grep -qE -- "$1" "$tmp/out" || { head -n 20 "$tmp/out"; false; }; }

ok 'status of a good boot begins with its counts, has no next command, and exits with 0' eval 'ends 0 ok --exit-code && head -n 1 "$tmp/out" | grep -x "ok: .* done, .* unchanged, 0 skipped, 0 failed; nodestrap status --long lists them" && ! shows "^next:"'
ok 'status names the instance, its type, its region and its cluster' shows '^instance i-0123456789abcdef0 \(p5.48xlarge, us-west-2\) of cluster training$'
ok 'status has the outcome and the time of each phase, also of join' shows '^phases: config ok 700.0 ms, devices ok 60.7 s, run ok 42.7 s, join ok 10.8 s$'
status ok --long
ok 'status --long names the step that kubelet waited for' shows '^critical path \(>\): kubelet started 67.8 s after the kernel; 47.9 s of await-fabric:fabric'
ok 'status --exit-code ends with the code of a failed boot' ends 33 failed --exit-code
ok 'status without --exit-code ends with 0 for a failed boot' ends 0 failed
ok 'status of a failed boot begins with the failure' eval 'head -n 1 "$tmp/out" | grep -x "failed (33 EFABRIC) at await-fabric:fabric in the devices phase:"'
texts() { mkdir -p "$tmp/$1/usr/lib/nodestrap" && awk -f "$here/../../conf/explain.awk" "$here"/../../debian/{nodestrap-codes.7,NodeConfig.5} >"$tmp/$1/usr/lib/nodestrap/explain"; }
texts failed; status failed
ok 'status has the look line and the do line of the code, as in codes(7)' eval 'shows "^look: nvidia-smi -q \| grep -A8 -i fabric; " && shows "^do: If nvidia-smi shows the state In Progress, allow more time"'
ok 'status says that the run phase is held after a failed devices phase' shows '^phases: config ok 700.0 ms, devices failed 310.7 s, run held 8.10 s$'
ok 'the next command for a failed boot is nodestrap explain with the code' shows '^next: nodestrap explain EFABRIC$'
step() { rm -rf "$tmp/step"; cp -r "$tmp/failed" "$tmp/step"; sed -i "s/EFABRIC/$1/; s/await-fabric:fabric/$2/" "$tmp/step/run/nodestrap/status.json"; status step; }
ok 'the look line and the do line name the failed unit in the place of UNIT' eval 'step EUNIT start-unit:containerd.service; shows "^look: journalctl -b -u containerd.service -n 50; systemctl cat containerd.service; nodestrap plan --show-secrets$" && shows "^do: .* systemctl reset-failed containerd.service; nodestrap init"'
ok 'the look line names the module, the file or the kernel setting that failed' eval 'step EMODULE load-module:efa; shows "^look: modprobe -v efa; " && step EFILE write-file:.etc.x && shows "^look: df -h .etc.x; " && step ESYSCTL set-sysctl:vm.x && shows "^look: sysctl vm.x; "'
ok 'the look line keeps MODULE if the failed step is of another kind' eval 'step EMODULE start-unit:a.service; shows "^look: modprobe -v MODULE; "'
cp -r "$tmp/ok" "$tmp/apart"; texts apart
sed -i 's/"verdict": "ok"/"verdict": "failed"/; s/"code": "OK"/"code": "EAPINAME"/; s/"exit": 0/"exit": 60/' "$tmp/apart/run/nodestrap/joined.json"
ok 'status --exit-code ends with the code of a node that has not joined' ends 60 apart --exit-code
ok 'status of a node that has not joined begins with NOT JOINED and the code' eval 'head -n 1 "$tmp/out" | grep -x "NOT JOINED (60 EAPINAME):" && shows "^look: " && shows "^init ok: .* 0 failed"'
ok 'the next command for a node that has not joined is nodestrap wait' shows '^next: nodestrap wait --timeout 10s$'
short() { local kind; for kind in ok failed running long config apart; do status "$kind" && [ "$(wc -l <"$tmp/out")" -le 8 ] || { echo "$kind"; cat "$tmp/out"; return 1; }; done; }
ok 'status of each kind of boot has at most eight lines' short
ok 'the short status has the sentence of a failure without the output of the unit' eval 'status failed; shows "^  GPUs 3 and 5 of 8 " && ! grep "its own words" "$tmp/out"'
ok 'status --long has the output of the failed unit and each step' eval 'status failed --long; shows "^ +fabricmanager: its own words$" && shows "^ +11.4 s +297.9 s  failed +\|=+\|  await-fabric:fabric$" && shows "^ +start +took  outcome$"'
ok 'status --long has one line for the steps that took no time, and JSON lists them' eval 'status long --long; shows "^  8 steps took no time \(see --output json\)$" && ! grep set-sysctl "$tmp/out" && status long --output json && shows set-sysctl'
cp -r "$tmp/ok" "$tmp/warned"; sed -i 's/"warnings": \[\]/"warnings": ["GPU 3 is slow", "GPU 5 is slow"]/' "$tmp/warned/run/nodestrap/status.json"
ok 'status of a good boot counts the warnings and shows the first one' eval 'status warned; shows "^ok: .* 0 failed, 2 warnings; " && shows "^warning: GPU 3 is slow$" && ! grep "GPU 5" "$tmp/out"'
ok 'status refuses --long together with --bundle' eval '! status ok --long --bundle - && says "leave out --long"'
ok 'a boot with only the config phase is unfinished, with exit status 3' eval 'ends 3 config --exit-code && shows "^unfinished: " && shows "^phases: config ok 700.0 ms, devices not begun, run not begun$"'
ok 'a running boot has exit status 3, and the next command is status --follow' eval 'ends 3 running --exit-code && shows "^running: " && shows "^next: nodestrap status --follow$"'
ok 'status of a running boot names the current steps' shows '^phases: .*, devices running: await-fabric:fabric \(since 17.2 s\), run running: take-turn:devices \(since 25.1 s\)$'
ok 'status does not show the ended config phase of a running boot as running' shows '^phases: config ok '
ok 'status fails below a root where nodestrap has never run' eval 'ends 12 none && says "(12 ESOURCE) at start: /run/nodestrap/status.json below $tmp/none is missing"'
mkdir -p "$tmp/damaged/run/nodestrap"; echo '{' >"$tmp/damaged/run/nodestrap/status.json"
ok 'the error for a damaged status.json says that it is not JSON' eval 'ends 12 damaged && says "(12 ESOURCE) at start: /run/nodestrap/status.json below $tmp/damaged cannot be shown: not JSON"'
ok 'status --follow fails below a root without /run' eval 'ends 12 none --follow && says "(12 ESOURCE) at start: /run/nodestrap below $tmp/none cannot be watched: No such file or directory"'
if unshare -m true 2>/dev/null; then
        fresh() { unshare -m sh -c 'mount -t tmpfs none /run && exec "$@"' sh "$nodestrap" status "$@" >"$tmp/out" 2>"$tmp/err"; }
        ok 'before the first init, status says that the boot is unfinished' eval 'fresh && shows "^unfinished: nodestrap init has not run since this machine booted$" && shows "^phases: config not begun, "'
        ok 'before the first init, the next command is systemctl status' shows '^next: systemctl status nodestrap-config.service$'
        ok 'before the first init, status --exit-code ends with 3' eval 'fresh --exit-code; [ $? = 3 ]'
        ok 'before the first init, JSON has the verdict unfinished and a next command' eval 'fresh --output json --exit-code; [ $? = 3 ] && shows "\"verdict\": \"unfinished\"" && shows "\"next\""'
else
        count=$((count + 1)); echo "ok $count - before the first init, status says that the boot is unfinished # SKIP no mount namespaces here"
fi
ok 'status --output json has the same phases, times and next command' eval 'ends 33 failed --output json --exit-code && python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
assert [(p[\"phase\"], p[\"verdict\"]) for p in d[\"phases\"]] == [(\"config\", \"ok\"), (\"devices\", \"failed\"), (\"run\", \"held\")], d[\"phases\"]
assert d[\"phases\"][1][\"beginUsec\"] == 5800000 and d[\"next\"] == \"nodestrap explain EFABRIC\" and d[\"node\"][\"region\"] == \"us-west-2\"
" "$tmp/out"'

# ---- on a terminal ----
on() { local columns=$1 kind=$2; shift 2; env -u NO_COLOR TERM=xterm "$@" python3 "$oracle" terminal "$columns" "$nodestrap" status --root "$tmp/$kind" --long >"$tmp/out"; }
ok 'status on a terminal has the verdict in colour' eval 'on 200 failed && head -n 1 "$tmp/out" | grep -F "$(printf "\033[31mfailed\033[0m (33 EFABRIC) ")"'
colourless() { "$@" && ! grep $'\e' "$tmp/out"; }
ok 'status has no colour with TERM=dumb, with NO_COLOR=1, or in a pipe' eval 'colourless on 200 failed TERM=dumb && colourless on 200 failed NO_COLOR=1 && colourless status failed && on 200 failed NO_COLOR= && shows $'"'\\e'"''
fits() { on 60 "$1" NO_COLOR=1 && ! grep -E '^.{61}' "$tmp/out" | grep '[^ ] [^ ]'; }
ok 'the lines fit a terminal of 60 columns, unless a word is longer' eval 'fits long && fits failed && shows "^    297.9 s  failed     await-fabric:fabric$"'
ok 'the lines in a pipe are not wrapped' eval 'status failed; shows "^  GPUs 3 and 5 .* brings other hardware$"'

# ---- explain ----
explain() { "$nodestrap" explain --root "$tmp/failed" "$@" >"$tmp/out" 2>"$tmp/err"; }
ok 'explain prints the entry of a code' eval 'explain EFABRIC && head -n 1 "$tmp/out" | grep -x "EFABRIC (33)" && shows "^    Do: If nvidia-smi shows the state In Progress, allow more time"'
ok 'explain accepts a code in lower case' eval 'explain efabric && shows "^EFABRIC \(33\)"'
ok 'explain prints the entries of a warning and of a key' eval 'explain plan-differs hugePages.mode && shows "^plan-differs$" && shows "^spec.instance.hugePages.mode$" && shows "^    mode: auto$"'
ok 'explain suggests the nearest word for an unknown word' eval '! explain EFABRC && says "\"EFABRC\" is neither a code nor a key; the nearest is EFABRIC;"'
ok 'explain without a word fails and shows an example' eval '! explain && says "nodestrap explain EFABRIC"'
ok 'explain names the missing file if the texts are not installed' eval '! "$nodestrap" explain --root "$tmp/none" EFABRIC 2>"$tmp/err" && says "/usr/lib/nodestrap/explain cannot be read: No such file or directory"'
every() { local code; for code in $(sed -n 's/^\.BR \(E[A-Z0-9]*\) " ([0-9]*)"$/\1/p' "$here/../../debian/nodestrap-codes.7"); do explain "$code" && grep -q '^    [^ ]' "$tmp/out" || { echo "$code"; return 1; }; done; }
ok 'every code of codes(7) has an entry' every

# ---- as it goes ----
later=$tmp/later; mkdir -p "$later/run"
follow() { : >"$tmp/followed"; env --default-signal=INT timeout 120 "$nodestrap" status --root "$1" --follow >"$tmp/followed" 2>&1 & follower=$!; }
tells() { for _ in {1..600}; do grep -qE -- "$1" "$tmp/followed" && return; kill -0 "$follower" 2>/dev/null || break; sleep .1; done; cat "$tmp/followed"; false; }
finish() { wait "$follower"; code=$?; follower=; }
ended() { [ $code = "$1" ] || { echo "$code"; cat "$tmp/followed"; false; }; }
told() { grep -qE -- "$1" "$tmp/followed" || { cat "$tmp/followed"; false; }; }
# The new file replaces the old one in one step: a reader sees one or the other.
becomes() { rm -rf "$tmp/next" && mkdir "$tmp/next" && python3 "$oracle" boot "$1" "$tmp/next" && mkdir -p "$later/run/nodestrap" && mv "$tmp/next/run/nodestrap/status.json" "$later/run/nodestrap/"; }
follow "$later"
becomes config; mkdir -p "$later/proc/sys/kernel/random" "$later/proc/71"; echo b-1 >"$later/proc/sys/kernel/random/boot_id"; echo nodestrap >"$later/proc/71/comm"
printf '5800000\t71\tstart\tdevices,run\n5900000\t71\tbegin\tawait-fabric:fabric\n6000000\t71\tunchanged\twrite-f' >"$later/run/nodestrap/progress"
ok 'status --follow shows the first step of a boot that began later' tells '^ *5\.90 s  devices,run +\.\.\. +await-fabric:fabric$'
ok 'status --follow waits for the rest of an incomplete line' eval '! grep write-f "$tmp/followed" && printf "ile:/etc/x\n" >>"$later/run/nodestrap/progress" && tells "unchanged  write-file:/etc/x$"'
becomes failed; printf '315100000\t71\tfailed\tawait-fabric:fabric\n566000000\t71\tend\tfailed\n' >>"$later/run/nodestrap/progress"
finish
ok 'status --follow ends with the code of the boot when it has a verdict' ended 33
ok 'status --follow shows how long each step took' told '^ *315\.1 s  devices,run +failed +await-fabric:fabric \(309\.2 s\)$'
ok 'status --follow shows the failure at the end' told '^failed \(33 EFABRIC\) at await-fabric:fabric in the devices phase:$'
follow "$tmp/running"
ok 'status --follow shows the steps of a running boot' tells '^ *33\.0 s .* done +start-unit:containerd.service \(3\.00 s\)$'
kill -INT "$follower"; finish
ok 'SIGINT ends status --follow with the verdict running and exit status 3' eval 'ended 3 && told "^running: "'
follow "$tmp/ok"; finish
ok 'status --follow prints the verdict of a finished boot and ends' eval 'ended 0 && told "^ok: "'
ok 'status --follow refuses --output json' eval '! "$nodestrap" status --follow --output json 2>"$tmp/err" && says "--follow prints only text"'
if [ "$(id -u)" = 0 ]; then
        chmod -R a+rX "$tmp"; cp "$nodestrap" "$tmp/nodestrap"; chmod 640 "$tmp"/running/run/nodestrap/{status.json,progress}; chgrp -R games "$tmp/running/run/nodestrap"
        ok 'a user in the group can read the status' eval 'setpriv --reuid 65534 --regid 65534 --groups games "$tmp/nodestrap" status --root "$tmp/running" >"$tmp/out" 2>&1; shows "^running: "'
        ok 'the error tells another user to join the group' eval '! setpriv --reuid 65534 --regid 65534 --clear-groups "$tmp/nodestrap" status --root "$tmp/running" --follow >"$tmp/out" 2>&1; shows "or join that group"'
fi

if python3 -c 'import shutil, sys; sys.exit(not any(map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))))'; then
        facts=('host ip-10-0-3-17' i-0123456789abcdef0 'cluster training' 'booted 2026-11-23T22:09:51Z' sha256:4b1f0c2d5a77a9e0d3b8c6f1e2a3948576bdc0e1f2a3b4c5d6e7f8091a2b3c4d)
        for kind in ok failed running long; do status $kind --output svg; cp "$tmp/out" "$tmp/$kind.svg"; done
        ok 'a browser shows pictures of a good, a failed, a running and a long boot' python3 "$oracle" pictures \
                "$tmp/ok.svg" 'nodestrap: ok' "${facts[@]}" '47.9 s' 'devices ok (60.7 s)' '> await-fabric:fabric' 'join: ok' await-ready -- \
                "$tmp/failed.svg" 'nodestrap: failed (33 EFABRIC) at await-fabric:fabric' "${facts[@]}" 'are still "In Progress" after 300 s' \
                'and a <stop> & start of the instance brings other hardware' '297.9 s' 'devices: failed' -- \
                "$tmp/running.svg" 'nodestrap: running' 'devices: running' await-fabric:fabric '7.90 s' -- \
                "$tmp/long.svg" 'nodestrap: ok' set-sysctl:net.ipv4.conf.eth0.rp_filter35
else
        count=$((count + 1)); echo "ok $count - a browser shows a boot # SKIP no chromium here"
fi
done_testing
