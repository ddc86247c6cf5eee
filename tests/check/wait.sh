#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `nodestrap wait` against an API server of our own. It gives answers that no real one gives: broken TLS, half an answer, other clocks. Also
# steps before a request (names, proxies, files), and the record. The waits that end with the deadline run in parallel.
# tests/cluster/wait.sh has a real one, and tests/unit/test-kube.c each sentence, on data.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") node=ip-10-0-0-10.us-west-2.compute.internal
pids=() secret=notavaluethatanybodymaysee
trap 'mock_stop; [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null; rm -r "$tmp"' EXIT
python3 "$here/kube.py" pki "$tmp/pki" || { echo "Bail out! no certificates"; exit 1; }
export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=$secret AWS_SESSION_TOKEN=session//$secret==

# kube OPTION...: an API server; afterwards $kube and perhaps $proxy (ADDRESS:PORT), its log is $d/log
kube() {
        # shellcheck disable=SC2086  # options are words
        exec 8< <(exec python3 "$here/kube.py" serve "$tmp/pki" --key "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY:$AWS_SESSION_TOKEN" --log "$d/log" "$@" 2>"$d/mock")
        pids+=($!)
        read -r _ kube <&8 || { echo "Bail out! the mock does not start"; exit 1; }
        case " $* " in *" --proxy "*) read -r _ proxy <&8;; esac
        exec 8<&-
}
# machine SERVER: what init leaves behind, in $d/root
machine() {
        local r=$d/root
        mkdir -p "$r"/{var/lib/kubelet,etc/kubernetes/pki,etc/eks/kubelet,proc/sys/kernel/random,run}
        cp /proc/sys/kernel/random/boot_id "$r/proc/sys/kernel/random/"; echo host.example >"$r/proc/sys/kernel/hostname"
        cp "$tmp/pki/ca.crt" "$r/etc/kubernetes/pki/"
        printf 'NODEADM_KUBELET_ARGS=--config=/etc/kubernetes/kubelet/config.json --hostname-override=%s --v=2\n' "$node" >"$r/etc/eks/kubelet/environment"
        cat >"$r/var/lib/kubelet/kubeconfig" <<-END
	apiVersion: v1
	kind: Config
	clusters:
	  - name: kubernetes
	    cluster:
	      server: "$1"
	      certificate-authority: /etc/kubernetes/pki/ca.crt
	users:
	  - name: kubelet
	    user:
	      exec:
	        apiVersion: client.authentication.k8s.io/v1beta1
	        command: aws
	        args: [eks, get-token, --cluster-name, training, --region, us-west-2]
	contexts:
	  - name: kubelet
	    context: {cluster: kubernetes, user: kubelet}
	current-context: kubelet
	END
}
# joins NAME: a machine whose Node is Ready; they share one server
joins() { fresh "$1"; [ -n "${ready-}" ] || { kube --play ready; ready=$kube; }; machine "https://$ready"; }
wait_for() { (exec "$nodestrap" wait --root "$d/root" "$@") >"$d/out" 2>"$d/err"; echo $? >"$d/rc"; }
fresh() { d=$tmp/$1; mkdir "$d"; }
# begin NAME "MOCK'S OPTIONS" [OPTION...]: starts both and goes on; $server takes the place of the mock's address
begin() {
        fresh "$1"
        # shellcheck disable=SC2086
        kube $2
        machine "${server:-https://$kube}"
        wait_for --timeout "${time:-$span}" "${@:3}" &
        waits+=($!)
}
# the results of one of them
of() { d=$tmp/$1; }
exits() { [ "$(cat "$d/rc")" = "$1" ] || { cat "$d/rc" "$d/err"; return 1; }; }
ends() { tail -1 "$d/err" | grep -F -- "$1" || { cat "$d/err"; return 1; }; }         # the last line says so
tells() { grep -qF -- "$1" "$d/err" || { cat "$d/err"; return 1; }; }
saw() { grep -qE -- "$1" "$d/log" || { cat "$d/log"; return 1; }; }
fails() { exits 60 && ends "nodestrap: failed (60 $1) at join: $2"; }
recorded() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); assert eval(sys.argv[2]), j' "$d/root/run/nodestrap/joined.json" "$1"; }
metric() { grep -qE "^nodestrap_$1" "$d/root/run/nodestrap/joined.prom" || { cat "$d/root/run/nodestrap/joined.prom"; return 1; }; }

