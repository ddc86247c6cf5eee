#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -t 600
# imds: imds-m5
# gpu: g6f gridd many
# tree: gpu
# console: nodestrap: failed \(33 ELICENSE\) at await-license:grid: GPU 0 \(0000:31:00.0\) is a fractional GPU and has no licence
# The faults of the licence for a part of a GPU, one after the other, each on a machine that was just powered on.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh
. /vmtest/gpu.sh

power() { systemctl stop nvidia-gridd; systemctl reset-failed; power_on g6f "$@"; }
require() { spec '{accelerator: {nvidia: {health: require}}}'; }
warned() { grep -E -- "$1" /run/nodestrap/status.json; }
quick() { python3 -c 'import json
a = next(a for r in json.load(open("/run/nodestrap/status.json"))["runs"].values() for a in r["actions"] if a["id"] == "await-license:grid")
assert (a["endUsec"] - a["beginUsec"]) / 1e6 < 20, a'; }

power gridd-takes=300
try "the node comes up if the licence takes five seconds" node_starts
try "kubelet starts with the licence" kubelet_saw 'gpus=1 .* licensed'

power gridd-never=yes; require
fails 33 ELICENSE 'GPU 0 \(0000:31:00.0\) is a fractional GPU and has no licence for NVIDIA Workstation; without a licence, CUDA fails after some time.* journalctl -u nvidia-gridd shows' "a licence that never comes, with health: require"

power gridd-never=yes; require; echo 'hang nvmlDeviceGetGridLicensableFeatures after 4x' >/etc/fakes/nvml
fails 33 ELICENSE 'NVML did not answer when asked for the licence of GPU 0 \(0000:31:00.0\); also: GPU 0 \(0000:31:00.0\) is a fractional GPU and has no licence' "a library that hangs after it has reported no licence"

power gridd-dies=yes; require
fails 33 ELICENSE 'nvidia-gridd must get the licence, but does not run' "a licence daemon that dies before it has a licence"

mv /usr/bin/nvidia-gridd /root/; mv /usr/lib/systemd/system/nvidia-gridd.service /root/; systemctl daemon-reload
power x=; require
fails 33 ELICENSE 'this image lacks nvidia-gridd' "an image without the licence daemon, with health: require"
try "the devices phase does not wait for a licence" quick

power x=
try "without the licence daemon the node comes up" node_starts
try "kubelet has a GPU without a licence if the daemon is missing" kubelet_saw 'gpus=1 .* unlicensed'
try "the warning says that nvidia-gridd.service is missing" warned 'cannot get one \(no nvidia-gridd.service\)'
try "nodestrap does not wait for a licence without the daemon" no grep -q await-license /run/nodestrap/status.json
mv /root/nvidia-gridd /usr/bin/; mv /root/nvidia-gridd.service /usr/lib/systemd/system/; systemctl daemon-reload

power gridd-fails="cannot detect the platform"
try "the node comes up if the licence daemon fails" node_starts
try "kubelet has a GPU without a licence if the daemon fails" kubelet_saw 'gpus=1 .* unlicensed'
try "the warning names the unit that failed" warned 'nvidia-gridd.service'
try "the warning says what a missing licence means" warned 'has no licence for NVIDIA Workstation; without a licence, CUDA fails after some time'

power x=; sed -i '/^license/d' /etc/fake-nvml; echo 'error nvmlDeviceGetGridLicensableFeatures 3' >/etc/fakes/nvml
require; fails 33 ELICENSE 'the licence of GPU 0 \(0000:31:00.0\) cannot be read: Not Supported' "a driver that is not a GRID driver"
try "the devices phase does not wait for a licence that cannot come" quick

power gridd-never=yes; spec '{accelerator: {nvidia: {health: off}}}'
try "health off: the node comes up" node_starts
try "health off: the licence daemon starts anyway" happened gridd-started
try "health off: nodestrap does not wait for a licence" no grep -q await-license /run/nodestrap/status.json

finish
