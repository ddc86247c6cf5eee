#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A unit tries its phases again after a cause that may pass, three times in all. It does not after another cause, as nodeadm, after the first
# script of cloud-init, or beside kubelet; nor does a command typed by hand. Requests are counted over all tries.
# shellcheck source=tests/mock/bad.sh
# shellcheck disable=SC2154,SC2016  # bad.sh sets them; what eval and sh -c get is expanded there
. "$(dirname "$0")/../mock/bad.sh"
good | sed -e '/InstanceIdNodeName/d' -e 's/^  instance:/&\n    strictNodeName: true/' >"$tmp/strict"
good | sed 's|^  instance:|&\n    storage: {volumes: [{device: /dev/xvdb, mountTarget: /data, fsType: xfs}]}|' >"$tmp/volume"
status=$root/run/nodestrap/status.json cloud=$root/run/cloud-init/status.json next='the next try begins in'
fresh() { machine && echo i-0f1e2d3c4b5a69788 >"$root/sys/devices/virtual/dmi/id/board_asset_tag"; }
with() { mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 --user-data "$tmp/strict" "$@"; }
# As systemd starts it for a unit: the variable has the number of its own process.
unit() { sh -c 'SYSTEMD_EXEC_PID=$$ exec "$@"' sh "${as:-$nodestrap}" init --root "$root" "${phases[@]}" >"$tmp/out" 2>"$tmp/err"; code=$?; }
phases=(--skip devices --skip run)
ends() { same_word "$code" "${1:-0}"; }
tries() { grep -qF "\"tries\": $1" "$status" && grep -qx "nodestrap_tries{phase=\"$2\"} $1" "$root/run/nodestrap/metrics.prom"; }
once() { ends "$1" && lacks "$next" && tries 1 "${2:-config}"; }
within() { local i; for ((i = 0; i < 600; i++)); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; "$@"; }
export AWS_MAX_ATTEMPTS=1
# Beside all that follows: a metadata service that is switched off, which units wait a minute for.
switched_off() {
        tmp=$tmp/off root=$tmp/off/root mock_pid=''; trap mock_stop EXIT
        mkdir "$tmp"; fresh; mock --imds "$fixtures/imds-m5" --fault status=403; unit
        { ends 12 && lacks "$next" && says "switched off in the metadata options"; } >"$tmp/verdict" 2>&1
}
if [ -n "${NODESTRAP_LONG-}" ]; then switched_off & off=$!; fi

# ---- EC2 ----
fresh; with --fault 'ec2:status=503*1'; unit
ok 'EC2 fails once: the config phase succeeds' ends
ok 'at its second try' tries 2 config
ok 'which the journal has heard of' says "warning: try 1 of 3 failed (EEC2) at detect: "
ok 'before it waited' says "$next"
ok 'the status says why, once' test "$(grep -c 'tried-again: try 1 of 3 failed (EEC2) at detect: no usable answer from EC2' "$status")" = 1
ok 'its requests are those of both tries' grep -qF '"ec2": 2' "$status"
ok 'EC2 was asked twice' sent 2 'ec2 '
ok 'and the metadata service one time for each answer' eval 'sent 1 user-data && sent 1 PUT && [ -z "$(grep " imds " "$tmp/log" | awk "{ print \$5 }" | grep -v security-credentials | sort | uniq -d)" ]'
ok 'nothing is shown that is secret' silent
fresh; with --fault ec2:status=503; unit
ok 'EC2 fails each time: so does the boot, by that' eval 'reported 20 EEC2 detect && says_last "no usable answer from EC2"'
ok 'after three tries' tries 3 config
ok 'with three requests in all' sent 3 'ec2 '
ok 'each failure is there' eval 'grep -qF "try 1 of 3" "$status" && grep -qF "try 2 of 3" "$status"'
AWS_MAX_ATTEMPTS=2 unit
ok 'where the next try would bring it to more than three requests, there is none' eval 'once 20 && sent 5 "ec2 "'

