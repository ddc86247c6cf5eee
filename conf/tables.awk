# SPDX-License-Identifier: Apache-2.0
# conf/NAME.csv → C: awk -f conf/tables.awk -v table=NAME conf/NAME.csv. What the structs are stands in src/host/tables.h,
# host.h, aws.h, health/health.h, config/kubelet.h and config/containerd.h. Anything unexpected in a cell, and rows out of order where the program searches by halving, fail the build here.
BEGIN { FS = ","; print "/* Made by conf/tables.awk from conf/" table ".csv. */\n#include \"" (table == "partitions" ? "aws/internal.h" : table == "hbm-chips" ? "health/health.h" : table ~ /^kubelet|^feature/ ? "config/kubelet.h" : table == "containerd-settings" ? "config/containerd.h" : "host/tables.h") "\"\n" }
BEGIN {
        name = table; gsub(/-/, "_", name); sub(/^kubelet_|^feature_|^containerd_/, "&known_", name); sub(/^feature/, "kubelet", name)
        packed = name ~ /_known_/
        if (packed) { to = "gzip -9n | od -An -v -tu1 | sed 's/[0-9][0-9]*/&,/g'"; print "const unsigned char " name "[] = {"; system("") }    # which flushes
}
# The head of a table says which words a column may have: "# part            efa | gpu | switch". Brackets and a colon begin an explanation.
/^# [a-z]+ +[a-z0-9_-]+( \([^)]*\))? \|/ { line = $0; gsub(/ *\([^)]*\)/, "", line); sub(/:.*/, "", line); split(line, head, " "); sub(/^# [a-z]+ +/, "", line); gsub(/ \|/, "", line); words_of[head[2]] = line }
# Each head has one line "# As of 2026-11-28, MORE": the day, or month, on which the rows were last compared with the source. -v table=ages
# takes those lines of all tables.
table == "ages" && sub(/^# As of /, "") {
        if ($0 !~ /^20[0-9][0-9]-[01][0-9](-[0-3][0-9])?(, [A-Za-z0-9. ]+)?$/) fail("not a day: " $0)
        file = FILENAME
        gsub(/^.*\/|\.csv$/, "", file)
        if (!n++) print "const char table_ages[] ="
        print "        \"" file " " $0 "\\n\""
        if (FILENAME in dated) fail("a second day")
        dated[FILENAME]
        files--
}
table == "ages" && FNR == 1 { files++ }
/^#/ || /^$/ { next }

