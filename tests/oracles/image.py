#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the image of make portable-image by the specification of layouts, manifests and configurations (github.com/opencontainers/image-spec)
and by the layout of docker save. Prints TAP. With --layer it unpacks the layers of one architecture.

usage: image.py FILE ARCHITECTURE=PROGRAM...
       image.py FILE --layer ARCHITECTURE DIRECTORY
"""
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile

INDEX, MANIFEST, CONFIG, LAYER = (f"application/vnd.oci.image.{kind}" for kind in ("index.v1+json", "manifest.v1+json", "config.v1+json", "layer.v1.tar+gzip"))
image = tarfile.open(sys.argv[1])
members = image.getmembers()
files = {m.name: image.extractfile(m).read() for m in members if m.isfile()}
used = {"oci-layout", "index.json", "manifest.json"}
count = bad = 0


def ok(what, good, why=""):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}" + ("" if good else f"\n# {why}"))


def blob(descriptor, kind):
    """The bytes that a descriptor names. Type, size and digest must be those of the descriptor."""
    name = "blobs/" + descriptor["digest"].replace(":", "/")
    data = files[name]
    used.add(name)
    assert descriptor["mediaType"] == kind and descriptor["size"] == len(data), descriptor
    assert descriptor["digest"] == "sha256:" + hashlib.sha256(data).hexdigest(), descriptor
    return data


top = json.loads(files["index.json"])
index = json.loads(blob(top["manifests"][0], INDEX))
images = {}
for entry in index["manifests"]:
    manifest = json.loads(blob(entry, MANIFEST))
    config = json.loads(blob(manifest["config"], CONFIG))
    images[entry["platform"]["architecture"]] = entry, manifest, config, [blob(layer, LAYER) for layer in manifest["layers"]]

if sys.argv[2] == "--layer":
    for layer in images[sys.argv[3]][3]:
        tarfile.open(fileobj=io.BytesIO(layer)).extractall(sys.argv[4])
    sys.exit()

programs = dict(word.split("=", 1) for word in sys.argv[2:])
ok("the archive is an image layout 1.0.0", json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}, files["oci-layout"])
ok("the archive has one image, with the name nodestrap:latest", len(top["manifests"]) == 1 and top["manifests"][0]["annotations"] ==
   {"io.containerd.image.name": "docker.io/library/nodestrap:latest", "org.opencontainers.image.ref.name": "latest"}, top)
ok("the archive has an image for each architecture that was built", sorted(images) == sorted(programs), sorted(images))
ok("index.json and the list that it names are indexes of schema version 2", all(d["schemaVersion"] == 2 and d["mediaType"] == INDEX for d in (top, index)), index)
ok("all members of the archive belong to root, have one time and are in order", all((m.uid, m.gid, m.uname, m.gname) == (0, 0, "", "") for m in members) and len({m.mtime for m in members}) == 1
   and [m.name for m in members][:3] == ["oci-layout", "index.json", "manifest.json"] and members[3:] == sorted(members[3:], key=lambda m: m.name), members)
created = set()
for arch, (entry, manifest, config, layers) in sorted(images.items()):
    ok(f"{arch}: the manifest names a configuration and a layer", manifest["schemaVersion"] == 2 and manifest["mediaType"] == MANIFEST and len(layers) == 1, manifest)
    ok(f"{arch}: the index has the platform of the configuration", entry["platform"] == {"architecture": config["architecture"], "os": config["os"]} and (config["architecture"], config["os"]) == (arch, "linux"), entry)
    ok(f"{arch}: the image runs nodestrap help as user 65534 in /work", {k: config["config"][k] for k in ("User", "Entrypoint", "Cmd", "WorkingDir")} ==
       {"User": "65534:65534", "Entrypoint": ["/nodestrap"], "Cmd": ["help"], "WorkingDir": "/work"}, config)
    plain = [gzip.decompress(layer) for layer in layers]
    ok(f"{arch}: the configuration has the digest of each uncompressed layer", config["rootfs"] == {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(p).hexdigest() for p in plain]}, config)
    ok(f"{arch}: the gzip header of each layer has no time and no name", all(layer[3:8] == bytes(5) for layer in layers), layers[0][:10])
    layer = tarfile.open(fileobj=io.BytesIO(plain[0]))
    ok(f"{arch}: the layer has a program and a folder, and nothing else", [(m.name, m.isfile(), m.mode, m.uid, m.gid) for m in layer] == [("nodestrap", True, 0o755, 0, 0), ("work", False, 0o755, 0, 0)], layer.getmembers())
    with open(programs[arch], "rb") as file:
        ok(f"{arch}: the program is the one that was built", layer.extractfile("nodestrap").read() == file.read())
    label = config["config"]["Labels"]["org.opencontainers.image.version"]
    ok(f"{arch}: the file name of the archive has the version of the image", os.path.basename(sys.argv[1]) == f"nodestrap-{label}-oci.tar", label)
    ok(f"{arch}: the configuration and its history have the same time", config["created"] == config["history"][0]["created"] and re.fullmatch(r"\d{4}(-\d\d){2}T(\d\d:){2}\d\dZ", config["created"]), config)
    created.add(config["created"])
ok("all architectures have the same time", len(created) == 1, created)

saved = json.loads(files["manifest.json"])
tags = [tag for one in saved for tag in one["RepoTags"]]
ok("manifest.json, for docker load, has the same configurations and layers", sorted((one["Config"], one["Layers"]) for one in saved) ==
   sorted(("blobs/" + m["config"]["digest"].replace(":", "/"), ["blobs/" + d["digest"].replace(":", "/") for d in m["layers"]]) for _, m, _, _ in images.values()), saved)
ok("manifest.json has each image name once, and nodestrap:latest is one of them", len(tags) == len(set(tags)) and "nodestrap:latest" in tags and all(re.fullmatch(r"nodestrap:[\w][\w.-]{0,127}", tag) for tag in tags), tags)
ok("the archive has no file that no list or manifest names", set(files) == used, set(files) ^ used)
print(f"1..{count}")
sys.exit(1 if bad else 0)
