#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The census of a GPU machine, on a fixture of every class. Each is whole as it is. Take away any GPU, switch, EFA device, disk or NUMA
# node, and nodestrap reports it with its code and its name.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
root=$tmp/root pci=$tmp/root/sys/bus/pci/devices

fresh() { rm -rf "$root" && mkdir "$root" && "$here/../fixtures/expand.sh" "$1" "$root"; }
# The label nvidia.com/gpu.present goes with the last device of NVIDIA.
nvidia_left() { grep -qsx 0x10de "$root"/sys/bus/pci/devices/*/vendor; }
type_is() { printf '%s\n' "$1" >"$root/sys/devices/virtual/dmi/id/product_name"; }
ask_for() { # EFA DISKS: 0, not known
        cat >"$root/userdata" <<END
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: c, apiServerEndpoint: "https://e", certificateAuthority: Y2E=, cidr: 10.100.0.0/16}
  featureGates: {InstanceIdNodeName: true}
  instance:
    $([ "$1" = 0 ] || echo "network: {efa: {expectedDevices: $1}}")
    $([ "$2" = 0 ] || echo "localStorage: {expectedDisks: $2}")
END
}
# The facts, and of them the lines "CODE text" of what is missing.
facts() { (cd "$root" && "$nodestrap" plan --root "$root" -c file:///userdata --output json) >"$tmp/plan" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }; }
missing() { sed -n '/"shortfalls": \[$/,/^ *\]/{ s/^ *"code": "\(.*\)",$/\1/; t code; s/^ *"text": "\(.*\)"$/\1/; t text; d; :code; h; d; :text; H; g; s/\n/ /; p }' "$tmp/plan"; }
id() { grep -m 1 '"planId"' "$tmp/plan"; }
fact() { sed -n '/^ *"gpus": {$/,/^ *}/s/^ *"'"$1"'": "\{0,1\}\([^"]*[^",]\)"\{0,1\},\{0,1\}$/\1/p' "$tmp/plan"; }
whole() { # CLASS COUNT
        facts && id >"$tmp/id" && [ "$(fact class) $(fact count) $(fact expected)" = "$1 $2 $2" ] && [ -z "$(missing)$(fact doubt)" ] || { fact class; fact doubt; missing; false; }
}
# One is gone: nodestrap misses it alone, and names it or the ones that are there. The plan
# stays that of a whole machine, but for the CPUs of a node, by which kubelet reserves.
missed() { # CODE NAME KNOWN
        local text
        facts && text=$(missing) || return
        [ "$1" = ENUMA ] || ! nvidia_left || id | cmp - "$tmp/id" || { echo "without $2 it is another plan"; return 1; }
        [[ $text = "$1 1 of "* && $text != *$'\n'* ]] &&
                if [ "$3" = known ]; then [[ $text = *": $2; "* ]]; else [[ $text = *": present: "* || $text = *": none is present"* ]] && [[ $text != *"$2"* ]]; fi ||
                { echo "without $2: $text"; false; }
}
without() { # CODE KNOWN PATH...: each of them
        local code=$1 known=$2 path
        shift 2
        [ $# -gt 0 ] || return
        for path; do
                mv "$path" "$tmp/away"
                missed "$code" "${path##*/}" "$known" || { mv "$tmp/away" "$path"; return 1; }
                mv "$tmp/away" "$path"
        done
}
functions() { grep -lE "^PCI_ID=($1)" "$pci"/*/uevent | xargs -rn1 dirname; }    # of these ids
stores() { grep -l 'Instance Storage' "$root"/sys/block/*/device/model | sed 's,/device/model$,,' | grep -v c1n1; }

