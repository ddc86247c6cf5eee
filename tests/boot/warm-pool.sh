#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run: nsboot.sh -S trixie -d 0
# imds: imds-m5
# metadata: autoscaling/target-lifecycle-state Warmed:Stopped
# spec: {failurePolicy: join-tainted}
# tree: enabled joined_enabled kubelet_enabled api
# console: NODESTRAP verdict=ok code=OK step=check-pool:warm-pool
# console: NODESTRAP verdict=ok code=OK step=- .*phases=devices,run
# A warm pool prepares the instance. The first boot does all but start kubelet, though the image enables it, and ends well. The second one
# is in service, and joins.
[ -d /vmtest ] || exec "$(dirname "$0")/../run/boot.sh" "$0"
. /vmtest/guest.sh

STATE=/vmtest/imds/latest/meta-data/autoscaling/target-lifecycle-state SAYS='prepared for the warm pool (Warmed:Stopped); the node joins at its next start'
status() { python3 -c 'import json, sys; print(*(json.load(open("/run/nodestrap/status.json"))[k] for k in sys.argv[1:]))' "$@"; }
# shellcheck disable=SC2046 # sources are words
again() { nodestrap init --skip config $(sources) 2>out/again; }
asked() { ! grep -E '/api/v1/(nodes|namespaces)' out/kube.log; }
spec() { printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {instance: {sysctl: {%s: "1"}}}\n' "$1" >/etc/eks/nodeadm.d/51-spec.yaml; }
ended() { is "$(property nodestrap-joined ActiveState) $(property nodestrap-joined Result)" "inactive success"; }
waits() { nodestrap wait --timeout 5m 2>out/wait && tail -1 out/wait | grep -F "nodestrap: ok: $SAYS"; }
in_the_pool() {
        try "nodestrap-run.service is active" active nodestrap-run
        try "no unit failed" is "$(systemctl list-units --failed --plain --no-legend)" ''
        try "systemd says that the boot is over" is "$(cat out/state)" running
        try "containerd runs" active containerd
        try "kubelet was never started" never_started
        try "the verdict is ok, with the step of the warm pool" is "$(status verdict code exit step)" "ok OK 0 check-pool:warm-pool"
        try "status says that the node joins at its next start" is "$(nodestrap status | head -1)" "ok: $SAYS"
        try "the unit that waits for the node succeeds" eventually ended
        try "nodestrap wait succeeds at once" waits
        try "nodestrap asks the cluster for nothing" asked
        try "nodestrap has no event to send" no test -e /run/nodestrap/events
        systemctl start kubelet
        try "a start of kubelet by hand does nothing in the pool" never_started
        spec net.ipv4.no_such_setting
        try "init fails in the pool if a device fails" no again
        try "the verdict in the pool has the code of the failure" is "$(status verdict code)" "failed ESYSCTL"
        try "kubelet is not started with a taint in the pool" never_started
        try "nodestrap records no taint in the pool" no test -e /var/lib/nodestrap/tainted
        spec net.ipv4.ip_forward
        try "init succeeds in the pool after the repair" again
        try "the instance is prepared after the repair" is "$(status verdict step)" "ok check-pool:warm-pool"
}
if [ "$VMTEST_BOOT" = 1 ]; then
        in_the_pool >out/first
        printf InService >$STATE
        systemctl reboot
        exit
fi
cat out/first
try "in service: nodestrap-run.service is active" active nodestrap-run
try "in service: the verdict is ok" is "$(status verdict code exit step)" "ok OK 0 None"
try "in service: kubelet is active" active kubelet
try "in service: kubelet was started once" starts 1
try "in service: kubelet has no taint" no grep -q unhealthy /run/recording-kubelet/argv
try "in service: the unit that waits for the node is active" active nodestrap-joined
try "in service: status does not mention the warm pool" sh -c "! nodestrap status | grep 'warm pool'"
printf Warmed:Stopped >$STATE
kubelet=$(property kubelet MainPID)
try "init succeeds after a scale-in puts the instance back into the pool" again
try "init does not restart kubelet after a scale-in" is "$(property kubelet MainPID)" "$kubelet"
finish
