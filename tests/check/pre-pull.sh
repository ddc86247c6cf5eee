#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nodestrap-pre-pull with a real containerd, 2.x where the cache has it, and with tests/mock/registry.py. The credential provider notes what
# it is asked. The program ends with 0 whatever happens, and no secret is in an argument list, in its messages or in its result.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
program=$(dirname "$(realpath "${NODESTRAP:-build/nodestrap}")")/nodestrap-pre-pull
secret=PASSWORD-nobody-may-see-0123 host=123456789012.dkr.ecr.us-west-2.amazonaws.com
skip() { [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] && echo "1..0 # SKIP $1" || printf '1..1\nnot ok 1 - %s\n' "$1"; exit; }
[ "$(id -u)" = 0 ] || skip "only root can run containerd"
containerd=$("$here/../tools/peers.sh" --cached containerd2 sid containerd 2>/dev/null)/usr/bin/containerd
[ -x "$containerd" ] || containerd=$(command -v containerd) || skip "no containerd here"

# Its mounts are its own. Its disk has 48 MB.
pids=(); mkdir -p "$tmp"/{disk,certs.d,bin,socket}
trap 'mock_stop; [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null; wait; rm -r "$tmp"' EXIT
cat >"$tmp/config.toml" <<END
version = 2
root = "$tmp/disk/root"
state = "$tmp/disk/state"
[grpc]
address = "$tmp/socket/containerd.sock"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "$tmp/certs.d"
[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "$tmp/cni"
END
containerd_start() {
        unshare --mount sh -c 'mount -t tmpfs -o size=48m none "$1/disk" && exec "$2" -c "$1/config.toml"' sh "$tmp" "$containerd" >"$tmp/containerd.log" 2>&1 &
        pids+=($!)
}
exec 8< <(exec python3 "$here/registry.py" --login "AWS:$secret" --log "$tmp/requests")
pids+=($!); read -r _ registry <&8 || { echo "Bail out! the registry does not start"; exit 1; }
for name in $host plain.test; do
        mkdir "$tmp/certs.d/$name"; printf 'server = "http://%s"\n[host."http://%s"]\ncapabilities = ["pull", "resolve"]\n' "$registry" "$registry" >"$tmp/certs.d/$name/hosts.toml"
done

# provider SCRIPT: the provider, which has read its request into $request
provider() {
        printf '#!/bin/bash\nrequest=$(cat); echo "$request" >>%q; tr "\\0" " " </proc/$$/cmdline >>%q; env >>%q\n%s\n' "$tmp/asked" "$tmp/arguments" "$tmp/environment" "$1" >"$tmp/bin/ecr-credential-provider"
        chmod 755 "$tmp/bin/ecr-credential-provider"; : >"$tmp/asked"; rm -f "$tmp/late"
}
gives='printf "{\"kind\": \"CredentialProviderResponse\", \"apiVersion\": \"credentialprovider.kubelet.k8s.io/v1\", \"cacheKeyType\": \"Registry\", \"cacheDuration\": \"12h0m0s\", \"auth\": {\"*.dkr.ecr.*.amazonaws.com\": {\"username\": \"AWS\", \"password\": \"'$secret'\"}}}"'
printf '{"kind": "CredentialProviderConfig", "apiVersion": "kubelet.config.k8s.io/v1", "providers": [{"name": "ecr-credential-provider", "matchImages": ["*.dkr.ecr.*.amazonaws.com"],
        "defaultCacheDuration": "12h0m0s", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "args": ["get-credentials"], "env": [{"name": "REGION_OF", "value": "us-west-2"}]}]}' >"$tmp/providers.json"
# pulls SECONDS IMAGE…: runs it, and keeps how long it took
pulls() {
        local seconds=$1 begin=$SECONDS rc; shift
        printf '{"socket": "%s/socket/containerd.sock", "provider": "%s/bin/ecr-credential-provider", "providerConfig": "%s/providers.json", "seconds": %s, "jitterSeconds": 0, "images": [%s]}' \
                "$tmp" "$tmp" "$tmp" "$seconds" "$(printf '"%s",' "$@" | sed 's/,$//')" >"$tmp/pre-pull.json"
        : >"$tmp/requests"
        ${WITH-} "$program" "$tmp/pre-pull.json" "$tmp/result.json" >"$tmp/out" 2>"$tmp/err"; rc=$?
        echo $((SECONDS - begin)) >"$tmp/took"; cat "$tmp/err" >>"$tmp/all"; cat "$tmp/result.json" >>"$tmp/all"
        return $rc
}
# states WORD…: of the images, in order
states() { local said; said=$(python3 -c 'import json, sys; print(*(i["state"] for i in json.load(open(sys.argv[1]))["images"]))' "$tmp/result.json") && [ "$said" = "$*" ] || { echo "$said"; cat "$tmp/result.json" "$tmp/err"; tail -5 "$tmp/containerd.log"; return 1; }; }
here_are() { ctr -a "$tmp/socket/containerd.sock" -n k8s.io images ls -q | grep -F -- "$1"; }
asked() { [ "$(grep -c . "$tmp/asked")" = "$1" ] || { cat "$tmp/asked"; return 1; }; }
# A program that uses up its 60 s, or never ends, takes longer.
in_time() { [ "$(cat "$tmp/took")" -lt 30 ] || { cat "$tmp/took"; return 1; }; }
has() { until grep -qs -- "$2" "$1"; do sleep 0.05; done; }       # FILE TEXT

