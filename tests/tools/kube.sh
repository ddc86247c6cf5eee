#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: kube.sh VERSION[/PROGRAM]...          (1.33.13, the first with DRA on EKS; 1.37.0)
# Builds a real Kubernetes from its public Go modules, once, and prints one directory a version. That holds kubelet, kube-apiserver,
# kube-controller-manager and kubectl of VERSION, or PROGRAM alone of these, and etcd and aws-iam-authenticator (their versions are below).
# It builds only missing parts.
#   --containerd   builds a real containerd, of the version below, in the same way, and prints its path
#   --plugins      builds device-plugin and dra-plugin of tests/fakes, with the modules of the version below, and prints their directory
#   --list      which VERSIONs the scripts of tests/cluster want, NODESTRAP_TEST_KUBE="VERSION..." limits these
#   --deps      install what is needed on this machine      --clean     remove all of it      --help
# Cost with empty caches: 4.5 CPU minutes a version, 2 for the other two, 2.5 for the plugins; meanwhile 1.5 GiB of modules and 6.5 GiB of
# build cache, which go at the end (NODESTRAP_TEST_KEEP_BUILD=1 keeps them). 0.4 GiB a version stay in kube/ of the cache of the tests.
# Go: the one on PATH if it is 1.26 or newer, else Debian's golang-1.26 of trixie-backports, unpacked (its programs are static). Where modules
# come from is go's own business (GOPROXY). NODESTRAP_TEST_NO_BUILD=1 takes what is there.
# From 1.35 on kubelet refuses a host with cgroup v1: it runs in a machine of vmboot.sh.
set -eu; here=$(dirname "$(realpath "$0")"); . "$here/lib.sh"
ETCD=3.7.3 AUTHENTICATOR=0.6.13 CONTAINERD=2.4.2 MODULES=0.37.0 KUBERNETES="kubelet kube-apiserver kube-controller-manager kubectl"
D=$BASE/kube
wanted() {
        local v; for v in $(sed -n 's/^# kube: //p' "$here"/../cluster/*.sh | tr ' ' '\n' | sort -uV); do
                case " ${NODESTRAP_TEST_KUBE:-${v%/*}} " in *" ${v%/*} "*) echo "$v";; esac
        done
}
alone=''
case ${1-} in
--containerd) alone=containerd; set --;;
--plugins) alone=plugins; set --;;
--deps) deps; exit;;
--clean) root; rm -rf "$D" "$D.lock"; exit;;
--list) wanted; exit;;
-h|--help|'') usage; exit;;
esac

# The sources of a program are named beside it.
there() { [ -x "$1" ] && [ "$(cat "$1.version" 2>/dev/null)" = "$2" ]; }
missing() {                             # VERSION[/PROGRAM]: its programs that are not there
        local v=${1%/*} p all=$KUBERNETES; [ "$v" = "$1" ] || all=${1#*/}
        for p in $all; do there "$D/$v/$p" "$v" || echo "$p"; done
}
complete() {
        local v; for v; do [ -z "$(missing "$v")" ] || return 1; done
        there "$D/bin/etcd" $ETCD && there "$D/bin/aws-iam-authenticator" $AUTHENTICATOR
}
tell() {
        local v p; for v in "${@%/*}"; do
                for p in etcd aws-iam-authenticator; do [ -e "$D/$v/$p" ] || ln -sfn "../bin/$p" "$D/$v/$p"; done
                echo "$D/$v"
        done
}
plugin() { echo "$MODULES-$(sha256sum "$here/../fakes/$1.go" | cut -c1-12)"; }       # the version of ours: its modules and its source
case $alone in
'') if complete "$@"; then tell "$@"; exit; fi;;
plugins) if there "$D/bin/device-plugin" "$(plugin device-plugin)" && there "$D/bin/dra-plugin" "$(plugin dra-plugin)"; then echo "$D/bin"; exit; fi;;
*) if there "$D/bin/containerd" $CONTAINERD; then echo "$D/bin/containerd"; exit; fi;;
esac
[ "${NODESTRAP_TEST_NO_BUILD:-0}" = 0 ] || skip "no ${alone:-Kubernetes $*} here yet (make images builds it)"
root; [ "$(uname -m)" = x86_64 ] || skip "the guest is x86-64 only"
mkdir -p "$D/bin"; exec 9>"$D.lock"; flock 9
# For the next version: what one has built the other hardly shares. Above all it may not stay where there was no room for it.
clean_up() { rm -f "$D/log"; [ "${NODESTRAP_TEST_KEEP_BUILD:-0}" != 0 ] || rm -rf "$D"/{mod,cache,src}; }
trap clean_up EXIT; trap 'exit 130' HUP INT TERM

