# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # bad is guest.sh's
# Sourced behind guest.sh by tests on the image of EKS (tests/fakes/al2023). It checks which program started this node, and takes the ways
# between nodeadm and nodestrap (nodestrap-nodeadm(7)).
OUR_UNITS="nodestrap-boot-hook nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined" THEIR_UNITS="nodeadm-boot-hook nodeadm-config nodeadm-run"
SOMEBODY=/run/somebody

# The test goes on in the next boot, which begins with what was reported in this one.
next_boot() { [ "$bad" = 0 ] || finish; cp out/stdout out/report; systemctl reboot; exec tail -f /dev/null; }
cat out/report 2>/dev/null

calls() { is "$(cat $SOMEBODY/nodeadm 2>/dev/null | wc -l)" "$1"; }
# Once or more: udev may report an interface when it comes, and again when systemd-udev-trigger requests all.
internal_calls() { is "$(sort -u $SOMEBODY/nodeadm-internal 2>/dev/null | sed 's/^nodeadm-internal //' | paste -sd,)" "$1"; }
ended_well() { is "$(property "$1" Result) $(property "$1" ConditionResult) $(property "$1" ExecMainStatus)" "success yes 0"; }
# systemd counts kubelet as started when its program begins (Type=simple), which may be before it has recorded anything.
kubelet_began() { timeout 120 tail -n +1 -F /run/recording-kubelet/starts 2>/dev/null | grep -qm1 start; }
kubelet_has() { kubelet_began; grep -zqxE -- "$1" /run/recording-kubelet/argv || { tr '\0' '\n' </run/recording-kubelet/argv; return 1; }; }
kubelet_planned() { active kubelet && nodestrap plan "$@" --credential-plugin aws --show-secrets --output json >plan.json && python3 compare.py kubelet plan.json /run/recording-kubelet/argv; }

# The directory has a file. systemd-tmpfiles makes the directory itself.
found_in() { [ -n "$(ls -A "$1" 2>/dev/null)" ]; }

# All that is true of that image with either program.
check_image() { # BOOT
        try "$1: containerd is active" active containerd
        try "$1: kubelet is active" active kubelet
        kubelet_began
        try "$1: kubelet was started once" starts 1
        try "$1: containerd and kubelet are in runtime.slice" is "$(property containerd Slice) $(property kubelet Slice)" "runtime.slice runtime.slice"
        try "$1: scripts of cloud-init find the files of the configuration phase" grep -q NODEADM_KUBELET_ARGS= /run/cloud-init/network
        try "$1: kubelet is inactive while scripts of cloud-init run" grep -qx 'kubelet is inactive' /run/cloud-init/final
        try "$1: /run/nodeadm/init exists, so later interfaces belong to the CNI" test -e /run/nodeadm/init
        try "$1: no ordering cycle was broken" no_cycle
        try "$1: no unit failed" is "$(systemctl list-units --failed --plain --no-legend | grep -E 'node|kubelet|containerd|cloud')" ''
}
# These check which program has set up the network.
check_network_theirs() {
        try "$1: the nodeadm-internal of the image ran boot-hook and added eth0" internal_calls 'boot-hook,udev-net-manager --action add --interface eth0'
        try "$1: the networkd settings of nodestrap are not there" no test -e /run/systemd/networkd.conf.d/80-nodestrap.conf
        try "$1: nodestrap has no .network file and no unit of an interface" is "$(find /run/systemd/network -name '70-eks*' 2>/dev/null) $(systemctl list-units --all --plain --no-legend 'nodestrap-udev-net-manager@*')" ' '
}
check_network_ours() {
        try "$1: the nodeadm-internal of the image was not called" internal_calls ''
        try "$1: eth0 is configured" is "$(setup_of eth0)" configured
        try "$1: the nodestrap unit of eth0 is active, and the one of the image is not" is "$(property nodestrap-udev-net-manager@eth0 ActiveState) $(property udev-net-manager@eth0 ActiveState)" "active inactive"
        try "$1: the hook of nodestrap ended before the first phase" before "$(property nodestrap-boot-hook ExecMainExitTimestampMonotonic)" "$(property nodestrap-config ExecMainStartTimestampMonotonic)"
        try "$1: the networkd settings of nodestrap are there" test -e /run/systemd/networkd.conf.d/80-nodestrap.conf
}
check_network_swapped() {
        try "$1: eth0 is configured" is "$(setup_of eth0)" configured
        try "$1: the unit of the image has added eth0" is "$(property nodestrap-udev-net-manager@eth0 ActiveState) $(property udev-net-manager@eth0 ActiveState)" "inactive active"
        try "$1: the hook of the image succeeded" ended_well nodeadm-boot-hook
        try "$1: the hook of the image ended before the first phase" before "$(property nodeadm-boot-hook ExecMainExitTimestampMonotonic)" "$(property nodeadm-config ExecMainStartTimestampMonotonic)"
        try "$1: the nodeadm-internal of the image was not called" internal_calls ''
}

