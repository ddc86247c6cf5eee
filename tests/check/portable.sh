#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The static program for laptops (make portable) runs below a root with no other file. It prints byte for byte what nodestrap prints, and
# refuses the commands of nodes. tests/oracles/image.py, containerd and skopeo judge the container image. arm64/portable.sh has the other
# architecture.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2016,SC2317  # tmp and here are its; what eval and sh get is expanded there
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") top=$(realpath "$here/../..") build=${nodestrap%/*}
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
none() { echo "1..0 # SKIP $1"; exit; }
[ -z "${NODESTRAP_TRANSLATED-}" ] && [ -e "$build/libnodestrap.a" ] || none 'no build for this machine'
! ldd "$nodestrap" 2>/dev/null | grep -qE 'lib(a|ub)san' || none 'a static program has no sanitizers'
[ "$(id -u)" = 0 ] || none 'chroot needs root'
made=$tmp/made empty=$tmp/empty; mkdir "$empty"
make_it() { env -u MAKEFLAGS -u MAKELEVEL make -s -C "$top" O="$build" PORTABLE_DIR="$made" "$@"; }
begin=$EPOCHREALTIME
ok 'make portable succeeds' make_it portable
echo "# in $(awk "BEGIN { print $EPOCHREALTIME - $begin }") s"
static=$(echo "$made"/nodestrap-linux-*)
[ -x "$static" ] || { done_testing; exit; }
echo "# $(stat -c %s "$static") bytes"

# ---- no library, and nothing else ----
no_libraries() { ! readelf -dlW "$static" | grep -E 'NEEDED|INTERP'; }
ok 'the portable program needs no library and no loader' no_libraries
ok 'the portable program is position-independent' eval 'readelf -hW "$static" | grep -q "Type: *DYN"'
cp "$static" "$empty/nodestrap"
# full and alone WORD...: nodestrap, and the static program below the empty root. Both find the files by the same names.
full() { (cd "$empty" && exec env -i "$nodestrap" "$@"); }
alone() { env -i PATH="$PATH" chroot "$empty" /nodestrap "$@"; }
said() { "$@" 2>&1; echo "exit $?"; }
same() { diff <(said full "$@") <(said alone "$@"); }
machine=(--kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04)
plans() { local file type
        for file in "$empty"/*.userdata; do
                type=$(sed -nE 's/^#.*--instance-type ([a-z0-9.-]*[a-z0-9]).*/\1/p' "$file" | tail -1) file=${file##*/}
                same plan -c "$file" --instance-type "$type" "${machine[@]}" && same plan -c "$file" --instance-type "$type" "${machine[@]}" --output json || { echo "$file"; return 1; }
                alone plan -c "$file" --instance-type "$type" >/dev/null 2>&1 || { echo "$file has no plan"; return 1; }
        done; }
