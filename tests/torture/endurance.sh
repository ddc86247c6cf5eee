#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Endurance: a thousand inits that leave nothing behind, ten thousand retries in one process, services that flap for minutes, clocks that jump.
# Before them come two guests: a container with its own systemd (endurance/container.sh), and a machine with its own kernel
# that boots a dozen times (endurance/machine.sh).
# INITS, RETRIES and FLAPPING (seconds) make it shorter; ENDURANCE="retries clocks" runs those parts alone.
# All but the guests runs in its own network namespace: nothing here may ever ask a real metadata service.
export ENDURANCE=${ENDURANCE:-container machine inits retries flapping clocks}
if [ -z "${OWN_NETWORK-}" ]; then
        unshare -n true 2>/dev/null || { echo '1..0 # SKIP no network namespaces here'; exit 0; }
        GUESTS=$(mktemp -d) || exit 1; export GUESTS OWN_NETWORK=1; trap 'rm -rf "$GUESTS"' EXIT; trap 'exit 130' INT TERM
        for guest in container machine; do
                [[ " $ENDURANCE " != *" $guest "* ]] || KEEP=$GUESTS/$guest "$(dirname "$0")/endurance/$guest.sh" >"$GUESTS/$guest.tap" 2>&1
        done
        unshare -n sh -c 'ip link set lo up && exec "$0" "$@"' "$0" "$@"
        exit
fi
# shellcheck source=tests/mock/bad.sh
. "$(dirname "$0")/../mock/bad.sh"
# shellcheck disable=SC2154  # here is lib.sh's
lib=$(realpath "$here/../torture/endurance") FIGURES=${FIGURES:-/dev/null} INITS=${INITS:-1000} RETRIES=${RETRIES:-10000} FLAPPING=${FLAPPING:-600}
nodestrap=$(realpath "$nodestrap")
"${CC:-cc}" -shared -fPIC -O1 -o "$tmp/preload.so" "$lib/preload.c" || { echo "Bail out! no compiler"; exit 1; }
export ENDURANCE_OF=nodestrap
figure() { echo "$*" >>"$FIGURES"; }
with() { env LD_PRELOAD="$tmp/preload.so" "$@"; }               # with NAME=VALUE… PROGRAM ARGUMENT…
of_process() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status" 2>/dev/null; }
fds() { for _ in {1..20}; do find "/proc/$1/fd" -mindepth 1 2>/dev/null | wc -l; done | sort -n | head -n 1; }      # the least: a connection comes with some
at_most() { [ "$1" -le "$2" ] || { echo "$1 is more than $2"; false; }; }

# ---- the report of a guest becomes part of this one ----
told() { # GUEST
        local line planned=''
        while IFS= read -r line; do
                case $line in
                'ok '*|'not ok '*) count=$((count + 1)); echo "${line%%ok *}ok $count - ${line#* - }";;
                1..0*) count=$((count + 1)); echo "ok $count - $1 # SKIP ${line#*SKIP }"; planned=1;;
                1..*) planned=1;;
                *) echo "# ${line#\# }";;
                esac
        done <"$GUESTS/$1.tap"
        ok "the report of the $1 is complete" same_word "$planned" 1
        find "$GUESTS/$1" -name figures -exec cat {} + >>"$FIGURES" 2>/dev/null
}
part_container() { told container; }
part_machine() { told machine; }

