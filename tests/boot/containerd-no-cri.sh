#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 schema-3
# tree: enabled containerd2
# drop-in: containerd.service [Service]
# drop-in: containerd.service ExecStartPre=/bin/sh -c "echo '{\"ociVersion\": 1}' >/etc/containerd/base-runtime-spec.json"
# console: NODESTRAP verdict=failed code=ECRI step=start-unit:containerd.service
# A drop-in writes another base runtime spec behind the plan: containerd runs, its CRI plugin does not load, and kubelet stays down.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

CONF=/etc/systemd/system/containerd.service.d/test.conf
# shellcheck disable=SC2046 # sources are words
init() { nodestrap init $(sources) >"out/$1" 2>&1; }
before_containerd() { printf '[Service]\n%s\n' "$1" >$CONF; systemctl daemon-reload; systemctl stop kubelet containerd; systemctl reset-failed; }
refuses() { ! init "$1" && tail -n 1 "out/$1" | grep -E "^nodestrap: failed \\(50 ECRI\\) at start-unit:containerd.service: containerd.service runs without CRI, which kubelet needs, and $2" || { cat "out/$1"; return 1; }; }

try "the run phase exits with 50" exited nodestrap-run 50
try "containerd runs" active containerd
try "kubelet was not started" never_started
try "the last line has the error of the CRI plugin" in_journal '^nodestrap: failed \(50 ECRI\) at start-unit:containerd.service: containerd.service runs without CRI, which kubelet needs, and says ".*cannot unmarshal number into Go struct field Spec.ociVersion.*"; '
try "status.json has the code" grep -E '"code": *"ECRI"' /run/nodestrap/status.json
try "an Event for the cluster has the code and the step" grep -rq 'ECRI at start-unit:containerd.service' /run/nodestrap/events
try "wait fails at once with the error of init" wait_is_told "50 ECRI at start-unit:containerd.service): "

rm $CONF; systemctl daemon-reload; pid=$(property containerd MainPID)
try "init succeeds after the drop-in is removed" init mended || cat out/mended
try "init starts containerd again after the repair" no is "$(property containerd MainPID)" "$pid"
try "kubelet is active" active kubelet

before_containerd 'ExecStartPre=/bin/sed -i "1i disabled_plugins = [\x27io.containerd.grpc.v1.cri\x27]" /etc/containerd/config.toml'
try "init fails if the CRI plugin is disabled, and the message names disabled_plugins" refuses disabled 'its log does not say why: disabled_plugins may name CRI; '
try "kubelet stays down if the CRI plugin is disabled" no active kubelet
pid=$(property containerd MainPID)
try "the next init fails, too, if the CRI plugin is disabled" refuses again 'its log does not say why'
try "the next init starts containerd again" no is "$(property containerd MainPID)" "$pid"

before_containerd 'ExecStartPre=/bin/sh -c "echo []x >/etc/containerd/base-runtime-spec.json; printf \x27[debug]\\nformat = \"json\"\\n\x27 >>/etc/containerd/config.toml"'
try "the last line has the error of a containerd that logs JSON" refuses json 'says "[^{]*base-runtime-spec.json.*cannot unmarshal array'

finish