provider "$gives"
ok "without containerd it ends with success" pulls 3 plain.test/public/early:1
ok "in the time that it has" in_time
ok "and with a warning" says "image-not-pulled: plain.test/public/early:1: $tmp/socket/containerd.sock does not answer"
ok "which names who pulls the image then" says "kubelet pulls it for the first pod that needs it"
rm "$tmp/result.json"; (has "$tmp/result.json" pulling; exec 8<&-; containerd_start; wait) & pids+=($!)
ok "a containerd that comes later" pulls 60 plain.test/public/early:1
ok "pulls what it is asked for" states pulled
ok "as containerd says" here_are plain.test/public/early:1

ok "an image behind a login, and one without" pulls 60 $host/private/a:1 plain.test/public/b:2
ok "are pulled" states pulled pulled
ok "the provider got the repository of the one" grep -qxF '{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"'$host'/private/a"}' "$tmp/asked"
ok "and nothing else" asked 1
ok "with its arguments" grep -qF get-credentials "$tmp/arguments"
ok "and its variables" grep -qxF REGION_OF=us-west-2 "$tmp/environment"
ok "the result has their sizes" eval '[ "$(grep -c "\"bytes\": 10[45]" "$tmp/result.json")" = 2 ]'
ok "and a line for status" grep -F '"text": "2 of 2 pulled, 2.1' "$tmp/result.json"
ok "a second run" pulls 60 $host/private/a:1 plain.test/public/b:2
ok "finds them" states present present
ok "and asks neither the registry" eval '! [ -s "$tmp/requests" ]'
ok "nor the provider" asked 1

ok "three more images of that registry" pulls 60 $host/private/t:1 $host/private/u:1 $host/private/v:1
ok "are pulled, too" states pulled pulled pulled
ok "with one question to the provider" asked 2

ok "an image that does not exist, beside another" pulls 60 plain.test/missing/c:1 plain.test/public/d:1
ok "does not hold that one up" states failed pulled
ok "and is given up at once" in_time
ok "with its cause" says "image-not-pulled: plain.test/missing/c:1: "
ok "which is that of containerd" says "not found"

ok "a registry that hangs" pulls 4 plain.test/hang/e:1 plain.test/public/f:1
ok "holds no other image up" states failed pulled
ok "nor the end" in_time
ok "and is a warning" says "image-not-pulled: plain.test/hang/e:1: containerd did not answer in time"

ok "a registry that hangs with three" pulls 3 plain.test/hang/e:1 plain.test/hang/e:2 plain.test/hang/e:3 plain.test/public/w:1
ok "leaves no time for another" says "image-not-pulled: plain.test/public/w:1: no time was left after the earlier images"

# kubelet, too, may want it meanwhile
: >"$tmp/requests"; (has "$tmp/requests" /v2/slow/s/; printf '{"socket": "%s/socket/containerd.sock", "seconds": 60, "jitterSeconds": 0, "images": ["plain.test/slow/s:1"]}' "$tmp" >"$tmp/other.json"
        "$program" "$tmp/other.json" "$tmp/other-result.json" 2>/dev/null) & other=$!
ok "an image that two want at the same time" pulls 60 plain.test/slow/s:1
ok "is pulled" states pulled
wait $other
ok "for both" grep -F '"text": "1 of 1 pulled' "$tmp/other-result.json"
ok "once: its blobs are two" eval '[ "$(grep -c "^GET /v2/slow/s/blobs/" "$tmp/requests")" = 2 ] || { cat "$tmp/requests"; false; }'

ok "a registry that is overloaded for a while" pulls 60 plain.test/busy/g:1
ok "is asked again" states pulled

ok "a registry with too many requests" pulls 33 $host/private/limited/x:1
ok "is asked again later" states pulled
ok "the provider is not" asked 3
ok "and was, six times at once by containerd" eval '[ "$(grep -c " 429$" "$tmp/requests")" = 7 ] || { cat "$tmp/requests"; false; }'
provider '[ "$(grep -c . '"$tmp"'/asked)" -gt 1 ] || { echo "operation error ECR: GetAuthorizationToken, api error ThrottlingException: Rate exceeded" >&2; exit 1; }; '"$gives"
ok "an ECR with too many, too" pulls 33 $host/private/y:1
ok "is asked again" states pulled

