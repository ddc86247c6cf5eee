#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From power-on to a node that is Ready: the time of each stage, in a virtual machine, with a real kubelet and a real API server.

usage: cluster.py --nodestrap FILE [--runs N] [--kube VERSION] [--keep DIR] [--only nodestrap|aws|unread|peer] [--peer FILE]
                  [--disk MB/S[:IOPS]|Nms] [--warm] [--read-ahead]

The guest of tests/cluster boots alternately with kubelet's tokens by nodestrap and by the AWS CLI (--credential-plugin aws), N times each;
shown are the medians, and in brackets what the stage took after the one before it. Zero is the start of QEMU. What kubelet asks comes from
the API server's audit log, all else from systemd in the guest; the two clocks are put on one by asking the one for its time from the other.
--peer boots it in turn with FILE, a build of AWS's nodeadm, in place of all of nodestrap: the two units of EKS's image (tests/fakes/al2023),
the same user data, its tokens by the AWS CLI. Its setup-local-disks may lie beside it, else storage/peer.sh stands in for that.
Below the stages stands what each unit has read from the disk until the node was Ready, with the page cache dropped as systemd begins; the
most memory that each phase had, with its programs and the files that they read; and how long containerd, kubelet and any program at all
stood still for want of a disk by then (pressure of io): load of this machine moves the stages, and these hardly.
--disk holds the root disk to so many megabytes a second, and to so many requests: a new EBS volume gives about 20 MB/s. With --disk 10ms each
read of it takes that much longer, and reads that are under way at once wait at once (tests/tools/slow-reads.c). --warm leaves the page cache
as it is. --read-ahead boots without nodestrap-read-ahead.service ("unread"), too, and with it or --peer the AWS CLI has no turn of its own.
xfs loads early, as on Amazon Linux 2023, whose root file system it is: emulated, that takes two to four seconds of processor time.
A line for each boot stands first then. A boot in which an emulated drive lost an answer, which costs 15 s, is done again.
It judges nothing: the guest's processors are emulated, and that makes programs that compute many times slower than those that wait.
Needs root, as all guests of the tests.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STAGES = [("kernel", "the kernel starts"), ("systemd", "systemd starts"), ("network", "the network is up"), ("begins", "the config phase starts"),
          ("config", "the config phase is done"), ("containerd", "containerd runs"), ("kubelet", "kubelet starts"), ("asked", "kubelet's first request"),
          ("registered", "the Node is registered"), ("ready", "the Node is Ready")]
PHASES = ["nodestrap-config", "nodestrap-devices", "nodestrap-run", "nodeadm-config", "nodeadm-run"]
READERS = ["nodestrap-read-ahead", *PHASES, "containerd", "kubelet"]
GUEST = r"""#!/bin/bash
# run: vmboot.sh -S trixie -d 2 -m 3G -t 900{packages}
# kube: {kube}
# tree: {units} kube containerd_version io_accounting {words}
# cluster: audit
# user-data:   instance: {{localStorage: {{strategy: RAID0}}}}
. /vmtest/cluster.sh
t() {{ echo "\"$1\": $(property "$2" "$3"),"; }}
stalled() {{ sed -n 's/^some.*total=//p' "$1"; }}
try "the Node is Ready" node_ready
{{ echo '{{'; t network systemd-networkd-wait-online ActiveEnterTimestampMonotonic; t begins {config} ExecMainStartTimestampMonotonic
  t config {config} ExecMainExitTimestampMonotonic
  t containerd containerd ActiveEnterTimestampMonotonic; t kubelet kubelet ExecMainStartTimestampMonotonic
  echo "\"systemd\": $(systemctl show -P UserspaceTimestampMonotonic) }}"; }} >out/times.json
{{ echo '{{'; for unit in {readers}; do n=$(property $unit IOReadBytes); [[ $n =~ ^[0-9]+$ ]] || n=0; echo "\"read by $unit\": $n,"; done
  for unit in {phases}; do n=$(property $unit MemoryPeak); [[ ! $n =~ ^[0-9]+$ ]] || echo "\"memory of $unit\": $n,"; done
  read -r _ _ sectors _ </sys/block/vda/stat; echo "\"read from the root disk in all\": $((sectors * 512)),"
  for stat in /sys/block/nvme*n1/stat; do read -r _ _ sectors _ <$stat; stores=$((stores + sectors)); done
  echo "\"read from instance stores in all\": $((stores * 512)) }}"; }} >out/read.json
{{ echo '{{'; for unit in containerd kubelet; do echo "\"$unit\": $(stalled /sys/fs/cgroup$(property $unit ControlGroup)/io.pressure),"; done
  echo "\"any program\": $(stalled /proc/pressure/io) }}"; }} >out/stalled.json
cp /run/nodestrap/{{status,read-ahead}}.json out/ 2>/dev/null
try "kubelet gets its tokens by {plugin}" grep -qE 'command: ("|/usr/bin/)?{plugin}' /var/lib/kubelet/kubeconfig
try "the clock of the host can be read" python3 clock.py >/dev/null
finish
"""
COLUMNS = {"nodestrap": "tokens by nodestrap", "aws": "tokens by aws", "unread": "nothing read ahead", "peer": "nodeadm"}


