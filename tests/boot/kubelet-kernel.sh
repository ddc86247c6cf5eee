#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# tree: enabled joined_enabled swap
# console: NODESTRAP verdict=failed code=EUNIT
# kubelet ends if there is swap, or if the kernel has other settings than protectKernelDefaults wants. The boot names the cause and does
# not start kubelet. tests/cluster/kernel.sh has the real kubelet beside the program.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

init() { sh -c "nodestrap init $1 $(sources) --config-cache /run/eks/nodeadm/config.json" >out/init 2>&1; }
says() { grep -E -- "$1" out/init || { cat out/init; return 1; }; }
fails_with() { init "--skip config"; is $? 50 && says "$1"; }
plans() { sh -c "nodestrap plan $(sources) --output json" | grep -E -- "$1"; }
never_started() { is "$(property kubelet ExecMainStartTimestampMonotonic)" 0; }

swap='kubelet does not start with swap \(/dev/zram0, in /proc/swaps\): failSwapOn is true; swapoff -a and remove it from /etc/fstab, or set spec\.kubelet\.config\.failSwapOn: false'
try "the run phase exits with 50" exited nodestrap-run 50
try "the root cause is the last line" in_journal "^nodestrap: failed \(50 EUNIT\) at start-unit:kubelet\.service: $swap"
try "kubelet was never started" never_started
try "a plan warns of swap" plans "\"$swap\""
head -n 1 /vmtest/kernel/swaps >none; cat none >/vmtest/kernel/swaps
echo 0 >/vmtest/kernel/sys/kernel/panic; echo 2 >/vmtest/kernel/sys/vm/overcommit_memory
settings='kubelet does not start: protectKernelDefaults requires other kernel settings \(vm\.overcommit_memory is 2 and not 1, kernel\.panic is 0 and not 10\); set them in a file in /etc/sysctl\.d, or in spec\.instance\.sysctl'
try "a plan warns of kernel settings" plans "\"$settings\""
try "the error names the kernel settings that kubelet needs" fails_with "failed \(50 EUNIT\) at start-unit:kubelet\.service: $settings"
try "kubelet has still never started" never_started
echo 10 >/vmtest/kernel/sys/kernel/panic; echo 1 >/vmtest/kernel/sys/vm/overcommit_memory
try "a plan has no warning after the settings are right" no plans 'kubelet does not start'
try "the run phase succeeds after the settings are right" init "--skip config"
try "kubelet runs" active kubelet
printf '/swap file 1 0 -2\n' >>/vmtest/kernel/swaps
try "a second run succeeds although there is swap beside a running kubelet" init "--skip config"

finish
