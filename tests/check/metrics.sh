#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# promtool and node_exporter (Prometheus, from Debian) read the metrics. The shipped alerts fire when they should. A node with many steps
# has few series.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") oracle=$here/../oracles/status.py monitoring=$here/../../conf/monitoring exporter=''
trap '[ -z "$exporter" ] || kill "$exporter" 2>/dev/null; rm -r "$tmp"' EXIT
peer=$("$here/../tools/peers.sh" --cached prometheus bookworm prometheus prometheus-node-exporter 2>"$tmp/why") ||
        { echo "1..1"; echo "ok 1 - metrics # SKIP $(sed -n 's/.*skip: //p' "$tmp/why" | tail -n 1)"; exit 0; }
promtool=$peer/usr/bin/promtool
quiet() { "$promtool" check metrics <"$1" >"$tmp/said" 2>&1 && [ ! -s "$tmp/said" ] || { cat "$tmp/said"; false; }; }
series() { grep -vc '^#' "$1"; }

for kind in ok failed running long; do
        mkdir "$tmp/$kind"; python3 "$oracle" boot $kind "$tmp/$kind"
        ok "promtool accepts the metrics of a boot without a message: $kind" eval '"$nodestrap" status --root "$tmp/$kind" --output metrics >"$tmp/$kind.prom" && quiet "$tmp/$kind.prom"'
done
ok 'the metrics have a series for each of 42 steps' test "$(grep -c '^nodestrap_action_duration_seconds{' "$tmp/long.prom")" = 42
ok 'the metrics have the verdict of each phase' eval 'grep -Fx "nodestrap_phase_verdict{phase=\"devices\",verdict=\"failed\"} 1" "$tmp/failed.prom" && grep -Fx "nodestrap_phase_verdict{phase=\"run\",verdict=\"held\"} 1" "$tmp/failed.prom"'
ok 'the metrics have the time when the last run ended' grep -x 'nodestrap_last_run_timestamp_seconds 1795471860' "$tmp/ok.prom"

# The metrics of a boot without a configuration, and of a wait for an unknown cluster.
root=$tmp/root files=$tmp/textfiles; mkdir -p "$root" "$files"; python3 "$oracle" boot long "$root"
"$nodestrap" init --root "$root" -c file:///none 2>"$tmp/err"
ok 'init leaves a metrics file that promtool accepts' quiet "$root/run/nodestrap/metrics.prom"
ok 'the metrics file of init has fewer than 25 series' eval 'series "$root/run/nodestrap/metrics.prom" && [ "$(series "$root/run/nodestrap/metrics.prom")" -lt 25 ]'
"$nodestrap" wait --root "$root" --timeout 1s 2>"$tmp/err"
ok 'wait leaves a metrics file that promtool accepts' quiet "$root/run/nodestrap/joined.prom"

# node_exporter reads the files through the links that conf/monitoring has for it.
ok 'systemd-tmpfiles makes the links of conf/monitoring' eval 'systemd-tmpfiles --root="$tmp/root" --create "$monitoring/node-exporter.conf" 2>&1 | grep . ; [ -L "$root/var/lib/prometheus/node-exporter/nodestrap.prom" ]'
for link in "$root"/var/lib/prometheus/node-exporter/*.prom; do ln -s "$root$(readlink "$link")" "$files/${link##*/}"; done
scrape() { python3 -c '
import sys, time, urllib.request
for attempt in range(600):
    try:
        print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=10).read().decode())
        break
    except OSError:
        time.sleep(.1)' "$1" >"$tmp/scraped"; }
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$peer/usr/bin/prometheus-node-exporter" --collector.disable-defaults --collector.textfile --collector.textfile.directory="$files" --web.listen-address="127.0.0.1:$port" 2>"$tmp/exporter" &
exporter=$!
ok 'node_exporter reads both metrics files without an error' eval 'scrape "$port"; grep -Fx "node_textfile_scrape_error 0" "$tmp/scraped" && [ "$(grep -c "^node_textfile_mtime_seconds" "$tmp/scraped")" = 2 ]'
ok 'node_exporter exports the verdict of init' grep -E '^nodestrap_verdict\{code="E[A-Z]*",step="[a-z]*",verdict="failed"\} 1$' "$tmp/scraped"
ok 'node_exporter exports the verdict of wait' grep -E '^nodestrap_joined\{code="E[A-Z]*",verdict="failed"\} 0$' "$tmp/scraped"