# FIXTURE CLASS GPUS "SWITCHES" EFA DISKS-ASKED NODES KNOWN-PARTS
while read -r fixture class gpus switches efa disks nodes known; do
        fresh "$fixture"
        ask_for "$efa" "$disks"
        knows() { [[ " $known " = *" $1 "* ]] && echo known || echo unknown; }
        mapfile -t G < <(functions 10DE:.... | while read -r d; do grep -qE 'CLASS=30[02]00' "$d/uevent" && echo "$d"; done)
        mapfile -t S < <(functions '10DE:(1AF1|22A3)|15B3:....')
        mapfile -t E < <(functions 1D0F:EFA.)
        mapfile -t D < <(stores)
        ok "$fixture: $gpus GPUs, class $class, nothing is missing" whole "$class" "$gpus"
        [ "$gpus" = 0 ] || ok "$fixture: nodestrap reports a missing GPU, for each of ${#G[@]}" without EGPUMISSING "$(knows gpu)" "${G[@]}"
        ok "$fixture: the fixture has $switches ways to switches, all $gpus GPUs and all $efa EFA devices" test "${#S[@]} ${#G[@]} ${#E[@]}" = "$switches $gpus $efa"
        [ "$switches" = 0 ] || ok "$fixture: nodestrap reports a missing switch, for each" without ENVSWITCH "$(knows switch)" "${S[@]}"
        ok "$fixture: nodestrap reports a missing EFA device, for each of ${#E[@]}" without EEFA "$(knows efa)" "${E[@]}"
        ok "$fixture: nodestrap reports a missing instance store, for each of ${#D[@]}" without EDISKS unknown "${D[@]}"
        [ "$nodes" = 0 ] || ok "$fixture: nodestrap reports a missing NUMA node, for each of $nodes" without ENUMA unknown "$root"/sys/devices/system/node/node[01]
done <<'END'
p4d-24xlarge  nvswitch 8 6 4  0 2 gpu efa
p4de-24xlarge nvswitch 8 6 2  0 2 gpu
p5-48xlarge   nvswitch 8 4 32 0 2 gpu efa
p5-4xlarge    single   1 0 1  0 0
p5en-48xlarge nvswitch 8 4 16 0 2 gpu efa
p6-b200       nvlink5  8 2 8  0 2 gpu efa switch
p6-b300       nvlink5  8 2 16 0 2 gpu efa switch
p6e-gb200     tray     4 0 8  0 2 gpu
p6e-gb300     tray     4 0 8  3 0
g4dn          single   4 0 1  0 0
g5            single   4 0 1  0 0
g5-48xlarge   single   8 0 1  0 2 gpu
g6e           single   4 0 2  0 0
g7e           single   4 0 2  4 0
trn2          none     0 0 16 0 0
END
fresh g6-xlarge; ask_for 0 0
ok 'g6-xlarge: class single, nothing is missing' whole single 1
ok 'g6-xlarge: nodestrap reports its only GPU if it is missing' without EGPUMISSING unknown "$pci/0000:31:00.0"
fresh m5-large; ask_for 0 0
ok 'm5-large: no class, nothing is missing' whole none 0

fresh p6-b200; ask_for 8 0; whole nvlink5 8
functions '10DE:.*|15B3:.*' | xargs rm -r
nothing_left() { facts && [ "$(missing | cut -c-33)" = $'EGPUMISSING 8 of 8 GPUs are missi\nENVSWITCH 2 of 2 ConnectX functio' ]; }
ok 'p6-b200: nodestrap reports all GPUs and all switches if all are missing' nothing_left

