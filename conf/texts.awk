# SPDX-License-Identifier: Apache-2.0
# Files → a table in C, for the static program (src/base/portable.h): awk -f conf/texts.awk PATH=FILE..., PATH being where the package has it.
function quoted(s) { gsub(/[\\"]/, "\\\\&", s); return "\"" s "\\n\"" }
BEGIN {
        print "#include \"base/portable.h\"\nconst PortableText portable_texts[] = {"
        for (i = 1; i < ARGC; i++) {
                at = index(ARGV[i], "="); file = substr(ARGV[i], at + 1)
                print "{ \"" substr(ARGV[i], 1, at - 1) "\","
                while ((r = (getline line < file)) > 0) print quoted(line)
                if (r < 0) { print file ": cannot be read" >"/dev/stderr"; exit 1 }
                print "},"
        }
        print "{ \"\", \"\" } };"
}
