# SPDX-License-Identifier: Apache-2.0
"""usage: archive.py FILE NAME[:TAG] [PROGRAM [ARGUMENT]...]; an image as an OCI archive: one empty layer, or one with the static program,
which is /bin/NAME there and what a container runs."""
import hashlib
import io
import json
import os
import sys
import tarfile

file, name, *program = sys.argv[1:]
blobs = {}


def blob(data, kind):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(data)}


layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w") as out:
    entrypoint = [f"/bin/{os.path.basename(p)}" for p in program[:1]]
    for p in program[:1]:
        entry = out.gettarinfo(p, entrypoint[0].lstrip("/"))
        entry.mode, entry.uid, entry.gid = 0o755, 0, 0
        with open(p, "rb") as f:
            out.addfile(entry, f)
layer = blob(layer.getvalue(), "layer.v1.tar")
config = blob(json.dumps({"architecture": "amd64", "os": "linux", "config": {"Entrypoint": entrypoint, "Cmd": program[1:]} if program else {},
                          "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode(), "config.v1+json")
manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [layer]}).encode(), "manifest.v1+json")
manifest["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.partition(":")[2] or name}
files = {f"blobs/{d.replace(':', '/')}": b for d, b in blobs.items()}
files |= {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()}
with tarfile.open(file, "w") as out:
    for path, data in files.items():
        entry = tarfile.TarInfo(path)
        entry.size = len(data)
        out.addfile(entry, io.BytesIO(data))
