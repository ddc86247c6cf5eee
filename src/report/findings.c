/* SPDX-License-Identifier: Apache-2.0
 * Diagnostics → the findings of nodestrap(8), "Findings for machines". What others wrote (names of files,
 * keys) is shown as it is on the console: what is no UTF-8, and what could garble a terminal that the JSON
 * is printed on by its reader, as \x1b. */
#include "report/findings.h"

#include "base/str.h"

/* A warning that --strict has made an error keeps its own word, which says more than ESTRICT. */
const char *finding_code(const Diagnostic *item) {
        return item->code ?: cause_word(item->cause);
}

static void put_text(json_t *object, const char *key, const char *text) {
        _cleanup_(text_done) Text t = {};
        if (!text)
                return;
        text_add_shown(&t, text, strlen(text), SIZE_MAX, 0);
        json_object_set_new(object, key, json_string(t.data ?: ""));
}

static void put_number(json_t *object, const char *key, unsigned n) {
        if (n > 0)
                json_object_set_new(object, key, json_integer(n));
}

static json_t *finding_to_json(const Diagnostic *i) {
        json_t *finding = json_pack("{s:s}", "severity", i->warning ? "warning" : "error");
        put_text(finding, "code", finding_code(i));
        if (!i->warning)
                put_number(finding, "exit", cause_exit_code(i->cause));
        put_text(finding, "source", i->source);
        put_number(finding, "part", i->part);
        put_number(finding, "line", i->line);
        put_number(finding, "column", i->line > 0 ? i->column : 0);
        put_text(finding, "path", i->path);
        put_text(finding, "message", i->text);
        put_text(finding, "suggestion", i->suggestion);
        return finding;
}

json_t *findings_to_json(const Diag *diag) {
        json_t *findings = json_array();
        for (size_t i = 0; i < diag->n; i++)
                json_array_append_new(findings, finding_to_json(&diag->items[i]));
        return findings;
}
