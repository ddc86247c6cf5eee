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
# begin KEY <plan : starts the tool in the background. Its deadline is long, so that a busy machine does not change the result
begin() { cat >"/run/late.$1.plan"; { $TOOL <"/run/late.$1.plan" >"/run/late.$1" 2>&1; echo $? >"/run/late.$1.rc"; } & late[$1]=$!; }
# late KEY NAME EXIT PATTERN... : waits for that tool and judges its output
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

        # These end by their deadline; late judges each of them further below.
        try "start-unit succeeds with inputs 1" 0 '^done' <<<"start-unit fickle.service inputs=1 deadline=60s"
        mkfifo /run/block /run/stopping /run/loading /run/go
        systemctl start --no-block never-first $K; systemctl start stuck; read -r _ </run/loading
        begin never <<<"start-unit never-late.service inputs=1 deadline=25s"
        begin waits <<<"start-unit waits-late.service inputs=1 deadline=25s"
        begin fickle <<<"start-unit fickle.service inputs=2 deadline=25s"
        begin stuck <<<"stop-unit stuck.service state=make deadline=25s"
        begin await <<<"$(await $K 25s)"
        begin lenient <<<"$(await $K 25s) lenient=yes"

        try "start-unit succeeds when the unit reports ready" 0 '^done start-unit:good.service' <<<"start-unit good.service inputs=1 deadline=60s"
        p=$(pid good)
        try "start-unit with the same inputs is unchanged" 0 '^unchanged start-unit:good.service' <<<"start-unit good.service inputs=1 deadline=60s"
        holds "start-unit with the same inputs does not restart the unit" same "$p" "$(pid good)"
        try "start-unit with other inputs is done" 0 '^done start-unit:good.service' <<<"start-unit good.service inputs=2 deadline=60s"
        holds "start-unit with other inputs restarts the unit" differ "$p" "$(pid good)"
        q="start-unit good.service inputs=2 deadline=60s reads=/run/read"
        echo 1 >/run/read
        try "start-unit with a file that the unit reads is done" 0 '^done' <<<"$q"
        try "start-unit is unchanged if the file of the unit is unchanged" 0 '^unchanged' <<<"$q"
        echo 22 >/run/read; p=$(pid good)
        try "start-unit is done if the file of the unit was edited" 0 '^done' <<<"$q"
        holds "start-unit restarts the unit if its file was edited" differ "$p" "$(pid good)"
        echo 22 >/run/new; mv /run/new /run/read
        try "start-unit is done if the file of the unit was replaced" 0 '^done' <<<"$q"
        try "start-unit is unchanged after the unit has read the replaced file" 0 '^unchanged' <<<"$q"
        systemctl start good2; p=$(pid good2)
        try "start-unit of an active unit without a record is done" 0 '^done start-unit:good2.service' <<<"start-unit good2.service inputs=1 deadline=60s"
        holds "start-unit restarts an active unit without a record" differ "$p" "$(pid good2)"
        systemctl stop good2
        try "start-unit starts a stopped unit with the same inputs" 0 '^done start-unit:good2.service' <<<"start-unit good2.service inputs=1 deadline=60s"
        try "start-unit starts a simple service" 0 '^done' <<<"start-unit simple.service inputs=1 deadline=60s"
        try "start-unit runs a oneshot service" 0 '^done' <<<"start-unit once.service inputs=1 deadline=60s"
        try "start-unit does not run a oneshot service again" 0 '^unchanged' <<<"start-unit once.service inputs=1 deadline=60s"

        try "the error for a failed unit has its exit status and its last lines" 50 '^failed start-unit:fails.service: .*status 3; journalctl -u fails.service$' '^bad .*flag$' '^one line' <<<"start-unit fails.service inputs=1 deadline=60s"
        try "the error for a failed quiet unit has its exit status" 50 '^failed start-unit:fails.service: .*status 3; journalctl -u fails.service$' <<<"start-unit fails.service inputs=1 deadline=60s quiet=yes"
        miss=0; grep -q -e flag -e 'one line' <<<"$out" && miss=1; result $miss "the error for a failed quiet unit does not have its last lines"
        try "the error for a unit that fails again has its last lines" 50 '^bad .*flag$' <<<"start-unit fails.service inputs=1 deadline=60s"
        holds "the last lines of a unit have no control characters" bash -c '! grep -q $'"'\033'"' <<<"$1"' _ "$out"
        try "the error for a Go program that panics has the panic message" 50 '^failed start-unit:panics.service: .*status 2; journalctl -u panics.service$' '^panic: no such gate$' '^one line' <<<"start-unit panics.service inputs=1 deadline=60s"
        miss=0; grep -q goroutine <<<"$out" && miss=1; result $miss "the error for a Go program that panics has no stack trace"
        holds "a failed start leaves no record" test ! -e /run/nodestrap/started/fails.service
        try "a unit that exits at once is an error" 50 '^failed .*exits.service did not stay up: .*status 0' <<<"start-unit exits.service inputs=1 deadline=60s"
        try "the error EKUBELET has the last message of kubelet" 50 '^failed start-unit:kubelet.service: kubelet.service did not stay up: its process exited with status 1 and says "no \\"such\\" key: maxPods"; journalctl -u kubelet.service$' \
                'failed \(50 EKUBELET\)' <<<"start-unit kubelet.service inputs=1 deadline=60s quiet=yes"
        touch /run/kubelet-json
        try "the error for kubelet has its last message if kubelet writes JSON" 50 'status 1 and says "no \\"such\\" key"; ' <<<"start-unit kubelet.service inputs=1 deadline=60s quiet=yes"
        touch /run/kubelet-panics
        try "the error for kubelet has the panic message if kubelet panics" 50 'status 2 and says "panic: unrecognized feature gate: Nope"; ' <<<"start-unit kubelet.service inputs=1 deadline=60s quiet=yes"
        holds "systemd resolves an alias of a unit" test "$(systemctl show -P Id alias)" = good2.service
        systemctl stop good2
        try "start-unit of an alias is done" 0 '^done start-unit:alias.service' <<<"start-unit alias.service inputs=1 deadline=60s"
        holds "start-unit of an alias starts the unit" test "$(systemctl show -P ActiveState good2)" = active
        systemctl stop good2
        try "start-unit of an alias fails if the unit ends" 50 '^failed start-unit:also.service: also.service did not stay up: .*status 3' <<<"start-unit also.service inputs=1 deadline=60s"
        try "a restart loop is an error with the last lines of the unit" 50 '^failed .*; journalctl -u loop.service$' '^cannot read kubeconfig$' <<<"start-unit loop.service inputs=1 deadline=60s"
        holds "a restart loop leaves no record" test ! -e /run/nodestrap/started/loop.service
        systemctl stop loop
        try "a unit that dies after a while is an error" 50 '^failed .*late.service' <<<"start-unit late.service inputs=1 deadline=60s"
        try "the error for a killed unit names the signal" 50 'killed by signal 11/SEGV' <<<"start-unit killed.service inputs=1 deadline=60s"
        try "the error for a missing program names its path" 50 'cannot be executed' '/nonexistent/kubelet' <<<"start-unit noexec.service inputs=1 deadline=60s"
        try "a condition that is not met is an error that names it" 50 'Condition' <<<"start-unit cond.service inputs=1 deadline=60s"
        try "a missing unit is an error" 50 'missing.service does not exist' <<<"start-unit missing.service inputs=1 deadline=60s"
        try "a masked unit is an error" 50 'masked.service is masked' <<<"start-unit masked.service inputs=1 deadline=60s"
        for _ in 1 2 3 4 5 6; do systemctl start limited; done 2>/dev/null
        try "earlier failures do not count against the start limit" 50 'limited.service did not stay up: .*status 1' <<<"start-unit limited.service inputs=1 deadline=60s"

        late never "start-unit fails at its deadline if the unit never reports ready" 51 '^failed .*not done after 25 s; the start job for never-late.service was running, and the unit was activating \(start\); see journalctl -u never-late.service$'
        late waits "the error for a start job that waits names the unit that it waits for" 51 'the start job for waits-late.service was waiting for never-first.service'
        holds "nodestrap cancels a start job that has not run by the deadline" bash -c 'for i in {1..600}; do systemctl list-jobs | grep -q waits-late.service || exit 0; sleep 0.1; done; systemctl list-jobs; exit 1'
        systemctl stop never-late never-first

        late fickle "start-unit with inputs 2 fails at its deadline" 51 '^failed'
        echo >/run/block; rm /run/block; systemctl start fickle
        try "start-unit with inputs 1 is done again after the unit came up with inputs 2" 0 '^done' <<<"start-unit fickle.service inputs=1 deadline=60s"

        systemctl stop good good2
        try "a failure skips the dependent steps, and other steps continue" 50 '^failed start-unit:fails' '^skipped start-unit:good.service: start-unit:fails' '^done start-unit:good2' < <(printf '%s\n' "start-unit fails.service inputs=1 deadline=60s" \
                        "start-unit good.service inputs=1 deadline=60s after=start-unit:fails.service" \
                        "start-unit good2.service inputs=1 deadline=60s")
        holds "a unit that depends on a failed unit does not start" test "$(pid good)" = 0
        try "one chain of steps is done while another chain fails" 51 '^done start-unit:good.service' '^failed start-unit:never' < <(printf '%s\n' "start-unit never.service inputs=1 deadline=1s" \
                        "start-unit good.service inputs=1 deadline=60s")
        systemctl stop never

        p="write-file $U/good.service.d/environment.conf content=[Service]\\nEnvironment=A="
        r=$'prune-files /var/lib/nodestrap/manifest.json\nreload-manager systemd deadline=60s after=prune-files:/var/lib/nodestrap/manifest.json'
        q="start-unit good.service inputs=env1 deadline=60s after=reload-manager:systemd"
        try "a new drop-in is written and loaded, and the unit starts" 0 '^done write-file' '^done reload-manager' '^done start-unit' <<<"${p}1\\n"$'\n'"$r"$'\n'"$q"
        holds "the restarted unit has the setting of the drop-in" grep -qz '^A=1$' "/proc/$(pid good)/environ"
        try "a second run with the same drop-in changes nothing" 0 '^unchanged write-file' '^unchanged reload-manager' '^unchanged start-unit' <<<"${p}1\\n"$'\n'"$r"$'\n'"$q"
        rm -r /run/nodestrap
        try "after another boot, systemd does not reload what it read at power-on" 0 '^unchanged write-file' '^unchanged reload-manager' <<<"${p}1\\n"$'\n'"$r"
        try "a run that ends before the reload writes the drop-in" 0 '^done write-file' <<<"${p}2\\n"
        try "the next run reloads systemd after a missing reload" 0 '^unchanged write-file' '^done reload-manager' <<<"${p}2\\n"$'\n'"$r"
        holds "systemd has the setting of the drop-in after the reload" test "$(systemctl show -P Environment good)" = A=2
        try "a run after that reload does not reload systemd again" 0 '^unchanged reload-manager' <<<"${p}2\\n"$'\n'"$r"
        try "a drop-in that is not in the plan any more is removed, and systemd reloads" 0 '^done prune-files' '^done reload-manager' <<<"$r"
        holds "systemd does not have the setting of the removed drop-in" test "$(systemctl show -P Environment good)" = ""
        try "a run after the removal does not reload systemd again" 0 '^unchanged reload-manager' <<<"$r"
        try "a file that systemd does not read causes no reload" 0 '^done write-file' '^unchanged reload-manager' <<<"write-file /run/systemd/resolved.conf.d/x.conf content=x"$'\n'"$r"

        for p in 1 2 ""; do
                rm -f /run/env; systemctl stop environment
                try "systemd reloads after a change of DefaultEnvironment: ${p:-removed}" 0 '^done reload-manager' '^done start-unit' < <(printf '%s\n' "${p:+write-file /etc/systemd/system.conf.d/environment.conf content=[Manager]\\nDefaultEnvironment=NODE_PROXY=$p\\n}" \
                        "$r" "start-unit environment.service inputs=default$p deadline=60s after=reload-manager:systemd")
                holds "the unit has the new DefaultEnvironment: ${p:-gone}" test "$(sed -n 's/^NODE_PROXY=//p' /run/env)" = "$p"
        done

        try "restart-unit of a stopped unit is unchanged" 0 '^unchanged restart-unit:waits.service' <<<"restart-unit waits.service inputs=1 deadline=60s"
        holds "restart-unit does not start a stopped unit" test "$(pid waits)" = 0
        systemctl start waits; p=$(pid waits)
        try "restart-unit is unchanged for a unit that started with the new settings" 0 '^unchanged' <<<"restart-unit waits.service inputs=1 deadline=60s"
        try "restart-unit of a running unit is done" 0 '^done restart-unit:waits.service' <<<"restart-unit waits.service inputs=2 deadline=60s"
        holds "restart-unit restarts a running unit" differ "$p" "$(pid waits)"
        try "restart-unit of a missing unit is a warning" 0 '^unchanged' '^warning unit-missing' <<<"restart-unit missing.service inputs=1 deadline=60s"

        echo "start-unit behind2.service inputs=1 deadline=60s" >/run/plan
        systemctl start --no-block behind        # waits for nothing yet: gives behind2 something to be ordered after
        systemctl stop behind; echo "start-unit behind.service inputs=1 deadline=60s" >/run/plan
        systemctl start inside; out=$(cat /run/out)
        holds "a unit that is ordered after the unit of nodestrap fails at once" grep -q 'behind.service would never start: it is ordered after inside.service' /run/out

        echo "start-unit never.service inputs=1 deadline=60s" >/run/plan
        printf 'start-unit waits.service inputs=1 after=start-unit:never.service\n' >>/run/plan
        mkfifo /run/begun; systemctl start signalled
        read -r -t 60 </run/begun
        systemctl stop signalled
        holds "SIGTERM ends a run with a report of the step in progress" grep -q 'failed start-unit:never.service: stopped by SIGTERM' /run/out
        holds "SIGTERM skips the rest of the steps" grep -q 'skipped start-unit:waits.service' /run/out

        # stop-unit
        unit stops Type=notify NotifyAccess=all "ExecStart=$ready"
        unit stops-badly "ExecStart=/bin/sleep inf" "ExecStopPost=/bin/false"
        unit returns Type=notify Restart=always RestartSec=1h 'ExecStart=/bin/sh -c "exit 1"'
        systemctl daemon-reload
        q="start-unit stops.service inputs=1 deadline=60s"
        ended() { ! grep -sq '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }    # systemd says so before it reaps the zombie
        try "start-unit starts the unit for stop-unit" 0 '^done' <<<"$q"
        p=$(pid stops)
        try "stop-unit with state=keep is unchanged" 0 '^unchanged stop-unit:stops.service' <<<"stop-unit stops.service state=keep deadline=60s"
        holds "stop-unit with state=keep leaves the unit running" same "$p" "$(pid stops)"
        try "stop-unit fails if the disks were not read" 30 '^failed stop-unit:stops.service: the disks were not read' <<<"stop-unit stops.service deadline=60s"
        holds "stop-unit leaves the unit running if the disks were not read" same "$p" "$(pid stops)"
        try "stop-unit with state=make is done" 0 '^done stop-unit:stops.service' <<<"stop-unit stops.service state=make deadline=60s"
        holds "stop-unit with state=make ends the process of the unit" ended "$p"
        try "stop-unit of a stopped unit is unchanged" 0 '^unchanged stop-unit:stops.service' <<<"stop-unit stops.service state=make deadline=60s"
        try "stop-unit of a missing unit is unchanged" 0 '^unchanged stop-unit:missing.service' <<<"stop-unit missing.service state=make deadline=60s"
        systemctl start stops-badly
        try "stop-unit is done if ExecStopPost= fails" 0 '^done stop-unit:stops-badly.service' <<<"stop-unit stops-badly.service state=make deadline=60s"
        holds "the unit is failed if its ExecStopPost= fails" test "$(systemctl show -P ActiveState stops-badly)" = failed
        try "stop-unit of a failed unit is unchanged" 0 '^unchanged stop-unit:stops-badly.service' <<<"stop-unit stops-badly.service state=make deadline=60s"
        systemctl start returns 2>/dev/null
        holds "a failed unit waits for its automatic restart" test "$(systemctl show -P SubState returns)" = auto-restart
        try "stop-unit of a unit that waits for its automatic restart is done" 0 '^done stop-unit:returns.service' <<<"stop-unit returns.service state=make deadline=60s"
        holds "systemd does not restart the unit after stop-unit" grep -qE '^(failed|inactive)$' < <(systemctl show -P ActiveState returns)
        late stuck "stop-unit fails at its deadline if the unit does not stop" 51 '^failed stop-unit:stuck.service: not done after 25 s; the stop job for stuck.service was running, and the unit was deactivating \(stop\)'
        echo >/run/stopping
        try "a plan with stop-unit and start-unit starts a stopped unit" 0 '^unchanged stop-unit:stops.service' '^done start-unit:stops.service' < <(printf '%s\n' \
                "stop-unit stops.service state=make deadline=60s" "$q after=stop-unit:stops.service")
        p=$(pid stops)
        try "a plan with stop-unit and start-unit restarts a running unit with the same inputs" 0 '^done stop-unit:stops.service' '^done start-unit:stops.service' \
                < <(printf '%s\n' "stop-unit stops.service state=make deadline=60s" "$q after=stop-unit:stops.service")
        holds "the restarted unit has another process" differ "$p" "$(pid stops)"

        # start-unit of optional units, and of NVIDIA units
        FM=nvidia-fabricmanager
        try "a missing optional unit is a warning" 0 '^unchanged start-unit:missing.service' '^warning unit-missing: missing.service does not exist' \
                <<<"start-unit missing.service optional=yes deadline=60s"
        try "a masked optional unit is a warning" 0 '^unchanged start-unit:masked.service' '^warning unit-missing: masked.service is masked' <<<"start-unit masked.service optional=yes deadline=60s"
        try "an optional unit that fails is an error" 50 '^failed start-unit:fails.service' <<<"start-unit fails.service optional=yes deadline=60s"
        q="start-unit $FM.service retry=yes deadline=60s"
        ours $FM Type=forking PIDFile=/run/fm.pid "ExecStart=/bin/sh -c \"[ -e /run/fabric ] || { touch /run/fabric; echo 'no fabric yet'; exit 1; }; sleep inf & echo \$\$! >/run/fm.pid\""
        ln -s $L/$FM.service /etc/systemd/system/multi-user.target.wants/; systemctl daemon-reload      # enabled, as in the image, and so never unloaded
        try "nodestrap retries a failed start of fabric manager" 0 "^done start-unit:$FM.service" "start-unit:$FM.service: $FM.service did not stay up: its command /bin/sh \(status 1\) failed; journalctl -u $FM.service and /var/log/fabricmanager.log; attempt 1 failed; the next one is in 5 s" <<<"$q"
        holds "the retry message does not repeat output of the unit, which may have secrets" bash -c '! grep -q "no fabric yet" <<<"$1"' _ "$out"
        p=$(pid $FM); rm -r /run/nodestrap
        try "start-unit of a running fabric manager is unchanged" 0 "^unchanged start-unit:$FM.service" <<<"$q"
        holds "start-unit does not restart a running fabric manager" same "$p" "$(pid $FM)"
        systemctl stop $FM; rm /run/fabric
        ours $FM Type=forking PIDFile=/run/fm.pid Restart=on-failure RestartSec=50ms "ExecStart=/bin/sh -c \"echo >>/run/fabric; [ \$\$(wc -l </run/fabric) -ge 4 ] || exit 1; sleep inf & echo \$\$! >/run/fm.pid\""
        printf '[Unit]\nStartLimitBurst=3\n' >>$L/$FM.service; systemctl daemon-reload; rm -r /run/nodestrap
        try "nodestrap retries a unit that reached its start limit in systemd" 0 "^done start-unit:$FM.service" 'attempt 1 failed; the next one is in 5 s' <<<"$q"
        holds "systemd and nodestrap start the unit four times in all" test "$(wc -l </run/fabric)" = 4
        systemctl stop $FM; rm /run/fabric; ours $FM Type=forking PIDFile=/run/fm.pid "ExecStart=/bin/sh -c \"[ -e /run/fabric ] || { touch /run/fabric; echo 'no fabric yet'; exit 1; }; sleep inf & echo \$\$! >/run/fm.pid\""; systemctl daemon-reload
        try "a failed fabric manager is an error if no time is left for a retry" 33 "^failed start-unit:$FM.service: .*status 1.*and /var/log/fabricmanager.log" 'failed \(33 EFABRICMANAGER\)' <<<"start-unit $FM.service retry=yes deadline=4s"
        ours $FM Type=forking "ExecStart=/bin/sh -c \"echo 'warning Nothing to do [NV_WARN_NOTHING_TO_DO]'; exit 0\""; systemctl daemon-reload
        try "the error for fabric manager with nothing to do says that it found no NVSwitch" 33 "$FM.service did not stay up: it found no NVSwitch: .*journalctl -u $FM.service and /var/log/fabricmanager.log$" '^warning Nothing to do' <<<"start-unit $FM.service deadline=60s"
        ours $FM Type=oneshot ExecCondition=/bin/false "ExecStart=/bin/true"; systemctl daemon-reload
        try "the error for a skipped unit names its ExecCondition=" 33 'its ExecCondition= /bin/false \(status 1\) failed, so systemd did not start it' <<<"$q"
        printf '[Unit]\nConditionPathExists=|!/usr\nConditionPathExists=|/etc\n' >>$L/$FM.service; systemctl daemon-reload
        try "the error names ExecCondition= and not one of two alternative conditions" 33 'its ExecCondition= /bin/false \(status 1\) failed, so systemd did not start it' <<<"$q"
        ours $FM Type=oneshot "ExecStart=/bin/true"; printf '[Unit]\nConditionPathExists=!/usr\nConditionPathExists=/etc\n' >>$L/$FM.service; systemctl daemon-reload
        try "the error for a skipped unit names the condition that is not met" 33 'did not stay up: ConditionPathExists=!/usr is not met, so systemd did not start it' <<<"$q"
        holds "nodestrap does not retry a unit whose condition is not met" bash -c '! grep -q "start 1 failed" <<<"$1"' _ "$out"
        ours $FM Type=notify NotifyAccess=all 'ExecStart=/bin/sh -c "echo $$$$ >/run/activating; read x </run/ready; systemd-notify --ready; exec sleep inf"'
        systemctl daemon-reload; mkfifo /run/activating /run/ready; systemctl start --no-block $FM; read -r p </run/activating
        unit goes-on Type=oneshot 'ExecStart=/bin/sh -c "echo >/run/ready"'; systemctl daemon-reload        # begins after the request for the other start
        try "start-unit joins a start that is in progress" 0 "^done start-unit:$FM.service" <<<"$q"$'\n'"start-unit goes-on.service inputs=1 deadline=60s"
        holds "start-unit does not start the unit a second time" same "$p" "$(pid $FM)"

        # mask-unit, unmask-unit
        q="mask-unit $FM.service deadline=60s"
        try "mask-unit of a running unit is done" 0 "^done mask-unit:$FM.service" <<<"$q"
        holds "mask-unit ends the process of the unit" ended "$p"
        holds "mask-unit masks the unit until the next boot" test "$(systemctl show -P UnitFileState $FM) $(systemctl show -P ActiveState $FM)" = "masked-runtime inactive"
        try "mask-unit of a masked unit is unchanged" 0 "^unchanged mask-unit:$FM.service" <<<"$q"
        try "mask-unit of a missing unit is unchanged" 0 '^unchanged mask-unit:missing.service' <<<"mask-unit missing.service deadline=60s"
        try "the error for a unit with a runtime mask names the unmask command" 50 "$FM.service is masked; run systemctl unmask --runtime $FM.service" <<<"start-unit $FM.service deadline=60s"
        try "unmask-unit of a masked unit is done" 0 "^done unmask-unit:$FM.service" <<<"unmask-unit $FM.service deadline=60s"
        holds "systemd loads the unit again after unmask-unit" test "$(systemctl show -P LoadState $FM)" = loaded
        try "unmask-unit of a unit without a mask is unchanged" 0 "^unchanged unmask-unit:$FM.service" <<<"unmask-unit $FM.service deadline=60s"
        try "unmask-unit of a missing unit is unchanged" 0 '^unchanged unmask-unit:missing.service' <<<"unmask-unit missing.service deadline=60s"
        try "unmask-unit fails if an administrator has masked the unit" 50 '^failed unmask-unit:masked.service: .*systemctl unmask masked.service' <<<"unmask-unit masked.service deadline=60s"
        holds "unmask-unit leaves the mask of an administrator" test -L /etc/systemd/system/masked.service
        U=/etc/systemd/system unit hides "ExecStart=/bin/sleep inf"; systemctl daemon-reload; systemctl start hides; p=$(pid hides)
        q="mask-unit hides.service deadline=60s"
        try "mask-unit of a unit with a file in /etc is done" 0 '^done mask-unit:hides.service' <<<"$q"
        holds "mask-unit stops a unit with a file in /etc" ended "$p"
        holds "mask-unit masks a unit with a file in /etc until the next boot" test "$(systemctl show -P LoadState hides) $(systemctl show -P UnitFileState hides)" = "masked masked-runtime"
        holds "a masked unit with a file in /etc does not start" bash -c '! systemctl start hides'
        try "mask-unit of a masked unit with a file in /etc is unchanged" 0 '^unchanged mask-unit:hides.service' <<<"$q"
        try "unmask-unit of a unit with a file in /etc is done" 0 '^done unmask-unit:hides.service' <<<"unmask-unit hides.service deadline=60s"
        holds "a unit with a file in /etc starts after unmask-unit" systemctl start hides
        try "mask-unit masks a unit with a file in /etc again" 0 '^done mask-unit:hides.service' <<<"$q"
        U=/etc/systemd/system.control; mkdir -p $U; unit hides "ExecStart=/bin/sleep inf"; U=/run/systemd/system; systemctl daemon-reload; systemctl start hides; p=$(pid hides)
        try "mask-unit warns about a unit file that overrides each runtime mask" 0 '^done mask-unit:hides.service' '^warning unit-not-masked: hides.service is not running, but' <<<"$q"
        holds "mask-unit stops a unit that it cannot mask" ended "$p"
        try "mask-unit warns again about a unit that it cannot mask" 0 '^unchanged mask-unit:hides.service' '^warning unit-not-masked' <<<"$q"
        rm -r /etc/systemd/system.control; systemctl daemon-reload

        # await-unit
        try "await-unit of a missing unit is unchanged" 0 '^unchanged await-unit:missing.service' <<<"$(await missing)"
        try "await-unit of a unit that never started is unchanged" 0 '^unchanged await-unit:waits.service' <<<"$(systemctl stop waits; await waits)"
        holds "await-unit does not start a unit" test "$(systemctl show -P ActiveState waits)" = inactive
        try "await-unit of a unit whose condition was not met is unchanged" 0 '^unchanged await-unit:cond.service' <<<"$(systemctl start cond; await cond)"
        try "await-unit of a running unit is unchanged" 0 '^unchanged await-unit:good.service' <<<"$(systemctl start good; await good)"
        late await "await-unit of a unit that is still starting fails at its deadline" 33 "^failed await-unit:$K.service: not done after 25 s; the job for $K.service was running, and the unit was activating \(start\)"
        late lenient "await-unit with lenient=yes warns at its deadline" 0 "^unchanged await-unit:$K.service" "^warning unit-failed: not done after 25 s; the job for $K.service was running"
        holds "await-unit with lenient=yes leaves the start job alone" bash -c "systemctl list-jobs | grep -q $K"
        { await $K; echo "start-unit good2.service inputs=1 deadline=60s after=await-unit:$K.service"; } >/run/plan
        systemctl stop good2; $TOOL </run/plan >/run/out 2>&1 & p=$!
        echo 0 >/run/go; wait $p; out=$(cat /run/out)
        holds "await-unit is unchanged when the unit ends well" grep -q "^unchanged await-unit:$K.service" /run/out
        holds "a step after await-unit starts later than the unit" bash -c "[ \$(systemctl show -P ActiveEnterTimestampMonotonic $K) -lt \$(systemctl show -P ActiveEnterTimestampMonotonic good2) ]"
        systemctl stop $K; systemctl start --no-block $K; read -r _ </run/loading; await $K >/run/plan; $TOOL </run/plan >/run/out 2>&1 & p=$!
        echo 4 >/run/go; wait $p; out=$(cat /run/out)
        holds "await-unit fails when the unit fails" grep -qE "^failed await-unit:$K.service: $K.service failed: .*status 4" /run/out
        ours $K Type=oneshot 'ExecStart=/bin/sh -c "echo no such module; exit 1"'; systemctl daemon-reload; systemctl start $K 2>/dev/null
        try "await-unit fails if the unit failed earlier, with the last line of the unit" 33 "^failed await-unit:$K.service: $K.service failed: .*status 1; journalctl -u $K.service$" '^no such module$' 'failed \(33 EDRIVER\)' <<<"$(await $K)"
        try "await-unit with lenient=yes warns about a unit that failed earlier" 0 "^unchanged await-unit:$K.service" "^warning unit-failed: $K.service failed" <<<"$(await $K) lenient=yes"
        # A step after a wait opens the gate. nodestrap knows that this wait is longer than the deadline of the unit behind the gate.
        ours $K Type=oneshot ExecStart=/bin/true; printf '[Unit]\nAfter=gate.service\n' >>$L/$K.service
        unit gate Type=oneshot RemainAfterExit=yes 'ExecStart=/bin/sh -c "echo >/run/loading; read x </run/go"'
        unit longer Type=oneshot 'ExecStart=/bin/sleep inf'; unit lets-go Type=oneshot 'ExecStart=/bin/sh -c "echo >/run/go"'; systemctl daemon-reload
        systemctl start --no-block gate longer $K; read -r _ </run/loading
        try "with timed-from=, the deadline of await-unit counts from the end of the other wait" 0 "^unchanged await-unit:$K.service" '^done start-unit:lets-go.service' \
                <<<"$(await gate 60s)"$'\n'"$(await $K 8s) lenient=yes timed-from=await-unit:gate.service"$'\n'"$(await longer 8500ms) lenient=yes"$'\n'"start-unit lets-go.service deadline=60s after=await-unit:longer.service"
        holds "await-unit with timed-from= does not warn" bash -c "! grep 'warning.*$K' <<<\"\$1\"" _ "$out"
        systemctl stop gate longer $K
        await behind 60s >/run/plan; systemctl stop behind inside; systemctl start both.target
        holds "await-unit of a unit that is ordered after the unit of nodestrap ends at once" grep -q 'behind.service would never start: it is ordered after inside.service' /run/out
        echo "$(await behind 60s) optional=yes" >/run/plan; systemctl stop behind inside; systemctl start both.target
        unit behind-run After=nodestrap-run.service "ExecStart=/bin/sleep inf"; cp $U/inside.service $U/nodestrap-devices.service
        unit nodestrap-run Type=oneshot 'ExecStart=/bin/sh -c "echo >/run/loading; read x </run/go"'; systemctl daemon-reload
        cp /run/out /run/out-before; echo "start-unit behind-run.service deadline=60s" >/run/plan
        systemctl start --no-block nodestrap-run; read -r _ </run/loading; systemctl start nodestrap-devices; echo >/run/go
        holds "in the devices phase, the error for a unit ordered after nodestrap-run names that unit" grep -q 'behind-run.service would never start: it is ordered after nodestrap-run.service' /run/out
        cp /run/out-before /run/out
        holds "await-unit with optional=yes ignores a unit that is ordered after nodestrap" bash -c '! grep -E "warning|^failed" /run/out && grep "^unchanged await-unit:behind" /run/out'

        # mark-node: how systemd reads the file that users have changed, and the file of nodestrap after it
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
                holds "mark-node keeps the arguments: ${r//[$'\n\r']/ }" cmp /run/words.want /run/words.tainted
        done
        echo 'NODEADM_KUBELET_ARGS=--v=2 --register-with-taints=a=b:NoExecute --v=3' >$E; chmod 600 $E
        try "mark-node after a failure is done, with a warning" 50 '^done mark-node' '^warning node-tainted' <<<"$q"
        holds "mark-node writes its file with the mode of the first file" test "$(stat -c %a /run/nodestrap/kubelet-environment)" = 600
        holds "mark-node keeps the taints of the user" grep -q 'register-with-taints=a=b:NoExecute,nodestrap/unhealthy=EUNIT:NoSchedule$' /run/nodestrap/kubelet-environment
        try "mark-node is unchanged after the same failure" 50 '^unchanged mark-node' <<<"$q"
        echo 'NODEADM_KUBELET_ARGS=--v=2' >$E
        try "mark-node with planned taints is done" 50 '^done mark-node' <<<"$q words=c=d:NoSchedule,e:NoExecute"
        holds "mark-node keeps the planned taints" grep -q 'register-with-taints=c=d:NoSchedule,e:NoExecute,nodestrap/unhealthy=EUNIT:NoSchedule$' /run/nodestrap/kubelet-environment
        try "mark-node after a recovery is done, with a warning" 0 '^done mark-node' '^warning node-was-tainted' <<<"start-unit good.service inputs=1 deadline=60s"$'\n'"$t after-any=start-unit:good.service"
        holds "mark-node removes its file after a recovery" test ! -e /run/nodestrap/kubelet-environment
        try "mark-node without a file is unchanged" 0 '^unchanged mark-node' <<<"$t"

        mv /run/systemd/private /run/systemd/p; mv /run/dbus/system_bus_socket /run/dbus/s
        try "a missing systemd is an error" 50 'nodestrap cannot reach systemd' <<<"start-unit good.service inputs=9"
        mv /run/dbus/s /run/dbus/system_bus_socket
        try "nodestrap reaches systemd over the system bus" 0 '^done start-unit:good' <<<"start-unit good.service inputs=over-the-bus deadline=60s"
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
