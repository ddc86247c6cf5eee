#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# status --bundle is complete, and has no secret of a NodeConfig, a file or a log; nodestrap writes it whatever is missing.
# shellcheck disable=SC2154,SC2016,SC2015  # tmp is of lib.sh; what eval gets is expanded there
[ -n "${OWN_MOUNTS-}" ] || ! unshare -m true 2>/dev/null || OWN_MOUNTS=1 exec unshare -m "$0"
# shellcheck source=tests/mock/lib.sh
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
fixtures=$(realpath "$(dirname "$0")/../fixtures")
root=$tmp/root
mkdir "$root" "$tmp/bin" && "$fixtures/expand.sh" p5-48xlarge "$root"
mkdir -p "$root/proc/sys/kernel/random" && echo 5c0b1e5e-0000-4000-8000-000000000000 >"$root/proc/sys/kernel/random/boot_id"
# Programs of this machine have no part in it, but for those that a test puts here.
bundle() { PATH=$tmp/bin:$PATH "$nodestrap" status --root "$root" --bundle "$tmp/b.tar.gz" "$@" >"$tmp/out" 2>"$tmp/err"; }
cat >"$tmp/unpack.py" <<'END'
import os, sys, tarfile
with tarfile.open(sys.argv[1], 'r:gz') as t:
    members = t.getmembers()
    tops = {m.name.split('/')[0] for m in members}
    assert len(tops) == 1 and next(iter(tops)).startswith('nodestrap-'), tops
    names = [m.name for m in members]
    assert len(set(names)) == len(names), 'a name stands twice'
    for m in members:
        assert m.isreg() and m.mode == 0o600 and '..' not in m.name.split('/'), m.name
        path = os.path.join(sys.argv[2], m.name.split('/', 1)[1])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as f:
            f.write(t.extractfile(m).read())
END
unpack() { rm -rf "$tmp/x"; mkdir "$tmp/x" && python3 "$tmp/unpack.py" "$tmp/b.tar.gz" "$tmp/x"; }
has() { [ -s "$tmp/x/$1" ] || { ls -R "$tmp/x"; cat "$tmp/x/errors.txt"; false; }; }
tells() { grep -qF -- "$2" "$tmp/x/$1" || { cat "$tmp/x/$1"; false; }; }
json() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert eval(sys.argv[2]), d' "$tmp/x/$1" "$2"; }

