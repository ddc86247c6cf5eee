#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: libcurl.sh
# Prints a directory with a libcurl.so.4 that speaks HTTP and HTTPS and nothing else. libcurl-minimal of Amazon Linux has more: file, FTP,
# HTTP/2, GSS-API and IDN (curl.spec of Fedora, build-minimal). It is made of the sources of trixie's curl, 8.14, nearer to
# Amazon Linux's than bookworm's, once: half a minute. NODESTRAP_TEST_NO_BUILD=1 takes what is there.
set -eu; . "$(dirname "$(realpath "$0")")/lib.sh"
case ${1-} in '') ;; *) usage; exit;; esac
root; mkdir -p "$BASE"; dir=$BASE/libcurl-minimal
exec 9>"$dir.lock"; flock 9
[ ! -e "$dir/libcurl.so.4" ] || { echo "$dir"; exit; }
[ "${NODESTRAP_TEST_NO_BUILD:-0}" = 0 ] || skip "no $dir here yet (make images makes it)"
need cc make tar
tmp=$(mktemp -d -p "$BASE"); trap 'rm -rf "$tmp"' EXIT
apt_for trixie
sed -n 's/^deb \(.*\) main$/deb-src \1 main/p' "$SOURCES" >"$tmp/sources.list"
mkdir -p "$tmp/state/lists/partial" "$tmp/source"
APT+=(-o Dir::Etc::SourceList="$tmp/sources.list" -o Dir::State="$tmp/state")
(cd "$tmp" && apt-get "${APT[@]}" -qq update && apt-get "${APT[@]}" -qq source --download-only --tar-only curl) >&2 ||
        skip "the sources of curl cannot be downloaded"
tar -xf "$tmp"/curl_*.orig.tar.?z -C "$tmp/source" --strip-components=1
without=(dict file ftp gopher imap ipfs ldap ldaps mqtt ntlm pop3 rtsp smb smtp telnet tftp tls-srp websockets alt-svc hsts manual docs ares)
(
        cd "$tmp/source"
        CFLAGS=-O0 ./configure -q --disable-dependency-tracking --disable-static --enable-shared --with-openssl \
                --with-zlib --without-{libpsl,brotli,zstd,libidn2,libssh,libssh2,nghttp2,librtmp,gssapi} "${without[@]/#/--disable-}" \
                --with-ca-bundle=/etc/ssl/certs/ca-certificates.crt
        make -s -j2 -C lib libcurl.la
) >"$tmp/log" 2>&1 || { tail -20 "$tmp/log" >&2; skip "a minimal libcurl cannot be built here"; }
mkdir "$tmp/new"; cp "$tmp/source/lib/.libs/libcurl.so.4" "$tmp/new/"
mv "$tmp/new" "$dir"
echo "$dir"
