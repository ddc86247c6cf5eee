#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 private-dns-name
# tree: enabled ec2 throttled
# EC2 throttles every request of the first phase. In the second it says another name than the metadata service.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

export AWS_ENDPOINT_URL_EC2=http://127.0.0.1:8101
throttled() { grep -c 'DescribeInstances 503' out/ec2.log; }
answered() { grep -c 'DescribeInstances 200' out/ec2.log; }
try "EC2 throttled the first phase, and answered the second at once" is "$([ "$(throttled)" -ge 1 ] && answered)" 1
try "the first phase goes on with an assumed name" in_journal "using ip-10-11-12-13\\.us-west-2\\.compute\\.internal"
try "the second phase corrects the assumed name" in_journal "EC2 names this node ip-10-11-12-99\\.us-west-2\\.compute\\.internal, but nodestrap assumed ip-10-11-12-13"
try "kubelet gets the name that EC2 says" grep -zqx -- '--hostname-override=ip-10-11-12-99.us-west-2.compute.internal' /run/recording-kubelet/argv
try "kubelet starts once, so never with the assumed name" starts 1
try "nodestrap-config.service succeeded" exited nodestrap-config 0
try "nodestrap-run.service is active" active nodestrap-run
try "kubelet.service is active" active kubelet
try "no ordering cycle was broken" no_cycle
# shellcheck disable=SC2046 # sources are words
try "nodestrap plan succeeds after the boot" sh -c "nodestrap plan $(sources) --show-secrets --output json >plan.json"
try "every planned file is there" python3 compare.py files plan.json
try "kubelet got exactly the planned flags" python3 compare.py kubelet plan.json /run/recording-kubelet/argv
check_second_run
try "config.json and facts.json have no assumed name any more" no grep -r nameAssumed /run/eks/nodeadm/config.json /run/nodestrap/facts.json

finish
