#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# spec: {containerd: {prePull: [123456789012.dkr.ecr.us-west-2.amazonaws.com/private/a:1, plain.test/public/b:1, plain.test/hang/c:1, plain.test/missing/d:1]}}
# tree: enabled registry
# console: NODESTRAP verdict=ok
# Images are pulled by the real containerd of a whole boot, beside kubelet: one that hangs and one that does not exist hold nothing up.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

image=123456789012.dkr.ecr.us-west-2.amazonaws.com/private/a:1
status() { nodestrap status --long; }
shows() { status | grep -E -- "$1" || { status; return 1; }; }
images() { ctr --connect-timeout 120s -n k8s.io images ls -q | grep -vE '^sha256:|@|pause' | sort | xargs; }
have() { is "$(images)" "$1"; }
words() { for p in $(pgrep -f nodestrap-pre-pull); do tr '\0' ' ' <"/proc/$p/cmdline"; tr '\0' '\n' <"/proc/$p/environ"; done; }

check_node
try "the image behind a login and the other one are there" eventually have "$image plain.test/public/b:1"
try "as status says, with what hangs" eventually shows '^images: 2 of 4 pulled, .* not finished yet'
json() { nodestrap status --output json | python3 -c 'import json, sys; print(json.load(sys.stdin)["images"]["text"].split(",")[0])'; }
try "and in JSON" is "$(json)" "2 of 4 pulled"
try "and what does not exist" eventually shows '^  plain.test/missing/d:1: .*not found'
try "kubelet started before their end" active nodestrap-pre-pull
try "the journal has the warning" in_journal 'image-not-pulled: plain.test/missing/d:1: .*not found; kubelet pulls it'
try "the password is nowhere in it" not_in_journal PASSWORD-nobody
try "nor in what runs" no sh -c 'grep -F PASSWORD-nobody <<END
'"$(words)"'
END'
try "nor in a file of ours" no grep -rF PASSWORD-nobody /run/nodestrap /etc/nodestrap /var/lib/nodestrap
try "the provider was asked for the repository" grep -F '"image":"123456789012.dkr.ecr.us-west-2.amazonaws.com/private/a"' /run/nodestrap/asked
try "containerd was started once" is "$(journalctl -b -o cat -u containerd | grep -c '^Started')" 1
pid=$(property nodestrap-pre-pull MainPID)
check_second_run
try "nor the pull" is "$(property nodestrap-pre-pull MainPID)" "$pid"
systemctl stop nodestrap-pre-pull
try "a stop ends it well" is "$(property nodestrap-pre-pull Result)" success
try "and says so" shows '^  plain.test/hang/c:1: a signal ended the program'
systemctl start nodestrap-pre-pull
try "another start finds what is there" eventually in_journal "image $image is there already"
finish
