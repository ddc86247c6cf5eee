#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A launch template whose user data is one MIME message: a NodeConfig for nodestrap, and a script for cloud-init, which runs it beside the
# devices phase and before containerd and kubelet are started. Asks for the aws command; it changes nothing but that template.
#
#   bash launch-template.sh NAME TYPE AMI p5-48xlarge.userdata [SCRIPT]
set -eu
name=$1 type=$2 image=$3 document=$4 script=${5:-}
limit=16384     # bytes that EC2 takes, before base64; gzip is undone by nodestrap, nodeadm and cloud-init

nodestrap config check --strict -c "file://$document"
message() {
        printf 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="NODE"\n'
        printf '\n--NODE\nContent-Type: application/node.eks.aws\n\n'
        cat "$document"
        if [ -n "$script" ]; then
                printf '\n--NODE\nContent-Type: text/x-shellscript\n\n'
                cat "$script"
        fi
        printf '\n--NODE--\n'
}
# A document that is a message already goes as it is.
userdata=$(mktemp)
trap 'rm -f "$userdata" "$userdata.json"' EXIT
if grep -qi '^MIME-Version:' "$document"; then cat "$document"; else message; fi >"$userdata"
[ "$(wc -c <"$userdata")" -le $limit ] || { gzip -9 -c "$userdata" >"$userdata.json"; mv "$userdata.json" "$userdata"; }
[ "$(wc -c <"$userdata")" -le $limit ] || { echo "$document: more than $limit bytes, even as gzip" >&2; exit 1; }
nodestrap config check --strict -c "file://$userdata"

# One hop, so that no pod in a network of its own reaches the metadata service and the node's role.
cat >"$userdata.json" <<JSON
{
  "ImageId": "$image",
  "InstanceType": "$type",
  "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
  "UserData": "$(base64 -w 0 "$userdata")"
}
JSON
aws ec2 create-launch-template --launch-template-name "$name" --launch-template-data "file://$userdata.json"
