#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled containerd_tells
# spec: {instance: {environment: {default: {HTTPS_PROXY: "http://me:CANARY-proxy@127.0.0.1:9", NO_PROXY: "127.0.0.1,169.254.169.254"}, containerd: {DB: CANARY-containerd}}}}
# console: NODESTRAP verdict=failed code=EUNIT
# A containerd that fails and repeats secrets in its last words: nobody repeats them, in the report, on the console or in our journal.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

quiet() { ! grep -r CANARY "$@"; }
try "the second phase failed" failed nodestrap-run
try "containerd's own journal has what it said" sh -c "journalctl -b -u containerd -o cat | grep -F 'CANARY-containerd'"
try "they are not repeated" no grep -F 'cannot dial http' /run/nodestrap/status.json
try "but where they stand is" grep -F 'journalctl -u containerd.service' /run/nodestrap/status.json
try "the reports hold no secret" quiet /run/nodestrap/status.json /run/nodestrap/metrics.prom
journalctl -b -o export _SYSTEMD_UNIT=nodestrap-run.service >out/ours
try "nor do our entries in the journal, in any field" quiet out/ours
try "which are there" grep -q NODESTRAP_TEXT out/ours
try "what status shows holds none" sh -c "nodestrap status | grep -F EUNIT && ! nodestrap status | grep CANARY"
try "what nodestrap wait says holds none" sh -c "nodestrap wait --timeout 1s 2>out/wait; ! grep CANARY out/wait"
messages() { python3 -c 'import glob, json
for f in glob.glob("/run/nodestrap/events/*"): print(json.load(open(f))["message"])'; }
messages >out/messages
try "the cluster is to hear of it" grep -F 'EUNIT at start-unit:containerd.service: ' out/messages
try "and holds none" quiet out/messages
journalctl -b -o export _SYSTEMD_UNIT=nodestrap-event.service >out/sender
try "nor does what its sender says" quiet out/sender

finish
