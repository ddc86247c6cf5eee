#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `nodestrap doctor` as the builder of an image calls it: its verdicts on roots that are well or lack something, and its exit status. It
# makes no request and changes nothing.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp, here and imds are its
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}")
image() { # DIR [ARCH [trees]]: one that is well
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

ok "an image is made" image "$tmp/x86"
ok "and one of the other architecture" image "$tmp/arm" arm64
mock --listen 127.0.0.1:0                # records each request to the metadata service

# ---- one that is well ----
root=$tmp/x86
tree "$root" >"$tmp/before"
ok "an image that is well" doctor 0 --instance-type p5.48xlarge --output json
ok "has nothing that fails" lacks_check failed
ok "its JSON has the form that the manual says" matches_schema
ok "its architecture is found" grep -q '"arch": "x86_64"' "$tmp/out"
cp "$tmp/out" "$tmp/first"
ok "a second look" doctor 0 --instance-type p5.48xlarge --output json
ok "says the same" cmp "$tmp/first" "$tmp/out"
ok "as a table" doctor 0 --instance-type p5.48xlarge
ok "what is well is told by name" in_out "mdadm"
ok "with the number of checks at the end" grep -qE '^[0-9]+ checks: 0 failed' "$tmp/out"
ok "and with a line each for who wants it" doctor 0 --instance-type p5.48xlarge --development
ok "that says where it is" grep -qE '^ok +program +mdadm +/usr/sbin/mdadm$' "$tmp/out"
ok "all types that it claims to serve" doctor 0 --output json
ok "are those of its architecture that it has drivers for, and plain ones" \
        types_are '{"p5.48xlarge", "g6.xlarge", "trn1.2xlarge", "m6id.8xlarge"} <= set(t) and "p6e-gb200.36xlarge" not in t and "dl1.24xlarge" not in t'
ok "but not those whose GPUs its driver is too old for" types_are 'not [x for x in t if x.startswith("g7.")]'
ok "the JSON is of the same form" matches_schema
ok "nothing was changed by any of it" diff "$tmp/before" <(tree "$root")

ln -s "$root" "$tmp/x"$'\xff'
ok "a path that is no UTF-8" doctor_at "$tmp/x"$'\xff'
ok "is shown so that the JSON is whole" matches_schema

# ---- one that takes signed configurations alone ----
trusted=/etc/nodestrap/trusted.d
(umask 022 && mkdir -p "$root$trusted" && openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out "$root$trusted/ops.pub")
ok "keys of who may sign" doctor 0 --instance-type p5.48xlarge --output json
ok "are told" check_is ok trust "$trusted" "found=configurations must be signed"
echo none >"$root$trusted/ops.pub"
ok "one that is none" doctor 70 --instance-type p5.48xlarge --output json
ok "fails by name" check_is failed trust "$trusted" cause=ETRUST "text=$trusted/ops.pub: cannot be used as the key of a signer: it is not an Ed25519 public key in PEM, as openssl pkey -pubout writes it"
rm -r "$root/etc/nodestrap"

# ---- that lacks something ----
rm "$root/usr/sbin/mdadm"
ok "without mdadm" doctor 70 --instance-type p5.48xlarge --output json
ok "a boot ends with what apply says" check_is failed program mdadm cause=ESTORAGETOOL step=create-raid:/dev/md/kubernetes text=mdadm
ok "which the last line on stderr names" says "nodestrap: failed (70 EIMAGE) at doctor: 1 of "
ok "with its subject" says "checks failed: program mdadm: "
ok "in the table the worst comes first" doctor 70 --instance-type p5.48xlarge
ok "with what to do" first_line_is '^failed +program +mdadm$'
ok "a type with one disk needs none" doctor 0 --instance-type g6.4xlarge
ok "several types, with commas or not" doctor 70 --instance-type g6.4xlarge,p5.48xlarge --instance-type p5e.48xlarge,g6.4xlarge --output json
ok "are taken once, in that order" types_are 't == ["g6.4xlarge", "p5.48xlarge", "p5e.48xlarge"]'
ok "and only those are named that are concerned" check_is failed program mdadm "types=['p5.48xlarge', 'p5e.48xlarge']"
cat >"$tmp/plain.yaml" <<'END'
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: c, apiServerEndpoint: "https://a.example", certificateAuthority: YQ==, cidr: 10.100.0.0/16}
END
mkdir "$root/in"; cp "$tmp/plain.yaml" "$root/in/"
ok "user data that leaves the disks alone needs none either" doctor 0 --instance-type p5.48xlarge -c file:///in/plain.yaml
sed 's/^spec:/&\n  instance: {localStorage: {strategy: RAID10}}/' "$tmp/plain.yaml" >"$root/in/raid10.yaml"
ok "a plan that cannot be made" doctor 70 --instance-type g6.4xlarge,g6.xlarge -c file:///in/raid10.yaml --output json
ok "is a failed check with the planner's sentence" python3 -c 'import json, sys; c = json.load(open(sys.argv[1]))["checks"][0]
assert (c["verdict"], c["code"]) == ("failed", "plan") and "RAID10" in c["text"] + c["subject"] and c["cause"], c' "$tmp/out"
echo 'spec: [' >"$root/in/bad.yaml"
ok "user data that is none ends as anywhere" doctor 10 -c file:///in/bad.yaml
ok "user data that is not in the image" doctor 12 -c file:///in/none.yaml
ok "is told with where it was looked for" says "/in/none.yaml: cannot be opened as a configuration source below $root: No such file"
rm -r "$root/in"

