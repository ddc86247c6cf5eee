#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the verdicts of nodestrap and of a real kubelet on random kubelet settings (python3 standard library only, as root).

    kubelet.py --nodestrap build/nodestrap --kubelet KUBELET --containerd CONTAINERD -n 100 --seed 7

A case is a spec.kubelet of one to three settings, in config or as a flag; a third of the cases get a wrong value. `plan` makes the files,
and a real kubelet gets them unchanged. It has its own root, its own namespaces (mounts, network, processes, cgroups), a real containerd
and the sysctls of a node. A kubelet that stays logs the line STAYS, and then its server speaks TLS. By then its managers of containers,
CPUs, memory, devices, eviction and logs have started. A kubelet that fails exits by itself. If it does neither within LIMIT seconds, the
case counts as an exit, and the output says so.

    taken, refused  both verdicts agree
    silent          nodestrap accepts the case, and kubelet exits: a failure
    strict          nodestrap refuses the case, and kubelet stays. kubelet gets the plan of the same NodeConfig without the refused part,
                    which is then in one more drop-in or at the end of the flags. If one of our settings may conflict with that part
                    (YIELDS), a second kubelet runs without our setting
    otherwise       a case of --also with other verdicts than it wants: a failure
    machine         kubelet exits for a reason that only this machine has (MACHINE)
    on purpose      as strict, but nodestrap refuses the case on purpose (ON_PURPOSE)
    elsewhere       nodestrap refuses a part of the case outside the kubelet settings

There is no API server for the planned kubeconfig, so the oracle cannot find a Node that the API server would refuse. There is no systemd,
so the cgroup driver is cgroupfs, and kubelet continues without a delay of the shutdown. A machine with cgroup v1 does not test what needs
cgroup v2. No pod runs.

