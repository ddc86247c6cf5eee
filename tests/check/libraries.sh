#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The libraries of Amazon Linux 2023 have all symbols that the program needs (tests/oracles/libraries.py), and libcurl-minimal is enough.
# Messages for a library that is missing, damaged, foreign or old at run time. All objects have the marks of jump targets for the processor
# (x86-64: CET; arm64/package.sh tests arm64). tests/unit/test-root.c tests older kernels.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016,SC2317  # tmp and here are its; what eval and sh get is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") fakes=$(realpath "${FAKES:-build/tests/fakes}") source=$here/../..
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }

judged=$(python3 "$here/../oracles/libraries.py" "$nodestrap" "$source/src" 2>&1)
while IFS= read -r line; do
        case $line in
        1..*) ;;
        ok*|not\ ok*) count=$((count + 1)); sed -E "s/^((not )?ok) [0-9]+/\1 $count/" <<<"$line" ;;
        *) echo "$line" ;;
        esac
done <<<"$judged"
ok 'tests/oracles/libraries.py prints a result for each test' [ "1..$count" = "$(tail -1 <<<"$judged")" ]

# ---- one command for each library ----
python3 "$here/../mock/kube.py" pki "$tmp/pki" || { echo "Bail out! no certificates"; exit 1; }
keys=(AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=notavalue AWS_SESSION_TOKEN=session)
root=$tmp/root; mkdir "$root"
"$here/../fixtures/expand.sh" g6-xlarge "$root"
mkdir -p "$root"/{dev,proc/self,proc/sys/kernel/random,usr/sbin,usr/bin,mnt,run,etc/eks/kubelet,etc/kubernetes/pki,var/lib/kubelet}
echo '22 1 259:0 / / rw,noatime - ext4 /dev/root rw' >"$root/proc/self/mountinfo"
cp /proc/sys/kernel/random/boot_id "$root/proc/sys/kernel/random/"; echo host.example >"$root/proc/sys/kernel/hostname"
for program in usr/bin/cp usr/sbin/mdadm usr/sbin/mkfs.xfs usr/sbin/mkfs.ext4; do install -m 755 /bin/true "$root/$program"; done
truncate -s 16M "$root/dev/nvme0n1"
cat >"$root/node.yaml" <<X
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: training, apiServerEndpoint: "https://example.com", certificateAuthority: Y2E=, cidr: 10.100.0.0/16}
  instance: {localStorage: {strategy: RAID0}}
