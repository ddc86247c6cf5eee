#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs conf/refresh/*.py on made-up public data. Prints TAP. Data that a table has give no diff; a new type or a changed number does.
A script writes only with --write, and its table still builds. The shapes are those of EC2's DescribeInstanceTypes, of pci.ids and of
the Go sources of Kubernetes."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
TMP = Path(tempfile.mkdtemp())
CONF = TMP / "conf"
count, bad = 0, 0


def result(good, name, why=""):
    global count, bad
    count, bad = count + 1, bad + (not good)
    print(f"{'ok' if good else 'not ok'} {count} - {name}" + ("" if good else "\n# " + str(why).replace("\n", "\n# ")))


def rows_of(name):
    return [line for line in (CONF / (name + ".csv")).read_text().splitlines() if not line.startswith("#")]


def table(name, rows):
    """A table with the head of the real one, and these rows."""
    head = [line for line in (TOP / "conf" / (name + ".csv")).read_text().splitlines() if line.startswith("#")]
    (CONF / (name + ".csv")).write_text("\n".join(head + rows) + "\n")


def run(name, *arguments):
    return subprocess.run([sys.executable, str(TOP / "conf/refresh" / (name + ".py")), *map(str, arguments), "--conf", str(CONF), "--as-of", "2027-01-02"],
                          capture_output=True, text=True)


