# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced behind guest.sh by tests of machines with GPUs. It has the order of steps in the records of the fakes, and machines that one guest
# boots many times.
. /usr/lib/fakes/lib.sh
E=/run/fakes/events

happened() { grep -qE -- "^$1" "$E" || { echo "no event $1 among:"; cat "$E"; return 1; }; }
never() { ! grep -E -- "^$1" "$E"; }
once() { is "$(grep -cE -- "^$1" "$E")" 1; }
# in_order EVENT… : each of these (grep -E, from the line's beginning) happened after the one before it.
in_order() {
        local at=0 line last=power-on e
        for e; do
                line=$(awk -v at=$at -v e="^$e" 'NR > at && $0 ~ e { print NR; exit }' "$E")
                [ -n "$line" ] || { echo "no $e after $last:"; cat -n "$E"; return 1; }
                at=$line last=$e
        done
}
# value KEY… : of status.json, as value accelerator states
value() { python3 -c 'import functools, json, sys
print(functools.reduce(lambda v, key: v[key], sys.argv[1:], json.load(open("/run/nodestrap/status.json"))))' "$@"; }

# The configuration phase comes first and kubelet last of all units, by the clock of the journal (SD_MESSAGE_UNIT_STARTED). The last start
# of each unit counts, since images start containerd before we do.
journal_order() { journalctl -b -o json MESSAGE_ID=39f53479d3a045ac8e11786248231fbf | python3 -c 'import json, sys
between = ["nvidia-persistenced", "nvidia-fabricmanager", "nvidia-imex", "containerd"]
started = {}
for line in sys.stdin:
    entry = json.loads(line)
    if entry["JOB_RESULT"] == "done" and "skipped" not in entry["MESSAGE"]:
        started[entry["UNIT"].removesuffix(".service")] = int(entry["__MONOTONIC_TIMESTAMP"])
seen = {unit: started[unit] for unit in ["nodestrap-config", *between, "kubelet"] if unit in started}
if {"nodestrap-config", "containerd", "kubelet"} - seen.keys() or any(not seen["nodestrap-config"] < seen[u] < seen["kubelet"] for u in between if u in seen):
    sys.exit(f"{seen}")'; }
# The order that each class with a driver needs, beside the one that its own test names.
driver_order() { ! grep -q '^module nvidia$' "$E" || in_order 'module nvidia$' 'persistenced-started' 'nvidia-smi.*-L' cdi-generated kubelet; }

excused=none
may_fail() { excused=$(printf '%s\n' "$@" | sed '/\./!s/$/.service/'); }  # units of the image
# All that a GPU machine must be after a boot; EVENT…: its order.
check_gpu_node() {
        try "the verdict is ok, and both phases succeed" is "$(value verdict) $(property nodestrap-config ExecMainStatus) $(property nodestrap-run ExecMainStatus)" "ok 0 0"
        try "the steps happen in the order that this class of machine needs" in_order "$@"
        try "the steps of a machine with a driver happen in their order" driver_order
        try "containerd starts before kubelet" in_order containerd kubelet
        try "the journal has the configuration phase first and kubelet last" journal_order
        try "kubelet starts once" once kubelet
        try "status says that the health is good, if kubelet has GPUs" well
        try "no unit failed" is "$(systemctl list-units --failed --plain --no-legend | cut -d' ' -f1 | grep -vxF "$excused")" ""
        try "no ordering cycle was broken" no_cycle
        try "nodestrap loads no module of a device that the machine lacks" never 'module-refused (nvidia|ib_|mlx|efa)'
        cp "$E" out/events; cp /run/nodestrap/status.json out/

        local before asked; before=$(pids) asked=$(programs_asked)
        try "init without options succeeds after the boot" nodestrap init
        cp /run/nodestrap/status.json out/status2.json
        try "the second init changes nothing" unchanged
        try "the second init restarts nothing" is "$(pids)" "$before"
        try "the second init runs no program that takes seconds" is "$(programs_asked)" "$asked"
}
programs_asked() { grep -cE '^(nvidia-smi -L|cdi-generated)' $E; }
well() {                                # status has no Health where kubelet finds no GPU
        grep -qE '^kubelet gpus=[1-9]' "$E" || { ! nodestrap status --long | grep '^Health'; return; }
        nodestrap status --long | grep '^Health: good' || { nodestrap status --long | sed -n '/^Health/,/^plan/p'; return 1; }
}
pids() { for u in kubelet containerd nvidia-fabricmanager nvidia-persistenced nvidia-imex; do printf '%s ' "$(property $u MainPID)"; done; }
unchanged() { python3 -c 'import json, sys
runs = json.load(open("/run/nodestrap/status.json"))["runs"]
changed = [a["id"] for r in runs.values() for a in r["actions"] if a["outcome"] != "unchanged"]
sys.exit("changed again: " + ", ".join(changed) if changed else 0)'; }

# ---- many machines in one guest (tree: gpu, gpu: FIXTURE many) ----
UNITS="kubelet containerd nvidia-imex nvidia-fabricmanager nvidia-persistenced set-nvidia-clocks nvidia-kmod-load nodestrap-run nodestrap-devices nodestrap-config"
# power_on FIXTURE [NAME=VALUE…]: nothing of what ran before is left in memory or on /run; the AMI's disk is as it was delivered.
power_on() {
        local fixture=$1 word; shift
        # shellcheck disable=SC2086 # units are words
        systemctl stop $UNITS 2>/dev/null; systemctl reset-failed
        rm -rf /run/{nodestrap,eks,nodeadm,recording-kubelet,cdi,nvidia-*} /run/systemd/system/nvidia-* /run/systemd/system.control/nvidia-* /run/nvidia-* /var/lib/nodestrap /var/lib/fake-nvml.state /etc/fakes/* \
                /etc/modprobe.d/{40-eks,nvidia,zz-nodestrap}* /etc/nvidia-imex/* /etc/eks/nodeadm.d/* /etc/eks/kubelet/environment
        systemctl daemon-reload
        /usr/lib/fakes/machine down
        for word; do echo "${word#*=}" >"/etc/fakes/${word%%=*}"; done
        [ -d "/vmtest/machines/$fixture" ] || { mkdir -p "/vmtest/machines/$fixture" && /vmtest/fixtures/expand.sh "$fixture" "/vmtest/machines/$fixture" || exit; }
        /usr/lib/fakes/machine up "/vmtest/machines/$fixture"
        /vmtest/fixtures/imds.sh /vmtest/imds "$(cat /sys/devices/virtual/dmi/id/product_name)"
}
# The units that the AMI has enabled start as multi-user.target would start them: all at once, without waiting.
ami_starts() { systemctl start --no-block nvidia-kmod-load nvidia-persistenced nvidia-fabricmanager set-nvidia-clocks "$@"; }
spec() { printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: %s\n' "$1" >/etc/eks/nodeadm.d/50-spec.yaml; }
# The node starts; the exit status is that of the run phase.
node_starts() {
        local status
        systemctl start nodestrap-run 2>/dev/null && return
        status=$(property nodestrap-run ExecMainStatus); [ "$status" != 0 ] || status=$(property nodestrap-config ExecMainStatus)
        return "$status"
}
# Without nodestrap: as the AMI's own bootstrap starts it.
kubelet_starts() { echo NODEADM_KUBELET_ARGS= >/etc/eks/kubelet/environment; systemctl start kubelet; }
kubelet_saw() { happened "kubelet .*$1"; }
# fails EXIT CODE REGEX NAME: the node does not come up, and status.json has the code and the reason.
fails() {
        local status
        node_starts; status=$?
        try "$4: init exits with $1" is $status "$1"
        try "$4: status.json has the code $2" matches "$(value verdict) $(value code)" "^failed ($2)$"
        try "$4: status.json says why" says "$3"
        try "$4: kubelet was not started" never_started
}
says() { value text | grep -E -- "$1" || { echo "$(value step): $(value text)"; return 1; }; }
matches() { [[ $1 =~ $2 ]] || { echo "is \"$1\", want $2"; return 1; }; }
