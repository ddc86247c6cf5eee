#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `nodestrap doctor` as the builder of an image calls it: its verdicts on roots that are well or lack something, and its exit status. It
# makes no request and changes nothing.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp, here and imds are its
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
image() { # DIR [ARCH [trees]]: a good image
        "$here/../fakes/image.sh" "$@" >"$tmp/image.log" 2>&1 || { cat "$tmp/image.log"; false; }
}
doctor() { # STATUS OPTION...: on the image of $root, ends with STATUS
        local status=$1 rc; shift
        "$nodestrap" doctor --root "$root" "$@" >"$tmp/out" 2>"$tmp/err"; rc=$?
        [ $rc = "$status" ] || { echo "exit $rc"; cat "$tmp/out" "$tmp/err"; return 1; }
}
doctor_at() { local root=$1; doctor 0 --instance-type g6.4xlarge --output json; }
check_is() { # VERDICT CODE SUBJECT [KEY=VALUE...]: is among the checks of the JSON
        python3 - "$tmp/out" "$@" <<'END'
import json, sys
checks = json.load(open(sys.argv[1]))["checks"]
verdict, code, subject = sys.argv[2:5]
found = [c for c in checks if (c["verdict"], c["code"], c["subject"]) == (verdict, code, subject)]
assert len(found) == 1, [c for c in checks if c["verdict"] != "ok" or c["subject"] == subject]
for word in sys.argv[5:]:
    key, value = word.split("=", 1)
    assert value in str(found[0].get(key)), found[0]
END
}
lacks_check() { # VERDICT...: none of the checks is so
        python3 -c 'import json, sys; bad = [c for c in json.load(open(sys.argv[1]))["checks"] if c["verdict"] in sys.argv[2:]]; assert not bad, bad' "$tmp/out" "$@"
}
types_are() { python3 -c 'import json, sys; t = json.load(open(sys.argv[1]))["types"]; assert eval(sys.argv[2]), t' "$tmp/out" "$1"; }
in_out() { grep -qF -- "$1" "$tmp/out" || { cat "$tmp/out"; false; }; }
first_line_is() { grep -m1 '^[a-z]' <(sed 1,/^$/d "$tmp/out") | grep -qE -- "$1" || { cat "$tmp/out"; false; }; }
# Whatever is there: names, kinds, sizes, times, owners, contents.
tree() { (cd "$1" && find . -printf '%p %y %s %T@ %C@ %m %U %l\n' | sort && find . -type f -print0 | sort -z | xargs -0r sha256sum); }
matches_schema() {
        python3 - "$tmp/out" <<'END'
import json, sys, jsonschema
text = {"type": "string", "minLength": 1}
check = {"type": "object", "additionalProperties": False, "required": ["verdict", "code", "subject"],
         "properties": {"verdict": {"enum": ["ok", "warning", "failed", "unknown"]}, "code": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
                        "subject": text, "found": text, "text": text, "step": text, "cause": {"type": "string", "pattern": "^E[A-Z0-9]+$"},
                        "types": {"type": "array", "minItems": 1, "uniqueItems": True, "items": text}},
         "if": {"properties": {"verdict": {"const": "ok"}}}, "else": {"required": ["text"]}}
image = {"type": "object", "additionalProperties": False, "required": ["running", "kernels"],
         "properties": {"running": {"type": "boolean"}, "kernels": {"type": "array", "items": text}, "arch": {"enum": ["x86_64", "arm64"]},
                        "kernel": text, "kubelet": text, "containerd": text, "driver": text}}
schema = {"type": "object", "additionalProperties": False,
          "required": ["version", "root", "verdict", "image", "types", "typesWhy", "sources", "counts", "checks"],
          "properties": {"version": text, "root": text, "verdict": {"enum": ["ok", "warning", "failed", "unknown"]}, "image": image, "typesWhy": text,
                         "types": {"type": "array", "minItems": 1, "items": text}, "sources": {"type": "array", "items": text},
                         "counts": {"type": "object", "required": ["ok", "warning", "failed", "unknown"]}, "checks": {"type": "array", "items": check}}}
document = json.load(open(sys.argv[1]))
jsonschema.validate(document, schema)
order = [("failed", "warning", "unknown", "ok").index(c["verdict"]) for c in document["checks"]]
assert order == sorted(order), order
for verdict, count in document["counts"].items():
    assert count == sum(c["verdict"] == verdict for c in document["checks"]), verdict
END
}

