#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled real_kubelet
# spec: {cluster: {apiServerEndpoint: "https://localhost"}, kubelet: {config: {maxPods: 40}}, containerd: {config: "plugins.'io.containerd.grpc.v1.cri'.registry.configs.'r.lab'.auth = {username = 'u', password = \"tulip\\thorse\\t battery staple\"}"}}
# drop-in: kubelet.service [Service]
# drop-in: kubelet.service ExecStartPre=/bin/sh -c "echo '{\"apiVersion\": \"kubelet.config.k8s.io/v1beta1\", \"kind\": \"KubeletConfiguration\", \"maxPods\": -3}' >/etc/kubernetes/kubelet/config.json.d/50-late.conf"
# console: NODESTRAP verdict=failed code=EKUBELET step=start-unit:kubelet.service
# A drop-in writes a setting behind the plan with which the real kubelet ends. The message has the sentence of kubelet and the place in
# the NodeConfig.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

D=/etc/systemd/system/kubelet.service.d
# shellcheck disable=SC2046 # sources are words
init() { nodestrap init $(sources) >"out/$1" 2>&1; }
last_line() { tail -n 1 "out/$1" | grep -E -- "$2" || { cat "out/$1"; return 1; }; }
says() { systemctl stop kubelet; printf '[Service]\nExecStart=\nExecStart=%s\n' "$1" >$D/z.conf; systemctl daemon-reload; }
reason='"failed to validate kubelet configuration, error: invalid configuration: maxPods \(--max-pods\) -3 must not be a negative number, path: .*"'

try "the run phase exits with 50" exited nodestrap-run 50
try "the last line has the sentence of kubelet" in_journal "^nodestrap: failed \\(50 EKUBELET\\) at start-unit:kubelet.service: kubelet.service did not stay up: its process exited with status 1 and says $reason"
try "the message has the line of the NodeConfig with that setting" in_journal '^nodestrap: failed \(50 EKUBELET\) .*; .*50-spec.yaml, line 3 sets spec.kubelet.config.maxPods$'
try "status.json has the sentence of kubelet and the setting" grep -E '"text": ".*must not be a negative number.*sets spec.kubelet.config.maxPods' /run/nodestrap/status.json

cat >/run/says <<'END'
#!/bin/sh
echo 'E1127 02:46:12.326861 5484 run.go:72] "command failed" err="invalid argument \"2\" for \"--v\" flag, with password=hunter2hunter2"' >&2; exit 1
END
chmod 755 /run/says; says /run/says
try "init fails if kubelet refuses a flag" no init flag
try "the message has the line of the wrong flag" last_line flag 'says "invalid argument .*2.* for .*--v.* flag, .*; user-data, part 1, line [0-9]+ sets spec.kubelet.flags\[1\]$'
try "neither the message nor the status has a secret" no grep hunter2 out/flag /run/nodestrap/status.json

# A secret looks different in a line without its escapes, and nodestrap does not know half a secret.
printf '#!/bin/sh\ncat /run/words >&2; exit 1\n' >/run/says
words() { printf '%s\n' "E1127 02:46:12.326861 5484 run.go:72] \"command failed\" err=\"$1\"" >/run/words; }
words 'it reads tulip\thorse\t battery staple and ends'
try "init fails if kubelet prints a secret with escapes" no init escapes
try "the message hides a secret with escapes" last_line escapes 'and says "it reads \(hidden\) and ends"'
words "$(printf 'pod %.0s' {1..130})tulip\thorse\t battery staple"
try "init fails if a long line of kubelet ends with a secret" no init long
try "the message hides each part of a long secret" last_line long 'and says "pod pod .* pod \(hidden\)"'
try "the status has no part of these secrets" no grep -E 'tulip|staple' out/escapes out/long /run/nodestrap/status.json

says '/bin/sh -c "systemd-notify --ready; exec /usr/bin/kubelet $NODEADM_KUBELET_ARGS"'
try "the run phase succeeds if kubelet ends later" init later || cat out/later
nodestrap wait --timeout 5m >out/wait 2>&1
try "wait says why kubelet ended, and does not wait for its deadline" last_line wait "^nodestrap: failed \\(50 EKUBELET\\) at join: kubelet.service is .*and says $reason; see journalctl -u kubelet .*; the NodeConfig sets spec.kubelet.config.maxPods$"

systemctl stop kubelet; systemctl reset-failed kubelet; nodestrap wait --timeout 10 >out/stopped 2>&1
try "wait does not report EKUBELET if you have stopped kubelet" no grep EKUBELET out/stopped
says "/bin/false"; systemctl start kubelet; eventually systemctl is-failed -q kubelet; nodestrap wait --timeout 10 >out/silent 2>&1
try "the message about a silent kubelet has no words of an earlier kubelet" no grep 'must not be a negative number' out/silent

finish
