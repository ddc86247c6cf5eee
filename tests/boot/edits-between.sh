#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S bookworm -d 0
# imds: imds-m5
# tree: enabled containerd_enabled edits
# User data's shell scripts change files of the first phase and restart daemons: what they wrote is what kubelet starts with, once.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

init() { sh -c "nodestrap init $1 $(sources) --config-cache /run/eks/nodeadm/config.json"; }
argument() { tr '\0' '\n' </run/recording-kubelet/argv | grep -x -- "$1"; }
try "the run phase is active" active nodestrap-run
try "the edit was made" is "$(property edits Result) $(property edits ExecMainStatus)" "success 0"
try "kubelet is active" active kubelet
try "kubelet did not start early" starts 1
try "kubelet starts with the argument of the script" argument --edited=1
try "the rest is as planned" argument --node-ip=10.11.12.13
try "the run phase succeeds again" init "--skip config"
try "the second run phase restarts nothing" starts 1
try "both phases write the planned files again" init
try "init restarts kubelet, which had read the old file" starts 2
try "kubelet then has the planned arguments" no argument --edited=1
check_second_run

finish
