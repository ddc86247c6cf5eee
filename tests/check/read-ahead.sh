#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nodestrap-read-ahead brings files of a list into the page cache, in the order of the list. It reads only what is missing there, waits while
# others use the disk, and stays below its share of the memory. fincore(1) tells how much of a file is in memory. The busy disk is a file
# in place of the one in /sys. The files lie on a disk, since a tmpfs has all of its files in memory.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
program=$(dirname "$(realpath "${NODESTRAP:-build/nodestrap}")")/nodestrap-read-ahead
rm -r "$tmp"; tmp=$(mktemp -d /var/tmp/read-ahead.XXXXXX) || exit; root=$tmp/root
case $(stat -f -c %T "$tmp") in tmpfs|ramfs) echo "1..0 # SKIP $tmp is not on a disk"; exit;; esac
umask 022; mkdir -p "$root"/{proc/pressure,proc/sys/kernel,run/nodestrap,usr/bin,usr/lib64,lib/modules/6.1.0/kernel/md}
file() { dd if=/dev/urandom of="$root$1" bs=1024 count="$2" status=none; }
file /usr/bin/kubelet 6144; file /usr/bin/ctr 777; file /usr/lib64/libz.so.1 90; file /lib/modules/6.1.0/kernel/md/raid0.ko.xz 33; file /usr/bin/other 50
: >"$root/usr/bin/empty"; mkdir "$root/usr/bin/folder"; ln -s kubelet "$root/usr/bin/link"; ln -s /usr/bin/nowhere "$root/usr/bin/dead"; mkfifo "$root/usr/bin/pipe"
echo 6.1.0 >"$root/proc/sys/kernel/osrelease"; memory() { echo "MemAvailable:   $1 kB" >"$root/proc/meminfo"; }
memory 8000000; sync -f "$root"
cold() { python3 -c 'import os, sys
for name in sys.argv[1:]:
    f = os.open(name, os.O_RDONLY); os.fsync(f); os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)' "$root"/usr/bin/{kubelet,ctr,other} "$root"/usr/lib64/* "$root"/lib/modules/6.1.0/kernel/md/*; }
list() { printf '%s\n' "$@" >"$root/list"; }
in_memory() { fincore --bytes --noheadings --output RES "$root$1" | tr -d " "; }
# The kernel may drop single pages at any time.
whole() { local f; for f in "$@"; do [ $(($(in_memory "$f") + 65536)) -ge "$(stat -c %s "$root$f")" ] || { echo "$f: $(in_memory "$f")"; return 1; }; done; }
none() { local f; for f in "$@"; do [ "$(in_memory "$f")" = 0 ] || { echo "$f: $(in_memory "$f")"; return 1; }; done; }
reads() { "$program" --root "$root" "$@" /list 2>"$tmp/err"; }
member() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$root/run/nodestrap/read-ahead.json" "$1"; }
says() { grep -qE -- "$1" "$tmp/err" || { cat "$tmp/err"; false; }; }
cold; [ "$(in_memory /usr/bin/kubelet)" = 0 ] || { echo "1..0 # SKIP the kernel keeps files in memory here"; exit; }

