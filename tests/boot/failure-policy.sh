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
# A fabric that never comes. failurePolicy: reboot starts the machine again, once, and then holds; poweroff ends it later, unless there is
# a reason against it. This test replaces poweroff.target of systemd by a target that only becomes active.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh
# The Event is not sent here, so a reboot would wait a whole minute for it.
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
try "the second boot has failed with EFABRIC" is "$(value verdict) $(value code) $(property nodestrap-run ActiveState)" "failed EFABRIC failed"
try "status.json has the warning that the one reboot is used" grep -F "has used its one reboot ($LEDGER)" /run/nodestrap/status.json
try "nodestrap requests no reboot" absent $ASKED
try "systemd has skipped nodestrap-power.service" is "$(property nodestrap-power ConditionResult)" no
try "nodestrap-failed.target is reached" active nodestrap-failed.target
try "the hook of the image ran in both boots" is "$(wc -l </var/lib/hook)" 2
try "no ordering cycle was broken" no_cycle
# shellcheck disable=SC2046
nodestrap plan $(sources) >out/plan 2>&1
try "a plan says what follows a hardware failure" sh -c "tr -s ' \n' ' ' <out/plan | grep -F 'unblock kubelet, or reboot once on hardware failure'"
try "the plan says that this instance has used its one reboot" sh -c "tr -s ' \n' ' ' <out/plan | grep -F 'nodestrap will not reboot after a hardware failure: this instance has used its one reboot'"

echo junk >$LEDGER
try "a run fails with a ledger that is damaged" run_fails
try "the message says that the ledger is damaged" in_journal "stays as it is: $LEDGER is damaged"
try "a damaged ledger leads to no reboot" absent $ASKED
rm $LEDGER
try "a run by hand fails" by_hand
try "a run by hand records no reboot" absent $LEDGER
try "a run by hand requests no reboot" absent $ASKED
mkdir -p /run/as; ln -s /usr/bin/nodestrap /run/as/nodeadm
# shellcheck disable=SC2046
as_nodeadm() { no systemd-run -q --wait -p Environment=NODESTRAP_FAILURE_POLICY=yes /run/as/nodeadm init --skip config $(sources); }
try "a run under the name nodeadm fails" as_nodeadm
try "a run under the name nodeadm records no reboot" absent $LEDGER

# ---- poweroff ----
printf '[Unit]\nDescription=What stands for the end\n' >/etc/systemd/system/poweroff.target; systemctl daemon-reload
policy poweroff
try "a run fails with failurePolicy poweroff" run_fails
try "nodestrap requests a poweroff in 10 to 15 minutes" grep -xE 'poweroff ([6-8][0-9]{2}|900) 1800' $ASKED
try "nodestrap-power.service waits for the poweroff" eventually active nodestrap-power
try "an init by hand fails with failurePolicy poweroff" by_hand
try "an init by hand takes the poweroff back" absent $ASKED
try "nodestrap-power.service ends after the poweroff is taken back" eventually idle nodestrap-power
try "the machine stays up after the poweroff is taken back" idle poweroff.target

systemctl stop nodestrap-event.path nodestrap-event
looks() { pgrep -P "$(property nodestrap-power MainPID)" sleep >/dev/null; }    # it has looked once, and waits to look again
waits() { echo "$1" >$ASKED; rm -rf /run/nodestrap/events/*; mkdir -p /run/nodestrap/events; echo '[]' >/run/nodestrap/events/1; systemctl start nodestrap-power; eventually looks; }
try "nodestrap-power.service waits for an Event that is not sent yet" waits 'poweroff 0 1800'
sent=$(uptime_usec /proc/uptime); rm /run/nodestrap/events/1
try "the machine powers off after the Event is sent" eventually active poweroff.target
try "the poweroff comes after the Event" before "$sent" "$(property poweroff.target ActiveEnterTimestampMonotonic)"
systemctl stop poweroff.target
try "nodestrap-power.service waits for an Event that cannot be sent" waits 'poweroff 0 4'
try "the machine powers off at the deadline without the Event" eventually active poweroff.target
try "the Event that cannot be sent is still there" test -e /run/nodestrap/events/1
systemctl stop poweroff.target
try "nodestrap-power.service starts with an unknown request" waits 'rm 0 4'
try "nodestrap-power.service fails with an unknown request" eventually failed nodestrap-power; rm /run/nodestrap/events/1
try "nodestrap-power.service waits again for a poweroff" waits 'poweroff 0 1800'
touch /run/nodestrap/kubelet-may-start; rm /run/nodestrap/events/1
try "nodestrap-power.service ends if kubelet may start" eventually idle nodestrap-power
try "the journal says that kubelet has run in this boot" in_journal "kubelet has run in this boot: no poweroff"
try "the machine stays up if kubelet may start" idle poweroff.target
systemctl start nodestrap-power
try "systemd skips another start of nodestrap-power.service" is "$(property nodestrap-power ConditionResult)" no
try "a run fails after kubelet has run" run_fails
try "a run that fails after kubelet has run requests nothing" absent $ASKED
finish
