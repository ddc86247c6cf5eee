#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conf/eni-limits.csv beside answers of EC2: conf/refresh/eni-limits.py ANSWER.json...

An answer is what aws ec2 describe-instance-types --output json prints, of as many regions as you can ask."""
import table


def main():
    options = table.arguments(__doc__, ("answers...", "what aws ec2 describe-instance-types --output json prints"))
    old, types = table.Table("eni-limits", options.conf), table.instance_types(options.answers)
    known = {f"{family}.{size}": numbers for family, *cells in old.rows for size, numbers in (cell.split(":", 1) for cell in cells)}
    elsewhere = {row[0] for row in table.Table("instance-types", options.conf).rows if row[6]}     # which has the number of cards
    limits = dict(known)
    for name, one in types.items():
        network = one["NetworkInfo"]
        default = network.get("DefaultNetworkCardIndex", 0)
        most = [card["MaximumNetworkInterfaces"] for card in network.get("NetworkCards", []) if card["NetworkCardIndex"] == default]
        numbers = [(most or [network["MaximumNetworkInterfaces"]])[0], network["Ipv4AddressesPerInterface"]]
        if network.get("MaximumNetworkCards", 1) > 1 and name not in elsewhere:
            numbers.append(network["MaximumNetworkCards"])
        limits[name] = ":".join(map(str, numbers))
    rows = {}
    for name in sorted(limits):
        family, size = name.split(".", 1)
        rows.setdefault(family, [family]).append(f"{size}:{limits[name]}")
    table.tell("not in the answers, so that they stay", set(known) - set(types))
    table.finish(old, list(rows.values()), options)


main()