provider '[ -e '"$tmp"'/late ] || { touch '"$tmp"'/late; echo "no role yet" >&2; exit 1; }; '"$gives"
ok "credentials that come late" pulls 60 $host/private/h:1
ok "come in time" states pulled
provider 'exit 3'
ok "a provider that fails" pulls 3 $host/private/i:1 $host/public/i:2
ok "is no loss where no login is needed" states failed pulled
ok "and else the cause beside that of containerd" says "ecr-credential-provider gave no credentials: it ended with status 3"
provider 'echo "{\"kind\": \"CredentialProviderResponse\", \"apiVersion\": \"v2\", \"auth\": {\"*\": {\"password\": \"'$secret'\"}}}"'
ok "one with another answer" pulls 3 $host/private/j:1
ok "is told by that" says "its answer is not a CredentialProviderResponse of credentialprovider.kubelet.k8s.io/v1"
provider 'echo rubbish; head -c 3000000 /dev/zero'
ok "one with rubbish" pulls 3 $host/private/j:1
ok "is, too" says "its answer is not a CredentialProviderResponse"
provider 'printf "{\"kind\": \"CredentialProviderResponse\", \"apiVersion\": \"credentialprovider.kubelet.k8s.io/v1\", \"auth\": {\"*.dkr.ecr.*.amazonaws.com\": {\"username\": \"AWS\", \"password\": \"wrong-'$secret'\"}}}"'
ok "credentials that the registry refuses" pulls 3 $host/private/k:1
ok "are a warning" says "image-not-pulled: $host/private/k:1: "
provider "$gives"
rm "$tmp/bin/ecr-credential-provider"
ok "a provider that is not there" pulls 3 $host/private/l:1
ok "is named" says "ecr-credential-provider gave no credentials: No such file or directory"
provider "$gives"
mv "$tmp/providers.json" "$tmp/kept.json"
ok "without its configuration" pulls 3 $host/public/m:1
ok "what needs no login is pulled" states pulled
ok "and a warning says what is missing" says "no-pull-credentials: $tmp/providers.json cannot be read"
mv "$tmp/kept.json" "$tmp/providers.json"

ok "blobs whose signed URL fails" pulls 3 plain.test/signed/n:1
ok "are a warning" states failed
ok "what is not an image" pulls 60 'plain.test/UPPER/../x:1' plain.test/public/p:1
ok "is one, too" states failed pulled
ok "and at once" in_time
# The last one: containerd frees the disk later.
ok "an image that is larger than the disk" pulls 60 plain.test/big/o:1
ok "is one, too" states failed
ok "at once" in_time
ok "and says so" says "no space left on device"

echo '{"images": 5}' >"$tmp/damaged.json"
ok "a damaged file ends with success" eval '"$program" "$tmp/damaged.json" "$tmp/none.json" 2>"$tmp/err"'
ok "and a warning" says "no-pre-pull: $tmp/damaged.json is damaged"
ok "so does none" eval '"$program" "$tmp/absent.json" "$tmp/none.json" 2>"$tmp/err"'
ok "with another" says "no-pre-pull: $tmp/absent.json cannot be read"
if minimal=$("$here/../tools/libcurl.sh" 2>"$tmp/why"); then
        WITH="env LD_LIBRARY_PATH=$minimal" ok "a libcurl without HTTP/2 ends with success" eval 'pulls 60 plain.test/public/q:1 && in_time'
        WITH='' ok "with one warning" says "no-pre-pull: libcurl.so.4 has no HTTP/2"
fi
printf '{"socket": "%s/socket/containerd.sock", "seconds": 600, "jitterSeconds": 0, "images": ["plain.test/hang/r:1"]}' "$tmp" >"$tmp/pre-pull.json"
rm "$tmp/result.json"; "$program" "$tmp/pre-pull.json" "$tmp/result.json" 2>"$tmp/err" & pid=$!; has "$tmp/result.json" pulling; kill $pid; wait $pid; rc=$?
ok "a signal ends it" eval '[ $rc = 0 ] && says "a signal ended the program"'

ok "no password is in its messages and results" eval '! grep -F "$secret" "$tmp/all"'
ok "nor the signature of a URL" eval '! grep -E "SIGNED-token|Signature=[0-9a-f]" "$tmp/all"'
ok "nor in an argument list" eval '! grep -F "$secret" "$tmp/arguments"'
ok "nor in the log of containerd" eval '! grep -F "$secret" "$tmp/containerd.log"'
ok "no report of a sanitizer" eval '! grep -E "Sanitizer|runtime error" "$tmp/all"'
done_testing