list '# what a boot needs' 'always /usr/bin/kubelet' 'always /usr/bin/missing' 'always /lib/modules/%v/kernel/md/raid0.ko*' 'always %l/libz.so.*' 'nvidia /usr/bin/other'
ok 'read-ahead brings the files of the list into memory' eval 'reads && whole /usr/bin/kubelet /lib/modules/6.1.0/kernel/md/raid0.ko.xz /usr/lib64/libz.so.1'
ok 'read-ahead does not read other files, or files whose condition is false' none /usr/bin/ctr /usr/bin/other
ok 'read-ahead.json has the number of bytes read and the end: done' [ "$(member bytesBrought) $(member bytesPresent) $(member ended)" = "$(((6144 + 33 + 90) * 1024)) 0 done" ]
ok 'the message has the amount read and the reason for the end' says 'MiB read ahead in .*, 0\.0 MiB were in memory already; exit reason: done$'
ok 'read-ahead does not read again what is in memory' eval 'reads && [ "$(member bytesBrought)" -le 65536 ] && [ $(($(member bytesBrought) + $(member bytesPresent))) = $(((6144 + 33 + 90) * 1024)) ]'
# LeakSanitizer cannot work below strace.
traced() { : >"$tmp/trace"; ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=readahead,pread64,read -o "$tmp/trace" "$program" --root "$root" "$@" /list 2>"$tmp/err"; }
# begun TEXT OPTION…: it runs in the background, below $tracer, and has read that three times
begun() { local text=$1; shift; traced "$@" & tracer=$!; until [ "$(grep -c -- "$text" "$tmp/trace")" -ge 3 ]; do kill -0 $tracer || return 1; done; }
ok 'a run over files in memory has at most 16 readahead calls' eval 'traced && [ "$(grep -c readahead\( "$tmp/trace")" -le 16 ]'
mkdir -p "$root/sys/bus/pci/devices/0000:10:00.0"; echo 0x10de >"$root/sys/bus/pci/devices/0000:10:00.0/vendor"
ok 'a row with the condition nvidia is read if the machine has an NVIDIA device' eval 'reads && whole /usr/bin/other'

list 'always /usr/bin/{empty,folder,dead,pipe,ctr}' 'always /usr/bin/kubelet' 'always /usr/bin/link' 'always /usr/bin' 'always' 'gpu /x' 'always x'; cold
ok 'empty files, directories, dead links and pipes do no harm' eval 'reads && whole /usr/bin/ctr /usr/bin/kubelet'
ok 'a file with two names counts once' [ "$(member bytesBrought)" = $(((6144 + 777) * 1024)) ]
ok 'the message for an invalid row has its line number' eval 'says "^nodestrap: /list:5: expected a condition and an absolute path; ignored" && says "/list:6:" && says "/list:7:"'
ok 'as another user, read-ahead reads what it may and says that it cannot write its record' eval 'cold; chmod 700 "$tmp" "$root"; chmod 711 "$tmp" "$root"; chmod 600 "$root/usr/bin/ctr"; chown 65534 "$root/usr/bin/kubelet"
        setpriv --reuid 65534 --clear-groups "$program" --root "$root" /list 2>"$tmp/err"; rc=$?; chown 0 "$root/usr/bin/kubelet"; chmod 755 "$root/usr/bin/ctr"; [ $rc = 0 ] && whole /usr/bin/kubelet && none /usr/bin/ctr && says "/run/nodestrap/read-ahead.json cannot be written: Permission denied"'

list 'always /usr/bin/ctr' 'always /usr/bin/kubelet' 'always /usr/bin/other'; cold; memory 16000
ok 'read-ahead reads at most a quarter of the available memory' eval 'reads && [ "$(member bytesBrought)" -le 4096000 ] && [ "$(member bytesBrought)" -gt 3000000 ] && [ "$(member ended)" = memory ]'
ok 'with little memory, the first file of the list is read and the last is not' eval 'whole /usr/bin/ctr && none /usr/bin/other'
cold; rm "$root/proc/meminfo"
ok 'read-ahead reads nothing if the available memory is unknown' eval 'reads && none /usr/bin/kubelet && [ "$(member ended)" = memory ]'
memory 8000000

