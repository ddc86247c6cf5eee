#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# tree: enabled
# spec: {instance: {sysctl: {net.ipv4.no_such_setting: "1"}}}
# console: NODESTRAP verdict=failed code=ESYSCTL step=set-sysctl:net.ipv4.no_such_setting
# Phases fail on a machine that cannot reach its cluster. The Event waits and is sent again, from early in the boot on. No unit waits for it
# or fails with it, and the console does not show it.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

waiting() { find /run/nodestrap/events -type f ! -name '*.condition' | sort | xargs cat | python3 -c 'import json, sys
d, t = json.JSONDecoder(), sys.stdin.read()
while t:
    n, end = d.raw_decode(t)
    print(n["reason"], n["message"].removesuffix(" (on the node, run nodestrap status)"))
    t = t[end:]'; }
failed_units() { systemctl list-units --failed --plain --no-legend | awk '{ print $1 }' | sort | xargs; }
try "the devices phase and the run phase failed, and nothing else" is "$(failed_units)" "nodestrap-devices.service nodestrap-run.service"
try "systemd ends the boot as degraded" is "$(cat out/state)" degraded
try "systemd has no job left" test -z "$(systemctl list-jobs --no-legend | grep -v vmtest)"
try "nodestrap-event.service runs" is "$(property nodestrap-event ActiveState) $(property nodestrap-event SubState)" "active running"
try "nodestrap-event.service started before the run phase ended" before "$(property nodestrap-event ExecMainStartTimestampMonotonic)" "$(property nodestrap-run ExecMainExitTimestampMonotonic)"
try "systemd has not restarted nodestrap-event.service" is "$(property nodestrap-event NRestarts)" 0
try "nodestrap-event.path is active" is "$(property nodestrap-event.path ActiveState) $(property nodestrap-event.path Result)" "active success"
try "no ordering cycle was broken" no_cycle
waiting >out/notices
try "two Events wait" is "$(wc -l <out/notices)" 2
# This is the devices phase, unless the run phase comes first.
try "the first Event says what follows from the failure" sh -c "sed -n 1p out/notices | grep -E '^NodestrapFailed ESYSCTL at set-sysctl:net.ipv4.no_such_setting: .*; (the run phase tries this again before it starts kubelet|kubelet was not started)$'"
try "the last Event says that kubelet was not started" sh -c "sed -n 2p out/notices | grep -E '^NodestrapFailed ESYSCTL at .*; kubelet was not started$'"
try "the journal says why the Event has not been sent yet" in_journal 'Event NodestrapFailed has not been sent yet \((EAPINAME|EAPIROUTE)\): '

# A shutdown ends it at once, too.
systemctl stop nodestrap-event.path nodestrap-event.service
try "the service ends when systemd stops it" is "$(property nodestrap-event Result) $(property nodestrap-event ExecMainStatus)" "success 0"
try "the service loses no Event when it ends" is "$(waiting | wc -l)" 2
rm -r /run/nodestrap/events/*; systemctl start nodestrap-event.path
try "nodestrap-event.path does not start the service if no Event waits" is "$(property nodestrap-event ActiveState)" inactive
printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {instance: {sysctl: {net.ipv4.ip_forward: "1"}}}\n' >/etc/eks/nodeadm.d/99-spec.yaml
rm /etc/eks/nodeadm.d/50-spec.yaml
# shellcheck disable=SC2046 # sources are words
try "an init by hand succeeds" nodestrap init --skip config $(sources)
try "a recovery is an Event, too" is "$(waiting)" "NodestrapRecovered ESYSCTL at set-sysctl:net.ipv4.no_such_setting is resolved: nodestrap has done every step"
try "nodestrap-event.service starts again for the recovery" eventually active nodestrap-event

# Each further start ends at once.
often() {
        local n
        for n in {1..12}; do
                echo '[]' >/run/nodestrap/events/$n
                until [ ! -e /run/nodestrap/events/$n ]; do is "$(property nodestrap-event.path ActiveState)" active || return; sleep 0.05; done
                until [ "$(property nodestrap-event ActiveState)" = inactive ]; do is "$(property nodestrap-event.path ActiveState)" active || return; sleep 0.05; done
        done
}
rm /run/nodestrap/events/*; systemctl stop nodestrap-event; systemctl reset-failed nodestrap-event
try "nodestrap-event.path stays active during twelve starts in a row" often
try "both units are well after twelve starts in a row" is "$(property nodestrap-event.path ActiveState) $(property nodestrap-event Result)" "active success"

finish