# ---- who sets up the node ----
root=$tmp/own
ok "an image where our units are not enabled" image "$root"
find "$root/etc/systemd/system" -name 'nodestrap-*' -delete
ok "makes no node" doctor 70 --instance-type g6.4xlarge --output json
ok "which is said of each" check_is failed unit-disabled nodestrap-run.service "text=systemctl enable nodestrap-run.service"
for unit in nodeadm-config nodeadm-run; do printf '[Service]\nExecStart=/usr/bin/nodeadm init\n' >"$root/usr/lib/systemd/system/$unit.service"; done
cp "$root/usr/bin/kubelet" "$root/usr/bin/nodeadm"
ok "nodeadm's that are not enabled either make none" doctor 70 --instance-type g6.4xlarge --output json
ok "which is said" check_is failed bootstrappers "nodeadm and nodestrap" cause=EINIT text=neither
enable() { ln -s "/usr/lib/systemd/system/$1" "$root/etc/systemd/system/multi-user.target.wants/$1"; }
enable nodeadm-config.service; enable nodeadm-run.service
ok "those that call a program of their own do nothing of the plan" doctor 70 --instance-type g6.4xlarge --output json
ok "which is said, too" check_is failed bootstrappers "nodeadm and nodestrap" cause=EINIT "text=do not call /usr/bin/nodestrap"
mkdir "$root/etc/alternatives"; ln -s /usr/bin/nodestrap "$root/etc/alternatives/nodeadm"; ln -sf /etc/alternatives/nodeadm "$root/usr/bin/nodeadm"
ok "but where they call this one, nothing fails" doctor 0 --instance-type g6.4xlarge --output json
ok "and ours are only told of" check_is warning unit-disabled nodestrap-run.service
enable nodestrap-config.service; enable nodestrap-run.service
ok "where both are enabled, our drop-ins let one of them" doctor 0 --instance-type g6.4xlarge --output json
ok "which is a warning" check_is warning bootstrappers "nodeadm and nodestrap" "text=only one of them"
rm -r "$root"/usr/lib/systemd/system/nodeadm-*.service.d
ok "without them both do" doctor 70 --instance-type g6.4xlarge --output json
ok "which is none" check_is failed bootstrappers "nodeadm and nodestrap" cause=EINIT "text=both set up the node in one boot"

# ---- the other architecture ----
root=$tmp/arm
ok "an arm64 image, looked at from here" doctor 0 --output json
ok "is planned for machines of its own" types_are '"p6e-gb200.36xlarge" in t and "p5.48xlarge" not in t and "m6gd.8xlarge" in t'
ok "does not boot another" doctor 70 --instance-type p5.48xlarge,p6e-gb200.36xlarge --output json
ok "which is said" check_is failed architecture p5.48xlarge found=arm64 "text=another CPU architecture"
ok "a kubelet that is too old for a rack" doctor 70 --instance-type p6e-gb200.36xlarge --kubelet-version 1.32.9 --output json
ok "is told before the launch" check_is failed kubelet-too-old plan cause=EVERSION "text=install 1.33 or newer"
ok "and is well with another type" doctor 0 --instance-type g5g.xlarge --kubelet-version 1.32.9
cp "$tmp/x86/usr/bin/nvidia-smi" "$root/usr/bin/nvidia-smi"
ok "a program of the wrong architecture" doctor 70 --instance-type p6e-gb200.36xlarge --output json
ok "is told" check_is failed program-architecture nvidia-smi found=/usr/bin/nvidia-smi

