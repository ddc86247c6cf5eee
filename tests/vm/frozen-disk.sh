#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 900
# imds: imds-m5
# A disk that takes no write and never answers. init waits for one that comes back, and the console says so. For one that does not, init
# says so at the deadline of files and ends, as far as it can; also after a stop. The kernel keeps a thread of init, and so the
# process, until the disk answers. So the test looks at the remains before that.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

status=/run/nodestrap/status.json before=/etc/eks/kubelet/environment
# shellcheck disable=SC2046 # sources are words
init() { exec nodestrap init --skip run $(sources); }
free() { flock -w 60 /run/nodestrap/lock true && flock -w 60 /run/nodestrap/devices.lock true; }
said() { grep -qE -- "$1" said || { echo "no line with $1 in:"; cat said; return 1; }; }
# within SECONDS COMMAND… : it succeeds, sooner or later
within() { local i n=$1; shift; for ((i = 0; i < n; i++)); do "$@" >/dev/null && return; sleep 1; done; "$@"; }
freeze() { rm -f $status; fsfreeze -f /etc/kubernetes; }
clean() { find /etc/kubernetes -type f -delete; rm -f $before; }
none_in_place() { is "$(find /etc/kubernetes -type f ! -name '.*.tmp')" ""; }
none_left() { is "$(find /etc/kubernetes /etc/eks -name '.*.tmp')" ""; }
still='write-file:/etc/kubernetes/.*: still writing its new content beside it after'

truncate -s 64M disk
try "a file system for /etc/kubernetes" sh -c 'modprobe loop; mkfs.ext4 -q disk && mkdir -p /etc/kubernetes && mount -o loop disk /etc/kubernetes'
# shellcheck disable=SC2046 # sources are words
try "a plan is made" within 300 nodestrap plan $(sources)

try "the file system is frozen" freeze
init >said 2>&1 & pid=$!
try "after 10 s one line says which step still waits, and when init gives up" within 300 said "$still 10 s; giving up in 110 s; dmesg shows whether the disk responds\$"
try "init has written no report yet" no test -e $status
try "init has written no file of the configuration while the disk is frozen" no test -e $before
try "the file system is thawed" fsfreeze -u /etc/kubernetes
wait $pid; code=$?
try "init succeeds after the disk came back" is $code 0
try "init writes the files of the configuration after the disk came back" test -s $before
try "init leaves no temporary file" none_left
try "init prints no failure" no said 'not done after|failed'
cp said out/said-pause

clean
try "the file system is frozen again" freeze
init >said 2>&1 & pid=$!
try "init says again that it still writes after 10 s" within 300 said "$still 10 s; "
kill -TERM $pid
try "SIGTERM stops init while the disk is frozen" within 60 said 'EINTERRUPTED\) at write-file:/etc/kubernetes/.*: stopped by SIGTERM; writing its new content beside it'
try "init writes a report after SIGTERM" within 60 test -e $status
try "init releases its locks after SIGTERM" free
try "the file system is thawed again" fsfreeze -u /etc/kubernetes
wait $pid; code=$?
try "init does not exit with 0 after SIGTERM" no is $code 0
try "after SIGTERM, the thread that continues writes no file of the configuration" no test -e $before
try "after SIGTERM, no file below /etc/kubernetes is in its place" none_in_place
cp said out/said-stop

clean
try "the file system is frozen until the deadline of files" freeze
init >said 2>&1 & pid=$!
try "init says after 20 s, too, that it still writes" within 300 said "$still 20 s; giving up in 100 s; "
try "init writes a report at the deadline of files" within 500 test -e $status
try "init says for the last time after 110 s that it still writes" said "$still 110 s; giving up in 10 s; "
try "init releases its locks at the deadline of files" free
try "the process of init exists as long as the disk keeps its thread" kill -0 $pid
try "the report says that init was still writing new content at the deadline" grep -q 'not done after 120 s; writing its new content beside it' $status
try "exactly one line says that the file was not done at the deadline" is "$(grep -c '/etc/kubernetes/.*not done after 120 s' said)" 1
try "the message of the failure has the cause ESTALLED and the file" said '\(40 ESTALLED\) at write-file:/etc/kubernetes/.*not done after 120 s'
try "init has written no file of the configuration at the deadline" no test -e $before
try "the file system is thawed after the deadline" fsfreeze -u /etc/kubernetes
wait $pid; code=$?
try "init exits with 40 after the deadline of files" is $code 40
try "after the deadline, the thread that continues writes no file of the configuration" no test -e $before
try "after the deadline, no file below /etc/kubernetes is in its place" none_in_place

try "the next run of init succeeds" sh -c "nodestrap init --skip run $(sources)"
try "the next run of init writes the files of the configuration" test -s $before
try "no temporary file of the stalled thread remains after the next run" none_left
cp said $status out/
finish
