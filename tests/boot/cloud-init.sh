#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0 -a cloud-init
# imds: imds-m5
# environment: IMDS_TOKEN=optional
# tree: enabled
# signed: --cluster example --account 111122223333 --region us-west-2
# console: NODESTRAP verdict=ok
# Real cloud-init of Debian 13, its Ec2 data source at the same metadata service. The user data is signed: cloud-init ignores the signature.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

check_node
check_cloud_init
try "both phases log the key that has signed the user data" sh -c "[ \$(journalctl -b -o cat -u 'nodestrap-*' | grep -cE 'user-data is signed with sha256:[0-9a-f]{64} \(boot.pub\), .* account 111122223333, region us-west-2, cluster example\.') -ge 2 ]"
try "cloud-init ignores the signature" grep -F 'Unhandled unknown content-type (application/vnd.nodestrap.signature)' /var/log/cloud-init.log

finish