check_theirs() { # BOOT : a nodeadm has started this node
        check_image "$1"
        check_network_theirs "$1"
        try "$1: the nodeadm of the image ran both phases" calls 2
        try "$1: kubelet has the arguments of nodeadm" kubelet_has --written-by=somebody
        try "$1: nodestrap wrote nothing below /run/nodestrap" no found_in /run/nodestrap
}
check_ours() { # BOOT : the nodestrap units have started this node
        check_image "$1"
        check_network_ours "$1"
        try "$1: the first phase succeeded" ended_well nodestrap-config
        try "$1: the second phase is active" active nodestrap-run
        try "$1: the nodeadm of the image did not run" calls 0
        try "$1: the second phase began after the end of cloud-init" before "$(property cloud-final ExecMainExitTimestampMonotonic)" "$(property nodestrap-run ExecMainStartTimestampMonotonic)"
        # shellcheck disable=SC2046 # words
        try "$1: kubelet got exactly the planned flags" kubelet_planned $(sources)
        try "$1: containerd dumps its configuration" sh -c "containerd config dump >dump.toml"
        try "$1: containerd has every planned setting" python3 compare.py containerd plan.json dump.toml
        try "$1: status.json has the verdict ok" grep -qE '"verdict": *"ok"' /run/nodestrap/status.json
}
check_swapped() { # BOOT : the nodeadm units have started this node, with our program under the name nodeadm
        check_image "$1"
        [ ! -e table ] || check_network_swapped "$1"
        try "$1: nodeadm-config ended well" ended_well nodeadm-config
        try "$1: nodeadm-run ended well" ended_well nodeadm-run
        try "$1: the nodestrap units are inactive" is "$(property nodestrap-config ActiveState) $(property nodestrap-run ActiveState)" "inactive inactive"
        try "$1: kubelet has the --config flag of nodestrap" kubelet_has --config=/etc/kubernetes/kubelet/config.json
        try "$1: the kubeconfig names the command aws, as the kubeconfig of nodeadm does" grep -q 'command: "\?aws' /var/lib/kubelet/kubeconfig
        try "$1: status.json has the verdict ok" grep -qE '"verdict": *"ok"' /run/nodestrap/status.json
}
# A second start of nodeadm-run starts nodeadm-config again, which has ended: nothing changes.
check_again() { # BOOT
        local pids; pids="$(property kubelet MainPID) $(property containerd MainPID)"
        try "$1: a second start succeeds" systemctl restart nodeadm-run
        try "$1: status.json says that the second start changed nothing" python3 compare.py unchanged /run/nodestrap/status.json
        try "$1: a second start restarts neither kubelet nor containerd" is "$(property kubelet MainPID) $(property containerd MainPID)" "$pids"
}