Fields and flags are those of conf/kubelet-settings.csv and conf/kubelet-flags.csv, feature gates those of kubelet --help.
Exit status: 0; 1 after a failure or with more than 1 % strict random cases (one is always allowed); 2 if kubelet does not stay with a plain
plan either.
"""

import argparse
import concurrent.futures
import ctypes
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from daemon import Planner, Verdict, as_wanted, finish, read_cases, rows

STAYS = "Starting Kubelet Plugin Manager"
LISTENS = re.compile(r'"Starting to listen"[ ,].*?"?port"?[=:]"?(\d+)')
LIMIT = 300
V1 = not os.path.exists("/sys/fs/cgroup/cgroup.controllers")            # cgroup v1
NODEADM = "/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf"       # the settings of the user
MACHINE = re.compile(r"no space left|too many open files|systemd not running|cgroup ?v2|cgroup v1|cgroups? v1|"
                     r"only supported on cgroup|cannot allocate memory|resource temporarily unavailable|"
                     r"has a reservation of .* but capacity of|"        # memory and disks, which a plan for a type does not know
                     r"error validating root container \[kubepods\]")   # kubelet has just made it, in a hierarchy that other processes use, too
# nodestrap refuses these on purpose, though kubelet may start. No pod can use huge pages that kubelet reserves (tests/userdata, V12). Two
# servers race for one port, and sometimes kubelet survives. kubelet 1.33 starts with fewer user IDs than its pods need, later versions do not.
ON_PURPOSE = re.compile(r"reserves huge pages|must differ from port|kubelet keeps \d+ user IDs for each pod")

# Fields that no case has: kubelet needs another file or socket for them, or this program sets them itself.
LEFT_OUT = """apiVersion kind containerRuntimeEndpoint imageServiceEndpoint tlsCertFile tlsPrivateKeyFile staticPodURL staticPodURLHeader
    resolvConf failCgroupV1 cgroupRoot volumePluginDir""".split()
# Values that kubelet may take, and wrong ones.
VALUES = {
    "address": (["0.0.0.0", "127.0.0.1", "::"], ["x", "10.0.0.300", 5]),
    "healthzBindAddress": (["127.0.0.1", "0.0.0.0"], ["x", "10.0.0.300"]),
    "authentication.x509.clientCAFile": ([""], ["x"]),      # /a need not be on the machine of a plan
    "allowedUnsafeSysctls": (
        [["net.core.somaxconn"], ["net.*"], ["kernel.shm*"], ["kernel.msgmax", "fs.mqueue.*"], ["kernel.sem"]],
        [["fs.aio-max-nr"], ["vm.max_map_count"], ["kernel.*"], ["*"], [""], ["net..x"], "net.core.somaxconn"]),
    "authentication": ([{"anonymous": {"enabled": True}}, {"webhook": {"cacheTTL": "1m"}}],
                       [{"webhook": {"enabled": "yes"}}, {"webhook": {"cacheTTL": 5}}, "Webhook"]),
    "authorization": ([{"mode": "Webhook"}, {"mode": "AlwaysAllow"}], [{"mode": "RBAC"}, {"mode": ""}, "Webhook"]),
    "cgroupDriver": (["cgroupfs"], ["cgroup", "Systemd"]),
    "clusterDNS": ([["10.100.0.10"], ["169.254.20.10", "10.100.0.10"], ["fd00::a"]], ["10.100.0.10", [5]]),
    "clusterDomain": (["cluster.local", "example.internal"], [5, ["a"]]),
    "configMapAndSecretChangeDetectionStrategy": (["Watch", "Cache", "Get"], ["None", "watch"]),
    "containerLogMaxSize": (["10Mi", "50M", "1Gi"], ["ten", "0", "-1", "10 Mi", "0.5"]),
    "contentType": (["application/vnd.kubernetes.protobuf", "application/json"], ["text/plain", 5]),
    "crashLoopBackOff": ([{"maxContainerRestartPeriod": d} for d in ("1s", "60s", "300s")] + [{}],
                         [{"maxContainerRestartPeriod": d} for d in ("0s", "999ms", "301s", "10m", "x")]),
    "defaultPodSysctls": ([{"net.core.somaxconn": "1024"}, {"net.ipv4.ip_forward": "1"}], [{"vm.swappiness": "1"}, {"": "x"}, ["a"]]),
    "kubeReservedCgroup": (["", "/runtime", "/runtime.slice"], ["runtime", 5]),
    "systemReservedCgroup": (["", "/system", "/system.slice"], ["system", 5]),
    "kubeletCgroups": (["", "/runtime/kubelet"], [5]),
    "systemCgroups": (["", "/lab"], [5]),
    "logging": ([{"format": "text"}, {"format": "json"}, {"verbosity": 4}, {"flushFrequency": "5s"}],
                [{"format": "xml"}, {"verbosity": -1}, {"flushFrequency": -1}, {"options": {"json": {"splitStream": True}}}, "text"]),
    "memorySwap": ([{"swapBehavior": w} for w in ("NoSwap", "LimitedSwap", "")], [{"swapBehavior": "UnlimitedSwap"}, {"swapBehavior": 1}]),
    "memoryThrottlingFactor": ([0.9, 1, 0.1], [0, 1.5, -1, "0.9"]),
    "port": ([10250, 10251], [0, 65536, 10248, 10255]),
    "healthzPort": ([10248, 0, 10250], [-1, 65536]),
    "readOnlyPort": ([0, 10255, 10250], [-1, 65536]),
    "podCIDR": (["10.1.0.0/24", "", "10.1.0.0/24,fd00::/64"], ["10.1.0.0", "x", "10.1.0.0/40"]),
    "podLogsDir": (["/var/log/pods", "/data/pods"], ["/var/log/pods/", "pods", "/var/../log", "/var/log/pöds", "/", ""]),
    "preloadedImagesVerificationAllowlist": ([["public.ecr.aws/*"], ["a.b/c"], []], [[""], ["a b"], ["*"], ["a/*/b"]]),
    "imagePullCredentialsVerificationPolicy": (["NeverVerify", "NeverVerifyPreloadedImages", "AlwaysVerify"],
                                               ["Always", "NeverVerifyAllowlistedImages"]),
    "providerID": (["aws:///us-west-2b/i-0", "x"], [5]),
    "qosReserved": ([{"memory": "50%"}, {"memory": "100%"}, {}], [{"memory": "half"}, {"memory": "101%"}, {"cpu": "10%"}, {"memory": "-1%"}]),
    "registerWithTaints": ([[{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}], [{"key": "x", "effect": "NoExecute"}], []],
                           [[{"key": k, "value": v, "effect": e}] for k, v, e in (("a/b/c", "", "NoSchedule"), ("x", "a b", "NoSchedule"),
                            ("x", "a", "Never"), ("", "", "NoSchedule"), ("x", "a", ""))] + [[{"key": "x", "effect": "NoSchedule"}] * 2]),
    "reservedSystemCPUs": (["0", "0-0", "", "1"], ["0-1", "0,1", "all", "0-", "1-0", "9999", "a"]),
    "showHiddenMetricsForVersion": ([""], ["1.32", "1.36", "x", "2.0"]),
    "shutdownGracePeriodByPodPriority": (
        [[{"priority": p, "shutdownGracePeriodSeconds": s}] for p, s in ((0, 10), (1000, 60), (2000000000, 10))] +
        [[{"priority": 0, "shutdownGracePeriodSeconds": 60}, {"priority": 100, "shutdownGracePeriodSeconds": 10}], []],
        [[{"priority": 0, "shutdownGracePeriodSeconds": -1}], [{"priority": 0, "shutdownGracePeriodSeconds": 5}] * 2, [{"priority": "high"}]]),
    "staticPodPath": (["/etc/kubernetes/manifests", ""], [5]),
    "tlsCipherSuites": ([["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], ["TLS_AES_128_GCM_SHA256"], ["TLS_RSA_WITH_AES_128_CBC_SHA"], []],
                        [["TLS_X"], ["tls_aes_128_gcm_sha256"], [""], "TLS_AES_128_GCM_SHA256"]),
    "tlsCurvePreferences": ([["X25519"], ["CurveP256", "X25519MLKEM768"], [29], [23, 24]], [["P-1"], [0], [70000], "X25519", [-1]]),
    "tracing": ([{"endpoint": "localhost:4317", "samplingRatePerMillion": r} for r in (0, 1000, 1000000)] + [{}],
                [{"endpoint": "x y"}, {"samplingRatePerMillion": 2000000}, {"samplingRatePerMillion": -1}, {"endpoint": "http://h:1/%zz"}]),
    "userNamespaces": ([{"idsPerPod": 65536}, {"idsPerPod": 131072}, {"idsPerPod": 2 ** 26}, {}], [{"idsPerPod": n} for n in (5, 0, -1, 65537, 2 ** 32, 2 ** 33)]),
}
SIGNALS = "memory.available nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree pid.available".split()
RESERVED = "cpu memory ephemeral-storage pid".split()
CPU_OPTIONS = """full-pcpus-only distribute-cpus-across-numa align-by-socket strict-cpu-reservation
    prefer-align-cpus-by-uncorecache distribute-cpus-across-cores""".split()
TOPOLOGY_OPTIONS = ["prefer-closest-numa-nodes", "max-allowable-numa-nodes"]
NODE_ALLOCATABLE = [["pods"], ["none"], [], ["pods", "kube-reserved"], ["pods", "system-reserved"], ["kube-reserved"],
                    ["pods", "system-reserved-compressible"], ["pods", "kube-reserved-compressible"]]
# Gates that one of the versions no longer has, or that are always on in it. kubelet --help names the others.
OLD_GATES = """DisableKubeletCloudCredentialProviders SidecarContainers AppArmor KubeletSeparateDiskGC GracefulNodeShutdown NodeSwap CPUManager
    MemoryManager DynamicResourceAllocation RotateKubeletServerCertificate DevicePlugins KubeletTracing NFTablesProxyMode
    LocalStorageCapacityIsolation GracefulNodeShutdownBasedOnPodPriority InPlacePodVerticalScaling DynamicResourceAlocation
    CPUManagerPolicyOptions TopologyManagerPolicyOptions KubeletCgroupDriverFromCRI RotateKubeletClientCertificate NoSuchGate""".split()

# Settings that kubelet or the plan reads together.
TOGETHER = """shutdownGracePeriod shutdownGracePeriodCriticalPods / cpuManagerPolicy reservedSystemCPUs / cpuManagerPolicy kubeReserved /
    cpuManagerPolicy cpuManagerPolicyOptions / memoryManagerPolicy reservedMemory / memoryManagerPolicy kubeReserved /
    topologyManagerPolicy topologyManagerPolicyOptions / evictionSoft evictionSoftGracePeriod / imageMinimumGCAge imageMaximumGCAge /
    imageGCHighThresholdPercent imageGCLowThresholdPercent / serializeImagePulls maxParallelImagePulls /
    enforceNodeAllocatable systemReservedCgroup / enforceNodeAllocatable kubeReservedCgroup / enforceNodeAllocatable cgroupsPerQOS /
    enforceNodeAllocatable reservedSystemCPUs / reservedSystemCPUs systemReservedCgroup / featureGates shutdownGracePeriod /
    featureGates memorySwap / featureGates crashLoopBackOff / featureGates cpuManagerPolicyOptions / featureGates serverTLSBootstrap /
    featureGates topologyManagerPolicyOptions / featureGates qosReserved / featureGates userNamespaces / featureGates tracing /
    featureGates shutdownGracePeriodByPodPriority / shutdownGracePeriod shutdownGracePeriodByPodPriority / evictionHard reservedMemory /
    imagePullCredentialsVerificationPolicy preloadedImagesVerificationAllowlist / tlsMinVersion tlsCipherSuites /
    podsPerCore maxPods / nodeStatusUpdateFrequency nodeStatusReportFrequency / enableServer enableDebuggingHandlers /
    enableSystemLogHandler enableSystemLogQuery / enableDebuggingHandlers enableContentionProfiling / port readOnlyPort /
    port healthzPort / userNamespaces maxPods / featureGates cpuCFSQuotaPeriod / featureGates enableSystemLogQuery /
    localStorageCapacityIsolation kubeReserved / localStorageCapacityIsolation evictionHard / featureGates memoryThrottlingFactor /
    registerNode registerWithTaints / serverTLSBootstrap rotateCertificates / mergeDefaultEvictionSettings evictionHard /
    kubeReserved systemReserved / evictionSoft evictionMaxPodGracePeriod"""
TOGETHER = [pair.split() for pair in TOGETHER.split("/")]
# Settings that the plan sets, or uses to compute others.
BESIDE_OURS = """shutdownGracePeriod shutdownGracePeriodCriticalPods shutdownGracePeriodByPodPriority reservedSystemCPUs systemReservedCgroup
    kubeReservedCgroup serverTLSBootstrap enforceNodeAllocatable kubeReserved systemReserved evictionHard reservedMemory
    memoryManagerPolicy cpuManagerPolicy""".split()
# The gates of a setting.
GATES_OF = {
    "shutdownGracePeriod": ["GracefulNodeShutdown"], "memorySwap": ["NodeSwap"], "crashLoopBackOff": ["KubeletCrashLoopBackOffMax"],
    "cpuManagerPolicyOptions": ["CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions", "CPUManagerPolicyOptions"],
    "serverTLSBootstrap": ["RotateKubeletServerCertificate"], "qosReserved": ["QOSReserved"], "tracing": ["KubeletTracing"],
    "topologyManagerPolicyOptions": ["TopologyManagerPolicyAlphaOptions", "TopologyManagerPolicyBetaOptions"],
    "cpuCFSQuotaPeriod": ["CustomCPUCFSQuotaPeriod", "CPUCFSQuotaPeriod"], "enableSystemLogQuery": ["NodeLogQuery"],
    "memoryThrottlingFactor": ["MemoryQoS"], "userNamespaces": ["UserNamespacesSupport"], "shutdownGracePeriodByPodPriority": ["GracefulNodeShutdownBasedOnPodPriority"],
}
OF_ALL = ["AllAlpha", "AllBeta"]
# Flags without a setting: values that kubelet may take, and wrong ones. nodestrap does not know the types of those that --more adds.
FLAGS = {
    "node-labels": (["a=b", "topology.kubernetes.io/zone=us-west-2a", "node.kubernetes.io/x=y"], ["kubernetes.io/x=1", "a=-b", "=b"]),
    "v": (["0", "4"], ["abc"]), "no-such-flag": ([], ["1"]),
}
MORE_FLAGS = {
    "vmodule": (["kubelet=3", ""], ["kubelet", "x=y"]), "cloud-provider": (["external", ""], ["aws", "x"]),
    "housekeeping-interval": (["10s"], ["x"]), "exit-on-lock-contention": (["false"], ["true", "x"]), "cert-dir": (["/var/lib/pki"], []),
    "log-flush-frequency": (["5s"], ["x", "-1"]), "minimum-container-ttl-duration": (["1s"], ["1"]), "maximum-dead-containers": (["5"], ["x"]),
    "node-ip": (["10.0.0.10", "::", "10.0.0.10,fd00::a"], ["x", "10.0.0.10,10.0.0.11"]), "register-schedulable": (["true"], []),
    "runtime-cgroups": (["/runtime.slice/containerd.service"], []), "keep-terminated-pod-volumes": (["true"], ["x"]),
}
# Words in a case, and values that turn off those of our settings that may conflict with it.
YIELDS = ((re.compile(r"reservedSystemCPUs|--reserved-cpus"), {"systemReservedCgroup": "", "kubeReservedCgroup": ""}),
          (re.compile(r"shutdownGracePeriod|GracefulNodeShutdown"), {"shutdownGracePeriod": "0s", "shutdownGracePeriodCriticalPods": "0s"}),
          (re.compile(r"RotateKubeletServerCertificate"), {"serverTLSBootstrap": False}))


# ---------------------------------------------------------------- cases

class Maker:
    """Cases of one version, from one seed."""

    def __init__(self, seed, minor, help_text, more):
        self.more = {**FLAGS, **MORE_FLAGS} if more else FLAGS
        self.random = random.Random(f"{seed} of 1.{minor}")
        self.types, self.limits, self.flags = {}, {}, {}
        for name, kind, first, limits in rows("kubelet-settings.csv", 4):
            if name not in LEFT_OUT and int(first or 0) <= minor:
                self.types[name], self.limits[name] = kind, limits
        for name, first, last, key, _ in rows("kubelet-flags.csv", 5):
            if key in self.types and int(first or 0) <= minor < int(last or 99):
                self.flags[key] = name
        self.types["noSuchSetting"], self.limits["noSuchSetting"] = "string", ""
        self.gates = sorted(set(re.findall(r"(\w+)=true\|false \((?:ALPHA|BETA|DEPRECATED)", help_text)) | set(OLD_GATES))

    def whole(self, name):
        low, high = (int(limit) if limit else default for limit, default in
                     zip((self.limits[name] or ":").split(":"), (0, 2 ** 31 - 1)))
        good = [n for n in (low, low + 1, 1, 2, 10, 50, 85, 100, 101, 250, 1000, 65536, high) if low <= n <= high]
        return good, [low - 1, high + 1, -1, "10", "ten", 1.5, 2 ** 31, 2 ** 63, True]

    def quantity(self, wrong):
        return self.random.choice(["-1", "x", "110%", "1 Gi", "", "1gi", "500MB", "1000Gi", "-5%", 1]
                                  if wrong else ["100m", "1", "500Mi", "1.5Gi", "5%", "10%", "0", "1e3", "0%", "100%"])

    def some(self, words, value, most=2):
        return {word: value() for word in self.random.sample(words, self.random.randint(1, min(most, len(words))))}

    def value(self, name, wrong, beside):
        pick, kind = self.random.choice, self.types[name]
        if wrong and self.random.random() < .03:
            return None
        if name in VALUES:
            return pick(VALUES[name][wrong])
        if kind == "bool":
            return pick(["true", "yes", 1, 0] if wrong else [True, False])
        if kind == "int":
            return pick(self.whole(name)[wrong])
        if kind == "duration":
            return pick(["-1s", "5", "10 s", 5, "1d", "", "1h1", "1e3s"] if wrong else
                        ["0s", "1s", "10s", "20s", "1m", "3m", "1h", "100ms", "1.5h", "+5s"])
        if kind == "gates":
            gates = GATES_OF.get(beside) or pick([self.gates, sorted(sum(GATES_OF.values(), OF_ALL))])
            return self.some(gates, lambda: "on" if wrong and pick([0, 0, 1]) else pick([True, True, False]))
        if name in ("evictionHard", "evictionSoft", "evictionMinimumReclaim"):
            return self.some(SIGNALS + ["memory.free"] * wrong, lambda: self.quantity(wrong))
        if name == "evictionSoftGracePeriod":
            return self.some(SIGNALS[:2] + ["memory.free"] * wrong, lambda: pick(["x", "-1s", "5", "0s"] if wrong else ["1m", "30s"]))
        if kind == "quantities":
            return self.some(RESERVED + ["gpu"] * wrong, lambda: self.quantity(wrong))
        if name == "cpuManagerPolicyOptions":
            return self.some(CPU_OPTIONS + ["pin"] * wrong, lambda: pick(["yes", "", True] if wrong else ["true", "true", "false"]))
        if name == "topologyManagerPolicyOptions":
            return self.some(TOPOLOGY_OPTIONS + ["closest"] * wrong, lambda: pick(["yes", "4", "0", "-1"] if wrong else ["true", "8", "16", "false"]))
        if name == "enforceNodeAllocatable":
            return pick([["all"], ["pods", "none"], ["none", "pods"], "pods", ["pods", "pods"]] if wrong else NODE_ALLOCATABLE)
        if name == "reservedMemory":
            kinds, sizes, nodes = (["cpu", "memory", ""], ["x", "-1", "0"], [-1, 1, 0, 9]) if wrong else \
                (["memory", "memory", "hugepages-2Mi"], ["1Gi", "674Mi", "1174Mi", "100Mi"], [0])
            return [{"numaNode": pick(nodes), "limits": {pick(kinds): pick(sizes)}} for _ in range(pick([1, 1, 2]))]
        if "|" in self.limits[name]:
            words = self.limits[name].split("|")
            return pick([words[0] + "x", words[-1].swapcase(), "", 5] if wrong else words)
        if kind in ("string", "strings"):
            return pick([5, True, {"a": "b"}] if wrong else ["", "x", "/a"] if kind == "string" else [["a"], []])
        return pick(["x", 5, ["a"]]) if wrong else {}

    def names(self):
        chance = self.random.random()
        if chance < .35:
            pair = self.random.choice(TOGETHER)
            return pair if all(name in self.types for name in pair) else pair[:1]
        if chance < .52:
            return self.random.sample(BESIDE_OURS, self.random.choice([1, 1, 2]))
        if chance < .62:
            return ["featureGates"]
        if chance < .66:
            return []
        return self.random.sample(sorted(self.types), self.random.choice([1, 1, 1, 2]))

    def case(self):
        names = [name for name in self.names() if name in self.types]
        bad = self.random.choice(names) if names and self.random.random() < 1 / 3 else ""
        case = {}
        for name in names:
            value = self.value(name, name == bad, next((other for other in names if other != name), ""))
            flag = self.flags.get(name)
            words = flag and f"--{flag}={words_of(name, value)}"
            if words and self.random.random() < .2 and re.fullmatch(r"[^\s\"'\\$]+", words):
                case.setdefault("flags", []).append(words)
            else:
                case.setdefault("config", {})[name] = value
        if self.random.random() < .06 or not case:
            flag = self.random.choice(sorted(self.more))
            good, wrong = self.more[flag]
            case.setdefault("flags", []).append(f"--{flag}={self.random.choice(good + wrong)}")
        return case


def words_of(name, value):
    """The value in the syntax of a flag."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        sign = "<" if name in ("evictionHard", "evictionSoft") else "="
        return ",".join(f"{key}{sign}{words_of('', member)}" for key, member in value.items())
    if isinstance(value, list) and name == "registerWithTaints":
        return ",".join(f"{t.get('key')}{'=' + t['value'] if t.get('value') else ''}:{t.get('effect')}" for t in value)
    if isinstance(value, list) and name == "reservedMemory":
        return ";".join(f"{m['numaNode']}:{words_of('', m['limits'])}" for m in value)
    if isinstance(value, list):
        return ",".join(words_of("", member) for member in value)
    return str(value)


