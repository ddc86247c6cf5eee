#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conf/kubelet-settings.csv beside the types of kubelet: conf/refresh/kubelet-settings.py TREE...

Each TREE is a tree of k8s.io/kubelet, one of each minor version, such as kubelet@v0.37.0 of a module cache. k8s.io/component-base lies
beside it (go mod download k8s.io/component-base@v0.37.0). For a new version give the trees of all versions again. Limits are not in the
types. Nor are they told of a text that is a quantity, or of a map of eviction signals: such a word stays where the type of Go allows it."""
import re
import sys

import table

# A type of Go → the words of the table that it may be; the first one is for a new row.
WORDS = {"string": ("string", "quantity"), "bool": ("bool",), "int": ("int",), "float": ("float",), "duration": ("duration",),
         "strings": ("strings", "list"), "map": ("map", "signals", "quantities"), "gates": ("gates",), "list": ("list",), "object": ("object",)}
PLAIN = {"string": "string", "bool": "bool", "float64": "float", "metav1.Duration": "duration", "map[string]string": "map",
         "map[string]bool": "gates", "[]string": "strings"}
OUTSIDE = {"logsapi": "logs/api/v1", "tracingapi": "tracing/api/v1"}                # of component-base
TYPE_META = {"apiVersion": "string", "kind": "string"}
FOREIGN = ("flushFrequency", "infoBufferSize")          # these have decoders of their own, and stay unjudged


def package(path):
    """name → fields of a struct [(name, type, key)], or the type that it is another name of"""
    text = "".join(re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.S) for file in sorted(path.glob("*types.go")))
    types = dict(re.findall(r"^type (\w+) ([\w.\[\]]+)$", text, re.M))
    for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
        types[name] = re.findall(r"^\s+(?:(\w+)\s+)?([\w.*\[\]]+)\s+`json:\"([^\",]*)", body, re.M)
    return types or sys.exit(f"{path}: no types are there")


def keys_of(types, others, name, above=""):
    """The keys of a struct: (key, type)"""
    for _, go, key in types[name]:
        go = go.lstrip("*")
        if not key:                                     # inline
            yield from TYPE_META.items() if go == "metav1.TypeMeta" else keys_of(types, others, go, above)
            continue
        if key in FOREIGN:
            continue
        room, word = types, go
        outside, _, bare = go.rpartition(".")
        if outside in others:
            room, word = others[outside], bare
        word = word.removeprefix("[]*") if word.startswith("[]*") else word
        while isinstance(room.get(word), str):          # another name of a type
            word = room[word]
        item = word.removeprefix("[]")
        while isinstance(room.get(item), str):
            item = room[item]
        where = above + key + ("[]" if word.startswith("[]") else "")
        if word in PLAIN or re.fullmatch(r"u?int\d*", word):
            yield above + key, PLAIN.get(word, "int")
        else:
            yield above + key, "list" if word.startswith("[]") else "object"
            if isinstance(room.get(item), list):
                yield from keys_of(room, others, item, where + ".")


def main():
    options = table.arguments(__doc__, ("trees...", "kubelet@v0.N.M of a module cache"))
    by_minor = {int(re.search(r"v[01]\.(\d+)", tree.name)[1]): tree for tree in options.trees}
    first, last, since, goes = min(by_minor), max(by_minor), {}, {}
    if set(by_minor) != set(range(first, last + 1)):
        sys.exit(f"1.{first} to 1.{last}: a version between them is missing")
    for minor, tree in sorted(by_minor.items()):
        base = tree.parent / tree.name.replace("kubelet", "component-base")
        others = {name: package(base / folder) for name, folder in OUTSIDE.items()}
        goes = dict(keys_of(package(tree / "config/v1beta1"), others, "KubeletConfiguration"))
        for key in goes:
            since.setdefault(key, minor)
    old = table.Table("kubelet-settings", options.conf)
    known, rows = {row[0]: row for row in old.rows}, []
    for key in sorted(set(known) | set(goes)):
        row = known.get(key, [key, "", "", ""])
        if key in goes:
            word = row[1] if row[1] in WORDS[goes[key]] else WORDS[goes[key]][0]
            row = [key, word, "" if since[key] == first else str(since[key]), row[3]]
        rows.append(row)
    table.tell(f"not in the types of 1.{last}, so that they stay", set(known) - set(goes))
    table.finish(old, rows, options)


main()