ok "the fixture makes an x86-64 image" image "$tmp/x86"
ok "the fixture makes an arm64 image" image "$tmp/arm" arm64
mock --listen 127.0.0.1:0                # records each request to the metadata service

# ---- a good image ----
root=$tmp/x86
tree "$root" >"$tmp/before"
ok "doctor succeeds on a good image" doctor 0 --instance-type p5.48xlarge --output json
ok "a good image has no failed check" lacks_check failed
ok "the JSON of a good image has the form that the manual says" matches_schema
ok "the JSON has the architecture of the image" grep -q '"arch": "x86_64"' "$tmp/out"
cp "$tmp/out" "$tmp/first"
ok "a second doctor succeeds on a good image" doctor 0 --instance-type p5.48xlarge --output json
ok "a second doctor prints the same" cmp "$tmp/first" "$tmp/out"
ok "doctor succeeds with a table as its output" doctor 0 --instance-type p5.48xlarge
ok "the table names a program that is well" in_out "mdadm"
ok "the table ends with the number of checks" grep -qE '^[0-9]+ checks: 0 failed' "$tmp/out"
ok "doctor succeeds with --development" doctor 0 --instance-type p5.48xlarge --development
ok "the table with --development says where a program is" grep -qE '^ok +program +mdadm +/usr/sbin/mdadm$' "$tmp/out"
ok "doctor succeeds with all types that the image claims to serve" doctor 0 --output json
ok "these types have the architecture and the drivers of the image, or need no driver" \
        types_are '{"p5.48xlarge", "g6.xlarge", "trn1.2xlarge", "m6id.8xlarge"} <= set(t) and "p6e-gb200.36xlarge" not in t and "dl1.24xlarge" not in t'
ok "these types do not have GPUs that the driver is too old for" types_are 'not [x for x in t if x.startswith("g7.")]'
ok "the JSON for all types has the form that the manual says" matches_schema
ok "doctor changes nothing in the image" diff "$tmp/before" <(tree "$root")

ln -s "$root" "$tmp/x"$'\xff'
ok "doctor succeeds with a path that is not UTF-8" doctor_at "$tmp/x"$'\xff'
ok "the JSON is valid with a path that is not UTF-8" matches_schema

# ---- an image that takes only signed configurations ----
trusted=/etc/nodestrap/trusted.d
(umask 022 && mkdir -p "$root$trusted" && openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out "$root$trusted/ops.pub")
ok "doctor succeeds with keys of signers" doctor 0 --instance-type p5.48xlarge --output json
ok "a check says that configurations must be signed" check_is ok trust "$trusted" "found=configurations must be signed"
echo none >"$root$trusted/ops.pub"
ok "doctor fails with an invalid key of a signer" doctor 70 --instance-type p5.48xlarge --output json
ok "the failed check names the file of the invalid key" check_is failed trust "$trusted" cause=ETRUST "text=$trusted/ops.pub: cannot be used as the key of a signer: it is not an Ed25519 public key in PEM, as openssl pkey -pubout writes it"
rm -r "$root/etc/nodestrap"