# ---- versions ----
root=$tmp/other
ok "an image with a fabric manager of another version" image "$root"
sed -i s/580.126.09/575.57.08/ "$root/usr/bin/nv-fabricmanager"
ok "does for machines without NVSwitches" doctor 0 --instance-type g6.4xlarge
ok "for others it fails" doctor 70 --instance-type g6.4xlarge,p5.48xlarge --output json
ok "as fabric manager would" check_is failed version nv-fabricmanager found=575.57.08 cause=EVERSION text=580.126.09 "types=['p5.48xlarge']"
ok "with that version of the driver, in whatever form" doctor 70 --instance-type p5.48xlarge --driver-version v575.57.08-1.amzn2023 --output json
ok "it is well" check_is ok version nv-fabricmanager found=575.57.08
ok "but its library is not" check_is failed version libnvidia-ml.so.1 found=580.126.09 cause=EVERSION
ok "a type that the driver is too old for, where it is asked for" doctor 70 --instance-type g7.2xlarge --output json
ok "is told" check_is failed version "NVIDIA driver" cause=EDRIVER
rm -f "$root/etc/eks/kubelet-version.txt"
ok "an image that does not tell its kubelet's version" doctor 0 --instance-type g6.4xlarge --output json
ok "is looked at all the same" check_is unknown version kubelet text=--kubelet-version
ok "and with the version by option" doctor 0 --instance-type g6.4xlarge --kubelet-version 1.34.2 --output json
ok "nothing is open there" grep -q '"kubelet": "1.34.2"' "$tmp/out"
ok "what is no version is a mistake" doctor 2 --kubelet-version new

