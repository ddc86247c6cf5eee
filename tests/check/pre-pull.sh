#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nodestrap-pre-pull with a real containerd, 2.x where the cache has it, and with tests/mock/registry.py. The credential provider records its
# requests. The program always ends with 0, and no secret is in an argument list, in its messages or in its result.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016  # tmp and here are its; what eval gets is expanded there
. "$(dirname "$0")/../mock/lib.sh"
program=$(dirname "$(realpath "${NODESTRAP:-build/nodestrap}")")/nodestrap-pre-pull
secret=PASSWORD-nobody-may-see-0123 host=123456789012.dkr.ecr.us-west-2.amazonaws.com
skip() { [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ] && echo "1..0 # SKIP $1" || printf '1..1\nnot ok 1 - %s\n' "$1"; exit; }
[ "$(id -u)" = 0 ] || skip "only root can run containerd"
containerd=$("$here/../tools/peers.sh" --cached containerd2 sid containerd 2>/dev/null)/usr/bin/containerd
[ -x "$containerd" ] || containerd=$(command -v containerd) || skip "no containerd here"

# containerd runs in a mount namespace of its own, with a disk of 48 MB.
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
# pulls SECONDS IMAGE…: runs the program and records how long it took
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
ok "pre-pull ends with success without containerd" pulls 3 plain.test/public/early:1
ok "pre-pull ends in time without containerd" in_time
ok "pre-pull warns that containerd does not answer" says "image-not-pulled: plain.test/public/early:1: the call to $tmp/socket/containerd.sock failed: "
ok "the warning says that kubelet pulls the image for the first pod that needs it" says "kubelet pulls it for the first pod that needs it"
rm "$tmp/result.json"; (has "$tmp/result.json" pulling; exec 8<&-; containerd_start; wait) & pids+=($!)
ok "pre-pull ends with success if containerd starts later" pulls 60 plain.test/public/early:1
ok "pre-pull pulls the image after containerd has started" states pulled
ok "containerd lists the pulled image" here_are plain.test/public/early:1

ok "pre-pull ends with success for a private image and a public image" pulls 60 $host/private/a:1 plain.test/public/b:2
ok "the private image and the public image are pulled" states pulled pulled
ok "the provider gets the repository of the private image" grep -qxF '{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"'$host'/private/a"}' "$tmp/asked"
ok "the provider gets one request" asked 1
ok "the provider gets its arguments" grep -qF get-credentials "$tmp/arguments"
ok "the provider gets its environment variables" grep -qxF REGION_OF=us-west-2 "$tmp/environment"
ok "the result has the sizes of both images" eval '[ "$(grep -c "\"bytes\": 10[45]" "$tmp/result.json")" = 2 ]'
ok "the result has a line of text for status" grep -F '"text": "2 of 2 pulled, 2.1' "$tmp/result.json"
ok "a second run for the same images ends with success" pulls 60 $host/private/a:1 plain.test/public/b:2
ok "a second run finds the images" states present present
ok "a second run sends the registry no request" eval '! [ -s "$tmp/requests" ]'
ok "a second run sends the provider no request" asked 1

ok "pre-pull ends with success for three more private images" pulls 60 $host/private/t:1 $host/private/u:1 $host/private/v:1
ok "the three private images are pulled" states pulled pulled pulled
ok "the provider gets one request for three images of a registry" asked 2

ok "pre-pull ends with success if an image does not exist" pulls 60 plain.test/missing/c:1 plain.test/public/d:1
ok "a missing image does not stop the pull of another image" states failed pulled
ok "pre-pull gives up a missing image at once" in_time
ok "the warning names the missing image" says "image-not-pulled: plain.test/missing/c:1: "
ok "the warning has the cause from containerd: not found" says "not found"

ok "pre-pull ends with success if a registry hangs" pulls 4 plain.test/hang/e:1 plain.test/public/f:1
ok "a registry that hangs does not stop the pull of another image" states failed pulled
ok "pre-pull ends in time if a registry hangs" in_time
ok "the warning says that containerd did not answer in time" says "image-not-pulled: plain.test/hang/e:1: containerd did not answer in time"