# ---------------------------------------------------------------- plan

def parts(kubelet):
    return [("config", name) for name in kubelet.get("config", {})] + [("flags", flag) for flag in kubelet.get("flags", [])]


def without(kubelet, gone):
    return {"config": {name: value for name, value in kubelet.get("config", {}).items() if ("config", name) not in gone},
            "flags": [flag for flag in kubelet.get("flags", []) if ("flags", flag) not in gone]}


# ---------------------------------------------------------------- kubelet

# Arguments: ROOT KUBELET NAME SOCKET FLAG…. kubelet gets a cgroup NAME in each hierarchy, which is the root of its cgroup namespace. The
# script reads the list of hierarchies first, because the list changes when the process moves.
ENTER = r"""set -e; name=$3; hierarchies=$(</proc/self/cgroup)
while IFS=: read -r _ kind path; do
    top=/sys/fs/cgroup/${kind#name=}
    [ -n "$kind" ] || [ -e $top/cgroup.controllers ] || top=${top%/}/unified
    [ -d $top ] || continue
    [ ! -e $top/cgroup.controllers ] && [ -w "$top$path/cgroup.procs" ] || path=''
    [ $top != /sys/fs/cgroup/ ] || for controller in $(cat $top/cgroup.controllers); do echo +$controller >$top/cgroup.subtree_control || :; done
    own=${top%/}${path%/}/$name; mkdir $own
    [ ! -e $own/cpuset.mems ] || [ -n "$(cat $own/cpuset.mems)" ] || [ -e $own/cgroup.type ] ||
        { cat $own/../cpuset.cpus >$own/cpuset.cpus; cat $own/../cpuset.mems >$own/cpuset.mems; }
    echo $$ >$own/cgroup.procs
done <<<"$hierarchies"
export own; exec unshare --cgroup bash -c "$BESIDE" kubelet "$@"
"""
# The root of a hierarchy of cgroup v2 has no process, so that its children may have controllers.
BESIDE = r"""set -e
[ ! -e $own/cgroup.subtree_control ] || { mkdir $own/kubelet; echo $$ >$own/kubelet/cgroup.procs; }
exec unshare --mount --net --pid --fork --kill-child --propagation private bash -c "$INSIDE" kubelet "$@"
"""
INSIDE = r"""set -e; root=$1 kubelet=$2 socket=$4; shift 4
ip link set lo up
mount -t tmpfs t $root/var; mount -t tmpfs t $root/run; mkdir -p $root/var/{lib,log} $root/run/containerd; cp -r $root/planned/. $root/var/
mount -t proc p $root/proc; mount -t sysfs -o ro s $root/sys; mount --rbind /dev $root/dev; mount -t tmpfs t $root/sys/fs/cgroup
for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
            kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    echo ${pair#*=} >$root/run/${pair##*/}; mount --bind $root/run/${pair##*/} $root/proc/sys/${pair%=*}
done 2>/dev/null
echo 'Filename Type Size Used Priority' >$root/run/swaps; mount --bind $root/run/swaps $root/proc/swaps
while IFS=: read -r _ kind _; do
    top=$root/sys/fs/cgroup/${kind#name=}
    case $kind in
    '') [ -e /sys/fs/cgroup/cgroup.controllers ] || { top=${top%/}/unified; mkdir $top; }; mount -t cgroup2 c $top;;
    name=*) mkdir $top; mount -t cgroup -o none,$kind c $top;;
    *) mkdir $top; mount -t cgroup -o $kind c $top;;
    esac
    if [ -e $top/cgroup.controllers ] && [ -z "$kind" ]; then
        for controller in $(cat $top/cgroup.controllers); do echo +$controller >$top/cgroup.subtree_control; done
    fi
    mkdir -p $top/{system,system.slice,runtime,runtime.slice}
done <<<"$(</proc/self/cgroup)"
mount --bind $kubelet $root/usr/bin/kubelet; mount --bind $socket $root/run/containerd
exec chroot $root /usr/bin/kubelet "$@"
"""
FATAL = re.compile(r'^E\d{4}.*"(command failed|Failed to (run|start|load|initialize|create|validate|construct|listen)[^"]*|[^"]*(exit|invalid)[^"]*)"'
                   r"|^panic:|^F\d{4}|^Error:|^fatal error:|^E\d{4}.*run\.go")


