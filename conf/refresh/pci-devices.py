#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conf/pci-devices.csv beside PCI ids: conf/refresh/pci-devices.py pci.ids

pci.ids is that of https://pci-ids.ucw.cz. A new device of Amazon's gets a row, unless its name there is that of a device here: the table
has one id of each kind, for models. Class and driver are not in pci.ids."""
import re

import table

AMAZON = "1d0f"


def main():
    options = table.arguments(__doc__, ("pci", "pci.ids"))
    old = table.Table("pci-devices", options.conf)
    names = {vendor: table.pci_names(options.pci, vendor) for vendor in {row[1] for row in old.rows} | {AMAZON}}
    kinds = {names[row[1]].get(row[2]) for row in old.rows}
    rows = list(old.rows)
    for device, name in names[AMAZON].items():
        if name not in kinds:
            rows.append(["aws-" + "-".join(re.findall(r"[a-z0-9]+", name.lower())), AMAZON, device, "", ""])
    table.tell("not in pci.ids, so that they stay", [f"{row[1]}:{row[2]} ({row[0]})" for row in old.rows if row[2] not in names[row[1]]])
    table.finish(old, sorted(rows, key=lambda row: row[0]), options)


main()