# Every secret, in every form in which programs write it.
cat >"$tmp/secrets.py" <<'END'
import base64, json, os, sys, urllib.parse
bad, n = [], 0
secrets = [line.rstrip('\n') for line in open(sys.argv[1]) if line.strip()]
def forms(s):
    yield s
    yield json.dumps(s)[1:-1]
    yield json.dumps(json.dumps(s)[1:-1])[1:-1]
    yield urllib.parse.quote(s, safe='')
    yield s.replace('\\', '\\\\').replace('"', '\\"').replace('%', '%%')
    for shift in range(3):
        yield base64.b64encode(b'x' * shift + s.encode()).decode()[(shift * 8 + 5) // 6:(len(s) + shift) * 8 // 6]
for directory, _, files in os.walk(sys.argv[2]):
    for name in files:
        path = os.path.join(directory, name)
        data = open(path, 'rb').read().decode('utf-8', 'replace')
        n += 1
        bad += ['%s: %s: %r' % (path, s, data[max(0, data.find(f) - 60):data.find(f) + 40]) for s in secrets for f in forms(s) if f in data]
assert n > int(sys.argv[3]), '%d files' % n
if bad:
    sys.exit('\n'.join(bad))
END
no_secret() { python3 "$tmp/secrets.py" "$tmp/secrets" "$tmp/x" "${1:-20}"; }

# ---- a machine where it never ran ----
ok 'status --bundle succeeds where nodestrap never ran' bundle
ok 'the bundle can be unpacked where nodestrap never ran' unpack
ok 'about.txt says that init has not run since the boot' tells about.txt 'nodestrap init has not run since this machine booted'
ok 'errors.txt says that status.json is missing' tells errors.txt 'status.json: /run/nodestrap/status.json is missing'
ok 'the bundle has the PCI devices' has machine/pci.txt
ok 'the bundle has the disks with their models' tells machine/block.txt 'device/model=Amazon EC2 NVMe Instance Storage'
ok 'status alone still fails where nodestrap never ran' eval '! "$nodestrap" status --root "$root" 2>"$tmp/err" && says "/run/nodestrap/status.json below $root is missing"'

# ---- secrets everywhere ----
cat >"$tmp/secrets" <<'END'
pr0xy-PASSWORD
proxyuser
kubelet-env-PASSWORD
qu"ote\sl<ash-PASSWORD 100%
line-one-PASSWORD
registry-PASSWORD
registry-auth-PASSWORD
header-PASSWORD
mirror-PASSWORD
static-pod-PASSWORD
flag-PASSWORD
flag-apart-PASSWORD
spec-env-PASSWORD
shell-script-PASSWORD
dropin-PASSWORD
kubeconfig-PASSWORD
joined-PASSWORD
status-PASSWORD
somebody-elses-PASSWORD
manager-PASSWORD
kubelet-file-PASSWORD
hosts-toml-PASSWORD
AKIAIOSFODNN7EXAMPLE
k8s-aws-v1.aHR0cHM6Ly9zdHMudXMtd2VzdC0yLmFtYXpvbmF3cy5jb20v
cmdline-PASSWORD
END
cat >"$tmp/userdata" <<'END'
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: c, apiServerEndpoint: "https://A1.gr7.us-west-2.eks.amazonaws.com", certificateAuthority: Y2E=, cidr: 10.100.0.0/16}
  featureGates: {InstanceIdNodeName: true}
  kubelet:
    config:
      maxPods: 42
      staticPodURLHeader: {X-Key: [static-pod-PASSWORD]}
    flags: [--storage-driver-password=flag-PASSWORD --v=2, --manifest-url-header, flag-apart-PASSWORD]
  containerd:
    baseRuntimeSpec: {process: {env: [PATH=/usr/bin, SPEC_SECRET=spec-env-PASSWORD]}}
    config: |
      [plugins."io.containerd.cri.v1.images".registry.headers]
      X-Meta = ["header-PASSWORD"]
      [plugins."io.containerd.cri.v1.images".registry.mirrors."docker.io"]
      endpoint = ["https://me:mirror-PASSWORD@mirror.example"]
      [plugins."io.containerd.cri.v1.images".registry.configs."r.example".auth]
      username = "me"
      password = "registry-PASSWORD"
      auth = "AUTH"
  instance:
    environment:
      default: {HTTPS_PROXY: "http://proxyuser:pr0xy-PASSWORD@proxy.example:3128", NO_PROXY: "localhost,169.254.169.254"}
      kubelet: {API_TOKEN: kubelet-env-PASSWORD, ODD: "qu\"ote\\sl<ash-PASSWORD 100%", VERBOSE: "true"}
      a-service-with-a-name-that-is-long-enough-to-make-the-path-of-its-file-longer-than-a-tar-header-can-hold: {A: line-one-PASSWORD}
--B
Content-Type: text/x-shellscript

