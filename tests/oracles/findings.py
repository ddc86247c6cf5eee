#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The JSON and SARIF output of `nodestrap config check`, and the sources that it reads. Prints TAP.

For each kind of error and source, JSON and SARIF have the findings of stderr, with the same exit status. stdout has nothing else, and no
value of the configuration. At the end: which arguments are sources, and which are not.
"""
import base64, gzip, json, os, re, subprocess, sys, tempfile, threading

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True
import sarif                                                                        # noqa: E402

try:
    import jsonschema
except ImportError as e:
    print("1..0 # SKIP %s is not installed" % e.name)
    sys.exit(0)

NODESTRAP, SCHEMA = os.path.realpath(sys.argv[1]), sys.argv[2]
number = failed = 0


def result(ok, name, why=""):
    global number, failed
    number += 1
    failed += not ok
    print("%sok %d - %s" % ("" if ok else "not ", number, name))
    if not ok:
        print("# %s" % str(why).replace("\n", "\n# "))


def run(*argv, program=NODESTRAP, **how):
    if "input" not in how and "stdin" not in how:
        how["stdin"] = subprocess.DEVNULL
    return subprocess.run([program, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **how)


with open(SCHEMA, encoding="utf-8") as f:
    schema = json.load(f)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
MANUAL = subprocess.run(["awk", "-f", TOP + "/conf/explain.awk", TOP + "/debian/nodestrap-codes.7"], stdout=subprocess.PIPE, check=True).stdout


def entry(code):
    """The text of the manual for this code."""
    return re.search(r"(?m)^%s(?: \(\d+\))?\n((?:.+\n)+)" % code, MANUAL.decode()).group(1)


GOOD = b"""apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: CANARYname
    apiServerEndpoint: https://example.com
    certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClkyRT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=
    cidr: 10.100.0.0/16
"""
DROP = b"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  instance: {localStorage: {strategy: RAID0}}\n"
UNKNOWN = GOOD.replace(b"    cidr", b"    nmae: CANARYvalue\n    cidr")
TAB = GOOD.replace(b"  cluster", b"\tcluster")


def mime(text, encoding=""):
    return b"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/x-shellscript

#!/bin/sh
echo CANARYscript
--B
Content-Type: application/node.eks.aws
""" + encoding.encode() + b"\n" + text + b"--B--\n"


# name: bytes, exit status, and the findings that must exist: code, line, column, suggestion; None if a finding lacks one
CASES = {
    "good.yaml": (GOOD, 0, []),
    "unknown.yaml": (UNKNOWN, 0, [("unknown-field", 8, 5, "name")]),
    "missing.yaml": (GOOD.replace(b"    cidr: 10.100.0.0/16\n", b""), 11, [("EINVALID", 4, 3, None)]),
    "tab.yaml": (TAB, 11, [("ESYNTAX", 4, 1, None)]),
    "colon.yaml": (GOOD.replace("name: CANARYname".encode(), "name: é: CANARYname".encode()), 11, [("ESYNTAX", 5, 12, None)]),
    "open.yaml": (GOOD + b"  instance: [\n", 11, [("ESYNTAX", 9, None, None)]),
    "type.yaml": (GOOD + b"  kubelet: CANARYkubelet\n", 11, [("EINVALID", 9, 12, None)]),
    "key.yaml": (GOOD + b"  \"\\e[2J\\x9b\\u202e\": CANARYvalue\n", 0, [("unknown-field", 9, 3, None)]),
    "bytes.yaml": (GOOD + b"  \xff\xfe: CANARYvalue\n", 11, [("ESYNTAX", 9, 3, None)]),
    "gate.yaml": (GOOD + b"  featureGates: {InstanceIdNodeNam: true}\n", 0, [("unknown-feature-gate", 9, 18, "InstanceIdNodeName")]),
    "config.json": (json.dumps({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {"clutser": {"name": "CANARYname"}}}).encode(), 11,
                    [("unknown-field", 1, 72, "cluster")]),
    "message": (mime(TAB), 11, [("ESYNTAX", 15, 1, None)]),
    "part": (mime(base64.encodebytes(UNKNOWN), "Content-Transfer-Encoding: base64\n"), 0, [("unknown-field", 8, 5, "name")]),
    "base64": (base64.b64encode(TAB), 11, [("ESYNTAX", 4, 1, None)]),
    "gzip": (gzip.compress(UNKNOWN), 0, [("unknown-field", 8, 5, "name")]),
    "cut.gz": (gzip.compress(GOOD)[:-20], 11, [("ESYNTAX", None, None, None)]),
    "bomb.gz": (gzip.compress(bytes(3 << 20)), 11, [("ELIMIT", None, None, None)]),
    "empty": (b"", 10, [("ENOCONFIG", None, None, None)]),
    "script": (b"#!/bin/sh\necho CANARYscript\n", 10, [("ENOCONFIG", None, None, None), ("foreign-data", None, None, None)]),
    "large": (bytes(5 << 20), 11, [("ELIMIT", None, None, None)]),
    "./a b%:\n\xe9.yaml": (UNKNOWN, 0, [("unknown-field", 8, 5, "name")]),
    b"\xff.yaml": (TAB, 11, [("ESYNTAX", 4, 1, None)]),
}