go_is_new() { command -v go >/dev/null && printf '1.26\n%s\n' "$(GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//')" | sort -VC; }
go_is_new || {
        root=$("$here/peers.sh" --cached golang trixie-backports golang-1.26-go golang-1.26-src 9>&-) || skip "no Go 1.26"
        export PATH=$root/usr/lib/go-1.26/bin:$PATH; }
export GOMODCACHE=$D/mod GOCACHE=$D/cache GOFLAGS=-modcacherw GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0

# A module of ours that needs these programs, so that `go build` finds them, in the current directory: module PACKAGE...
module() { printf '//go:build tools\n\npackage tools\n\nimport (\n'; printf '\t_ "%s"\n' "$@"; echo ')'; }
logged() { "$@" >"$D/log" 2>&1 || { tail "$D/log" >&2; return 1; }; }
# Builds PACKAGE as FILE of VERSION, which is a program or none: build FILE VERSION PACKAGE [FLAG...]
build() {
        local file=$1 version=$2 package=$3; shift 3; say "building $package $version"
        logged go build "$@" -o "$file.new" "$package" && mv "$file.new" "$file" && echo "$version" >"$file.version"
}
other() {                               # other NAME VERSION PACKAGE MODULE: a program of another module
        local d=$D/src/$1; ! there "$D/bin/$1" "$2" || return 0
        mkdir -p "$d" && cd "$d" || return; module "$3" >tools.go; printf 'module example.org/tools\n\ngo 1.26\n' >go.mod
        logged go get "$4@v$2" && logged go mod tidy && build "$D/bin/$1" "$2" "$3" -ldflags='-s -w'
}
kubernetes() {                          # its own go.mod says that the staging modules lie beside it; published, they are v0 of the same release
        local v=${1%/*} minor p d=$D/src/${1%/*} k=k8s.io/kubernetes ver=k8s.io/component-base/version mod all; all=$(missing "$1"); [ -n "$all" ] || return 0
        mkdir -p "$d" "$D/$v" && cd "$d" || return; minor=${v#1.}; minor=${minor%%.*}
        # shellcheck disable=SC2046,SC2086 # words
        module $(printf "$k/cmd/%s " $KUBERNETES) >tools.go
        logged go mod download -json "$k@v$v" || return
        mod=$(sed -n 's/^.*"GoMod": "\(.*\)",*$/\1/p' "$D/log"); [ -n "$mod" ] || return
        { echo 'module example.org/tools'; grep '^go ' "$mod"; echo "require $k v$v"
          grep -oE 'k8s.io/[a-z0-9-]+ => ./staging' "$mod" | sed "s| => .*||; s|.*|replace & => & v0.${v#1.}|" | sort -u; } >go.mod
        logged go mod tidy -e || return
        for p in $all; do build "$D/$v/$p" "$v" "$k/cmd/$p" -trimpath -ldflags "-s -w -X $ver.gitVersion=v$v -X $ver.gitMajor=1 -X $ver.gitMinor=$minor" || return; done
}
plugins() {                             # of tests/fakes, in a module of ours
        local p d=$D/src/plugins; mkdir -p "$d" && cd "$d" || return
        { printf 'module example.org/tools\n\ngo 1.26.0\n'; printf "require k8s.io/%s v$MODULES\n" kubelet dynamic-resource-allocation; } >go.mod
        for p in device-plugin dra-plugin; do mkdir -p $p && cp "$here/../fakes/$p.go" $p/ || return; done
        logged go mod tidy || return
        for p in device-plugin dra-plugin; do there "$D/bin/$p" "$(plugin $p)" || build "$D/bin/$p" "$(plugin $p)" ./$p -ldflags='-s -w' || return; done
}
if [ "$alone" = plugins ]; then
        (plugins) || skip "the plugins cannot be built: $(tail -n 1 "$D/log")"
        echo "$D/bin"; exit
fi
if [ "$alone" = containerd ]; then
        c=github.com/containerd/containerd/v2; (other containerd $CONTAINERD $c/cmd/containerd $c) || skip "containerd $CONTAINERD cannot be built: $(tail -n 1 "$D/log")"
        echo "$D/bin/containerd"; exit
fi
failed=
(other etcd $ETCD go.etcd.io/etcd/server/v3 go.etcd.io/etcd/server/v3) &&
        (other aws-iam-authenticator $AUTHENTICATOR sigs.k8s.io/aws-iam-authenticator/cmd/aws-iam-authenticator sigs.k8s.io/aws-iam-authenticator) || failed=1
for v; do [ -n "$failed" ] || (kubernetes "$v") || failed=1; done
[ -z "$failed" ] || skip "Kubernetes $* cannot be built: no Go modules here, no room, or a Go that is too old ($(grep -v '^[{}]*$' "$D/log" | tail -n 1 | tr -s '\t ' ' ' | cut -c1-300))"
tell "$@"
