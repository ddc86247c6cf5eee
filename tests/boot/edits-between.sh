#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# tree: enabled containerd_enabled edits
# Shell scripts in user data change files of the first phase and restart daemons. kubelet starts once, with what the scripts wrote.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

init() { sh -c "nodestrap init $1 $(sources) --config-cache /run/eks/nodeadm/config.json"; }
argument() { tr '\0' '\n' </run/recording-kubelet/argv | grep -x -- "$1"; }
try "the run phase is active" active nodestrap-run
try "the unit that edits files has succeeded" is "$(property edits Result) $(property edits ExecMainStatus)" "success 0"
try "kubelet is active" active kubelet
try "kubelet was started once" starts 1
try "kubelet has the argument that the script wrote" argument --edited=1
try "kubelet has the planned node IP" argument --node-ip=10.11.12.13
try "a second run phase succeeds" init "--skip config"
try "a second run phase does not restart kubelet" starts 1
try "an init of both phases succeeds after the edit" init
try "init restarts kubelet, which had read the old file" starts 2
try "kubelet no longer has the argument that the script wrote" no argument --edited=1
check_second_run

finish
