#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares plan --efa with the AWS guide: which GPUs of a p6e-gb200.36xlarge have no EFA device near, for each placement of four devices on
its cards 1 to 16. usage: tests/oracles/efa_cards.py NODESTRAP CONFIG

The rules here come from the AWS guide (efa-acc-inst-types.html, P6e-GB200), not from conf/network-cards.csv. An odd card takes only EFA
devices, at 400 Gbps; an even one takes EFA or ENA, at 200 Gbps. GPUs send through the cards 1 and 3, 5 and 7, 9 and 11, 13 and 15."""
import concurrent.futures
import itertools
import json
import subprocess
import sys

TYPE, PAIRS = "p6e-gb200.36xlarge", [(1, 3), (5, 7), (9, 11), (13, 15)]


def expected(cards):
    gpus = [{"gpu": i, "nearCards": list(pair), "efaOn": sorted(set(pair) & set(cards))} for i, pair in enumerate(PAIRS)]
    rates = [{"card": c, "ena": True, "efaGbps": 200, "enaGbps": 200} if c % 2 == 0 else {"card": c, "ena": False, "efaGbps": 400} for c in cards]
    return gpus, rates, [i for i, pair in enumerate(PAIRS) if not set(pair) & set(cards)]


def said(nodestrap, config, cards):
    out = subprocess.run([nodestrap, "plan", "-c", "file://" + config, "--instance-type", TYPE, "--output", "json",
                          "--efa", ",".join(map(str, cards))], capture_output=True, check=True)
    plan = json.loads(out.stdout)
    far = [w["text"] for w in plan["warnings"] if w["code"] == "efa-far"]
    named = [i for i in range(len(PAIRS)) if far and "GPU %d (network cards %d, %d)" % (i, *PAIRS[i]) in far[0]]
    return plan["facts"]["efaGpus"], plan["facts"]["efaCards"], named


def main(nodestrap, config):
    placements = list(itertools.combinations(range(1, 17), 4))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda cards: said(nodestrap, config, cards), placements)
        wrong = [(cards, answer) for cards, answer in zip(placements, answers) if answer != expected(cards)]
    for cards, answer in wrong[:5]:
        print("cards %s: plan says %s, the guide %s" % (cards, answer, expected(cards)))
    print("%d placements; plan --efa and the guide differ about %d" % (len(placements), len(wrong)))
    return len(placements) != 1820 or bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
