#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# tree: enabled canaries
# console: NODESTRAP verdict=ok
# console: NODESTRAP verdict=failed
# console-lacks: CANARY
# Every free-form leaf of the NodeConfig has its own secret word (boot/lib/canary.py), and only root can find one. One node boots; on
# another containerd fails and logs its configuration. Each exception has a name and a reason.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
# The cluster shows name, provider id, labels and taints of a Node to many, so plans show them, too.
clean() { sed -E 's/CANARY-(label|name|provider|taint)\b//g' "$@" | { ! grep -aoE '.{0,60}(CANARY|730515731).{0,20}'; }; }
quiet() { "$@" >out/said 2>&1; [ -s out/said ] && clean out/said; }     # it has output, and no secret in it
# The test kubelet records its own arguments, so this leaves them out.
files() { nobody grep -rlaE -D skip --exclude-dir=recording-kubelet 'CANARY|730515731' /etc /run /var /tmp /usr/lib/systemd /opt /root /home 2>/dev/null; }
files_of_all() { is "$(files)" ""; }
buses() { nobody systemctl show --all '*' && nobody systemctl show && nobody systemctl show-environment; }
# kubelet flags are arguments, and every user of a machine sees the arguments of every process.
arguments() { local pid kubelet; kubelet=$(property kubelet MainPID); for pid in /proc/[0-9]*; do [ "$pid" = "/proc/$kubelet" ] || nobody cat "$pid/cmdline" 2>/dev/null; done | tr '\0' '\n'; }
# The journal of PID 1, which reads units and drop-ins, and of nodestrap. containerd and kubelet may log what they want.
journal() { journalctl -b -o export --no-pager _PID=1 + _SYSTEMD_UNIT=nodestrap-{config,devices,run,event}.service + SYSLOG_IDENTIFIER=nodestrap; }
bundle() { nodestrap status --bundle - 2>/dev/null | tar -xzO; }
kept() { cat /run/nodestrap/{status.json,plan*.txt,metrics.prom,joined.json,joined.prom}; }
# shellcheck disable=SC2046 # sources are words
plans() { nodestrap plan $(sources) && nodestrap plan $(sources) --output json; }
searches() {
        try "$1: an unprivileged user finds no file with a secret" files_of_all
        try "$1: systemd shows no secret to an unprivileged user" quiet buses
        try "$1: no process but kubelet has a secret in its arguments" quiet arguments
        try "$1: the journal of nodestrap and PID 1 has no secret" quiet journal
        try "$1: the bundle has no secret" quiet bundle
        try "$1: the records of the boot in /run/nodestrap have no secret" quiet kept
        try "$1: the output of plan has no secret" quiet plans
        try "$1: the output of status has no secret" quiet nodestrap status --long
}

try "nodestrap-run.service is active" active nodestrap-run
try "kubelet is active" active kubelet
nodestrap wait --timeout 1s 2>out/wait
try "the output of wait has no secret" clean out/wait
unread() { while read -r word; do [ "$word" = CANARY-env-refused ] || grep -rqF -e "$word" /etc/{nodestrap,containerd,kubernetes,eks/kubelet} || echo "$word"; done <canaries; }
try "root finds every secret that daemons need in their files" is "$(unread)" ""
try "units and drop-ins lack a value that systemd would write to its journal" no grep -rqF CANARY-env-refused /etc/nodestrap /etc/systemd
gets() { tr '\0' '\n' <"/proc/$(property "$1" MainPID)/environ" | grep -x "WORD=CANARY-env-$1" && tr '\0' '\n' <"/proc/$(property "$1" MainPID)/environ" | grep -xF 'HTTPS_PROXY=http://me:CANARY-env-proxy@127.0.0.1:9'; }
try "containerd has its own environment variables and the default ones" gets containerd
try "kubelet has its own environment variables and the default ones" gets kubelet
try "only root and the group systemd-journal may read the reports" is "$(stat -c '%a %U %G' /run/nodestrap/{status,joined}.json | sort -u)" "640 root systemd-journal"
try "only root may read the digests of what units were started with" is "$(stat -c %a /run/nodestrap/started/{containerd,kubelet}.service | sort -u)" 600
try "status names the group that may read the report" sh -c "setpriv --reuid 65534 --regid 65534 --clear-groups nodestrap status 2>&1 | grep -F 'is readable only by root and the group systemd-journal: run sudo nodestrap status'"
try "a member of systemd-journal may run status" setpriv --reuid 65534 --regid 65534 --groups systemd-journal nodestrap status
# Without this check a search that reads nothing would pass.
control() {
        local pid rc=0
        echo CANARY >/run/control && is "$(files)" /run/control || rc=1; rm /run/control
        systemctl set-environment WORD=CANARY-control; quiet buses && rc=1; systemctl unset-environment WORD
        bash -c 'exec -a CANARY-control sleep 600' & pid=$!
        until grep -qa CANARY-control "/proc/$pid/cmdline"; do sleep 0.1; done
        quiet arguments && rc=1; kill "$pid"; wait "$pid"
        journal | grep -q nodestrap && bundle | grep -qa kubelet && [ $rc = 0 ]
}
try "the search finds a secret that a test file has" control
searches "on a healthy node"

# The phases once more, with a file that containerd cannot read and a setting that the kernel does not take.
cp -p broken.yaml /etc/eks/nodeadm.d/70-broken.yaml
systemctl restart nodestrap-config nodestrap-devices nodestrap-run 2>/dev/null
try "nodestrap-run fails if containerd cannot read its file" failed nodestrap-run
try "containerd logs the secret in the file that it cannot read" sh -c "journalctl -b -u containerd -o cat | grep -F 'CANARY-broken'"
try "status names the failed kernel setting and the failed unit" sh -c "nodestrap status --long | grep -E 'failed .*set-sysctl:net.ipv4.tcp_congestion_control' && nodestrap status --long | grep -E 'containerd.service .*journalctl -u containerd.service'"
messages() { python3 -c 'import glob, json
for f in glob.glob("/run/nodestrap/events/*"): print(json.load(open(f))["message"])'; }
try "the messages for the cluster have no secret" quiet messages
nodestrap wait --timeout 1s 2>out/wait
try "the output of wait has no secret after a failure" clean out/wait
searches "on a node that failed"

finish