def boot(options, kind):
    """What was written down: dictionaries of stages, in seconds since power-on, of bytes read and of seconds that programs stood still."""
    plugin = "aws" if kind in ("aws", "peer") else "nodestrap"
    words = ["host_clock"] + ["aws_plugin"] * (kind == "aws") + ["cold_cache"] * (not options.warm)
    with tempfile.TemporaryDirectory() as work:
        script = f"{work}/{plugin}.sh"
        with open(script, "w") as f:
            units, config = ("peer", "nodeadm-config") if kind == "peer" else ("enabled", "nodestrap-config")
            f.write(GUEST.format(plugin=plugin, units=units, config=config, kube=options.kube, readers=" ".join(READERS), phases=" ".join(PHASES),
                                 packages=" -a awscli" if plugin == "aws" else "", words=" ".join(words)))
        kernel = {"NODESTRAP_TEST_APPEND": "psi=1 modules_load=xfs" + " systemd.mask=nodestrap-read-ahead.service" * (kind == "unread")}
        given = {"NODESTRAP": options.nodestrap, "PEER": options.peer or "", "KEEP": work}
        done = subprocess.run([f"{TESTS}/run/cluster.sh", script], env=os.environ | slow(options.disk, work) | kernel | given,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if "# SKIP" in done.stdout:
            print(f"power-on to Ready: not here, {done.stdout.split(': ', 1)[-1]}")
            sys.exit()
        if done.returncode != 0:
            sys.exit(f"{kind}:\n{done.stdout}")
        out = next(d for d, _, files in os.walk(work) if "times.json" in files)
        if options.keep:
            subprocess.run(["cp", "-a", out, f"{options.keep}/{kind}.{len(os.listdir(options.keep))}"], check=True)
        with open(f"{out}/journal") as f:
            if re.search(r"kernel: nvme .* timeout, ", f.read()):
                print(f"{kind}: an emulated drive lost an answer, again", flush=True)
                return boot(options, kind)
        with open(f"{out}/times.json") as f:
            times = {stage: usec / 1e6 for stage, usec in json.load(f).items()}
        with open(f"{out}/clock.json") as f:
            clock = json.load(f)
        with open(f"{out}/read.json") as f:
            read = json.load(f)
        with open(f"{out}/stalled.json") as f:
            stalled = {who: usec / 1e6 for who, usec in json.load(f).items()}
        times |= {"kernel": 0} | {stage: at - clock["offset"] for stage, at in asked(f"{out}/cluster/audit").items()}
        return {stage: at - clock["on"] for stage, at in times.items()}, read, stalled


def slow(disk, work):
    """What makes the drive "root" of tests/tools/vmboot.sh slow: QEMU's own limits, or a library that it is started with."""
    if not disk:
        return {}
    if disk.endswith("ms"):
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", f"{work}/slow.so", f"{TESTS}/tools/slow-reads.c"], check=True)
        return {"LD_PRELOAD": f"{work}/slow.so", "SLOW_READS_USEC": str(int(float(disk[:-2]) * 1000))}
    limits = zip(("bps", "iops"), (int(disk.split(":")[0]) * 1000000, *map(int, disk.split(":")[1:])))
    return {"NODESTRAP_TEST_QEMU_ARGS": " ".join(f"-set drive.root.throttling.{what}-total={limit}" for what, limit in limits)}


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def asked(path):
    """By the API server's clock: when kubelet's first request came, when its Node was made, and when that was Ready."""
    found = {}
    with open(path) as f:
        events = [json.loads(line) for line in f]
    for event in events:
        if not event.get("userAgent", "").startswith("kubelet/"):
            continue
        begin, end = (seconds(event[name]) for name in ("requestReceivedTimestamp", "stageTimestamp"))
        found["asked"] = min(found.get("asked", begin), begin)
        node = event.get("responseObject") or {}
        if node.get("kind") != "Node" or event.get("verb") == "get":
            continue
        if event["verb"] == "create":
            found["registered"] = end
        if any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", [])):
            found["ready"] = min(found.get("ready", end), end)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodestrap", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kube", default="1.37.0")
    parser.add_argument("--keep")
    parser.add_argument("--only", choices=COLUMNS)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--read-ahead", action="store_true")
    parser.add_argument("--disk")
    parser.add_argument("--peer", type=os.path.abspath)
    options = parser.parse_args()
    options.nodestrap = os.path.abspath(options.nodestrap)
    if os.geteuid() != 0:
        print("power-on to Ready: not here, guests need root\n")
        return
    others = ["unread"] * options.read_ahead + ["peer"] * bool(options.peer)
    plugins = [options.only] if options.only else ["nodestrap", *(others or ["aws"])]
    took = {plugin: [] for plugin in plugins}
    for _ in range(options.runs):
        for plugin in plugins:
            took[plugin].append(boot(options, plugin))
            if others:
                at, read, stalled = took[plugin][-1]
                print(plugin, *(f"{stage} {at[stage]:.2f}" for stage, _ in STAGES), *(f"{what} {n / 2**20:.0f}M" for what, n in read.items() if n),
                      *(f"{who} stood {s:.2f}" for who, s in stalled.items()), flush=True)
    disk = f", root disk {options.disk}" + ("" if options.disk.endswith("ms") else " MB/s") if options.disk else ""
    rows = [(f"power-on to Ready, kubelet {options.kube}, of {options.runs}{disk}", *(COLUMNS[plugin] for plugin in plugins))]
    for i, (stage, name) in enumerate(STAGES):
        row = [name]
        for plugin in plugins:
            at = statistics.median(run[stage] for run, *_ in took[plugin])
            step = statistics.median(run[stage] - (run[STAGES[i - 1][0]] if i else 0) for run, *_ in took[plugin])
            row.append(f"{at:.2f} s  (+{step:.2f})")
        rows.append(row)
    for since, name in [("", "power-on"), *STAGES[2:4]]:
        spent = [statistics.median(run["ready"] - run.get(since, 0) for run, *_ in took[plugin]) for plugin in plugins]
        rows.append([f"Ready since {name}", *(f"{s:.2f} s  ({s / spent[0]:.2f} x)" for s in spent)])
    for what in dict.fromkeys(what for plugin in plugins for _, read, _ in took[plugin] for what in read):
        amounts = [statistics.median(read.get(what, 0) for _, read, _ in took[plugin]) for plugin in plugins]
        if any(amounts):
            rows.append([what, *(f"{amount / 2**20:.1f} MiB" for amount in amounts)])
    for who in took[plugins[0]][0][2]:
        rows.append([f"{who} stood still", *(f"{statistics.median(stalled[who] for *_, stalled in took[plugin]):.2f} s" for plugin in plugins)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip())
    print(f"  load of this machine now: {os.getloadavg()[0]:.1f}\n")


main()