# ---- drivers in trees ----
tree=$tmp/trees/opt/nvidia; root=$tmp/trees
ok "an image whose driver a boot chooses" image "$root" x86_64 trees
ok "is well" doctor 0 --instance-type p5.48xlarge,g7.2xlarge,g6f.xlarge --output json
ok "in all that it has" lacks_check failed warning unknown
ok "what is to come is looked at where it lies" check_is ok program nv-fabricmanager found=/opt/nvidia/lts/usr/bin/nv-fabricmanager
sed -i s/580.126.09/575.57.08/ "$tree/lts/usr/bin/nv-fabricmanager"
ok "with a fabric manager of another version" doctor 70 --instance-type g6.4xlarge,p5.48xlarge --output json
ok "it fails as it would" check_is failed version nv-fabricmanager found=575.57.08 cause=EVERSION text=/opt/nvidia/lts/usr/bin/nv-fabricmanager "types=['p5.48xlarge']"
ok "the other tree's own is well" check_is ok version nv-fabricmanager found=595.45.04
sed -i s/575.57.08/580.126.09/ "$tree/lts/usr/bin/nv-fabricmanager"; ln -sfn libnvidia-ml.so.580.126.09 "$tree/pb/usr/lib64/libnvidia-ml.so.1"
ok "a library of another version in a tree that these types do not get" doctor 0 --instance-type p5.48xlarge --output json
ok "is a warning" check_is warning version libnvidia-ml.so.1 found=580.126.09 text=595.45.04
ok "nor looked at where the driver is given" doctor 0 --strict --instance-type p5.48xlarge --driver-version v580.126.09-1.amzn2023
rm "$tree"/{lts,pb}/usr/{bin/nv-fabricmanager,lib/systemd/system/nvidia-fabricmanager.service} "$root"/usr/bin/nvidia-ctk
ok "what no tree has comes from nowhere" doctor 70 --instance-type p5.48xlarge --output json
ok "neither a program" check_is failed program nv-fabricmanager cause=EFABRICMANAGER
ok "nor a unit" check_is failed unit nvidia-fabricmanager.service cause=EUNITMISSING
ok "nor the toolkit" check_is failed program nvidia-ctk cause=ECDI
rm "$tree"/lts/usr/lib/firmware/nvidia/*/gsp*
ok "a tree without its firmware" doctor 70 --instance-type p5.48xlarge --output json
ok "starts no GPU" check_is failed firmware "NVIDIA firmware" cause=EDRIVER text=/opt/nvidia/lts/usr/lib/firmware/nvidia/580.126.09
rm -r "$tree"
ok "without trees nobody knows what comes" doctor 70 --instance-type p5.48xlarge --output json
ok "of the driver" check_is unknown program nv-fabricmanager text=nvidia-setup.service
ok "but the toolkit does not" check_is failed program nvidia-ctk

# ---- strict, mistakes ----
root=$tmp/other
rm -f "$root/etc/eks/pause.tar"
ok "a warning is no failure" doctor 0 --instance-type g6.4xlarge --output json
ok "none is of the configuration that it brings itself" bash -c '! grep "minimal NodeConfig" "$1"' - "$tmp/err"
ok "it is told" check_is warning file /etc/eks/pause.tar
ok "with --strict it is one" doctor 70 --strict --instance-type g6.4xlarge
ok "and named" says "failed or warn"
ok "a type that nobody knows is a mistake" doctor 2 --instance-type p5.49xlarge
ok "told with one like it" says "did you mean p5.48xlarge?"
ok "so is none" doctor 2 --instance-type ,
root=$tmp/nothing
ok "and a root that does not exist" doctor 2
ok "told by name" says "$tmp/nothing"
mkdir "$tmp/nothing"
ok "one without programs is nobody's image" doctor 2
says_form() { [ ! -s "$tmp/out" ] || { cat "$tmp/out"; false; }; }
ok "of which nothing is printed" says_form

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
        ok "called in the chroot of a builder" in_chroot
        ok "it is no machine that runs" grep -q '"running": false' "$tmp/out"
        ok "and what should not be saved is told" check_is warning leftover-machine-id /etc/machine-id
else for what in chroot running saved; do count=$((count + 1)); echo "ok $count - $what # SKIP $why"; done
fi

# ---- by whom ----
ok "called nodeadm there is no such command" bash -c 'ln -s "$1" "$2/nodeadm"; "$2/nodeadm" doctor >/dev/null 2>&1; [ $? = 2 ]' - "$nodestrap" "$tmp"
ok "none of this has asked the metadata service" sent 0 .
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
        cp "$nodestrap" "$tmp/nodestrap"; chmod 755 "$tmp" "$tmp/nodestrap"
        as_nobody() { local want=$1 rc; shift; setpriv --reuid=65534 --regid=65534 --clear-groups "$tmp/nodestrap" doctor "$@" --output json >"$tmp/out" 2>"$tmp/err"; rc=$?; cat "$tmp/err"; [[ $rc =~ ^($want)$ ]]; }
        ok "nobody may look at the running machine" as_nobody '0|70'
        ok "and is told that root sees more" check_is unknown rights "this user"
        ok "it is the running one" grep -q '"running": true' "$tmp/out"
        root=$tmp/shut
        ok "an image that is root's in parts" image "$root"
        chmod 700 "$root"/opt/nvidia/nvlsm "$root"/etc/systemd/system; chmod 600 "$root"/usr/lib/modules/*/modules.dep; chmod 0 "$root/usr/lib/systemd/system/kubelet.service"
        ok "has nobody fail what nobody may see" as_nobody 0 --root "$root" --instance-type p6-b200.48xlarge
        ok "no more than root would" lacks_check failed
        ok "not its programs" check_is unknown program /opt/nvidia/nvlsm/sbin/nvlsm "text=Permission denied"
        ok "its units" check_is unknown unit kubelet.service "text=Permission denied"
        ok "their links" check_is unknown unit-disabled nodestrap-run.service "text=/etc/systemd/system is closed"
        ok "its modules" grep -q 'its module lists in /lib/modules are not readable (Permission denied)' "$tmp/out"
        chmod 700 "$root/usr/lib/modules"
        ok "nor its kernels" as_nobody 0 --root "$root" --instance-type g6.4xlarge
        ok "which is said" check_is unknown module kernels "text=closed to this user"
        chmod 700 "$root/etc/eks/image-credential-provider"
        ok "where no plan can be made, it ends with a failure" as_nobody 70 --root "$root" --instance-type g6.4xlarge
        ok "that says so" grep -q "this user cannot read enough for a plan" "$tmp/err"
        ok "and no verdict" grep -q '"verdict": "unknown",' <(head -5 "$tmp/out")
        mkdir -p "$tmp/closed/usr/bin"; chmod 700 "$tmp/closed"
        ok "a root that is closed to nobody is told" bash -c '! setpriv --reuid=65534 --regid=65534 --clear-groups "$1/nodestrap" doctor --root "$1/closed" >"$1/out" 2>"$1/err" && grep -q "failed (" "$1/err"' - "$tmp"
else for what in "nobody may look" "rights" "running" "shut" "closed"; do count=$((count + 1)); echo "ok $count - $what # SKIP not root here"; done
fi
ok "the metadata service is asked where a source says so, and the user data is none" bash -c '"$1" doctor --root "$2" -c imds://user-data >/dev/null 2>&1; [ $? != 70 ]' - "$nodestrap" "$tmp/x86"
ok "once or more" at_least 1 .
done_testing
