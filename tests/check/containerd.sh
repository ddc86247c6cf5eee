#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Does containerd take every setting that is planned? Each containerd here (tests/tools/containerds.sh) prints the file as it reads it
# (`config dump`), for comparison key by key. containerd ignores unknown keys, so its exit status proves nothing.
here=$(dirname "$(realpath "$0")")
tool=${HELPERS:-build/tests/helpers}/plan-tool
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

report() { # DESCRIPTION; the verdict is the last exit status
        local rc=$?
        n=$((n + 1))
        [ $rc = 0 ] && echo "ok $n - $1" || { echo "not ok $n - $1"; bad=1; }
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

compare() { # PLANNED DUMP VERSION
        python3 - "$1" "$2" "$3" <<'PY'
import sys, tomllib
planned, dump = (tomllib.load(open(f, 'rb')) for f in sys.argv[1:3])
# nodeadm writes them for every containerd 1.x; 1.6, which no image of EKS has any more, leaves out what it does not know.
SINCE_1_7 = ('plugins.io.containerd.grpc.v1.cri.enable_cdi', 'proxy_plugins.soci.exports.root') if sys.argv[3].startswith('1.6.') else ()
IMAGES, RUNTIME = ('plugins', 'io.containerd.cri.v1.images'), ('plugins', 'io.containerd.cri.v1.runtime')
CRI = ('plugins', 'io.containerd.grpc.v1.cri')
MOVED = {  # schema 2 → 3, longest first: containerd docs/containerd-2.0.md
    CRI + ('sandbox_image',): IMAGES + ('pinned_images', 'sandbox'),
    CRI + ('containerd', 'discard_unpacked_layers'): IMAGES + ('discard_unpacked_layers',),
    CRI + ('containerd', 'snapshotter'): IMAGES + ('snapshotter',),
    CRI + ('containerd', 'disable_snapshot_annotations'): IMAGES + ('disable_snapshot_annotations',),
    CRI + ('registry',): IMAGES + ('registry',),
    CRI + ('max_concurrent_downloads',): IMAGES + ('max_concurrent_downloads',),
    CRI: RUNTIME,
}
def leaves(table, at=()):
    for key, value in table.items():
        if isinstance(value, dict) and value: yield from leaves(value, at + (key,))
        else: yield at + (key,), value
def place(path):
    if planned['version'] == dump['version']: return path
    old = next((p for p in MOVED if path[:len(p)] == p), ())
    return MOVED.get(old, ()) + path[len(old):]
bad = count = 0
for path, want in leaves(planned):
    if path == ('version',): continue
    at = dump
    for key in place(path): at = at.get(key) if isinstance(at, dict) else None
    if not at and place(path)[-2:] == ('cni', 'bin_dir'):      # 2.1 makes a list of it
        at = (dump['plugins'][RUNTIME[1]]['cni'].get('bin_dirs') or [None])[0]
    count += 1
    if at != want and not (at is None and '.'.join(path) in SINCE_1_7):
        bad = 1
        print('#', '.'.join(path), 'is', repr(at), 'and not', repr(want))
print('#', count, 'settings')
sys.exit(bad or count < 10)
PY
}

python3 -c 'import tomllib' 2>/dev/null || { echo "1..1"; echo "ok 1 - containerd # SKIP python3 with tomllib (3.11) is not there"; exit 0; }
user2='[plugins."io.containerd.grpc.v1.cri"]
max_concurrent_downloads = 17
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
endpoint = ["https://mirror.example"]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]
runtime_type = "io.containerd.kata.v2"
[metrics]
address = "127.0.0.1:1338"'
user3='[plugins."io.containerd.cri.v1.images"]
max_concurrent_downloads = 17
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.kata]
runtime_type = "io.containerd.kata.v2"
[metrics]
address = "127.0.0.1:1338"'

check() { # CONTAINERD VERSION NAME TOML OPTION...
        local containerd=$1 version=$2 name=$3 toml=$4 dir="$tmp/$2-$3"
        shift 4
        mkdir "$dir"
        "$tool" 1.33.4 "$version" "$dir" "$@" <<<"$toml" && "$containerd" --config "$dir/etc/containerd/config.toml" config dump >"$dir/dump" 2>"$dir/errors" \
                && compare "$dir/etc/containerd/config.toml" "$dir/dump" "$version"
        report "containerd $version takes every setting: $name" || sed 's/^/# /' "$dir/errors"
}

seen=' '
mapfile -t containerds < <("$here/../tools/containerds.sh" 2>"$tmp/why")
for containerd in "${containerds[@]}"; do
        version=$("$containerd" --version | awk '{ print $3 }') version=${version#v} version=${version%%[~+-]*}
        case $seen in *" $version "*) continue;; esac
        seen+="$version "
        check "$containerd" "$version" plain ""
        check "$containerd" "$version" nvidia "" nvidia
        check "$containerd" "$version" soci "" soci
        check "$containerd" "$version" "user's schema 2" "$user2" toml
        case $version in 1.*) ;; *) check "$containerd" "$version" "user's schema 3" "$user3" toml;; esac
done
for major in 1 2; do
        case $seen in
        *" $major."*) ;;
        *)      if [ "${NODESTRAP_TEST_REQUIRE:-0}" = 0 ]; then skip "containerd $major" "no containerd $major here: $(tail -1 "$tmp/why")"
                else false; report "containerd $major: $(tail -1 "$tmp/why")"; fi;;
        esac
done
echo "1..$n"
exit $bad