def sentence(lines):
    """The last line in which kubelet says why it exits."""
    found = [line for line in lines if FATAL.search(line)] or [line for line in lines if line.strip()] or ["(nothing)"]
    line = re.sub(r'^[EFIW]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] ', "", found[-1].strip())
    line = re.sub(r'^"?command failed"? err="(.*)"$', r"\1", line).replace(", path: &TypeMeta{Kind:,APIVersion:,}", "")
    return line.replace("failed to validate kubelet configuration, error: ", "")[:700]


def normal(text):
    """The same text for messages that differ only in a name or a number."""
    text = re.sub(r'\\*"[^"]*\\*"|\{[^}]*\}', '""', re.sub(r"^.*config\d+\.yaml, line 1: ", "", text))
    text = re.sub(r"\b(memory|nodefs|imagefs|pid)\.\w+|map\[[^]]*\]|(?<=gate: )\w+|(?<=feature gate )\w+(?= to)", "X", text)
    return re.sub(r"-?\d[\w.]*", "N", text)[:160]


def enter(path):
    """Moves only this thread into that network namespace."""
    with open(path) as network:
        if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns: " + path)


def answers(process, port):
    """True if a kubelet speaks TLS at PORT before it exits. It listens before it has read all settings of TLS."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    home = f"/proc/self/task/{threading.get_native_id()}/ns/net"
    with open(home) as here:
        while process.poll() is None:
            try:
                enter(f"/proc/{process.pid}/ns/net")
                link = socket.create_connection(("127.0.0.1", port), 5)
            except OSError:
                link = None
            finally:
                enter(f"/proc/self/fd/{here.fileno()}")
            try:
                if link:
                    context.wrap_socket(link).close()
                    return True
            except ssl.SSLEOFError:
                pass
            except ssl.SSLError:        # an alert is an answer: the server has no certificate yet, or a later version of TLS than ours
                return True
            except OSError:
                pass
            time.sleep(.02)
    return False


class World:
    def __init__(self, kubelet, containerd, work, minor):
        self.kubelet, self.work, self.minor = kubelet, work, minor
        self.numbers = itertools.count()
        self.prefix = f"nodestrap-oracle.{os.getpid()}"
        os.makedirs(work + "/containerd")
        with open(work + "/containerd.toml", "w") as file:
            file.write(f"""version = 2