cp "$top"/conf/examples/*.userdata "$empty"
ok 'both programs print the same plan for each example' plans
ok 'both programs print the same for an unknown instance type' same plan -c plain.userdata --instance-type p5.44xlarge
ok 'both programs print the same table of all instance types' same plan -c p5-48xlarge.userdata --matrix all "${machine[@]}"
old() { full plan -c g6-xlarge.userdata --instance-type g6.xlarge --output json >"$empty/old.json"; same plan -c g6-xlarge.userdata --instance-type g6.4xlarge --diff old.json; }
ok 'both programs print the same difference between two instance types' old
written() { full plan -c p5-48xlarge.userdata --instance-type p5.48xlarge --write-to full >/dev/null && alone plan -c p5-48xlarge.userdata --instance-type p5.48xlarge --write-to alone >/dev/null && diff -r "$empty/full" "$empty/alone"; }
ok 'both programs write the same files of a plan' written
ok 'each case of tests/cases passes with the portable program' env NODESTRAP="$static" "$here/../check/cases.sh"
ok 'the portable program accepts and refuses the user-data cases as expected' python3 "$here/../oracles/userdata.py" --nodestrap "$static"
checks() { local file name; mkdir "$empty/cases"
        for file in "$here"/../userdata/cases/*/userdata; do name=${file%/userdata} name=${name##*/}; cp "$file" "$empty/cases/$name"; done
        for file in "$empty"/cases/*; do same config check "cases/${file##*/}" || { echo "$file"; return 1; }; done
        local all=("$empty"/cases/*); all=("${all[@]#"$empty/"}")
        same config check --output json "${all[@]}" && same config check --strict "${all[@]}" && [ "${#all[@]}" -gt 100 ]; }
ok 'both programs print the same config check for each user-data case, alone and together' checks
sarif() { alone config check --output sarif cases/mime-bom plain.userdata | python3 -c 'import json, sys; json.load(sys.stdin)'; }
ok 'config check --output sarif of the portable program prints JSON' sarif
ok 'both programs print the same config dump' same config dump -c p6e-gb200.userdata
ok 'both programs print the same config schema' same config schema
signs() { openssl genpkey -algorithm ed25519 -out "$empty/key.pem" 2>/dev/null && openssl pkey -in "$empty/key.pem" -pubout -out "$empty/key.pub" && chmod 600 "$empty/key.pem" &&
        alone config sign -k key.pem -c plain.userdata --serial 5 -o signed && full config verify -k key.pub -c signed && same config verify -k key.pub -c signed &&
        sed -i 's/^\( *\)name: .*/\1name: other/' "$empty/signed" && same config verify -k key.pub -c signed && ! alone config verify -k key.pub -c signed 2>/dev/null; }
if openssl genpkey -algorithm ed25519 -out "$tmp/any" 2>/dev/null; then ok 'nodestrap accepts a signature of the portable program, and both refuse a changed file' signs; else skip 'nodestrap accepts a signature of the portable program' 'no openssl with Ed25519 here'; fi
printf 'openssl_conf = start\n[start]\nproviders = none\n[none]\nnull = null_sect\n[null_sect]\nactivate = 1\n' >"$tmp/null"
other() { ! OPENSSL_CONF=$tmp/null "$nodestrap" plan -c "$empty/plain.userdata" --instance-type m5.large >/dev/null 2>&1 &&
        OPENSSL_CONF=$tmp/null "$static" plan -c "$empty/plain.userdata" --instance-type m5.large | diff - <(full plan -c plain.userdata --instance-type m5.large); }
ok 'the portable program ignores openssl.cnf' other

# ---- what the package has beside the program ----
mkdir -p "$tmp/installed/usr/lib/nodestrap/examples"; cp "$top"/conf/examples/{types,*.userdata} "$tmp/installed/usr/lib/nodestrap/examples/"
awk -f "$top/conf/explain.awk" "$top/debian/nodestrap-codes.7" "$top/debian/NodeConfig.5" >"$tmp/installed/usr/lib/nodestrap/explain"
installed() { diff <(said full "$@" --root "$tmp/installed") <(said alone "$@"); }
examples() { local type; for type in $(sed 's/,.*//; /^#/d' "$top/conf/instance-types.csv" | grep '\.') m5.large p5.44xlarge; do installed config example "$type" || { echo "$type"; return 1; }; done; }
ok 'both programs print the same config example for each instance type' examples
explained() { local word; for word in EFABRIC fabric-gate hugePages.mode spec.kubelet.flags EFABRICK nothing; do installed explain "$word" || return; done; }
ok 'both programs explain codes, keys and unknown words the same way' explained

# ---- an image of a machine ----
ok 'image.sh makes an image of a machine' "$here/../fakes/image.sh" "$empty/image"
looks() { alone doctor --root image --instance-type p5.48xlarge >"$tmp/out" 2>&1 && same doctor --root image --instance-type p5.48xlarge && same doctor --root image --output json; }
ok 'doctor --root prints the same for an image, as text and as JSON' looks
lacks_kubelet() { rm "$empty/image/usr/bin/kubelet" && same doctor --root image --instance-type p5.48xlarge && ! alone doctor --root image --instance-type p5.48xlarge >/dev/null 2>&1; }
ok 'doctor --root fails the same way for an image without kubelet' lacks_kubelet
of_image() { cp "$empty/p5-48xlarge.userdata" "$empty/image/u" && same plan --root image -c file:///u --instance-type p5.48xlarge --show-diff && alone plan --root image -c file:///u --instance-type p5.48xlarge >/dev/null 2>&1; }
ok 'plan --root --show-diff prints the same for an image' of_image

# ---- what needs a node ----
refuses() { local word; for word in init 'help init' 'init --dry-run' token wait send-events status udev-net-manager boot-hook; do
        # shellcheck disable=SC2086  # words
        [ "$(said alone $word)" = "nodestrap: failed (2 EUSAGE) at start: $(sed 's/help //; s/ --.*//' <<<"$word") is not in this build: install the package on the node"$'\nexit 2' ] || { said alone "$word"; return 1; }
done; }
ok 'a node command fails with EUSAGE and says to install the package' refuses
lists() { alone help >"$tmp/help"; ! grep -E '^  (init|token|wait|send-events|status|udev-net-manager|boot-hook) ' "$tmp/help" && diff <(full help | grep -E '^  (plan|doctor|config|explain|help|version)') <(grep '^  [a-z]' "$tmp/help" | grep -vE '^  nodestrap '); }
ok 'help lists all commands except the node commands' lists
ok 'the error for an unknown command suggests no node command' eval '[ "$(alone statu 2>&1)" = "nodestrap: failed (2 EUSAGE) at start: command \"statu\" is not known; see nodestrap --help" ]'
ok 'both programs print the same version' same version
asks() { [ "$(said alone plan)" = "nodestrap: failed (12 ESOURCE) at source: no configuration: this build does not ask the metadata service; name a file: nodestrap plan -c file://PATH"$'\nexit 12' ] &&
        [ "$(said alone plan -c imds://user-data | tail -1)" = 'exit 12' ]; }
ok 'plan fails with ESOURCE if only the metadata service has the user data' asks

# ---- the image ----
ok 'make portable-image succeeds' make_it portable-image
image=$(echo "$made"/*-oci.tar) arch=${static##*-}
judged=$(python3 "$here/../oracles/image.py" "$image" "$arch=$static" 2>&1)
while IFS= read -r line; do
        case $line in
        1..*) ;;
        ok*|not\ ok*) count=$((count + 1)); sed -E "s/^((not )?ok) [0-9]+/\1 $count/" <<<"$line" ;;
        *) echo "# $line" ;;
        esac
done <<<"$judged"
ok 'image.py prints its plan of 18 tests' grep -q '^1\.\.18$' <<<"$judged"
echo "# $(stat -c %s "$image") bytes"
again() { mkdir -p "$tmp/again/deep" && install -m 700 "$static" "$tmp/again/deep/any-name" && touch -d 2001-02-03 "$tmp/again/deep/any-name" &&
        (umask 077; cd / && TZ=Asia/Tokyo LC_ALL=C.UTF-8 "$top/conf/packaging/image.sh" -o "$tmp/again" "$tmp/again/deep/any-name") && cmp "$image" "$tmp/again/${image##*/}"; }
ok 'image.sh makes the same bytes elsewhere, with another umask, time zone and mtime' again
dated() { SOURCE_DATE_EPOCH=86400 "$top/conf/packaging/image.sh" -o "$tmp/again" "$static" && tar -xOf "$tmp/again/${image##*/}" | grep -q '"created":"1970-01-02T00:00:00Z"'; }
ok 'image.sh takes the creation date from SOURCE_DATE_EPOCH' dated
ok 'image.sh refuses a file that is not a program, with a message' eval '! "$top/conf/packaging/image.sh" -o "$tmp/again" "$top/README.md" 2>"$tmp/err" && grep -q "^image.sh: " "$tmp/err"'
# As user 65534, in the folder that gets the files of the user.
mkdir "$tmp/layer"; python3 "$here/../oracles/image.py" "$image" --layer "$arch" "$tmp/layer"
cp "$top/conf/examples/p5-48xlarge.userdata" "$tmp/layer/work/user-data"; chmod 755 "$tmp" "$tmp/layer"
cp "$top/conf/examples/p5-48xlarge.userdata" "$empty/user-data"
contained() { diff <(env -i PATH="$PATH" unshare --root="$tmp/layer" --wd=/work --setuid=65534 --setgid=65534 /nodestrap "$@" 2>&1) <(full "$@" 2>&1); }
ok 'the program of the image layer prints the same plan as user 65534 in /work' contained plan -c user-data --instance-type p5.48xlarge
# Docker can keep its images in containerd.
if command -v containerd ctr >/dev/null; then
        printf 'version = 2\nroot = "%s/c/root"\nstate = "%s/c/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "%s/c.sock"\n' "$tmp" "$tmp" "$tmp" >"$tmp/containerd.toml"
        containerd -c "$tmp/containerd.toml" >"$tmp/containerd.log" 2>&1 & daemon=$!
        ctr() { command ctr -a "$tmp/c.sock" "$@"; }
        for _ in {1..100}; do ctr version >/dev/null 2>&1 && break; sleep 0.1; done
        imports() { ctr images import --snapshotter native --all-platforms "$image" && ctr images check --snapshotter native | grep -E "^docker.io/library/nodestrap:latest .* complete .* true$"; }
        ok 'containerd imports the image by its name and unpacks it' imports
        kill $daemon; wait $daemon 2>/dev/null
elif [ "${NODESTRAP_TEST_REQUIRE:-0}" != 0 ]; then ok 'containerd is installed' false
else skip 'containerd imports the image' 'no containerd here'; fi
if tools=$("$here/../tools/peers.sh" --cached skopeo bookworm skopeo libgpgme11 libassuan0 libdevmapper1.02.1 2>"$tmp/why"); then
        inspect() { LD_LIBRARY_PATH=$tools/usr/lib/$(uname -m)-linux-gnu:$tools/lib/$(uname -m)-linux-gnu "$tools/usr/bin/skopeo" inspect "$@"; }
        takes() { [ "$(inspect --format '{{.Architecture}} {{.Os}} {{index .Labels "org.opencontainers.image.title"}}' "$1:$image")" = "$arch linux nodestrap" ] &&
                inspect --config "$1:$image" | python3 -c 'import json, sys; c = json.load(sys.stdin)["config"]; sys.exit(c["User"] != "65534:65534" or c["Entrypoint"] != ["/nodestrap"])'; }
        ok 'skopeo reads the image as an OCI archive' takes oci-archive
        ok "skopeo reads the image as an archive of docker save" takes docker-archive
elif [ "${NODESTRAP_TEST_REQUIRE:-0}" != 0 ] && [ "${NODESTRAP_TEST_NO_BUILD:-0}" = 0 ]; then ok 'skopeo is available' eval 'cat "$tmp/why"; false'
else skip 'skopeo reads the image' "$(tail -1 "$tmp/why")"; fi
done_testing