function fail(why) { printf "%s:%d: %s\n", FILENAME, FNR, why >"/dev/stderr"; failed = 1; exit 1 }
function fields(n) { if (NF != n) fail("want " n " cells, found " NF) }
function word(s) { if (s !~ /^[a-z0-9_.|:-]*$/) fail("not a word: " s); return s == "" ? "NULL" : "\"" s "\"" }
function yes(s) { if (s != "" && s != "yes") fail("neither yes nor empty: " s); return s == "" ? "false" : "true" }
function number(s, unknown) { if (s !~ /^[0-9]*$/) fail("not a number: " s); return s == "" ? unknown : s }
function one_of(column, s) { if (!(column in words_of)) fail("the head names no words of " column); if (s != "") within(s, words_of[column]); return word(s) }
function letters(s) { return s == "NULL" ? "\"\"" : s }
function hex(s) { if (s !~ /^([0-9a-f][0-9a-f][0-9a-f][0-9a-f]([0-9a-f][0-9a-f])?)?$/) fail("not four or six hexadecimal digits: " s); return s == "" ? 0 : "0x" s }
function version(s) { if (s !~ /^([0-9]+(\.[0-9]+)*)?$/ || length(s) > 11) fail("not a version: " s); return "\"" s "\"" }
function text(s) { if (s == "" || s ~ /["\\%]/) fail("not a text: " s); return "\"" s "\"" }
function ordered(key) { if (n++ && !(last "" < key "")) fail(key " is out of order"); last = key }

table == "eni-limits" {
        if (length($1) > 12) fail($1 " is too long for eni_families")
        families = families "        \"" $1 "\",\n"
        for (i = 2; i <= NF; i++) {
                if (split($i, cell, ":") == 3) cell[4] = 1
                else if (split($i, cell, ":") != 4) fail("want size:interfaces:addresses[:cards], found " $i)
                ordered($1 "." cell[1])
                if (length(cell[1]) > 10) fail(cell[1] " is too long for EniShape")
                if (cell[2] !~ /^[0-9]+$/ || cell[2] > 255 || cell[3] !~ /^[0-9]+$/ || cell[3] > 255 || cell[4] !~ /^[1-9]$/) fail("not small numbers: " $i)
                if (!($i in shape)) {
                        shape[$i] = n_shapes++
                        shapes = shapes "        { " word(cell[1]) ", " cell[2] ", " cell[3] ", " cell[4] " },\n"
                }
                rows = rows "        { " n_families + 0 ", " shape[$i] " },\n"
        }
        if (n_families++ > 255 || n_shapes > 256) fail("more than a byte counts")
}
table == "instance-types" {
        if (NF != 15) fields(14)
        ordered($1)
        if (n == 1) print "const InstanceType instance_types[] = {"
        step = split($7, cards, ":") == 2 ? cards[2] : 1
        if ($7 !~ /^([0-9]*|[0-9]+:[1-9])$/) fail("neither cards nor cards:step: " $7)
        if (length($5) > 20) fail($5 " is too long for InstanceType")
        if ($6 !~ /^(10de:[0-9a-f]+(\|10de:[0-9a-f]+)?)?$/) fail("not 10de:device or two of them: " $6)
        devices = $6; gsub(/10de:/, "0x", devices); sub(/\|/, ", ", devices)
        print "        { " word($1) ", " letters(one_of("nvswitch", $11)) ", " letters(one_of("arch", $12)) ", " letters(word($5)) ", { " devices " }, " number($2, 0) ", " number($3, 0) ", " number($4, 0) ", " \
              number(cards[1], -1) ", " number($8, -1) ", " number($9, -1) ", " number($10, 0) ", " number($13, -1) ", " hex($14) ", " step ", " (one_of("listing", $15) == "NULL" ? "false" : "true") " },"
}
table == "gpus" {
        fields(13)
        if (length($1) != 4) fail("not a device id: " $1)
        ordered($1)
        if (n == 1) print "const GpuModel gpu_models[] = {"
        board = $8 == "" ? "NONE" : $8 == "pci" ? "NVSWITCH" : $8 == "nvlink5" ? "NVLINK5" : $8 == "tray" ? "TRAY" : fail("no such board: " $8)
        if (length($2) > 12 || length($3) > 9 || length($4) > 12 || length($6) > 11) fail("too long for GpuModel: " $0)
        print "        { " hex($1) ", " word($2) ", " one_of("generation", $3) ", " letters(word($4)) ", " yes($5) ", " letters(one_of("modules", $6)) ", " yes($7) ", GPU_CLASS_" board ", " \
              number($9, 0) ", " yes($10) ", " yes($11) ", " number($12, 0) ", " number($13, 0) " },"
}
table == "requirements" {
        fields(9)
        if (!n++) print "const Requirement requirements[] = {"
        if ($1 !~ /^[a-z0-9.+-]+$/ || length($1) > 15) fail("not what a row is for: " $1)
        if ($2 == "" || $5 == "" || $4 == "") fail("no component, severity or version")
        if ($8 == "" || $9 !~ /^20[0-9][0-9]-[01][0-9]-[0-3][0-9]$/) fail("no source with its date")
        one_of("component", $2)
        print "        { \"" $1 "\", " version($3) ", " ($4 == "=driver" ? "\"=driver\"" : version($4)) ", COMPONENT_" toupper($2) ", " (one_of("severity", $5) == "\"error\"" ? "true" : "false") ", " \
              text($6) ", " ($7 == "" ? "NULL" : text($7)) " },"
}
table == "hbm-chips" {
        fields(2)
        if ($1 !~ /^[0-9a-f][0-9a-f]$/) fail("not two hexadecimal digits: " $1)
        ordered($1)
        if (n == 1) print "const unsigned char hbm_chips[] = {"
        print "        0x" $1 ",        /* " $2 " */"
}
table == "pci-devices" {
        fields(5)
        ordered($1)
        if (n == 1) print "const PciId pci_devices[] = {"
        print "        { " word($1) ", " hex($2) ", " hex($3) ", " hex($4) ", " word($5) " },"
}
table == "pci-layout" {
        fields(3)
        ordered($1 "," $2)
        if (n == 1) print "const PciLayout pci_layout[] = {"
        print "        { " word($1) ", " one_of("part", $2) ", " word($3) " },"
}
table == "network-cards" {
        fields(6)
        if (!split($2, part, /[-:]/) || $2 !~ /^[0-9]+(-[0-9]+(:[1-9])?)?$/ || part[1] > 255 || part[2] > 255) fail("not first-last:step: " $2)
        ordered(sprintf("%s,%03d", $1, part[1]))
        if (n == 1) print "const NetworkCards network_cards[] = {"
        one_of("takes", $3)
        print "        { " word($1) ", " part[1] ", " (part[2] == "" ? part[1] : part[2]) ", " (part[3] == "" ? 1 : part[3]) ", " \
              ($3 == "ena" ? "false" : "true") ", " ($3 == "efa" ? "false" : "true") ", " number($4, 0) ", " number($5, 0) ", " number($6, -1) " },"
}
table == "mig-profiles" {
        fields(8)
        if (!n++) print "const MigProfile mig_profiles[] = {"
        if (length($1) > 12 || length($2) > 14) fail("too long for MigProfile: " $0)
        if ($2 !~ /^[1-7]g\.[0-9]+gb(\+me(\.all)?|\+gfx|-me)?$/) fail("not the name of a profile: " $2)
        if ($7 !~ /^[0-7]+$/) fail("not memory slices: " $7)
        if ($8 !~ /^(documented|inferred)$/) fail("no such certainty: " $8)
        if ($1 != gpu && $1 in certainty) fail("the rows of " $1 " do not stand together")
        if ($1 == gpu && $8 != certainty[gpu]) fail("the rows of " $1 " have two certainties")
        gpu = $1; certainty[gpu] = $8
        bits = 0
        for (i = 1; i <= length($7); i++) bits += 2 ^ substr($7, i, 1)
        print "        { " word($1) ", \"" $2 "\", " number($3, -1) ", " number($4, 0) ", " number($5, 0) ", " number($6, 0) ", " bits ", " \
              ($8 == "documented" ? "true" : "false") " },"
}
table == "partitions" {
        fields(6)
        if (!n++) print "const Partition partitions[] = {"
        if (length($1) > 8 || length($2) > 10 || length($3) > 17 || length($4) > 28 || length($5) > 7 || length($6) > 7) fail("too long for Partition: " $0)
        print "        { .prefix = \"" $1 "\", .name = " word($2) ", .domain = " word($3) ", .dual_stack = " word($4) ","
        print "          .fips = { [AWS_EC2] = " letters(word($5)) ", [AWS_STS] = " letters(word($6)) " } },"
}
# These are one text each, packed, that is read from its beginning: fixed cells, a name, a line end, one more cell, a line end.
function minor(s) { if (s !~ /^([1-9][0-9])?$/) fail("no minor version: " s); return s == "" ? "00" : s }
table == "kubelet-settings" {
        fields(4)
        ordered($1)
        if (split("string bool int float duration strings map gates quantities signals object list quantity", types, " ") != 13) fail("types")
        for (i = 1; i <= 13 && types[i] != $2; i++);
        if (i > 13) fail("no such type: " $2)
        if ($1 !~ /^[a-zA-Z0-9.\[\]]+$/ || $4 !~ /^[a-zA-Z0-9_.|:\/-]*$/) fail("not a key and limits: " $0)
        print substr("sbifdlmgqeoaz", i, 1) minor($3) $1 "\n" $4 | to
}
table == "kubelet-flags" {
        fields(5)
        ordered($1)
        if ($1 !~ /^[a-z0-9-]+$/ || $4 !~ /^[a-zA-Z0-9.]*$/) fail("not a flag and a key: " $0)
        print (yes($5) == "true" ? "d" : "-") minor($2) minor($3) $1 "\n" $4 | to
}
# A section is its rows and an empty line, in the order of their first rows.
function section(s) { if (!(s in place)) { place[s] = n_sections; title[n_sections++] = s }; return s }
function within(s, words,    i, n, list) { n = split(words, list, " "); for (i = 1; i <= n && list[i] != s; i++); if (i > n) fail("not one of " words ": " s); return i }
function versions(s) {
        if (s == "" || s ~ /^schema [23]$/) return s == "" ? " " : s == "schema 2" ? "s" : "t"
        if (s !~ /^(2\.[0-9]\+|<2\.[0-9])$/) fail("no versions: " s)
        return s ~ /^</ ? substr("ABCDEFGHIJ", substr(s, 4, 1) + 1, 1) : substr(s, 3, 1)
}
table == "containerd-settings" {
        fields(5)
        if ($2 !~ /^([A-Za-z0-9_.-]+|\+)$/ || $5 !~ /^[a-zA-Z0-9_.|:@!-]*$/) fail("not a key and limits: " $0)
        type = $2 == "+" ? "+" : substr("sbijhuwflUmLdDMtTan", within($3, "string bool int int32 uint16 uint32 uint64 float strings uint32s map lists duration interval durations table tables list none"), 1)
        key = $2
        if ($1 == "plugins" && !sub(/^io\.containerd\./, "", key)) fail("not a plugin: " key)
        row[section($1), ++rows_of[$1]] = type versions($4) key
        limits[$1, rows_of[$1]] = $5
        leads[$1, rows_of[$1]] = type ~ /[+tTa]/
        n++
}
function put_sections(    s, i, limit, needed) {
        if (n_sections > 94) fail("more sections than printable characters")
        for (s = 0; s < n_sections; s++) {
                for (i = 1; i <= rows_of[title[s]]; i++) {
                        limit = limits[title[s], i]
                        if (leads[title[s], i]) {
                                needed = sub(/!$/, "", limit) ? "!" : ""
                                if (!(limit in place)) fail("no such section: " limit)
                                limit = sprintf("%c", 33 + place[limit]) needed
                        }
                        print row[title[s], i] "\n" limit | to
                }
                print "" | to
        }
}
function stage(s,    i) { for (i = split("alpha alpha-on beta-off beta off on locked-off locked-on", stages, " "); i && stages[i] != s; i--); if (!i) fail("not a stage: " s); return substr("aAbBgGlL", i, 1) }
table == "feature-gates" {
        fields(5)
        ordered($1)
        if ($1 !~ /^[A-Za-z0-9]+$/) fail("not a gate: " $1)
        states = needs = ""
        for (i = 1; i <= split($4, words, " "); i++) {
                split(words[i], part, ":")
                if ((i == 1) != (part[2] == "")) fail("not a state: " words[i])
                states = states minor(i > 1 ? part[2] : $2 == "" ? 28 : $2) stage(part[1])
        }
        for (i = 1; i <= split($5, words, " "); i++) {
                if (split(words[i], part, /[:-]/) < 2) fail("not a need: " words[i])
                needs = needs (i > 1 ? "," : "") minor(part[2]) minor(part[3]) part[1]
        }
        print minor($2) minor($3) $1 "\n" states "\n" needs | to
}
END {
        if (failed) exit 1
        if (table == "ages") {
                for (i = 1; i < ARGC; i++) if (ARGV[i] ~ /csv$/ && !(ARGV[i] in dated)) print ARGV[i] ": no line \"# As of DAY\"" >"/dev/stderr"
                print ";"
                exit files > 0
        }
        gsub(/-/, "_", table)
        sub(/^gpus$/, "gpu_models", table)
        if (table == "eni_limits") printf "const char eni_families[][13] = {\n%s};\nconst EniShape eni_shapes[] = {\n%s};\nconst EniLimit eni_limits[] = {\n%s", families, shapes, rows
        if (!n) { print FILENAME ": no rows, or an unknown table" >"/dev/stderr"; exit 1 }
        if (table == "containerd_settings") put_sections()
        if (packed) {
                if (close(to)) { print FILENAME ": cannot be packed" >"/dev/stderr"; exit 1 }
                print "};\nconst size_t " name "_size = sizeof " name ";"
                exit
        }
        print "};\nconst size_t n_" table " = sizeof " table " / sizeof " table "[0];"
}
