#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fixtures/protections.txt has the rights of each unit, setting by setting. Change it deliberately when a unit gains or loses one.
# `systemd-analyze security` (tests/boot/verify-units.sh) does not notice if a single one disappears. UPDATE=1 writes the table: read it.
set -u; top=$(realpath "$(dirname "$0")/../.."); table=$top/tests/fixtures/protections.txt count=0 bad=0
W=$(mktemp -d) || exit 1; trap 'rm -rf "$W"' EXIT; trap 'exit 130' INT TERM
report() { count=$((count + 1)); if [ "$1" = 0 ]; then echo "ok $count - $2"; else bad=1; echo "not ok $count - $2"; sed 's/^/# /' <<<"$3"; fi; }

# rows FOLDER: a row for each word of each setting of [Service] that could keep the service from something, a column for each unit. This
# function lists the exceptions; anything else is a row. So is an Exec line whose prefix ignores the settings (systemd.service(5), "Special
# executable prefixes").
rows() {
        (cd "$1" && awk -v neutral=' Type RemainAfterExit EnvironmentFile Environment Restart RestartSec TimeoutSec TimeoutStartSec OOMPolicy StandardError Nice CPUWeight IOWeight IOSchedulingClass Slice ' '
        function row(text) { if (!(text in seen)) { seen[text] = 1; texts[++n] = text }; has[text, unit] = 1 }
        FNR == 1 { unit = FILENAME; sub(/^nodestrap-/, "", unit); sub(/@?\.service$/, "", unit); units[++m] = unit; part = "" }
        /^[#;]/ { next }
        { line = line $0; if (sub(/\\$/, "", line)) next }
        line ~ /^\[/ { part = line }
        part == "[Service]" && match(line, /^[A-Za-z]+=/) {
                key = substr(line, 1, RLENGTH - 1); value = substr(line, RLENGTH + 1)
                if (key ~ /^Exec/) { if (value ~ /^[-@:|]*[+!]/) row(key "=" substr(value, 1, 1)) }
                else if (!index(neutral, " " key " ")) {
                        words = split(value, word, " ")
                        if (key == "DeviceAllow" || words < 2) row(key "=" value)
                        else for (i = 1; i <= words; i++) row(key "=" (word[1] ~ /^~/ && i > 1 ? "~" : "") word[i])
                }
        }
        { line = "" }
        END {
                for (i = 1; i <= m; i++) { at = ""; for (j = 1; j < i; j++) at = at " |"; print "#" sprintf("%53s", "") at " " units[i] }
                fflush()
                for (i = 1; i <= n; i++) {
                        at = ""; for (j = 1; j <= m; j++) at = at " " (((texts[i], units[j]) in has) ? "x" : ".")
                        printf "%-54s%s\n", texts[i], at | "LC_ALL=C sort"
                }
        }' nodestrap-*.service)
}
head_of_table() { sed '/^#  /,$d' "$table"; }
same() { diff -u <(head_of_table; rows "$1") "$table"; }

if [ -n "${UPDATE-}" ]; then { head_of_table; rows "$top/units"; } >"$W/new" && cp "$W/new" "$table"; fi
out=$(same "$top/units"); report $? "each unit has exactly the rights in the table (in the diff, - is the unit, + the table)" "$out"
out=$(find "$top/units" -path '*nodestrap-*.d/*'); [ -z "$out" ]; report $? "no unit of nodestrap has a drop-in in units/" "$out"

seen() { # EXPRESSION FILE NAME: a copy of a unit that sed has changed
        rm -rf "$W/units"; mkdir "$W/units"; cp "$top"/units/*.service "$W/units/"; sed -i "$1" "$W/units/$2"
        ! cmp -s "$W/units/$2" "$top/units/$2" && ! same "$W/units" >/dev/null; report $? "control: the comparison with the table finds $3" "$1 $2"
}
seen '/^RestrictNamespaces/d' nodestrap-devices.service 'a missing protection'
seen 's/^NoNewPrivileges=yes/NoNewPrivileges=no/' nodestrap-config.service 'a protection that is off'
seen 's/^CapabilityBoundingSet=.*CHOWN/& CAP_SYS_RAWIO/' nodestrap-run.service 'an additional capability'
seen '/^SystemCallFilter/a SystemCallFilter=' nodestrap-joined.service 'a filter that a later line resets'
seen 's/^SystemCallFilter=@system-service$/& \\\n  @raw-io/' nodestrap-config.service 'an additional word on a continuation line'
seen 's/^ExecStart=/&+/' nodestrap-run.service 'a program that runs without protections'
seen '/^Type=/a AmbientCapabilities=CAP_SYS_ADMIN' nodestrap-event.service 'a setting that is new in all units'
echo "1..$count"; exit $bad