# ---- a thousand inits, with memory peaks and open files ----
# The configuration changes after every ten inits. In every fiftieth it is one that nodestrap refuses.
part_inits() {
        local n begin files bytes early late
        good >"$tmp/user-data"; { good; echo '  kubelet: {flags: [--v=5]}'; } >"$tmp/changed"; { good; echo '  kubelet: 1'; } >"$tmp/refused"
        mock --imds "$fixtures/imds-m5"
        machine; mkdir -p "$tmp/temporary"
        for n in user-data changed refused; do cp "$tmp/$n" "$root/$n.yaml"; done
        export ENDURANCE_ACCOUNT=$tmp/account TMPDIR=$tmp/temporary; : >"$tmp/account"; begin=0
        for ((n = 1; n <= INITS; n++)); do
                local file=user-data want=0; [ $((n / 10 % 2)) = 0 ] || file=changed; [ $((n % 50)) != 7 ] || file=refused want=1
                with "$nodestrap" init --root "$root" -c "file:///$file.yaml" >/dev/null 2>"$tmp/err"
                [ $(($? > 0)) = $want ] || { begin=$((begin + 1)); sed 's/^/# /' "$tmp/err"; }
                rm -f "$root/run/nodestrap/facts.json"
                case $n in 60|"$INITS") files=$(cd "$root" && find . | sort) bytes=$(du -sb --exclude=progress "$root" | cut -f1); [ $n != 60 ] || { early=$files; late=$bytes; };; esac
        done
        unset ENDURANCE_ACCOUNT TMPDIR
        ok "$INITS inits end with the expected exit status" same_word $begin 0
        ok "each init adds a line to the account" same_word "$(wc -l <"$tmp/account")" "$INITS"
        ok "no init has an open descriptor at its end" same_word "$(awk 'NF > 2' "$tmp/account" | sort | uniq -c | head -3)" ''
        # the first fifty have each configuration
        ok "the memory peak after the tenth init is at most 1 MiB over that of the first fifty" at_most "$(awk 'NR > 10 { print $1 }' "$tmp/account" | sort -n | tail -1)" $(($(awk 'NR <= 50 { print $1 }' "$tmp/account" | sort -n | tail -1) + 1024))
        ok "no init uses more than two seconds of CPU time" same_word "$(awk '$2 > 2000' "$tmp/account")" ''
        ok "the last init leaves the same files as the sixtieth" same_word "$(diff <(echo "$early") <(echo "$files"))" ''
        ok "files grow by at most 4 KiB after the sixtieth init" at_most "$bytes" $((late + 4096))
        ok "the progress file holds the last inits only, at most 80 KiB" at_most "$(stat -c %s "$root/run/nodestrap/progress")" $((80 << 10))
        ok "no init leaves a temporary file" same_word "$(find "$tmp/temporary" -mindepth 1; find "$root" -name '.*.tmp')" ''
        figure "$INITS inits under account"
}

# ---- ten thousand retries in one process ----
# Without the pauses between them (preload.c). refusing.py counts what comes to $port.
sampled() { # PID COUNT-COMMAND…: memory and descriptors when a tenth is done, and at the end
        local pid=$1 n; shift
        rss1='' rss2='' fd1='' fd2='' done_=0
        while kill -0 "$pid" 2>/dev/null; do
                n=$("$@"); [ "$n" -gt "$done_" ] || { sleep 0.05; continue; }
                done_=$n
                if [ "$n" -ge $((RETRIES / 10)) ] && [ -z "$rss1" ]; then rss1=$(of_process "$pid" RssAnon) fd1=$(fds "$pid"); fi
                [ "$n" -lt "$RETRIES" ] || { rss2=$(of_process "$pid" RssAnon) fd2=$(fds "$pid"); kill "$pid"; break; }
        done
        wait "$pid"; code=$?
}
# what init leaves behind, in $d
joins() { # DIRECTORY SERVER
        local d=$1 node=ip-10-0-0-10.us-west-2.compute.internal
        [ -d "$tmp/pki" ] || python3 "$here/kube.py" pki "$tmp/pki" || { echo "Bail out! no certificates"; exit 1; }
        mkdir -p "$d"/{var/lib/kubelet,etc/kubernetes/pki,etc/eks/kubelet,proc/sys/kernel/random,run}
        cp /proc/sys/kernel/random/boot_id "$d/proc/sys/kernel/random/"; echo host.example >"$d/proc/sys/kernel/hostname"; cp "$tmp/pki/ca.crt" "$d/etc/kubernetes/pki/"
        printf 'NODEADM_KUBELET_ARGS=--config=/etc/kubernetes/kubelet/config.json --hostname-override=%s --v=2\n' "$node" >"$d/etc/eks/kubelet/environment"
        printf 'apiVersion: v1\nkind: Config\nclusters:\n  - name: kubernetes\n    cluster:\n      server: "https://%s"\n      certificate-authority: /etc/kubernetes/pki/ca.crt\nusers:\n  - name: kubelet\n    user:\n      exec:\n        apiVersion: client.authentication.k8s.io/v1beta1\n        command: aws\n        args: [eks, get-token, --cluster-name, training, --region, us-west-2]\ncontexts:\n  - name: kubelet\n    context: {cluster: kubernetes, user: kubelet}\ncurrent-context: kubelet\n' "$2" >"$d/var/lib/kubelet/kubeconfig"
}
part_retries() {
        local d=$tmp/wait pid
        exec 8< <(exec python3 "$lib/refusing.py" "$tmp/count"); local refusing=$!; read -r port <&8
        joins "$d" "127.0.0.1:$port"
        export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=notavaluethatanybodymaysee
        env LD_PRELOAD="$tmp/preload.so" ENDURANCE_SPEED=5000 "$nodestrap" wait --root "$d" --timeout 24h >"$tmp/out" 2>"$tmp/err" & pid=$!
        sampled "$pid" count_of
        ok "wait retries $RETRIES times in one process" at_least_is "$done_" "$RETRIES"
        ok "wait has at most 256 KiB more memory at the end than after a tenth of the retries" at_most "${rss2:-0}" $((${rss1:-0} + 256))
        ok "wait has at most two descriptors more at the end than after a tenth of the retries" at_most "${fd2:-99}" $((${fd1:-0} + 2))
        ok "SIGTERM ends wait with exit status 1 and a report" same_word "$code $(grep -c 'failed (1 EINTERRUPTED) at join: ' "$tmp/err")" "1 1"
        figure "$done_ retries of wait in one process"
        # an event of a failure, for a cluster that never answers
        mkdir -p "$d/run/nodestrap/events"; rm -f "$tmp/count"     # the name has its begin time; with a later one the event never ends
        printf '{"reason": "NodestrapFailed", "time": "2026-01-02T03:04:05Z", "warning": true, "message": "m", "key": "k", "environment": {}}' >"$d/run/nodestrap/events/09999999999999999999.1"
        env LD_PRELOAD="$tmp/preload.so" ENDURANCE_SPEED=5000 "$nodestrap" send-events --root "$d" >"$tmp/out" 2>"$tmp/err" & pid=$!
        sampled "$pid" count_of
        ok "send-events retries $RETRIES times in one process" at_least_is "$done_" "$RETRIES"
        ok "send-events has at most 256 KiB more memory at the end than after a tenth of the retries" at_most "${rss2:-0}" $((${rss1:-0} + 256))
        ok "send-events has at most two descriptors more at the end than after a tenth of the retries" at_most "${fd2:-99}" $((${fd1:-0} + 2))
        ok "SIGTERM ends send-events with exit status 0, and the event stays" same_word "$code $(ls "$d/run/nodestrap/events")" "0 09999999999999999999.1"
        figure "$done_ retries of send-events in one process"
        kill $refusing; unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
}
count_of() { stat -c %s "$tmp/count" 2>/dev/null || echo 0; }
at_least_is() { [ "$1" -ge "$2" ] || { echo "$1 is less than $2"; tail -3 "$tmp/err"; false; }; }

