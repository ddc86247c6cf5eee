# SPDX-License-Identifier: Apache-2.0
"""What the scripts beside this one share: a table of conf/, and the end of each of them, which shows what differs.

A script reads public data that you have fetched; it asks nothing of the network. Rows that the data do not know stay, and are told. Cells
that the data do not have stay as they are, in a new row empty. Exit status 0: nothing differs, 1: something does, as diff(1) has it."""
import argparse
import datetime
import difflib
import json
import re
import sys
from pathlib import Path


class Table:
    """conf/NAME.csv: the lines of its head, and its rows as lists of cells."""
    def __init__(self, name, conf):
        self.path = conf / (name + ".csv")
        self.text = self.path.read_text(encoding="utf-8")
        self.head = [line for line in self.text.splitlines() if line.startswith("#")]
        self.rows = [line.split(",") for line in self.text.splitlines() if line and not line.startswith("#")]


def arguments(script, *positional):
    """The options that all have, and files: (name, help) each."""
    parser = argparse.ArgumentParser(description=script.strip().splitlines()[0])
    for name, text in positional:
        parser.add_argument(name.rstrip("."), help=text, nargs="+" if name.endswith("...") else None, type=Path)
    parser.add_argument("--write", action="store_true", help="change the table, and the day in its head")
    parser.add_argument("--as-of", default=datetime.date.today().isoformat(), metavar="DAY", help="the day of the data (default: today)")
    parser.add_argument("--conf", default=Path(__file__).resolve().parent.parent, type=Path, metavar="DIR", help="where the tables are")
    return parser.parse_args()


def tell(what, names):
    """On stderr, what a person has to look at."""
    names = sorted(set(names))
    if names:
        print(f"{what}: {', '.join(names[:12])}{f' and {len(names) - 12} more' if len(names) > 12 else ''}", file=sys.stderr)


def finish(table, rows, options):
    """Shows what differs, and with --write changes the table."""
    head = [re.sub(r"^# As of [0-9-]+", f"# As of {options.as_of}", line) for line in table.head]
    new = "\n".join(head + [",".join(row) for row in rows]) + "\n"
    same = [",".join(row) for row in rows] == [",".join(row) for row in table.rows]
    if not same:
        name = f"conf/{table.path.name}"
        sys.stdout.writelines(difflib.unified_diff(table.text.splitlines(True), new.splitlines(True), "a/" + name, "b/" + name, n=0))
    if options.write:
        table.path.write_text(new, encoding="utf-8")
    sys.exit(0 if same or options.write else 1)


def instance_types(paths):
    """name → what EC2 says of it, out of answers of aws ec2 describe-instance-types --output json. Of several answers, one a region, the
    last counts."""
    types = {}
    for path in paths:
        try:
            types.update({one["InstanceType"]: one for one in json.loads(path.read_text(encoding="utf-8"))["InstanceTypes"]})
        except (ValueError, KeyError, TypeError):
            sys.exit(f"{path}: is not an answer of EC2: make one: aws ec2 describe-instance-types --output json >{path}")
    return types


def accelerators(one):
    """[(maker, name, count, MiB)] of a type, without those that no node uses: media, FPGAs, AMD's."""
    info = [("GpuInfo", "Gpus"), ("NeuronInfo", "NeuronDevices"), ("InferenceAcceleratorInfo", "Accelerators")]
    for key, items in info:
        found = [(item.get("Manufacturer", "AWS").lower(), item["Name"], item["Count"], item.get("MemoryInfo", {}).get("SizeInMiB"))
                 for item in (one.get(key) or {}).get(items, [])]
        found = [item for item in found if item[0] in ("nvidia", "aws", "habana", "qualcomm")]
        if found:
            return found
    return []


def cards_of(one):
    """card → the words of NetworkCards[].InterfaceTypes, and its most Gbps."""
    network = one["NetworkInfo"]
    return {card["NetworkCardIndex"]: (set(card.get("InterfaceTypes", [])), card.get("PeakBandwidthInGbps"))
            for card in network.get("NetworkCards", [])}


def pci_names(path, vendor):
    """device → its name, of one vendor of pci.ids (https://pci-ids.ucw.cz)."""
    names, on = {}, False
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if re.match(r"[0-9a-f]{4} ", line):
            on = line.startswith(vendor + " ")
        found = re.match(r"\t([0-9a-f]{4})  (.*)", line) if on else None
        if found:
            names[found[1]] = found[2]
    return names or sys.exit(f"{path}: has no devices of vendor {vendor}: fetch https://pci-ids.ucw.cz/v2.2/pci.ids")