# ---- the ways of nodestrap-nodeadm(7) ----
# shellcheck disable=SC2086 # words
to_ours() { systemctl disable $THEIR_UNITS && systemctl enable $OUR_UNITS; }
# shellcheck disable=SC2086
back_from_ours() { systemctl disable $OUR_UNITS && systemctl enable $THEIR_UNITS; }
swap() { local n; for n in nodeadm nodeadm-internal; do mv /usr/bin/$n /usr/bin/$n.aws && update-alternatives --install /usr/bin/$n $n /usr/bin/$n.aws 10 || return; done; }
back_from_swap() { update-alternatives --set nodeadm /usr/bin/nodeadm.aws && update-alternatives --set nodeadm-internal /usr/bin/nodeadm-internal.aws; }
swap_again() { update-alternatives --auto nodeadm && update-alternatives --auto nodeadm-internal; }
both_are() { is "$(readlink -f /usr/bin/nodeadm /usr/bin/nodeadm-internal | xargs)" "$1"; }

# A call of nodestrap leaves its directory in /run, so that directory does not show which program has this boot.
called_by_hand() { nodestrap wait --timeout 1s; test -d /run/nodestrap; }
restarts_kubelet() { local before; before=$(property kubelet MainPID); systemctl restart kubelet && active kubelet && no is "$(property kubelet MainPID)" "$before"; }

waits_for_its_turn() { # : kubelet, where nodestrap has this boot
        mv /run/nodestrap/kubelet-may-start /run/its-turn && systemctl restart kubelet && is "$(property kubelet ActiveState)" inactive && mv /run/its-turn /run/nodestrap/kubelet-may-start && systemctl start kubelet
}

# Five boots: the image as it is, our units, the image again, our program under the nodeadm units, and without the package.
check_ways() {
        local step="boot $VMTEST_BOOT"
        case $VMTEST_BOOT in
        1)      check_theirs "$step, the image as it is"
                try "the package is installed" dpkg -i /vmtest/nodestrap.deb
                try "/usr/bin/nodeadm still belongs to the image" grep -q "Stands in for nodeadm" /usr/bin/nodeadm
                try "systemctl enables the nodestrap units instead of the nodeadm units" to_ours;;
        2)      check_ours "$step, our units"
                try "systemctl enables the nodeadm units instead of the nodestrap units" back_from_ours;;
        3)      check_theirs "$step, nodeadm again"
                try "a call of nodestrap by hand leaves /run/nodestrap" called_by_hand
                try "kubelet can restart after a call of nodestrap by hand" restarts_kubelet
                try "update-alternatives puts nodestrap in place of both nodeadm programs" swap
                try "both nodeadm programs are nodestrap" both_are "/usr/bin/nodestrap /usr/bin/nodestrap";;
        4)      check_swapped "$step, our program under the nodeadm units"
                try "kubelet waits for its turn under the nodeadm units" waits_for_its_turn
                try "nodestrap-event.path is active under the nodeadm units" active nodestrap-event.path
                check_again "$step"
                try "update-alternatives gives both programs back to the image" back_from_swap
                try "both programs belong to the image" both_are "/usr/bin/nodeadm.aws /usr/bin/nodeadm-internal.aws"
                try "update-alternatives selects nodestrap again" swap_again
                try "the package is removed" dpkg --purge nodestrap
                try "the removal gives both programs back to the image" both_are "/usr/bin/nodeadm.aws /usr/bin/nodeadm-internal.aws";;
        5)      check_theirs "$step, the package removed"
                finish;;
        esac
        next_boot
}

