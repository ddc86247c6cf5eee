#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A slip in a table does not build. conf/tables.awk names the line and the possible words, and the compiler refuses a field whose member has
# another type than its row.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
cd "$here/../.." || exit 1
table() { awk -f conf/tables.awk -v table="$1" "$2" >"$tmp/out" 2>"$tmp/err"; }
for csv in conf/*.csv; do ok "tables.awk accepts $csv" table "$(basename "$csv" .csv)" "$csv"; done
slip() { # TABLE SED WORDS: a copy with the change is refused, with its line
        local line
        sed -E "$2" "conf/$1.csv" >"$tmp/$1.csv"
        line=$(cmp "conf/$1.csv" "$tmp/$1.csv" | sed 's/.* line //')
        ! table "$1" "$tmp/$1.csv" && says "$tmp/$1.csv:$line: $3"
}
while IFS='~' read -r name change words; do
        ok "$name with $change is an error: $words" slip "$name" "$change" "$words"
done <<'END'
gpus~s/^(2330,h100),hopper/\1,hoper/~not one of volta turing ampere ada hopper blackwell: hoper
gpus~s/^(20b0,a100-40gb),ampere/\1,amper/~not one of volta turing ampere ada hopper blackwell: amper
gpus~/^2901/s/,open,/,opne,/~not one of open proprietary: opne
gpus~/^2330/s/,pci,/,pcie,/~no such board: pcie
gpus~/^2330/s/,yes,/,y,/~neither yes nor empty: y
gpus~/^2330/s/,18,/,,18,/~want 13 cells, found 14
hbm-chips~s/^31,/3g,/~not two hexadecimal digits: 3g
instance-types~/^p5.48xlarge/s/,pci,/,pcie,/~not one of none pci nvl5-host nvl5-offhost: pcie
instance-types~/^p5.48xlarge/s/,x86_64,/,x86-64,/~not one of x86_64 arm64: x86-64
mig-profiles~s/^(a100-40gb,1g.5gb,.*)documented/\1inferred/~the rows of a100-40gb have two certainties
mig-profiles~s/^h100(,3g)/a100-40gb\1/~the rows of a100-40gb do not stand together
requirements~s/^(cdmm,driver,,580.65.06),error/\1,fatal/~not one of error warning: fatal
requirements~s/^gb200,kubelet/gb200,kublet/~not one of kubelet containerd driver kernel toolkit fabricmanager imex persistenced nvml module: kublet
requirements~s/^(gb200,kubelet,,)1.33/\1v1.33/~not a version: v1.33
requirements~s/^(driver,imex,,)=driver/\1=drivers/~not a version: =drivers
requirements~s/^(gb200,kernel,.*),20[0-9-]*$/\1,/~no source with its date
instance-types~/^p6e-gb300.36/s/unconfirmed/unconfirmd/~not one of unconfirmed listed: unconfirmd
network-cards~s/^(p5.48xlarge,0-31),both/\1,bth/~not one of ena efa both: bth
network-cards~s/^p5.48xlarge,0-31/p5.48xlarge,0-31:0/~not first-last:step: 0-31:0
network-cards~s/^p5.48xlarge,0-31/p5.48xlarge,0-256/~not first-last:step: 0-256
pci-layout~s/^p5.48xlarge,efa/p5.48xlarge,eaf/~not one of efa gpu switch: eaf
END

# ---- days ----
cp -r conf "$tmp/days"
days() { awk -f conf/tables.awk -v table=ages "$tmp"/days/*.csv >"$tmp/out" 2>"$tmp/err"; }
undated() { sed -i "$1" "$tmp/days/gpus.csv"; ! days && says "$2"; }
ok "each table has a line with the date of its data" eval 'days && [ "$(grep -c " 20[0-9-]*.*\\\\n\"$" "$tmp/out")" = "$(ls conf/*.csv | wc -l)" ]'
ok "a table without a date is an error" undated '/^# As of/d' "$tmp/days/gpus.csv: no line \"# As of DAY\""
ok "a date that is not a day is an error with its line number" undated '1a # As of yesterday' "$tmp/days/gpus.csv:2: not a day: yesterday"
ok "a second date is an error with its line number" undated '2d; 1a # As of 2026-11-28\n# As of 2026-11-29' "$tmp/days/gpus.csv:3: a second day"

# ---- fields ----
compiler=${CC:-cc}
# shellcheck disable=SC2046  # words of flags
compile() { "$compiler" -std=gnu17 -D_GNU_SOURCE -Isrc $(pkg-config --cflags jansson) -fsyntax-only -x c "$1" 2>"$tmp/err"; }
misplaced() { # FROM TO: a row that names a member of another type is refused
        grep -qF "$1" src/config/fields.c || { echo "fields.c has no $1"; return 1; }
        sed "s/$1/$2/" src/config/fields.c >"$tmp/fields.c"
        ! compile "$tmp/fields.c" && says "_Generic"
}
if command -v "$compiler" >/dev/null && command -v pkg-config >/dev/null && pkg-config --exists jansson; then
        ok "the table of fields compiles" compile src/config/fields.c
        ok "a bool under INTEGER does not compile" misplaced 'AT(INTEGER, instance.expected_efa)' 'AT(INTEGER, instance.strict_node_name)'
        ok "a number under BOOL does not compile" misplaced 'AT(BOOL, cluster.outpost)' 'AT(BOOL, nvidia.imex_channels)'
        ok "a list under STRING does not compile" misplaced 'AT(STRING, cluster.cidr)' 'AT(STRING, instance.nameservers)'
        ok "a text under ENUM does not compile" misplaced 'AT(ENUM, nvidia.clocks)' 'AT(ENUM, cluster.id)'
        ok "a list under FREE does not compile" misplaced 'AT(FREE, kubelet.config)' 'AT(FREE, kubelet.flags)'
else
        count=$((count + 1)); echo "ok $count - a field of another type does not compile # SKIP no compiler"
fi
done_testing