# ---- times ----
fresh old; kube --play old; machine "https://$kube"; wait_for --timeout 60s
ok "the record of a Node that was Ready before the wait has the earlier time" recorded '40e6 < j["readyUsec"] - j["registeredUsec"] < 60e6 and j["endUsec"] - j["readyUsec"] > 40e6'
cp "$d/root/run/nodestrap/joined.json" "$d/first"
sed -i "s|server: .*|server: \"https://127.0.0.1:9\"|" "$d/root/var/lib/kubelet/kubeconfig"
cp -r "$d" "$tmp/rebooted"; echo other-boot >"$tmp/rebooted/root/proc/sys/kernel/random/boot_id"

# ---- these wait for their deadline, which is long enough to find the cause on a busy machine ----
waits=() span=15s
for d in "$tmp/old" "$tmp/rebooted"; do wait_for --timeout $span & waits+=($!); done
begin absent "--play ,"
time=1ms begin short "--play ready"
begin network "--play registered"
begin silent-kubelet "--play ready,unknown" --for ready
begin error-404 "--fault status=404"
begin hang "--fault hang"
begin reset "--fault reset"
begin closed "--play registered --fault close"
begin garbage "--fault garbage"
begin rubbish "--play rubbish"
begin expired "--tls expired"
begin skewed "--tls future --clock 1000000"
begin other-name "--tls other-name"
begin plain "--tls none"
begin no-handshake "--tls hang"
begin full "--tls full"
server=https://kube.invalid:6443 begin name ""
server=https://127.0.0.1:9 begin refused ""
https_proxy=http://127.0.0.1:9 server=https://kube.invalid begin proxy-refused ""
https_proxy=http://user:$secret@nowhere.invalid:3128 server=https://kube.invalid begin proxy-name ""
https_proxy=http://$secret@:x:y server=https://kube.invalid begin proxy-malformed ""
fresh proxy-forbids; kube --proxy 127.0.0.1:0 --proxy-status 407; machine https://kube.test:6443
HTTPS_PROXY=http://$proxy wait_for --timeout $span & waits+=($!)
fresh proxy-passed-by; kube --proxy 127.0.0.1:0; machine https://kube.invalid:6443
HTTPS_PROXY=http://$proxy NO_PROXY=.invalid wait_for --timeout $span & waits+=($!)
AWS_ACCESS_KEY_ID='' AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:9 begin no-credentials ""
fresh no-route; kube; machine https://192.0.2.1
if unshare -rn true 2>/dev/null; then nodestrap_here=$nodestrap; wait_there() { (exec unshare -rn "$nodestrap_here" wait --root "$d/root" --timeout $span) >"$d/out" 2>"$d/err"; echo $? >"$d/rc"; }; wait_there & waits+=($!); fi
joins ca-damaged; printf -- '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' >"$d/root/etc/kubernetes/pki/ca.crt"; wait_for --timeout $span & waits+=($!)
fresh system-ca
in_system() { unshare -rm sh -c 'mount --bind "$1" /etc/ssl/certs && shift && exec "$@"' sh "$tmp/system-ca/certs" "$@"; }
if unshare -rmn true 2>/dev/null && command -v curl >/dev/null; then
        mkdir "$d/certs"; cp "$tmp/pki/other.crt" "$d/certs/ca-certificates.crt"; cp "$tmp/pki/other.crt" "$d/certs/other.pem"; openssl rehash "$d/certs" 2>/dev/null
        kube --tls other-ca --play ready; machine "https://$kube"; system=$kube/version
        { in_system "$nodestrap" wait --root "$d/root" --timeout $span >"$d/out" 2>"$d/err"; echo $? >"$d/rc"; } & waits+=($!)