ok "pre-pull ends with success if a registry hangs for three images" pulls 3 plain.test/hang/e:1 plain.test/hang/e:2 plain.test/hang/e:3 plain.test/public/w:1
ok "a warning says that no time was left for the fourth image" says "image-not-pulled: plain.test/public/w:1: no time was left after the earlier images"

# kubelet may pull the same image at the same time
: >"$tmp/requests"; (has "$tmp/requests" /v2/slow/s/; printf '{"socket": "%s/socket/containerd.sock", "seconds": 60, "jitterSeconds": 0, "images": ["plain.test/slow/s:1"]}' "$tmp" >"$tmp/other.json"
        "$program" "$tmp/other.json" "$tmp/other-result.json" 2>/dev/null) & other=$!
ok "pre-pull ends with success while another process pulls the same image" pulls 60 plain.test/slow/s:1
ok "an image that two processes want is pulled" states pulled
wait $other
ok "the other process reports the same image as pulled" grep -F '"text": "1 of 1 pulled' "$tmp/other-result.json"
ok "two processes fetch each of the two blobs only once" eval '[ "$(grep -c "^GET /v2/slow/s/blobs/" "$tmp/requests")" = 2 ] || { cat "$tmp/requests"; false; }'

ok "pre-pull ends with success if a registry is overloaded for a while" pulls 60 plain.test/busy/g:1
ok "an image of an overloaded registry is pulled after a retry" states pulled

ok "pre-pull ends with success if a registry answers 429" pulls 33 $host/private/limited/x:1
ok "an image is pulled after its registry has answered 429" states pulled
ok "pre-pull retries the registry without another request to the provider" asked 3
ok "the registry answers 429 seven times before the pull succeeds" eval '[ "$(grep -c " 429$" "$tmp/requests")" = 7 ] || { cat "$tmp/requests"; false; }'
provider '[ "$(grep -c . '"$tmp"'/asked)" -gt 1 ] || { echo "operation error ECR: GetAuthorizationToken, api error ThrottlingException: Rate exceeded" >&2; exit 1; }; '"$gives"
ok "pre-pull ends with success if ECR throttles the provider" pulls 33 $host/private/y:1
ok "an image is pulled after ECR has throttled the provider" states pulled

provider '[ -e '"$tmp"'/late ] || { touch '"$tmp"'/late; echo "no role yet" >&2; exit 1; }; '"$gives"
ok "pre-pull ends with success if the credentials come late" pulls 60 $host/private/h:1
ok "an image is pulled when its credentials come late" states pulled
provider 'exit 3'
ok "pre-pull ends with success if the provider fails" pulls 3 $host/private/i:1 $host/public/i:2
ok "an image that needs no login is pulled although the provider fails" states failed pulled
ok "the warning has the exit status of the provider" says "ecr-credential-provider gave no credentials: it exited with status 3"
provider 'echo "{\"kind\": \"CredentialProviderResponse\", \"apiVersion\": \"v2\", \"auth\": {\"*\": {\"password\": \"'$secret'\"}}}"'
ok "pre-pull ends with success if the provider answers with another version" pulls 3 $host/private/j:1
ok "the warning names the version that the answer must have" says "its answer is not a CredentialProviderResponse in credentialprovider.kubelet.k8s.io/v1"
provider 'echo rubbish; head -c 3000000 /dev/zero'
ok "pre-pull ends with success if the provider prints rubbish" pulls 3 $host/private/j:1
ok "the warning says that rubbish is not a CredentialProviderResponse" says "its answer is not a CredentialProviderResponse"
provider 'printf "{\"kind\": \"CredentialProviderResponse\", \"apiVersion\": \"credentialprovider.kubelet.k8s.io/v1\", \"auth\": {\"*.dkr.ecr.*.amazonaws.com\": {\"username\": \"AWS\", \"password\": \"wrong-'$secret'\"}}}"'
ok "pre-pull ends with success if the registry refuses the credentials" pulls 3 $host/private/k:1
ok "a warning names the image whose registry refuses the credentials" says "image-not-pulled: $host/private/k:1: "
provider "$gives"
rm "$tmp/bin/ecr-credential-provider"
ok "pre-pull ends with success if the provider is missing" pulls 3 $host/private/l:1
missing='No such file or directory'; [ -z "${NODESTRAP_TRANSLATED-}" ] || missing='it exited with status 127'       # vfork() is fork() there
ok "the warning names the missing provider" says "ecr-credential-provider gave no credentials: $missing"
provider "$gives"
mv "$tmp/providers.json" "$tmp/kept.json"
ok "pre-pull ends with success without the configuration of the provider" pulls 3 $host/public/m:1
ok "an image that needs no login is pulled without the configuration of the provider" states pulled
ok "a warning names the missing configuration of the provider" says "no-pull-credentials: $tmp/providers.json cannot be read"
mv "$tmp/kept.json" "$tmp/providers.json"

