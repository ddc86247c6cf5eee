#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Unit actions against a real systemd: a container is booted, and this same script runs in it as SCRIPT of nsboot.sh. Plans are
# fed to tests/helpers/apply-tool.
set -u
U=/run/systemd/system L=/usr/lib/systemd/system K=nvidia-kmod-load TOOL=/opt/apply-tool n=0 bad=0

# unit NAME LINE... : a service; lines that begin with "After=" belong to [Unit]
unit() {
        local name=$1 line; shift
        { echo "[Unit]"; for line; do [[ $line != After=* ]] || echo "$line"; done
          echo "[Service]"; for line; do [[ $line = After=* ]] || echo "$line"; done; } >"$U/$name.service"
}
ours() { U=$L unit "$@"; }              # where a mask in /run comes before it
result() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else bad=1; echo "not ok $n - $2"; printf '%s\n' "$out" | sed 's/^/# /'; fi; }
# try NAME EXIT PATTERN... <plan : the tool ends with EXIT and each pattern (grep -E) is in its output
try() {
        local name=$1 want=$2 p rc miss=0; shift 2
        out=$($TOOL 2>&1); rc=$?
        [ $rc = "$want" ] || { miss=1; out+=$'\n'"exit $rc instead of $want"; }
        for p; do grep -qE -- "$p" <<<"$out" || { miss=1; out+=$'\n'"missing: $p"; }; done
        result $miss "$name"
}
# begin KEY <plan : the tool, beside all that follows. A step that must end by its deadline has one far beyond a busy machine
begin() { cat >"/run/late.$1.plan"; { $TOOL <"/run/late.$1.plan" >"/run/late.$1" 2>&1; echo $? >"/run/late.$1.rc"; } & late[$1]=$!; }
# late KEY NAME EXIT PATTERN... : what came of it, once it has ended
late() {
        local key=$1 name=$2 want=$3 rc p miss=0; shift 3
        wait "${late[$key]}"
        out=$(cat "/run/late.$key"); rc=$(cat "/run/late.$key.rc")
        [ "$rc" = "$want" ] || { miss=1; out+=$'\n'"exit $rc instead of $want"; }
        for p; do grep -qE -- "$p" <<<"$out" || { miss=1; out+=$'\n'"missing: $p"; }; done
        result $miss "$name"
}
declare -A late
await() { echo "await-unit $1.service deadline=${2:-60s}"; }
# holds NAME COMMAND... : the command succeeds
holds() { local name=$1; shift; out=$("$@" 2>&1); result $? "$name"; }
pid() { systemctl show -P MainPID "$1"; }
same() { [ "$1" = "$2" ] && [ "$1" != 0 ]; }
differ() { [ "$1" != "$2" ] && [ "$2" != 0 ]; }