fi
wait "${waits[@]}"

of old
ok "a later wait that fails keeps the ready time of an earlier wait" eval 'exits 60 && python3 -c "import json, sys; a, b = (json.load(open(f)) for f in sys.argv[1:]); assert a[\"readyUsec\"] == b[\"readyUsec\"] and b[\"code\"] == \"EAPIROUTE\"" "$d/first" "$d/root/run/nodestrap/joined.json"'
of rebooted
ok "a reboot clears the ready time of an earlier wait" recorded 'j["readyUsec"] is None and j["bootId"] == "other-boot"'
of absent
ok "ENOTREGISTERED says that kubelet has not registered the Node" fails ENOTREGISTERED "cluster training has no Node $node: kubelet has not registered it"
ok "wait reports a missing Node before the deadline" tells "nodestrap: Not yet (ENOTREGISTERED): cluster training has no Node"
ok "wait needs one request for a missing Node" eval '[ "$(wc -l <"$d/log")" = 1 ]'
of short
ok "a wait with a deadline of 1 ms fails, although the Node is Ready" exits 60
of network
ok "ENOTREADY has the message of kubelet about the network" fails ENOTREADY "Node $node is registered with cluster training, but not Ready: KubeletNotReady: container runtime network not ready"
ok "ENOTREADY for the network names aws-node and a kubectl command" ends "which the pod aws-node installs, is not up: kubectl -n kube-system get pods -o wide --field-selector spec.nodeName=$node"
ok "the record of ENOTREADY has the time when the Node registered" recorded 'j["registeredUsec"] > 0 and j["readyUsec"] is None and j["code"] == "ENOTREADY" and j["exit"] == 60'
ok "the metrics of ENOTREADY have the time when the Node registered" eval 'metric "joined.verdict=\"failed\",code=\"ENOTREADY\". 0$" && metric "registered_seconds [0-9.]+$" && ! metric ready_seconds'
of error-404
ok "the error for HTTP 404 says that the server is unlike an API server" ends "answers HTTP 404 (the mock says no), unlike an API server: is spec.cluster.apiServerEndpoint right?"
of hang
ok "an API server that does not answer is EAPISILENT" eval 'fails EAPISILENT https:// && ends "accepts a connection but does not answer within "'
of no-handshake
ok "a server that does not finish the TLS handshake is EAPISILENT" fails EAPISILENT https://
of reset
ok "a connection that is reset is EAPIERROR" eval 'fails EAPIERROR "the connection to https://" && ends "Connection reset by peer"'
of closed
ok "an answer that breaks off is EAPIERROR" fails EAPIERROR "the connection to https://"
of garbage
ok "an answer that is not HTTP is EAPIERROR" eval 'fails EAPIERROR "the connection to https://" && ends "the server there is not an API server"'
of rubbish
ok "a watch that sends no events is EAPIERROR" eval 'fails EAPIERROR https:// && ends ": it sent a line that is not an event"'
of expired
ok "an expired certificate is EAPICERT if the clocks agree" fails EAPICERT "the certificate of 127.0.0.1 has expired, and the clocks agree"
of skewed
ok "a certificate that is not valid yet is ECLOCK if the clock is wrong" fails ECLOCK "the certificate of 127.0.0.1 is not valid yet by the clock of this machine: the clock of this machine says 20"
ok "ECLOCK says how much the clock is behind" ends "ours is 11 days behind; check chronyc tracking"
ok "wait sends no secret to a server whose certificate it cannot verify" eval 'saw " HEAD / 401 none$" && ! saw " GET "'
of other-name
ok "a certificate for other names is EAPICERT" fails EAPICERT "127.0.0.1 presents a certificate for other names ("
of plain
ok "a server without TLS is EAPICERT" fails EAPICERT "no TLS 1.2 or later with https://"
of full
ok "EAPIROUTE for a server that accepts no connection names the security group" eval 'fails EAPIROUTE https:// && ends "did not accept a connection within " && ends "security group"'
of name
ok "a name that does not resolve is EAPINAME" fails EAPINAME "the name of the API server, kube.invalid, does not resolve (Could not resolve host: kube.invalid)"
of refused
ok "a port where nothing listens is EAPIROUTE" fails EAPIROUTE "https://127.0.0.1:9 refuses the connection: nothing listens there; is "
of no-route
if [ -e "$d/rc" ]; then ok "an address without a route is EAPIROUTE" eval 'fails EAPIROUTE "no route to https://192.0.2.1 (Network is unreachable)"'
else count=$((count + 1)); echo "ok $count - an address without a route is EAPIROUTE # SKIP no network namespaces here"; fi
of proxy-refused
ok "a missing proxy is EAPIPROXY" fails EAPIPROXY "the proxy in HTTPS_PROXY cannot reach kube.invalid: Failed to connect to 127.0.0.1"
of proxy-name
ok "a proxy whose name does not resolve is EAPIPROXY" fails EAPIPROXY "the proxy in HTTPS_PROXY cannot reach kube.invalid: "
of proxy-malformed
ok "an invalid proxy URL is EAPIPROXY" fails EAPIPROXY "the proxy in HTTPS_PROXY cannot reach kube.invalid: "
of proxy-forbids
ok "a proxy that answers HTTP 407 is EAPIPROXY" fails EAPIPROXY "the proxy in HTTPS_PROXY cannot reach kube.test: it answers HTTP 407; allow that host there, or add kube.test to NO_PROXY"
of proxy-passed-by
ok "NO_PROXY bypasses the proxy" eval 'fails EAPINAME "the name of the API server, kube.invalid" && [ ! -e "$d/log" ]'
of no-credentials
ok "missing credentials are EIMDS" eval 'exits 12 && ends "failed (12 EIMDS) at join: no usable answer from the instance metadata service"'
of silent-kubelet
ok "wait for ready succeeds if the Node was Ready once" exits 0
ok "the record has a Node that was Ready once as ok" recorded 'j["readyUsec"] >= j["registeredUsec"] > 0 and j["verdict"] == "ok" and j["code"] == "OK" and j["text"] is None'