# ---- an image that lacks something ----
rm "$root/usr/sbin/mdadm"
ok "doctor fails without mdadm" doctor 70 --instance-type p5.48xlarge --output json
ok "the check of mdadm has the code and the step with which a boot would end" check_is failed program mdadm cause=ESTORAGETOOL step=create-raid:/dev/md/kubernetes text=mdadm
ok "the last line on stderr counts the failed checks" says "nodestrap: failed (70 EIMAGE) at doctor: 1 of "
ok "the last line on stderr names the failed check" says "checks failed: program mdadm: "
ok "doctor fails without mdadm with a table as its output" doctor 70 --instance-type p5.48xlarge
ok "the table begins with the failed check" first_line_is '^failed +program +mdadm$'
ok "doctor needs no mdadm for a type with one disk" doctor 0 --instance-type g6.4xlarge
ok "doctor takes several types, with commas or in several options" doctor 70 --instance-type g6.4xlarge,p5.48xlarge --instance-type p5e.48xlarge,g6.4xlarge --output json
ok "the JSON has each type once, in the order of the options" types_are 't == ["g6.4xlarge", "p5.48xlarge", "p5e.48xlarge"]'
ok "the failed check names only the types that need mdadm" check_is failed program mdadm "types=['p5.48xlarge', 'p5e.48xlarge']"
cat >"$tmp/plain.yaml" <<'END'
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: c, apiServerEndpoint: "https://a.example", certificateAuthority: YQ==, cidr: 10.100.0.0/16}
END
mkdir "$root/in"; cp "$tmp/plain.yaml" "$root/in/"
ok "doctor needs no mdadm for user data that leaves the disks alone" doctor 0 --instance-type p5.48xlarge -c file:///in/plain.yaml
sed 's/^spec:/&\n  instance: {localStorage: {strategy: RAID10}}/' "$tmp/plain.yaml" >"$root/in/raid10.yaml"
ok "doctor fails if a plan cannot be made" doctor 70 --instance-type g6.4xlarge,g6.xlarge -c file:///in/raid10.yaml --output json
ok "the failed check has the message of the planner" python3 -c 'import json, sys; c = json.load(open(sys.argv[1]))["checks"][0]
assert (c["verdict"], c["code"]) == ("failed", "plan") and "RAID10" in c["text"] + c["subject"] and c["cause"], c' "$tmp/out"
echo 'spec: [' >"$root/in/bad.yaml"
ok "doctor exits with 10 if the user data is invalid" doctor 10 -c file:///in/bad.yaml
ok "doctor exits with 12 if the user data is not in the image" doctor 12 -c file:///in/none.yaml
ok "the message says where doctor looked for the user data" says "/in/none.yaml: cannot be opened as a configuration source below $root: No such file"
rm -r "$root/in"

# ---- bootstrappers ----
root=$tmp/own
ok "the fixture makes an image for units that are not enabled" image "$root"
find "$root/etc/systemd/system" -name 'nodestrap-*' -delete
ok "doctor fails if the units of nodestrap are not enabled" doctor 70 --instance-type g6.4xlarge --output json
ok "a failed check names a unit that is not enabled" check_is failed unit-disabled nodestrap-run.service "text=systemctl enable nodestrap-run.service"
for unit in nodeadm-config nodeadm-run; do printf '[Service]\nExecStart=/usr/bin/nodeadm init\n' >"$root/usr/lib/systemd/system/$unit.service"; done
cp "$root/usr/bin/kubelet" "$root/usr/bin/nodeadm"
ok "doctor fails if neither nodeadm nor nodestrap is enabled" doctor 70 --instance-type g6.4xlarge --output json
ok "the check of the bootstrappers says that neither is enabled" check_is failed bootstrappers "nodeadm and nodestrap" cause=EINIT text=neither
enable() { ln -s "/usr/lib/systemd/system/$1" "$root/etc/systemd/system/multi-user.target.wants/$1"; }
enable nodeadm-config.service; enable nodeadm-run.service
ok "doctor fails if the units of nodeadm call a program of their own" doctor 70 --instance-type g6.4xlarge --output json
ok "the check of the bootstrappers says that these units do not call nodestrap" check_is failed bootstrappers "nodeadm and nodestrap" cause=EINIT "text=do not call /usr/bin/nodestrap"
mkdir "$root/etc/alternatives"; ln -s /usr/bin/nodestrap "$root/etc/alternatives/nodeadm"; ln -sf /etc/alternatives/nodeadm "$root/usr/bin/nodeadm"
ok "doctor succeeds if the units of nodeadm call nodestrap" doctor 0 --instance-type g6.4xlarge --output json
ok "disabled units of nodestrap are a warning if the units of nodeadm call nodestrap" check_is warning unit-disabled nodestrap-run.service
enable nodestrap-config.service; enable nodestrap-run.service
ok "doctor succeeds if both are enabled and drop-ins let one of them run" doctor 0 --instance-type g6.4xlarge --output json
ok "the check of the bootstrappers warns that only one of them runs" check_is warning bootstrappers "nodeadm and nodestrap" "text=only one of the two"
rm -r "$root"/usr/lib/systemd/system/nodeadm-*.service.d
ok "doctor fails if both are enabled without the drop-ins" doctor 70 --instance-type g6.4xlarge --output json
ok "the check of the bootstrappers fails because both set up the node" check_is failed bootstrappers "nodeadm and nodestrap" cause=EINIT "text=both set up the node in one boot"