# ---- what does not pass, and who is not tried again ----
refused() { local what=$1 rc=$2; shift 2; unit; ok "$what: once" eval "once $rc"; }
with --fault ec2:unauthorized; refused 'a role that may not ask' 20
AWS_CA_BUNDLE=/none AWS_ENDPOINT_URL_EC2=https://$ec2 refused 'certificates that are not there' 20
AWS_EC2_METADATA_DISABLED=true refused 'a metadata service that may not be asked' 12
AWS_EC2_METADATA_SERVICE_ENDPOINT=ftp://x refused 'an endpoint that is none' 12
{ good; echo '  kubelet: ['; } >"$tmp/bad"; mock --imds "$fixtures/imds-m5" --user-data "$tmp/bad"; refused 'user data that is no YAML' 11
with --fault ec2:status=503
"$nodestrap" init --root "$root" "${phases[@]}" >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'by hand: once' once 20
SYSTEMD_EXEC_PID=1 "$nodestrap" init --root "$root" "${phases[@]}" >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'by a script of a unit: once' once 20
ln -s "$(realpath "$nodestrap")" "$tmp/nodeadm"
sh -c 'SYSTEMD_EXEC_PID=$$ exec "$@"' sh "$tmp/nodeadm" init --root "$root" --skip run --config-cache "$cache" >"$tmp/out" 2>"$tmp/err"
ok 'as nodeadm: once' lacks "$next"
mkdir -p "${cloud%/*}"
for text in '{"v1": {"init": {"start": 1700000000.5}}}' '{"v1": {}}' '[]' '{' ''; do
        printf %s "$text" >"$cloud"; refused "cloud-init says $text" 20
done
rm "$cloud"; mkdir "$cloud"; refused 'cloud-init has a directory there' 20; rmdir "$cloud"
with --fault 'ec2:status=503*1'
echo '{"v1": {"init": {"start": null, "finished": null}, "init-local": {"start": 1700000000.5}, "stage": "init-local"}}' >"$cloud"; unit
ok 'before its first script: again' eval 'ends && tries 2 config'
rm "$cloud"

# ---- a volume ----
mock --imds "$fixtures/imds-m5" --user-data "$tmp/volume"
fixture=m5-volume machine; unit
ok 'a config phase that needs no volume' ends
phases=(--skip config --skip devices)
mkdir "$tmp/sys" "$tmp/dev"
away() { mv "$root/sys/block/nvme1n1" "$tmp/sys" && mv "$root/dev/nvme1n1" "$root/dev/xvdb" "$tmp/dev"; }
back() { mv "$tmp/dev/"* "$root/dev" && mv "$tmp/sys/nvme1n1" "$root/sys/block"; }
away; mkdir -p "${cloud%/*}"; echo '{"v1": {"init": {"start": 1}}}' >"$cloud"
: >"$tmp/err"; unit & pid=$!        # what the run before has said is gone before it is looked for
ok 'a volume that is late: the run phase waits' within says "$next"
back; wait $pid
ok 'and goes on with it' eval 'tries 2 run && grep -qF "\"verdict\": \"ok\"" "$status" && grep -qF "try 1 of 3 failed (EVOLUME) at plan: " "$status"'
away; : >"$root/run/nodestrap/kubelet-may-start"; refused 'beside a kubelet that may run' 30 run; rm "$root/run/nodestrap/kubelet-may-start"
: >"$tmp/err"; sh -c 'SYSTEMD_EXEC_PID=$$ exec "$@"' sh "$nodestrap" init --root "$root" "${phases[@]}" >"$tmp/out" 2>"$tmp/err" & pid=$!
within says "$next"; kill -TERM $pid; wait $pid; code=$?
ok 'stopped while it waits: it failed by what it failed by' eval 'reported 30 EVOLUME plan && tries 1 run'

# ---- the metadata service ----
if [ -n "${NODESTRAP_LONG-}" ]; then
        phases=(--skip devices --skip run); rm "$cloud"; fresh; good >"$tmp/by-id"; : >"$tmp/ill"
        mock --imds "$fixtures/imds-m5" --user-data "$tmp/by-id" --fault refuse --faults-while "$tmp/ill"
        : >"$tmp/err"; unit & pid=$!
        ok 'a metadata service that does not answer for a minute' within says "$next"
        rm "$tmp/ill"; wait $pid
        ok 'and then does: the second try has it' eval 'tries 2 config && grep -qF "\"verdict\": \"ok\"" "$status" && grep -qF "try 1 of 3 failed (EIMDS) at source: " "$status"'
        ok 'with the requests of both' eval '[ "$(sed -n "s/.*\"imds\": \([0-9]*\).*/\1/p" "$status")" = "$(requests " imds ")" ]'
        wait "$off"; ok 'one that is switched off: once' test $? = 0
fi
done_testing
