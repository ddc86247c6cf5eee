#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# spec.instance.tuning and spec.instance.network.mtu on a machine with GPUs. `doctor` judges an image like that of
# awslabs/amazon-eks-ami#2741 before it is launched.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
config() { # INSTANCE: a NodeConfig with these words in spec.instance
        cat <<END
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: c, apiServerEndpoint: "https://e.example", certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==, cidr: 10.100.0.0/16}
  kubelet: {config: {failSwapOn: ${swap:-true}}}
  instance: {localStorage: {strategy: RAID0}${1:+, $1}}
END
}
machine() { mkdir -p "$tmp/$1"; for fixture in "${@:2}"; do "$here/../fixtures/expand.sh" "$fixture" "$tmp/$1"; done; }
plan() { # ROOT INSTANCE OPTION...
        config "$2" >"$tmp/$1/node.yaml"
        "$nodestrap" plan --root "$tmp/$1" -c file:///node.yaml --output json "${@:3}" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; false; }
}
of() { python3 -c 'import json, sys; plan = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$tmp/out" "$1"; }
warned() { of '"; ".join(w["text"] for w in plan["warnings"] if w["code"] == "'"$1"'")'; }
same() { [ "$1" = "$2" ] || { printf '%s\n' "$1" "$2"; false; }; }
holds() { local words; for words in "${@:2}"; do [[ $1 = *"$words"* ]] || { echo "$1 lacks $words"; return 1; }; done; }
planned() { same "$1" "$(of '[(a["target"], a.get("with")) for a in plan["actions"] if a["type"] == "set-tuning"]')"; }

machine wrong p5-48xlarge tuning-wrong
machine right p5-48xlarge tuning-right
machine plain m5-large tuning-wrong

# ---- audit ----
ok "plan succeeds without the tuning key" plan wrong ''
ok "the default, audit, plans no step" planned '[]'
ok "the audit warning names each wrong setting and what to do" holds "$(warned host-tuning)" 'C6 takes 290 us' 'intel_idle.max_cstate=1 processor.max_cstate=1' \
        'kernel.numa_balancing is 1, not 0' 'governor is powersave' 'clock source is hpet' 'transparent_hugepage is always' 'IOMMU domain is DMA' 'MTU of ens5 is 1500, not 9001'
rules() { sed -n '/^static const TuningRule/,/};$/s/^\(.*\.name = \|        { \)"\([^"]*\)".*/\2/p' "$here/../../src/host/tuning.c"; }
each_is_wrong() { local name n=0; while read -r name; do holds "$(warned host-tuning)" "${name%states}" || return; n=$((n + 1)); done < <(rules); same 6 $n; }
ok "the audit warning names a wrong value for each rule of the table" each_is_wrong
ok "the audit is one warning" same 1 "$(of '[w["code"] for w in plan["warnings"]].count("host-tuning")')"
ok "plan succeeds on a machine where all settings are right" plan right ''
ok "a machine where all settings are right gets no audit warning" same '' "$(warned host-tuning)"
echo powersave >"$tmp/right/sys/devices/system/cpu/cpufreq/policy1/scaling_governor"; echo 0 >"$tmp/right/sys/devices/system/cpu/cpu1/cpuidle/state3/disable"
ok "plan succeeds if one CPU differs" plan right ''
ok "the audit warning says how many CPUs are wrong" holds "$(warned host-tuning)" 'governor is powersave, not performance, on 1 of 2 cpufreq policies' 'C6 takes 290 us to leave, more than 10, on 1 of 2 CPUs'
echo performance >"$tmp/right/sys/devices/system/cpu/cpufreq/policy1/scaling_governor"; echo 1 >"$tmp/right/sys/devices/system/cpu/cpu1/cpuidle/state3/disable"
ok "plan succeeds on a machine without GPUs" plan plain ''
ok "a machine without GPUs gets no audit warning" same '' "$(warned host-tuning)"
ok "plan succeeds with tuning: off" plan wrong 'tuning: off'
ok "tuning: off prints no audit warning" same '' "$(warned host-tuning)"
ok "plan succeeds with a tuning setting in spec.instance.sysctl" plan wrong 'sysctl: {kernel.numa_balancing: "0"}'
ok "the audit ignores a setting that spec.instance.sysctl sets" same False "$(of '"numa_balancing" in str(plan["warnings"])')"
swap=false; ok "plan succeeds if kubelet starts with swap" plan wrong ''; unset swap
ok "the audit warns about swap even if kubelet starts with swap" holds "$(warned host-tuning)" 'swap is on'
ok "plan succeeds for another machine" plan wrong '' --instance-type p5.48xlarge
ok "a plan for another machine has no audit warning" same '' "$(warned host-tuning)"

# ---- gpu ----
ok "plan succeeds with tuning: gpu" plan wrong 'tuning: gpu'
ok "tuning: gpu plans the step for the CPUs" planned "[('cpus', 'performance, idle states up to 10 us')]"
ok "tuning: gpu warns about a setting that it does not set" holds "$(warned host-tuning)" numa_balancing
ok "tuning: gpu does not warn about the settings that it sets" same False "$(of '"governor" in str(plan["warnings"]) or "C6" in str(plan["warnings"])')"
ok "plan with tuning: gpu succeeds on a machine without GPUs" plan plain 'tuning: gpu'
ok "tuning: gpu plans no step on a machine without GPUs" planned '[]'
mkdir -p "$tmp/wrong/run/nodestrap"; echo "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor powersave" >"$tmp/wrong/run/nodestrap/tuning"
ok "plan succeeds without the tuning key after a run with the key" plan wrong ''
ok "without the tuning key, the step restores the earlier settings" planned "[('cpus', 'as before')]"
mkdir -p "$tmp/wrong/etc/systemd/system/multi-user.target.wants"; ln -s /usr/lib/systemd/system/tuned.service "$tmp/wrong/etc/systemd/system/multi-user.target.wants/"
rm "$tmp/wrong/run/nodestrap/tuning"
ok "plan with tuning: gpu succeeds if tuned is enabled" plan wrong 'tuning: gpu'
ok "tuning: gpu plans no step if tuned is enabled" planned '[]'
ok "a warning names tuned.service and the command that disables it" holds "$(warned tuning-owner)" 'tuned.service sets the CPU governor' 'systemctl disable --now tuned.service'
ok "the audit warns about the wrong governor if tuned is enabled" holds "$(warned host-tuning)" 'governor is powersave'
config 'tuning: fast' >"$tmp/bad.yaml"
ok "an unknown word for tuning is an error that lists the valid words" bash -c "! '$nodestrap' plan -c '$tmp/bad.yaml' --instance-type p5.48xlarge >/dev/null 2>'$tmp/err' && grep -q 'is not one of audit, gpu, off' '$tmp/err'"

# ---- the MTU ----
ok "plan succeeds with an MTU" plan right 'network: {mtu: 8500}' --write-to "$tmp/files"
ok "the MTU goes into a drop-in of the network file of nodestrap" same $'[Link]\nMTUBytes=8500' "$(cat "$tmp/files/run/systemd/network/70-eks-ens5.network.d/nodestrap-mtu.conf")"
ok "systemd-networkd reloads its files after the write of the MTU file" same "[['write-file:/run/systemd/network/70-eks-ens5.network.d/nodestrap-mtu.conf']]" \
        "$(of '[a["after"] for a in plan["actions"] if a["type"] == "reload-networkd"]')"
reloads() { of '[a["after"] for a in plan["actions"] if a["type"] == "reload-networkd"]'; }
ok "plan succeeds without the MTU key and without an earlier MTU file" plan right ''
ok "without an earlier MTU file, systemd-networkd does not reload" same '[]' "$(reloads)"
drop_in=$tmp/right/run/systemd/network/70-eks-ens5.network.d/nodestrap-mtu.conf; mkdir -p "${drop_in%/*}"; printf '[Link]\nMTUBytes=8500\n' >"$drop_in"
ok "plan succeeds without the MTU key and with an earlier MTU file" plan right ''
ok "systemd-networkd reloads after the earlier MTU file is removed" same "[['prune-files:/var/lib/nodestrap/manifest.json']]" "$(reloads)"
ok "plan succeeds with the MTU key and an earlier MTU file" plan right 'network: {mtu: 8500}'
ok "systemd-networkd reloads after the earlier MTU file is written again" same "[['write-file:/run/systemd/network/70-eks-ens5.network.d/nodestrap-mtu.conf']]" "$(reloads)"
rm "$drop_in"
for mtu in 1279 9002 -1 jumbo; do
        config "network: {mtu: $mtu}" >"$tmp/bad.yaml"
        ok "an MTU of $mtu is an error" bash -c "! '$nodestrap' plan -c '$tmp/bad.yaml' --instance-type p5.48xlarge >/dev/null 2>'$tmp/err' && grep -q 'spec.instance.network.mtu: must be' '$tmp/err'"
done
mkdir -p "$tmp/right/etc/systemd/network/80-ec2.network.d"; printf '[Link]\nMTUBytes=1500\n' >"$tmp/right/etc/systemd/network/80-ec2.network.d/99-mtu.conf"
ok "plan succeeds with an MTU drop-in of the default network file" plan right ''
ok "a warning says that the drop-in of the default network file has no effect" holds "$(warned network-file)" '80-ec2.network.d/99-mtu.conf has no effect' 'spec.instance.network.mtu' '/etc/systemd/network/70-NAME.network.d'
ok "plan succeeds with the MTU key and a drop-in of the default network file" plan right 'network: {mtu: 8500}'
ok "with the MTU key, the warning about the drop-in says where the MTU comes from" holds "$(warned network-file)" '80-ec2.network.d/99-mtu.conf has no effect' 'The MTU comes from spec.instance.network.mtu'
ok "with the MTU key, the warning about the drop-in does not advise the key" same False "$(of '"Set spec.instance.network.mtu" in str(plan["warnings"])')"

# ---- an image as in awslabs/amazon-eks-ami#2741 ----
root=$tmp/image; ok "image.sh makes an image" "$here/../fakes/image.sh" "$root"
kernel=$(ls "$root/lib/modules" | tail -1)
entry() { # WORDS: the kernel command line
        mkdir -p "$root/boot/loader/entries"
        printf 'title x\nversion %s\nlinux /boot/vmlinuz-%s\noptions root=UUID=c2bed23b ro console=tty0 nvme_core.io_timeout=4294967295 %s\n' "$kernel" "$kernel" "$1" >"$root/boot/loader/entries/a.conf"
}
doctor() { "$nodestrap" doctor --root "$root" --instance-type "$1" "${@:2}" --output json >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; false; }; }
warns() { of '"; ".join(c["subject"] + ": " + c.get("found", "") + ": " + c["text"] for c in plan["checks"] if c["verdict"] == "warning" and (c["code"] == "tuning" or c["subject"].startswith("kernel.numa")))'; }
find "$root/boot" "$root/lib/modules" -name 'config*' -exec sed -i '$aCONFIG_NUMA_BALANCING_DEFAULT_ENABLED=y' {} +
entry 'security=selinux quiet'
ok "doctor succeeds for an image without a limit of CPU idle states" doctor p5.48xlarge
ok "doctor finds both defects of amazon-eks-ami#2741" holds "$(warns)" 'no limit on CPU idle states' 'grubby --update-kernel ALL --args "intel_idle.max_cstate=1 processor.max_cstate=1"' \
        'kernel.numa_balancing=0: 1, kernel default' 'set kernel.numa_balancing = 0 in a file in /etc/sysctl.d'