# ---- the other architecture ----
root=$tmp/arm
ok "doctor succeeds on an arm64 image" doctor 0 --output json
ok "the types of an arm64 image are machines with arm64" types_are '"p6e-gb200.36xlarge" in t and "p5.48xlarge" not in t and "m6gd.8xlarge" in t'
ok "doctor fails for a type of another architecture" doctor 70 --instance-type p5.48xlarge,p6e-gb200.36xlarge --output json
ok "the failed check names the type and the architecture of the image" check_is failed architecture p5.48xlarge found=arm64 "text=another CPU architecture"
ok "doctor fails if kubelet is too old for a rack" doctor 70 --instance-type p6e-gb200.36xlarge --kubelet-version 1.32.9 --output json
ok "the failed check says which kubelet a rack needs" check_is failed kubelet-too-old plan cause=EVERSION "text=install 1.33 or newer"
ok "doctor accepts an older kubelet for another type" doctor 0 --instance-type g5g.xlarge --kubelet-version 1.32.9
cp "$tmp/x86/usr/bin/nvidia-smi" "$root/usr/bin/nvidia-smi"
ok "doctor fails if a program has the wrong architecture" doctor 70 --instance-type p6e-gb200.36xlarge --output json
ok "the failed check names the program with the wrong architecture" check_is failed program-architecture nvidia-smi found=/usr/bin/nvidia-smi

# ---- versions ----
root=$tmp/other
ok "the fixture makes an image for another version of fabric manager" image "$root"
sed -i s/580.126.09/575.57.08/ "$root/usr/bin/nv-fabricmanager"
ok "doctor does not compare fabric manager for a machine without NVSwitches" doctor 0 --instance-type g6.4xlarge
ok "doctor fails on another version of fabric manager for a machine with NVSwitches" doctor 70 --instance-type g6.4xlarge,p5.48xlarge --output json
ok "the failed check names fabric manager and the types that need it" check_is failed version nv-fabricmanager found=575.57.08 cause=EVERSION text=580.126.09 "types=['p5.48xlarge']"
ok "doctor fails for a --driver-version that the library does not have" doctor 70 --instance-type p5.48xlarge --driver-version v575.57.08-1.amzn2023 --output json
ok "fabric manager of the given driver version is well" check_is ok version nv-fabricmanager found=575.57.08
ok "a library of another version than the given driver fails" check_is failed version libnvidia-ml.so.1 found=580.126.09 cause=EVERSION
ok "doctor fails for a type that the driver is too old for" doctor 70 --instance-type g7.2xlarge --output json
ok "the failed check names the driver that is too old" check_is failed version "NVIDIA driver" cause=EDRIVER
rm -f "$root/etc/eks/kubelet-version.txt"
ok "doctor succeeds on an image without a kubelet version" doctor 0 --instance-type g6.4xlarge --output json
ok "the check of the kubelet version is unknown and names --kubelet-version" check_is unknown version kubelet text=--kubelet-version
ok "doctor succeeds with --kubelet-version" doctor 0 --instance-type g6.4xlarge --kubelet-version 1.34.2 --output json
ok "the JSON has the version of --kubelet-version" grep -q '"kubelet": "1.34.2"' "$tmp/out"
ok "an invalid version is a usage error" doctor 2 --kubelet-version new