ok "pre-pull ends with success if the signed URLs of blobs fail" pulls 3 plain.test/signed/n:1
ok "an image whose signed URLs fail has the state failed" states failed
ok "pre-pull ends with success for an invalid image name" pulls 60 'plain.test/UPPER/../x:1' plain.test/public/p:1
ok "an invalid image name fails, and the other image is pulled" states failed pulled
ok "pre-pull gives up an invalid image name at once" in_time
# This is the last image, because containerd frees the disk only later.
ok "pre-pull ends with success if an image is larger than the disk" pulls 60 plain.test/big/o:1
ok "an image that is larger than the disk has the state failed" states failed
ok "pre-pull gives up at once an image that is larger than the disk" in_time
ok "the warning says that no space is left on the device" says "no space left on device"

echo '{"images": 5}' >"$tmp/damaged.json"
ok "pre-pull ends with success if its input file is damaged" eval '"$program" "$tmp/damaged.json" "$tmp/none.json" 2>"$tmp/err"'
ok "a warning names the damaged input file" says "no-pre-pull: $tmp/damaged.json is damaged"
ok "pre-pull ends with success if its input file is missing" eval '"$program" "$tmp/absent.json" "$tmp/none.json" 2>"$tmp/err"'
ok "a warning names the missing input file" says "no-pre-pull: $tmp/absent.json cannot be read"
[ -z "${NODESTRAP_TRANSLATED-}" ] || echo "it is for this machine, and the program is not" >"$tmp/why"
if [ ! -s "$tmp/why" ] && minimal=$("$here/../tools/libcurl.sh" 2>"$tmp/why"); then
        WITH="env LD_LIBRARY_PATH=$minimal" ok "pre-pull ends with success and in time if libcurl has no HTTP/2" eval 'pulls 60 plain.test/public/q:1 && in_time'
        WITH='' ok "a warning says that libcurl has no HTTP/2" says "no-pre-pull: libcurl.so.4 has no HTTP/2"
elif [ "${NODESTRAP_TEST_REQUIRE:-0}" != 0 ]; then
        ok "a minimal libcurl is available" cat "$tmp/why" /nonexistent
else
        count=$((count + 1)); echo "ok $count - a minimal libcurl is available # SKIP $(tail -1 "$tmp/why")"
fi
printf '{"socket": "%s/socket/containerd.sock", "seconds": 600, "jitterSeconds": 0, "images": ["plain.test/hang/r:1"]}' "$tmp" >"$tmp/pre-pull.json"
rm "$tmp/result.json"; "$program" "$tmp/pre-pull.json" "$tmp/result.json" 2>"$tmp/err" & pid=$!; has "$tmp/result.json" pulling; kill $pid; wait $pid; rc=$?
ok "SIGTERM ends pre-pull with success and a message" eval '[ $rc = 0 ] && says "a signal terminated the program"'

ok "messages and results of pre-pull have no password" eval '! grep -F "$secret" "$tmp/all"'
ok "messages and results of pre-pull have no signature of a URL" eval '! grep -E "SIGNED-token|Signature=[0-9a-f]" "$tmp/all"'
ok "the password is not in an argument list" eval '! grep -F "$secret" "$tmp/arguments"'
ok "the password is not in the log of containerd" eval '! grep -F "$secret" "$tmp/containerd.log"'
ok "no sanitizer reports an error" eval '! grep -E "Sanitizer|runtime error" "$tmp/all"'
done_testing
