# SPDX-License-Identifier: Apache-2.0
"""Code that kubelet.py and containerd.py share: tables of conf/, plans of a spec, files of cases, and the totals of all verdicts."""

import base64
import collections
import csv
import fnmatch
import json
import os
import subprocess

CONF = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../conf")
# A certificate that kubelet can read. Its key no longer exists.
AUTHORITY = """-----BEGIN CERTIFICATE-----
MIIBLjCB4aADAgECAhRvNXoD0nrUoE64/vsuWkczIPm+ITAFBgMrZXAwDDEKMAgG
A1UEAwwBeDAgFw0yNjExMjYyMzQ4NTZaGA8yMTI2MTEwMjIzNDg1NlowDDEKMAgG
A1UEAwwBeDAqMAUGAytlcAMhAGw7maK/lLRIpvEUXY2Mg8yIOHn6OjqJWmfHib9p
shEmo1MwUTAdBgNVHQ4EFgQUKQ3pQ/Ia5TM+N9Fxeu/n3XXJqR4wHwYDVR0jBBgw
FoAUKQ3pQ/Ia5TM+N9Fxeu/n3XXJqR4wDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
QQBxnuPsn1h/DAC/8gknBdJq8GYi7k2VbDpASi2fpl3idvKzzbclnF47pv2509aA
UvNKKELFta6qWz8NTgozH6UH
-----END CERTIFICATE-----
"""

Verdict = collections.namedtuple("Verdict", "case kind ours said")


def rows(name, columns):
    with open(os.path.join(CONF, name)) as file:
        for row in csv.reader(line for line in file if not line.startswith("#")):
            yield (row + [""] * columns)[:columns]


def node_type(vcpus):
    """The type with the nearest number of CPUs that is not larger, because a setting may name CPUs by number."""
    sizes = {2: "m5.large", 4: "m5.xlarge", 8: "m5.2xlarge", 16: "m5.4xlarge", 48: "m5.12xlarge", 64: "m5.16xlarge", 96: "m5.24xlarge"}
    return sizes[max([size for size in sizes if size <= vcpus] or [2])]


class Planner:
    def __init__(self, program, kubelet, containerd="2.1.5"):
        self.program, self.versions = program, ["--kubelet-version", kubelet, "--containerd-version", containerd]
        authority = base64.b64encode(AUTHORITY.encode()).decode()
        self.cluster = {"name": "c", "apiServerEndpoint": "https://x.eks.amazonaws.com", "certificateAuthority": authority, "cidr": "10.100.0.0/16"}
        self.type = node_type(os.cpu_count())

    def check(self, spec, where):
        """True if config check, which knows no version of kubelet, accepts the spec."""
        self.write(spec, where)
        return not subprocess.run([self.program, "config", "check", "-c", f"file://{where}.yaml"], capture_output=True).returncode

    def write(self, spec, where):
        document = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": dict(spec, cluster=self.cluster)}
        with open(where + ".yaml", "w") as file:
            json.dump(document, file)

    def __call__(self, spec, instance_type, where):
        """(the files of the plan, ""), or (None, the message)"""
        self.write(spec, where)
        run = subprocess.run(
            [self.program, "plan", "-c", where + ".yaml", "--instance-type", instance_type or self.type, *self.versions,
             "--output", "json", "--show-secrets"], capture_output=True, text=True)
        if run.returncode:
            said = [line for line in run.stderr.splitlines() if line and "warning:" not in line]
            return None, " / ".join(said) or f"exit {run.returncode}"
        return {file["path"]: file["content"] for file in json.loads(run.stdout)["files"]}, ""


def read_cases(names, only):
    """The cases of these files whose name matches the pattern."""
    cases = []
    for name in names:
        with open(name) as file:
            cases += [json.loads(line) for line in file if line.strip() and not line.startswith("#")]
    return [case for case in cases if fnmatch.fnmatch(case.get("name", ""), only)]


def as_wanted(case, verdict, machine_counts=False):
    """The verdict; of the kind "otherwise" if the case wants another one."""
    wanted = case.get("wanted", verdict.kind)
    if verdict.kind != wanted and (verdict.kind != "machine" or machine_counts):
        return verdict._replace(kind="otherwise", said=f"{verdict.kind}, wanted {wanted}: {verdict.said}")
    return verdict


def tell(verdicts, grouped, normal):
    groups = collections.defaultdict(list)
    for verdict in verdicts:
        text = verdict.said if verdict.kind not in ("strict", "on purpose") else verdict.ours
        groups[verdict.kind, normal(text) if grouped else len(groups)].append((verdict, text))
    for (kind, _), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        verdict, text = members[0]
        name = verdict.case.get("name", "")
        print(f"{kind}{f' x{len(members)}' if grouped else ''}: {text}\n    {name + ' ' if name else ''}{json.dumps(verdict.case['spec'])}")


def finish(name, seed, verdicts, count, args, normal):
    """Prints the failures and the number of verdicts of each kind. Returns the exit status."""
    kinds = collections.Counter(verdict.kind for verdict in verdicts)
    wanted = {"silent", "strict", "otherwise"} | (set(kinds) if args.show else set())
    tell([verdict for verdict in verdicts if verdict.kind in wanted], args.group, normal)
    failed = kinds["silent"] + kinds["otherwise"]
    too_strict = sum(verdict.kind == "strict" and "wanted" not in verdict.case for verdict in verdicts) > max(1, count / 100)
    print(f"{name}, seed {seed}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
    print(f"{len(verdicts) - failed} passed, {failed} failed" + (", and too many strict" if too_strict else ""))
    return 1 if failed or too_strict else 0
