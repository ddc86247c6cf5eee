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

try "it is frozen" freeze
init >said 2>&1 & pid=$!
try "after a while one line says what is waited for" within 300 said "$still 10 s; giving up in 110 s; dmesg shows whether the disk of the file answers\$"
try "and until when: not yet" no test -e $status
try "no file of the configuration is written" no test -e $before
try "it is thawed" fsfreeze -u /etc/kubernetes
wait $pid; code=$?
try "the run succeeds" is $code 0
try "it writes them" test -s $before
try "nothing is left beside them" none_left
try "nothing is said of a failure" no said 'not done after|failed'
cp said out/said-pause

clean
try "it is frozen again" freeze
init >said 2>&1 & pid=$!
try "that is said" within 300 said "$still 10 s; "
kill -TERM $pid
try "a stop is obeyed" within 60 said 'EINTERRUPTED\) at write-file:/etc/kubernetes/.*: stopped by SIGTERM; writing its new content beside it'
try "a report is written" within 60 test -e $status
try "others can have its locks" free
try "it is thawed once more" fsfreeze -u /etc/kubernetes
wait $pid; code=$?
try "the exit status is that of a stop" no is $code 0
try "what came back has written nothing" no test -e $before
try "none of its files is in its place" none_in_place
cp said out/said-stop

clean
try "it is frozen for good" freeze
init >said 2>&1 & pid=$!
try "that is said every 10 s" within 300 said "$still 20 s; giving up in 100 s; "
try "a report is written" within 500 test -e $status
try "after it was said for the last time" said "$still 110 s; giving up in 10 s; "
try "others can have its locks" free
try "the process is there as long as the disk keeps its thread" kill -0 $pid
try "the report says which file, and what was done with it" grep -q 'not done after 120 s; writing its new content beside it' $status
try "one line says so" is "$(grep -c '/etc/kubernetes/.*not done after 120 s' said)" 1
try "the last line has the cause" said '\(40 ESTALLED\) at write-file:/etc/kubernetes/.*not done after 120 s'
try "no file of the configuration is written" no test -e $before
try "it is thawed in the end" fsfreeze -u /etc/kubernetes
wait $pid; code=$?
try "the exit status is that of a file" is $code 40
try "what came back has written nothing" no test -e $before
try "none of its files is in its place" none_in_place

try "the next run succeeds" sh -c "nodestrap init --skip run $(sources)"
try "and writes them" test -s $before
try "what the thread may have left is gone" none_left
cp said $status out/
finish
