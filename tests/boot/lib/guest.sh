# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by a boot test inside its guest. `try NAME COMMAND…` is one TAP line: ok if COMMAND succeeds; its output is shown if not.
# The count survives a reboot, because the output of all boots becomes one report. The last boot calls `finish`.
cd /vmtest || exit 1
count=$(cat out/tap-count 2>/dev/null || echo 0) bad=$(cat out/tap-bad 2>/dev/null || echo 0)

try() {
        local name=$1 output; shift; count=$((count + 1)); echo $count >out/tap-count
        if output=$("$@" 2>&1); then echo "ok $count - $name"; return; fi
        bad=1; echo 1 >out/tap-bad; echo "not ok $count - $name"; sed 's/^/# /' <<<"$output"; return 1
}
finish() {
        if [ "$bad" != 0 ]; then        # the whole journal is among the results
                systemctl show -p Id,ActiveState,Result,ExecMainStatus --value nodestrap-config nodestrap-devices nodestrap-run containerd kubelet | xargs -L5 2>&1 | sed 's/^/# /'
                journalctl -b --no-pager -o short-monotonic -u 'nodestrap-*' | tail -25 | cut -c1-400 | sed 's/^/# /'
        fi
        echo "1..$count"; exit "$bad"
}

no() { ! "$@"; }
# eventually COMMAND…: it succeeds, sooner or later, within 2 minutes; the output is that of the last time
eventually() {
        local end=$((SECONDS + 120)) said
        until said=$("$@" 2>&1); do [ $SECONDS -lt $end ] || { printf '%s\n' "$said"; return 1; }; sleep 0.05; done
        [ -z "$said" ] || printf '%s\n' "$said"
}
property() { systemctl show -P "$2" "$1"; }                             # property UNIT NAME
is() { [ "$1" = "$2" ] || { echo "is \"$1\", want \"$2\""; return 1; }; }
before() { [ "$1" -gt 0 ] && [ "$1" -lt "$2" ] || { echo "$1 is not before $2"; return 1; }; }
active() { is "$(property "$1" ActiveState)" active; }
exited() { is "$(property "$1" ExecMainStatus)" "$2"; }                 # exited UNIT STATUS
failed() { is "$(property "$1" ActiveState)" failed; }
# The last words of a unit may reach the journal after its end is known.
in_journal() { journalctl --sync; journalctl -b -o cat --no-pager | grep -E -- "$1" || { echo "no line with $1"; return 1; }; }
not_in_journal() { journalctl --sync; ! journalctl -b -o cat --no-pager | grep -iE -- "$1"; }
no_cycle() { not_in_journal 'ordering cycle|breaking ordering|deleted to break'; }
runs_in() { local path; path=$(property "$2" ControlGroup); [[ $path = *"$1" ]] || { echo "is \"$path\", want \"$1\""; return 1; }; }
starts() { is "$(wc -l 2>/dev/null </run/recording-kubelet/starts)" "$1"; }
never_started() { [ ! -e /run/recording-kubelet/starts ] || { echo "kubelet was started"; return 1; }; }
# The same sources as the units name, so the plan is the one they have carried out.
sources() { echo --config-source imds://user-data --config-source file:///etc/eks/nodeadm.d/; }
# shellcheck disable=SC2046 # sources are words
plan() { nodestrap plan $(sources) --show-secrets --output json; }
# All files that the plan names, with inodes, sizes, modes and times: the same twice means that nothing was written.
stamp() { xargs -r stat -c '%n %i %s %a %y' < <(python3 compare.py paths plan.json) | sort; }
uptime_usec() { awk 'NR == 1 { printf "%.0f", $1 * 1000000 }' "$1"; }

# All that a node must be after a boot: both units ran, what was planned is there, containerd and kubelet have it.
check_node() {
        try "nodestrap-config.service succeeded" exited nodestrap-config 0
        try "nodestrap-run.service is active" active nodestrap-run
        try "containerd.service is active" active containerd
        try "kubelet.service is active" active kubelet
        try "no ordering cycle was broken" no_cycle
        try "the first phase ended before the second began" before "$(property nodestrap-config ExecMainExitTimestampMonotonic)" "$(property nodestrap-run ExecMainStartTimestampMonotonic)"
        try "containerd answers" ctr --connect-timeout 120s version
        try "nodestrap plan succeeds after the boot" sh -c "nodestrap plan $(sources) --show-secrets --output json >plan.json"
        try "the plan that ran is the plan that nodestrap plan shows" python3 compare.py applied plan.json /run/nodestrap/status.json
        try "every planned file is there" python3 compare.py files plan.json
        try "containerd dumps its configuration" sh -c "containerd config dump >dump.toml"
        try "containerd has every planned setting" python3 compare.py containerd plan.json dump.toml
        try "kubelet got exactly the planned flags" python3 compare.py kubelet plan.json /run/recording-kubelet/argv
        try "containerd runs in runtime.slice" runs_in /runtime.slice/containerd.service containerd
        try "kubelet runs in runtime.slice" runs_in /runtime.slice/kubelet.service kubelet
        try "kubelet was started once" starts 1
        try "status.json has the verdict ok" grep -qE '"verdict": *"ok"' /run/nodestrap/status.json
        cp plan.json dump.toml /run/nodestrap/status.json out/ 2>/dev/null
}

# The same input a second time: no file, no process changes.
check_second_run() {
        local files kubelet containerd; files=$(stamp); kubelet=$(property kubelet MainPID) containerd=$(property containerd MainPID)
        try "a second plan finds nothing to do" sh -c "nodestrap plan $(sources) --detailed-exitcode >out/plan-then 2>&1 || { grep -E '\\[(create|change|remove|unknown)|^[0-9]* as' out/plan-then; tail -3 out/plan-then; false; }"
        try "a second init succeeds" sh -c "nodestrap init $(sources) --config-cache /run/eks/nodeadm/config.json 2>out/second-init"
        try "the second init says that nothing changed" python3 compare.py unchanged /run/nodestrap/status.json
        try "the second init writes no file" is "$(stamp)" "$files"
        try "the second init restarts neither containerd nor kubelet" is "$(property containerd MainPID) $(property kubelet MainPID)" "$containerd $kubelet"
}

# cloud-init ran to its end, and its shell script between the two phases.
check_cloud_init() {
        try "cloud-init ran to its end" sh -c "cloud-init status --wait --long; grep -q . /run/cloud-init/result.json"
        try "cloud-init read its data from the metadata service" grep -q DataSourceEc2 /run/cloud-init/status.json
        try "the shell script of the user data runs once" is "$(grep -c '^[0-9]' /run/shell-part)" 1
        try "the shell script finds the files of the first phase" grep -q config-was-there /run/shell-part
        try "the shell script runs before kubelet" grep -q kubelet-was-not-there /run/shell-part
        try "the first phase ends before the network stage of cloud-init begins" before "$(property nodestrap-config ExecMainExitTimestampMonotonic)" "$(cloud_init_network)"
        try "the first phase ends before the shell script runs" before "$(property nodestrap-config ExecMainExitTimestampMonotonic)" "$(uptime_usec /run/shell-part)"
        try "the second phase begins after cloud-init ends" before "$(property cloud-final ExecMainExitTimestampMonotonic)" "$(property nodestrap-run ExecMainStartTimestampMonotonic)"
}
cloud_init_network() {                  # the unit was renamed in 24.3
        local t; t=$(property cloud-init-network ExecMainStartTimestampMonotonic)
        [ "${t:-0}" != 0 ] || t=$(property cloud-init ExecMainStartTimestampMonotonic)
        echo "$t"
}

# After init has failed, wait prints the sentence of init at once: wait_is_told "CODE at STEP): TEXT"
wait_is_told() { nodestrap wait --timeout 5m 2>out/wait; is $? 60 && tail -n 1 out/wait | grep -F "nodestrap: failed (60 EINIT) at join: kubelet was not started, because nodestrap init failed ($1" && grep -E '"requests": 0,?$' /run/nodestrap/joined.json || { cat out/wait; return 1; }; }
# A script of a machine that starts from power-on and reboots once: all that a node must be, both times.
check_two_boots() {
        if [ "$VMTEST_BOOT" = 1 ]; then
                check_node
                check_cloud_init
                plan >out/plan.1
                systemctl reboot
                exit
        fi
        # The second boot: the same machine, the same input.
        try "after a reboot: the first phase succeeded" exited nodestrap-config 0
        try "after a reboot: nodestrap-run.service is active" active nodestrap-run
        try "after a reboot: kubelet is active" active kubelet
        try "after a reboot: kubelet was started once" starts 1
        try "after a reboot: the plan is the same" sh -c "nodestrap plan $(sources) --show-secrets --output json >out/plan.2 && python3 compare.py same out/plan.1 out/plan.2"
        try "after a reboot: kubelet got exactly the planned flags" python3 compare.py kubelet out/plan.1 /run/recording-kubelet/argv
        try "after a reboot: no ordering cycle was broken" no_cycle
}

# Every interface was set up before the configuration phase (tree: vpc hook_enabled).
setup_of() { networkctl list --no-pager --no-legend "$1" | awk '{ print $NF }'; }
check_interfaces_first() { # UNIT… : these are active, too
        local name reached
        try "the boot hook succeeds" is "$(property nodestrap-boot-hook Result) $(property nodestrap-boot-hook ExecMainStatus)" "success 0"
        try "the boot hook ends before the configuration phase begins" before "$(property nodestrap-boot-hook ExecMainExitTimestampMonotonic)" "$(property nodestrap-config ExecMainStartTimestampMonotonic)"
        for name in $(python3 veths.py names table); do
                try "$name is set up before the boot hook ends" before "$(property "nodestrap-udev-net-manager@$name" ExecMainExitTimestampMonotonic)" "$(property nodestrap-boot-hook ExecMainExitTimestampMonotonic)"
                try "$name is configured" is "$(setup_of "$name")" configured
        done
        try "networkd does not manage lo" is "$(setup_of lo)" unmanaged
        try "networkd.conf has ManageForeignRoutes=no, so networkd keeps routes of others" sh -c "systemd-analyze cat-config systemd/networkd.conf | grep -x ManageForeignRoutes=no"
        try "network-online.target is reached after the boot hook ends" before "$(property nodestrap-boot-hook ExecMainExitTimestampMonotonic)" "$(property network-online.target ActiveEnterTimestampMonotonic)"
        for reached in sysinit.target basic.target paths.target network-online.target multi-user.target dbus.socket "$@"; do
                try "$reached is active" active "$reached"
        done
        try "no unit failed" is "$(systemctl list-units --failed --plain --no-legend)" ''
}