# ---- services that flap ----
part_flapping() {
        local end=$((SECONDS + FLAPPING)) ill runs=0 wrong=0 well=0 busy=0 long=0 real_ec2 flap pids=() w
        good | sed '/InstanceIdNodeName/d' >"$tmp/by-name"
        mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 --user-data "$tmp/by-name"
        exec 7< <(exec python3 "$lib/flapping.py" "${imds##*:}" 1); pids+=($!); read -r flap <&7
        exec 6< <(exec python3 "$lib/flapping.py" "${ec2##*:}" 2); pids+=($!); read -r real_ec2 <&6
        export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:$flap AWS_ENDPOINT_URL_EC2=http://127.0.0.1:$real_ec2
        : >"$tmp/account"; : >"$tmp/codes"
        for w in 1 2 3 4; do
                ( root=$tmp/flap$w; machine; trap - EXIT
                  while [ "$SECONDS" -lt "$end" ]; do
                        rm -f "$root/run/nodestrap/facts.json"; begin=$EPOCHREALTIME
                        timeout -k 5 300 env LD_PRELOAD="$tmp/preload.so" ENDURANCE_ACCOUNT="$tmp/account" "$nodestrap" init --root "$root" >/dev/null 2>"$tmp/flap$w.err"; code=$?
                        took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", b - a }')
                        echo "$code $took $(tail -1 "$tmp/flap$w.err")" >>"$tmp/codes"
                  done ) & pids+=($!)
        done
        sleep $((end > SECONDS ? end - SECONDS : 0)); kill -USR1 "${pids[@]:0:2}"      # the services work from here on: an init that still runs ends within a minute
        read -r ill <&7
        for w in "${pids[@]:2}"; do wait "$w"; done
        kill "${pids[@]:0:2}"
        runs=$(wc -l <"$tmp/codes") well=$(grep -c '^0 ' "$tmp/codes") 
        awk '$1 != 0 && $1 != 12 && $1 != 20 && $1 != 10 && $1 != 11' "$tmp/codes" >"$tmp/wrong"; wrong=$(wc -l <"$tmp/wrong"); sed 's/^/# /' "$tmp/wrong" | head
        awk '$2 > 200' "$tmp/codes" >"$tmp/long"; long=$(wc -l <"$tmp/long"); busy=$(awk '$2 > 3000' "$tmp/account" | wc -l)
        ok "some inits succeed beside services that flap for $FLAPPING s ($well of $runs)" test "$well" -gt 0
        ok "the proxy before IMDS disturbs at least one connection" at_least_is "$ill" 1
        ok "the other inits fail with exit status 10, 11, 12 or 20" same_word "$wrong" 0
        ok "the last line of each failed init has its phase, the time and the last error" same_word "$(awk '$1 != 0' "$tmp/codes" | grep -vcE ' nodestrap: failed \([0-9]+ E[A-Z0-9]+\) at [a-z]+: .* in [0-9.]+ s; the last one: ')" 0
        ok "no init takes longer than its deadlines" same_word "$long" 0
        ok "no init uses more than three seconds of CPU time" same_word "$busy" 0
        ok "no init has more descriptors at its end than libcurl keeps for its connection to EC2" same_word "$(awk 'NF > 6' "$tmp/account" | head -3)" ''
        ok "no init writes a secret to stderr or its status file" no_canary
        figure "$FLAPPING seconds of flapping services"; figure "$runs inits beside them"
        cut -d' ' -f1 "$tmp/codes" | sort | uniq -c | sed 's/^/# exits: /'
}
no_canary() { ! grep -rlE "$canaries" "$tmp"/flap*.err "$tmp"/flap*/run/nodestrap/status.json; }

