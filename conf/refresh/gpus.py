#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conf/gpus.csv beside PCI ids and answers of EC2: conf/refresh/gpus.py pci.ids ANSWER.json...

pci.ids is that of https://pci-ids.ucw.cz. A GPU that EC2 names and the table does not gets a row for each id of that name. Its MIG, modules
and switches are in NVIDIA's documents alone. A GPU whose id has another name in pci.ids is told."""
import re

import table

CHIPS = {"GV": "volta", "TU": "turing", "GA": "ampere", "AD": "ada", "GH": "hopper", "GB": "blackwell"}


def words(text):
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).split()


def main():
    options = table.arguments(__doc__, ("pci", "pci.ids"), ("answers...", "what aws ec2 describe-instance-types --output json prints"))
    old, names = table.Table("gpus", options.conf), table.pci_names(options.pci, "10de")
    here = {row[1] for row in old.rows}
    other = [f"{row[0]} is {names[row[0]]} there, {row[1]} here" for row in old.rows
             if row[0] in names and not "".join(words(row[1].split("-")[0])) in "".join(words(names[row[0]]))]
    rows = list(old.rows)
    gpus = {gpu for one in table.instance_types(options.answers).values() for maker, gpu, *_ in table.accelerators(one) if maker == "nvidia"}
    for gpu in sorted(gpus):
        wanted = words(gpu)
        if any(words(name)[:len(wanted)] == wanted for name in here):
            continue
        found = [device for device, name in names.items() if set(wanted) <= set(words(name)) and device not in {row[0] for row in rows}]
        rows += [[device, "-".join(wanted), CHIPS.get(names[device][:2], "")] + [""] * (len(old.rows[0]) - 3) for device in found]
        if not found:
            table.tell("a GPU of EC2's without an id in pci.ids", [gpu])
    table.tell("another name", other)
    table.tell("not in pci.ids, so that they stay", [f"{row[0]} ({row[1]})" for row in old.rows if row[0] not in names])
    table.finish(old, sorted(rows, key=lambda row: row[0]), options)


main()
