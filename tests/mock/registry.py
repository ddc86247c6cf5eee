#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A registry of container images over plain HTTP (https://github.com/opencontainers/distribution-spec/blob/main/spec.md), as far as a pull
needs it. Each image has one layer, and every name exists, with any tag.

usage: registry.py [OPTION]...

Prints "registry ADDRESS:PORT" when it listens, then serves until killed. The first part of a name says how an image is:
  private/…   needs the login of --login          missing/…   does not exist
  hang/…      no answer                           busy/…      503, until the third request
  slow/…      blobs take two seconds
  big/…       a layer of --big bytes              signed/…    blobs fail behind a redirect to a URL with a signature
  --listen A:P          (127.0.0.1:0)
  --login NAME:PASSWORD
  --big BYTES           (67108864)
  --log FILE            a line for each request: METHOD PATH STATUS
"""
import argparse
import base64
import hashlib
import http.server
import io
import json
import random
import tarfile
import threading
import time

KINDS = {"manifests": "application/vnd.oci.image.manifest.v1+json", "blobs": "application/octet-stream"}
lock = threading.Lock()


def layer_of(name, size):
    """Random bytes: they cannot be compressed."""
    out, some = io.BytesIO(), random.Random(name)
    data = b"".join(some.randbytes(min(1 << 20, size - at)) for at in range(0, size, 1 << 20))
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("data")
        entry.size = size
        tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


class Images:
    def __init__(self, big):
        self.big, self.made = big, {}

    def of(self, name):
        """The manifest, and all blobs by digest."""
        with lock:
            if name not in self.made:
                blobs = {}

                def blob(data, kind):
                    digest = "sha256:" + hashlib.sha256(data).hexdigest()
                    blobs[digest] = data
                    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(data)}

                layer = blob(layer_of(name, self.big if name.startswith("big/") else 1 << 20), "layer.v1.tar")
                config = blob(json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                                          "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode(), "config.v1+json")
                manifest = json.dumps({"schemaVersion": 2, "mediaType": KINDS["manifests"], "config": config, "layers": [layer]}).encode()
                self.made[name] = manifest, blobs
            return self.made[name]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        with lock, open(self.server.log or "/dev/null", "a") as log:
            print(self.command, self.path, status, file=log)
        self.send_response(status)
        for key, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code, **headers):
        self.answer(status, json.dumps({"errors": [{"code": code, "message": code.lower()}]}).encode(), Content_Type="application/json", **headers)

    def do_GET(self):
        path = self.path.partition("?")[0]
        if not path.startswith("/v2/") or path == "/v2/":
            return self.answer(200)
        name, kind, reference = path[len("/v2/"):].rsplit("/", 2)
        how = name.partition("/")[0]
        login = "Basic " + base64.b64encode(self.server.login.encode()).decode()
        if how == "hang":
            threading.Event().wait()
        if how == "missing":
            return self.refuse(404, "MANIFEST_UNKNOWN")
        if how == "private" and self.headers.get("Authorization") != login:
            return self.refuse(401, "UNAUTHORIZED", WWW_Authenticate='Basic realm="registry"')
        if how == "busy":
            with lock:
                self.server.busy += 1
            if self.server.busy < 3:
                return self.refuse(503, "UNAVAILABLE")
        if how == "signed" and kind == "blobs":
            return self.answer(307, Location=f"http://127.0.0.1:9/{reference}?X-Amz-Security-Token=SIGNED-token-0123456789&X-Amz-Signature=0123456789abcdef0123456789abcdef")
        manifest, blobs = self.server.images.of(name)
        own = "sha256:" + hashlib.sha256(manifest).hexdigest()
        if kind == "manifests" and (not reference.startswith("sha256:") or reference == own):
            return self.answer(200, manifest, Content_Type=KINDS[kind], Docker_Content_Digest=own)
        if kind == "blobs" and reference in blobs:
            if how == "slow":
                time.sleep(2)
            return self.answer(200, blobs[reference], Content_Type=KINDS[kind])
        return self.refuse(404, "NOT_FOUND")

    do_HEAD = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):         # a client that went away
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--login", default="user:password")
    parser.add_argument("--big", type=int, default=64 << 20)
    parser.add_argument("--log")
    options = parser.parse_args()
    host, _, port = options.listen.rpartition(":")
    server = Server((host, int(port)), Handler)
    server.login, server.log, server.images, server.busy = options.login, options.log, Images(options.big), 0
    print("registry", f"{host}:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
