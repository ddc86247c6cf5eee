#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/plain-proxy.userdata
# tree: enabled
# nodestrap-read-ahead.service runs beside the phases with the rights of its unit, and ends by itself. Nothing waits for it: a boot
# succeeds even if it hangs, fails or is masked. See tests/check/read-ahead.sh for what it reads, and when.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

UNIT=nodestrap-read-ahead REPORT=/run/nodestrap/read-ahead.json D=/run/systemd/system/$UNIT.service.d
ended() { is "$(property $UNIT ActiveState)" inactive; }
ended_by() { grep -qE "\"ended\": \"($1)\"" $REPORT || { cat $REPORT; return 1; }; }
again() { systemctl reset-failed $UNIT 2>/dev/null; rm -f $REPORT; systemctl restart $UNIT; }
instead() { mkdir -p $D && printf '[Service]\nExecStart=\nExecStart=%s\n' "$1" >$D/test.conf && systemctl daemon-reload; }

check_node
try "read-ahead ends" eventually ended
try "read-ahead succeeds" is "$(property $UNIT Result) $(property $UNIT ExecMainStatus)" "success 0"
try "read-ahead begins before the first phase ends" before "$(property $UNIT ExecMainStartTimestampMonotonic)" "$(property nodestrap-config ExecMainExitTimestampMonotonic)"
try "read-ahead writes a report" ended_by 'done|kubelet|time'
try "the journal has the report of read-ahead" in_journal 'MiB read ahead in .*, .* MiB were in memory already; exit reason: (done|kubelet|time)$'
try "status has the report of read-ahead" sh -c "nodestrap status --long | grep '^read ahead: [0-9]* MiB from the disk, [0-9]* MiB were in memory already$'"
try "no unit but shutdown.target is ordered after read-ahead" is "$(property $UNIT Before)" shutdown.target
try "a start of read-ahead succeeds once kubelet may start" again
try "systemd skips read-ahead once kubelet may start" is "$(property $UNIT ConditionResult) $(property $UNIT ActiveState)" "no inactive"

rm /run/nodestrap/kubelet-may-start
try "read-ahead starts by hand before kubelet may start" again
try "the second read-ahead ends" eventually ended
try "the second read-ahead ends because all is read or its time is over" ended_by 'done|time'
instead /bin/false
try "systemd starts a read-ahead that fails" again
try "a read-ahead that fails is a failed unit" eventually failed $UNIT
instead '/bin/sleep infinity'
try "systemd starts a read-ahead that hangs and does not wait for it" again
try "systemd stops a read-ahead that hangs" systemctl stop $UNIT
rm -r $D; systemctl daemon-reload; systemctl reset-failed $UNIT
try "systemd masks read-ahead" systemctl mask --runtime $UNIT
try "the configuration phase starts with a masked read-ahead" systemctl restart nodestrap-config
finish
