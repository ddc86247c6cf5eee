#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: image.sh [-o DIR] PROGRAM...
# Makes a container image of static programs (make portable), each for another architecture and all of one version. Leaves it in DIR
# (default: build/portable) as nodestrap-VERSION-oci.tar. Needs no daemon. The file is an OCI image layout
# (https://github.com/opencontainers/image-spec/blob/main/image-layout.md) with an index of all architectures. For a docker that does not
# read layouts it also has the manifest.json of `docker save`. The same programs and SOURCE_DATE_EPOCH (default: the date of
# debian/changelog) give the same bytes.
set -euo pipefail; top=$(realpath "$(dirname "$0")/../.."); out=$top/build/portable; export LC_ALL=C; umask 022
while getopts o: o; do case $o in o) out=$OPTARG;; *) exit 2;; esac; done; shift $((OPTIND - 1))
die() { echo "image.sh: $*" >&2; exit 1; }
[ $# -gt 0 ] || die "no program: make portable makes one, and make portable ARCH=arm64 the other"
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
mkdir -p "$out" "$W/oci/blobs/sha256"
: "${SOURCE_DATE_EPOCH:=$(date -d "$(sed -n 's/^ -- .*>  *//p' "$top/debian/changelog" | head -n 1)" +%s)}"
created=$(date -ud "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
pack() { tar -C "$1" -cf - --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s "${@:2}"; }
digest() { sha256sum | cut -c1-64; }
# FILE TYPE [MEMBER]: FILE becomes a blob; prints its descriptor, with a further member
blob() {
        local sum size; sum=$(digest <"$1") size=$(stat -c %s "$1"); mv "$1" "$W/oci/blobs/sha256/$sum"
        printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s%s}' "$2" "$sum" "$size" "${3-}"
}
sum_of() { grep -o 'sha256:[0-9a-f]*' <<<"$1" | head -n 1 | cut -d: -f2; }
# e_machine (elf(5))
arch_of() { case $(od -An -tu2 -j18 -N2 "$1" | tr -d ' ') in 62) echo amd64;; 183) echo arm64;; *) die "$1 is for neither x86-64 nor arm64";; esac; }

version='' manifests='' saved=''
for program; do         # ask a program that runs here for the version
        said=$("$program" version 2>/dev/null) && version=$(cut -d ' ' -f 2 <<<"$said") && break
done
[ -n "${version:=${VERSION-}}" ] || die "none of these programs runs here: set VERSION"
for program; do
        arch=$(arch_of "$program")
        grep -qaF "nodestrap $version" "$program" || die "$program is not version $version: remove it, or make clean and build each of them again"
        rm -rf "$W/root"; mkdir -p "$W/root/work"; install -m 755 "$program" "$W/root/nodestrap"
        pack "$W/root" nodestrap work >"$W/layer"; diff_id=$(digest <"$W/layer"); gzip -9n "$W/layer"
        layer=$(blob "$W/layer.gz" layer.v1.tar+gzip)
        cat >"$W/config" <<-X
		{"created":"$created","architecture":"$arch","os":"linux","config":{"User":"65534:65534","Entrypoint":["/nodestrap"],"Cmd":["help"],"WorkingDir":"/work","Labels":{"org.opencontainers.image.title":"nodestrap","org.opencontainers.image.version":"$version","org.opencontainers.image.licenses":"Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["sha256:$diff_id"]},"history":[{"created":"$created","created_by":"conf/packaging/image.sh"}]}
	X
        config=$(blob "$W/config" config.v1+json)
        printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}\n' "$config" "$layer" >"$W/manifest"
        manifests+=${manifests:+,}$(blob "$W/manifest" manifest.v1+json ",\"platform\":{\"architecture\":\"$arch\",\"os\":\"linux\"}")
        # In manifest.json docker takes each name for one architecture. The first program gets the plain names.
        tags="\"nodestrap:$version-$arch\""; [ -n "$saved" ] || tags+=",\"nodestrap:$version\",\"nodestrap:latest\""
        saved+="${saved:+,}{\"Config\":\"blobs/sha256/$(sum_of "$config")\",\"RepoTags\":[$tags],\"Layers\":[\"blobs/sha256/$(sum_of "$layer")\"]}"
done
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}\n' "$manifests" >"$W/index"
# Only one image: with several, podman asks which to take. containerd and podman read its name, other programs the tag.
index=$(blob "$W/index" index.v1+json ',"annotations":{"io.containerd.image.name":"docker.io/library/nodestrap:latest","org.opencontainers.image.ref.name":"latest"}')
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}\n' "$index" >"$W/oci/index.json"
printf '[%s]\n' "$saved" >"$W/oci/manifest.json"
echo '{"imageLayoutVersion":"1.0.0"}' >"$W/oci/oci-layout"
pack "$W/oci" oci-layout index.json manifest.json blobs >"$W/image"
mv "$W/image" "$out/nodestrap-$version-oci.tar"; echo "$out/nodestrap-$version-oci.tar"