#!/bin/sh
curl -u me:shell-script-PASSWORD https://example
--B--
END
sed -i "s/AUTH/$(printf me:registry-auth-PASSWORD | base64)/" "$tmp/userdata"
mock --imds "$fixtures/imds-m5" --user-data "$tmp/userdata"
mkdir -p "$root/etc/eks/nodeadm.d" "$root/run/eks/nodeadm"
printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {instance: {environment: {containerd: {X: dropin-PASSWORD}}}}\n' >"$root/etc/eks/nodeadm.d/x.yaml"
init() { "$nodestrap" init --skip devices --skip run --root "$root" --config-source imds://user-data --config-source file:///etc/eks/nodeadm.d/ --config-cache /run/eks/nodeadm/config.json; }
ok 'init writes the files' init
ok 'init records its progress while it runs' eval '[ "$(awk -F"\t" "NF != 4 || !(\$1 > 0) || !(\$2 > 0) { print 1 } { seen[\$3]++ } END { print seen[\"start\"], seen[\"end\"], (seen[\"done\"] > 5), \$3, \$4 }" "$root/run/nodestrap/progress")" = "1 1 1 end ok" ]'
ok 'the file of the progress has mode 640' test "$(stat -c %a "$root/run/nodestrap/progress")" = 640
ok 'init keeps the text of its plan' grep -q 'write-file */etc/containerd/config.toml' "$root/run/nodestrap/plan-config.txt"

# Files and secrets of other programs.
cat >"$tmp/bin/journalctl" <<END
#!/bin/sh
echo "\$*" >>"$tmp/asked"
END
cat >>"$tmp/bin/journalctl" <<'END'
cat <<'LINES'
2026-01-01T00:00:00Z host kubelet[1]: FLAG: --cloud-token="flag-PASSWORD" and flag-apart-PASSWORD
2026-01-01T00:00:00Z host containerd[1]: proxyconnect http://proxyuser:pr0xy-PASSWORD@proxy.example:3128, pr0xy%2DPASSWORD, "kubelet-env-PASSWORD"
2026-01-01T00:00:00Z host containerd[1]: {"msg":"qu\"ote\\sl\u003cash-PASSWORD 100%","x":"qu\"ote\\sl<ash-PASSWORD 100%"}
2026-01-01T00:00:00Z host containerd[1]: > Authorization: Basic bWU6cmVnaXN0cnktUEFTU1dPUkQ=
2026-01-01T00:00:00Z host containerd[1]: bWU6cmVnaXN0cnktYXV0aC1QQVNTV09SRA== registry-auth-PASSWORD header-PASSWORD
2026-01-01T00:00:00Z host aws[1]: key AKIAIOSFODNN7EXAMPLE token k8s-aws-v1.aHR0cHM6Ly9zdHMudXMtd2VzdC0yLmFtYXpvbmF3cy5jb20v
2026-01-01T00:00:00Z host nodestrap[1]: the line that stays
LINES
END
chmod +x "$tmp/bin/journalctl"
boot=$(cat "$root/proc/sys/kernel/random/boot_id")
printf '{"bootId": "%s", "verdict": "failed", "text": "Get https://me:joined-PASSWORD@x: 401", "details": ["Authorization: Bearer joined-PASSWORD", "{\\"token\\":\\"joined-PASSWORD\\"}"]}' "$boot" >"$root/run/nodestrap/joined.json"
python3 - "$root/run/nodestrap/status.json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
d['runs']['config']['warnings'].append('password=status-PASSWORD and AKIAIOSFODNN7EXAMPLE')
json.dump(d, open(sys.argv[1], 'w'))
END
sed -i 's|^    user:|    user:\n      token: kubeconfig-PASSWORD|' "$root/var/lib/kubelet/kubeconfig"
mkdir -p "$root/etc/systemd/system/other.service.d" "$root/etc/containerd/config.d" "$root/etc/kubernetes/kubelet/config.json.d"
printf '[Service]\nEnvironment="A=somebody-elses-PASSWORD" B=2\nEnvironment=C=1 \\\n  "D=manager-PASSWORD"\nNice=5\n' >"$root/etc/systemd/system/other.service.d/x.conf"
printf '{"apiVersion": "kubelet.config.k8s.io/v1beta1", "staticPodURLHeader": {"A": ["kubelet-file-PASSWORD"]}}' >"$root/etc/kubernetes/kubelet/config.json.d/90-other.conf"
printf '[host."https://x".header]\nauthorization = "Basic hosts-toml-PASSWORD"\n' >"$root/etc/containerd/config.d/x.toml"
printf 'root=/dev/nvme0n1 api_token=cmdline-PASSWORD quiet\n' >"$root/proc/cmdline"

ok 'status --bundle succeeds with secrets in files and logs' bundle
ok 'only the owner may read the bundle' test "$(stat -c %a "$tmp/b.tar.gz")" = 600
ok 'the bundle can be unpacked where init ran' unpack
ok 'the bundle has no secret in any form' no_secret
for name in about.txt errors.txt status.json status.svg progress metrics.prom joined.json facts.json config.json manifest.json plan-config.txt listing.txt journal/nodestrap.txt journal/kernel.txt \
        files/etc/kubernetes/kubelet/config.json files/etc/eks/kubelet/environment files/var/lib/kubelet/kubeconfig files/etc/containerd/config.toml \
        files/etc/containerd/base-runtime-spec.json files/etc/nodestrap/environment/default files/proc/meminfo machine/block.txt; do
        ok "the bundle has $name" has $name
done
ok 'the bundle has a path that is longer than a tar header holds' has files/etc/systemd/system/a-service-with-a-name-that-is-long-enough-to-make-the-path-of-its-file-longer-than-a-tar-header-can-hold.service.d/environment.conf
ok 'the bundle has the verdict' json status.json 'd["verdict"] == "unfinished" and d["code"] == "OK" and d["planId"].startswith("sha256:")'
ok 'the bundle has the result of the join, without its password' json joined.json 'd["verdict"] == "failed" and "(hidden)@x" in d["text"]'
ok 'config.json shows the settings and hides their secrets' json config.json 'd["spec"]["kubelet"]["config"]["maxPods"] == 42 and d["spec"]["instance"]["environment"]["kubelet"] == {"API_TOKEN": "(hidden)", "ODD": "(hidden)", "VERBOSE": "(hidden)"}'
ok 'config.json shows the TOML in it with a hidden password' json config.json '"password = \x27(hidden)\x27" in d["spec"]["containerd"]["config"]'
ok 'facts.json hides the user data and shows other answers' json facts.json 'd["answers"]["user-data"] == "(hidden)" and any("m5" in (v or "") for v in d["answers"].values())'
ok 'a drop-in keeps the names of its variables' diff "$tmp/x/files/etc/systemd/system/other.service.d/x.conf" - < <(printf '[Service]\nEnvironment=A=(hidden)\nEnvironment=B=(hidden)\nEnvironment=C=(hidden)\nEnvironment=D=(hidden)\nNice=5\n')
ok 'a file without secrets keeps its bytes' cmp "$tmp/x/files/etc/eks/image-credential-provider/config.json" "$root/etc/eks/image-credential-provider/config.json"
ok 'config.toml of containerd can be parsed and hides only secrets' python3 - "$tmp/x/files/etc/containerd/config.toml" <<'END'
import sys, tomllib
d = tomllib.load(open(sys.argv[1], 'rb'))
i = d['plugins']['io.containerd.cri.v1.images']
assert i['registry']['configs']['r.example']['auth']['password'] == '(hidden)' and i['registry']['headers']['X-Meta'] == ['(hidden)'], i
assert d['root'] == '/var/lib/containerd', d
END
ok 'the runtime spec keeps its limits' tells files/etc/containerd/base-runtime-spec.json RLIMIT_NOFILE
ok 'manifest.json hides the digests of files that only root may read' json manifest.json '{f["path"]: f["sha256"] for f in d["files"]}["/etc/nodestrap/environment/default"] == "(hidden)"'
ok 'manifest.json shows the digests of other files' json manifest.json 'len({f["path"]: f["sha256"] for f in d["files"]}["/etc/kubernetes/pki/ca.crt"]) == 64'
ok 'a log keeps its lines without secrets' tells journal/kubelet.txt 'nodestrap[1]: the line that stays'
ok 'a line keeps its text around a secret' tells files/proc/cmdline 'root=/dev/nvme0n1 api_token=(hidden) quiet'
ok 'each journalctl has --reverse, so that a cut removes old lines' eval '! grep -v -e --reverse "$tmp/asked"'
ok 'journalctl of cloud-final has a --grep for lines of cloud-init itself' grep -q -e '-u cloud-final --grep=^(' "$tmp/asked"
ok 'the bundle does not have the configuration source' test ! -e "$tmp/x/files/etc/eks/nodeadm.d/x.yaml"
ok 'listing.txt names the configuration source' tells listing.txt 'x.yaml'
ok 'stderr has a line with the size of the bundle' says 'b.tar.gz: '
ok 'stdout is empty' test ! -s "$tmp/out"

# ---- fewer sources of secrets ----
cp -a "$root" "$tmp/whole"
rm "$root/run/eks/nodeadm/config.json"
ok 'status --bundle succeeds without the cache' eval 'bundle && unpack'
ok 'the bundle has no secret without the cache, since the sources name them' no_secret
sed -i 's/^kind: NodeConfig/kind: NodeConfig\nnonsense: [1/' "$root/etc/eks/nodeadm.d/x.yaml"
ok 'status --bundle succeeds with a source that cannot be parsed' eval 'bundle && unpack'
ok 'the bundle has no secret beside a source that cannot be parsed' no_secret
rm "$root/run/nodestrap/facts.json"
echo '{"broken' >"$root/etc/kubernetes/kubelet/config.json"
echo 'broken = [' >"$root/etc/containerd/config.toml"
ok 'status --bundle succeeds with files that cannot be parsed' eval 'bundle && unpack'
ok 'errors.txt names a file for root only whose secrets are not known' tells errors.txt '/etc/containerd/base-runtime-spec.json is readable only by root, and its secrets are not known; left out'
ok 'the bundle leaves out files that cannot be parsed' test ! -e "$tmp/x/files/etc/kubernetes/kubelet/config.json" -a ! -e "$tmp/x/files/etc/containerd/config.toml"
ok 'errors.txt names a file that cannot be parsed' tells errors.txt 'config.json cannot be parsed, so its secrets are not known'
for f in status.json joined.json facts.json; do echo '[' >"$root/run/nodestrap/$f"; done
echo '{"files": [1, {"path": 3}, {"path": "/../../etc/passwd"}, {"path": "/etc/eks"}]}' >"$root/var/lib/nodestrap/manifest.json"
ok 'status --bundle succeeds with damaged reports' eval 'bundle && unpack'
ok 'the bundle has no file from outside the root' eval '! grep -rqs ^root: "$tmp/x/files"'
rm -rf "$root" && mkdir "$root"
ok 'status --bundle succeeds with an empty root' eval 'bundle && unpack && has about.txt'
rm -rf "$root" && mv "$tmp/whole" "$root"

# ---- the file ----
ok 'a second bundle replaces the first' eval 'echo old >"$tmp/b.tar.gz"; bundle && unpack'
ok 'status --bundle writes to stdout' eval '"$nodestrap" status --root "$root" --bundle - 2>/dev/null | cat >"$tmp/b.tar.gz" && unpack'
refused() { # STATUS WORDS FILE
        local rc
        "$nodestrap" status --root "$root" --bundle "$3" >"$tmp/out" 2>"$tmp/err"; rc=$?
        [ $rc = "$1" ] && says "$2" || { echo "exit $rc"; false; }
}
ln -s b.tar.gz "$tmp/link"; mkdir "$tmp/directory"
rm "$tmp/asked"; export PATH=$tmp/bin:$PATH
ok 'status --bundle refuses a link' refused 40 'link cannot be written: it is a link, or in a linked directory' "$tmp/link"
ok 'status --bundle refuses a directory' refused 40 'directory cannot be written: Is a directory' "$tmp/directory"
ok 'status --bundle refuses a path in a missing directory' refused 40 'b.tar.gz cannot be written: No such file or directory' "$tmp/nowhere/b.tar.gz"
ok 'status --bundle runs no program before it refuses a path' test ! -e "$tmp/asked"
mkfifo "$tmp/fifo"
ok 'status --bundle refuses a pipe without a reader' refused 40 'fifo cannot be written: No such device or address' "$tmp/fifo"
ok 'status --bundle writes to a pipe with a reader' eval 'exec 3<>"$tmp/fifo" 4<"$tmp/fifo"; timeout 60 cat <&4 >"$tmp/b.tar.gz" 3>&- & "$nodestrap" status --root "$root" --bundle "$tmp/fifo" 2>"$tmp/err"; rc=$?; exec 3>&- 4<&-; wait $!; [ $rc = 0 ] && unpack'
ok 'status --bundle refuses an empty name' refused 2 '--bundle takes the name of a file' ''
ok 'status refuses --output together with --bundle' eval '"$nodestrap" status --root "$root" --output json --bundle "$tmp/b.tar.gz" 2>"$tmp/err"; [ $? = 2 ] && says "leave out --output"'
ok 'plan refuses --bundle' eval '"$nodestrap" plan --bundle x 2>"$tmp/err"; [ $? = 2 ] && says "plan does not take --bundle"'
if [ -n "${OWN_MOUNTS-}" ]; then
        mkdir "$tmp/full" && mount -t tmpfs -o size=4k none "$tmp/full" && head -c 4096 /dev/zero >"$tmp/full/filler"
        ok 'status --bundle fails on a full disk' refused 40 'b.tar.gz cannot be written: No space left on device' "$tmp/full/b.tar.gz"
        ok 'status --bundle leaves no file on a full disk' test "$(ls -A "$tmp/full")" = filler
        umount "$tmp/full"
fi
if [ "$(id -u)" = 0 ]; then
        chmod 755 "$tmp"; mkdir -m 777 "$tmp/theirs"; cp "$nodestrap" "$tmp/nodestrap"
        ok 'status --bundle succeeds without root' setpriv --reuid 65534 --regid 65534 --clear-groups "$tmp/nodestrap" status --root "$root" --bundle "$tmp/theirs/b.tar.gz"
        mkfifo "$tmp/theirs/fifo"; chown 65534 "$tmp/theirs/fifo"; exec 3<>"$tmp/theirs/fifo"; ln -s /dev/null "$tmp/theirs/null"
        ok "root does not write to a pipe of another user" refused 40 'fifo cannot be written: Operation not permitted' "$tmp/theirs/fifo"
        ok 'root does not write to a device behind a link' refused 40 'null cannot be written: Operation not permitted' "$tmp/theirs/null"
        exec 3>&-
        ok 'root writes to a device in /dev' "$nodestrap" status --root "$root" --bundle /dev/null
        ok 'errors.txt names the files that another user may not read' eval 'mv "$tmp/theirs/b.tar.gz" "$tmp/b.tar.gz"; unpack && tells errors.txt "facts.json: /run/nodestrap/facts.json: Permission denied" && tells errors.txt "environment/default cannot be read: Permission denied"'
fi

# ---- what does not answer ----
# The open of this file waits for a permission that never comes (fanotify(7)), as on a disk that is gone.
cat >"$tmp/hold.py" <<'END'
import ctypes, os, signal, sys
c = ctypes.CDLL(None, use_errno=True)
fd = c.fanotify_init(4, os.O_RDONLY)    # FAN_CLASS_CONTENT
if fd < 0 or c.fanotify_mark(fd, 1, ctypes.c_uint64(0x10000), -100, sys.argv[1].encode()) < 0:  # FAN_MARK_ADD, FAN_OPEN_PERM
    sys.exit('fanotify: ' + os.strerror(ctypes.get_errno()))
print('held', flush=True)
signal.pause()
END
echo held >"$root/etc/fstab"
exec 4< <(exec python3 "$tmp/hold.py" "$root/etc/fstab" 2>&1)
holder=$!
if read -r said <&4 && [ "$said" = held ]; then
        ok 'status --bundle ends if a file never opens' timeout 60 "$nodestrap" status --root "$root" --bundle "$tmp/b.tar.gz"
        ok 'errors.txt names a file that never opens' eval 'unpack && tells errors.txt "/etc/fstab cannot be read: Timer expired"'
        ok 'the bundle has other files beside one that never opens' has files/proc/meminfo
        kill "$holder"
fi
exec 4<&-

# ---- logs ----
mkdir -p "$root/var/log"
python3 -c 'print("\n".join(f"line {i}" for i in range(300000)))' >"$root/var/log/fabricmanager.log"
printf 'short\n' >"$root/var/log/nvidia-imex.log"
ok 'status --bundle succeeds with a log of more than 1 MiB' eval 'bundle && unpack'
ok 'a long log keeps its newest lines' [ "$(tail -n 1 "$tmp/x/files/var/log/fabricmanager.log")" = 'line 299999' ]
ok 'a long log keeps 1 MiB, from the start of a line' eval 'head -n 1 "$tmp/x/files/var/log/fabricmanager.log" | grep -qxE "line [0-9]{6}" && [ "$(wc -c <"$tmp/x/files/var/log/fabricmanager.log")" -gt 1048560 ]'
ok 'errors.txt says that a long log has only its last 1 MiB' tells errors.txt 'fabricmanager.log: only its last 1 MiB'
ok 'a short log is whole' [ "$(cat "$tmp/x/files/var/log/nvidia-imex.log")" = short ]
ok 'errors.txt does not name a short log' eval '! tells errors.txt nvidia-imex.log >/dev/null'

# ---- programs ----
if [ "${NODESTRAP_LONG-}" = 1 ]; then
        printf '#!/bin/sh\nexec sleep 1000\n' >"$tmp/bin/journalctl"
        ok 'status --bundle ends if programs hang' eval 'bundle && unpack'
        ok 'errors.txt names a program for which no time was left' tells errors.txt 'journal/kernel.txt: journalctl did not run: no time left'
fi
printf '#!/bin/sh\nhead -c 20000000 /dev/zero | tr "\\0" x\nprintf flag-PASS\n' >"$tmp/bin/journalctl"
ok 'status --bundle ends if a log never ends' eval 'bundle && unpack'
ok 'errors.txt says that an endless log has only its first 8 MiB' tells errors.txt 'only its first 8 MiB'
done_testing