# ---- all that ends well ----
waits=(); time=60s
begin joins "--play registered,ready" --for ready
begin registers "--play registered" --for registered
begin later "--play end,x --play gone --play deleted,end --play stale,registered,ready --fault retry-after=1*1"
begin kept "--play end --play end --play end --play ready"
begin renewed "--fault status=401*1 --play ready"
begin slow "--fault slow --play ready"
fresh through-proxy; kube --proxy 127.0.0.1:0 --play ready; machine https://kube.test:6443
HTTPS_PROXY=http://$proxy wait_for --timeout 60s & waits+=($!)
joins own-address; HTTPS_PROXY=http://127.0.0.1:9 wait_for --timeout 60s & waits+=($!)
wait "${waits[@]}"
of joins
ok "wait succeeds if the Node appears and turns Ready" eval 'exits 0 && ends "nodestrap: ok: Node $node of cluster training is ready: registered "'
ok "wait reports each step until the Node is Ready" eval 'tells "Node $node is registered, " && tells "Node $node is Ready, " && tells "Not yet (ENOTREADY)"'
ok "wait sends one request, with a valid token" eval '[ "$(wc -l <"$d/log")" = 1 ] && saw " 200 ok$"'
ok "the metrics have the verdict ok, the ready time and the number of requests" eval 'metric "joined.verdict=\"ok\",code=\"OK\". 1$" && metric "ready_seconds [0-9.]+$" && metric "join_requests 1$"'
of registers
ok "--for registered does not wait for Ready" eval 'exits 0 && recorded "j[\"for\"] == \"registered\" and j[\"readyUsec\"] is None"'
of later
ok "wait retries after temporary errors" exits 0
of kept
ok "wait sends the next watches on one connection" eval 'exits 0 && [ "$(cut -d" " -f2 "$d/log" | sort -u)" = 1 ]'
ok "wait sends four requests if the server ends three watches" eval '[ "$(wc -l <"$d/log")" = 4 ]'
of renewed
ok "wait retries after a temporary HTTP 401" exits 0
of slow
ok "wait reads an answer that comes byte by byte" exits 0
of through-proxy
ok "wait uses a proxy for a name that only the proxy knows" eval 'exits 0 && saw " CONNECT kube.test:6443 200 proxy$"'
of own-address
ok "wait uses no proxy for this machine" exits 0

