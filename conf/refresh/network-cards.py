#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conf/network-cards.csv beside answers of EC2: conf/refresh/network-cards.py ANSWER.json...

An answer is what aws ec2 describe-instance-types --output json prints. It has what each card takes, and one rate. Where a card takes both,
AWS's guide says whether that is the rate of EFA or of ENA. The GPU that is near is not in it either."""
import table


def span(cell):
    """0-31 or 1-15:2 → the cards"""
    first, _, rest = cell.partition("-")
    last, _, step = (rest or first).partition(":")
    return range(int(first), int(last) + 1, int(step or 1))


def spans(cards):
    """The cards → cells, each as long as it gets with steps of 1 or 2"""
    left = sorted(cards)
    while left:
        runs = []
        for step in (1, 2):
            run = [left[0]]
            while run[-1] + step in left:
                run.append(run[-1] + step)
            runs.append((len(run), -step, run))
        _, step, run = max(runs)
        left = [card for card in left if card not in run]
        yield f"{run[0]}" + (f"-{run[-1]}" + (f":{-step}" if step < -1 else "") if len(run) > 1 else "")


def main():
    options = table.arguments(__doc__, ("answers...", "what aws ec2 describe-instance-types --output json prints"))
    old, types = table.Table("network-cards", options.conf), table.instance_types(options.answers)
    known = {}                                          # type → card → its cells behind the cards
    for name, cards, *cells in old.rows:
        known.setdefault(name, {}).update({card: cells for card in span(cards)})
    rows = [row for row in old.rows if row[0] not in types]
    for name, one in types.items():
        cards = {}
        for card, (takes, rate) in table.cards_of(one).items():
            takes = "ena" if takes == {"interface"} else "both" if "interface" in takes else "efa"
            cells = list(known.get(name, {}).get(card, ["", "", "", ""]))
            cells[0], rate = takes, f"{rate:g}" if rate else ""
            if takes != "both" or rate not in cells[1:3]:
                cells[2 if takes == "ena" else 1] = rate
            cards[card] = cells
        if name not in known and (len(cards) < 2 or not table.accelerators(one) or not any(cells[0] != "ena" for cells in cards.values())):
            continue
        if cards == known.get(name):
            rows += [row for row in old.rows if row[0] == name]
            continue
        for cells in sorted(set(map(tuple, cards.values()))):
            rows += [[name, cell, *cells] for cell in spans(card for card in cards if tuple(cards[card]) == cells)]
    table.tell("not in the answers, so that they stay", set(known) - set(types))
    table.finish(old, sorted(rows, key=lambda row: (row[0], span(row[1])[0])), options)


main()