device=$(stat -c '%Hd:%Ld' "$root/usr/bin/kubelet"); mkdir -p "$root/sys/dev/block/$device/queue"; busy() { echo "       $1        $2" >"$root/sys/dev/block/$device/inflight"; }
cold; busy 3 0
ok 'read-ahead waits while others read from the disk' eval 'reads --for 400ms && none /usr/bin/kubelet /usr/bin/ctr && [ "$(member ended) $(member bytesBrought)" = "time 0" ]'
busy 0 1
ok 'read-ahead waits while others write to the disk' eval 'reads --for 400ms && none /usr/bin/kubelet /usr/bin/ctr'
ok 'read-ahead does not wait for the disk if all files are in memory' eval 'cat "$root"/usr/bin/{kubelet,ctr,other} >/dev/null; traced --for 60s && ! grep readahead\( "$tmp/trace" && [ "$(member ended)" = done ]'
cold
ok 'read-ahead continues when the disk is idle again' eval 'begun "pread64(.* 1.n\"" --for 60s && none /usr/bin/kubelet /usr/bin/ctr && busy 0 0 && wait $tracer && whole /usr/bin/kubelet /usr/bin/ctr'
cold; echo 64 >"$root/sys/dev/block/$device/queue/max_sectors_kb"
ok 'read-ahead reads in pieces of one disk request' eval 'ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=readahead -o "$tmp/trace" "$program" --root "$root" /list 2>"$tmp/err"; whole /usr/bin/kubelet && ! grep -vE "readahead\([0-9]+, [0-9]+, (65536|[0-9]{1,5})\)|exited" "$tmp/trace" && [ "$(grep -c 65536\) "$tmp/trace")" -ge 96 ]'
rm -r "$root/sys/dev"; pressure() { printf 'some avg10=%s avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n' "$1" >"$root/proc/pressure/io"; }
cold; pressure 55.10
ok 'read-ahead waits under I/O pressure if the disk has no counters' eval 'reads --for 400ms && none /usr/bin/kubelet /usr/bin/ctr'
pressure 2.00
ok 'read-ahead does not wait under low I/O pressure' eval 'reads && whole /usr/bin/kubelet /usr/bin/ctr'

cold; touch "$root/run/nodestrap/kubelet-may-start"
ok 'read-ahead ends when kubelet may start' eval 'reads && none /usr/bin/kubelet && [ "$(member ended)" = kubelet ]'
rm "$root/run/nodestrap/kubelet-may-start"; pressure 99.00
stopped() { begun 'some avg10=99' --for 60s && pkill -TERM -P "$(pgrep -P $tracer strace)" nodestrap-read && wait $tracer; }
ok 'SIGTERM ends read-ahead with success, and its record says stopped' eval 'stopped && [ "$(member ended)" = stopped ]'
pressure 0.00; rm "$root/list"
ok 'a missing list is not a failure, and the message names it' eval 'reads && says "/list cannot be read, so nothing is read ahead from it: No such file or directory" && [ "$(member ended)" = done ]'
ok 'read-ahead without a list fails and prints its usage' eval '! "$program" 2>"$tmp/err"; says "^usage: nodestrap-read-ahead"'

# ---- what status says of it ----
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}"); mkdir "$tmp/ok" && python3 "$here/../oracles/status.py" boot ok "$tmp/ok" || exit 1
status() { "$nodestrap" status --root "$tmp/ok" "$@" >"$tmp/out" 2>"$tmp/err"; }
ok 'status --long has no line about read-ahead for a boot without it' eval 'status --long && ! grep "read ahead" "$tmp/out"'
echo '{"beginUsec": 1, "endUsec": 2, "bytesBrought": 193986560, "bytesPresent": 12582912, "ended": "kubelet"}' >"$tmp/ok/run/nodestrap/read-ahead.json"
ok 'status --long has a line about read-ahead' eval 'status --long && grep -x "read ahead: 185 MiB from the disk, 12 MiB were in memory already" "$tmp/out"'
ok 'the short status has no line about read-ahead' eval 'status && ! grep "read ahead" "$tmp/out"'
ok 'status --output json has the record of read-ahead' eval 'status --output json && [ "$(python3 -c "import json; print(json.load(open(\"$tmp/out\"))[\"readAhead\"][\"ended\"])")" = kubelet ]'
echo '{' >"$tmp/ok/run/nodestrap/read-ahead.json"
ok 'status --long ignores an unfinished record of read-ahead' eval 'status --long && ! grep "read ahead" "$tmp/out"'
done_testing