# The units of both are enabled, and nodestrap gets the boot. Then both start by hand; they do so again after a boot by nodeadm.
# systemd skips a unit because the other program has run (exec-condition), or because its units are enabled (a condition of the unit).
skipped() { is "$(property "$1" ActiveState) $(property "$1" ExecMainStartTimestampMonotonic)" "inactive 0" && { is "$(property "$1" Result)" exec-condition || is "$(property "$1" ConditionResult)" no; }; }
check_both() {
        case $VMTEST_BOOT in
        1)      check_ours "both enabled"
                # shellcheck disable=SC2086 # words
                for unit in $THEIR_UNITS udev-net-manager@eth0; do try "$unit was skipped" skipped $unit; done
                try "a warning in the journal names the enabled nodeadm units" in_journal 'two-bootstrappers: nodeadm-config.service and nodeadm-run.service are enabled'
                try "status names nodeadm-config.service" sh -c "nodestrap status --long | grep -F nodeadm-config.service"
                try "systemctl start of the nodeadm units by hand succeeds" systemctl start nodeadm-config nodeadm-run
                try "nodeadm started by hand did not run" calls 0
                try "the nodestrap units stay active" is "$(property nodestrap-config ActiveState) $(property nodestrap-run ActiveState)" "active active"
                try "the nodestrap units can start again" systemctl restart nodestrap-config nodestrap-run
                try "/run/eks-bootstrapper is the only link to a bootstrapper in /run" is "$(find /run -name nodestrap -o -name nodeadm -o -name eks-bootstrapper | sort | xargs ls -dF | tr '\n' ' ')" \
                        "/run/eks-bootstrapper@ /run/eks/nodeadm/ /run/nodeadm/ /run/nodestrap/ "
                # shellcheck disable=SC2086
                try "systemctl disables the nodestrap units" systemctl disable $OUR_UNITS
                next_boot;;
        2)      check_theirs "then nodeadm alone"
                try "nodestrap-config does not start by hand" no systemctl start nodestrap-config
                try "nodestrap-run does not start by hand" no systemctl start nodestrap-run
                try "neither nodestrap unit has run" is "$(property nodestrap-config ExecMainStartTimestampMonotonic) $(property nodestrap-run ActiveState)" "0 inactive"
                try "/run/nodestrap has only files of read-ahead" no sh -c "ls -A /run/nodestrap | grep -v read-ahead"
                try "systemctl status says that this boot belongs to nodeadm" sh -c "systemctl status nodestrap-config | grep -F \"nodeadm runs this boot\""
                try "nodeadm-run can start again" systemctl restart nodeadm-run
                try "nodeadm ran both phases again" calls 4
                # shellcheck disable=SC2086
                try "systemctl disables the nodeadm units" systemctl disable $THEIR_UNITS
                next_boot;;
        3)      try "kubelet is not started if all units are disabled" never_started
                try "exactly one bootstrapper runs if both start at once, nodeadm first" one_of nodeadm-run nodestrap-run
                # shellcheck disable=SC2086
                systemctl stop kubelet $OUR_UNITS; rm -r /run/eks-bootstrapper /run/recording-kubelet; rm -f $SOMEBODY/nodeadm
                try "exactly one bootstrapper runs if both start at once, nodestrap first" one_of nodestrap-run nodeadm-run;;
        esac
        finish
}
# Exactly one of both has run its phases, and the other one none.
one_of() {
        systemctl start "$@" 2>/dev/null
        kubelet_has '--.*' && starts 1 && is "$(wc -l 2>/dev/null <$SOMEBODY/nodeadm),$(property nodestrap-config ActiveState),$(property nodestrap-run ActiveState)" \
                "$(case $(readlink /run/eks-bootstrapper) in nodeadm) echo 2,failed,inactive;; nodestrap) echo ,active,active;; esac)"
}
# nodestrap, which has the boot, fails. nodeadm does not take the boot then.
check_both_ours_fails() {
        try "the first phase failed" failed nodestrap-config
        # shellcheck disable=SC2086
        for unit in $THEIR_UNITS udev-net-manager@eth0; do try "$unit was skipped" skipped $unit; done
        try "kubelet was not started" never_started
        try "no ordering cycle was broken" no_cycle
        finish
}

# A GPU node that the nodeadm units start with our program; the caller sources gpu.sh, too. EVENT…: its order.
check_swapped_gpu_node() {
        check_swapped "GPUs"
        try "the devices come up in the order that their class needs" in_order "$@"
        try "containerd starts before kubelet" in_order containerd kubelet
        try "kubelet was started once" once kubelet
        try "no unit failed" is "$(systemctl list-units --failed --plain --no-legend)" ''
        local before; before=$(pids)
        try "a second start of nodeadm-run succeeds" systemctl restart nodeadm-run
        try "a second start of nodeadm-run changes nothing" unchanged
        try "a second start of nodeadm-run restarts nothing" is "$(pids)" "$before"
}
