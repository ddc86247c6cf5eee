#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge fabric-takes=100000
# spec: {failurePolicy: reboot, accelerator: {nvidia: {fabric: {timeout: 1s}}}}
# tree: enabled gpu api failure_hook
# console: nodestrap.*failure-policy: the machine reboots now, once; systemctl stop nodestrap-power keeps it up
# console: failurePolicy: reboot
# console: the machine stays as it is: this instance has used its one reboot
# A fabric that never comes. failurePolicy: reboot starts the machine again, once, and then holds; poweroff ends it later, unless something
# speaks against that. The poweroff.target of systemd is another one here, which only says that it was reached.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh
# No Event is taken here, so that a reboot would wait for its whole minute.
[ "$VMTEST_BOOT" = 2 ] || { until [ -s /run/nodestrap/power ]; do sleep 0.1; done; echo reboot 0 1 >/run/nodestrap/power; exec tail -f /dev/null; }

LEDGER=/var/lib/nodestrap/failure-reboot ASKED=/run/nodestrap/power
policy() { spec "{failurePolicy: $1, accelerator: {nvidia: {fabric: {timeout: 1s}}}}"; }
run_fails() { systemctl reset-failed; no systemctl restart nodestrap-run 2>/dev/null; }
absent() { [ ! -e "$1" ] || { cat "$1"; return 1; }; }
# shellcheck disable=SC2046 # sources are words
by_hand() { no nodestrap init --skip config $(sources) 2>out/by-hand; }
idle() { is "$(property "$1" ActiveState)" inactive; }

try "the machine was started twice" is "$(grep -c ^power-on /var/lib/power-on)" 2
try "kubelet never started" never_started
try "the ledger has the instance" grep -xE 'i-[0-9a-f]+' $LEDGER
try "the second boot has failed as the first one" is "$(value verdict) $(value code) $(property nodestrap-run ActiveState)" "failed EFABRIC failed"
try "its warning is on record" grep -F "has used its one reboot ($LEDGER)" /run/nodestrap/status.json
try "nodestrap requests no reboot" absent $ASKED
try "the unit that would reboot was skipped" is "$(property nodestrap-power ConditionResult)" no
try "nodestrap-failed.target is reached" active nodestrap-failed.target
try "the hook of the image ran in both boots" is "$(wc -l </var/lib/hook)" 2
try "no ordering cycle was broken" no_cycle
# shellcheck disable=SC2046
nodestrap plan $(sources) >out/plan 2>&1
try "a plan says what a failure comes to" sh -c "tr -s ' \n' ' ' <out/plan | grep -F 'start kubelet; after hardware failure reboot once'"
try "the plan says that this instance has used its one reboot" sh -c "tr -s ' \n' ' ' <out/plan | grep -F 'no reboot after a hardware failure: this instance has used its one reboot'"

echo junk >$LEDGER
try "a run fails with a ledger that is damaged" run_fails
try "the message says that the ledger is damaged" in_journal "stays as it is: $LEDGER is damaged"
try "a damaged ledger leads to no reboot" absent $ASKED
rm $LEDGER
try "a run by hand fails" by_hand
try "nodestrap records no reboot" absent $LEDGER
try "nodestrap requests no reboot by hand" absent $ASKED
mkdir -p /run/as; ln -s /usr/bin/nodestrap /run/as/nodeadm
# shellcheck disable=SC2046
as_nodeadm() { no systemd-run -q --wait -p Environment=NODESTRAP_FAILURE_POLICY=yes /run/as/nodeadm init --skip config $(sources); }
try "a unit with a name of nodeadm works the same way" as_nodeadm
try "a unit with a name of nodeadm records no reboot" absent $LEDGER

# ---- poweroff ----
printf '[Unit]\nDescription=What stands for the end\n' >/etc/systemd/system/poweroff.target; systemctl daemon-reload
policy poweroff
try "a run fails with the policy poweroff" run_fails
try "nodestrap requests a poweroff in 10 to 15 minutes" grep -xE 'poweroff ([6-8][0-9]{2}|900) 1800' $ASKED
try "the unit waits for it" eventually active nodestrap-power
try "a person types an init" by_hand
try "a good init takes the poweroff back" absent $ASKED
try "the unit for the poweroff ends" eventually idle nodestrap-power
try "the machine stays up after the good init" idle poweroff.target

systemctl stop nodestrap-event.path nodestrap-event
looks() { pgrep -P "$(property nodestrap-power MainPID)" sleep >/dev/null; }    # it has looked once, and waits to look again
waits() { echo "$1" >$ASKED; rm -rf /run/nodestrap/events/*; mkdir -p /run/nodestrap/events; echo '[]' >/run/nodestrap/events/1; systemctl start nodestrap-power; eventually looks; }
try "the poweroff waits for an Event" waits 'poweroff 0 1800'
sent=$(uptime_usec /proc/uptime); rm /run/nodestrap/events/1
try "the machine powers off" eventually active poweroff.target
try "the poweroff comes after the Event" before "$sent" "$(property poweroff.target ActiveEnterTimestampMonotonic)"
systemctl stop poweroff.target
try "the poweroff waits for an Event that cannot be sent" waits 'poweroff 0 4'
try "the machine powers off after the deadline of the Event" eventually active poweroff.target
try "the Event is still there" test -e /run/nodestrap/events/1
systemctl stop poweroff.target
try "an unknown word is in the request" waits 'rm 0 4'
try "the unit fails at the unknown word and does nothing" eventually failed nodestrap-power; rm /run/nodestrap/events/1
try "kubelet starts before the poweroff" waits 'poweroff 0 1800'
touch /run/nodestrap/kubelet-may-start; rm /run/nodestrap/events/1
try "the unit ends because kubelet has run" eventually idle nodestrap-power
try "the journal says that kubelet has run" in_journal "kubelet has run in this boot: no poweroff"
try "the machine stays up" idle poweroff.target
systemctl start nodestrap-power
try "systemd skips another start of the unit" is "$(property nodestrap-power ConditionResult)" no
try "a run fails after kubelet has run" run_fails
try "nodestrap requests nothing" absent $ASKED
finish
