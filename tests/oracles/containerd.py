#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the verdicts of nodestrap and of a real containerd on random TOML and base specs (python3 standard library only, as root).

    containerd.py --nodestrap build/nodestrap --containerd CONTAINERD -n 100 --seed 7

A case is a spec.containerd of one to three settings; a third of the cases get a wrong value. `plan` makes the files, and a real containerd
gets them unchanged. It has its own root and its own namespaces (mounts, network, processes). containerd is well if it has logged that it
has booted, its CRI plugin serves, and its socket is where kubelet looks for it. The plugin opens its port for streams last, so this port
shows that it serves. A containerd that fails exits by itself. If it does neither within LIMIT seconds, the case counts as an exit, and
the output says so.

    taken, refused  both verdicts agree
    pods            nodestrap refuses a value with which only pods fail, and says so. containerd does not load that snapshotter either, or
                    the kernel has no such limit
    silent          nodestrap accepts the case, and containerd exits or has no CRI: a failure
    strict          nodestrap refuses the case, and containerd is well. It gets the plan without the case, with the case merged in
    otherwise       a case of --also with other verdicts than it wants: a failure
    machine         containerd refuses the case for a reason that only this machine has (MACHINE)

Keys and types are those of conf/containerd-settings.csv. Exit status: 0; 1 after a failure or with more than 1 % strict random cases (one
is always allowed); 2 if containerd is not well with a plain plan either.
"""

import argparse
import concurrent.futures
import fnmatch
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

from daemon import Planner, Verdict, as_wanted, finish, read_cases, rows

LIMIT = 120
TOML, SPEC = "/etc/containerd/config.toml", "/etc/containerd/base-runtime-spec.json"
CRI, IMAGES, RUNTIME = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
MACHINE = re.compile(r"no such file|cannot assign requested|no default routes|(?<!not configured: )(?<!generator: )skip plugin|cgroup v2|"
                     r"needed differ not loaded: erofs|permission denied|read-only file|"
                     r"is a directory|fsverity|no space left|too many open files|"
                     r"cannot allocate memory|temporarily unavailable|operation not permitted|cgroup mountpoint does not exist")

# Settings that no case has, by section and key: they depend on other files, processes or machines.
LEFT_OUT = set("""top/version top/plugin_dir top/oom_score top/temp cgroup/path otlp/endpoint otlp/protocol handler/base_runtime_spec
    handler/runtime_path handler/cgroup_writable nri/plugin_path nri/plugin_config_path grpc/tcp_tls_ca grpc/tcp_tls_cert grpc/tcp_tls_key
    server-tcp/tls_ca server-tcp/tls_cert server-tcp/tls_key server-grpc/address debug/address devmapper/pool_name root/root_path
    cni/conf_template handler/runtime_engine handler/runtime_root containerd-1/default_runtime containerd-1/untrusted_workload_runtime
    blockfile/scratch_file opt/path path/path server/x509_key_pair_streaming nri/socket_path grpc/tcp_address metrics/address
    server-tcp/address proxy/platform""".split())
# Values that containerd may take, and wrong ones, by key.
VALUES = {
    "grpc/address": (["/run/lab/containerd.sock", "/run/containerd/containerd.sock", ""], ["containerd.sock", 5]),
    "ttrpc/address": (["/run/lab/ttrpc.sock", ""], [5]),
    "top/root": (["/var/lib/containerd", "/data/containerd"], [5, "/run/containerd"]),
    "top/state": (["/run/containerd", "/run/lab"], ["/var/lib/containerd", False]),
    "debug/level": (["info", "debug", "DEBUG", ""], ["verbose", "2", 2]),
    "debug/format": (["text", "json", ""], ["logfmt", "JSON", 1]),
    "disabled_plugins": ([[], ["io.containerd.snapshotter.v1.btrfs"], ["io.containerd.nri.v1.nri"], ["io.containerd.internal.v1.opt"],
                          ["io.containerd.x.v1.y"]],
                         [[CRI], ["cri"], ["io.containerd.metadata.v1.bolt"], ["io.containerd.snapshotter.v1.overlayfs"],
                          ["io.containerd.service.v1.tasks-service"], ["io.containerd.lease.v1.manager"], "aufs"]),
    "required_plugins": ([[], [CRI], ["io.containerd.snapshotter.v1.native"], ["io.containerd.gc.v1.scheduler"]],
                         [["io.containerd.grpc.v1.nri"], ["cri"], ["io.containerd.cri.v2.images"], CRI]),
    "imports": ([[], ["/etc/containerd/conf.d/*.toml"]], ["/etc/containerd/conf.d/*.toml", [5], {"a": "b"}]),
    "timeouts": ([{"io.containerd.timeout.shim.cleanup": "5s"}, {"x": "-1s"}, {}], [{"x": "5"}, {"x": 5}, {"x": ""}, "5s"]),
    "snapshotter": (["overlayfs", "native"], ["stargz", "nydus", "overlay", 5]),
    "default_runtime_name": (["runc"], ["kata", "crun", "", 5]),
    "image-platform/platform": (["linux/amd64", "linux/arm64/v8"], ["linux/a/b/c", "a b", 5]),
    "platforms": ([["linux/amd64"], []], [["linux/a/b/c"], [""], "linux"]),
    "config_path": (["/etc/containerd/certs.d", "/a:/b", ""], [5, ["/a"]]),
    "mirrors": ([{"docker.io": {"endpoint": ["https://mirror.lab.example"]}}, {}],
                [{"docker.io": {"endpoint": "https://m"}}, {"docker.io": "https://m"}, ["m"]]),
    "configs": ([{"registry.lab.example": {"auth": {"username": "u", "password": "p"}}}, {"r": {}}], [{"r": {"auth": {"username": 5}}}, {"r": "u"}]),
    "auths": ([{"https://registry.lab.example": {"auth": "dTpw"}}], [{"r": {"auth": True}}, 5]),
    "headers": ([{"User-Agent": ["x"]}], [{"User-Agent": "x"}, {"User-Agent": [5]}]),
    "runtimes": ([{"kata": {"runtime_type": "io.containerd.kata.v2", "options": {"ConfigPath": "/x"}, "snapshotter": ""}},
                  {"runc": {"options": {"SystemdCgroup": False}}}],
                 [{"kata": "io.containerd.kata.v2"}, {"runc": {"privileged_without_host_devices_all_devices_allowed": True}},
                  {"runc": {"options": "x"}},
                  {"kata": {"runtime_type": 5}}]),
    "content_sharing_policy": (["shared", "isolated"], ["none", 5]),
    "differs/default": ([["walking"]], [["walk"], "walking"]),
    "proxy/type": (["snapshot"], ["snapshotter", "x", 5]),
    "proxy_plugins": ([{"stargz": {"type": "snapshot", "address": "/run/s.sock"}}, {}], [{"stargz": {"type": "snapshots", "address": "/run/s.sock"}},
                      {"stargz": {"type": "snapshot", "address": 5}}, {"stargz": {"address": "/run/s.sock"}}, [1]]),
    "stream_processors": ([{"x": {"accepts": ["a/b"], "returns": "c/d", "path": "/bin/true"}}], [{"x": {"accepts": "a/b"}}, {"x": 5}]),
    "stream_server_address": (["127.0.0.1", "0.0.0.0", "::1"], ["loopback", "10.0.0", 5]),
    "stream_server_port": (["0", "10010"], ["65536", "any", 0]),
    "images/stats_collect_period": ([10, 1], [0, -1, "10", 1.5]), "cri-1/stats_collect_period": ([10, 1], [0, -1, "10"]),
    "runtime/stats_collect_period": (["1s", ""], ["0s", "-1s", 5]),
    "unpack_config": ([[{"platform": "linux/amd64", "snapshotter": "overlayfs"}]],
                      [[{"platform": "linux/amd64", "snapshotter": "nope"}], [5], {"a": 1},
                       [{"platform": "linux/amd64", "snapshotter": "overlayfs", "differ": "nope"}]]),
    "io_type": (["fifo", "streaming"], ["pipe", 5]), "systemd_cgroup": ([False], [True, "true"]), "no_pivot": ([False], [True, 1]),
    "base_image_size": (["10GB"], [10]), "default_size": (["10GiB", ""], ["x", 5]), "dmverity_mode": (["auto", ""], [5]),
    "handler/options": ([{"SystemdCgroup": True}, {"BinaryName": "/usr/sbin/runc"}], [{"SystemdCgroup": "true"}, {"IoUid": -1}, "x"]),
    "rlimits": ([[{"type": "RLIMIT_NOFILE", "hard": 65536, "soft": 1024}], [{"type": "RLIMIT_MEMLOCK", "hard": 18446744073709551615, "soft": 0}], []],
                [[{"type": "RLIMIT_NOFILE", "hard": "65536", "soft": 1}], [{"type": "RLIMIT_NOFILE", "hard": -1, "soft": -1}],
                 [{"type": "NOFILE", "hard": 2, "soft": 1}], [{"type": "RLIMIT_NOFILE", "hard": 1, "soft": 2}],
                 {"type": "RLIMIT_NOFILE"}, ["RLIMIT_NOFILE"], [{"type": "RLIMIT_NOFILE", "hard": 1.5, "soft": 1}]]),
}
# Settings that containerd or the plan reads together, by the path of their table without the path of the plugin.
TOGETHER = [["registry/mirrors", "registry/config_path"], ["registry/mirrors", "registry/configs"], ["cni/bin_dir", "cni/bin_dirs"],
            ["discard_unpacked_layers", "registry/mirrors"], ["discard_unpacked_layers", "max_concurrent_downloads"], ["root", "state"],
            ["containerd/default_runtime_name", "containerd/runtimes"], ["snapshotter", "proxy_plugins"], ["disabled_plugins", "required_plugins"],
            ["grpc/address", "ttrpc/address"], ["discard_unpacked_layers", "disable_snapshot_annotations"]]
NUMBERS = {  # in range, and out of range
    "int": ([0, 1, 3, 1000], ["3", 1.5, True]), "int32": ([0, -1, 2 ** 31 - 1], ["1", 2 ** 31, 0.5]), "uint16": ([0, 65535], [-1, 65536, "1"]),
    "uint32": ([0, 1000, 2 ** 32 - 1], [-1, 2 ** 32, "0", 0.5]), "uint64": ([0, 2 ** 40], [-1, "1", 0.5, "1Gi"]),
}
KINDS = {
    "bool": ([True, False], ["true", 1, 0, "yes"]), "float": ([0.02, 0.5], ["0.02", True]), "string": (["", "x", "/a"], [5, True, ["x"]]),
    "strings": ([["a"], [], ["a", "b"]], ["a", [5], {"a": "b"}]), "uint32s": ([[0, 1000], []], [[-1], ["0"], 0]),
    "map": ([{"a": "b"}, {}], [{"a": 1}, "a", ["a"]]),
    "duration": (["10s", "1h30m", "0s", "", "-5s"], ["10", "1d", 10, " 5s"]), "interval": (["10s", "100ms"], ["10", "", "soon"]),
    "lists": ([{"a": ["b"]}], [{"a": "b"}]), "durations": ([{"a": "1s"}], [{"a": "1"}]),
    "table": ([{}], ["x", 5, []]), "tables": ([{}], ["x", 5, {"x": 5}]), "list": ([[]], ["x", 5, {"x": 5}, [5]]), **NUMBERS,
}


# ---------------------------------------------------------------- cases

class Maker:
    """Cases of one version, from one seed."""

    def __init__(self, seed, version):
        self.random, self.version = random.Random(f"{seed} of {version}"), version
        self.sections = {}
        for section, key, kind, versions, limits in rows("containerd-settings.csv", 5):
            self.sections.setdefault(section, []).append((key, kind, versions, limits))

    def has(self, versions, schema):
        if versions.startswith("schema"):
            return versions == f"schema {schema}"
        number = tuple(map(int, versions.strip("<+").split("."))) if versions else None
        return not versions or (self.version < number if versions[0] == "<" else self.version >= number)

    def walk(self, section, schema, at=()):
        """All settings below a section: path, section and key, type. Maps and lists of tables have one member."""
        for key, kind, versions, limits in self.sections[section]:
            inner, own, name = limits.rstrip("!"), at + (key,), f"{section}/{key}"
            names = self.names(own, name)
            if schema == 2 and key.startswith("io.containerd.cri.v1."):
                continue
            if not self.has(versions, schema) or LEFT_OUT & set(names) or kind == "none" or (key == "address" and at[:1] == ("plugins",)):
                continue
            special = any(name in VALUES for name in names)
            if key == "+":
                yield from self.walk(inner, schema, at)
                continue
            if kind != "table" or special:
                yield own, name, kind
            if key == "runtimes" or (kind in ("table", "tables", "list") and not special):
                yield from self.walk(inner, schema, own + {"table": (), "list": (0,), "tables": ("runc" if key == "runtimes" else "x",)}[kind])

    @staticmethod
    def names(at, name):
        """The names of a setting: its table and key, its section and key, its key."""
        return "/".join(map(str, at[-2:])), name, str(at[-1])

    def value(self, at, name, kind, wrong):
        special = next((VALUES[key] for key in self.names(at, name) if key in VALUES), None)
        return self.random.choice((special or KINDS[kind])[wrong])

    def case(self):
        schema = 2 if self.version < (2, 0) or self.random.random() < .15 else 3
        spec = self.random.random() < .25
        known = list(self.walk("spec" if spec else "top", schema))
        if not spec and self.random.random() < .4:
            ends = self.random.choice(TOGETHER)
            chosen = [s for end in ends for s in known if "/".join(map(str, s[0])).endswith("/" + end) or "/".join(map(str, s[0])) == end][:3]
        else:
            # A section with few keys is as frequent as one with many.
            tables = {}
            for setting in known:
                tables.setdefault(setting[1].split("/")[0], []).append(setting)
            chosen = [self.random.choice(tables[self.random.choice(sorted(tables))]) for _ in range(self.random.choice([1, 1, 2]))]
        bad = self.random.choice(chosen) if chosen and self.random.random() < 1 / 3 else None
        tree = {}
        for setting in chosen:
            put(tree, setting[0], self.value(*setting, setting is bad))
        if self.random.random() < .04:
            put(tree, ("no_such_key",), 5)
        if spec:
            return {"baseRuntimeSpec": tree}
        if schema == 2 and self.version >= (2, 0):
            tree["version"] = 2
        return {"config": toml(tree)}


def put(tree, path, value):
    """Sets the value at a path; 0 is the first item of a list."""
    for key, following in zip(path, path[1:]):
        empty = [] if following == 0 else {}
        if key == 0:
            if not tree:
                tree.append(empty)
            tree = tree[0]
        else:
            tree = tree.setdefault(key, empty)
        if not isinstance(tree, (dict, list)):
            return
    if isinstance(tree, list):
        tree[:] = [value]
    elif isinstance(tree, dict):
        tree[path[-1]] = value


def toml(table):
    """A table as TOML: the tables in it stand behind the values that fit on a line."""
    return "\n".join(lines_of(table, "")) + "\n"


def lines_of(table, path):
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    for key, value in table.items():
        if key not in inner:
            yield f"{json.dumps(key)} = {in_line(value)}"
    for key, value in inner.items():
        yield f"[{path}{json.dumps(key)}]"
        yield from lines_of(value, f"{path}{json.dumps(key)}.")


def in_line(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {in_line(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(in_line, value)) + "]"
    return json.dumps(value)


def merge(into, value):
    """Merges a case into other settings as the plan does."""
    for key, member in value.items():
        if isinstance(member, dict) and isinstance(into.get(key), dict):
            merge(into[key], member)
        else:
            into[key] = member


# ---------------------------------------------------------------- containerd

# Arguments: ROOT CONTAINERD. It uses the programs of this machine. All that it writes is below ROOT, or in mounts that end with it.
INSIDE = r"""set -e; root=$1; mount --bind $root $root
mount -t tmpfs t $root/run; mount --rbind -o ro /usr $root/usr
for d in bin sbin lib lib64; do [ ! -e /$d ] || ln -s usr/$d $root/$d; done
mount -t proc p $root/proc; mount -t sysfs -o ro s $root/sys; mount -t tmpfs c $root/sys/fs/cgroup; mount --rbind /dev $root/dev
[ ! -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 -o ro c $root/sys/fs/cgroup
ip link set lo up
touch $root/run/containerd-program; mount --bind "$2" $root/run/containerd-program
cd /; exec chroot $root /run/containerd-program -c /etc/containerd/config.toml
"""
BOOTED, STREAMS = "containerd successfully booted", "Start streaming server"
FATAL = re.compile(r'level"?[=:]"?fatal|^containerd: |^panic: |failed to load plugin.*io\.containerd\.grpc\.v1\.cri\b')


def sentence(lines):
    """The last line in which containerd says why it exits or has no CRI."""
    found = [line for line in lines if FATAL.search(line)] or [line for line in lines if line.strip()] or ["(nothing)"]
    return re.sub(r'^time="[^"]*" |^containerd: ', "", found[-1].strip())[:500]


def normal(text):
    """The same text for messages that differ only in a name or a number."""
    return re.sub(r"-?\d[\w.]*", "N", re.sub(r'\\*"[^"]*\\*"', '""', re.sub(r"^.*config\d+\.yaml, line \d+: ", "", text)))[:160]


def ports_of(config):
    """The ports of all servers but the server for streams, which may have any port."""
    addresses = [config.get("grpc", {}).get("tcp_address"), config.get("metrics", {}).get("address"), config.get("debug", {}).get("address")]
    return {int(address.rsplit(":", 1)[1]) for address in addresses if isinstance(address, str) and re.search(r":\d+$", address)}


def listens(pid, known):
    """True if a port other than the known ones is open in the network of a process; None if the process has ended."""
    try:
        ports = []
        for name in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{name}") as file:
                ports += [int(line.split()[1].rsplit(":", 1)[1], 16) for line in file if line.split()[3] == "0A"]
        return bool(set(ports) - known)
    except OSError:
        return None


class World:
    def __init__(self, containerd, work):
        self.containerd, self.work, self.numbers = containerd, work, itertools.count()

    def ask(self, files):
        """(True if containerd is well with these files, None if only this machine prevents that; its last message)"""
        root = f"{self.work}/root{next(self.numbers)}"
        for folder in "proc sys dev tmp run usr opt root etc var/lib".split():
            os.makedirs(f"{root}/{folder}")
        os.symlink("../run", f"{root}/var/run")
        for path, content in {"/etc/passwd": "root:x:0:0::/:/bin/sh\n", **files}.items():
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            with open(root + path, "w") as file:
                file.write(content)
        words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private", "bash", "-c", INSIDE]
        process = subprocess.Popen(words + ["containerd", root, self.containerd], text=True, errors="replace", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        late = threading.Timer(LIMIT, process.kill)
        late.start()
        lines, verdict, serves = [], None, False
        for line in process.stdout:
            lines.append(line)
            serves = serves or STREAMS in line
            if BOOTED in line:
                verdict = serves and self.is_well(process, files, lines)
                break
        process.kill()
        lines += process.stdout.readlines()
        process.wait()
        if not late.is_alive():
            lines.append(f"containerd is neither well nor ends in {LIMIT} s")
        late.cancel()
        shutil.rmtree(root, ignore_errors=True)
        said = "is well" if verdict else sentence(lines)
        return (True if verdict else None if MACHINE.search(said) else False), said

    def is_well(self, process, files, lines):
        """Waits until containerd has opened its port for streams, or has ended. True if kubelet then finds its socket."""
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            pid = (file.read().split() or [0])[0]
        opened, known = False, ports_of(tomllib.loads(files[TOML]))
        while opened is False and process.poll() is None:
            opened = listens(pid, known)
            time.sleep(0 if opened else .005)
        socket = json.loads(files["/etc/kubernetes/kubelet/config.json"])["containerRuntimeEndpoint"].removeprefix("unix://")
        if opened and not os.path.exists(f"/proc/{pid}/root{socket}"):
            lines.append(f"containerd: does not listen at {socket}, where kubelet asks")
            return False
        return opened


# ---------------------------------------------------------------- comparison

def inside(table, *path):
    """The table at this path, or an empty one."""
    for key in path:
        table = table.get(key) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}


def handed(case, plan, where):
    """The files for a case that nodestrap refuses: those of a plan without the case, with the case merged in."""
    given = tomllib.loads(case.get("config", ""))
    plugins = inside(given, "plugins")
    two = given.get("version") == 2 or (CRI in plugins and not {IMAGES, RUNTIME} & set(plugins))
    files, said = plan({"containerd": {"config": "version = 2\n"}} if two else {}, None, where)
    if not files:
        return None, said
    config = tomllib.loads(files[TOML])
    for images in (CRI, IMAGES):
        registry = inside(given, "plugins", images, "registry")
        if (inside(registry, "mirrors") or inside(registry, "configs")) and "config_path" not in registry:
            inside(config, "plugins", images, "registry").pop("config_path", None)
    merge(config, given)
    spec = json.loads(files[SPEC])
    merge(spec, case.get("baseRuntimeSpec", {}))
    return dict(files, **{TOML: toml(config), SPEC: json.dumps(spec)}), ""


def breaks_pods(files, ours, world):
    """True if a pod would fail as nodestrap says. getrlimit(2) decides about a limit, containerd about a snapshotter that it must load.
    containerd decodes options of runc when a pod starts (internal/cri/config/config.go: GenerateRuntimeOptions()), so their types decide."""
    if ".options." in ours:
        return True
    if "rlimits" in ours:
        limits = json.loads(files[SPEC]).get("process", {}).get("rlimits", [])
        return any(not hasattr(resource, limit["type"]) or limit["soft"] > limit["hard"] for limit in limits)
    config = tomllib.loads(files[TOML])
    runtimes = [inside(config, "plugins", plugin, "containerd", "runtimes") for plugin in (CRI, RUNTIME)]
    names = {runtime.get("snapshotter", "") for table in runtimes for runtime in table.values()} - {""}
    return any(world.ask(dict(files, **{TOML: toml(dict(config, required_plugins=[f"io.containerd.snapshotter.v1.{name}"]))}))[0] is False
               for name in names)


def judge(case, plan, world):
    return as_wanted(case, compare(case, plan, world))


def compare(case, plan, world):
    where = f"{world.work}/config{next(world.numbers)}"
    files, ours = plan(case["spec"], None, where)
    if files:
        well, said = world.ask(files)
        return Verdict(case, "machine" if well is None else "taken" if well else "silent", "", said)
    files, said = handed(case["spec"].get("containerd", {}), plan, where)
    if not files:
        return Verdict(case, "otherwise", ours, said)
    well, said = world.ask(files)
    pods = well and " no pod " in ours and breaks_pods(files, ours, world)
    kind = "machine" if well is None else "refused" if not well else "pods" if pods else "strict"
    return Verdict(case, kind, ours or "refused", said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodestrap", required=True)
    parser.add_argument("--containerd", required=True)
    parser.add_argument("--kubelet-version", default="1.33.13")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-n", type=int, default=100, help="number of random cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of containerds that run in parallel")
    parser.add_argument("--also", action="append", default=[], help="a file with more cases")
    parser.add_argument("--only", default="*", help="run only the cases of --also whose name matches this pattern")
    parser.add_argument("--group", action="store_true", help="print one example of all cases with the same message")
    parser.add_argument("--show", action="store_true", help="print all cases, not only those of the kinds silent, strict and otherwise")
    args = parser.parse_args()

    version = re.search(r" v?(\d+\.\d+\.\d+)", subprocess.run([args.containerd, "--version"], capture_output=True, text=True).stdout)[1]
    number = tuple(map(int, version.split(".")[:2]))
    maker = Maker(args.seed, number)
    cases = [case for case in read_cases(args.also, args.only) if number[0] in case.get("major", (1, 2)) and version not in case.get("not", ())]
    cases += [{"spec": {"containerd": maker.case()}} for _ in range(args.n)]
    if args.also and fnmatch.fnmatch("config default", args.only):
        default = subprocess.run([args.containerd, "config", "default"], check=True, capture_output=True, text=True).stdout
        cases.append({"name": "config default", "wanted": "taken", "spec": {"containerd": {"config": default}}})

    work, pool = tempfile.mkdtemp(prefix="containerd-oracle."), None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))         # so that containerd ends and its files are removed
    try:
        plan, world = Planner(os.path.realpath(args.nodestrap), args.kubelet_version, version), World(args.containerd, work)
        control = judge({"spec": {}}, plan, world)
        if control.kind != "taken":
            print(f"containerd.py: containerd is not well with a plain plan here: {control.ours}{control.said}", file=sys.stderr)
            return 2
        pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
        verdicts = list(pool.map(lambda case: judge(case, plan, world), cases))
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)
        shutil.rmtree(work, ignore_errors=True)
    return finish(f"containerd {version}", args.seed, verdicts, args.n, args, normal)


if __name__ == "__main__":
    sys.exit(main())
