#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conf/instance-types.csv beside answers of EC2: conf/refresh/instance-types.py ANSWER.json...

An answer is what aws ec2 describe-instance-types --output json prints, of as many regions as have accelerators. NVSwitches, NUMA nodes,
subsystems and PCI ids of a new GPU are not in it."""
import table

COLUMNS = ("type", "vcpus", "memory", "gpus", "model", "pci", "cards", "efa", "disks", "gb", "nvswitch", "arch", "numa", "subsystem")


def facts(one):
    """The cells that EC2 gives. A part of a GPU counts as none there; here it is a device."""
    network, found = one["NetworkInfo"], {}
    found["vcpus"] = one["VCpuInfo"]["DefaultVCpus"]
    if one["MemoryInfo"]["SizeInMiB"] % 1024 == 0:
        found["memory"] = one["MemoryInfo"]["SizeInMiB"] // 1024
    count = sum(item[2] for item in table.accelerators(one))
    if count:
        found["gpus"] = count
    found["cards"] = network.get("MaximumNetworkCards", 1)
    found["efa"] = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    disks = (one.get("InstanceStorageInfo") or {}).get("Disks", [])
    found["disks"] = sum(disk["Count"] for disk in disks)
    sizes = {disk["SizeInGB"] for disk in disks} or {0}
    if len(sizes) == 1:
        found["gb"] = sizes.pop()
    found["arch"] = "arm64" if "arm64" in one["ProcessorInfo"]["SupportedArchitectures"] else "x86_64"
    return {column: str(value) for column, value in found.items()}


def main():
    options = table.arguments(__doc__, ("answers...", "what aws ec2 describe-instance-types --output json prints"))
    old, types = table.Table("instance-types", options.conf), table.instance_types(options.answers)
    like = {}                                           # an accelerator → its cells model and pci here
    for row in old.rows:
        for item in table.accelerators(types.get(row[0], {})):
            like.setdefault((item[0], item[1], item[3]), row[4:6])
    rows = []
    for row in old.rows:
        row = list(row)
        for column, value in facts(types[row[0]]).items() if row[0] in types else ():
            at = COLUMNS.index(column)
            # cards 17:2 are 17, of which every second one takes addresses
            row[at] = value + row[at][len(row[at].split(":")[0]):]
        rows.append(row)
    for name in sorted(set(types) - {row[0] for row in rows}):
        found = table.accelerators(types[name])
        if found:
            maker, gpu, _, size = found[0]
            model, pci = like.get((maker, gpu, size), (maker + "-" + gpu.lower().removeprefix(maker).strip().replace(" ", "-"), ""))
            cells = dict(facts(types[name]), type=name, model=model, pci=pci)
            rows.append([cells.get(column, "") for column in COLUMNS])
    table.tell("not in the answers, so that they stay", [row[0] for row in old.rows if row[0] not in types])
    table.finish(old, sorted(rows, key=lambda row: row[0]), options)


main()