# ---- status ----
of joins
printf '{"version": "1", "bootId": "%s", "verdict": "ok", "code": "OK", "exit": 0, "step": null, "text": null, "planId": "sha256:77", "runs": {}}' "$(cat "$d/root/proc/sys/kernel/random/boot_id")" >"$d/root/run/nodestrap/status.json"
ok "status says when the node joined" eval '"$nodestrap" status --root "$d/root" | grep -E "^joined: registered [0-9.]+ s, ready [0-9.]+ s after the kernel started \(node $node of cluster training\)$"'
ok "the SVG of status has the join phase with its waits" eval '"$nodestrap" status --root "$d/root" --output svg >"$tmp/svg" && python3 -c "import sys, xml.etree.ElementTree as t; assert [g.get(\"class\") for g in t.parse(sys.argv[1]).iter(\"{http://www.w3.org/2000/svg}g\")] == [\"phase\", \"done wait\", \"done wait\"]" "$tmp/svg"'
ok "plan refuses --output svg" eval '! "$nodestrap" plan --output svg 2>"$tmp/err" && grep -q "(2 EUSAGE).*plan --output prints text (default), json or markdown, not \"svg\"" "$tmp/err"'
ok "status --output json has the ready time" eval '"$nodestrap" status --root "$d/root" --output json | python3 -c "import json, sys; assert json.load(sys.stdin)[\"joined\"][\"readyUsec\"] > 0"'
wait_for --timeout 60s
ok "the record has the ID of the plan that this boot applied" recorded 'j["planId"] == "sha256:77"'
cp "$d/root/run/nodestrap/status.json" "$tmp/network/root/run/nodestrap/"
of network
ok "status says why the node has not joined" eval '"$nodestrap" status --root "$d/root" | grep -F "not joined (60 ENOTREADY): Node $node is registered"'
echo another >"$d/root/proc/sys/kernel/random/boot_id"
ok "status ignores a record of another boot" eval '! "$nodestrap" status --root "$d/root" | grep joined'

# ---- the arguments of kubelet ----
variant() { # NAME SED-SCRIPT: a machine whose kubeconfig is edited
        joins "$1"; sed -i "$2" "$d/root/var/lib/kubelet/kubeconfig"; wait_for --timeout 60s
}
variant id 's/get-token, --cluster-name, training/get-token, "--cluster-id=training"/'
ok "wait accepts --cluster-id of a local cluster in the kubeconfig" exits 0
variant ours 's/\[eks, get-token/[token/; s|command: aws|command: /usr/bin/nodestrap|'
ok "wait accepts the nodestrap plugin in the kubeconfig" exits 0
variant data "s|certificate-authority: .*|certificate-authority-data: $(base64 -w0 "$tmp/pki/ca.crt")|"
ok "wait accepts a CA inside the kubeconfig" exits 0
variant yaml 's/^users:/users: [/'
ok "a kubeconfig that is not YAML is ENOKUBECONFIG" fails ENOKUBECONFIG "/var/lib/kubelet/kubeconfig cannot be read: not YAML"
variant plugin '/exec:/,/args:/d'
ok "a kubeconfig without a plugin is ENOKUBECONFIG" fails ENOKUBECONFIG "/var/lib/kubelet/kubeconfig is missing, or does not say how to get a token for the cluster"
joins outpost; mv "$d/root/var/lib/kubelet/kubeconfig" "$d/root/var/lib/kubelet/bootstrap-kubeconfig"; wait_for --timeout 60s
ok "on an Outpost, wait reads bootstrap-kubeconfig" exits 0
fresh nothing; mkdir "$d/root"; wait_for
ok "a missing kubeconfig is ENOKUBECONFIG, and the error mentions nodestrap init" fails ENOKUBECONFIG "/var/lib/kubelet/kubeconfig is missing, or does not say how to get a token for the cluster: perhaps nodestrap init has not run here; see nodestrap status"
for broken in missing garbage; do
        joins "ca-$broken"; rm "$d/root/etc/kubernetes/pki/ca.crt"
        [ $broken = missing ] || echo no certificate >"$d/root/etc/kubernetes/pki/ca.crt"
        wait_for
        ok "a CA file that is $broken is EAPICERT" fails EAPICERT "the CA of the API server in /etc/kubernetes/pki/ca.crt: "