fresh trn2; ask_for 0 0; whole none 0
mapfile -t N < <(functions 1D0F:7364)
sixteen() { [ ${#N[@]} = 16 ] && without ENEURON unknown "${N[@]}"; }
ok 'trn2: nodestrap reports a missing Neuron device, for each of sixteen' sixteen
told() { without ENEURON unknown "${N[0]}" && grep -q '"unused-device-missing"' "$tmp/plan" && ! grep -q '"load-module:neuron"' "$tmp/plan" && grep -q '"no-driver"' "$tmp/plan"; }
ok 'trn2: a missing device is a warning if the image has no driver' told
driver() { install -D -m 644 /dev/stdin "$root/lib/modules/$(cat "$root/proc/sys/kernel/osrelease")/modules.dep" <<<'kernel/extra/neuron.ko.xz:'; facts && id >"$tmp/id" && without ENEURON unknown "${N[0]}" && grep -q '"missing-device"' "$tmp/plan" && grep -q '"load-module:neuron"' "$tmp/plan"; }
ok 'trn2: a missing device is a failure if the image has a driver' driver

# ---- devices and type that contradict each other ----
doubted() { # CLASS WORDS: the class is that of the type, and the first shortfall is EGPUCLASS, with these words
        facts && [ "$(fact class)" = "$1" ] && [[ $(missing) = "EGPUCLASS "* ]] && missing | head -1 | grep -qF -- "$2" || { fact class; missing; false; }
}
classed() { facts && [ "$(fact class)" = "$1" ] && ! missing | grep -F EGPUCLASS; }

fresh p5-48xlarge; ask_for 0 0
functions 10DE:22A3 | xargs rm -r
ok 'eight H100 without a switch keep class nvswitch and give EGPUCLASS' doubted nvswitch 'the PCI bus has no NVIDIA bridge of class 0680'
four() { missing | grep -qF 'ENVSWITCH 4 of 4 NVSwitches are missing (p5.48xlarge): none is present'; }
ok 'eight H100 without a switch lack four NVSwitches' four
type_is p5.4xlarge
ok 'H100 without a switch on a p5.4xlarge are of class single' classed single
type_is x9.48xlarge
ok 'eight H100 without a switch on an unknown type give EGPUCLASS' doubted nvswitch 'a machine with 8 h100 should have GPUs behind NVSwitches'
rm -r "$pci"/0000:{53,64,75,86}:00.0
ok 'four H100 without a switch on an unknown type are of class single' classed single

fresh p6-b200; ask_for 0 0
for slot in 73 74; do echo 'SMDL=other' >"$pci/0000:$slot:00.0/vpd"; done
ok 'eight B200 with other ConnectX functions give EGPUCLASS' doubted nvlink5 'no ConnectX function (15b3) has SW_MNG'
rm "$pci"/0000:7{3,4}:00.0/vpd
decided() { # WORDS: that is only a warning, since type and number of functions decide
        classed nvlink5 && [ -z "$(missing)$(fact doubt)" ] && fact unread | grep -qF -- "$1" && grep -q '"switches-unread"' "$tmp/plan" || { fact doubt; fact unread; false; }
}
ok 'eight B200 without vital product data get their class from the type' decided '0000:73:00.0/vpd cannot be read: No such file or directory; as p6-b200.48xlarge has 2 functions 15b3:1021'
type_is x9.48xlarge
ok 'eight B200 without vital product data get their class from their number on an unknown type' decided 'as a machine with 8 b200 has 2 functions'
rm -r "$pci"/0000:{51,52,62,63}:00.0
ok 'four B200 without vital product data on an unknown type are of class single' classed single
fresh p6-b200; ask_for 0 0; rm "$pci"/0000:7{3,4}:00.0/vpd
sed -i s/PCI_CLASS=20700/PCI_CLASS=20000/ "$pci/0000:74:00.0/uevent"
ok 'eight B200 with an Ethernet card among the ConnectX functions give EGPUCLASS' doubted nvlink5 '0000:73:00.0/vpd cannot be read'
sed -i s/PCI_CLASS=20000/PCI_CLASS=20700/ "$pci/0000:74:00.0/uevent"
type_is p5.4xlarge
ok 'B200 on a type without switches are of class single' classed single
type_is p6-b200.48xlarge
mkdir "$pci"/0000:7{3,4}:00.0/vpd
ok 'vital product data that cannot be read leaves the class to the type' decided '0000:73:00.0/vpd cannot be read: Is a directory'
rmdir "$pci"/0000:7{3,4}:00.0/vpd; mkfifo "$pci"/0000:7{3,4}:00.0/vpd
ok 'vital product data that is empty leaves the class to the type' decided '0000:73:00.0/vpd cannot be read: No data available'
silent() { sleep infinity >"$pci/0000:73:00.0/vpd" & local pid=$!; exec 7<>"$pci/0000:74:00.0/vpd"; decided "$@"; local r=$?; exec 7>&-; kill $pid; return $r; }
ok 'vital product data that does not come leaves the class to the type' silent 'cannot be read: Resource temporarily unavailable'
rm "$pci"/0000:7{3,4}:00.0/vpd
{ head -c 61 /dev/zero; echo SW_MNG; } >"$pci/0000:73:00.0/vpd"
ok 'one way to the switches decides the class, wherever its mark is in the data' classed nvlink5
{ head -c 32768 /dev/zero; echo SW_MNG; } >"$pci/0000:73:00.0/vpd"
ok 'a mark behind the end of the vital product data does not count' doubted nvlink5 '0000:74:00.0/vpd cannot be read'
functions 15B3:.... | xargs rm -r
ok 'eight B200 without ConnectX give EGPUCLASS' doubted nvlink5 'the PCI bus has no ConnectX function (15b3)'
type_is x9.48xlarge
ok 'eight B200 without ConnectX on an unknown type give EGPUCLASS' doubted nvlink5 'a machine with 8 b200'

fresh p6e-gb300; ask_for 0 0
type_is x9.48xlarge
ok 'GPUs of a tray make a tray on an unknown type' classed tray
sed -i 's/31C2/2335/' "$pci"/*/uevent
type_is p6e-gb300.36xlarge
ok 'GPUs of another kind on a tray type give EGPUCLASS' doubted tray 'one of the two is wrong'
fresh g5; ask_for 0 0
printf 'PCI_CLASS=68000\nPCI_ID=10DE:22A3\n' >"$pci/0000:00:05.0/uevent"
ok 'a switch on a type without switches gives EGPUCLASS' doubted single 'its devices show GPUs behind NVSwitches'
fresh trn2; ask_for 0 0
printf 'PCI_CLASS=30200\nPCI_ID=10DE:2330\n' >"$pci/0000:10:00.0/uevent"
ok 'a GPU on a type without GPUs gives EGPUCLASS' doubted none 'should have no NVIDIA GPU'

# ---- numbers in the configuration ----
fresh p4d-24xlarge; ask_for 8 0
some() { facts && missing | grep -qF "$1" || { missing; false; }; }
ok 'nodestrap expects as many EFA devices as the configuration says' some 'EEFA 4 of 8 EFA devices are missing (spec.instance.network.efa.expectedDevices): present: 0000:10:1b.0, 0000:20:1b.0, 0000:90:1b.0, 0000:a0:1b.0;'
sed -i 's/{expectedDevices/{mode: "off", expectedDevices/' "$root/userdata"
nothing() { facts && [ -z "$(missing)" ]; }
ok 'nodestrap expects no EFA devices if EFA is off' nothing
ask_for 0 9
ok 'nodestrap expects as many disks as the configuration says' some 'EDISKS 1 of 9 instance stores is missing (spec.instance.localStorage.expectedDisks): present: nvme1n1 (AWS1Anvme1n1), '
ask_for 0 7
ok 'more disks than the configuration says are enough' nothing
rm -r "$root"/sys/block/nvme[12]n1
ok 'nodestrap reports fewer disks than the configuration says' some 'EDISKS 1 of 7'
sed -i 's/{expectedDisks/{strategy: RAID0, expectedDisks/' "$root/userdata"
ok 'the census does not count disks if a storage strategy uses them' nothing

# ---- /etc/default/mig ----
mig() { [ "$(fact migDefault)" = "$1" ] || { fact migDefault; cat "$tmp/err"; false; }; }
ask_for 0 0
mkdir -p "$root/etc/default"
printf '# as the recipe has it\nMIG_PARTITION=9,9\nexport MIG_PARTITION="19,19,19" # seven\n' >"$root/etc/default/mig"
facts; ok 'nodestrap reads MIG_PARTITION' mig 19,19,19
printf 'MIG_PARTITION=$(cat /etc/x)\n' >"$root/etc/default/mig"
refused() { ! facts >"$tmp/err" && says '/etc/default/mig' && says 'MIG_PARTITION is not one plain word'; }
ok 'nodestrap refuses a MIG_PARTITION that only a shell can expand' refused
done_testing