guest() {
        local ready='/bin/sh -c "systemd-notify --ready; exec sleep inf"' FM E p q r t miss
        unit good Type=notify NotifyAccess=all "ExecStart=$ready"
        unit good2 Type=notify NotifyAccess=all "ExecStart=$ready"
        unit simple "ExecStart=/bin/sleep inf"
        unit fails Type=notify "ExecStart=/bin/sh -c \"echo 'one line'; printf 'bad \\\\033[31mflag\\\\n' >&2; exit 3\""
        unit panics Type=notify "ExecStart=/bin/sh -c \"echo 'one line'; echo 'panic: no such gate'; echo; echo 'goroutine 1 [running]:'; seq -f 'main.f%%g()' 40; exit 2\""
        unit exits 'ExecStart=/bin/sh -c "exit 0"'
        unit loop Restart=on-failure RestartSec=50ms 'ExecStart=/bin/sh -c "sleep 0.05; echo cannot read kubeconfig; exit 1"'
        unit late Restart=on-failure RestartSec=5 'ExecStart=/bin/sh -c "sleep 0.1; exit 1"'
        unit killed Type=notify 'ExecStart=/bin/sh -c "kill -SEGV $$$$"'
        unit never Type=notify "ExecStart=/bin/sh -c \"echo still loading; [ ! -p /run/begun ] || echo >/run/begun; exec sleep inf\""
        unit waits After=never.service "ExecStart=/bin/sleep inf"
        unit never-late Type=notify "ExecStart=/bin/sleep inf"; unit never-first Type=notify "ExecStart=/bin/sleep inf"
        unit waits-late After=never-first.service "ExecStart=/bin/sleep inf"
        unit stuck TimeoutStopSec=infinity "ExecStart=/bin/sleep inf" 'ExecStop=/bin/sh -c "read x </run/stopping"'
        unit cond "ExecStart=/bin/sleep inf"; printf '[Unit]\nConditionPathExists=/nonexistent\n' >>$U/cond.service
        unit noexec "ExecStart=/nonexistent/kubelet"
        unit once Type=oneshot "ExecStart=/bin/true"
        unit masked "ExecStart=/bin/true"; ln -sf /dev/null /etc/systemd/system/masked.service
        unit limited Type=notify StartLimitBurst=2 'ExecStart=/bin/sh -c "exit 1"'
        unit kubelet Type=notify 'ExecStart=/opt/kubelet'
        printf '%s\n' '#!/bin/sh' 'if [ -e /run/kubelet-panics ]; then printf "panic: unrecognized feature gate: Nope\n\ngoroutine 1 [running]:\nmain.main()\n" >&2; exit 2; fi' \
                'if [ -e /run/kubelet-json ]; then echo "{\"ts\":1.5,\"msg\":\"command failed\",\"err\":\"no \\\\\"such\\\\\" key\"}"; exit 1; fi' \
                'echo "I1127 first line err=\"not this\""; echo "E1127 02:46:12.3 5484 run.go:72] \"command failed\" err=\"no \\\\\"such\\\\\" key: maxPods\"" >&2; exit 1' >/opt/kubelet; chmod 755 /opt/kubelet
        ln -s good2.service $U/alias.service; ln -s fails.service $U/also.service
        unit environment Type=oneshot RemainAfterExit=yes "ExecStart=/bin/sh -c \"env >/run/env\""
        unit fickle TimeoutStartSec=infinity Type=notify NotifyAccess=all 'ExecStart=/bin/sh -c "[ ! -p /run/block ] || read x </run/block; systemd-notify --ready; exec sleep inf"'
        unit signalled 'ExecStart=/bin/sh -c "exec /opt/apply-tool </run/plan >/run/out 2>&1"'
        unit inside Type=oneshot 'ExecStart=/bin/sh -c "/opt/apply-tool </run/plan >/run/out 2>&1"'
        unit behind After=inside.service "ExecStart=/bin/sleep inf"
        unit behind2 After=behind.service "ExecStart=/bin/sleep inf"
        printf '[Unit]\nWants=inside.service behind.service\n' >$U/both.target         # one transaction: behind's job is there when inside's begins
        ours $K Type=oneshot RemainAfterExit=yes 'ExecStart=/bin/sh -c "echo >/run/loading; read x </run/go; exit $$x"'
        systemctl daemon-reload

        # what ends by its deadline, which is judged where its turn comes
        try "inputs 1" 0 '^done' <<<"start-unit fickle.service inputs=1 deadline=60s"
        mkfifo /run/block /run/stopping /run/loading /run/go
        systemctl start --no-block never-first $K; systemctl start stuck; read -r _ </run/loading
        begin never <<<"start-unit never-late.service inputs=1 deadline=25s"
        begin waits <<<"start-unit waits-late.service inputs=1 deadline=25s"
        begin fickle <<<"start-unit fickle.service inputs=2 deadline=25s"
        begin stuck <<<"stop-unit stuck.service state=make deadline=25s"
        begin await <<<"$(await $K 25s)"
        begin lenient <<<"$(await $K 25s) lenient=yes"

        try "a unit that reports ready" 0 '^done start-unit:good.service' <<<"start-unit good.service inputs=1 deadline=60s"
        p=$(pid good)
        try "the same again changes nothing" 0 '^unchanged start-unit:good.service' <<<"start-unit good.service inputs=1 deadline=60s"
        holds "and restarted nothing" same "$p" "$(pid good)"
        try "other inputs" 0 '^done start-unit:good.service' <<<"start-unit good.service inputs=2 deadline=60s"
        holds "restart it" differ "$p" "$(pid good)"
        q="start-unit good.service inputs=2 deadline=60s reads=/run/read"
        echo 1 >/run/read
        try "with a file that it reads" 0 '^done' <<<"$q"
        try "which nobody changed" 0 '^unchanged' <<<"$q"
        echo 22 >/run/read; p=$(pid good)
        try "which somebody edited" 0 '^done' <<<"$q"
        holds "so that it is restarted" differ "$p" "$(pid good)"
        echo 22 >/run/new; mv /run/new /run/read
        try "which was replaced" 0 '^done' <<<"$q"
        try "which nobody changed since" 0 '^unchanged' <<<"$q"
        systemctl start good2; p=$(pid good2)
        try "active without a record" 0 '^done start-unit:good2.service' <<<"start-unit good2.service inputs=1 deadline=60s"
        holds "is restarted: what it has read is not known" differ "$p" "$(pid good2)"
        systemctl stop good2
        try "stopped, with the same inputs" 0 '^done start-unit:good2.service' <<<"start-unit good2.service inputs=1 deadline=60s"
        try "a simple service" 0 '^done' <<<"start-unit simple.service inputs=1 deadline=60s"
        try "a oneshot" 0 '^done' <<<"start-unit once.service inputs=1 deadline=60s"
        try "a oneshot again" 0 '^unchanged' <<<"start-unit once.service inputs=1 deadline=60s"

        try "a unit that fails" 50 '^failed start-unit:fails.service: .*status 3; journalctl -u fails.service$' '^bad .*flag$' '^one line' <<<"start-unit fails.service inputs=1 deadline=60s"
        try "a quiet one, whose words are nobody's business" 50 '^failed start-unit:fails.service: .*status 3; journalctl -u fails.service$' <<<"start-unit fails.service inputs=1 deadline=60s quiet=yes"
        miss=0; grep -q -e flag -e 'one line' <<<"$out" && miss=1; result $miss "they are not told"
        try "a unit that fails, again" 50 '^bad .*flag$' <<<"start-unit fails.service inputs=1 deadline=60s"
        holds "control characters are gone" bash -c '! grep -q $'"'\033'"' <<<"$1"' _ "$out"
        try "a Go program that panics: why, not where" 50 '^failed start-unit:panics.service: .*status 2; journalctl -u panics.service$' '^panic: no such gate$' '^one line' <<<"start-unit panics.service inputs=1 deadline=60s"
        miss=0; grep -q goroutine <<<"$out" && miss=1; result $miss "without the trace of its stack"
        holds "a failure leaves no record" test ! -e /run/nodestrap/started/fails.service
        try "a unit that exits at once" 50 '^failed .*exits.service did not stay up: .*status 0' <<<"start-unit exits.service inputs=1 deadline=60s"
        try "kubelet has a code of its own, and its last sentence" 50 '^failed start-unit:kubelet.service: kubelet.service did not stay up: its process exited with status 1 and says "no \\"such\\" key: maxPods"; journalctl -u kubelet.service$' \
                'failed \(50 EKUBELET\)' <<<"start-unit kubelet.service inputs=1 deadline=60s quiet=yes"
        touch /run/kubelet-json
        try "also where it writes JSON" 50 'status 1 and says "no \\"such\\" key"; ' <<<"start-unit kubelet.service inputs=1 deadline=60s quiet=yes"
        touch /run/kubelet-panics
        try "also where it panics" 50 'status 2 and says "panic: unrecognized feature gate: Nope"; ' <<<"start-unit kubelet.service inputs=1 deadline=60s quiet=yes"
        holds "an alias is one" test "$(systemctl show -P Id alias)" = good2.service
        systemctl stop good2
        try "a unit behind an alias" 0 '^done start-unit:alias.service' <<<"start-unit alias.service inputs=1 deadline=60s"
        holds "runs" test "$(systemctl show -P ActiveState good2)" = active
        systemctl stop good2
        try "one behind an alias that ends" 50 '^failed start-unit:also.service: also.service did not stay up: .*status 3' <<<"start-unit also.service inputs=1 deadline=60s"
        try "a restart loop" 50 '^failed .*; journalctl -u loop.service$' '^cannot read kubeconfig$' <<<"start-unit loop.service inputs=1 deadline=60s"
        holds "a restart loop leaves no record" test ! -e /run/nodestrap/started/loop.service
        systemctl stop loop
        try "a unit that dies after a while" 50 '^failed .*late.service' <<<"start-unit late.service inputs=1 deadline=60s"
        try "a unit that is killed" 50 'killed by signal 11/SEGV' <<<"start-unit killed.service inputs=1 deadline=60s"
        try "a program that is not there" 50 'cannot be executed' '/nonexistent/kubelet' <<<"start-unit noexec.service inputs=1 deadline=60s"
        try "a condition that does not hold" 50 'Condition' <<<"start-unit cond.service inputs=1 deadline=60s"
        try "a missing unit" 50 'missing.service does not exist' <<<"start-unit missing.service inputs=1 deadline=60s"
        try "a masked unit" 50 'masked.service is masked' <<<"start-unit masked.service inputs=1 deadline=60s"
        for _ in 1 2 3 4 5 6; do systemctl start limited; done 2>/dev/null
        try "earlier failures do not count against the start limit" 50 'limited.service did not stay up: .*status 1' <<<"start-unit limited.service inputs=1 deadline=60s"

        late never "a unit that never reports ready" 51 '^failed .*not done after 25 s; the start job of never-late.service was running, the unit activating \(start\); see journalctl -u never-late.service$'
        late waits "a job that waits for another" 51 'the start job of waits-late.service was waiting for never-first.service'
        holds "and is withdrawn" bash -c 'for i in {1..600}; do systemctl list-jobs | grep -q waits-late.service || exit 0; sleep 0.1; done; systemctl list-jobs; exit 1'
        systemctl stop never-late never-first

        late fickle "inputs 2: too late" 51 '^failed'
        echo >/run/block; rm /run/block; systemctl start fickle
        try "inputs 1 again: it came up with 2 in the end" 0 '^done' <<<"start-unit fickle.service inputs=1 deadline=60s"

        systemctl stop good good2
        try "others go on after a failure, dependents do not" 50 '^failed start-unit:fails' '^skipped start-unit:good.service: start-unit:fails' '^done start-unit:good2' < <(printf '%s\n' "start-unit fails.service inputs=1 deadline=60s" \
                        "start-unit good.service inputs=1 deadline=60s after=start-unit:fails.service" \
                        "start-unit good2.service inputs=1 deadline=60s")
        holds "the dependent was not started" test "$(pid good)" = 0
        try "two chains at the same time" 51 '^done start-unit:good.service' '^failed start-unit:never' < <(printf '%s\n' "start-unit never.service inputs=1 deadline=1s" \
                        "start-unit good.service inputs=1 deadline=60s")
        systemctl stop never

        p="write-file $U/good.service.d/environment.conf content=[Service]\\nEnvironment=A="
        r=$'prune-files /var/lib/nodestrap/manifest.json\nreload-manager systemd deadline=60s after=prune-files:/var/lib/nodestrap/manifest.json'
        q="start-unit good.service inputs=env1 deadline=60s after=reload-manager:systemd"
        try "a drop-in: written, loaded, restarted" 0 '^done write-file' '^done reload-manager' '^done start-unit' <<<"${p}1\\n"$'\n'"$r"$'\n'"$q"
        holds "it took effect" grep -qz '^A=1$' "/proc/$(pid good)/environ"
        try "a second run changes nothing" 0 '^unchanged write-file' '^unchanged reload-manager' '^unchanged start-unit' <<<"${p}1\\n"$'\n'"$r"$'\n'"$q"
        rm -r /run/nodestrap
        try "nor does another boot load anew what systemd found at power-on" 0 '^unchanged write-file' '^unchanged reload-manager' <<<"${p}1\\n"$'\n'"$r"
        try "a run that ended before the reload" 0 '^done write-file' <<<"${p}2\\n"
        try "leaves it to the next" 0 '^unchanged write-file' '^done reload-manager' <<<"${p}2\\n"$'\n'"$r"
        holds "systemd has read it" test "$(systemctl show -P Environment good)" = A=2
        try "which is told once" 0 '^unchanged reload-manager' <<<"${p}2\\n"$'\n'"$r"
        try "a drop-in that is no longer asked for" 0 '^done prune-files' '^done reload-manager' <<<"$r"
        holds "is gone from systemd's mind too" test "$(systemctl show -P Environment good)" = ""
        try "which is told once, too" 0 '^unchanged reload-manager' <<<"$r"
        try "what systemd does not read" 0 '^done write-file' '^unchanged reload-manager' <<<"write-file /run/systemd/resolved.conf.d/x.conf content=x"$'\n'"$r"

        for p in 1 2 ""; do
                rm -f /run/env; systemctl stop environment
                try "DefaultEnvironment ${p:-removed}" 0 '^done reload-manager' '^done start-unit' < <(printf '%s\n' "${p:+write-file /etc/systemd/system.conf.d/environment.conf content=[Manager]\\nDefaultEnvironment=NODE_PROXY=$p\\n}" \
                        "$r" "start-unit environment.service inputs=default$p deadline=60s after=reload-manager:systemd")
                holds "daemon-reload brings it: ${p:-gone}" test "$(sed -n 's/^NODE_PROXY=//p' /run/env)" = "$p"
        done

        try "restart-unit leaves a stopped unit alone" 0 '^unchanged restart-unit:waits.service' <<<"restart-unit waits.service inputs=1 deadline=60s"
        holds "it is still stopped" test "$(pid waits)" = 0
        systemctl start waits; p=$(pid waits)
        try "which has read the new settings when it starts later" 0 '^unchanged' <<<"restart-unit waits.service inputs=1 deadline=60s"
        try "restart-unit of a running one" 0 '^done restart-unit:waits.service' <<<"restart-unit waits.service inputs=2 deadline=60s"
        holds "restarts it" differ "$p" "$(pid waits)"
        try "restart-unit of a missing one is a warning" 0 '^unchanged' '^warning unit-missing' <<<"restart-unit missing.service inputs=1 deadline=60s"

        echo "start-unit behind2.service inputs=1 deadline=60s" >/run/plan
        systemctl start --no-block behind        # waits for nothing yet: gives behind2 something to be ordered after
        systemctl stop behind; echo "start-unit behind.service inputs=1 deadline=60s" >/run/plan
        systemctl start inside; out=$(cat /run/out)
        holds "a unit ordered after the one we run in fails at once" grep -q 'behind.service would never start: After= orders it after inside.service' /run/out

        echo "start-unit never.service inputs=1 deadline=60s" >/run/plan
        printf 'start-unit waits.service inputs=1 after=start-unit:never.service\n' >>/run/plan
        mkfifo /run/begun; systemctl start signalled
        read -r -t 60 </run/begun
        systemctl stop signalled
        holds "SIGTERM in the middle ends it with a report" grep -q 'failed start-unit:never.service: stopped by SIGTERM' /run/out
        holds "and the rest is not begun" grep -q 'skipped start-unit:waits.service' /run/out

        # stop-unit
        unit stops Type=notify NotifyAccess=all "ExecStart=$ready"
        unit stops-badly "ExecStart=/bin/sleep inf" "ExecStopPost=/bin/false"
        unit returns Type=notify Restart=always RestartSec=1h 'ExecStart=/bin/sh -c "exit 1"'
        systemctl daemon-reload
        q="start-unit stops.service inputs=1 deadline=60s"
        ended() { ! grep -sq '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }    # systemd says so before it reaps the zombie
        try "a unit that is to be stopped runs" 0 '^done' <<<"$q"
        p=$(pid stops)
        try "stop-unit where nothing moves" 0 '^unchanged stop-unit:stops.service' <<<"stop-unit stops.service state=keep deadline=60s"
        holds "leaves it running" same "$p" "$(pid stops)"
        try "stop-unit where nobody knows" 30 '^failed stop-unit:stops.service: the disks were not read' <<<"stop-unit stops.service deadline=60s"
        holds "too" same "$p" "$(pid stops)"
        try "stop-unit" 0 '^done stop-unit:stops.service' <<<"stop-unit stops.service state=make deadline=60s"
        holds "stops it, and its process has ended by then" ended "$p"
        try "stop-unit again" 0 '^unchanged stop-unit:stops.service' <<<"stop-unit stops.service state=make deadline=60s"
        try "stop-unit of a unit that does not exist" 0 '^unchanged stop-unit:missing.service' <<<"stop-unit missing.service state=make deadline=60s"
        systemctl start stops-badly
        try "stop-unit of one whose last command fails" 0 '^done stop-unit:stops-badly.service' <<<"stop-unit stops-badly.service state=make deadline=60s"
        holds "so that it has failed" test "$(systemctl show -P ActiveState stops-badly)" = failed
        try "stop-unit of one that failed" 0 '^unchanged stop-unit:stops-badly.service' <<<"stop-unit stops-badly.service state=make deadline=60s"
        systemctl start returns 2>/dev/null
        holds "a unit waits to be started again" test "$(systemctl show -P SubState returns)" = auto-restart
        try "stop-unit of one that systemd is about to restart" 0 '^done stop-unit:returns.service' <<<"stop-unit returns.service state=make deadline=60s"
        holds "which it does not then" grep -qE '^(failed|inactive)$' < <(systemctl show -P ActiveState returns)
        late stuck "a unit that does not stop in time" 51 '^failed stop-unit:stuck.service: not done after 25 s; the stop job of stuck.service was running, the unit deactivating \(stop\)'
        echo >/run/stopping
        try "stopped and started by one plan" 0 '^unchanged stop-unit:stops.service' '^done start-unit:stops.service' < <(printf '%s\n' \
                "stop-unit stops.service state=make deadline=60s" "$q after=stop-unit:stops.service")
        p=$(pid stops)
        try "a unit that was started with the same is started anew all the same" 0 '^done stop-unit:stops.service' '^done start-unit:stops.service' \
                < <(printf '%s\n' "stop-unit stops.service state=make deadline=60s" "$q after=stop-unit:stops.service")
        holds "as another process" differ "$p" "$(pid stops)"

        # start-unit of what the image may have, and of NVIDIA's
        FM=nvidia-fabricmanager
        try "an optional unit that does not exist is a warning" 0 '^unchanged start-unit:missing.service' '^warning unit-missing: missing.service does not exist' \
                <<<"start-unit missing.service optional=yes deadline=60s"
        try "so is one that is masked" 0 '^unchanged start-unit:masked.service' '^warning unit-missing: masked.service is masked' <<<"start-unit masked.service optional=yes deadline=60s"
        try "an optional unit that fails has failed" 50 '^failed start-unit:fails.service' <<<"start-unit fails.service optional=yes deadline=60s"
        q="start-unit $FM.service retry=yes deadline=60s"
        ours $FM Type=forking PIDFile=/run/fm.pid "ExecStart=/bin/sh -c \"[ -e /run/fabric ] || { touch /run/fabric; echo 'no fabric yet'; exit 1; }; sleep inf & echo \$\$! >/run/fm.pid\""
        ln -s $L/$FM.service /etc/systemd/system/multi-user.target.wants/; systemctl daemon-reload      # enabled, as in the image, and so never unloaded
        try "a start that fails is tried again" 0 "^done start-unit:$FM.service" "start-unit:$FM.service: $FM.service did not stay up: its command /bin/sh \(status 1\) failed; journalctl -u $FM.service and /var/log/fabricmanager.log; start 1 failed, the next one is in 5 s" <<<"$q"
        holds "and what it said last, which nobody has looked through for secrets, is not repeated" bash -c '! grep -q "no fabric yet" <<<"$1"' _ "$out"
        p=$(pid $FM); rm -r /run/nodestrap
        try "fabric manager that runs and reads nothing of ours" 0 "^unchanged start-unit:$FM.service" <<<"$q"
        holds "is not restarted, whoever has started it" same "$p" "$(pid $FM)"
        systemctl stop $FM; rm /run/fabric
        ours $FM Type=forking PIDFile=/run/fm.pid Restart=on-failure RestartSec=50ms "ExecStart=/bin/sh -c \"echo >>/run/fabric; [ \$\$(wc -l </run/fabric) -ge 4 ] || exit 1; sleep inf & echo \$\$! >/run/fm.pid\""
        printf '[Unit]\nStartLimitBurst=3\n' >>$L/$FM.service; systemctl daemon-reload; rm -r /run/nodestrap
        try "one that systemd restarts until its limit is reached is started again behind it" 0 "^done start-unit:$FM.service" 'start 1 failed, the next one is in 5 s' <<<"$q"
        holds "and systemd restarted it" test "$(wc -l </run/fabric)" = 4
        systemctl stop $FM; rm /run/fabric; ours $FM Type=forking PIDFile=/run/fm.pid "ExecStart=/bin/sh -c \"[ -e /run/fabric ] || { touch /run/fabric; echo 'no fabric yet'; exit 1; }; sleep inf & echo \$\$! >/run/fm.pid\""; systemctl daemon-reload
        try "without time for another start" 33 "^failed start-unit:$FM.service: .*status 1.*and /var/log/fabricmanager.log" 'failed \(33 EFABRICMANAGER\)' <<<"start-unit $FM.service retry=yes deadline=4s"
        ours $FM Type=forking "ExecStart=/bin/sh -c \"echo 'warning Nothing to do [NV_WARN_NOTHING_TO_DO]'; exit 0\""; systemctl daemon-reload
        try "fabric manager that finds nothing to do" 33 "$FM.service did not stay up: it found no NVSwitch: .*journalctl -u $FM.service and /var/log/fabricmanager.log$" '^warning Nothing to do' <<<"start-unit $FM.service deadline=60s"
        ours $FM Type=oneshot ExecCondition=/bin/false "ExecStart=/bin/true"; systemctl daemon-reload
        try "one that is skipped by its ExecCondition=" 33 'its ExecCondition= /bin/false \(status 1\) failed, so systemd did not start it' <<<"$q"
        printf '[Unit]\nConditionPathExists=|!/usr\nConditionPathExists=|/etc\n' >>$L/$FM.service; systemctl daemon-reload
        try "and not by the condition of two that need not hold" 33 'its ExecCondition= /bin/false \(status 1\) failed, so systemd did not start it' <<<"$q"
        ours $FM Type=oneshot "ExecStart=/bin/true"; printf '[Unit]\nConditionPathExists=!/usr\nConditionPathExists=/etc\n' >>$L/$FM.service; systemctl daemon-reload
        try "one that is skipped by a condition names it" 33 'did not stay up: ConditionPathExists=!/usr is not met, so systemd did not start it' <<<"$q"
        holds "and was not tried again" bash -c '! grep -q "start 1 failed" <<<"$1"' _ "$out"
        ours $FM Type=notify NotifyAccess=all 'ExecStart=/bin/sh -c "echo $$$$ >/run/activating; read x </run/ready; systemd-notify --ready; exec sleep inf"'
        systemctl daemon-reload; mkfifo /run/activating /run/ready; systemctl start --no-block $FM; read -r p </run/activating
        unit goes-on Type=oneshot 'ExecStart=/bin/sh -c "echo >/run/ready"'; systemctl daemon-reload        # begins when the other start was asked for
        try "a start that is under way is joined" 0 "^done start-unit:$FM.service" <<<"$q"$'\n'"start-unit goes-on.service inputs=1 deadline=60s"
        holds "not begun anew" same "$p" "$(pid $FM)"

        # mask-unit, unmask-unit
        q="mask-unit $FM.service deadline=60s"
        try "mask-unit stops" 0 "^done mask-unit:$FM.service" <<<"$q"
        holds "the process" ended "$p"
        holds "and masks until the next boot" test "$(systemctl show -P UnitFileState $FM) $(systemctl show -P ActiveState $FM)" = "masked-runtime inactive"
        try "mask-unit again" 0 "^unchanged mask-unit:$FM.service" <<<"$q"
        try "mask-unit of a unit that does not exist" 0 '^unchanged mask-unit:missing.service' <<<"mask-unit missing.service deadline=60s"
        try "start-unit of a unit with such a mask" 50 "$FM.service is masked; run systemctl unmask --runtime $FM.service" <<<"start-unit $FM.service deadline=60s"
        try "unmask-unit" 0 "^done unmask-unit:$FM.service" <<<"unmask-unit $FM.service deadline=60s"
        holds "it can be started again" test "$(systemctl show -P LoadState $FM)" = loaded
        try "unmask-unit again" 0 "^unchanged unmask-unit:$FM.service" <<<"unmask-unit $FM.service deadline=60s"
        try "unmask-unit of a unit that does not exist" 0 '^unchanged unmask-unit:missing.service' <<<"unmask-unit missing.service deadline=60s"
        try "unmask-unit of one that an administrator has masked" 50 '^failed unmask-unit:masked.service: .*systemctl unmask masked.service' <<<"unmask-unit masked.service deadline=60s"
        holds "leaves that mask" test -L /etc/systemd/system/masked.service
        U=/etc/systemd/system unit hides "ExecStart=/bin/sleep inf"; systemctl daemon-reload; systemctl start hides; p=$(pid hides)
        q="mask-unit hides.service deadline=60s"
        try "mask-unit of one with a file in /etc, which hides a mask in /run/systemd/system" 0 '^done mask-unit:hides.service' <<<"$q"
        holds "stops it" ended "$p"
        holds "masks it until the next boot" test "$(systemctl show -P LoadState hides) $(systemctl show -P UnitFileState hides)" = "masked masked-runtime"
        holds "nobody can start it" bash -c '! systemctl start hides'
        try "the same again" 0 '^unchanged mask-unit:hides.service' <<<"$q"
        try "unmask-unit of it" 0 '^done unmask-unit:hides.service' <<<"unmask-unit hides.service deadline=60s"
        holds "leaves nothing in its way" systemctl start hides
        try "and masked again" 0 '^done mask-unit:hides.service' <<<"$q"
        U=/etc/systemd/system.control; mkdir -p $U; unit hides "ExecStart=/bin/sleep inf"; U=/run/systemd/system; systemctl daemon-reload; systemctl start hides; p=$(pid hides)
        try "one with a file that comes before every such mask is a warning" 0 '^done mask-unit:hides.service' '^warning unit-not-masked: hides.service does not run, but' <<<"$q"
        holds "but stops it" ended "$p"
        try "that one again" 0 '^unchanged mask-unit:hides.service' '^warning unit-not-masked' <<<"$q"
        rm -r /etc/systemd/system.control; systemctl daemon-reload

        # await-unit
        try "await-unit of a unit that does not exist" 0 '^unchanged await-unit:missing.service' <<<"$(await missing)"
        try "of one that never began" 0 '^unchanged await-unit:waits.service' <<<"$(systemctl stop waits; await waits)"
        holds "it is not started" test "$(systemctl show -P ActiveState waits)" = inactive
        try "of one whose condition was not met" 0 '^unchanged await-unit:cond.service' <<<"$(systemctl start cond; await cond)"
        try "of one that runs" 0 '^unchanged await-unit:good.service' <<<"$(systemctl start good; await good)"
        late await "of one at work that does not end in time" 33 "^failed await-unit:$K.service: not done after 25 s; the job of $K.service was running, the unit activating \(start\)"
        late lenient "a lenient one is a warning then, too" 0 "^unchanged await-unit:$K.service" "^warning unit-failed: not done after 25 s; the job of $K.service was running"
        holds "whose job is left alone" bash -c "systemctl list-jobs | grep -q $K"
        { await $K; echo "start-unit good2.service inputs=1 deadline=60s after=await-unit:$K.service"; } >/run/plan
        systemctl stop good2; $TOOL </run/plan >/run/out 2>&1 & p=$!
        echo 0 >/run/go; wait $p; out=$(cat /run/out)
        holds "of one at work that ends well" grep -q "^unchanged await-unit:$K.service" /run/out
        holds "comes before what is after it" bash -c "[ \$(systemctl show -P ActiveEnterTimestampMonotonic $K) -lt \$(systemctl show -P ActiveEnterTimestampMonotonic good2) ]"
        systemctl stop $K; systemctl start --no-block $K; read -r _ </run/loading; await $K >/run/plan; $TOOL </run/plan >/run/out 2>&1 & p=$!
        echo 4 >/run/go; wait $p; out=$(cat /run/out)
        holds "of one at work that fails" grep -qE "^failed await-unit:$K.service: $K.service failed: .*status 4" /run/out
        ours $K Type=oneshot 'ExecStart=/bin/sh -c "echo no such module; exit 1"'; systemctl daemon-reload; systemctl start $K 2>/dev/null
        try "of one that failed before" 33 "^failed await-unit:$K.service: $K.service failed: .*status 1; journalctl -u $K.service$" '^no such module$' 'failed \(33 EDRIVER\)' <<<"$(await $K)"
        try "a lenient one is a warning" 0 "^unchanged await-unit:$K.service" "^warning unit-failed: $K.service failed" <<<"$(await $K) lenient=yes"
        # A step behind a wait releases the gate: nodestrap knows that the wait is longer than the time of the unit behind the gate
        ours $K Type=oneshot ExecStart=/bin/true; printf '[Unit]\nAfter=gate.service\n' >>$L/$K.service
        unit gate Type=oneshot RemainAfterExit=yes 'ExecStart=/bin/sh -c "echo >/run/loading; read x </run/go"'
        unit longer Type=oneshot 'ExecStart=/bin/sleep inf'; unit lets-go Type=oneshot 'ExecStart=/bin/sh -c "echo >/run/go"'; systemctl daemon-reload
        systemctl start --no-block gate longer $K; read -r _ </run/loading
        try "the time of one that waits for what everything waits for counts from there" 0 "^unchanged await-unit:$K.service" '^done start-unit:lets-go.service' \
                <<<"$(await gate 60s)"$'\n'"$(await $K 8s) lenient=yes timed-from=await-unit:gate.service"$'\n'"$(await longer 8500ms) lenient=yes"$'\n'"start-unit lets-go.service deadline=60s after=await-unit:longer.service"
        holds "and it was not given up" bash -c "! grep 'warning.*$K' <<<\"\$1\"" _ "$out"
        systemctl stop gate longer $K
        await behind 60s >/run/plan; systemctl stop behind inside; systemctl start both.target
        holds "of one that waits for us ends at once" grep -q 'behind.service would never start: After= orders it after inside.service' /run/out
        echo "$(await behind 60s) optional=yes" >/run/plan; systemctl stop behind inside; systemctl start both.target
        unit behind-run After=nodestrap-run.service "ExecStart=/bin/sleep inf"; cp $U/inside.service $U/nodestrap-devices.service
        unit nodestrap-run Type=oneshot 'ExecStart=/bin/sh -c "echo >/run/loading; read x </run/go"'; systemctl daemon-reload
        cp /run/out /run/out-before; echo "start-unit behind-run.service deadline=60s" >/run/plan
        systemctl start --no-block nodestrap-run; read -r _ </run/loading; systemctl start nodestrap-devices; echo >/run/go
        holds "in the devices phase one behind the run phase's is named with that" grep -q 'behind-run.service would never start: After= orders it after nodestrap-run.service' /run/out
        cp /run/out-before /run/out
        holds "one that may come behind us is left to come" bash -c '! grep -E "warning|^failed" /run/out && grep "^unchanged await-unit:behind" /run/out'

        # mark-node: what systemd makes of the file that people have patched, and of ours behind it
        E=/etc/eks/kubelet/environment; mkdir -p /etc/eks/kubelet
        printf '#!/bin/bash\nname=$1; shift; printf "%%s\\0" "$@" >"/run/words.$name"\n' >/opt/tell; chmod 755 /opt/tell
        unit tell-before Type=oneshot EnvironmentFile=$E 'ExecStart=/opt/tell before $NODEADM_KUBELET_ARGS'
        unit tell-tainted Type=oneshot EnvironmentFile=$E EnvironmentFile=-/run/nodestrap/kubelet-environment 'ExecStart=/opt/tell tainted $NODEADM_KUBELET_ARGS'
        systemctl daemon-reload
        t="mark-node /run/nodestrap/kubelet-environment"
        q="start-unit fails.service deadline=60s"$'\n'"$t after-any=start-unit:fails.service"
        for r in 'NODEADM_KUBELET_ARGS=--a=1 --b=2' '# NODEADM_KUBELET_ARGS=no\nA=1\nNODEADM_KUBELET_ARGS="--a=b\\\\ c --d=\\"e f\\""\nB="x\ny"' "NODEADM_KUBELET_ARGS='--a=\"b c\"' --d  " \
                'NODEADM_KUBELET_ARGS=--a=1 \\\n --b=2\\ \n' '  NODEADM_KUBELET_ARGS =  --a=x\\"y\n;c\n# d\n' 'NODEADM_KUBELET_ARGS=--one\r\nNODEADM_KUBELET_ARGS=--two=$HOME%%n' \
                'NODEADM_KUBELET_ARGS="--a=`$x`\\q\\`" "b"\x27c d\x27 e" f' 'NODEADM_KUBELET_ARGS=\nOTHER=1' 'junk\n=x\nNODEADM_KUBELET_ARGS=--é="\\\\\\\\"\x27\x27' 'NODEADM_KUBELET_ARGS="--open=\x27it' \
                "NODEADM_KUBELET_ARGS=--json='{\"k\": \"v w\"}' --last=\\\\\\\\"; do
                printf '%b' "$r" >$E; $TOOL <<<"$q" >/run/out 2>&1; systemctl start tell-before tell-tainted
                { cat /run/words.before; printf '%s\0' --node-labels=nodestrap/unhealthy=EUNIT --register-with-taints=nodestrap/unhealthy=EUNIT:NoSchedule; } >/run/words.want
                [ -s /run/words.before ] && [ "$(tr -d '\0' </run/words.before)" ] || printf '%s\0' --node-labels=nodestrap/unhealthy=EUNIT --register-with-taints=nodestrap/unhealthy=EUNIT:NoSchedule >/run/words.want
                out=$(tr '\0' '|' </run/words.want; echo; tr '\0' '|' </run/words.tainted; echo; cat /run/nodestrap/kubelet-environment)
                holds "arguments kept: ${r//[$'\n\r']/ }" cmp /run/words.want /run/words.tainted
        done
        echo 'NODEADM_KUBELET_ARGS=--v=2 --register-with-taints=a=b:NoExecute --v=3' >$E; chmod 600 $E
        try "mark-node after a failure" 50 '^done mark-node' '^warning node-tainted' <<<"$q"
        holds "writes what the file says, with its mode" test "$(stat -c %a /run/nodestrap/kubelet-environment)" = 600
        holds "the user's taints are kept" grep -q 'register-with-taints=a=b:NoExecute,nodestrap/unhealthy=EUNIT:NoSchedule$' /run/nodestrap/kubelet-environment
        try "again" 50 '^unchanged mark-node' <<<"$q"
        echo 'NODEADM_KUBELET_ARGS=--v=2' >$E
        try "with planned taints" 50 '^done mark-node' <<<"$q words=c=d:NoSchedule,e:NoExecute"
        holds "they are kept, too" grep -q 'register-with-taints=c=d:NoSchedule,e:NoExecute,nodestrap/unhealthy=EUNIT:NoSchedule$' /run/nodestrap/kubelet-environment
        try "when all is well" 0 '^done mark-node' '^warning node-was-tainted' <<<"start-unit good.service inputs=1 deadline=60s"$'\n'"$t after-any=start-unit:good.service"
        holds "the file goes" test ! -e /run/nodestrap/kubelet-environment
        try "and stays away" 0 '^unchanged mark-node' <<<"$t"

        mv /run/systemd/private /run/systemd/p; mv /run/dbus/system_bus_socket /run/dbus/s
        try "systemd is not there" 50 'nodestrap cannot reach systemd' <<<"start-unit good.service inputs=9"
        mv /run/dbus/s /run/dbus/system_bus_socket
        try "over the system bus" 0 '^done start-unit:good' <<<"start-unit good.service inputs=over-the-bus deadline=60s"
        mv /run/systemd/p /run/systemd/private
        echo "1..$n"
        exit $bad
}

[ ! -d /vmtest ] || guest
skip() { echo "1..1"; echo "ok 1 - units # SKIP $1"; exit 0; }
tree=$(mktemp -d) && trap 'rm -rf "$tree"' EXIT
tool=${HELPERS:-build/tests/helpers}/apply-tool
chmod 755 "$tree"; mkdir -p "$tree/opt" "$tree/usr/lib/x86_64-linux-gnu" && cp "$tool" "$tree/opt/" || exit 1
for l in $(ldd "$tool" | awk '/lib(a|ub)san/ { print $3 }'); do cp "$l" "$tree/usr/lib/x86_64-linux-gnu/"; done
out=$("$(dirname "$0")/../tools/nsboot.sh" -t 400 -d 0 -S "${SUITE:-bookworm}" -p "$tree" "$0" 2>"$tree/stderr"); rc=$?
why=$(sed -n 's/.*skip: //p' "$tree/stderr" | tail -1)
[ $rc != 77 ] || skip "$why"
printf '%s\n' "$out"
[ $rc = 0 ] || sed 's/^/# /' "$tree/stderr"
exit $rc