root = '{work}/content'
state = '{work}/state'
disabled_plugins = ['io.containerd.nri.v1.nri']
[grpc]
address = '{work}/containerd/containerd.sock'
[ttrpc]
address = '{work}/containerd/containerd.sock.ttrpc'
""")
        self.log = open(work + "/containerd.log", "w+")
        self.containerd = subprocess.Popen([containerd, "-c", work + "/containerd.toml"], stdout=self.log, stderr=self.log)
        end = time.monotonic() + LIMIT
        while not os.path.exists(work + "/containerd/containerd.sock"):
            if self.containerd.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                sys.exit("kubelet.py: containerd does not start: " + self.log.read()[-500:])
            time.sleep(.05)

    def root(self, files):
        """Makes a root for kubelet with these files."""
        root = f"{self.work}/root{next(self.numbers)}"
        for folder in "proc sys dev tmp var run usr/bin planned/lib/kubelet etc/eks/image-credential-provider".split():
            os.makedirs(f"{root}/{folder}")
        own = {"/etc/passwd": "root:x:0:0::/:/bin/sh\n", "/etc/machine-id": "0" * 32 + "\n", "/usr/bin/kubelet": "",
               "/etc/eks/image-credential-provider/ecr-credential-provider": "", "/etc/kubernetes/manifests/.keep": ""}
        for path, content in {**own, **files}.items():
            if not path.startswith(("/run/", "/etc/containerd/")):
                path = root + re.sub("^/var/", "/planned/", path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file:
                    file.write(content)
        os.chmod(root + "/etc/eks/image-credential-provider/ecr-credential-provider", 0o755)
        return root

    def ask(self, files, drop_in=None, flags=()):
        """(True if kubelet stays with these files, None if only this machine prevents that; its last message)"""
        files = dict(files)
        words = re.search("^NODEADM_KUBELET_ARGS=(.*)", files["/etc/eks/kubelet/environment"], re.M)[1].split()
        if drop_in:
            content = dict({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}, **drop_in)
            files["/etc/kubernetes/kubelet/config.json.d/99-oracle.conf"] = json.dumps(content)
            if not any(word.startswith("--config-dir") for word in words):
                words.append("--config-dir=/etc/kubernetes/kubelet/config.json.d")
        words += flags
        if not re.search("--cgroup-driver|cgroupDriver", json.dumps([files.get(NODEADM), drop_in, words])):
            words.append("--cgroup-driver=cgroupfs")
        if V1 and self.minor >= 31:
            words.append("--fail-cgroupv1=false")
        words.append("--v=2")
        root, name = self.root(files), f"{self.prefix}.{next(self.numbers)}"
        process = subprocess.Popen(
            ["bash", "-c", ENTER, "kubelet", root, self.kubelet, name, self.work + "/containerd", *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env={"PATH": os.environ["PATH"], "BESIDE": BESIDE, "INSIDE": INSIDE, "KUBELET_CONFIG_DROPIN_DIR_ALPHA": "yes"})
        late = threading.Timer(LIMIT, process.kill)
        late.start()
        lines, stays, port = [], False, None
        for line in process.stdout:
            lines.append(line)
            port = LISTENS.search(line) or port
            if STAYS in line:
                stays = not port or answers(process, int(port[1]))
                process.kill()
        process.wait()
        if not late.is_alive() and not stays:
            lines.append(f"kubelet neither stays nor ends in {LIMIT} s")
        late.cancel()
        self.leave(name)
        shutil.rmtree(root, ignore_errors=True)
        said = "stays" if stays else sentence(lines)
        return (True if stays else None if MACHINE.search(said) else False), said

    def leave(self, name):
        """Removes the cgroups of one kubelet. Its processes stay in them for a moment after they have closed their files."""
        end = time.monotonic() + LIMIT
        find = ["find", "/sys/fs/cgroup", "-depth", "-type", "d", "(", "-path", f"*/{name}", "-o", "-path", f"*/{name}/*", ")"]
        while subprocess.run(find + ["-not", "-exec", "rmdir", "{}", ";", "-print"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL).stdout and time.monotonic() < end:
            time.sleep(.02)

    def close(self):
        self.containerd.terminate()
        self.containerd.wait()
        self.leave(self.prefix + ".*")


# ---------------------------------------------------------------- comparison

def judge(case, plan, world):
    """The verdict; "otherwise" if the case wants another one, or if config check and the plan disagree about it."""
    verdict = compare(case, plan, world)
    wanted = as_wanted(case, verdict, "cgroup" in case)
    if wanted.kind == "otherwise":
        return wanted
    if case.get("everywhere") and plan.check(case["spec"], f"{world.work}/config{next(world.numbers)}") == bool(verdict.ours):
        return verdict._replace(kind="otherwise", said="config check says otherwise than the plan")
    return verdict


def compare(case, plan, world):
    spec, instance_type = case["spec"], case.get("type")
    where = f"{world.work}/config{next(world.numbers)}"
    files, ours = plan(spec, instance_type, where)
    if files:
        stays, said = world.ask(files)
        return Verdict(case, "machine" if stays is None else "taken" if stays else "silent", "", said)
    kubelet = spec.get("kubelet", {})
    for count in range(1, len(parts(kubelet)) + 1):
        for gone in itertools.combinations(parts(kubelet), count):
            files, _ = plan(dict(spec, kubelet=without(kubelet, gone)), instance_type, where)
            if files:
                break
        if files:
            break
    else:
        return Verdict(case, "elsewhere", ours, "")
    drop_in = {name: kubelet["config"][name] for kind, name in gone if kind == "config"}
    flags = [flag for kind, flag in gone if kind == "flags"]
    stays, said = world.ask(files, drop_in, flags)
    more = {}
    for pattern, settings in YIELDS:
        if pattern.search(json.dumps(kubelet)):
            more.update(settings)
    more = {name: value for name, value in more.items() if name not in kubelet.get("config", {})}
    if stays is False and more:
        stays, said = world.ask(files, {**more, **drop_in}, flags)
    kind = "machine" if stays is None else "refused" if not stays else "on purpose" if ON_PURPOSE.search(ours or "") else "strict"
    return Verdict(case, kind, ours or "refused", said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodestrap", required=True)
    parser.add_argument("--kubelet", required=True)
    parser.add_argument("--containerd", required=True)
    parser.add_argument("--version", help="version of kubelet (default: that of kubelet --version)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-n", type=int, default=100, help="number of random cases")
    parser.add_argument("--jobs", type=int, default=2 * os.cpu_count(), help="number of kubelets that run in parallel; each waits most of its time")
    parser.add_argument("--more", action="store_true", help="also try flags without a setting whose type nodestrap does not know")
    parser.add_argument("--also", action="append", default=[], help="a file with more cases")
    parser.add_argument("--only", default="*", help="run only the cases of --also whose name matches this pattern")
    parser.add_argument("--group", action="store_true", help="print one example of all cases with the same message")
    parser.add_argument("--show", action="store_true", help="print all cases, not only those of the kinds silent, strict and otherwise")
    args = parser.parse_args()

    said = subprocess.run([args.kubelet, "--version"], capture_output=True, text=True).stdout
    version = args.version or said.split(" v")[-1].strip()
    minor = int(version.split(".")[1])
    gates = subprocess.run([args.kubelet, "--help"], capture_output=True, text=True).stdout
    maker = Maker(args.seed, minor, gates, args.more)
    cases = [case for case in read_cases(args.also, args.only) if minor in range(case.get("from", 0), case.get("until", 99)) and
             not (V1 and case.get("cgroup") == 2)]
    cases += [{"spec": {"kubelet": maker.case()}} for _ in range(args.n)]

    work = tempfile.mkdtemp(prefix="kubelet-oracle.")
    world = pool = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))         # so that containerd ends and the cgroups are removed
    try:
        plan, world = Planner(os.path.realpath(args.nodestrap), version), World(args.kubelet, args.containerd, work, minor)
        control = judge({"spec": {}}, plan, world)
        if control.kind != "taken":
            print(f"kubelet.py: kubelet does not stay with a plain plan here: {control.ours}{control.said}", file=sys.stderr)
            return 2
        pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
        verdicts = list(pool.map(lambda case: judge(case, plan, world), cases))
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)
        if world:
            world.close()
        shutil.rmtree(work, ignore_errors=True)
    return finish(f"kubelet {version}", args.seed, verdicts, args.n, args, normal)


if __name__ == "__main__":
    sys.exit(main())
