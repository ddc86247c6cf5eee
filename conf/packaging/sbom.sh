#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: CC=COMPILER SOURCE_DATE_EPOCH=SECONDS sbom.sh ROOT VERSION ARCHITECTURE deb|rpm
# Writes the SBOM of the package with the files below ROOT to ROOT/usr/share/doc/nodestrap/nodestrap.spdx.json, as SPDX 2.3
# (https://spdx.github.io/spdx-spec/v2.3/): the files with their checksums, and the libraries that the program is linked with or loads
# by name, with the packages that the build had them from; if rpm cannot name these, as on Debian,
# only library names: the nodes install other packages. Run it last, once programs are stripped and pages compressed. The file is in the
# documentation folder, since no standard path exists; scanners find *.spdx.json anywhere.
# The same bytes for the same files, libraries and SOURCE_DATE_EPOCH. Needs readelf, and dpkg or rpm; runs no program of ROOT.
set -eu
[ $# = 4 ] && [ -n "${SOURCE_DATE_EPOCH-}" ] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
export LC_ALL=C
root=$1 version=$2 arch=$3 format=$4 top=$(cd "$(dirname "$0")/../.." && pwd)
sbom=usr/share/doc/nodestrap/nodestrap.spdx.json program=usr/bin/nodestrap
die() { echo "sbom.sh: $*" >&2; exit 1; }
[ -f "$root/$program" ] || die "no $program below $root: run it on an installed tree"
W=$(mktemp -d); trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
maintainer=$(sed -n 's/^Maintainer: *//p' "$top/debian/control" | sed 's/</(/; s/>/)/')
copyright=$(sed -n 's/^Copyright: *//p' "$top/debian/copyright" | head -n 1)
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
# The vendor of the libraries, and the name that a package URL (https://github.com/package-url/purl-spec) calls them
os() { sed -n "s/^$1=//p" /etc/os-release 2>/dev/null | tr -d '"' | head -n 1; }
vendor=$(os NAME) distribution=$(os ID)

# ---- files: SHA1, which the format requires, SHA256 and name
(cd "$root" && find . -path ./DEBIAN -prune -o -type f ! -path "./$sbom" -print | sort) >"$W/names"
(cd "$root" && while read -r f; do echo "$(sha1sum <"$f" | cut -c1-40) $(sha256sum <"$f" | cut -c1-64) $f"; done) <"$W/names" >"$W/files"
verification=$(cut -d ' ' -f 1 "$W/files" | sort | tr -d '\n' | sha1sum | cut -c1-40)

# ---- libraries: soname, how, package, version and architecture; of libraries that the build did not have, only the first two
# src/base/library.c opens libraries by name: a soname is a separate string, or the tail of another ("%s/lib…") with which the linker merges it.
# Each library that is not linked is such a string. A path is not.
readelf -dW "$root/$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | sort -u >"$W/needed"
[ -s "$W/needed" ] || die "readelf finds no libraries in $root/$program: is it a program?"
tr '\0' '\n' <"$root/$program" | grep -aoE '(^|[^/]|%s/)lib[a-z0-9_+-]+\.so\.[0-9]+$' | grep -aoE 'lib[a-z0-9_+-]+\.so\.[0-9]+$' | sort -u | grep -vxFf "$W/needed" >"$W/loaded" || :
case $format in
deb)    owner() {       # FILE: package, version, architecture
                for path in "$1" "${1#/usr}"; do
                        package=$(dpkg-query -S "$path" 2>/dev/null | sed -n 's/: .*//p' | head -n 1) || :
                        [ -z "$package" ] || { dpkg-query -W -f '${Package} ${Version} ${Architecture} deb\n' "$package"; return; }
                done
                return 1
        };;
rpm)    owner() { rpm -qf --qf '%{NAME} %{VERSION}-%{RELEASE} %{ARCH} rpm\n' "$1" 2>/dev/null; }
        rpm -q rpm >/dev/null 2>&1 || format=unknown;;
