# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # NODE is for those who source it
# Sourced by a script of tests/cluster inside its guest, which has /vmtest/guest.sh, and:
#   host COMMAND…         a command on the machine where the cluster is, with the functions of control-plane.sh: its output and its status.
#                         host kubectl get nodes; host api_stop; host eval 'kubectl get events | wc -l'
#   node_ready            waits until the Node is there and Ready
. /vmtest/guest.sh

NODE=ip-10-0-2-15.us-west-2.compute.internal
host() {
        local said
        exec 5<>/dev/tcp/10.0.2.102/7 || return 255
        printf '%s\n' "${*@Q}" >&5; said=$(cat <&5); exec 5>&-
        [[ ${said##*$'\n'} =~ ^status\ ([0-9]+)$ ]] || { printf '%s\nno status from the host\n' "$said"; return 255; }
        said=${said%status *}; printf '%s' "$said"
        return "${BASH_REMATCH[1]}"
}
node_ready() { host kubectl wait --for=create --timeout=180s "node/$NODE" && host kubectl wait --for=condition=Ready --timeout=180s "node/$NODE"; }
