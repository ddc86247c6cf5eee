#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a node like a p5.48xlarge takes from power-on to kubelet's start, by fakes that take as long as public reports say.

usage: boot.py --nodestrap FILE [--runs N] [--speed N] [--keep DIR] [--picture FILE]

A container with the real systemd, our three units and tests/fakes boots alternately with nodestrap and with the same steps one after
the other, as a script behind nodeadm's configuration phase does them; all seconds of the fakes are divided by --speed. Beside the two
stands the longest chain of steps of which each needs the one before it (configuration, driver, fabric manager, fabric, kubelet), done by
such a script, too, with all the others beside it that nothing waits for: no order of the steps is sooner. It judges nothing: what is not
scaled, programs and systemd's own time, weighs --speed times as much as on such a node, which has a hundred times the processors, too.
Two more boots have user scripts that are longer than all steps of the GPUs, one of them with a test of the GPUs (prove: quick), which fits
beside those scripts. --picture keeps status.json of one boot of conf/examples/p5-48xlarge.userdata instead, which has that test, too (make picture).
Needs root, as all containers of the tests.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAKES = {"user": 20, "driver": 12, "fm": 15, "fabric": 30, "list": 1, "cdi": 2, "containerd": 8, "prove": 8}       # seconds
LONG = 150              # user scripts
PROVE = "{accelerator: {nvidia: {prove: quick}}}"
EXAMPLE = "{featureGates: {InstanceIdNodeName: true}, instance: {localStorage: {strategy: \"\"}, hugePages: {mode: keep}}}"    # what no container has
GUEST = r"""#!/bin/bash
# run: nsboot.sh -S trixie -d 0 -t {limit}
# imds: imds-m5 {userdata}
# spec: {spec}
# gpu: p5-48xlarge {words}
# tree: enabled gpu paced {more}
. /vmtest/guest.sh
t() {{ echo "\"$1\": $(property "$2" "$3"),"; }}
{wait}
{{ echo '{{'; t config nodestrap-config ExecMainStartTimestampMonotonic; t configured nodestrap-config ExecMainExitTimestampMonotonic
  t kubelet kubelet ExecMainStartTimestampMonotonic; echo "\"begin\": $(systemctl show -P UserspaceTimestampMonotonic) }}"; }} >out/times.json
cp /run/nodestrap/status.json /run/fakes/events out/
try "kubelet has all GPUs" grep -q '^kubelet gpus=8 fabric=completed instances=0' /run/fakes/events
finish
"""


def boot(options, name, words, more="", user=TAKES["user"], spec="{}", userdata=""):
    with tempfile.TemporaryDirectory() as work:
        script = f"{work}/{name}.sh"
        with open(script, "w") as f:
            takes = " ".join(f"{step}-takes={seconds}" for step, seconds in {**TAKES, "user": user}.items())
            f.write(GUEST.format(limit=60 + 240 // options.speed, words=f"{words} speed={options.speed} {takes}", more=more, spec=spec, userdata=userdata,
                                 wait="systemctl start serial" if more else "systemctl start nodestrap-run"))
        done = subprocess.run([f"{TESTS}/run/boot.sh", script], env=os.environ | {"NODESTRAP": options.nodestrap, "KEEP": work},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0 or "# SKIP" in done.stdout:
            sys.exit(f"{name}:\n{done.stdout}")
        out = next(d for d, _, files in os.walk(work) if "times.json" in files)
        with open(f"{out}/times.json") as f:
            times = {key: usec / 1e6 for key, usec in json.load(f).items()}
        with open(f"{out}/status.json") as f:
            status = json.load(f)
        if options.picture:
            with open(options.picture, "w") as picture:
                status["version"] = subprocess.check_output(["dpkg-parsechangelog", "-S", "Version"], cwd=f"{TESTS}/..", text=True).strip()
                json.dump(from_power_on(status, int(times["begin"] * 1e6) // 10**7 * 10**7), picture, ensure_ascii=False, separators=(",", ":"))
                picture.write("\n")
        if options.keep:
            shutil.copytree(out, f"{options.keep}/{name}", symlinks=True, dirs_exist_ok=True)
        return times, status


def from_power_on(part, begin):
    """The clock of a container is that of its host."""
    if isinstance(part, list):
        return [from_power_on(item, begin) for item in part]
    if isinstance(part, dict):
        return {key: value - begin if key.endswith("Usec") and value >= begin else from_power_on(value, begin) for key, value in part.items()}
    return part


def told(path, begin):
    """Where the time went, by status.json: what each step on the path added."""
    rows, last = [], begin
    for step in path:
        end = step["endUsec"] / 1e6
        rows.append((end - last, f"{step['run']}: {step['id']}"))
        last = end
    return sorted(rows, reverse=True)[:6]


def gaps(path):
    """Seconds in which no step on the path was at work, but for the start of processes: waits that are nobody's."""
    return sum(max(b["beginUsec"] - a["endUsec"], 0) for a, b in zip(path, path[1:]) if a["run"] == b["run"]) / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodestrap", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--speed", type=int, default=10)
    parser.add_argument("--keep")
    parser.add_argument("--picture")
    options = parser.parse_args()
    options.nodestrap = os.path.abspath(options.nodestrap)
    if os.geteuid() != 0:
        print("boot of a p5-like node: not here, containers need root\n")
        return
    if options.picture:
        boot(options, "picture", "gen2", spec=EXAMPLE, userdata="conf/examples/p5-48xlarge.userdata")
        return
    kinds = {"ours": {"words": "gen1"}, "serial": {"words": "", "more": "serial"}, "chain": {"words": "", "more": "chain"},
             "long": {"words": "gen1", "user": LONG}, "proved": {"words": "gen1", "user": LONG, "spec": PROVE}}
    took, begin, status = {name: [] for name in kinds}, 0, {}
    for _ in range(options.runs):
        for name, kind in kinds.items():
            times, seen = boot(options, name, **kind)
            took[name].append(times["kubelet"] - times["begin"])
            if name == "ours":
                begin, status = times["begin"], seen
    us, them, chain, long, proved = (statistics.median(times) for times in took.values())
    rows = [(f"boot of a p5-like node, {options.speed} times as fast", "power-on to kubelet", "of the longest chain"),
            ("longest chain alone", f"{chain:.2f} s", "1.00"),
            ("nodestrap", f"{us:.2f} s", f"{us / chain:.2f}"), ("the same steps one after the other", f"{them:.2f} s", f"{them / chain:.2f}")]
    rows.append(("  of it between the steps of its critical path", f"{gaps(status.get('criticalPath', [])):.2f} s", ""))
    rows += [(f"  {what}", f"{took:.2f} s", "") for took, what in told(status.get("criticalPath", []), begin)]
    rows += [(f"nodestrap, user scripts of {LONG} s", f"{long:.2f} s", "1.00"),
             (f"  and a test of the GPUs of {TAKES['prove']} s beside them", f"{proved:.2f} s", f"{proved / long:.2f}")]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip())
    print()


main()
