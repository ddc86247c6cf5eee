#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 600
# tree: helpers
# Instance stores that come while nodestrap waits for them: NVMe over TCP within the guest, so that they appear when the test says.
# Every step waits for the line in which the wait tells what it sees; nothing here depends on how fast anything is. Then the modules that
# systemd loads as such a disk comes, by 90-nodestrap.rules.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

NQN=nqn.2020-01.com.example:store TARGET=/sys/kernel/config/nvmet
target() {                              # a port on loopback
        modprobe -a nvmet nvmet_tcp nvme_tcp || return
        mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config || return
        mkdir $TARGET/ports/1 && cd $TARGET/ports/1 || return
        echo ipv4 >addr_adrfam && echo tcp >addr_trtype && echo 127.0.0.1 >addr_traddr && echo 4420 >addr_trsvcid
}
store() {                               # store N [MODEL]: a controller that shows its namespace once `enable N` was called
        mkdir $TARGET/subsystems/$NQN"$1" && cd $TARGET/subsystems/$NQN"$1" || return
        echo 1 >attr_allow_any_host && echo "${2:-Amazon EC2 NVMe Instance Storage}" >attr_model && echo "AWS0000000000000000$1" >attr_serial || return
        truncate -s 64M "/vmtest/store.$1" && mkdir namespaces/1 && echo "/vmtest/store.$1" >namespaces/1/device_path || return
        ln -s "$PWD" $TARGET/ports/1/subsystems/
}
enable()     { echo 1 >$TARGET/subsystems/$NQN"$1"/namespaces/1/enable; }
connect()    { echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$NQN$1" >/dev/nvme-fabrics; }
disconnect() {
        local c; for c in /sys/class/nvme/nvme*; do [ "$(cat "$c/subsysnqn")" != "$NQN$1" ] || echo 1 >"$c/delete_controller"; done
        udevadm settle
}

# start EXPECTED TIMEOUT: the wait runs, its lines come through a pipe. sees NAME TEXT: goes on when a line holds the text.
# ends NAME RESULT: the wait has ended with this result. Both stop reading if no line comes for 60 s.
start() { rm -f lines; mkfifo lines; ./wait-tool "$@" >lines 2>&1 & tool=$!; exec 3<lines; seen=; }
read_lines() { local line; while IFS= read -r -t 60 line <&3; do seen+=$line$'\n'; [[ -z $1 || $line != *"$1"* ]] || return 0; done; }
said() { [[ $seen == *"$1"* ]] || { echo "no \"$1\" in:"; echo "$seen"; return 1; }; }
never_said() { [[ $seen != *"$1"* ]] || { echo "$seen"; return 1; }; }
result() { [[ $'\n'$seen == *$'\n'"$1 after "*" us"$'\n' ]] || { echo "no result $1 in:"; echo "$seen"; return 1; }; }
sees() { read_lines "$2"; try "$1" said "$2"; }
ends() { read_lines ''; wait $tool; try "$1" result "$2"; }

try "the NVMe target is set up" target
for i in 1 2 3; do try "store $i is made" store $i; enable $i; done

start 0 100s
ends "nodestrap does not wait if no disk exists and none is expected" 1
try "a run without a wait prints no message" never_said nodestrap:

start 2 100s
sees "nodestrap waits for two instance stores" "instance stores: 0 of 2"
try "the first instance store comes" connect 1
sees "nodestrap sees the first instance store" "instance stores: 1 of 2"
sees "the message names the disk that was found" "Waiting for instance stores: found 1 of 2 (nvme"
try "the second instance store comes" connect 2
ends "the wait ends when both instance stores are there" 1
try "udev knows both disks when the wait ends" sh -c '[ "$(udevadm info -q property /dev/nvme*n1 | grep -c ^USEC_INITIALIZED)" = 2 ]'

start 2 100s
ends "nodestrap does not wait if both instance stores are there" 1
try "a second run without a wait prints no message" never_said nodestrap:

start 3 1s
ends "nodestrap continues with two of three instance stores at the timeout" 0
try "the message has the number of disks after the wait" said "instance stores: 2 of 3"

start 3 100s
sees "nodestrap waits for a third instance store" "instance stores: 2 of 3"
kill -TERM $tool
ends "SIGTERM ends the wait" -4
try "the message says that SIGTERM ended the wait" said "stopped by SIGTERM while waiting for disks; nothing was changed"
start 3 100s
sees "nodestrap waits for a third instance store in the next run" "instance stores: 2 of 3"
kill -INT $tool
ends "SIGINT ends the wait" -4

echo 0 >$TARGET/subsystems/${NQN}3/namespaces/1/enable
try "a controller without its namespace comes" connect 3
udevadm settle
start 0 100s
sees "nodestrap waits for the disk of a controller even if none is expected" "instance stores: 2 of 3"
try "the namespace of the controller comes" enable 3
ends "the wait ends when the disk of the controller is there" 1

try "one disk goes with its controller" disconnect 3
start 0 100s
ends "nodestrap does not wait for a disk that went with its controller" 1

# udev does not yet know a disk, and an array over disks that it knows.
forget() { rm "/run/udev/data/b$(cat /sys/block/"$1"/dev)"; }
disks=(/dev/nvme*n1)
try "mdadm makes an array of both disks" mdadm --create /dev/md/late --run --level=0 --raid-devices=2 "${disks[@]}"
udevadm settle; array=$(basename "$(realpath /dev/md/late)")
start 2 100s
ends "nodestrap does not wait for the disks of a running array" 1
for device in "${disks[0]##*/}" "$array"; do
        try "udev forgets $device" forget "$device"
        start 2 100s
        sees "nodestrap waits until udev knows $device" "instance stores: 2 of 2, udev is at work"
        try "udevadm triggers an event for $device" udevadm trigger --action=change "/dev/$device"
        ends "the wait ends when udev knows $device" 1
done
mdadm --stop /dev/md/late

# udev is at work: an event that begins and ends when the test says so. Which device it is for does not matter.
mkfifo begin end
printf 'ACTION=="change", KERNEL=="null", RUN+="/bin/sh /vmtest/hold"\n' >/etc/udev/rules.d/99-hold.rules
printf 'echo >/vmtest/begin\nread line </vmtest/end\n' >hold
udevadm control --reload; udevadm trigger --action=change /dev/null
try "udev handles an event that the test holds" timeout 60 cat begin
start 2 100s
sees "nodestrap waits for udev while both disks are there" "instance stores: 2 of 2, udev is at work"
sees "the message says that nodestrap waits for udev" "Waiting for udev, which is still examining the disks (nvme"
try "the test ends the event of udev" timeout 60 sh -c 'echo >end'
ends "the wait ends when the queue of udev is empty" 1

# A machine without udev, such as a container.
mount -t tmpfs tmpfs /run/udev
start 3 100s
ends "nodestrap continues with the disks that are there if udev is missing" 0
umount /run/udev

disconnect 1; disconnect 2

# 90-nodestrap.rules: the test looks at the modprobe units, since a loaded module stays loaded.
started() { local m; for m in raid0 xfs; do [ "$(property modprobe@$m InactiveExitTimestampMonotonic)" != 0 ] || { echo "modprobe@$m was not started"; return 1; }; done; }
neither() { local m; for m in raid0 xfs; do is "$(property modprobe@$m InactiveExitTimestampMonotonic)" 0 || return; done; }
known() { udevadm info /dev/nvme*n1 | grep -q USEC_INITIALIZED; }
try "without nodestrap-run.service no modules load for an instance store" neither
mkdir -p /etc/systemd/system/multi-user.target.wants; ln -s /usr/lib/systemd/system/nodestrap-run.service /etc/systemd/system/multi-user.target.wants/
store 4 "Amazon Elastic Block Store"; enable 4
try "a disk of another model comes while nodestrap-run.service is enabled" connect 4
try "udev knows the disk of another model" eventually known
try "no modules load for a disk of another model" neither
try "the disk of another model goes" disconnect 4
try "an instance store comes" connect 1
try "the modules load for an instance store" eventually started
for module in raid0 xfs; do try "the kernel has $module" eventually test -e /sys/module/$module; done
try "no modprobe unit has failed" is "$(systemctl list-units --failed --no-legend 'modprobe@*')" ''
disconnect 1
finish
