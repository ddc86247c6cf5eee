#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: nvidia-fabricmanager-start.sh --mode start …
# NVIDIA starts fabric manager so since R570 (FMUG). With ibstat it looks for bridges to NVLink 5 switches (script bridges-by-id: without
# vital product data by their ids, NVIDIA/gpu-driver-container#606). With bridges it needs ib_umad, starts NVLSM and waits 5 s. Then it
# starts fabric manager in any case.
. /usr/lib/fakes/lib.sh
guid='' nvl5=''
command -v ibstat >/dev/null || die "ibstat is not there"         # luis15pt/Nexgen-MAAS-validation: without infiniband-diags it exits 1 every time
for d in /sys/class/infiniband/*; do
        scripted bridges-by-id && grep -qs '^PCI_ID=15B3:1021' "$d/device/uevent" || grep -qs SW_MNG "$d/device/vpd" || continue
        nvl5=1; ! sm_disabled "$d" || continue
        guid=$(port_guid "$d"); break
done
if [ -n "$nvl5" ]; then
        echo "Detected NVL5+ system"
        loaded ib_umad && [ -e /dev/infiniband/umad0 ] || { event "fm-refused ib_umad"; die '"ib_umad" has not been loaded'; }
        /opt/nvidia/nvlsm/sbin/nvlsm -F /usr/share/nvidia/nvlsm/nvlsm.conf --guid "$guid" --pid_file /run/nvidia-fabricmanager/nvlsm.pid || exit 1
        pause 5
else
        echo "Detected Pre-NVL5 system"
fi
exec /usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg ${guid:+-g "$guid"}
