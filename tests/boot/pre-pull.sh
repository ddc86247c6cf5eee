#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# spec: {containerd: {prePull: [123456789012.dkr.ecr.us-west-2.amazonaws.com/private/a:1, plain.test/public/b:1, plain.test/hang/c:1, plain.test/missing/d:1]}}
# tree: enabled registry
# console: NODESTRAP verdict=ok
# In a whole boot the real containerd pulls images beside kubelet. An image that hangs and one that does not exist hold nothing up.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

image=123456789012.dkr.ecr.us-west-2.amazonaws.com/private/a:1
status() { nodestrap status --long; }
shows() { status | grep -E -- "$1" || { status; return 1; }; }
images() { ctr --connect-timeout 120s -n k8s.io images ls -q | grep -vE '^sha256:|@|pause' | sort | xargs; }
have() { is "$(images)" "$1"; }
words() { for p in $(pgrep -f nodestrap-pre-pull); do tr '\0' ' ' <"/proc/$p/cmdline"; tr '\0' '\n' <"/proc/$p/environ"; done; }

check_node
try "containerd has the image behind a login and the public one" eventually have "$image plain.test/public/b:1"
try "status counts two of four images as pulled and others as not finished" eventually shows '^images: 2 of 4 pulled, .* not finished yet'
json() { nodestrap status --output json | python3 -c 'import json, sys; print(json.load(sys.stdin)["images"]["text"].split(",")[0])'; }
try "the JSON of status counts two of four images as pulled" is "$(json)" "2 of 4 pulled"
try "status names the image that does not exist" eventually shows '^  plain.test/missing/d:1: .*not found'
try "kubelet starts before the pulls end" active nodestrap-pre-pull
try "the journal has a warning about the image that does not exist" in_journal 'image-not-pulled: plain.test/missing/d:1: .*not found; kubelet pulls it'
try "the journal does not have the password" not_in_journal PASSWORD-nobody
try "no process of the pull has the password in its arguments or environment" no sh -c 'grep -F PASSWORD-nobody <<END
'"$(words)"'
END'
try "no file of nodestrap has the password" no grep -rF PASSWORD-nobody /run/nodestrap /etc/nodestrap /var/lib/nodestrap
try "the credential provider gets a request for the repository" grep -F '"image":"123456789012.dkr.ecr.us-west-2.amazonaws.com/private/a"' /run/nodestrap/asked
try "containerd was started once" is "$(journalctl -b -o cat -u containerd | grep -c '^Started')" 1
pid=$(property nodestrap-pre-pull MainPID)
check_second_run
try "the second init does not restart the pull" is "$(property nodestrap-pre-pull MainPID)" "$pid"
systemctl stop nodestrap-pre-pull
try "a stop of the pull is a success" is "$(property nodestrap-pre-pull Result)" success
try "status says that a signal ended the pull that hangs" shows '^  plain.test/hang/c:1: a signal terminated the program'
systemctl start nodestrap-pre-pull
try "another start of the pull finds an image that is already there" eventually in_journal "image $image is there already"
finish
