/* SPDX-License-Identifier: Apache-2.0
 * Diagnostics → FINDINGS of nodestrap-config(1), and SARIF as forges need it: a rule for each result, a
 * file and a line for each place
 * (https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support). Foreign
 * names and keys are escaped as on the console, since JSON may be printed on a terminal. */
#include "report/diag-json.h"

#include "base/json.h"
#include "base/str.h"
#include "report/explain.h"

#include <ctype.h>

/* With --strict a warning becomes an error but keeps its word, which says more than ESTRICT. */
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

#define SARIF_SCHEMA \
        "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

/* A path as a reference (RFC 3986, 4.2). Relative paths stay relative to the working directory, in a
 * pipeline the top of the clone. */
static json_t *uri_of(const char *path) {
        _cleanup_(text_done) Text t = {};
        while (startswith(path, "./"))
                path += 2 + strspn(path + 2, "/");
        if (*path == '/')
                text_add(&t, "file://");
        for (const unsigned char *p = (const unsigned char *)path; *p; p++)
                if (*p < 0x80 && (isalnum(*p) || strchr("/-._~", *p)))
                        text_add_bytes(&t, p, 1);
                else
                        text_add(&t, "%%%02X", *p);
        return json_string(t.data ?: ".");
}

static json_t *location_of(const Diagnostic *i) {
        json_t *region = json_pack("{si}", "startLine", (int)MAX(i->line, 1u));
        json_t *location = json_pack("{s{s{so} so}}", "physicalLocation", "artifactLocation", "uri",
                                     uri_of(i->source ?: "nodestrap"), "region", region);
        if (i->line > 0)
                put_number(region, "startColumn", i->column);
        if (i->path) {
                json_t *logical = json_object();
                put_text(logical, "fullyQualifiedName", i->path);
                json_object_set_new(location, "logicalLocations", json_pack("[o]", logical));
        }
        return location;
}

/* Returns the index of the rule; adds it, with its entry of the manual, if it is missing. */
static size_t rule_of(json_t *rules, const char *code, const char *manual) {
        const json_t *rule;
        size_t n;
        json_array_foreach(rules, n, rule) {
                if (streq(json_get_text(rule, "id"), code))
                        return n;
        }
        _free_ char *entry = explain_find(manual, code);
        if (!entry || utf8_fault(entry, strlen(entry)))
                RENEW(entry, xasprintf("\n%s: see nodestrap-codes(7).", code));
        const char *all = entry + strcspn(entry, "\n");
        all += *all == '\n';
        _free_ char *first = xstrndup(all, strcspn(all, "\n"));
        json_array_append_new(rules, json_pack("{ss s{ss} s{ss} s{ss}}", "id", code, "shortDescription",
                                               "text", first, "fullDescription", "text", all, "help", "text",
                                               all));
        return n;
}

/* Viewers show only the message, so it includes the key. */
static json_t *result_of(const Diagnostic *i, json_t *rules, const char *manual) {
        _cleanup_(json_decrefp) json_t *finding = finding_to_json(i), *message = json_object(),
                                       *properties = json_object();
        _free_ char *text = xasprintf("%s%s%s", i->path ?: "", i->path ? ": " : "", i->text);
        const char *code = json_get_text(finding, "code");
        put_text(message, "text", text);
        put_number(properties, "part", i->part);
        put_text(properties, "suggestion", i->suggestion);
        return json_pack("{ss si ss sO s[o] sO*}", "ruleId", code, "ruleIndex",
                         (int)rule_of(rules, code, manual), "level", i->warning ? "warning" : "error",
                         "message", message, "locations", location_of(i), "properties",
                         json_object_size(properties) > 0 ? properties : NULL);
}

json_t *findings_to_sarif(const Diag *diag, ExitCode code, const char *manual) {
        json_t *rules = json_array(), *results = json_array();
        /* false: the check could not run */
        bool looked = code == EXIT_DONE || code == EXIT_CONFIG_INVALID || code == EXIT_NO_CONFIG;
        for (size_t i = 0; i < diag->n; i++)
                json_array_append_new(results, result_of(&diag->items[i], rules, manual));
        return json_pack("{ss ss s[{s{s{ss ss so}} s[{sb si}] ss so}]}", "$schema", SARIF_SCHEMA, "version",
                         "2.1.0", "runs", "tool", "driver", "name", "nodestrap", "version", VERSION, "rules",
                         rules, "invocations", "executionSuccessful", looked, "exitCode", code,
                         "columnKind", "unicodeCodePoints", "results", results);
}
