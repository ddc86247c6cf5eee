#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares conf/feature-gates.csv with what a real kubelet says of feature gates: tests/oracles/gates.py [--all] KUBELET CSV

kubelet gets a configuration with gates and without an API server, so it exits right after its check of the gates. It names all locked
gates and all missing dependencies at once, but only one unknown gate. So the oracle tries a few unknown gates one by one. With --all it
tries each unknown gate, and each known gate alone with both values (minutes)."""
import argparse
import concurrent.futures
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STAYS = "no client provided, cannot use webhook authentication"     # how kubelet exits if it accepts its configuration


def rows(path):
    for line in Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            name, since, until, states, needs = line.split(",")
            steps = [(int(minor or since or 0), state) for state, _, minor in (word.partition(":") for word in states.split())]
            yield name, int(since or 0), int(until or 99), steps, re.findall(r"(\w+):(\d+)(?:-(\d+))?", needs)


def table_at(path, minor):
    """For the gates that 1.minor knows: name → (state, the gates that it needs); and the names of the others."""
    known, others = {}, []
    for name, since, until, steps, needs in rows(path):
        if since <= minor < until:
            known[name] = [state for first, state in steps if first <= minor][-1], \
                [other for other, first, end in needs if int(first) <= minor < int(end or 99)]
        else:
            others.append(name)
    return known, others


def is_on(state):
    return state in ("beta", "alpha-on", "on", "locked-on")


def expected(known, file, flags):
    """The complaints that the table predicts: the first ones of the flags alone, the file over the flags, and the flags over the file."""
    return next(filter(None, (complaints_of(known, values) for values in (flags, flags | file, file | flags))), [])


def complaints_of(known, values):
    unknown = [f"unrecognized feature gate: {name}" for name in values if name not in known]
    locked = [f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(not value).lower()}"
              for name, value in values.items()
              if name in known and known[name][0].startswith("locked") and is_on(known[name][0]) != value]
    if unknown or locked:
        return unknown or locked

    def enabled(name):
        everything = {"a": "AllAlpha", "b": "AllBeta"}.get(known[name][0][0])       # for alpha and beta only
        return values.get(name, values.get(everything, is_on(known[name][0])))
    return [f"{name} is enabled, but depends on features that are disabled: {other}" for name, (_, needs) in known.items()
            if enabled(name) for other in needs if not enabled(other)]


def complaints(log):
    """The complaints of kubelet, one for each gate; None if it exited for another reason."""
    found = re.findall(r"unrecognized feature gate: \w*|cannot set feature gate \w+ to \w+, feature is locked to \w+", log)
    for name, others in re.findall(r"(\w+) is enabled, but depends on features that are disabled: \[([\w ]*)\]", log):
        found += [f"{name} is enabled, but depends on features that are disabled: {other}" for other in others.split()]
    return sorted(set(found)) or (None if STAYS not in log else [])


def ask(kubelet, file, flags):
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "featureGates": file}))
        command = [kubelet, f"--config={config}", f"--root-dir={folder}/root", f"--cert-dir={folder}/pki", "--fail-cgroupv1=false"]
        command += ["--feature-gates=" + ",".join(f"{name}={str(value).lower()}" for name, value in flags.items())] * bool(flags)
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=120, check=False)
        log = "\n".join(line for line in run.stdout.decode(errors="replace").splitlines() if " FLAG: " not in line)
        return complaints(log), "\n".join(re.findall(r'err="[^\n]*', log)[-1:])[:300]


def questions(known, others, everything):
    """(name, the values in the file, the values of --feature-gates)"""
    other = {name: not is_on(state) for name, (state, _) in known.items() if not name.startswith("All")}
    locked = {name: value for name, value in other.items() if known[name][0].startswith("locked")}
    free = {name: value for name, value in other.items() if name not in locked}
    yield "all gates with their defaults in the file", {name: is_on(state) for name, (state, _) in known.items()}, {}
    yield "all locked gates with the other value in the file", locked, {}
    yield "all locked gates with the other value as flags", {}, locked
    yield "all locked gates with the other value in the file, and flags with the right one", locked, {name: not value for name, value in locked.items()}
    yield "all gates that are not locked with the other value in the file", free, {}
    yield "all gates that are not locked with the other value in the file, and flags with their defaults", free, {name: not value for name, value in free.items()}
    needing = {name: True for name, (state, needs) in known.items() if needs and not state.startswith("locked")}
    needed = {need: True for name in needing for need in known[name][1] if not known[need][0].startswith("locked")}
    yield "dependencies as flags, and the gates that need them in the file", needing, needed
    yield "dependencies in the file, and the gates that need them as flags", needed, needing
    yield "dependencies and the gates that need them in the file, and flags that turn the dependencies off", needing | needed, {name: False for name in needed if name not in needing}
    for name in others if everything else others[::max(1, len(others) // 8)]:
        yield f"{name}, which this version does not know", {name: True}, {}
    for name in ("NoSuchGate", "nodeSwap", ""):
        yield f"{name!r}, which is not a gate of any version", {name: True}, {}
    for name in known if everything else ("AllAlpha", "AllBeta"):
        for value in (True, False):
            yield f"{name}={value} alone", {name: value}, {}


def main():
    parser = argparse.ArgumentParser(description="compares conf/feature-gates.csv with what a real kubelet says of feature gates")
    parser.add_argument("--all", action="store_true", help="try each gate alone")
    parser.add_argument("kubelet")
    parser.add_argument("csv")
    options = parser.parse_args()
    version = subprocess.run([options.kubelet, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    known, others = table_at(options.csv, int(re.search(r"v1\.(\d+)", version)[1]))
    failed, elsewhere, asked = 0, 0, list(questions(known, others, options.all))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (what, *values), (said, last) in zip(asked, pool.map(lambda question: ask(options.kubelet, *question[1:]), asked)):
            want = sorted(expected(known, *values))
            if said is None and not want:               # kubelet accepts the gates, and exits for another reason
                elsewhere += 1
                print(f"# {what}: {last}")
            elif said != want and not (want and want[0].startswith("unrecognized") and said and said[0] in want):
                failed += 1
                print(f"# {what}: the table leads to {want}, kubelet says {said}, {last}")
    print(f"# {len(known)} gates known, {len(others)} not; {elsewhere} answers for other reasons")
    print(f"{len(asked) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