*)      die "unknown package format: $format";;
esac
[ "$format" = unknown ] || libraries=/usr/lib/$(${CC:-cc} -print-multiarch)
libraries() {   # HOW
        while read -r soname; do
                case $soname in libnvidia-*|libcuda.*) echo "$soname optional"; continue;; esac   # they belong to the driver; this machine does not matter
                [ "$format" != unknown ] || { echo "$soname $1"; continue; }
                # A cross compiler may have its own copy of a library; take the package of the target architecture, which nodes have.
                path=$(ls "$libraries/$soname" 2>/dev/null) || path=$(${CC:-cc} -print-file-name="$soname")
                case $path in /*) ;; *) [ "$1" = loaded ] || die "the build has no $soname, which the program is linked with"; echo "$soname optional"; continue;; esac
                line=$(owner "$(realpath "$(dirname "$path")")/$soname") ||
                        line=$(owner "$(realpath "$path")") || die "$path belongs to no package that dpkg or rpm knows"
                echo "$soname $1 $line"
        done
}
{ libraries linked <"$W/needed"; libraries loaded <"$W/loaded"; } >"$W/libraries"

# ---- the document, except its namespace, which is a hash of its bytes
awk -v program="./$program" -v sbom="./$sbom" -v version="$version" -v arch="$arch" -v created="$created" -v maintainer="$maintainer" \
        -v copyright="$copyright" -v verification="$verification" -v vendor="${vendor:-unknown}" -v distribution="${distribution:-unknown}" '
function text(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
function id(s) { gsub(/[^A-Za-z0-9.-]+/, "-", s); return text("SPDXRef-" s) }
function encode(s) { gsub(/%/, "%25", s); gsub(/[+]/, "%2B", s); return s }
function purl(s) { return "\"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": " text(s) "}]" }
function item(s) { printf "%s\n    {%s}", many++ ? "," : "", s }
function relation(a, what, b, why) {
        relations[n_relations++] = "\"spdxElementId\": " a ", \"relationshipType\": \"" what "\", \"relatedSpdxElement\": " b (why == "" ? "" : ", \"comment\": " text(why))
}
BEGIN { n = n_files = n_relations = many = 0 }
FILENAME ~ /files$/ { files[n_files] = $3; sha1[n_files] = $1; sha256[n_files++] = $2; next }
{ soname[n] = $1; how[n] = $2; package[n] = $3; release[n] = $4; machine[n] = $5; kind[n++] = $6 }
END {
        ours = id("Package-nodestrap")
        print "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n  \"SPDXID\": \"SPDXRef-DOCUMENT\","
        print "  \"name\": " text("nodestrap-" version "-" arch) ",\n  \"documentNamespace\": \"@NAMESPACE@\","
        print "  \"creationInfo\": {\"created\": " text(created) ", \"creators\": [" text("Organization: " maintainer) ", " text("Tool: nodestrap-sbom.sh-" version) "]},"
        relation("\"SPDXRef-DOCUMENT\"", "DESCRIBES", ours)
        printf "  \"packages\": ["
        item("\"SPDXID\": " ours ", \"name\": \"nodestrap\", \"versionInfo\": " text(version) ", \"supplier\": " text("Organization: " maintainer) \
             ", \"downloadLocation\": \"NOASSERTION\", \"primaryPackagePurpose\": \"APPLICATION\", \"licenseDeclared\": \"Apache-2.0\", \"licenseConcluded\": \"Apache-2.0\"" \
             ", \"copyrightText\": " text(copyright) ", \"filesAnalyzed\": true, \"packageVerificationCode\": {\"packageVerificationCodeValue\": " text(verification) \
             ", \"packageVerificationCodeExcludedFiles\": [" text(sbom) "]}, " purl("pkg:generic/nodestrap@" encode(version) "?arch=" arch))
        for (i = 0; i < n; i++) {
                known = package[i] != ""
                library = id("Package-" (known ? package[i] : soname[i]))
                if (how[i] == "linked") relation(id("File" substr(program, 2)), "DYNAMIC_LINK", library, soname[i])
                else relation(library, how[i] == "loaded" ? "RUNTIME_DEPENDENCY_OF" : "OPTIONAL_DEPENDENCY_OF", id("File" substr(program, 2)), soname[i])
                if (library in seen) continue
                seen[library]
                item("\"SPDXID\": " library ", \"name\": " text(known ? package[i] : soname[i]) (known ? ", \"versionInfo\": " text(release[i]) : "") \
                     ", \"supplier\": " text(known ? "Organization: " vendor : "NOASSERTION") ", \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false" \
                     ", \"primaryPackagePurpose\": \"LIBRARY\", \"licenseDeclared\": \"NOASSERTION\", \"licenseConcluded\": \"NOASSERTION\", \"copyrightText\": \"NOASSERTION\"" \
                     (known ? ", " purl("pkg:" kind[i] "/" distribution "/" package[i] "@" encode(release[i]) "?arch=" machine[i]) : ""))
        }
        printf "\n  ],\n  \"files\": ["; many = 0
        for (i = 0; i < n_files; i++) {
                item("\"SPDXID\": " id("File" substr(files[i], 2)) ", \"fileName\": " text(files[i]) ", \"checksums\": [{\"algorithm\": \"SHA1\", \"checksumValue\": " text(sha1[i]) \
                     "}, {\"algorithm\": \"SHA256\", \"checksumValue\": " text(sha256[i]) "}], \"licenseConcluded\": \"Apache-2.0\", \"copyrightText\": " text(copyright))
                relation(ours, "CONTAINS", id("File" substr(files[i], 2)))
        }
        printf "\n  ],\n  \"relationships\": ["; many = 0
        for (i = 0; i < n_relations; i++) item(relations[i])
        print "\n  ]\n}"
}' "$W/files" "$W/libraries" >"$W/sbom"
hash=$(sha256sum <"$W/sbom" | cut -c1-64)
sed "s|@NAMESPACE@|https://spdx.org/spdxdocs/nodestrap-$version-$arch-$hash|" "$W/sbom" >"$W/done"
install -D -m 0644 "$W/done" "$root/$sbom"
