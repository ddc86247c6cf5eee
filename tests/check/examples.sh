#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is shipped beside the program is true of it: the schema is the one that it prints, and every example is accepted without a
# warning and has a plan for the machine that it is about.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") conf=$here/../../conf
schema() { "$nodestrap" config schema | diff - "$conf/nodeconfig.schema.json" || { echo "nodestrap config schema >conf/nodeconfig.schema.json"; false; }; }
accepted() { "$nodestrap" config check --strict -c "file://$1" 2>&1 | tee "$tmp/out"; [ "${PIPESTATUS[0]}" = 0 ] && ! grep -q warning "$tmp/out"; }
planned() { # FILE TYPE: of that type, and nothing to warn of but that the machine is not this one
        "$nodestrap" plan -c "file://$1" --instance-type "$2" --kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04 >"$tmp/out" 2>&1 &&
                grep -q "^machine *$2, " "$tmp/out" && [ "$(sed -n '/^Warnings/,$s/.*\[\([a-z-]*\)\]$/\1/p' "$tmp/out")" = assumed-facts ] || { sed -n '1,2p;/^Warnings/,$p' "$tmp/out"; false; }
}
ok "conf/nodeconfig.schema.json is what config schema prints" schema
for file in "$conf"/examples/*; do
        name=${file##*/} type=$(sed -nE 's/^#.*--instance-type ([a-z0-9.-]*[a-z0-9]).*/\1/p' "$file" | tail -1)
        ok "$name is accepted" accepted "$file"
        ok "$name has a plan" planned "$file" "${type:-p6e-gb200.36xlarge}"
done
done_testing
