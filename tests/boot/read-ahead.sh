#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 conf/examples/plain-proxy.userdata
# tree: enabled
# nodestrap-read-ahead.service runs beside the phases, and ends by itself, with what its unit allows it. Nothing waits for it: a boot in which
# it hangs or fails is as good, and masked it does nothing. See tests/check/read-ahead.sh for what it reads, and when.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

UNIT=nodestrap-read-ahead REPORT=/run/nodestrap/read-ahead.json D=/run/systemd/system/$UNIT.service.d
ended() { is "$(property $UNIT ActiveState)" inactive; }
ended_by() { grep -qE "\"ended\": \"($1)\"" $REPORT || { cat $REPORT; return 1; }; }
again() { systemctl reset-failed $UNIT 2>/dev/null; rm -f $REPORT; systemctl restart $UNIT; }
instead() { mkdir -p $D && printf '[Service]\nExecStart=\nExecStart=%s\n' "$1" >$D/test.conf && systemctl daemon-reload; }

check_node
try "read-ahead ends" eventually ended
try "well" is "$(property $UNIT Result) $(property $UNIT ExecMainStatus)" "success 0"
try "it began before the first phase had ended" before "$(property $UNIT ExecMainStartTimestampMonotonic)" "$(property nodestrap-config ExecMainExitTimestampMonotonic)"
try "its report is there" ended_by 'done|kubelet|time'
try "the journal has it" in_journal 'MiB read ahead in .*, .* MiB were in memory already; ended by: (done|kubelet|time)$'
try "status has it" sh -c "nodestrap status --long | grep '^read ahead: [0-9]* MiB from the disk, [0-9]* MiB were in memory already$'"
try "no unit comes after it" is "$(property $UNIT Before)" shutdown.target
try "once kubelet may start, it is skipped" again
try "without a word of failure" is "$(property $UNIT ConditionResult) $(property $UNIT ActiveState)" "no inactive"

rm /run/nodestrap/kubelet-may-start
try "by hand it runs again" again
try "and ends" eventually ended
try "with all of it in memory" ended_by 'done|time'
instead /bin/false
try "one that fails" again
try "is a unit that failed" eventually failed $UNIT
instead '/bin/sleep infinity'
try "one that hangs has started anyway" again
try "and is stopped with all others" systemctl stop $UNIT
rm -r $D; systemctl daemon-reload; systemctl reset-failed $UNIT
try "masked" systemctl mask --runtime $UNIT
try "it keeps no phase from its start" systemctl restart nodestrap-config
finish
