#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/oracles/markdown.py FILE PLAN.json [PLAN.txt]: checks that the table in FILE, as cmark-gfm reads it, is that of the plan.

Each row of a table is a step of PLAN.json, in the same order: critical path, group, type, target and why, with the brackets of the text.
The list is the warnings. The only block of code is PLAN.txt. Exit status 1 with the first difference."""
import html.parser
import json
import subprocess
import sys


class Page(html.parser.HTMLParser):
    """The texts by their element, and the names of all elements, because no others may occur."""
    def __init__(self):
        super().__init__()
        self.open, self.rows, self.items, self.blocks, self.seen, self.heading = [], [], [], [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "li":
            self.items.append("")
        elif tag == "pre":
            self.blocks.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        elif "li" in self.open:
            self.items[-1] += data
        elif "pre" in self.open:
            self.blocks[-1] += data
        elif "h3" in self.open:
            self.heading += data


def page_of(path):
    argv = ["cmark-gfm", "--unsafe", "-e", "table", "-e", "strikethrough", "-e", "autolink"]
    page = Page()
    page.feed(subprocess.run(argv + [path], check=True, capture_output=True, text=True).stdout)
    return page


def step(action, critical):
    hidden = action.get("secret") and action.get("with")
    target = action["target"] + (" " + action["with"] if action.get("with") and not action.get("secret") else "")
    mark = ""
    if action.get("secret") and action["type"] in ("write-file", "update-file"):
        mark = f"[{action['mode']}, secret] "
    elif hidden or action.get("secret") and action["type"] in ("set-sysctl", "set-tuning"):
        mark = "[secret] "
    live = action.get("live")
    if live:
        mark += f"[{live['state']}{': ' + live['why'] if live.get('why') else ''}] "
    return [">" if action["id"] in critical else "", action["group"], action["type"], target, mark + action["why"]]


def main():
    page = page_of(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        plan = json.load(file)
    got = [row for row in page.rows if row[1:] != ["Part", "Step", "Target", "Why"]]
    want = [step(action, plan["criticalPath"]) for action in plan["actions"]]
    for one, other in zip(got, want):
        if one != other:
            sys.exit(f"the row {one}\nis the step {other}")
    if len(got) != len(want):
        sys.exit(f"{len(got)} rows, {len(want)} steps")
    if len(page.items) != len(plan["warnings"]):
        sys.exit(f"{len(page.items)} items, {len(plan['warnings'])} warnings")
    for item, warning in zip(page.items, plan["warnings"]):
        if warning["text"] not in item or f"[{warning['code']}]" not in item:
            sys.exit(f"the item {item!r}\nis the warning {warning}")
    allowed = {"h3", "p", "strong", "ul", "li", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "a"}
    if page.seen - allowed:
        sys.exit(f"elements that a text has made: {page.seen - allowed}")
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="utf-8") as file:
            if page.blocks != [file.read()]:
                sys.exit("the block is not the text")


if __name__ == "__main__":
    main()
