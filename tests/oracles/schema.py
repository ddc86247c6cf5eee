#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the verdicts of `nodestrap config schema` and of `nodestrap config check` on documents; prints TAP.

The schema describes one document, the decoder judges the merged whole. So the oracle compares their verdicts on:
  cases   every document that PyYAML finds in a case, bare or in a part. An accepted one must be valid by jsonschema.
          One that a rule about types or names (T1, T3, T4, V5) or about the form of a document (D2) rejects must be invalid.
          The schema need not know other rules.
  fields  for every path of the schema, a good document with a probe at that path. Both verdicts must be the same, unless the
          table below says that only the decoder can know.
"""
import copy, email, json, os, re, subprocess, sys, tempfile

try:
    import jsonschema, yaml
except ImportError as e:
    print("1..0 # SKIP %s is not installed" % e.name)
    sys.exit(0)

NODESTRAP, CASES = sys.argv[1], sys.argv[2]
SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "conf", "examples")
number = failed = 0


def result(ok, name, why=""):
    global number, failed
    number += 1
    failed += not ok
    print("%sok %d - %s" % ("" if ok else "not ", number, name))
    if not ok:
        print("# %s" % why)


# ---- YAML 1.1 as go-yaml reads it: y and n are booleans, times are text
class Loader(yaml.SafeLoader):
    pass


Loader.yaml_implicit_resolvers = {c: [(tag, r) for tag, r in rs if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")]
                                  for c, rs in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"),
                             list("yYnNtTfFoO"))
Loader.add_constructor("tag:yaml.org,2002:bool", lambda l, n: n.value.lower() in ("y", "yes", "true", "on"))


def key_texts(loader, node):    # keys keep their source text (rule T2)
    loader.flatten_mapping(node)
    return {k.value if isinstance(k, yaml.ScalarNode) else "?": loader.construct_object(v, deep=True) for k, v in node.value}


Loader.add_constructor("tag:yaml.org,2002:map", key_texts)


def documents(data):
    """The NodeConfig documents of plain user data; None if PyYAML and email are not enough to find them."""
    text = data.decode("utf-8", "strict").lstrip("\ufeff")
    texts = [text]
    if re.search(r"(?im)\A\s*(mime-version|content-type):", text):
        parts = [p for p in email.message_from_string(text).walk() if p.get_content_type() == "application/node.eks.aws"]
        if not parts:
            return None
        texts = [p.get_payload(decode=True).decode() for p in parts]
    found = []
    for t in texts:
        found += [d for d in yaml.load_all(t, Loader) if isinstance(d, dict)
                  and (d.get("kind") == "NodeConfig" or str(d.get("apiVersion")).startswith("node.eks.aws/"))]
    return found


def run(*argv):
    return subprocess.run([NODESTRAP, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


schema = json.loads(run("config", "schema").stdout)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
result(True, "the schema is valid by its meta-schema")

# ---- cases
rules = {}
for line in open(os.path.join(CASES, "README.md"), encoding="utf-8"):
    m = re.match(r"\| `([^`]+)` \| (\w+) \| (\w+) \| ([^|]*) \|", line)
    if m:
        rules[m.group(1)] = (m.group(3), set(m.group(4).split()))
compared = 0
for name, (verdict, broken) in sorted(rules.items()):
    data = open(os.path.join(CASES, "cases", name, "userdata"), "rb").read()
    try:
        found = documents(data)
        if not found:
            continue
        if len(found) > 1 and "V5" in broken:   # a later document may correct an error of an earlier one
            continue
        valid = all(validator.is_valid(d) for d in found)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError, TypeError):
        continue
    by_type = bool(broken & {"T1", "T3", "T4", "V5", "D2"}) and "V1" not in broken
    if verdict == "accept" or by_type:
        compared += 1
        result(valid == (verdict == "accept"), "the schema and nodestrap agree about case %s" % name, "%s by %s; the schema says %s" % (verdict, " ".join(sorted(broken)), "valid" if valid else "invalid"))
result(compared >= 40, "the oracle compares the schema on 40 cases or more (%d)" % compared, "too few: is the reader of cases broken?")

# ---- shipped examples
strict = jsonschema.Draft202012Validator(json.loads(run("config", "schema", "--strict").stdout))
for name in sorted(n for n in os.listdir(SHIPPED) if n.endswith(".userdata")):
    with open(os.path.join(SHIPPED, name), "rb") as f:
        shipped = documents(f.read())
    result(bool(shipped) and all(validator.is_valid(d) for d in shipped), "the schema accepts example %s" % name, "the schema does not take it")
    wrong = [e.message for d in shipped if len(shipped) == 1 for e in strict.iter_errors(d)]
    result(not wrong, "the strict schema accepts example %s, if it is a single document" % name, "; ".join(wrong))

# ---- fields
GOOD = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {"cluster": {
    "name": "c", "apiServerEndpoint": "https://e", "certificateAuthority": "Y2E=", "cidr": "10.100.0.0/16"}}}
PROBES = [None, True, False, 0, 1, -1, 2.5, 10 ** 12, "", "x", "1", "true", "/mnt/x", "2Mi", "5m", "all", "raid0", "https://x:443/y", "10.0.0.0/8",
          [], [1], ["x"], [None], [[]], [{}], {}, {"x": 1}, {"x": {}}, {"x": []}]
# Path → the reason why the decoder knows more than a schema of one document: the schema may accept values that the decoder refuses.
DECODER_ONLY = {
    "spec.cluster.name": "needed in the merged whole", "spec.cluster.apiServerEndpoint": "needed in the merged whole",
    "spec.cluster.certificateAuthority": "needed, and base64", "spec.cluster.cidr": "needed, and an address",
    "spec.cluster": "holds what is needed", "spec": "holds what is needed",
    "spec.kubelet.maxPodsExpression": "CEL", "spec.kubelet.flags": "begin with --, or are the value of one", "spec.kubelet.flags[]": "the same",
    "spec.cluster.enableOutpost": "needs an id", "spec.containerd.config": "TOML",
    "spec.instance.localStorage.mountPath": "folders of the system",
    "spec.instance.storage.volumes": "items are whole", "spec.instance.storage.volumes[]": "items are whole", "spec.instance.storage.volumes[].device": "needed, a device",
    "spec.instance.storage.volumes[].mountTarget": "not beside mountTargets", "spec.instance.storage.volumes[].mountTargets": "needed here, and paths",
    "spec.instance.storage.volumes[].mountTargets[]": "paths",
    "spec.instance.network.nameservers[]": "one word", "spec.instance.network.domains[]": "one word",
    "spec.instance.network.nameservers": "one word each", "spec.instance.network.domains": "one word each",
    "spec.instance.hugePages.mode": "needs pages", "spec.instance.hugePages.pages": "items are whole", "spec.instance.hugePages.pages[]": "items are whole",
    "spec.instance.hugePages.pages[].size": "a power of two in bounds", "spec.instance.hugePages.pages[].count": "needed",
    "spec.instance.sysctl": "names of settings", "spec.accelerator.nvidia.fabric.timeout": "a time span", "spec.accelerator.nvidia.proveTimeout": "a time span",
    "spec.accelerator.nvidia.imex.mode": "needs nodes", "spec.accelerator.nvidia.imex.nodes[]": "one word", "spec.accelerator.nvidia.imex.nodes": "one word each",
    "spec.accelerator.nvidia.mig": "profiles", "spec.accelerator.nvidia.mig[]": "profiles",
    "spec.accelerator.nvidia.mig[].profiles": "names of profiles", "spec.accelerator.nvidia.mig[].profiles.*": "names of profiles",
    "spec.instance": "", "spec.accelerator": "",
}
SIBLINGS = {    # other keys that an item needs beside the probe
    "spec.instance.hugePages.pages[]": {"size": "2Mi", "count": 1},
    "spec.instance.storage.volumes[]": {"device": "sdb", "mountTargets": ["/data"]},
    "spec.accelerator.nvidia.mig[]": {"profiles": {"1g.5gb": 1}},
}


def paths(node, path=""):
    yield path, node
    for key, sub in node.get("properties", {}).items():
        yield from paths(sub, path + ("." if path else "") + key)
    if isinstance(node.get("additionalProperties"), dict):
        yield from paths(node["additionalProperties"], path + ".*")
    if "items" in node:
        yield from paths(node["items"], path + "[]")


def put(document, path, value):
    parts, here, done = re.findall(r"[^.\[\]]+|\[\]", path), document, ""
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        following = [] if not last and parts[i + 1] == "[]" else {}
        if part == "[]":
            here.append(value if last else copy.deepcopy(SIBLINGS.get(done + "[]", following)))
            here, done = here[0], done + "[]"
        else:
            key = "1g.5gb" if part == "*" and "profiles" in path else "NAME" if part == "*" else part
            here[key] = value if last else here.get(key, following)
            here, done = here[key], done + ("." if done else "") + part
    return document


with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "c.json")
    for path, node in paths(schema):
        wrong = []
        for probe in ([] if not path else PROBES + [v for v in node.get("enum", []) if v not in PROBES]):
            document = put(copy.deepcopy(GOOD), path, copy.deepcopy(probe))
            with open(file, "w", encoding="utf-8") as f:
                json.dump(document, f)
            check = run("config", "check", "-c", "file://" + file)
            if check.returncode not in (0, 10, 11):
                wrong.append("%s: exit %d" % (json.dumps(probe), check.returncode))
                continue
            decoder, valid = check.returncode == 0, validator.is_valid(document)
            if decoder != valid and not (valid and path in DECODER_ONLY):
                wrong.append("%s: schema %s, decoder %s" % (json.dumps(probe), valid, decoder))
        if path:
            result(not wrong, "the schema and the decoder agree about each probe at %s that a schema can judge" % path, "; ".join(wrong))

    # ---- examples
    BESIDE = {"spec.cluster.enableOutpost": {"id": "01234567-89ab-cdef-0123-456789abcdef"}, "spec.instance.hugePages.mode": {"pages": [{"size": "2Mi", "count": 1}]},
              "spec.instance.storage.volumes[].mountTarget": {"mountTargets": None}, "spec.accelerator.nvidia.imex.mode": {"nodes": ["10.0.1.11"]}}
    wrong, n = [], 0
    for path, node in paths(schema):
        if not path or path.endswith(("[]", ".*")):
            continue
        for example in node.get("examples", [None]):
            n += 1
            if isinstance(example, dict) and path in ("spec", "spec.cluster"):      # with the required keys
                example = {**(GOOD["spec"] if path == "spec" else GOOD["spec"]["cluster"]), **example}
            document = put(copy.deepcopy(GOOD), path, example)
            up = path.rpartition(".")[0]
            for key, value in BESIDE.get(path, {}).items():
                put(document, up + "." + key, value) if "[]" not in up else document["spec"]["instance"]["storage"]["volumes"][0].update({key: value})
            with open(file, "w", encoding="utf-8") as f:
                json.dump(document, f)
            check = run("config", "check", "-c", "file://" + file)
            if example is None or check.returncode or not validator.is_valid(document):
                wrong.append("%s: %s: %s" % (path, json.dumps(example), check.stderr.decode()))
    result(n > 60 and not wrong, "the schema and config check accept all %d examples in the schema" % n, "\n# ".join(wrong))
# ---- the strict one, as an editor reads it
strict = json.loads(run("config", "schema", "--strict").stdout)
jsonschema.Draft202012Validator.check_schema(strict)
editor = jsonschema.Draft202012Validator(strict)
ids = {"schema": schema["$id"], "strict": strict["$id"]}
conf = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conf")
for name in ("plan", "config-check"):
    with open(os.path.join(conf, name + ".schema.json"), encoding="utf-8") as f:
        ids[name] = json.load(f)["$id"]
# Editors and catalogues keep schemas by their $id, so it must not change from version to version.
want = {"schema": "urn:nodestrap:node.eks.aws/v1alpha1", "strict": "urn:nodestrap:node.eks.aws/v1alpha1:strict",
        "plan": "urn:nodestrap:plan:1", "config-check": "urn:nodestrap:config-check:1"}
result(ids == want and strict["$schema"] == schema["$schema"], "each schema has its fixed $id", str(ids))


class Editor(yaml.SafeLoader):              # YAML 1.2, as language servers have it: off is a text
    pass


Editor.yaml_implicit_resolvers = {c: [(tag, r) for tag, r in rs if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")]
                                  for c, rs in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Editor.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader = Editor                             # documents() looks it up
examples = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "conf", "examples")
wrong, n = [], 0
for name in sorted(os.listdir(examples)):
    if not name.endswith(".userdata"):
        continue
    with open(os.path.join(examples, name), "rb") as f:
        found = documents(f.read()) or []
    merged = json.loads(run("config", "dump", "-c", os.path.join(examples, name)).stdout)
    for document in [merged] + found * (len(found) == 1):       # several documents are valid only when merged
        n += 1
        wrong += ["%s: %s: %s" % (name, e.json_path, e.message) for e in editor.iter_errors(document)]
result(n > 1 and not wrong, "the strict schema accepts %d documents of the examples" % n, "\n# ".join(wrong))


def nodes(node, path="$"):
    yield path, node
    for key, value in node.get("properties", {}).items():
        yield from nodes(value, path + "." + key)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from nodes(node[key], path + "." + key)


wrong = [path for path, node in nodes(strict) if "properties" in node and node.get("additionalProperties") is not False]
result(not wrong, "the strict schema allows no unknown key in a map of known keys", wrong)
wrong = [path for path, node in nodes(strict) if "enum" in node and not (all(isinstance(word, str) and word for word in node["enum"]) and "pattern" not in node)]
result(sum("enum" in node for _, node in nodes(strict)) > 15 and not wrong, "each choice in the strict schema is a plain list of words", wrong)
wrong = [path for path, node in nodes(strict) if "null" in node.get("type", [])]
result(not wrong, "the strict schema allows null nowhere", wrong)


def offered(*path):
    """The completions of a language server behind these keys: the words of a choice, or the keys of a map."""
    node = strict
    for key in path:
        node = node["items"] if key == "[]" else node["properties"][key]
    return node.get("enum") or sorted(node.get("properties", {}))


result(offered("spec", "instance", "localStorage", "strategy") == ["RAID0", "RAID10", "Mount"], "an editor offers RAID0, RAID10 and Mount for strategy")
result(offered("spec", "instance", "localStorage", "disabledMounts", "[]") == ["Containerd", "PodLogs", "SOCI", "Kubelet"], "an editor offers the words of disabledMounts in its list")
result(offered("apiVersion") == ["node.eks.aws/v1alpha1"] and {"cluster", "kubelet", "instance"} <= set(offered("spec")), "an editor offers the apiVersion and the keys of spec")

DROP = object()
BAD = (("", {"specs": {}}), ("spec", {"clutser": {}}), ("spec.cluster", {"nmae": "x"}), ("spec.cluster", {"cidr": DROP}), ("spec.cluster", {"name": DROP}), ("spec", {"cluster": DROP}),
       ("", {"spec": DROP}), ("", {"kind": "Nodeconfig"}), ("spec.cluster", {"id": None}), ("spec.instance", {"localStorage": {"strategy": "raid0"}}),
       ("spec.instance", {"localStorage": {"strategy": ""}}), ("spec.instance", {"localStorage": {"expectedDisks": -1}}), ("spec", {"featureGates": {"InstanceIdNodeNam": True}}),
       ("spec", {"kubelet": {"flags": "x"}}), ("spec.accelerator", {"nvidia": {"fabric": {"gate": "on"}}}))
PLAIN = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig",
         "spec": {"cluster": {"name": "a", "apiServerEndpoint": "https://a", "certificateAuthority": "YQ==", "cidr": "10.0.0.0/8"}, "instance": {}, "accelerator": {}}}
wrong = []
for path, change in BAD:
    document = copy.deepcopy(PLAIN)
    place = document
    for key in filter(None, path.split(".")):
        place = place[key]
    for key, value in change.items():
        place.pop(key, None)
        if value is not DROP:
            place[key] = value
    if editor.is_valid(document):
        wrong.append("%s %s" % (path, change))
result(editor.is_valid(PLAIN) and not wrong, "the strict schema accepts the plain document and refuses each of %d mistakes" % len(BAD), "\n# ".join(wrong))
PLAIN["spec"].update(kubelet={"config": {"anything": {"goes": None}}}, containerd={"baseRuntimeSpec": {"a": [1]}}, featureGates={"FastImagePull": True})
PLAIN["spec"]["instance"] = {"sysctl": {"vm.max_map_count": 262144}, "environment": {"default": {"A": 1}}, "network": {"efa": {"mode": "off"}}}
PLAIN["metadata"] = {"name": "anything", "labels": {"a": "b"}}
wrong = ["%s: %s" % (e.json_path, e.message) for e in editor.iter_errors(PLAIN)]
result(not wrong and validator.is_valid(PLAIN), "both schemas leave the settings of other programs open", "\n# ".join(wrong))
print("1..%d" % number)
sys.exit(1 if failed else 0)
