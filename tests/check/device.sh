#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The comparison of `make check-device`, without a GPU: the fake library beside a nvidia-smi that says the same. Then each value differs
# once, and the comparison must name it.
set -u; top=$(realpath "$(dirname "$0")/../.."); HELPERS=${HELPERS:-$top/build/tests/helpers} FAKES=${FAKES:-$top/build/tests/fakes}
count=0 bad=0 W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
try() { local name=$1 output; shift; count=$((count + 1))
        if output=$("$@" 2>&1); then echo "ok $count - $name"; else bad=1; echo "not ok $count - $name"; sed 's/^/# /' <<<"$output"; fi; }
smi=$top/tests/fixtures/smi-h100.xml device=$W/root/sys/bus/pci/devices/0000:10:00.0
mkdir -p "$device"; echo PCI_ID=10DE:2330 >"$device/uevent"
printf 'model h100\ngpu 0000:10:00.0\n' >"$W/nvml"
export FAKE_NVML=$W/nvml LD_LIBRARY_PATH=$FAKES ASAN_OPTIONS=detect_leaks=0
"$HELPERS/device-tool" "$W/root" >"$W/lines" || echo "exit status $?" >>"$W/lines"
printf '#!/bin/sh\nexec cat %s/told\n' "$W" >"$W/tool"; chmod +x "$W/tool"
judge() { python3 "$top/tests/oracles/device.py" --tool "$W/tool" --smi "$1" --root "$W/root"; }
# One compared value is wrong, and it alone is named.
differs() { local gpu=0000:10:00.0 key=$1; sed "s/^$gpu $key .*/$gpu $key $2/" "$W/lines" >"$W/told"; judge "$smi" >"$W/out"
        [ "$(grep -c '^not ok' "$W/out")" = 1 ] && grep -q "^not ok [0-9]* - $gpu $key\$" "$W/out" || { cat "$W/out"; return 1; }; }

cp "$W/lines" "$W/told"
try 'the comparison passes if the library and nvidia-smi agree' judge "$smi"
compared=$(judge "$smi" | sed -n '/SKIP/d; s/^ok [0-9]* - 0000:10:00.0 //p')
try 'the comparison has 14 values, all but the pages of older models' test "$(wc -w <<<"$compared")" = 14
for key in $compared; do
        case $key in clock-reasons) value=0x40;; *,*) value=x;; *) value=7;; esac
        try "the comparison names $key if it differs" differs "$key" "$value"
        try "the comparison names $key if the driver does not give it to us" differs "$key" "[Not Supported (3)]"
done
cp "$W/lines" "$W/told"; sed 's/00000000:10:00.0/00000000:20:00.0/' "$smi" >"$W/smi"
others() { judge "$W/smi" >"$W/out"; grep -q '^not ok 1 - the same GPUs' "$W/out"; }
try 'the comparison fails if nvidia-smi has other GPUs' others
sed 's/clocks_event_reason/clocks_throttle_reason/g; s/<remapped_row_pending>No/<remapped_row_pending>Yes/' "$smi" >"$W/smi"
other() { judge "$W/smi" >"$W/out"; grep -q '^ok .* clock-reasons$' "$W/out" && grep -q '^not ok .* rows$' "$W/out"; }
try 'the comparison knows names of older drivers and finds a row that only nvidia-smi sees' other
none() { python3 "$top/tests/oracles/device.py" --tool /bin/false --report "$W/report" | grep -q '^ok 1 .*# SKIP no NVIDIA driver is loaded'; }
[ -e /proc/driver/nvidia/version ] || try 'the comparison is skipped on a machine without a GPU' none
echo "1..$count"; exit "$bad"
