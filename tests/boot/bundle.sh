#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# gpu: p5-48xlarge gen2
# tree: enabled gpu
# spec: {instance: {environment: {default: {HTTPS_PROXY: "http://me:CANARY-proxy@127.0.0.1:9", NO_PROXY: "127.0.0.1,169.254.169.254"}, containerd: {DB: CANARY-containerd}, kubelet: {API_TOKEN: CANARY-kubelet}}}}
# spec: {kubelet: {flags: [--v=2], config: {staticPodURLHeader: {X-Key: [CANARY-header]}}}}
# console: NODESTRAP verdict=ok
# status --bundle on a node from power-on has all files and logs of a support case, from every unit. It has no secret,
# although other units log some.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

B=/run/bundle
take() { rm -rf $B; mkdir -p $B && nodestrap status --bundle $B/b.tar.gz 2>$B/said && tar -xzf $B/b.tar.gz -C $B --strip-components=1; }
has() { grep -qE -- "$2" "$B/$1" || { head -50 "$B/$1"; cat $B/errors.txt; false; }; }
no_canary() { ! grep -rE 'CANARY' $B; }
in_errors() { grep -F -- "$1" $B/errors.txt; }

# nodestrap cannot keep a daemon from logging its environment. One unit fails.
systemd-run -q --wait -u nodeadm-chatty.service sh -c 'echo "dialing via http://me:CANARY-proxy@127.0.0.1:9"; echo "{\"token\":\"CANARY-kubelet\"}"; echo CANARY-containerd CANARY-header; echo Q0FOQVJZLWt1YmVsZXQ=; exit 3'
systemd-run -q --wait -u cloud-init-scripts.service -p SyslogIdentifier=cloud-init sh -c 'echo "Cloud-init v. 24.1 running"; echo "2026-01-01 00:00:00,000 - cc_scripts_user.py[WARNING]: Failed to run"; set -x; : docker login -p CANARY-script; echo CANARY-printed; echo said-by-a-script'
journalctl --sync
try "the journal has a secret that another unit has logged" in_journal 'CANARY-kubelet'
try "status --bundle writes a bundle" take
try "the unpacked bundle has about.txt" test -s $B/about.txt
try "only root may read the bundle" is "$(stat -c '%a %u' $B/b.tar.gz)" "600 0"
try "the bundle has no secret" no_canary
try "the bundle has the verdict in status.json" has status.json '"verdict": *"ok"'
try "the bundle has the picture of the boot" has status.svg '<svg .*viewBox='
try "the bundle has the plan of the config phase" has plan-config.txt 'write-file +/etc/containerd/config.toml'
try "the bundle has the plan of the run phase" has plan-run.txt 'start-unit +kubelet.service'
try "the plan of the run phase has the same id as status.json" has plan-run.txt "$(python3 -c 'import json; print(json.load(open("/run/nodestrap/status.json"))["planId"])')"
try "the bundle has the plan of the devices phase" has plan-devices.txt "$(python3 -c 'import json; print(json.load(open("/run/nodestrap/status.json"))["planId"])')"
try "the bundle has the journal of the phase that succeeded" has journal/nodestrap.txt 'nodestrap\[[0-9]+\]: nodestrap: ok'
try "the journal in the bundle has the plans of all three phases" is "$(grep -cE 'Applying plan sha256' $B/journal/nodestrap.txt)" 3
try "the bundle has the journal fields of the verdict" has journal/verdicts.txt 'NODESTRAP_VERDICT=ok'
try "the bundle has the journal of containerd" has journal/containerd.txt 'containerd\['
try "the bundle has the journal of kubelet" has journal/kubelet.txt 'kubelet'
try "the bundle has the output of the chatty unit, without secrets" has journal/nodeadm.txt 'dialing via \(hidden\)'
try "the bundle has the messages of cloud-init" has journal/cloud-init.txt 'Cloud-init v. 24.1 running'
try "the bundle has the warnings of cloud-init" has journal/cloud-init.txt 'WARNING.: Failed to run'
try "the bundle lacks the output of user scripts" sh -c "! grep said-by-a-script $B/journal/cloud-init.txt"
try "the journal in the bundle begins with the newest line" sh -c "grep ^2 $B/journal/nodestrap.txt | cut -d' ' -f1 | sed -n '1p;\$p' | sort -rc"
try "the bundle names the unit that failed" has systemd/failed.txt 'nodeadm-chatty.service'
state() { tr '\n' ' ' <$B/systemd/show.txt | sed 's/  /\n/g' | grep -F ' Id=nodestrap-run.service ' | grep -F ' ActiveState=active ' | grep -F ' ExecMainStatus=0 '; }
try "the bundle has the state of nodestrap-run.service" state
try "the bundle lacks the environment of units" sh -c "! grep -rE '^(Default)?Environment=' $B/systemd | grep -v hidden"
try "the configuration in the bundle hides the values of the environment" has config.json '"API_TOKEN": "\(hidden\)"'
try "the bundle has the arguments of kubelet" has files/etc/eks/kubelet/environment 'NODEADM_KUBELET_ARGS='
try "the bundle has the names of environment variables, without values" has files/etc/nodestrap/environment/kubelet.service '^API_TOKEN=\(hidden\)$'
try "the bundle has the configuration of containerd" has files/etc/containerd/config.toml nvidia
try "the configuration in the bundle has the same bytes" cmp $B/files/etc/containerd/config.toml /etc/containerd/config.toml
try "the bundle has the GPUs that nvidia-smi lists" has nvidia/list.txt 'GPU 0'
try "the bundle has the PCI devices and their drivers" has machine/pci.txt 'DRIVER=nvidia.* PCI_ID=10DE:'
try "the bundle has the mounts" has files/proc/mounts ' / '
try "the bundle has the network addresses" has machine/addresses.txt inet
try "no program timed out while status wrote the bundle" sh -c "! grep -E 'in time|all the time' $B/errors.txt"
try "the last message has the number of files and the size" grep -E 'b.tar.gz: [0-9]+ files in nodestrap-[^ ]+, [0-9]+ KiB' $B/said

# The collector of the image asks for the journals of two units that do not run here.
try "the log collector of the image finds the verdict of the first phase" sh -c "journalctl --unit=nodeadm-config --since -10d | grep -F 'NODESTRAP verdict=ok'"
try "the log collector of the image finds the verdict of the second phase" sh -c "journalctl --unit=nodeadm-run --since -10d | grep -F 'NODESTRAP verdict=ok'"

# An nvidia-smi that hangs must not keep the other files out of the bundle.
hang() { printf '#!/bin/sh\nexec sleep 1000\n' >/run/hangs && chmod +x /run/hangs && mount --bind /run/hangs "$(readlink -f "$(command -v nvidia-smi)")"; }
try "a program that hangs takes the place of nvidia-smi" hang
try "status --bundle writes a bundle although nvidia-smi hangs" take
try "bundle kills nvidia-smi at the deadline, and errors.txt says so" in_errors 'nvidia/query.txt: nvidia-smi timed out and was killed'
try "the bundle has the images of containerd although nvidia-smi hangs" has containerd/images.txt REF
try "the bundle has no secret if nvidia-smi hangs" no_canary

finish