def judge(name, same, new, added, taken=(), told=""):
    """Data that the table has give no diff; the new data give these lines of a diff, and --write makes them."""
    before = (CONF / (name + ".csv")).read_text()
    done = run(name, *same)
    result(done.returncode == 0 and not done.stdout, f"{name}: data that the table already has give no diff", done.stdout + done.stderr)
    done = run(name, *new)
    lines = [line for line in done.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---") and "# As of" not in line]
    want = ["-" + row for row in taken] + ["+" + row for row in added]
    result(done.returncode == 1 and sorted(lines) == sorted(want), f"{name}: new data give a diff", done.stdout + done.stderr)
    if told:
        result(told in done.stderr, f"{name}: stderr names what the script cannot decide", done.stderr)
    result((CONF / (name + ".csv")).read_text() == before, f"{name}: the script writes nothing without --write")
    done = run(name, *new, "--write")
    built = subprocess.run(["awk", "-f", str(TOP / "conf/tables.awk"), "-v", "table=" + name, str(CONF / (name + ".csv"))], capture_output=True, text=True)
    result(done.returncode == 0 and set(added) <= set(rows_of(name)) and not set(taken) & set(rows_of(name)) and built.returncode == 0,
           f"{name}: with --write the script writes the rows, and the table builds", done.stdout + built.stderr)
    text = (CONF / (name + ".csv")).read_text()
    result("\n# As of 2027-01-02" in text and run(name, *new).returncode == 0, f"{name}: --write sets the day of the data and leaves no difference")


def answer(name, *types):
    (TMP / name).write_text(json.dumps({"InstanceTypes": types}))
    return TMP / name


def ec2(name, gpus=0, gpu="H100", cards=1, efa=0, takes=None, interfaces=2, vcpus=192, rate=100.0, disks=(8, 3800)):
    """A type as aws ec2 describe-instance-types prints it: the keys that the scripts read, and some others."""
    one = {"InstanceType": name, "CurrentGeneration": True, "VCpuInfo": {"DefaultVCpus": vcpus}, "MemoryInfo": {"SizeInMiB": 2097152},
           "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
           "NetworkInfo": {"MaximumNetworkCards": cards, "DefaultNetworkCardIndex": 0, "Ipv4AddressesPerInterface": 50, "EfaSupported": efa > 0,
                           "MaximumNetworkInterfaces": cards * interfaces,
                           "NetworkCards": [{"NetworkCardIndex": card, "MaximumNetworkInterfaces": interfaces, "PeakBandwidthInGbps": rate,
                                             "InterfaceTypes": (takes or {}).get(card, ["interface", "efa", "efa-only"] if efa else ["interface"])}
                                            for card in range(cards)]}}
    if efa:
        one["NetworkInfo"]["EfaInfo"] = {"MaximumEfaInterfaces": efa}
    if gpus:
        one["GpuInfo"] = {"Gpus": [{"Name": gpu, "Manufacturer": "NVIDIA", "Count": gpus, "MemoryInfo": {"SizeInMiB": 81920}}]}
    if disks:
        one["InstanceStorageInfo"] = {"Disks": [{"Count": disks[0], "SizeInGB": disks[1], "Type": "ssd"}]}
    return one


def of_ec2():
    p5 = ec2("p5.48xlarge", 8, cards=32, efa=32)
    same = answer("same.json", p5, ec2("m5.large", disks=None))
    p9 = ec2("p9.48xlarge", 8, "H100", cards=3, efa=2, takes={0: ["interface"]}, rate=400.0)
    new = answer("new.json", dict(p5, VCpuInfo={"DefaultVCpus": 256}, NetworkInfo=dict(p5["NetworkInfo"], EfaInfo={"MaximumEfaInterfaces": 16})), p9,
                 ec2("m9.large", disks=None, interfaces=3))
    table("instance-types", ["p5.48xlarge,192,2048,8,nvidia-h100-80gb,10de:2330,32,32,8,3800,pci,x86_64,2,",
                             "p6e-gb200.36xlarge,144,960,4,nvidia-gb200,10de:2941,17:2,16,3,7500,nvl5-offhost,arm64,2,"])
    judge("instance-types", [same], [new], ["p5.48xlarge,256,2048,8,nvidia-h100-80gb,10de:2330,32,16,8,3800,pci,x86_64,2,",
                                            "p9.48xlarge,192,2048,8,nvidia-h100-80gb,10de:2330,3,2,8,3800,,x86_64,,"],
          ["p5.48xlarge,192,2048,8,nvidia-h100-80gb,10de:2330,32,32,8,3800,pci,x86_64,2,"], "so that they stay: p6e-gb200.36xlarge")
    table("eni-limits", ["m5,large:2:50", "p5,48xlarge:2:50"])
    new = answer("new.json", p5, ec2("m5.large", interfaces=4), ec2("m9.large", cards=2, interfaces=3), ec2("m9.xlarge"))
    judge("eni-limits", [same], [new], ["m5,large:4:50", "m9,large:3:50:2,xlarge:2:50"], ["m5,large:2:50"])
    table("network-cards", ["p5.48xlarge,0-31,both,100,,", "p6e-gb200.36xlarge,0,ena,,100,", "p6e-gb200.36xlarge,1-3:2,efa,400,,0"])
    rack = ec2("p9e.36xlarge", 4, cards=5, efa=4, takes={0: ["interface"], 1: ["efa-only"], 3: ["efa-only"]}, rate=400.0)
    new = answer("new.json", ec2("p5.48xlarge", 8, cards=16, efa=16, rate=200.0), p9, rack, ec2("m9.large", cards=2, efa=2))
    judge("network-cards", [same], [new], ["p5.48xlarge,0-15,both,200,,", "p9.48xlarge,0,ena,,400,", "p9.48xlarge,1-2,both,400,,",
                                           "p9e.36xlarge,0,ena,,400,", "p9e.36xlarge,1-3:2,efa,400,,", "p9e.36xlarge,2-4:2,both,400,,"],
          ["p5.48xlarge,0-31,both,100,,"], "so that they stay: p6e-gb200.36xlarge")


def of_pci():
    ids = ["# the list of PCI ids", "10de  NVIDIA Corporation", "\t1af1  GA100 [A100 NVSwitch]", "\t2330  GH100 [H100 SXM5 80GB]", "\t\t10de 16c1  a board",
           "\t22a3  GH100 [H100 NVSwitch]", "1d0f  Amazon.com, Inc.", "\t8061  NVMe EBS Controller", "\tefa0  Elastic Fabric Adapter (EFA)",
           "\tefa1  Elastic Fabric Adapter (EFA)", "ffff  Illegal Vendor ID"]
    same, new = TMP / "pci.ids", TMP / "new.ids"
    same.write_text("\n".join(ids) + "\n")
    new.write_text("\n".join(ids[:4] + ["\t2331  GA100 [A100 PCIe]", "\t4001  GR100 [R100 SXM]"] + ids[5:7] + ["\t7464  NeuronDevice (Trainium3)"] + ids[7:]).replace("22a3", "22a4") + "\n")
    table("gpus", ["2330,h100,hopper,h100,,,,pci,4,yes,,18,3350", "2335,h200,hopper,h200,,,,pci,4,yes,,18,4800"])
    one = answer("one.json", ec2("p5.48xlarge", 8))
    two = answer("two.json", ec2("p5.48xlarge", 8), ec2("p7.48xlarge", 8, "R100"), ec2("p8.48xlarge", 8, "X100"))
    judge("gpus", [same, one], [new, two], ["4001,r100," + "," * 10], told="a GPU of EC2's without an id in pci.ids: X100")
    table("gpus", ["2331,h100,hopper,h100,,,,pci,4,yes,,18,3350"])
    result("another name: 2331 is GA100 [A100 PCIe] there, h100 here" in run("gpus", new, one).stderr, "gpus: stderr names an id with another name in pci.ids")
    table("pci-devices", ["ebs,1d0f,8061,010802,nvme", "efa,1d0f,efa1,020000,efa", "nvswitch-hopper,10de,22a3,068000,"])
    empty = TMP / "empty"
    empty.write_text("{}")
    result("is not an answer of EC2: make one" in run("gpus", same, empty).stderr, "gpus: stderr says that a file is not an answer of EC2")
    result("has no devices of vendor 10de" in run("gpus", empty, one).stderr, "gpus: stderr says that a file without PCI ids lacks vendor 10de")
    judge("pci-devices", [same], [new], ["aws-neurondevice-trainium3,1d0f,7464,,"], told="so that they stay: 10de:22a3 (nvswitch-hopper)")


def go(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def of_kubelet():
    types = """package v1beta1

// KubeletConfiguration is what kubelet reads. A line with `json:"never"` is a comment.
type KubeletConfiguration struct {
\tmetav1.TypeMeta `json:",inline"`
\t// +optional
\tAddress string `json:"address,omitempty"`
\tContainerLogMaxSize string `json:"containerLogMaxSize,omitempty"`
\tEvictionHard map[string]string `json:"evictionHard,omitempty"`
\tLogging logsapi.LoggingConfiguration `json:"logging,omitempty"`
\tMaxPods %s `json:"maxPods,omitempty"`
\tMemorySwap MemorySwapConfiguration `json:"memorySwap,omitempty"`
\tReservedMemory []MemoryReservation `json:"reservedMemory,omitempty"`
%s}

type MemorySwapConfiguration struct {
\tSwapBehavior Behavior `json:"swapBehavior,omitempty"`
}

type Behavior string

type MemoryReservation struct {
\tNumaNode int32           `json:"numaNode"`
\tLimits   v1.ResourceList `json:"limits"`
}
"""
    logs = """package v1

type LoggingConfiguration struct {
\tFormat string `json:"format,omitempty"`
\tVModule VModuleConfiguration `json:"vmodule,omitempty"`
}

type VModuleConfiguration []VModuleItem

type VModuleItem struct {
\tVerbosity VerbosityLevel `json:"verbosity"`
}

type VerbosityLevel uint32
"""
    trees = {}
    for name, minor, pods, more in (("a", 28, "int32", ""), ("a", 29, "int32", ""), ("b", 28, "int32", ""), ("b", 29, "string", "\tNewKey *bool `json:\"newKey,omitempty\"`\n")):
        trees.setdefault(name, []).append(TMP / name / f"kubelet@v0.{minor}.1")
        go(trees[name][-1] / "config/v1beta1/types.go", types % (pods, more))
        go(TMP / name / f"component-base@v0.{minor}.1/logs/api/v1/types.go", logs)
        go(TMP / name / f"component-base@v0.{minor}.1/tracing/api/v1/types.go", "package v1\n\ntype TracingConfiguration struct {\n\tEndpoint *string `json:\"endpoint,omitempty\"`\n}\n")
    rows = ["address,string,,", "apiVersion,string,,", "containerLogMaxSize,quantity,,", "evictionHard,signals,,", "gone,string,,", "kind,string,,", "logging,object,,",
            "logging.format,string,,text|json", "logging.vmodule,list,,", "logging.vmodule[].verbosity,int,,0:2147483647", "maxPods,int,,0:", "memorySwap,object,,",
            "memorySwap.swapBehavior,string,,LimitedSwap|NoSwap", "reservedMemory,list,,", "reservedMemory[].limits,object,,", "reservedMemory[].numaNode,int,,"]
    table("kubelet-settings", rows)
    judge("kubelet-settings", trees["a"], trees["b"], ["newKey,bool,29,", "maxPods,string,,0:"], ["maxPods,int,,0:"], "so that they stay: gone")
    features = """package features

import (
\t"k8s.io/component-base/featuregate"
)

const (
\t// alpha: v1.28
\tFirstGate featuregate.Feature = "FirstGate"
\tSecondGate featuregate.Feature = "SecondGate"
)

var defaults = map[featuregate.Feature]featuregate.FeatureSpec{
\tFirstGate: {Default: false, PreRelease: featuregate.Alpha},
%s}
"""
    trees = {}
    for name, minor, more in (("c", 28, ""), ("c", 29, ""), ("d", 28, ""), ("d", 29, "\tSecondGate: {Default: true, PreRelease: featuregate.Beta},\n")):
        tree = TMP / name / f"kubernetes@v1.{minor}.1"
        trees.setdefault(name, []).append(tree)
        go(tree / "pkg/features/kube_features.go", features % more)
        for module, folder in (("apiserver", "pkg/features"), ("apiextensions-apiserver", "pkg/features"), ("component-base", "featuregate"),
                               ("component-base", "logs/api/v1"), ("component-base", "metrics/features"), ("controller-manager", "pkg/features")):
            go(TMP / name / f"{module}@v0.{minor}.1" / folder / "features.go", "package features\n")
    table("feature-gates", ["FirstGate,,,alpha,"])
    judge("feature-gates", trees["c"], trees["d"], ["SecondGate,29,,beta,"])
    done = run("kubelet-settings", TMP / "a/kubelet@v0.28.1", TMP / "a/kubelet@v0.30.1")
    result(done.returncode == 1 and "1.28 to 1.30: a version between them is missing" in done.stderr, "kubelet-settings: a missing version between two trees is an error", done.stderr)


CONF.mkdir()
try:
    of_ec2()
    of_pci()
    of_kubelet()
    scripts = {path.stem for path in (TOP / "conf/refresh").glob("*.py")} - {"table"}
    readme = (TOP / "src/README.md").read_text()
    result(all((TOP / "conf" / (name + ".csv")).exists() for name in scripts), "each script of conf/refresh has the name of its table", scripts)
    result(all(f"`{name}`" in readme for name in scripts), "src/README.md names each script of conf/refresh", scripts)
    result(all(os.access(TOP / "conf/refresh" / (name + ".py"), os.X_OK) for name in scripts), "each script of conf/refresh is executable")
finally:
    shutil.rmtree(TMP)
print(f"1..{count}")
sys.exit(bad > 0)