X
cp "$tmp/pki/ca.crt" "$root/etc/kubernetes/pki/"
echo "NODEADM_KUBELET_ARGS=--hostname-override=ip-10-0-0-10.us-west-2.compute.internal" >"$root/etc/eks/kubelet/environment"
joins_at() {
        cat >"$root/var/lib/kubelet/kubeconfig" <<-X
	apiVersion: v1
	kind: Config
	clusters: [{name: kubernetes, cluster: {certificate-authority: /etc/kubernetes/pki/ca.crt, server: "$1"}}]
	users: [{name: kubelet, user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws, args: [eks, get-token, --cluster-name, training, --region, us-west-2]}}}]
	contexts: [{name: kubelet, context: {cluster: kubernetes, user: kubelet}}]
	current-context: kubelet
	X
}
disks=("$nodestrap" plan --root "$root" -c file:///node.yaml)
waits=(env "${keys[@]}" "$nodestrap" wait --root "$root" --timeout 30s)
roles=(env "${keys[@]}" "$nodestrap" token --cluster-name training --region us-west-2 --role-arn arn:aws:iam::123456789012:role/other)
# says_last EXIT WORD STEP WORDS COMMAND...: the last line
says_last() {
        local code=$1 words="nodestrap: failed ($1 $2) at $3: $4" last rc
        "${@:5}" >"$tmp/out" 2>"$tmp/err"; rc=$?
        last=$(tail -1 "$tmp/err")
        # shellcheck disable=SC2053  # a pattern
        [ $rc = "$code" ] && [[ $last == $words ]] || { echo "exit $rc, not $words"; cat "$tmp/err"; false; }
}
joins_at https://127.0.0.1:9
ok 'plan succeeds with all libraries' "${disks[@]}"

# ---- without one library, or with another file in its place ----
libraries=$(LD_TRACE_LOADED_OBJECTS=1 "$nodestrap" | sed -n 's,.* => \(/.*\)/libjansson\.so.*,\1,p'); libraries=$(realpath "${libraries:-/}")
mkdir "$tmp/all" "$tmp/less" "$tmp/instead"
# hidden LIBRARY COMMAND...: mount(8) itself needs libmount, so the mount that hides it comes last
hidden() {
        unshare -m sh -c 'libraries=$1 all=$2 less=$3 name=$4; shift 4
                mount --bind "$libraries" "$all" && mount -t tmpfs none "$less" && ln -s "$all"/* "$less" && rm "$less/$name"* &&
                mount --bind "$less" "$libraries" && exec "$@"' sh "$libraries" "$tmp/all" "$tmp/less" "$@"
}
instead() { rm -rf "$tmp/instead"; mkdir "$tmp/instead"; cp "$1" "$tmp/instead/$2"; LD_LIBRARY_PATH=$tmp/instead "${@:3}"; }
damaged() { instead /dev/null "$@"; }
other() { instead "$fakes/libnvidia-ml.so.1" "$@"; }
# storage KIND WORDS, requests KIND WORDS: KIND is a function from above, WORDS those of the loader, with FIRST for the first function that
# is missing. libmount itself needs libblkid, and a package of the one brings the other.
storage() {
        local kind=$1 words=$2
        ok "plan fails without a usable libmount ($kind) and names the package" says_last 30 ESTORAGETOOL detect "libmount.so.1, which reads the mounts, cannot be loaded: *${words/FIRST/mnt_new_context}; install libmount (Amazon Linux) or libmount1 (Debian), version 2.30 or later" \
                "$kind" libmount.so.1 "${disks[@]}"
        ok "plan fails without a usable libblkid ($kind) and names the package" says_last 30 ESTORAGETOOL detect "libmount.so.1, *: *${words/FIRST/blkid_*}; install libmount *" \
                "$kind" libblkid.so.1 "${disks[@]}"
}
requests() {
        local kind=$1 install='install libcurl-minimal (Amazon Linux) or libcurl4 (Debian), version 7.77 or later' words=${2/FIRST/curl_easy_init}
        ok "a request to AWS fails without a usable libcurl ($kind) and names the package" says_last 20 ESTS token "libcurl.so.4, which carries requests to AWS, cannot be loaded: *$words; $install" "$kind" libcurl.so.4 "${roles[@]}"
        ok "a request to the cluster fails without a usable libcurl ($kind) and names the package" says_last 60 EAPIROUTE join "libcurl.so.4, which carries requests to the API server, cannot be used: *$words; $install" "$kind" libcurl.so.4 "${waits[@]}"
}
if [ -d "$libraries" ] && unshare -m true 2>/dev/null; then
        storage hidden '.so.1: cannot open shared object file: No such file or directory'
        requests hidden '.so.4: cannot open shared object file: No such file or directory'
        ok 'config check works without libcurl' hidden libcurl.so.4 "$nodestrap" config check -c "file://$root/node.yaml"
else
        skip 'nodestrap names a missing library' 'no mount namespaces here'
fi
storage damaged 'file too short'
requests damaged 'file too short'
storage other 'undefined symbol: FIRST'
requests other 'undefined symbol: FIRST'
old() { instead "$fakes/libcurl-old.so.1" "$@"; }
ok 'an old libcurl is an error that names the required version' says_last 60 EAPIROUTE join 'libcurl.so.4, *: it does not accept a certificate authority from memory (An unknown option was passed in to libcurl); install libcurl-minimal *7.77 or later' \
        old libcurl.so.4 "${waits[@]}"

# ---- libcurl-minimal ----
if [ -n "${NODESTRAP_TRANSLATED-}" ]; then echo "it is for this machine, and the program is not" >"$tmp/why"; fi
if [ ! -s "$tmp/why" ] && minimal=$("$here/../tools/libcurl.sh" 2>"$tmp/why"); then
        export LD_LIBRARY_PATH=$minimal
        exec 8< <(exec python3 "$here/../mock/kube.py" serve "$tmp/pki" --key "AKIDEXAMPLE:notavalue:session" --log "$tmp/kube.log" --play registered,ready 2>"$tmp/kube.err")
        server=$!
        read -r _ kube <&8
        joins_at "https://$kube"
        ok 'wait sees a Node join with a libcurl that has only HTTP and HTTPS' env "LD_DEBUG=files" "LD_DEBUG_OUTPUT=$tmp/loaded" "${waits[@]}"
        ok 'wait loads the minimal libcurl' grep -q "calling init: $minimal/libcurl.so.4" "$tmp"/loaded.*
        kill $server; exec 8<&-
        mock --ec2-listen 127.0.0.1:0 --tls "$tmp/pki/good.crt:$tmp/pki/good.key"
        ok 'nodestrap asks EC2 with the minimal libcurl' env "AWS_CA_BUNDLE=$tmp/pki/ca.crt" "AWS_ENDPOINT_URL_EC2=https://127.0.0.1:${ec2##*:}" "${HELPERS:-build/tests/helpers}/aws-tool" name i-0123
        unset LD_LIBRARY_PATH
elif [ "${NODESTRAP_TEST_REQUIRE:-0}" != 0 ]; then
        ok 'a minimal libcurl is available' cat "$tmp/why" /nonexistent
else
        skip 'a minimal libcurl is available' "$(tail -1 "$tmp/why")"
fi

# ---- marks ----
marked() { LC_ALL=C readelf -n "$1" 2>/dev/null | grep -c 'x86 feature: IBT, SHSTK'; }
if [ "$(uname -m)" = x86_64 ] && [ -z "${NODESTRAP_TRANSLATED-}" ] && [ -e "${nodestrap%/*}/libnodestrap.a" ]; then
        ok 'every object has the marks of jump targets' [ "$(marked "${nodestrap%/*}/libnodestrap.a")" = "$(ar t "${nodestrap%/*}/libnodestrap.a" | wc -l)" ]
        all=1; for part in Scrt1.o crti.o crtbeginS.o crtendS.o crtn.o; do [ "$(marked "$(gcc -print-file-name=$part)")" = 1 ] || all=0; done
        ok 'the program has the marks if all start files of the C library have them' [ "$(marked "$nodestrap")" = $all ]
else
        skip 'every object has the marks of jump targets' 'no build for x86-64'
fi
done_testing
