#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: usr-copy.sh bin|lib64|share
. /usr/lib/fakes/lib.sh
scripted "copy-$1-fails" && die "$(script "copy-$1-fails")"
case $1 in lib64) to=/usr/lib/x86_64-linux-gnu;; *) to=/usr/$1;; esac
pause "$(script copy-takes 10)"
cp -a "/opt/nvidia/current/usr/$1/." "$to/" && event "usr-copy $1"