done
of ca-damaged
ok "a damaged CA file is EAPICERT" fails EAPICERT "/etc/kubernetes/pki/ca.crt has no readable certificate"

# ---- an init that failed ----
# status VERDICT [BOOT]: what an init of this boot left
status() {
        mkdir -p "$d/root/run/nodestrap"
        printf '{"version": "1", "bootId": "%s", "verdict": "%s", "code": "EFABRIC", "exit": 33, "step": "wait-fabric:gpus", "text": "2 of 8 GPUs\\nlast word", "runs": {}}' \
                "${2-$(cat "$d/root/proc/sys/kernel/random/boot_id")}" "$1" >"$d/root/run/nodestrap/status.json"
}
held() { fails EINIT "kubelet was not started, because nodestrap init failed (33 EFABRIC at wait-fabric:gpus): 2 of 8 GPUs; correct that, then run nodestrap init"; }
joins held; status failed; wait_for --timeout 60s
ok "EINIT has the sentence of the failed init" held
ok "EINIT causes no request" eval 'recorded "j[\"requests\"] == 0 and j[\"code\"] == \"EINIT\""'
ok "EINIT does not have the last output of the failed step" eval '! tells "last word" && recorded "\"last word\" not in str(j)"'
joins held-early; status failed; rm "$d/root/var/lib/kubelet/kubeconfig"; wait_for --timeout 60s
ok "a failed init that wrote no kubeconfig is EINIT" held
joins gate; status failed; touch "$d/root/run/nodestrap/kubelet-may-start"; wait_for --timeout 60s
ok "wait ignores a failed init if kubelet was started" exits 0
joins before; status failed another-boot; wait_for --timeout 60s
ok "wait ignores a failed init of an earlier boot" exits 0
joins well; status ok; wait_for --timeout 60s
ok "wait succeeds after an init that succeeded" exits 0
# wait continues while another process is init, which holds the lock until the test ends it
for lock in lock devices.lock; do
        fresh "beside-$lock"; kube --play ,; machine "https://$kube"; status failed; mkfifo "$d/held" "$d/told" "$d/end"
        flock "$d/root/run/nodestrap/$lock" sh -c 'echo >"$1"; read -r _ <"$2"' sh "$d/held" "$d/end" & read -r _ <"$d/held"
        (exec "$nodestrap" wait --root "$d/root" --timeout 60s) 2>"$d/told" >"$d/out" & pid=$!
        while read -r line; do echo "$line" >>"$d/err"; case $line in *ENOTREGISTERED*) echo >"$d/end";; esac; done <"$d/told"
        wait $pid; echo $? >"$d/rc"
        ok "wait waits for a running init ($lock), and fails when that init has failed" eval 'tells "Not yet (ENOTREGISTERED)" && held && saw " GET "'