PLACED = rb"(?m)^(?!nodestrap: )(.+:\d+:\d+: (?:error|warning): )"


def wrong_of(name, argv, code, findings, **how):
    """The faults of one check in all three forms of output."""
    wrong = []
    people, machines, forge = (run("config", "check", "--output", form, *argv, **how) for form in ("text", "json", "sarif"))
    if {people.returncode, machines.returncode, forge.returncode} != {code}:
        wrong.append("exit %d, %d, %d" % (people.returncode, machines.returncode, forge.returncode))
    if people.stdout or {people.stderr, machines.stderr, forge.stderr} != {people.stderr}:
        wrong.append("not the same is said: %r %r" % (people.stderr, machines.stderr))
    told = re.sub(PLACED + rb"(.*)\n.*\n *\^$", rb"\1\2", people.stderr)        # without the source lines in it
    for said in (machines.stdout, forge.stdout, told):
        if b"CANARY" in said or re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", said):
            wrong.append("a value, or what a terminal obeys: %r" % said)
    document, log = json.loads(machines.stdout.decode("utf-8", "strict")), json.loads(forge.stdout.decode("utf-8", "strict"))
    wrong += [e.message for e in validator.iter_errors(document)] + sarif.problems(log)
    if wrong:
        return wrong
    got = [(f["code"], f.get("line"), f.get("column"), f.get("suggestion")) for f in document["findings"]]
    wrong += ["%s is not in %s" % (f, got) for f in findings if f not in got]
    if document["exit"] != code or document["valid"] != (code == 0) or (not findings and got):
        wrong.append("exit %s, valid %s: %s" % (document["exit"], document["valid"], got))
    placed = [m for m in re.findall(PLACED, told) if m.endswith(b"error: ")]
    last = [] if placed else re.findall(rb"(?m)^nodestrap: failed (?!.*\(the first of )", told)
    if len([f for f in document["findings"] if f["severity"] == "error"]) != len(placed + last + re.findall(rb"(?m)^nodestrap: error: ", told)):
        wrong.append("other errors than people are told: %r" % people.stderr)
    same = [(r["ruleId"], r["level"], r["locations"][0]["physicalLocation"]["region"], r["message"]["text"].endswith(f["message"]),
             r.get("properties", {}).get("suggestion")) for r, f in zip(log["runs"][0]["results"], document["findings"])]
    want = [(f["code"], f["severity"], {"startLine": f.get("line", 1), **({"startColumn": f["column"]} if "column" in f else {})}, True, f.get("suggestion"))
            for f in document["findings"]]
    if same != want:
        wrong.append("SARIF says %s and JSON %s" % (same, want))
    if log["runs"][0]["invocations"][0]["exitCode"] != code:
        wrong.append("SARIF has another exit status")
    return wrong


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, (data, code, findings) in CASES.items():
        with open(name, "wb") as f:
            f.write(data)
        for argv in ([name], ["-c", name]):
            wrong = wrong_of(name, argv, code, findings)
            result(not wrong, "config check %s%s prints the expected findings as text, JSON and SARIF" % ("" if len(argv) == 1 else "-c ", ascii(name)), "\n".join(wrong))
    result(not wrong_of("", ["none.yaml"], 12, [("ESOURCE", None, None, None)]), "a missing file is ESOURCE in text, JSON and SARIF")
    wrong = wrong_of("", ["--strict", "unknown.yaml"], 11, [("unknown-field", 8, 5, "name")])
    result(not wrong, "--strict turns a warning into an error with the same code, place and suggestion", "\n".join(wrong))
    document = json.loads(run("config", "check", "--output", "json", "./a b%:\n\xe9.yaml").stdout)
    log = json.loads(run("config", "check", "--output", "sarif", "./a b%:\n\xe9.yaml").stdout)
    uri = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    result(uri == "a%20b%25%3A%0A%C3%A9.yaml" and document["findings"][0]["source"] == "./a b%:\\x0a\xe9.yaml", "an odd file name is escaped in the URI and stays on one line", uri)
    log = json.loads(run("config", "check", "--output", "sarif", folder + "/tab.yaml").stdout)
    uri = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    result(uri == "file://" + folder + "/tab.yaml", "an absolute path is a file URI", uri)

    # ---- rules: their ids, and their texts from the manual below --root
    os.makedirs("image/usr/lib/nodestrap")
    with open("image/unknown.yaml", "wb") as f:
        f.write(UNKNOWN + b"  kubelet: 1\n")
    with open("image/usr/lib/nodestrap/explain", "wb") as f:
        f.write(MANUAL)
    logs = [json.loads(run("config", "check", "--output", "sarif", *argv, "--root", "image", "-c", "file:///unknown.yaml").stdout) for argv in ((), ("--strict",))]
    rules = [{r["id"]: r["help"]["text"] for r in log["runs"][0]["tool"]["driver"]["rules"]} for log in logs]
    wrong = [w for log in logs for w in sarif.problems(log)]
    result(not wrong and rules[0] == rules[1] == {"unknown-field": entry("unknown-field"), "EINVALID": entry("EINVALID")}, "the id of a rule is the code, also with --strict, and its help is the text of the manual", rules)

    # ---- several files
    def said(*argv, **how):
        done = run("config", "check", "--output", "json", *argv, **how)
        return done.returncode, [(f["code"], f["source"]) for f in json.loads(done.stdout)["findings"]]
    got = said("good.yaml", "unknown.yaml", "none.yaml", "tab.yaml")
    result(got == (12, [("unknown-field", "unknown.yaml"), ("ESOURCE", "none.yaml"), ("ESYNTAX", "tab.yaml")]), "config check judges several files one by one and exits with the status of the first failure", got)
    got = said("tab.yaml", "none.yaml", "good.yaml")
    result(got == (11, [("ESYNTAX", "tab.yaml"), ("ESOURCE", "none.yaml")]), "files in another order change the exit status to that of the new first failure", got)
    done = run("config", "check", "good.yaml", "tab.yaml", "missing.yaml")
    lines = done.stderr.decode().splitlines()
    result(lines[0] == "nodestrap: good.yaml: valid." and lines[1].startswith("tab.yaml:4:1: error: not YAML") and any(l.startswith("missing.yaml:4:3: error: spec.cluster.cidr: ") for l in lines), "stderr has the result of each of several files",
           done.stderr)
    # ---- messages like those of compilers: in the order of lines, each with its source line, without text that may be secret
    def shown(text, *argv, name="shown.yaml"):
        with open(name, "wb") as f:
            f.write(text)
        return run("config", "check", *argv, name).stderr.decode()
    said_ = shown(UNKNOWN.replace(b"10.100.0.0/16", b"10.100.0.0/33") + b"  instance: {localStorage: {strategy: RAID5}}\n  kubelt: {}\n")
    places = re.findall(r"(?m)^shown\.yaml:(\d+):(\d+): (error|warning): (\S+):", said_)
    result(places == [("8", "5", "warning", "spec.cluster.nmae"), ("9", "5", "error", "spec.cluster.cidr"), ("10", "29", "error", "spec.instance.localStorage.strategy"),
                      ("11", "3", "warning", "spec.kubelt")], "messages are in the order of the lines of the file", said_)
    result("\n    cidr: …\n    ^\n" in said_ and "\n  instance: {localStorage: {strategy: …\n                            ^\n" in said_, "a message shows the key of its line without the value, and a mark below the key", said_)
    result(said_.splitlines()[-1].startswith("nodestrap: failed (11 EINVALID) at validate: shown.yaml:9:5: ") and said_.endswith("(the first of 2 errors)\n"), "the last line has the first of two errors and their number", said_)
    said_ = shown(mime(UNKNOWN))
    result("shown.yaml:19:5: warning: part 2: spec.cluster.nmae: " in said_ and "\n    nmae: …\n    ^\n" in said_, "a message about a part of MIME user data has the line in the whole file", said_)
    said_ = shown(mime(base64.encodebytes(UNKNOWN), "Content-Transfer-Encoding: base64\n"))
    result("shown.yaml:8:5: warning: part 2: spec.cluster.nmae: " in said_ and "\n    nmae: …\n    ^\n" in said_, "a message about a part in base64 has the line in the decoded part", said_)
    said_ = shown(UNKNOWN.replace(b"    nmae", b"    nmae: 1\n    m\xc3\xa9me"))
    result("\n    nmae: …\n    ^\n" in said_ and "shown.yaml:9:5: warning: spec.cluster.m" in said_ and "CANARYvalue" not in said_, "a warning about a key with a letter outside ASCII shows no value", said_)
    said_ = shown(GOOD + b"".join(b"  x%d: CANARYvalue\n" % n for n in range(30)))
    result(said_.count(": …\n  ^\n") == 10 and "CANARY" not in said_ and said_.count(": warning: ") == 30, "10 of 30 warnings about one file show their source line", said_)
    said_ = shown(UNKNOWN, "-c", name="shown.yaml")
    result("shown.yaml, line 8: spec.cluster.nmae: " in said_ and "CANARYvalue" not in said_, "a warning about a file of --config-source has the form FILE, line N: KEY, as for user data", said_)
    spec = b"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n"
    for name, text in {
            "the text of a map with a key that names a secret": b"  kubelt: {CANARYa: x, apiToken: CANARYb}\n",
            "the value of an option that names a secret": b"  kubelet:\n    flags: [--foo-token=CANARYa]\n    flgs: [--foo-token, CANARYb]\n",
            "a comment that names a secret": b"  kubelt: x # password CANARYa\n",
            "a block below a key that names a secret": b"  kubelet:\n    config:\n      password: |\n        CANARYa\n       CANARYb: x: y\n",
            "a list in environment": b"  instance:\n    environment:\n    - CANARYa\n    - [CANARYb\n",
            "a value beside the name of a secret": b"  instance:\n  - name: API_KEY\n    value: CANARYa: x\n",
            "a value in environment": b"  instance:\n    environment:\n      default:\n        FOO: [CANARYa]\n",
            "values in braces in environment": b"  instance:\n    environment: {default: {\n'FOO': 'CANARYa'\n'BAR': 'CANARYb'}}\n",
            "values of environment in JSON": b'  {"instance":\n  {"environment": {"default": {\n"FOO": 5,\n"BAR": [5]}}}}\n'.replace(b"5", b'"CANARYa", 5'),
            "a value in environment behind empty lines": b"  instance:\n    environment:\n      default:\n\n\r\n        FOO: [CANARYa]\n",
            "a password in a URL": b"  kubelt: http://user:CANARYa@example.com\n",
            "a text that is a secret elsewhere in the file": GOOD[len(spec):] + b"  containerd:\n    config: |\n      [x]\n      password = 'CANARYabc'\n  kubelt: CANARYabc\n",
            "a private key": b"  kubelt: '-----BEGIN PRIVATE KEY----- CANARYa'\n",
            "values in a misspelled environment": b"  instance:\n    enviroment: {default: {LICENCE: CANARYa}}\n    Environment: {default: {LICENCE: CANARYb}}\n",
            "values of an anchor that environment uses": b"  x: &v {LICENCE: CANARYa}\n  instance: {environment: {default: *v}}\n",
            "the text below an explicit key that names a secret": b"  kubelt:\n    x: 1\n  ? password\n  : {\"CANARYa\": 1}\n",
            "values in environment if the key has an escape sequence": b'  instance:\n    "environ\\u006dent": {default: {\n      DB_URL: [CANARYa],\n      A-B: CANARYb}}\n',
            "a quoted password of two lines": b'  kubelet:\n    password: "abc\nCANARYa \\q"\n',
            "a password on the line below its key": b'  {"password":\n  "CANARYa" x}\n',
            "the text of a document that is not a NodeConfig": None}.items():
        said_ = shown(spec + text if text else b"a: b\n CANARYa: c: d\n")
        result("CANARY" not in said_ and ("shown.yaml:" in said_ or not text), "stderr does not show " + name, said_)
    said_ = shown(spec + b"  instance:\n    environment: {default: {FOO: bar}}\n  kubelt: CANARYa\n")
    result("\n  kubelt: …\n  ^\n" in said_, "a message about another key than environment shows the key without its value", said_)
    said_ = shown(spec + b"  instance: {sysctl: {a: 'CANARYb: x'}, localStorage: {strategy: RAID5}}\n  kubelt:\n")
    result(re.search(r"(?m)^ +strategy: …\n +\^$", said_) and "CANARYb" not in said_ and "\n  kubelt:\n  ^\n" in said_, "a message replaces the text in front of the key by blanks", said_)

    with open("drop.yaml", "wb") as f:
        f.write(DROP)
    os.mkdir("folder")
    for n, text in ("10.yaml", GOOD), ("20.yaml", DROP), ("README", b"{"):
        with open("folder/" + n, "wb") as f:
            f.write(text)
    result(said("drop.yaml")[0] == 11, "config check fails for a drop-in alone")
    result(said("-c", "drop.yaml", "-c", "good.yaml") == (0, []), "a drop-in merged with the rest is valid")
    result(said("folder", "good.yaml") == (0, []), "a folder is one configuration")
    result(said("--partial", "drop.yaml") == (0, []), "--partial accepts a drop-in alone")
    with open("pages.yaml", "wb") as f:
        f.write(DROP.replace(b"localStorage: {strategy: RAID0}", b"hugePages: {pages: [{size: 2Mi, count: 1}]}"))
    got = said("--partial", "pages.yaml"), ("no-effect", "pages.yaml") in said("pages.yaml")[1]
    result(got == ((0, []), True), "--partial does not warn of a field that has no effect alone", got)
    with open("kernel.yaml", "wb") as f:
        f.write(DROP.replace(b"localStorage: {strategy: RAID0}", b"sysctl: {vm.overcommit_memory: 2}"))
    got = said("--partial", "kernel.yaml"), said("-c", "kernel.yaml", "-c", "good.yaml")
    result(got == ((0, []), (11, [("EINVALID", "kernel.yaml")])), "--partial accepts a sysctl that is an error in the whole configuration", got)
    with open("bad.yaml", "wb") as f:
        f.write(DROP.replace(b"RAID0", b"RAID6").replace(b"instance", b"cluster: {cidr: x}\n  instance"))
    got = said("--partial", "bad.yaml", "drop.yaml")
    result(got == (11, [("EINVALID", "bad.yaml")] * 2), "--partial finds both errors in a drop-in", got)
    result(said("--partial", "script")[0] == 10, "--partial rejects a file that is not a NodeConfig")
    got = said("s3://bucket"), said("-c", "s3://bucket")
    result(got == ((2, [("EUSAGE", "s3://bucket")]),) * 2, "an argument that is not a source is EUSAGE in JSON, with -c and without", got)
    result(run("config", "check", "good.yaml", "-c", "good.yaml").returncode == 2, "config check rejects files together with --config-source")
    result(run("config", "check", "--output", "svg", "good.yaml").returncode == 2 and run("status", "--output", "sarif").returncode == 2, "config check rejects --output svg, and status rejects --output sarif")

    # ---- streams
    result(said("-c", "-", input=UNKNOWN) == (0, [("unknown-field", "stdin")]), "config check reads stdin as -c -")
    result(said("-", input=TAB) == (11, [("ESYNTAX", "stdin")]), "config check reads stdin as the file argument -")
    wrong = wrong_of("", ["-c", "-"], 11, [("ELIMIT", None, None, None)], input=bytes(5 << 20))
    result(not wrong, "5 MiB on stdin are ELIMIT in text, JSON and SARIF", "\n".join(wrong))
    result(said("-c", "file:///dev/stdin", input=GOOD) == (0, []), "config check reads a pipe on stdin as file:///dev/stdin")
    with open("good.yaml", "rb") as f:
        result(said("-c", "file:///dev/stdin", stdin=f) == (0, []), "config check reads a file on stdin as file:///dev/stdin")
    result(said("-c", "-")[0] == 10, "config check of an empty stdin fails with exit status 10")

    def piped(*argv, name="/dev/fd/%d"):
        r, w = os.pipe()
        os.write(w, GOOD)
        os.close(w)
        done = run(*[a if a else name % r for a in argv], pass_fds=[r])
        os.close(r)
        return done.returncode
    result(piped("config", "check", "-c", None) == 0, "config check reads a pipe as -c /dev/fd/N, the form of <(…) in a shell")
    result(piped("config", "check", None, name="/proc/self/fd/%d") == 0, "config check reads a pipe as the file argument /proc/self/fd/N")
    result(piped("config", "dump", "-c", None) == 0, "config dump reads a pipe as -c /dev/fd/N")
    os.mkfifo("fifo")
    writer = threading.Thread(target=lambda: open("fifo", "wb").write(GOOD), daemon=True)
    writer.start()
    result(said("fifo") == (0, []), "config check reads a FIFO that another thread writes")
    writer.join(60)
    os.makedirs("root/etc")
    os.mkfifo("root/fifo")
    for argv, code, words in ((["init", "--root", "root", "-c", "file:///fifo"], 2, b"is a pipe or a descriptor"),
                              (["init", "--root", "root", "-c", "-"], 2, b"neither imds://user-data nor file://PATH"),
                              (["init", "--root", "root", "-c", "etc/x"], 2, b"did you mean file://etc/x?"),
                              (["config", "check", "--root", "root", "-c", "file:///fifo"], 2, b"is a pipe or a descriptor"),
                              (["config", "check", "--root", "root", "-c", "-"], 2, b"stdin: is a pipe or a descriptor"),
                              (["config", "check", "--root", "root", "-c", "file:///dev/stdin"], 12, b"below root"),
                              (["config", "check", "-c", "file:///dev/fd/77"], 12, b"Bad file descriptor"),
                              (["config", "check", "-c", "s3://bucket"], 2, b"neither imds")):
        done = run(*argv)
        result(done.returncode == code and words in done.stderr, "%s fails, and stderr says why" % " ".join(argv), done.stderr)
    os.symlink(NODESTRAP, "nodeadm")
    for argv, code in ((["-c", "good.yaml"], 2), (["-c", "-"], 2), (["good.yaml"], 2), (["-c", "file://good.yaml"], 0), (["-c", "file:///dev/stdin"], 0)):
        done = run("config", "check", *argv, program="./nodeadm", input=GOOD)
        result(done.returncode == code, "nodeadm config check %s exits with status %d" % (" ".join(argv), code), done.stderr)
print("1..%d" % number)
sys.exit(1 if failed else 0)
