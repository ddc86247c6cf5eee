#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 600
# imds: imds-m5
# A disk that takes no write and answers nobody who tries: init says so at the deadline of files and ends, as far as it can. The kernel
# keeps a thread of it until the disk answers, and with that the process, so what it leaves behind is looked at before that.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

status=/run/nodestrap/status.json before=/etc/eks/kubelet/environment
# shellcheck disable=SC2046 # sources are words
init() { nodestrap init --skip run $(sources); }
free() { flock -w 60 /run/nodestrap/lock true && flock -w 60 /run/nodestrap/devices.lock true; }
reported() { local i; for ((i = 0; i < 60; i++)); do [ ! -e $status ] || return 0; sleep 1; done; return 1; }
said() { grep -qE -- "$1" said || { echo "no line with $1 in:"; cat said; return 1; }; }

truncate -s 64M disk
try "a file system for /etc/kubernetes" sh -c 'modprobe loop; mkfs.ext4 -q disk && mkdir -p /etc/kubernetes && mount -o loop disk /etc/kubernetes'
try "it is frozen" fsfreeze -f /etc/kubernetes
# What looking at this machine takes, which may be a busy one.
begin=$(uptime_usec /proc/uptime)
# shellcheck disable=SC2046 # sources are words
try "a plan is made" nodestrap plan $(sources)
look=$(($(uptime_usec /proc/uptime) - begin)) begin=$(uptime_usec /proc/uptime)
init >said 2>&1 & pid=$!
try "a report is written" reported
try "at the deadline, and not much later" test $(($(uptime_usec /proc/uptime) - begin)) -lt $((25000000 + 3 * look))
try "others can have its locks" free
try "the process is there as long as the disk keeps its thread" kill -0 $pid
try "the report says which file, and what was done with it" grep -q 'not done after 10 s; writing its new content beside it' $status
try "one line says so" is "$(grep -c '/etc/kubernetes/.*not done after 10 s' said)" 1
try "the last line has the cause" said '\(40 EFILE\) at write-file:/etc/kubernetes/.*not done after 10 s'
try "no file of the configuration is written" no test -e $before
try "it is thawed" fsfreeze -u /etc/kubernetes
wait $pid; code=$?
try "the exit status" is $code 40
try "what came back has written nothing" no test -e $before
try "none of its files is in its place" is "$(find /etc/kubernetes -type f ! -name '.*.tmp')" ""

try "the next run succeeds" init
try "and writes them" test -s $before
try "what the thread may have left is gone" is "$(find /etc/kubernetes /etc/eks -name '.*.tmp')" ""
cp said $status out/
finish
