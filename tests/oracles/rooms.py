#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the rooms in src/README.md with the includes of src. The lists must agree, and a room uses only rooms below it. Prints TAP.

usage: rooms.py DIRECTORY
"""
import glob
import os
import re
import sys

source = sys.argv[1]
uses = {}
for path in glob.glob(f"{source}/**/*.[ch]", recursive=True):
    parts = os.path.relpath(path, source).split("/")
    room = parts[0] if len(parts) > 1 else "main"
    with open(path) as file:
        uses.setdefault(room, set()).update(set(re.findall(r'^#include "(\w+)/', file.read(), re.M)) - {room})
used = {room: {other for other in uses if room in uses[other]} for room in uses}
with open(f"{source}/README.md") as file:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]*) \| ([^|]+) \|$", file.read(), re.M)
words = lambda text: {word for word in re.split(r"[,\s]+", text) if word}
order = [row[0] for row in rows]
count = bad = 0


def same(what, says, is_there):
    global count, bad
    count += 1
    good = says == is_there
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}")
    if not good:
        print(f"# src/README.md has {', '.join(sorted(says - is_there)) or 'nothing'} too much, and lacks {', '.join(sorted(is_there - says)) or 'nothing'}")


same("each room of src has a row in src/README.md", set(order), set(uses) - {"main"})
for i, (room, _, may, by) in enumerate(rows):
    same(f"{room}: src/README.md lists the rooms that it uses", words(may), uses.get(room, set()))
    same(f"{room}: src/README.md lists the rooms that use it", words(by), used.get(room, set()))
    same(f"{room}: its row stands above the rooms that it uses", words(may) - set(order[i + 1:]), set())
print(f"1..{count}")
sys.exit(1 if bad else 0)
