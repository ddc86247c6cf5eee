#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conf/feature-gates.csv beside the sources of Kubernetes: conf/refresh/feature-gates.py TREE...

Each TREE is a tree of k8s.io/kubernetes, one or more of each minor version, such as kubernetes@v1.37.0 of a module cache. The other
modules lie beside it (go mod download k8s.io/apiserver@v0.37.0, and so on), or in its staging/src/k8s.io. For a new version give the
trees of all versions again. The head of the file stays; it names the versions. A gate that differs between releases of one version is
told."""
import re
import sys

import table

# Where the gates lie that kubelet registers in apiserver/pkg/util/feature.DefaultMutableFeatureGate: the module, the folder, and what
# K/pkg/features says when it registers them there. component-base/featuregate has AllAlpha and AllBeta.
PLACES = (("kubernetes", "pkg/features", ""), ("apiserver", "pkg/features", ""), ("apiextensions-apiserver", "pkg/features", ""),
          ("component-base", "featuregate", ""), ("component-base", "logs/api/v1", ""), ("component-base", "metrics/features", ""),
          ("component-base", "zpages/features", "zpagesfeatures.AddFeatureGates"), ("client-go", "features", "clientfeatures.Add"))
NAMES = (("controller-manager", "pkg/features"),)       # of these only the names count: K/pkg/features has the gates
SPEC = r"\{[^{}]*\bPreRelease:[^{}]*\}"
STAGE = {"Alpha": "alpha", "Beta": "beta", "GA": "", "": "", "Deprecated": ""}


def folder(kubernetes, module, name):
    if module == "kubernetes":
        return kubernetes / name
    version = kubernetes.name.partition("@v1.")[2]
    beside = kubernetes.parent / f"{module}@v0.{version}" / name
    return beside if version and beside.is_dir() else kubernetes / "staging/src/k8s.io" / module / name


def sources(path):
    for file in sorted(path.glob("*.go")):
        if not file.name.endswith("_test.go"):
            yield re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read_text(), flags=re.S)


def constants(path):
    return {name: value for text in sources(path) for name, value in re.findall(r'(\w+)\s+(?:(?:\w+\.)?Feature)?\s*=\s*(?:(?:\w+\.)?Feature\()?"(\w+)"', text)}


def one_spec(text, source):
    """(version, smallest compatible version, stage, on, locked)"""
    def minor(key):
        found = re.search(key + r':\s*version\.(?:MustParse\("1\.(\d+)"\)|MajorMinor\(1, (\d+)\))', text)
        return int(found[1] or found[2]) if found else 0
    default = re.search(r"\bDefault:\s*(\w+)", text)
    stage = re.search(r"\bPreRelease:\s*(?:\w+\.)?(\w+)", text)[1]
    value = default[1] if default else "false"
    if value not in ("true", "false"):                   # a variable of the same file
        value = (re.search(value + r"\s*=\s*(true|false)\b", source) or sys.exit(f"not a default: {text}"))[1]
    return minor(r"\bVersion"), minor("MinCompatibilityVersion"), STAGE[stage], value == "true", \
        bool(re.search(r"\bLockToDefault:\s*true", text))


def gates_of(kubernetes):
    """name → specs, and name → what it needs"""
    places = [(module, name) for module, name, said in PLACES
              if any(said in text for text in sources(kubernetes / "pkg/features"))]
    names = {}                                          # the package → its constants
    for module, name in places + list(NAMES):
        path = folder(kubernetes, module, name)
        if not path.is_dir():
            sys.exit(f"{path} is not there: go mod download it")
        names[f"k8s.io/{module}/{name}"] = constants(path)
    gates, needs = {}, {}
    for module, name in places:
        for text in sources(folder(kubernetes, module, name)):
            imports = dict(re.findall(r'(\w+)\s+"(k8s\.io/[^"]+)"', text))
            own = names[f"k8s.io/{module}/{name}"]

            def named(word, imports=imports, own=own):
                package, _, constant = word.rpartition(".")
                found = (names.get(imports.get(package, ""), {}) if package else own).get(constant)
                return found or sys.exit(f"{kubernetes}: not a name that the sources give: {word}")
            for word, specs in re.findall(r"([\w.]+):\s*(" + SPEC + r"|\{(?:\s*" + SPEC + r"\s*,?)+\s*\})", text):
                found = [one_spec(spec, text) for spec in re.findall(SPEC, specs)]
                if gates.setdefault(named(word), found) != found:
                    print(f"{kubernetes.name}: {word} differs in {module}/{name}", file=sys.stderr)
            for block in re.findall(r"\nvar \w+ = map\[[\w.]+\]\[\](?:\w+\.)?Feature\{(.*?)\n\}", text, re.S):
                block = re.sub(r"(?:\w+\.)?Feature\(([\w.]+)\)", r"\1", block)
                found = re.findall(r"([\w.]+):\s*\{([\w.,\s]*)\}", block)
                if len(found) != block.count("{"):
                    sys.exit(f"{kubernetes}: {block.count('{') - len(found)} needs are not read")
                for word, others in found:
                    needs[named(word)] = sorted(named(other) for other in re.findall(r"[\w.]+", others))
    return gates, needs


def state_at(specs, minor):
    """As component-base/featuregate/feature_gate.go has it: the newest spec that is not above kubelet, which is compatible with 1.(N-1)."""
    below = [spec for spec in specs if spec[0] <= minor and spec[1] < minor]
    if not below:
        return None
    _, _, stage, on, locked = sorted(below, key=lambda spec: spec[:2])[-1]
    if locked:
        return "locked-on" if on else "locked-off"
    return {"alpha": ("alpha", "alpha-on"), "beta": ("beta-off", "beta"), "": ("off", "on")}[stage][on]


def known_by(trees):
    """The gates of one minor version: what any of its releases knows. One that only some of them have locked is not."""
    gates, needs = {}, {}
    for kubernetes in sorted(trees, key=lambda tree: [int(n) for n in re.findall(r"\d+", tree.name)]):
        minor = int(re.search(r"v1\.(\d+)", kubernetes.name)[1])
        found, others = gates_of(kubernetes)
        for name, specs in found.items():
            state, before = state_at(specs, minor), gates.get(name)
            if state and before and state != before:
                print(f"1.{minor}: {name} is {before}, then {state}", file=sys.stderr)
                state = before if state.startswith("locked") else state
            if state:
                gates[name] = state
        needs = {name: others.get(name, []) for name in others if not needs or name in needs}
    return gates, needs


def main():
    options = table.arguments(__doc__, ("trees...", "kubernetes@v1.N.M of a module cache"))
    by_minor = {}
    for tree in options.trees:
        by_minor.setdefault(int(re.search(r"v1\.(\d+)", tree.name)[1]), []).append(tree)
    first, last = min(by_minor), max(by_minor)
    if set(by_minor) != set(range(first, last + 1)):
        sys.exit(f"1.{first} to 1.{last}: a version between them is missing")
    known, needs = {}, {}
    for minor, some in by_minor.items():
        known[minor], needs[minor] = known_by(some)
    rows = []
    for name in sorted({name for gates in known.values() for name in gates}):
        there = [minor for minor in sorted(known) if name in known[minor]]
        if there != list(range(there[0], there[-1] + 1)):
            print(f"{name} comes back: {there}", file=sys.stderr)
        states, said, wanted = [], None, {}
        for minor in there:
            state = known[minor][name]
            if state != said:
                states.append(f"{state}:{minor}" if states else state)
            said = state
        for minor in there:
            for other in needs[minor].get(name, []):
                wanted.setdefault(other, []).append(minor)
        rows.append([name, "" if there[0] == first else str(there[0]), "" if there[-1] == last else str(there[-1] + 1),
                     " ".join(states), " ".join(f"{other}:{minors[0]}" + (f"-{minors[-1] + 1}" if minors[-1] != there[-1] else "")
                                                for other, minors in sorted(wanted.items()))])
    table.finish(table.Table("feature-gates", options.conf), rows, options)


main()
