#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run it as root in the instance that builds an image: it installs the package and hands the node over to nodestrap. It exits with 70 if a boot of
# this image would fail. image.pkr.hcl calls it; by hand:
#
#   PACKAGE=/tmp/nodestrap.rpm USERDATA=/tmp/userdata TYPES=p5.48xlarge bash image.sh
set -eu
case $PACKAGE in
*.rpm) dnf install -y "$PACKAGE";;
# Recommended packages, by name: apt would also install the mail agent that mdadm recommends.
*.deb) apt-get update && apt-get install -y --no-install-recommends "$PACKAGE" ca-certificates e2fsprogs kmod mdadm xfsprogs;;
esac

# Two bootstrappers must not share a boot, and nodestrap starts kubelet.
for unit in nodeadm-boot-hook nodeadm-config nodeadm-run kubelet; do
        if systemctl is-enabled -q "$unit" 2>/dev/null; then systemctl disable "$unit"; fi
done
systemctl enable nodestrap-boot-hook nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined

# Remove traces of this instance from the image; doctor would report them.
if command -v cloud-init >/dev/null; then cloud-init clean --logs; fi
: >/etc/machine-id

# Check the image for the machines that it is for, with the user data that they get.
nodestrap config check --strict -c "file://$USERDATA"
mkdir -p /run/image
mount --bind / /run/image
install -m 0600 "$USERDATA" /run/image/var/tmp/userdata
status=0
nodestrap doctor --strict --root /run/image -c file:///var/tmp/userdata --instance-type "$TYPES" || status=$?
rm /run/image/var/tmp/userdata
umount /run/image
rmdir /run/image
exit $status