# ---- drivers in trees ----
tree=$tmp/trees/opt/nvidia; root=$tmp/trees
ok "the fixture makes an image whose driver the boot chooses" image "$root" x86_64 trees
ok "doctor succeeds on an image whose driver the boot chooses" doctor 0 --instance-type p5.48xlarge,g7.2xlarge,g6f.xlarge --output json
ok "every check passes on an image whose driver the boot chooses" lacks_check failed warning unknown
ok "doctor finds fabric manager in the tree of its driver" check_is ok program nv-fabricmanager found=/opt/nvidia/lts/usr/bin/nv-fabricmanager
sed -i s/580.126.09/575.57.08/ "$tree/lts/usr/bin/nv-fabricmanager"
ok "doctor fails on another version of fabric manager in a tree" doctor 70 --instance-type g6.4xlarge,p5.48xlarge --output json
ok "the failed check names fabric manager in its tree" check_is failed version nv-fabricmanager found=575.57.08 cause=EVERSION text=/opt/nvidia/lts/usr/bin/nv-fabricmanager "types=['p5.48xlarge']"
ok "fabric manager in the other tree is well" check_is ok version nv-fabricmanager found=595.45.04
sed -i s/575.57.08/580.126.09/ "$tree/lts/usr/bin/nv-fabricmanager"; ln -sfn libnvidia-ml.so.580.126.09 "$tree/pb/usr/lib64/libnvidia-ml.so.1"
ok "doctor succeeds with a wrong library in a tree that these types do not get" doctor 0 --instance-type p5.48xlarge --output json
ok "a warning names the wrong library in the other tree" check_is warning version libnvidia-ml.so.1 found=580.126.09 text=595.45.04
ok "doctor does not look at the wrong library if the driver version is given" doctor 0 --strict --instance-type p5.48xlarge --driver-version v580.126.09-1.amzn2023
rm "$tree"/{lts,pb}/usr/{bin/nv-fabricmanager,lib/systemd/system/nvidia-fabricmanager.service} "$root"/usr/bin/nvidia-ctk
ok "doctor fails if no tree has fabric manager" doctor 70 --instance-type p5.48xlarge --output json
ok "a failed check names the program that no tree has" check_is failed program nv-fabricmanager cause=EFABRICMANAGER
ok "a failed check names the unit that no tree has" check_is failed unit nvidia-fabricmanager.service cause=EUNITMISSING
ok "a failed check names the toolkit that the image lacks" check_is failed program nvidia-ctk cause=ECDI
rm "$tree"/lts/usr/lib/firmware/nvidia/*/gsp*
ok "doctor fails if a tree lacks its firmware" doctor 70 --instance-type p5.48xlarge --output json
ok "the failed check names the firmware that the tree lacks" check_is failed firmware "NVIDIA firmware" cause=EDRIVER text=/opt/nvidia/lts/usr/lib/firmware/nvidia/580.126.09
rm -r "$tree"
ok "doctor fails on an image without trees and toolkit" doctor 70 --instance-type p5.48xlarge --output json
ok "the check of a program of the driver is unknown without trees" check_is unknown program nv-fabricmanager text=nvidia-setup.service
ok "the check of the toolkit fails without trees" check_is failed program nvidia-ctk

# ---- strict, mistakes ----
root=$tmp/other
rm -f "$root/etc/eks/pause.tar"
ok "doctor succeeds with a warning" doctor 0 --instance-type g6.4xlarge --output json
ok "doctor does not warn of the NodeConfig that it brings itself" bash -c '! grep "minimal NodeConfig" "$1"' - "$tmp/err"
ok "the warning names the missing file" check_is warning file /etc/eks/pause.tar
ok "doctor fails on a warning with --strict" doctor 70 --strict --instance-type g6.4xlarge
ok "the message with --strict says that a check failed or warned" says "failed or warned"
ok "an unknown type is a usage error" doctor 2 --instance-type p5.49xlarge
ok "the message has a similar type" says "did you mean p5.48xlarge?"
ok "an empty list of types is a usage error" doctor 2 --instance-type ,
root=$tmp/nothing
ok "a missing root is a usage error" doctor 2
ok "the message names the missing root" says "$tmp/nothing"
mkdir "$tmp/nothing"
ok "a root without programs is a usage error" doctor 2
says_form() { [ ! -s "$tmp/out" ] || { cat "$tmp/out"; false; }; }
ok "doctor prints nothing on stdout for a root without programs" says_form

# ---- in a chroot ----
[ "$(id -u)" = 0 ] && why='' || why="not root here"
[ -z "${NODESTRAP_TRANSLATED-}" ] || why="the root has no $NODESTRAP_TRANSLATED"
if [ -z "$why" ]; then
        root=$tmp/chroot; mkdir -p "$root"/{etc,proc,usr/bin}
        { echo "$nodestrap"; ldd "$nodestrap" | grep -o '/[^ ]*'; } | while read -r file; do mkdir -p "$root${file%/*}"; cp -L "$file" "$root$file"; done
        cp "$nodestrap" "$root/usr/bin/nodestrap"; echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
        in_chroot() {   # with /proc, as builders have it, and sanitizers need it
                unshare -m --propagation private sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$root" \
                        /usr/bin/nodestrap doctor --instance-type m6i.4xlarge --output json >"$tmp/out" 2>"$tmp/err"
                [ $? = 70 ] || { cat "$tmp/err"; false; }
        }
        ok "doctor ends with failed checks in the chroot of a builder" in_chroot
        ok "the JSON says that a chroot is not a running machine" grep -q '"running": false' "$tmp/out"
        ok "a warning names the machine-id that an image should not keep" check_is warning leftover-machine-id /etc/machine-id
else for what in chroot running saved; do count=$((count + 1)); echo "ok $count - $what # SKIP $why"; done
fi

# ---- callers ----
ok "nodeadm has no doctor command" bash -c 'ln -s "$1" "$2/nodeadm"; "$2/nodeadm" doctor >/dev/null 2>&1; [ $? = 2 ]' - "$nodestrap" "$tmp"
ok "doctor sends no request to the metadata service" sent 0 .
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
        cp "$nodestrap" "$tmp/nodestrap"; chmod 755 "$tmp" "$tmp/nodestrap"
        as_nobody() { local want=$1 rc; shift; setpriv --reuid=65534 --regid=65534 --clear-groups "$tmp/nodestrap" doctor "$@" --output json >"$tmp/out" 2>"$tmp/err"; rc=$?; cat "$tmp/err"; [[ $rc =~ ^($want)$ ]]; }
        ok "doctor without root looks at the running machine" as_nobody '0|70'
        ok "a check says that this user sees less than root" check_is unknown rights "this user"
        ok "the JSON says that the machine is running" grep -q '"running": true' "$tmp/out"
        root=$tmp/shut
        ok "the fixture makes an image for files that only root can read" image "$root"
        chmod 700 "$root"/opt/nvidia/nvlsm "$root"/etc/systemd/system; chmod 600 "$root"/usr/lib/modules/*/modules.dep; chmod 0 "$root/usr/lib/systemd/system/kubelet.service"
        ok "doctor without root succeeds on files that only root can read" as_nobody 0 --root "$root" --instance-type p6-b200.48xlarge
        ok "a file that only root can read does not fail a check" lacks_check failed
        ok "the check of a program in a closed directory is unknown" check_is unknown program /opt/nvidia/nvlsm/sbin/nvlsm "text=Permission denied"
        ok "the check of a closed unit is unknown" check_is unknown unit kubelet.service "text=Permission denied"
        ok "the check of a link in a closed directory is unknown" check_is unknown unit-disabled nodestrap-run.service "text=/etc/systemd/system is not readable"
        ok "the output says that the module lists are not readable" grep -q 'its module lists in /lib/modules are not readable (Permission denied)' "$tmp/out"
        chmod 700 "$root/usr/lib/modules"
        ok "doctor without root succeeds with a closed directory of kernels" as_nobody 0 --root "$root" --instance-type g6.4xlarge
        ok "the check of the kernels is unknown and says that they are closed" check_is unknown module kernels "text=not readable by this user"
        chmod 700 "$root/etc/eks/image-credential-provider"
        ok "doctor without root fails if it cannot make a plan" as_nobody 70 --root "$root" --instance-type g6.4xlarge
        ok "the message says that this user cannot read enough for a plan" grep -q "this user cannot read enough for a plan" "$tmp/err"
        ok "the verdict is unknown without a plan" grep -q '"verdict": "unknown",' <(head -5 "$tmp/out")
        mkdir -p "$tmp/closed/usr/bin"; chmod 700 "$tmp/closed"
        ok "doctor without root fails on a closed root" bash -c '! setpriv --reuid=65534 --regid=65534 --clear-groups "$1/nodestrap" doctor --root "$1/closed" >"$1/out" 2>"$1/err" && grep -q "failed (" "$1/err"' - "$tmp"
else for what in "doctor without root" "rights" "running" "shut" "closed"; do count=$((count + 1)); echo "ok $count - $what # SKIP not root here"; done
fi
ok "doctor with imds://user-data does not exit with 70" bash -c '"$1" doctor --root "$2" -c imds://user-data >/dev/null 2>&1; [ $? != 70 ]' - "$nodestrap" "$tmp/x86"
ok "doctor with imds://user-data asks the metadata service" at_least 1 .
done_testing
