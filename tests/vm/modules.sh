#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: vmboot.sh -s -d 0 -t 600
# tree: apply_tool
# load-module, await-devices and set-sysctl on a kernel; at the end with what nodestrap-devices.service may do, and no more.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

tool=(/opt/apply-tool)
as_devices() {
        local unit      # systemd-run takes only the last value of a repeated property, but a unit file takes all
        mapfile -t unit < <(awk -F= '/^(CapabilityBoundingSet|NoNewPrivileges|LockPersonality|Restrict[A-Za-z]*|SystemCall[A-Za-z]*)=/ { all[$1] = all[$1] " " $2 }
                END { for (key in all) print key "=" substr(all[key], 2) }' /usr/lib/systemd/system/nodestrap-devices.service)
        [ ${#unit[@]} -gt 6 ] && systemd-run -q --pipe --wait "${unit[@]/#/--property=}" /opt/apply-tool
}
applies() {     # EXIT PATTERN... <plan
        local want=$1 p rc miss=0 out; shift
        out=$("${tool[@]}" 2>&1); rc=$?; printf '%s\n' "$out"
        [ $rc = "$want" ] || { miss=1; echo "exit $rc instead of $want"; }
        for p; do grep -qE -- "$p" <<<"$out" || { miss=1; echo "missing: $p"; }; done
        return $miss
}

# ---- modules ----
modules="load-module ib_core deadline=60s
load-module ib_uverbs deadline=60s after=load-module:ib_core
load-module mlx5-ib deadline=60s after=load-module:ib_uverbs
load-module ib_umad deadline=60s"
try "the module ib_core is not loaded at first" no test -e /sys/module/ib_core
try "load-module succeeds for four modules" applies 0 "^done load-module:ib_umad" "load-module:ib_core" "^done load-module:mlx5-ib" <<<"$modules"
try "the kernel has the four modules" is "$(cat /sys/module/{ib_core,ib_uverbs,ib_umad,mlx5_ib}/initstate | sort -u)" live
try "load-module changes nothing the second time" applies 0 "^unchanged load-module:ib_core" "^unchanged load-module:mlx5-ib" "^unchanged load-module:ib_umad" <<<"$modules"
builtin=$(sed -n 's,.*/\(.*\)\.ko$,\1,p' "/lib/modules/$(uname -r)/modules.builtin" | tr - _ | while read -r m; do [ -e "/sys/module/$m" ] || { echo "$m"; break; }; done)
try "($builtin is built in, and not in /sys/module)" test -n "$builtin"
try "a built-in module counts as loaded" applies 0 "^unchanged load-module:$builtin" <<<"load-module $builtin"
try "load-module fails if the image lacks the module" applies 32 \
        "^failed load-module:efa: the kernel module efa cannot be loaded: modprobe exited with status 1, last said \"modprobe: FATAL: Module efa not found in directory /lib/modules/$(uname -r)\"" <<<"load-module efa"
try "load-module fails for a missing accelerator module and names modinfo" applies 33 "^failed load-module:nvidia: .*; modinfo shows whether the image has it for this kernel" <<<"load-module nvidia"
echo 'install dummy /bin/true' >/etc/modprobe.d/test.conf
try "load-module fails if modprobe succeeds but loads no module" applies 33 "^failed load-module:dummy: modprobe dummy succeeded, but the kernel lacks the module" <<<"load-module dummy"
rm /etc/modprobe.d/test.conf
: >"/lib/modules/$(uname -r)/broken.ko"; depmod
try "load-module fails for a damaged module" applies 33 "^failed load-module:broken: the kernel module broken cannot be loaded: modprobe exited with status 1, last said \"modprobe: ERROR: could not insert" <<<"load-module broken"
# Several tools at once, as systemd-udevd and services at boot: none sees a module that is not live.
modprobe -r mlx5_ib mlx5_core; modprobe -r ib_umad; modprobe -r ib_uverbs
at_once() { local i p=() bad=0; for i in 1 2 3 4 5; do /opt/apply-tool <<<"load-module mlx5_ib" >"once.$i" 2>&1 & p+=($!); done; for i in "${p[@]}"; do wait "$i" || bad=1; done; cat once.*; return $bad; }
try "five tools load one module at the same time" at_once

# ---- devices ----
modprobe -r rdma_ucm 2>/dev/null
awaits="await-devices /dev/infiniband/rdma_c* number=1 deadline=60s"
try "(the device is not there)" no test -e /dev/infiniband/rdma_cm
/opt/apply-tool <<<"$awaits" >awaited 2>&1 & waiting=$!
try "load-module brings a device while await-devices waits" applies 0 "^done load-module:rdma_ucm" <<<"load-module rdma_ucm"
wait $waiting; rc=$?
try "await-devices ends when the device is there" is "$rc $(grep -c '^\(done\|unchanged\) await-devices' awaited)" "0 1"
try "await-devices does not wait for a device that is there" applies 0 "^unchanged await-devices" <<<"$awaits"
try "await-devices fails if the devices never come" applies 33 "^failed await-devices:/dev/infiniband/umad\*: 0 of 2 /dev/infiniband/umad\* exist; .*lsmod and dmesg" <<<"await-devices /dev/infiniband/umad* number=2 deadline=4s"
try "missing devices can be a warning" applies 0 "^warning devices-missing: 0 of 2" <<<"await-devices /dev/infiniband/umad* number=2 deadline=4s lenient=yes"

# ---- settings ----
settings="set-sysctl vm.max_map_count with=262145
set-sysctl net/ipv4/conf/lo/rp_filter with=2
set-sysctl kernel.printk with=3
set-sysctl kernel.shmmni with=0x1001
set-sysctl net.core.bpf_jit_kallsyms with=1"
try "set-sysctl succeeds for five settings" applies 0 "^done set-sysctl:vm.max_map_count" "^done set-sysctl:net/ipv4/conf/lo/rp_filter" "set-sysctl:kernel.printk" "^done set-sysctl:kernel.shmmni" <<<"$settings"
try "the kernel has the settings" is "$(cd /proc/sys && cat vm/max_map_count net/ipv4/conf/lo/rp_filter kernel/shmmni | xargs)" "262145 2 4097"
try "set-sysctl changes nothing the second time" applies 0 "^unchanged set-sysctl:vm.max_map_count" "^unchanged set-sysctl:net/ipv4/conf/lo/rp_filter" "^unchanged set-sysctl:kernel.printk" \
        "^unchanged set-sysctl:kernel.shmmni" "^unchanged set-sysctl:net.core.bpf_jit_kallsyms" <<<"$settings"
# The first setting also changes the value of the second.
try "set-sysctl makes settings in their order" applies 0 "^done set-sysctl:net.ipv6.conf.all.disable_ipv6" "set-sysctl:net.ipv6.conf.lo.disable_ipv6" \
        <<<$'set-sysctl net.ipv6.conf.all.disable_ipv6 with=1\nset-sysctl net.ipv6.conf.lo.disable_ipv6 with=0'
try "a later setting of one interface wins over an earlier one of all" is "$(cd /proc/sys/net/ipv6/conf && cat all/disable_ipv6 lo/disable_ipv6 | xargs)" "1 0"
try "set-sysctl makes a setting that can only be written" applies 0 "^done set-sysctl:vm.compact_memory" <<<"set-sysctl vm.compact_memory with=1"
try "set-sysctl fails for an unknown setting and suggests a name" applies 40 "^failed set-sysctl:vm.max_map_cuont: this kernel has no such setting .*did you mean max_map_count\?" <<<"set-sysctl vm.max_map_cuont with=1"
try "set-sysctl fails for a value that the kernel rejects" applies 40 "^failed set-sysctl:vm.overcommit_memory: the kernel rejects \"7\" \(Invalid argument\); correct it in spec.instance.sysctl" \
        <<<"set-sysctl vm.overcommit_memory with=7"
try "a setting that cannot change is an error" applies 40 "^failed set-sysctl:kernel.ostype: /proc/sys/kernel/ostype cannot be written \(Permission denied\)" <<<"set-sysctl kernel.ostype with=Minix"
try "set-sysctl fails if the kernel accepts a value but does not use it" applies 40 "^failed set-sysctl:kernel.hostname: the kernel accepted \"a{60}" <<<"set-sysctl kernel.hostname with=$(printf 'a%.0s' {1..80})"

# Some kernel settings need a capability each; of these NET_ADMIN, SYS_RESOURCE and SYS_ADMIN.
tool=(as_devices); modprobe -r mlx5_ib mlx5_core; echo 0 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/kernel/dmesg_restrict
try "load-module succeeds with the rights of nodestrap-devices.service" applies 0 "^done load-module:mlx5_ib" <<<"load-module mlx5_ib deadline=60s"
try "set-sysctl succeeds with the rights of nodestrap-devices.service" applies 0 "^done set-sysctl:net.ipv4.ip_forward" "^done set-sysctl:user.max_user_namespaces" "^done set-sysctl:kernel.dmesg_restrict" \
        <<<$'set-sysctl net.ipv4.ip_forward with=1\nset-sysctl user.max_user_namespaces with=4242\nset-sysctl kernel.dmesg_restrict with=0'
try "the error names the missing privilege of root" applies 40 "^failed set-sysctl:vm.mmap_min_addr: .*Operation not permitted.*; this process lacks a root privilege: see SystemCallFilter= and CapabilityBoundingSet=" \
        <<<"set-sysctl vm.mmap_min_addr with=131072"
finish
