#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5 private-dns-name
# tree: enabled ec2
# Without the gate InstanceIdNodeName the node has the name that EC2 says.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

export AWS_ENDPOINT_URL_EC2=http://127.0.0.1:8101
check_node
try "kubelet gets a host name" grep -zq -- '--hostname-override=ip-10-' /run/recording-kubelet/argv
try "EC2 gets two requests in all" is "$(grep -c DescribeInstances out/ec2.log)" 2

finish
