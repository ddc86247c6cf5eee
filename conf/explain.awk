# SPDX-License-Identifier: Apache-2.0
# What `nodestrap explain` prints: awk -f conf/explain.awk debian/nodestrap-codes.7 debian/NodeConfig.5. An entry is its term, a line for each
# paragraph, and an empty line. Terms are those of .TP, and no other macro stands in them than the few below.
function plain(s) {
        gsub(/\\f[BIRP]/, "", s); gsub(/\\&/, "", s); gsub(/\\\(aq/, "'", s); gsub(/\\\(dq/, "\"", s); gsub(/\\e/, "\034", s); gsub(/\\/, "", s); gsub(/\034/, "\\", s)
        return s
}
# ".BR nodestrap (8)": the words run together; those in quotes have blanks. Of .B and .I they do not.
function macro(s,    out) {
        alternating = s ~ /^\.[BIR][BIR] /
        sub(/^\.[BIR]+ /, "", s)
        if (!alternating) { gsub(/^"|"$/, "", s); return plain(s) }
        for (out = ""; s != ""; sub(/^ +/, "", s)) {
                if (match(s, /^"[^"]*"/)) { out = out substr(s, 2, RLENGTH - 2); s = substr(s, RLENGTH + 1) }
                else { match(s, /^[^ ]+/); out = out substr(s, 1, RLENGTH); s = substr(s, RLENGTH + 1) }
        }
        return plain(out)
}
function add(s) { paragraph = paragraph == "" ? s : paragraph " " s }
function end_paragraph() { if (term != "" && paragraph != "") print paragraph; paragraph = "" }
function end_entry() { end_paragraph(); if (term != "") print ""; term = "" }
/^\.\\"/ { next }
/^\.(TH|SH|SS)/ { end_entry(); next }
/^\.TP/ { end_entry(); getline; term = $0 ~ /^\./ ? macro($0) : plain($0); print term; next }
/^\.(br|PP|RS|RE|nf|fi|IP)/ { end_paragraph(); if (/^\.nf/) verbatim = 1; if (/^\.fi/) verbatim = 0; next }
/^\.(nh|na|ad|hy)/ { next }
/^\.[BIR]/ { add(macro($0)); if (verbatim) end_paragraph(); next }
/^\./ { print FILENAME ":" FNR ": no such macro here: " $0 >"/dev/stderr"; exit 1 }
{ add((verbatim ? "    " : "") plain($0)); if (verbatim) end_paragraph() }
END { end_entry() }