ok 'promtool accepts the alerts' eval '"$promtool" check rules "$monitoring/alerts.yaml" 2>&1 | tee "$tmp/said" | grep -x "  SUCCESS: [0-9]* rules found"'
ok 'the alerts use only metrics that nodestrap writes' eval '! grep -oE "nodestrap_[a-z_]+" "$monitoring/alerts.yaml" | sort -u | while read -r name; do grep -qE "\"${name#nodestrap_}\"" "$here"/../../src/report/{metrics,join}.c || echo "$name"; done | grep .'
cat >"$tmp/test.yaml" <<END
rule_files: [$(realpath "$monitoring/alerts.yaml")]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
  - {series: 'nodestrap_verdict{instance="a", verdict="ok", code="OK", step=""}', values: 1x40}
  - {series: 'nodestrap_verdict{instance="b", verdict="failed", code="EFABRIC", step="await-fabric:fabric"}', values: 1x40}
  - {series: 'nodestrap_verdict{instance="c", verdict="unfinished", code="OK", step=""}', values: 1x40}
  - {series: 'nodestrap_last_run_timestamp_seconds{instance="a"}', values: 60x40}
  - {series: 'node_boot_time_seconds{instance="a"}', values: 0x40}
  - {series: 'node_boot_time_seconds{instance="d"}', values: 0x40}
  - {series: 'nodestrap_joined{instance="a", verdict="failed", code="ENOTREADY"}', values: 0x40}
  - {series: 'nodestrap_kubelet_started_seconds{instance="a"}', values: 700x40}
  - {series: 'nodestrap_gpu_healthy{instance="a", gpu="3", address="0000:97:00.0"}', values: 0x40}
  - {series: 'nodestrap_tainted{instance="a"}', values: 0x40}
  - {series: 'aws_ec2_status_check_failed_maximum{dimension_InstanceId="i-0a", region="us-west-2"}', values: 0x40}
  - {series: 'aws_ec2_status_check_failed_maximum{dimension_InstanceId="i-0b", region="us-west-2"}', values: 0x40}
  - {series: 'aws_ec2_status_check_failed_average{instance_id="i-0c"}', values: 0x40}
  - {series: 'aws_ec2_status_check_failed_average{instance_id="i-0d"}', values: 0x40}
  - {series: 'kube_node_info{node="a", provider_id="aws:///us-west-2a/i-0a"}', values: 1x40}
  - {series: 'kube_node_info{node="c", provider_id="aws:///us-west-2a/i-0c"}', values: 1x40}
  alert_rule_test:
  - {eval_time: 1m, alertname: NodestrapBootFailed, exp_alerts: [{exp_labels: {severity: critical, instance: b, verdict: failed, code: EFABRIC, step: 'await-fabric:fabric'},
      exp_annotations: {summary: 'b has failed to become a node: EFABRIC at await-fabric:fabric',
        description: 'kubelet is not started. On the node, nodestrap status shows the reason; nodestrap-codes(7) says under EFABRIC what to do.'}}]}
  - {eval_time: 30m, alertname: NodestrapNodeTainted, exp_alerts: []}
  - {eval_time: 15m, alertname: NodestrapBootUnfinished, exp_alerts: []}
  promql_expr_test:
  - {expr: 'count by (alertname, instance) (ALERTS{alertstate="firing"})', eval_time: 30m, exp_samples: [
      {labels: '{alertname="NodestrapBootFailed", instance="b"}', value: 1}, {labels: '{alertname="NodestrapBootUnfinished", instance="c"}', value: 1},
      {labels: '{alertname="NodestrapNoReport", instance="d"}', value: 1}, {labels: '{alertname="NodestrapNotJoined", instance="a"}', value: 1},
      {labels: '{alertname="NodestrapBootSlow", instance="a"}', value: 1}, {labels: '{alertname="NodestrapGpuUnhealthy", instance="a"}', value: 1},
      {labels: '{alertname="NodestrapInstanceWithoutNode"}', value: 2}]}
  - {expr: 'count by (instance_id) (ALERTS{alertname="NodestrapInstanceWithoutNode", alertstate="firing"})', eval_time: 30m, exp_samples: [
      {labels: '{instance_id="i-0b"}', value: 1}, {labels: '{instance_id="i-0d"}', value: 1}]}
- interval: 1m
  input_series: [{series: 'aws_ec2_status_check_failed_maximum{dimension_InstanceId="i-0a"}', values: 0x40}]        # kube-state-metrics is away
  alert_rule_test: [{eval_time: 30m, alertname: NodestrapInstanceWithoutNode, exp_alerts: []}]
END
ok 'the alerts fire for the right instances, and for no others' "$promtool" test rules "$tmp/test.yaml"
done_testing
