#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A unit retries its phases after a cause that may pass, three tries in all. It does not retry after another cause, as nodeadm, after the first
# script of cloud-init, or beside kubelet; nor does a command typed by hand. Requests are counted over all tries.
# shellcheck source=tests/mock/bad.sh
# shellcheck disable=SC2154,SC2016  # bad.sh sets them; what eval and sh -c get is expanded there
. "$(dirname "$0")/../mock/bad.sh"
good | sed -e '/InstanceIdNodeName/d' -e 's/^  instance:/&\n    strictNodeName: true/' >"$tmp/strict"
good | sed 's|^  instance:|&\n    storage: {volumes: [{device: /dev/xvdb, mountTarget: /data, fsType: xfs}]}|' >"$tmp/volume"
status=$root/run/nodestrap/status.json cloud=$root/run/cloud-init/status.json next='the next attempt begins in'
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
ok 'the config phase succeeds if EC2 fails once' ends
ok 'the config phase succeeds at its second try' tries 2 config
ok 'stderr has a warning that the first try failed' says "warning: attempt 1 of 3 failed (EEC2) at detect: "
ok 'stderr says when the next attempt begins' says "$next"
ok 'the status has the reason of the retry once' test "$(grep -c 'tried-again: attempt 1 of 3 failed (EEC2) at detect: no usable answer from EC2' "$status")" = 1
ok 'the status counts the EC2 requests of both tries' grep -qF '"ec2": 2' "$status"
ok 'EC2 gets two requests' sent 2 'ec2 '
ok 'the metadata service gets one request for each answer' eval 'sent 1 user-data && sent 1 PUT && [ -z "$(grep " imds " "$tmp/log" | awk "{ print \$5 }" | grep -v security-credentials | sort | uniq -d)" ]'
ok 'a retry shows no secret' silent
fresh; with --fault ec2:status=503; unit
ok 'the boot fails with EEC2 if EC2 fails each time' eval 'reported 20 EEC2 detect && says_last "no usable answer from EC2"'
ok 'the boot fails after three tries' tries 3 config
ok 'EC2 gets three requests in all' sent 3 'ec2 '
ok 'the status has the failures of the first two tries' eval 'grep -qF "attempt 1 of 3" "$status" && grep -qF "attempt 2 of 3" "$status"'
AWS_MAX_ATTEMPTS=2 unit
ok 'a unit does not retry if EC2 would get more than three requests' eval 'once 20 && sent 5 "ec2 "'

# ---- causes and callers without a retry ----
refused() { local what=$1 rc=$2; shift 2; unit; ok "$what: nodestrap tries once" eval "once $rc"; }
with --fault ec2:unauthorized; refused 'a role that may not ask' 20
AWS_CA_BUNDLE=/none AWS_ENDPOINT_URL_EC2=https://$ec2 refused 'certificates that are not there' 20
AWS_EC2_METADATA_DISABLED=true refused 'a metadata service that is disabled' 12
AWS_EC2_METADATA_SERVICE_ENDPOINT=ftp://x refused 'an endpoint with ftp://' 12
{ good; echo '  kubelet: ['; } >"$tmp/bad"; mock --imds "$fixtures/imds-m5" --user-data "$tmp/bad"; refused 'user data that is not YAML' 11
with --fault ec2:status=503
"$nodestrap" init --root "$root" "${phases[@]}" >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'an init by hand tries once' once 20
SYSTEMD_EXEC_PID=1 "$nodestrap" init --root "$root" "${phases[@]}" >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'an init in a script of a unit tries once' once 20
ln -s "$(realpath "$nodestrap")" "$tmp/nodeadm"
sh -c 'SYSTEMD_EXEC_PID=$$ exec "$@"' sh "$tmp/nodeadm" init --root "$root" --skip run --config-cache "$cache" >"$tmp/out" 2>"$tmp/err"
ok 'nodeadm does not retry' lacks "$next"
mkdir -p "${cloud%/*}"
for text in '{"v1": {"init": {"start": 1700000000.5}}}' '{"v1": {}}' '[]' '{' ''; do
        printf %s "$text" >"$cloud"; refused "cloud-init says $text" 20
done
rm "$cloud"; mkdir "$cloud"; refused 'cloud-init has a directory in place of its status' 20; rmdir "$cloud"
with --fault 'ec2:status=503*1'
echo '{"v1": {"init": {"start": null, "finished": null}, "init-local": {"start": 1700000000.5}, "stage": "init-local"}}' >"$cloud"; unit
ok 'a unit retries before the first script of cloud-init' eval 'ends && tries 2 config'
rm "$cloud"

# ---- a volume ----
mock --imds "$fixtures/imds-m5" --user-data "$tmp/volume"
fixture=m5-volume machine; unit
ok 'a config phase that needs no volume succeeds' ends
phases=(--skip config --skip devices)
mkdir "$tmp/sys" "$tmp/dev"
away() { mv "$root/sys/block/nvme1n1" "$tmp/sys" && mv "$root/dev/nvme1n1" "$root/dev/xvdb" "$tmp/dev"; }
back() { mv "$tmp/dev/"* "$root/dev" && mv "$tmp/sys/nvme1n1" "$root/sys/block"; }
away; mkdir -p "${cloud%/*}"; echo '{"v1": {"init": {"start": 1}}}' >"$cloud"
: >"$tmp/err"; unit & pid=$!        # without the messages of the run before, which within() would find
ok 'the run phase waits for a volume that is late' within says "$next"
back; wait $pid
ok 'the run phase succeeds when the volume comes' eval 'tries 2 run && grep -qF "\"verdict\": \"ok\"" "$status" && grep -qF "attempt 1 of 3 failed (EVOLUME) at plan: " "$status"'
away; : >"$root/run/nodestrap/kubelet-may-start"; refused 'beside a kubelet that may run' 30 run; rm "$root/run/nodestrap/kubelet-may-start"
: >"$tmp/err"; sh -c 'SYSTEMD_EXEC_PID=$$ exec "$@"' sh "$nodestrap" init --root "$root" "${phases[@]}" >"$tmp/out" 2>"$tmp/err" & pid=$!
within says "$next"; kill -TERM $pid; wait $pid; code=$?
ok 'a run phase that is stopped while it waits fails with its first cause' eval 'reported 30 EVOLUME plan && tries 1 run'

# ---- the metadata service ----
if [ -n "${NODESTRAP_LONG-}" ]; then
        phases=(--skip devices --skip run); rm "$cloud"; fresh; good >"$tmp/by-id"; : >"$tmp/ill"
        mock --imds "$fixtures/imds-m5" --user-data "$tmp/by-id" --fault refuse --faults-while "$tmp/ill"
        : >"$tmp/err"; unit & pid=$!
        ok 'the config phase waits for a metadata service that does not answer' within says "$next"
        rm "$tmp/ill"; wait $pid
        ok 'the config phase succeeds at its second try when the metadata service answers' eval 'tries 2 config && grep -qF "\"verdict\": \"ok\"" "$status" && grep -qF "attempt 1 of 3 failed (EIMDS) at source: " "$status"'
        ok 'the status counts the metadata requests of both tries' eval '[ "$(sed -n "s/.*\"imds\": \([0-9]*\).*/\1/p" "$status")" = "$(requests " imds ")" ]'
        wait "$off"; ok 'a unit does not retry if the metadata service is switched off' test $? = 0
fi
done_testing
