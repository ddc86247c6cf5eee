#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes a launch template whose user data is one MIME message: a NodeConfig for nodestrap, and a script for cloud-init. cloud-init runs it
# beside the devices phase, before containerd and kubelet start. The template has as many EFA interfaces as the NodeConfig requires, and the
# instance profile of the nodes. It needs the aws command, and creates only that template.
#
#   bash launch-template.sh NAME TYPE AMI PROFILE SECURITY-GROUP p5-48xlarge.userdata [SCRIPT]
set -eu
name=$1 type=$2 image=$3 profile=$4 group=$5 document=$6 script=${7:-}
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
# A document that is already a MIME message goes in unchanged.
userdata=$(mktemp)
trap 'rm -f "$userdata" "$userdata.json"' EXIT
if grep -qi '^MIME-Version:' "$document"; then cat "$document"; else message; fi >"$userdata"
[ "$(wc -c <"$userdata")" -le $limit ] || { gzip -9 -c "$userdata" >"$userdata.json"; mv "$userdata.json" "$userdata"; }
[ "$(wc -c <"$userdata")" -le $limit ] || { echo "$document: more than $limit bytes, even as gzip" >&2; exit 1; }
nodestrap config check --strict -c "file://$userdata"

# Card 0 has the address of the node: with EFA if every card has EFA, otherwise only ENA. Other cards have only EFA; on a P6e, the odd ones.
efa=$(nodestrap config dump -c "file://$userdata" 2>/dev/null | sed -n 's/.*"expectedDevices": *\([0-9]*\).*/\1/p')
cards=$(nodestrap plan -c "file://$userdata" --instance-type "$type" --output json 2>/dev/null | sed -n 's/.*"networkCards": *\([0-9]*\).*/\1/p')
interface() { # CARD DEVICE TYPE
        printf '%s{"NetworkCardIndex": %d, "DeviceIndex": %d, "InterfaceType": "%s", "Groups": ["%s"]}' "$comma" "$1" "$2" "$3" "$group"
        comma=', '
}
interfaces() {
        comma='' left=${efa:-0} card=1 step=1
        case $type in p6e-*) step=2;; esac
        if [ "$left" -gt 0 ] && [ "$left" -eq "${cards:-0}" ]; then interface 0 0 efa; left=$((left - 1)); else interface 0 0 interface; fi
        while [ "$left" -gt 0 ]; do interface $card 1 efa-only; card=$((card + step)) left=$((left - 1)); done
}

# One hop, so that no pod in a network of its own reaches the metadata service and the node's role.
cat >"$userdata.json" <<JSON
{
  "ImageId": "$image",
  "InstanceType": "$type",
  "IamInstanceProfile": {"Name": "$profile"},
  "NetworkInterfaces": [$(interfaces)],
  "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
  "UserData": "$(base64 -w 0 "$userdata")"
}
JSON
aws ec2 create-launch-template --launch-template-name "$name" --launch-template-data "file://$userdata.json"