done
fresh beside; kube --play ready; machine "https://$kube"; mkdir "$d/root/run/nodestrap"; mv "$d/root/var/lib/kubelet/kubeconfig" "$d"; mkfifo "$d/held" "$d/told" "$d/end"
flock "$d/root/run/nodestrap/lock" sh -c 'echo >"$1"; read -r _ <"$2"' sh "$d/held" "$d/end" & read -r _ <"$d/held"
(exec "$nodestrap" wait --root "$d/root" --timeout 60s) 2>"$d/told" >"$d/out" & pid=$!
while read -r line; do echo "$line" >>"$d/err"; case $line in *"No kubeconfig yet"*) mv "$d/kubeconfig" "$d/root/var/lib/kubelet/"; echo >"$d/end";; esac; done <"$d/told"
wait $pid; echo $? >"$d/rc"
ok "wait waits for the kubeconfig of a running init" exits 0
fresh unwritten; mkdir -p "$d/root/run/nodestrap"; mkfifo "$d/held" "$d/told" "$d/end"
flock "$d/root/run/nodestrap/lock" sh -c 'echo >"$1"; read -r _ <"$2"' sh "$d/held" "$d/end" & read -r _ <"$d/held"
wait_for --timeout 300ms; echo >"$d/end"
ok "the error at the deadline says that an init is still running" eval 'fails ENOKUBECONFIG "/var/lib/kubelet/kubeconfig is missing" && ends "; an init is still running"'

of system-ca
if [ -e "$d/rc" ]; then
        ok "control: curl trusts the CA of the system" in_system curl -sS -o /dev/null "https://$system"
        ok "wait trusts only the CA of the cluster" fails EAPICERT "127.0.0.1 presents a certificate that the cluster CA"
else count=$((count + 1)); echo "ok $count - wait trusts only the CA of the cluster # SKIP no mount namespaces or curl here"; fi

# ---- the rest ----
fresh stopped; kube --play registered; machine "https://$kube"
mkfifo "$d/told"; "$nodestrap" wait --root "$d/root" 2>"$d/told" >"$d/out" & pid=$!
while read -r line; do echo "$line" >>"$d/err"; case $line in *ENOTREADY*) kill -TERM $pid;; esac; done <"$d/told"
wait $pid; echo $? >"$d/rc"
ok "SIGTERM ends wait with a report" eval 'exits 1 && ends "nodestrap: failed (1 EINTERRUPTED) at join: Node $node is registered" && ends "SIGTERM ended the wait"'
ok "the record says that a signal ended the wait" recorded 'j["code"] == "EINTERRUPTED" and j["registeredUsec"] > 0'
joins read-only; mkdir "$d/root/run/nodestrap"; mkdir "$d/root/run/nodestrap/joined.json"; wait_for --timeout 60s
ok "wait succeeds if it cannot write its record" eval 'exits 0 && tells "/run/nodestrap/joined.json"'
fresh debug; kube --play ready; machine "https://$kube"; wait_for --timeout 60s --development
ok "output, messages and records have no secret" eval '! grep -rlE "$secret|k8s-aws-v1" "$tmp"/*/err "$tmp"/*/out "$tmp"/*/root/run'
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$nodestrap"; then
        joins nobody; chmod a+rx "$tmp"
        setpriv --reuid=65534 --regid=65534 --clear-groups "$nodestrap" wait --root "$d/root" --timeout 60s >"$d/out" 2>"$d/err"; echo $? >"$d/rc"
        ok "wait needs no root" exits 0
        ok "without root, wait does not mention the record that it cannot write" eval '! grep -F joined.json "$d/err"'
else count=$((count + 1)); echo "ok $count - wait needs no root # SKIP not root, or a program that others may not run"; fi
usage() { "$nodestrap" wait "$@" >"$tmp/out" 2>"$tmp/err"; [ $? = 2 ]; }
ok "--for with an unknown word is an error that lists the valid words" eval 'usage --for joined && says "--for takes registered, ready or devices, not \"joined\""'
ok "--timeout without a time is an error" eval 'usage --timeout soon && says "--timeout takes a time like 90s, 5m or 1h30m"'
ok "--timeout 0 is an error" usage --timeout 0
done_testing
