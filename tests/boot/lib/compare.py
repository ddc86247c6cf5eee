#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a node has with the plan it was made from (nodestrap plan --output json).

usage: compare.py paths PLAN                    prints the paths of all planned files
       compare.py files PLAN                    each planned file is there with its bytes and mode
       compare.py containerd PLAN DUMP          each planned setting stands in `containerd config dump`, key by key
       compare.py kubelet PLAN ARGV             the NUL-separated arguments are exactly the planned flags, in order
       compare.py applied PLAN STATUS           the plan id is the one that status.json says was applied
       compare.py unchanged STATUS              the last run changed nothing
       compare.py same PLAN PLAN                two boots gave the same plan
Exits 0 if so; else prints every difference and exits 1.
"""
import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib

ENVIRONMENT, CONTAINERD = "/etc/eks/kubelet/environment", "/etc/containerd/config.toml"
NOT_DUMPED = {"imports"}
# A file of schema 2 is dumped by containerd 2 as schema 3: its CRI settings stand in two plugins then, three of them under other
# names (seen in the dumps of 2.1; containerd's internal/cri/config and docs/cri/config.md).
CRI_2, CRI_3 = "io.containerd.grpc.v1.cri", ("io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri")
MOVED = {
    ("sandbox_image",): ("pinned_images", "sandbox"),
    ("containerd", "snapshotter"): ("snapshotter",),
    ("containerd", "discard_unpacked_layers"): ("discard_unpacked_layers",),
    ("containerd", "disable_snapshot_annotations"): ("disable_snapshot_annotations",),
    ("cni", "bin_dir"): ("cni", "bin_dirs"),
}
# Written for every 1.x, as nodeadm does; 1.6, which no image of EKS has any more, leaves out what it does not know.
SINCE_1_7 = (CRI_2, "enable_cdi"), ("exports", "root")


def load(path):
    with open(path) as f:
        return json.load(f)


def planned(plan, path):
    for entry in plan["files"]:
        if entry["path"] == path:
            return entry
    sys.exit(f"the plan has no {path}")


def leaves(value, path=()):
    """(path, value) of everything that is not a table with members."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, path + (key,))
    else:
        yield path, value


def lookup(tree, path):
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return None
        tree = tree[key]
    return tree


def dumped(have, want, path, value):
    """What the dump has for a planned setting, and what it should have."""
    if path == ("version",):
        return max(have["version"], value), have["version"]
    if want.get("version") == 2 and have["version"] == 3 and path[:2] == ("plugins", CRI_2):
        rest = MOVED.get(path[2:], path[2:])
        value = [value] if rest[-1] == "bin_dirs" else value
        seen = [lookup(have, ("plugins", plugin) + rest) for plugin in CRI_3]
        return next((item for item in seen if item is not None), None), value
    return lookup(have, path), value


def files(plan):
    for entry in plan["files"]:
        try:
            with open(entry["path"], "rb") as f:
                content, mode = f.read(), stat.S_IMODE(os.fstat(f.fileno()).st_mode)
        except OSError as e:
            yield f"{entry['path']}: {e.strerror}"
            continue
        want = entry["mode"] if isinstance(entry["mode"], int) else int(entry["mode"], 8)
        if mode != want:
            yield f"{entry['path']}: mode {mode:04o}, planned {want:04o}"
        if entry.get("content") is not None and content.decode() != entry["content"]:
            yield f"{entry['path']}: content is not what was planned"


def containerd(plan, dump):
    want = tomllib.loads(planned(plan, CONTAINERD)["content"])
    with open(dump, "rb") as f:
        have = tomllib.load(f)
    found = [item for item in leaves(want) if item[0][0] not in NOT_DUMPED]
    old = " 1.6." in subprocess.run(["containerd", "--version"], capture_output=True, text=True).stdout
    if len(found) < 5:
        yield f"only {len(found)} settings are planned: this compares nothing"
    for path, value in found:
        seen, value = dumped(have, want, path, value)
        if value == {} and isinstance(seen, dict):
            continue
        if seen != value and not (old and seen is None and path[-2:] in SINCE_1_7):
            yield f"{'.'.join(path)}: containerd has {seen!r}, planned {value!r}"


def environment(text):
    """One variable of a systemd EnvironmentFile whose value stands in double quotes or bare, as systemd.exec(5) reads it."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "NODEADM_KUBELET_ARGS":
            return shlex.split(shlex.split(value)[0] if value[:1] in "'\"" else value)
    sys.exit("no NODEADM_KUBELET_ARGS is planned")


def kubelet(plan, argv):
    want = environment(planned(plan, ENVIRONMENT)["content"])
    with open(argv) as f:
        have = f.read().split("\0")[:-1]
    if len(want) < 3:
        yield f"only {want} is planned: this compares nothing"
    if have != want:
        yield f"kubelet got\n  {have}\nplanned\n  {want}"


def applied(plan, status):
    for phases in {"config", "devices,run"} | status["runs"].keys():
        have = status["runs"].get(phases, {}).get("planId")
        if have != plan["planId"]:
            yield f"status.json says of {phases} {have}, the plan is {plan['planId']}"


def unchanged(status):
    """The run of all phases, if there was one: it was the last; else the last of each."""
    runs, whole = status["runs"], "config,devices,run"
    actions = [a for run in ([runs[whole]] if whole in runs else [runs["config"], runs["devices,run"]]) for a in run["actions"]]
    if len(actions) < 5:
        yield f"only {len(actions)} actions are reported: this compares nothing"
    for action in actions:
        if action["outcome"] != "unchanged":
            yield f"{action['id']}: {action['outcome']}"


def same(one, other):
    """Without the memory size: the kernel lies elsewhere at each boot (KASLR), and reserves some pages more or less."""
    for name in sorted(one.keys() | other.keys()):
        a, b = (without_memory(plan.get(name)) for plan in (one, other))
        if a != b:
            yield f"{name}: {json.dumps(a)}\nand then: {json.dumps(b)}"


def without_memory(value, of=""):
    if isinstance(value, dict):
        size = {"memoryBytes"} | ({"memory"} if of in ("capacity", "allocatable") else set())
        return {key: without_memory(item, key) for key, item in value.items() if key not in size}
    return [without_memory(item) for item in value] if isinstance(value, list) else value


def main(what, *args):
    if what == "paths":
        print("\n".join(entry["path"] for entry in load(args[0])["files"]))
        return 0
    if what in ("files", "applied", "unchanged", "same"):
        found = list(globals()[what](*map(load, args)))
    elif what in ("containerd", "kubelet"):
        found = list(globals()[what](load(args[0]), args[1]))
    else:
        sys.exit(__doc__)
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 2 else __doc__)
