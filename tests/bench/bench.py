#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `nodestrap init --skip run` and `nodestrap token` cost, beside the floor: the same libraries, the same requests, nothing else.

usage: bench.py --nodestrap FILE --build DIR [--runs N] [--budgets]

Both run alternately against one mock of the metadata service and EC2 on loopback, stripped; medians are printed. DIR holds floor
and measure (make bench). The files of the node are written in memory (/dev/shm), since what a disk adds is the disk's; one row
shows it. As root the page cache is dropped before some runs, for the bytes read from disk. The budgets are those of a node that
asks EC2 for its name; with InstanceIdNodeName neither program loads libcurl and its thirty libraries, so the ratios are shown
without a verdict. Beside the token stands what `aws eks get-token` costs, where that is installed. --budgets exits 1 when something is over budget; without it the table is all.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
KEY = "ASIAEXAMPLEEXAMPLE00:exampleexampleexampleexampleexample00000:example-session-token"   # of the role in imds-m5
FIELDS = ("wall", "cpu", "rss_kib", "read_bytes")


class Mock:
    """tests/mock/aws.py with metadata from a directory; knows what it was asked since the last look."""

    def __init__(self, directory, user_data, log):
        self.log, self.seen = log, 0
        self.process = subprocess.Popen([sys.executable, f"{TESTS}/mock/aws.py", "--imds", directory, "--user-data", user_data,
                                         "--listen", "127.0.0.1:0", "--ec2-listen", "127.0.0.1:0", "--key", KEY, "--log", log],
                                        stdout=subprocess.PIPE, text=True)
        where = dict(self.process.stdout.readline().split() for _ in range(2))
        self.imds, self.ec2 = where["imds"], where["ec2"]

    def requests(self):
        """(service, path or action) of every request since the last call."""
        with open(self.log) as f:
            lines = f.read().splitlines()
        new, self.seen = lines[self.seen:], len(lines)
        return [(line.split()[1], line.split()[4]) for line in new]

    def stop(self):
        self.process.kill()
        self.process.wait()


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.measure, self.floor, self.nodestrap = f"{options.build}/measure", f"{work}/floor", f"{work}/nodestrap"
        for source, target in ((f"{options.build}/floor", self.floor), (options.nodestrap, self.nodestrap)):
            subprocess.run(["strip", "-o", target, source], check=True)
        self.memory = tempfile.mkdtemp(dir="/dev/shm") if os.access("/dev/shm", os.W_OK) else work
        self.template = f"{work}/template"
        os.mkdir(self.template)
        subprocess.run([f"{TESTS}/fixtures/expand.sh", "m5-large", self.template], check=True)
        with open(f"{TESTS}/fixtures/imds-m5/latest/meta-data/instance-id") as f:
            instance = f.read() + "\n"
        for path, content in (("sys/devices/virtual/dmi/id/board_asset_tag", instance),        # the machine the metadata speaks of
                              ("proc/sys/kernel/random/boot_id", "01234567-89ab-cdef-0123-456789abcdef\n")):   # one boot, both phases
            os.makedirs(os.path.dirname(f"{self.template}/{path}"), exist_ok=True)
            with open(f"{self.template}/{path}", "w") as f:
                f.write(content)

    def run(self, command, mock=None, cold=False, expect=0):
        environment = {"PATH": os.environ["PATH"], "HOME": self.work}   # for the AWS CLI, which may lie anywhere
        if mock:
            environment |= {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://{mock.imds}", "AWS_ENDPOINT_URL_EC2": f"http://{mock.ec2}"}
        if cold:
            os.sync()
            with open("/proc/sys/vm/drop_caches", "w") as f:
                f.write("3\n")
        done = subprocess.run([self.measure, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != expect:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}

    def done(self):
        if self.memory != self.work:
            shutil.rmtree(self.memory)

    def fresh_root(self, on_disk=False):
        root = f"{self.work if on_disk else self.memory}/root"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.template, root, symlinks=True)
        if on_disk:
            os.sync()                   # or the first fsync measured would write the copy, too
        return root

    def init(self, phase, root):
        return [self.nodestrap, "init", "--skip", "run" if phase == "config" else "config", "--root", root,
                "--config-cache", "/run/eks/nodeadm/config.json"]

    def pair(self, name, user_data, directory):
        """Medians of nodestrap and of the floor for one kind of user data."""
        mock = Mock(directory, user_data, f"{self.work}/{name}.log")
        try:
            root = self.fresh_root()
            self.run(self.init("config", root), mock)
            config = mock.requests()
            self.run(self.init("run", root), mock)
            phases = config + mock.requests()
            address, port = mock.imds.rsplit(":", 1)
            floor = [self.floor, address, port, *[path for service, path in config if service == "imds" and "/api/token" not in path]]
            if any(service == "ec2" for service, _ in config):
                floor += ["--ec2", f"http://{mock.ec2}/"]
            ours, theirs = [], []
            for _ in range(self.options.runs):
                ours.append(self.run(self.init("config", self.fresh_root()), mock))
                theirs.append(self.run(floor, mock))
            disk = [self.run(self.init("config", self.fresh_root(on_disk=True)), mock)["wall"] for _ in range(self.options.runs)]
            for _ in range(3 if os.geteuid() == 0 else 0):
                ours[0]["read_bytes"] = self.run(self.init("config", self.fresh_root()), mock, cold=True)["read_bytes"]
                theirs[0]["read_bytes"] = self.run(floor, mock, cold=True)["read_bytes"]
        finally:
            mock.stop()
        count = {service: sum(1 for s, _ in phases if s == service) for service in ("imds", "ec2")}
        # bytes of the last cold run; everything else is the median of the warm ones
        median = lambda runs: {f: runs[0][f] if f == "read_bytes" else statistics.median(r[f] for r in runs) for f in FIELDS}
        return median(ours) | {"disk": statistics.median(disk)}, median(theirs), count

    def token(self):
        """Medians of nodestrap, of the floor and, where it is installed, of the AWS CLI; then the seconds for 1 000, twenty at a time."""
        mock = Mock(f"{TESTS}/fixtures/imds-m5", "/dev/null", f"{self.work}/token.log")
        options = ["--cluster-name", "example", "--region", "us-west-2"]
        roles = "/latest/meta-data/iam/security-credentials/"
        commands = {"nodestrap": [self.nodestrap, "token", *options],
                    "floor": [self.floor, *mock.imds.rsplit(":", 1), roles, roles + "example-node-role"]}
        if shutil.which("aws"):
            commands["aws"] = [shutil.which("aws"), "eks", "get-token", *options]
        try:
            runs = {name: [] for name in commands}
            for _ in range(self.options.runs):
                for name, command in commands.items():
                    runs[name].append(self.run(command, mock))
            median = {name: {f: statistics.median(r[f] for r in all_runs) for f in FIELDS} for name, all_runs in runs.items()}
            for name, command in commands.items() if os.geteuid() == 0 else ():
                median[name]["read_bytes"] = [self.run(command, mock, cold=True)["read_bytes"] for _ in range(2)][-1]
            begin = time.monotonic()
            crowd = f"seq 1000 | xargs -P 20 -I@ {self.nodestrap} token {' '.join(options)} | grep -c k8s-aws-v1"
            got = subprocess.run(crowd, shell=True, env={"PATH": "/usr/bin:/bin", "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://{mock.imds}"},
                                 stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
            return median, time.monotonic() - begin, int(got)
        finally:
            mock.stop()

    def decode(self, path, expect=0):
        runs = [self.run([self.nodestrap, "config", "check", "-c", f"file://{path}"], expect=expect) for _ in range(self.options.runs)]
        return {f: statistics.median(r[f] for r in runs) for f in ("wall", "cpu")}


def node_config(extra=""):
    return ("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: example\n"
            "    apiServerEndpoint: https://example.eks.amazonaws.com\n    certificateAuthority: Y2VydGlmaWNhdGUK\n    cidr: 10.100.0.0/16\n" + extra)


def user_data_of(size):
    """One document of about that many bytes, most of it kubelet flags, as long user data mostly are."""
    text = node_config("  kubelet:\n    flags:\n")
    number = 0
    while len(text) < size:
        text += f"    - --node-labels=example.com/label-{number:04d}=value-{number:04d}\n"
        number += 1
    return text


def drop_ins(directory, count):
    os.mkdir(directory)
    for i in range(count):
        with open(f"{directory}/{i:05d}.yaml", "w") as f:
            f.write(node_config(f"  kubelet:\n    config:\n      registryPullQPS: {i}\n"))
    return directory


def show(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip())
    print()


def milliseconds(seconds):
    return f"{seconds * 1e3:.1f} ms"


def mib(size):
    return f"{size / (1 << 20):.1f} MiB"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodestrap", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--budgets", action="store_true")
    options = parser.parse_args()
    options.nodestrap, options.build = os.path.abspath(options.nodestrap), os.path.abspath(options.build)
    over = []

    def budget(name, value, most):
        if value > most:
            over.append(name)
        return "ok" if value <= most else "OVER"

    with tempfile.TemporaryDirectory(dir=options.build) as work:
        bench = Bench(options, work)
        fixture = f"{TESTS}/fixtures/imds-m5"
        for name, user_data in (("EC2", f"{TESTS}/fixtures/user-data/private-dns-name"), ("InstanceIdNodeName", f"{fixture}/latest/user-data")):
            ours, floor, requests = bench.pair(name, user_data, fixture)
            ec2 = 1 if name == "EC2" else 0
            rows = [(f"init --skip run, {name}", "nodestrap", "floor", "ratio", "budget", "")]
            for field in "wall", "cpu":
                ratio = ours[field] / max(floor[field], 1e-6)
                rows.append((field, milliseconds(ours[field]), milliseconds(floor[field]), f"{ratio:.2f}",
                             *(("1.50", budget(f"{name} {field}", ratio, 1.5)) if ec2 else ("", ""))))
            rows.append(("wall, files on disk", milliseconds(ours["disk"]), "", "", "", ""))
            rows.append(("peak memory", mib(ours["rss_kib"] * 1024), mib(floor["rss_kib"] * 1024), f"{ours['rss_kib'] / floor['rss_kib']:.2f}", "12.0 MiB",
                         budget(f"{name} memory", ours["rss_kib"], 12 << 10)))
            if os.geteuid() == 0:
                ratio = ours["read_bytes"] / max(floor["read_bytes"], 1)
                rows.append(("read from disk, cold", mib(ours["read_bytes"]), mib(floor["read_bytes"]), f"{ratio:.2f}", "13.0 MiB",
                             budget(f"{name} disk", ours["read_bytes"], 13 << 20)))
            rows.append(("requests of both phases", f"{requests['imds']} IMDS + {requests['ec2']} EC2", "", "", f"7 IMDS + {ec2} EC2",
                         budget(f"{name} requests", requests["imds"] > 7 or requests["ec2"] > ec2, False)))
            show(rows)
        cost, seconds, got = bench.token()
        ours, floor, cli = cost["nodestrap"], cost["floor"], cost.get("aws")
        rows = [("token, from the instance's role", "nodestrap", "floor", "aws", "budget", "")]
        for name, field, show_as, most in (("wall", "wall", milliseconds, 0.010), ("cpu", "cpu", milliseconds, 0.008),
                                           ("peak memory", "rss_kib", lambda k: mib(k * 1024), 12 << 10), ("read from disk, cold", "read_bytes", mib, None)):
            if field != "read_bytes" or os.geteuid() == 0:
                rows.append((name, show_as(ours[field]), show_as(floor[field]), show_as(cli[field]) if cli else "not here",
                             show_as(most) if most else "", budget(f"token {name}", ours[field], most) if most else ""))
        rows.append(("1000 tokens, 20 at a time", f"{seconds:.1f} s", "", "", f"{got} of 1000", budget("1000 tokens", got < 1000, False)))
        show(rows)
        size = os.path.getsize(bench.nodestrap)
        show([("binary, stripped", f"{size / 1000:.0f} kB", "budget 1250 kB", budget("binary", size, 1_250_000))])

        rows = [("config check of", "wall", "CPU", "CPU for each KB")]
        for kilobytes in (1, 4, 16):
            path = f"{work}/{kilobytes}"
            with open(path, "w") as f:
                f.write(user_data_of(kilobytes << 10))
            cost = bench.decode(path)
            rows.append((f"{kilobytes} KB of user data", milliseconds(cost["wall"]), milliseconds(cost["cpu"]), milliseconds(cost["cpu"] / kilobytes)))
        show(rows)
        rows = [("config check of", "wall", "CPU", "CPU for each file")]
        for count in (1, 10, 100, 1000):
            cost = bench.decode(drop_ins(f"{work}/drop-ins-{count}", count))
            rows.append((f"{count} drop-in files", milliseconds(cost["wall"]), milliseconds(cost["cpu"]), milliseconds(cost["cpu"] / count)))
        show(rows)
        bench.done()
    print(f"over budget: {', '.join(over)}" if over else "all budgets are met")
    return 1 if over and options.budgets else 0


sys.exit(main())