# ---- clocks that jump: ten years ahead, or to 1970, at each look at the clock ----
part_clocks() {
        local n i list jumps bad=0 where
        good | sed '/InstanceIdNodeName/d' >"$tmp/by-name"
        mock --imds "$fixtures/imds-m5" --ec2-listen 127.0.0.1:0 --user-data "$tmp/by-name"
        machine; : >"$tmp/jumps"
        for where in 315360000 -1790000000; do
                for n in 0 1 2 3; do          # n looks at the clock before the jump; then no return, a return, or more jumps
                        for back in '' 0 more; do
                                list=$(head -c $((2 * n)) <<<'0 0 0 0 0 0 ')$where; [ "$back" != 0 ] || list+=" $where 0"; [ "$back" != more ] || list+=' 0 86400 0 -86400 0'
                                rm -f "$root/run/nodestrap/facts.json"
                                ENDURANCE_JUMPS=$list ENDURANCE_JUMPED=$tmp/jumps timeout 120 env LD_PRELOAD="$tmp/preload.so" "$nodestrap" init --root "$root" >"$tmp/out" 2>"$tmp/err"; code=$?
                                [ $code = 0 ] || { bad=$((bad + 1)); echo "# $code after $list"; tail -2 "$tmp/err" | sed 's/^/# /'; }
                        done
                done
        done
        ok "init succeeds when the clock jumps ten years ahead or to 1970" same_word $bad 0
        # TLS and a presigned token depend on the clock, which is right again at the nth look, or never
        local d=$tmp/joins kube server
        export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=notavaluethatanybodymaysee
        bad=0
        joins "$d" 127.0.0.1:9
        exec 8< <(exec python3 "$here/kube.py" serve "$tmp/pki" --key "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY:" --log "$tmp/kube" --play ready 2>/dev/null); server=$!; read -r _ kube <&8
        joins "$d" "$kube"
        for where in 315360000 -1790000000; do
                for n in 1 2 3 4 6; do
                        list=$(for ((i = 0; i < n; i++)); do printf '%s ' $where; done)0
                        ENDURANCE_SPEED=10 ENDURANCE_JUMPS=$list ENDURANCE_JUMPED=$tmp/jumps timeout 120 env LD_PRELOAD="$tmp/preload.so" "$nodestrap" wait --root "$d" --timeout 600s >"$tmp/out" 2>"$tmp/err"; code=$?
                        [ $code = 0 ] || { bad=$((bad + 1)); echo "# $code after $list"; tail -2 "$tmp/err" | sed 's/^/# /'; }
                done
                ENDURANCE_JUMPS=$where ENDURANCE_JUMPED=$tmp/jumps timeout 120 env LD_PRELOAD="$tmp/preload.so" "$nodestrap" wait --root "$d" --timeout 2s >"$tmp/out" 2>"$tmp/err"; code=$?
                ok "wait says that the clock is wrong by $where s" same_word "$code $(tail -1 "$tmp/err" | grep -c '(60 ECLOCK) at join: ')" "60 1"
        done
        ok "wait succeeds once the clock is right" same_word $bad 0
        kill $server; unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
        jumps=$(awk '{ sum += $1 } END { print sum + 0 }' "$tmp/jumps")
        ok "the clock jumps in at least twelve of these runs" at_least_is "$(grep -cv '^0$' "$tmp/jumps")" 12
        figure "$jumps clock jumps"
}

for part in $ENDURANCE; do "part_$part"; mock_stop; done
done_testing