ok "doctor succeeds for a type without GPUs" doctor m6i.4xlarge
ok "doctor has no tuning warning for a type without GPUs" same '' "$(warns)"
entry 'clocksource=hpet intel_idle.max_cstate=1 processor.max_cstate=1 numa_balancing=disable'
ok "doctor succeeds with both settings on the kernel command line" doctor p5.48xlarge
ok "with both settings on the command line, doctor warns only about the clock source" same 'host settings: clocksource: the kernel command line names a slow clock source: remove clocksource=' "$(warns)"
entry ''; mkdir -p "$root/etc/sysctl.d"; echo 'kernel.numa_balancing = 0' >"$root/etc/sysctl.d/90-gpu.conf"; config 'tuning: gpu' >"$root/node.yaml"
ok "doctor succeeds with tuning: gpu and a sysctl.d file" doctor p5.48xlarge -c file:///node.yaml
ok "doctor has no tuning warning with tuning: gpu and a sysctl.d file" same '' "$(warns)"
rm "$root/etc/sysctl.d/90-gpu.conf"; config 'tuning: off' >"$root/node.yaml"
ok "doctor succeeds with tuning: off" doctor p5.48xlarge -c file:///node.yaml
ok "doctor has no tuning warning with tuning: off" same '' "$(warns)"
rm -r "$root/boot/loader" "$root/node.yaml"; mkdir -p "$root/boot/grub"
printf 'menuentry x {\n\tlinux\t/boot/vmlinuz-%s root=/dev/sda1 ro\n}\n' "$kernel" >"$root/boot/grub/grub.cfg"
ok "doctor succeeds for an image with only grub.cfg" doctor p5.48xlarge
ok "doctor reads the kernel command line from grub.cfg" holds "$(warns)" 'no limit on CPU idle states'
rm "$root/boot/grub/grub.cfg"
ok "doctor succeeds for an image without a boot entry" doctor p5.48xlarge
ok "without a boot entry, doctor does not judge the kernel command line" same False "$(of '"idle states" in str(plan["checks"])')"
mkdir -p "$root/etc/systemd/network/80-ec2.network.d"; printf '[Link]\nMTUBytes=1500\n' >"$root/etc/systemd/network/80-ec2.network.d/mtu.conf"
ok "doctor succeeds for an image with an MTU drop-in without effect" doctor p5.48xlarge
ok "doctor says that the MTU drop-in of the image has no effect" holds "$(of 'str([c for c in plan["checks"] if c["code"] == "network-file"])')" '80-ec2.network.d/mtu.conf has no effect'
ln -s /usr/lib/systemd/system/irqbalance.service "$root/etc/systemd/system/multi-user.target.wants/"
entry ''
ok "doctor succeeds for an image with irqbalance" doctor p5.48xlarge
ok "doctor accepts irqbalance and says that it places the interrupts" holds "$(of 'str([c for c in plan["checks"] if c["subject"] == "irqbalance.service"])')" 'nodestrap leaves the placement of interrupts to it' "'ok'"
done_testing
