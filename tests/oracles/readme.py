#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows README.md as a reader does. Prints TAP.

  sh blocks     The oracle runs nodestrap, openssl and the commands beside them (HERE), block by block. The scratch directory has conf/ and
                a file user-data, the p5 example. A command for another place (a fresh Debian, Amazon Linux) must have parts that exist: a
                target of the Makefile, a package that `make deps-test` or the specification names, a script that a suite runs. A command
                of any other kind fails: add here how to run it.
  text blocks   The block before prints each of these lines, in this order. Lines of dots alone do not count.
  yaml blocks   config check --strict accepts them.
  `nodestrap …` in the text: the command exists, with these options; `make …`: the target exists; [links]: the files exist
The oracle also runs the block of the manual that signs a configuration. status draws the whole picture of a boot from a status file of the
fixtures. conf/picture.py makes the small picture from it: no wider than a page, with a title for a screen reader.
"""
import os, re, shutil, subprocess, sys, tempfile
import xml.etree.ElementTree as ET

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NODESTRAP = os.path.realpath(sys.argv[1])
number = failed = 0


def result(ok, name, why=""):
    global number, failed
    number += 1
    failed += not ok
    print("%sok %d - %s" % ("" if ok else "not ", number, name))
    if not ok:
        print("\n".join("# " + line for line in str(why).splitlines()))


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


README, MAKEFILE = read("README.md"), read("Makefile")
PACKAGES = set(re.findall(r"[a-z0-9][a-z0-9.+-]+", MAKEFILE[MAKEFILE.index("NEEDED "):MAKEFILE.index("lint:")])) | {"make", "git", "rpm-build", "dnf-plugins-core"}
SUITES = "".join(read("tests/run", n) for n in sorted(os.listdir(os.path.join(TOP, "tests/run"))) if n.endswith(".sh"))


def run(command, folder):
    env = {k: v for k, v in os.environ.items() if not k.upper().startswith("AWS_") and not k.upper().endswith("_PROXY")}
    env["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:9"     # nothing listens there
    env["PATH"] = os.path.join(folder, "bin") + ":" + env["PATH"]
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return done.returncode, done.stdout.decode()


def here(command):
    folder = scratch()
    try:
        return run(command, folder)
    finally:
        shutil.rmtree(folder)


def target(word):
    return re.search(r"^(?:[a-z -]* )?%s(?: [a-z -]*)?:" % re.escape(word), MAKEFILE, re.M) is not None


def elsewhere(command):
    """Why a command for another place could not work there, or None."""
    words = command.split()
    if words[0] == "make":
        wrong = [w for w in words[1:] if "=" not in w and not target(w)]
        if "demo" in words and not wrong:       # this target can run here
            rc, said = here(re.search(r"^demo:.*\n\t\$\(Q\)\$\(O\)/((?:.*\\\n)*.*)", MAKEFILE, re.M).group(1))
            return said if rc else None
        return "no target %s" % wrong if wrong else None
    if words[0] in ("apt-get", "dnf"):
        if words[1:] in (["update"],):
            return None
        names = [w for w in words[2:] if not w.startswith("-")]
        if words[1] == "builddep":
            return None if os.path.exists(os.path.join(TOP, names[0])) else "no file %s" % names[0]
        wrong = [n for n in names if n not in PACKAGES]
        return "unknown packages %s" % wrong if words[1] != "install" or wrong else None
    if words[0].startswith("conf/"):
        path = os.path.join(TOP, words[0])
        return None if os.access(path, os.X_OK) and words[0] in SUITES else "no script that a suite runs"
    if words[0] == "docker":                    # tests/check/portable.sh makes and checks the image
        if words[1:3] == ["load", "-i"]:
            return None if target(words[3].split("/")[1] + "-image") else "no target makes %s" % words[3]
        rc, said = here(command[command.index(" nodestrap ") + 1:])
        return said if rc else None
    return "nothing says what runs this"


def commands(block):
    """The lines without comments. The options of the command before replace an ellipsis."""
    before = ""
    for line in block.splitlines():
        line = re.sub(r"(^|\s+)#.*$", "", line).strip()
        if not line:
            continue
        line = line.replace("nodestrap plan …", before)
        if line.startswith("nodestrap plan "):
            before = re.sub(r" (--(write-to|output|diff) |>)\S+", "", line)
        yield line


def scratch():
    folder = tempfile.mkdtemp()
    shutil.copytree(os.path.join(TOP, "conf"), os.path.join(folder, "conf"))
    shutil.copy(os.path.join(TOP, "conf/examples/p5-48xlarge.userdata"), os.path.join(folder, "user-data"))
    os.mkdir(os.path.join(folder, "bin"))
    os.symlink(NODESTRAP, os.path.join(folder, "bin", "nodestrap"))
    return folder


def in_order(lines, output):
    there = iter(output.splitlines())
    for line in lines:
        if line.strip("… ") and not any(line.rstrip() == other.rstrip() for other in there):
            return "not printed, or not behind the line before: %s\n%s" % (line, output)
    return None


# ---- blocks
HERE = ("nodestrap ", "openssl ", "umask ", "gzip ")
SIGNING = re.search(r"^\.nf\n(umask .*?)^\.fi$", read("debian/nodestrap-signing.7"), re.M | re.S).group(1).replace("\\-", "-")
output = ""
for kind, block in re.findall(r"^```(\w+)\n(.*?)^```$", README, re.M | re.S) + [("sh", SIGNING)]:
    if kind == "sh":
        folder, output = scratch(), ""
        try:
            for line in commands(block):
                if "openssl" in block and not shutil.which("openssl"):
                    result(True, "`%s` succeeds # SKIP no openssl here" % line)
                elif line.startswith(HERE):
                    rc, said = run(line, folder)
                    output += said
                    result(rc == 0, "`%s` succeeds" % line, said)
                else:
                    wrong = [why for why in (elsewhere(part) for part in re.split(r" *(?:&&|;) *", line)) if why]
                    result(not wrong, "each part of `%s` exists or succeeds" % line, "; ".join(wrong))
        finally:
            shutil.rmtree(folder)
    elif kind == "text":
        why = in_order(block.splitlines(), output)
        result(why is None, "a command block of the README prints the lines of the text block behind it in order", why)
    elif kind == "yaml":
        rc, said = here("cat >document <<'EOF'\n%sEOF\nnodestrap config check --strict -c file://document" % block)
        result(rc == 0, "config check --strict accepts the NodeConfig of a yaml block", said)
    else:
        result(False, "the oracle knows how to check a block of %s" % kind, "nothing says what becomes of it")

# ---- in the text
text = re.sub(r"^```.*?^```$", "", README, flags=re.M | re.S)
_, top_help = run("%s --help" % NODESTRAP, "/")
helps = {}
for span in sorted(set(re.findall(r"`(nodestrap(?: [^`]*)?)`", re.sub(r"\s*\n\s*", " ", text)))):
    words = span.split()[1:]
    if not words or "(" in span:
        continue
    name = words[0]
    if name not in helps:
        helps[name] = run("%s %s --help" % (NODESTRAP, name), "/")
    if " -c file://conf/" in span:
        rc, said = here(span)
        result(rc == 0, "`%s` succeeds" % span, said)
    rc, said = helps[name]
    wrong = [w for w in words if w.startswith("--") and w.split("=")[0] not in said and w not in top_help]
    result(rc == 0 and not wrong, "--help has the command and options of `%s`" % span, "%s: no command, or not with %s\n%s" % (name, wrong, said))
for span in sorted(set(re.findall(r"`make ([^`]*)`", text))):
    wrong = [w for w in re.sub(r'"[^"]*"', "", span).split() if "=" not in w and not target(w)]
    result(not wrong, "the Makefile has the targets of `make %s`" % span, "no target %s" % wrong)
for link in sorted(set(re.findall(r"\]\(((?!https?:)[^)#]*)", text))):
    result(os.path.exists(os.path.join(TOP, link)), "the target of the link to %s exists" % link, "no such file")
for unit in sorted(set(re.findall(r"\bnodestrap-[a-z-]+\b", " ".join(re.findall(r"`systemctl enable ([^`]*)`", text.replace("\n", " ")))))):
    result(os.path.exists(os.path.join(TOP, "units", unit + ".service")), "units/ has the unit %s" % unit)

# ---- a machine without a compiler: make deps must not print errors
bare = tempfile.mkdtemp()
for name in "make", "sh":
    os.symlink(shutil.which(name), os.path.join(bare, name))
with open(os.path.join(bare, "apt-get"), "w") as f:
    f.write("#!/bin/sh\necho \"$@\"\n")
os.chmod(os.path.join(bare, "apt-get"), 0o755)
done = subprocess.run(["make", "-C", TOP, "O=" + bare, "deps"], env={"PATH": bare}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
result(done.returncode == 0 and not done.stderr and "\n-qy install --no-install-recommends gcc " in done.stdout, "`make deps` begins without an error where there is no compiler yet",
       done.stdout + done.stderr)
shutil.rmtree(bare)

# ---- the picture
WHOLE = "conf/examples/p5-48xlarge-boot.svg"
root = tempfile.mkdtemp()
os.makedirs(os.path.join(root, "run/nodestrap"))
shutil.copy(os.path.join(TOP, "tests/fixtures/boot-p5.json"), os.path.join(root, "run/nodestrap/status.json"))
rc, drawn = run("%s status --root %s --output svg" % (NODESTRAP, root), "/")
result(rc == 0 and drawn == read(WHOLE), "status draws %s from tests/fixtures/boot-p5.json" % WHOLE,
       "mkdir -p D/run/nodestrap; cp tests/fixtures/boot-p5.json D/run/nodestrap/status.json; nodestrap status --root D --output svg >%s" % WHOLE)
rc, drawn = run("python3 conf/picture.py %s" % WHOLE, TOP)
result(rc == 0 and drawn == read("debian/boot.svg"), "conf/picture.py makes debian/boot.svg from the whole picture", "python3 conf/picture.py %s >debian/boot.svg\n%s" % (WHOLE, drawn))
small = ET.fromstring(read("debian/boot.svg"))
title = small.findtext("{http://www.w3.org/2000/svg}title")
result(int(small.get("width")) <= 880 and title and small.get("aria-label") == title, "debian/boot.svg fits a page and has a title", "%s wide, %s" % (small.get("width"), title))
shutil.rmtree(root)
print("1..%d" % number)
sys.exit(1 if failed else 0)
