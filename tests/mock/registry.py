#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A registry of container images over plain HTTP (https://github.com/opencontainers/distribution-spec/blob/main/spec.md), as far as a pull
needs it. Every name exists, with any tag. The bytes of a layer are random, since those cannot be compressed.

usage: registry.py [OPTION]...

Prints "registry ADDRESS:PORT" when it listens, then serves until killed. The parts of a name before the last one say how an image is:
  private/…   needs the login of --login          missing/…   does not exist
  hang/…      no answer                           busy/…      503, until the third request
  slow/…      blobs take two seconds              limited/…   429, until the eighth request
  big/…       a layer of --big bytes              signed/…    blobs fail behind a redirect to a URL with a signature
  --listen A:P          (127.0.0.1:0)
  --login NAME:PASSWORD
  --big BYTES           (67108864)
  --program FILE        a static program that each image has in /bin
  --log FILE            a line for each request: METHOD PATH STATUS
"""
import argparse
import base64
import hashlib
import http.server
import json
import os
import random
import tarfile
import tempfile
import threading
import time
import types

KINDS = {"manifests": "application/vnd.oci.image.manifest.v1+json", "blobs": "application/octet-stream"}
lock = threading.Lock()


class Images:
    def __init__(self, big, program):
        self.big, self.program, self.made = big, program, {}

    def layer(self, file, seed, size):
        with tarfile.open(fileobj=file, mode="w") as tar:
            if self.program:
                tar.add(self.program, "bin/" + os.path.basename(self.program))
            entry = tarfile.TarInfo("data")
            entry.size = size
            tar.addfile(entry, types.SimpleNamespace(read=random.Random(seed).randbytes))

    def of(self, name, how):
        """The manifest, and all blobs by digest. They are files without a name: one may be larger than the memory."""
        with lock:
            if name not in self.made:
                blobs = {}

                def blob(kind, write, *arguments):
                    file = tempfile.TemporaryFile()
                    write(file, *arguments)
                    size = file.tell()
                    file.seek(0)
                    digest = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
                    blobs[digest] = file
                    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": size}

                layer = blob("layer.v1.tar", self.layer, name, self.big if "big" in how else 1 << 20)
                config = blob("config.v1+json", lambda file: file.write(json.dumps(
                    {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode()))
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
        size = len(body) if isinstance(body, bytes) else os.fstat(body.fileno()).st_size
        self.send_response(status)
        for key, value in {"Content-Length": size, **headers}.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()
        if self.command == "HEAD":
            return
        if isinstance(body, bytes):
            self.wfile.write(body)
            return
        at = 0
        while at < size:
            at += os.sendfile(self.connection.fileno(), body.fileno(), at, size - at)

    def number_of(self, word):
        with lock:
            self.server.numbers[word] = self.server.numbers.get(word, 0) + 1
            return self.server.numbers[word]

    def refuse(self, status, code, **headers):
        self.answer(status, json.dumps({"errors": [{"code": code, "message": code.lower()}]}).encode(), Content_Type="application/json", **headers)

    def do_GET(self):
        path = self.path.partition("?")[0]
        if not path.startswith("/v2/") or path == "/v2/":
            return self.answer(200)
        name, kind, reference = path[len("/v2/"):].rsplit("/", 2)
        how = name.split("/")[:-1]
        login = "Basic " + base64.b64encode(self.server.login.encode()).decode()
        if "hang" in how:
            threading.Event().wait()
        if "missing" in how:
            return self.refuse(404, "MANIFEST_UNKNOWN")
        if "private" in how and self.headers.get("Authorization") != login:
            return self.refuse(401, "UNAUTHORIZED", WWW_Authenticate='Basic realm="registry"')
        for word, until, status in ("busy", 3, 503), ("limited", 8, 429):
            if word in how and self.number_of(word) < until:
                return self.refuse(status, "TOOMANYREQUESTS")
        if "signed" in how and kind == "blobs":
            return self.answer(307, Location=f"http://127.0.0.1:9/{reference}?X-Amz-Security-Token=SIGNED-token-0123456789&X-Amz-Signature=0123456789abcdef0123456789abcdef")
        manifest, blobs = self.server.images.of(name, how)
        own = "sha256:" + hashlib.sha256(manifest).hexdigest()
        if kind == "manifests" and (not reference.startswith("sha256:") or reference == own):
            return self.answer(200, manifest, Content_Type=KINDS[kind], Docker_Content_Digest=own)
        if kind == "blobs" and reference in blobs:
            if "slow" in how:
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
    parser.add_argument("--program")
    parser.add_argument("--log")
    options = parser.parse_args()
    host, _, port = options.listen.rpartition(":")
    server = Server((host, int(port)), Handler)
    server.login, server.log, server.images, server.numbers = options.login, options.log, Images(options.big, options.program), {}
    print("registry", f"{host}:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
