/* SPDX-License-Identifier: Apache-2.0
 * The lists of needs and of checks → a table for people, worst first, and JSON in the same order. Names
 * from an image are escaped for the terminal. */
#include "doctor/checks.h"

DEFINE_STRING_TABLE(need_kind, NeedKind, "program", "unit", "module", "library", "directory", "file",
                    "feature", "sysctl", "tuning", "swap", "nri")
DEFINE_STRING_TABLE(check_verdict, CheckVerdict, "ok", "warning", "failed", "unknown")

const Need *needs_find(const Needs *needs, NeedKind kind, const char *name) {
        return FIND(need, needs->items, needs->n, need->kind == kind && streq(need->name, name));
}

void needs_done(Needs *n) {
        for (size_t i = 0; i < n->n; i++) {
                FREE_ALL(n->items[i].name, n->items[i].step);
                strv_free(n->items[i].types);
        }
        free(n->items);
        *n = (Needs){};
}

Check *checks_add(Checks *checks, CheckVerdict verdict, const char *code, const char *subject,
                  const char *found) {
        Check *c = APPEND(checks->items, checks->n);
        *c = (Check){
                .verdict = verdict,
                .code = xstrdup(code),
                .subject = xstrdup(subject),
                .found = xstrdup_or_null(found),
        };
        return c;
}

Check *check_tell(Check *c, const Need *need, const char *format, ...) {
        RENEW(c->text, FORMATTED(format));
        if (!need)
                return c;
        RENEW(c->step, xstrdup_or_null(need->step));
        c->cause = c->verdict == CHECK_FAILED ? need->cause : CAUSE_NONE;
        strv_free(c->types);
        c->types = strv_copy(need->types);
        return c;
}

size_t checks_count(const Checks *checks, CheckVerdict verdict) {
        size_t n = 0;
        for (size_t i = 0; i < checks->n; i++)
                n += checks->items[i].verdict == verdict;
        return n;
}

void checks_done(Checks *c) {
        for (size_t i = 0; i < c->n; i++) {
                FREE_ALL(c->items[i].code, c->items[i].subject, c->items[i].found, c->items[i].text,
                         c->items[i].step);
                strv_free(c->items[i].types);
        }
        free(c->items);
        *c = (Checks){};
}

#define WIDTH     100U          /* columns of the table, as far as words allow */
#define INDENT    9U            /* of lines below a row: the column of the verdict */
#define CODE      18U /* its column, unless a code is longer, as those of planner warnings are */
#define SUBJECT   36U
#define FACT      12U           /* column of the values above the table */
#define SHOWN_MAX 200           /* bytes of a name from the image */
#define FACT_MAX  1000          /* bytes of a value above the table */
#define TEXT_MAX  2000          /* bytes of a sentence */

/* Within a verdict, checks keep order. */
static const CheckVerdict order[] = { CHECK_FAILED, CHECK_WARNING, CHECK_UNKNOWN, CHECK_OK };

static size_t column(const Text *t) {
        size_t n = 0;
        for (size_t i = t->size; i > 0 && t->data[i - 1] != '\n'; i--)
                n += ((unsigned char)t->data[i - 1] & 0xc0) != 0x80;    /* characters, of UTF-8 */
        return n;
}

/* A word that no longer fits begins a new line, with this indent. */
static void add_words(Text *t, const char *words, size_t indent) {
        for (const char *p = words; *p;) {
                size_t n = strcspn(p, " \n");
                if (n > 0 && column(t) > indent && column(t) + 1 + n > WIDTH)
                        text_add(t, "\n%*s", (int)indent, "");
                else if (n > 0 && column(t) > indent)
                        text_add(t, " ");
                text_add_shown(t, p, n, n, 0);
                p += n + (p[n] != 0);
        }
}

static void add_paragraph(Text *t, const char *words) {
        text_add(t, "%*s", (int)INDENT, "");
        add_words(t, words, INDENT);
        text_add(t, "\n");
}

static void add_some(Text *t, const char *words, size_t limit, size_t indent) {
        _free_ char *some = xstrndup(words, limit);
        add_words(t, some, indent);
        if (strlen(words) > limit)
                text_add(t, "...");
}

void facts_add(Text *t, const char *name, const char *value) {
        text_add(t, "%-*s", (int)FACT, name);
        add_some(t, value, FACT_MAX, FACT);
        text_add(t, "\n");
}

static void add_shown(Text *t, const char *s, size_t width) {
        size_t begin = column(t);
        text_add_shown(t, s, strlen(s), SHOWN_MAX, 0);
        while (column(t) < begin + width)
                text_add(t, " ");
}

char *types_text(char *const *types) {
        size_t n = strv_length(types);
        return n == 0   ? xstrdup("")
               : n == 1 ? xstrdup(types[0])
               : n == 2 ? xasprintf("%s and %s", types[0], types[1])
                        : xasprintf("%s and %zu more", types[0], n - 1);
}

static void add_row(Text *t, const Check *c, size_t width) {
        add_shown(t, check_verdict_to_string(c->verdict), INDENT);
        add_shown(t, c->code, width);
        text_add(t, " ");
        add_shown(t, c->subject, SUBJECT);
        if (!c->found || column(t) + 1 + strlen(c->found) > WIDTH)
                while (t->size > 0 && t->data[t->size - 1] == ' ')
                        t->data[--t->size] = 0;
        if (c->found)
                add_some(t, c->found, SHOWN_MAX, INDENT);
        text_add(t, "\n");
}

/* The step that needs it, and how a boot without it fails. */
static void add_reason(Text *t, const Check *c) {
        _cleanup_(text_done) Text line = {};
        _free_ char *types = types_text(c->types);
        if (c->step)
                text_add(&line, "wanted by %s", c->step);
        if (*types)
                text_add(&line, "%s %s", c->step ? " of" : "concerns", types);
        if (c->cause != CAUSE_NONE)
                text_add(&line, "%sa boot ends with %s", line.size > 0 ? "; " : "", cause_word(c->cause));
        if (line.size > 0)
                add_paragraph(t, line.data);
}

/* "ok  program  cp, mdadm, …" */
static void add_well(Text *t, const Checks *checks, size_t width) {
        for (size_t i = 0; i < checks->n; i++) {
                const char *code = checks->items[i].code;
                if (checks->items[i].verdict != CHECK_OK ||
                    ANY(c, checks->items, i, c->verdict == CHECK_OK && streq(c->code, checks->items[i].code)))
                        continue;
                _cleanup_(text_done) Text names = {};
                for (size_t k = i; k < checks->n; k++)
                        if (checks->items[k].verdict == CHECK_OK && streq(checks->items[k].code, code))
                                text_add(&names, "%s%s", names.size > 0 ? ", " : "",
                                         checks->items[k].subject);
                add_shown(t, "ok", INDENT);
                add_shown(t, code, width);
                add_words(t, names.data, INDENT);
                text_add(t, "\n");
        }
}

char *checks_to_text(const Checks *checks, bool all) {
        Text t = {};
        size_t width = CODE;
        for (size_t i = 0; i < checks->n; i++)
                width = MAX(width, strlen(checks->items[i].code));
        for (size_t o = 0; o < ARRAY_SIZE(order); o++) {
                if (order[o] == CHECK_OK && !all)
                        add_well(&t, checks, width);
                for (size_t i = 0; i < checks->n && (all || order[o] != CHECK_OK); i++) {
                        const Check *c = &checks->items[i];
                        if (c->verdict != order[o])
                                continue;
                        add_row(&t, c, width);
                        if (c->text && *c->text)
                                add_paragraph(&t, c->text);
                        if (c->verdict != CHECK_OK)
                                add_reason(&t, c);
                }
        }
        size_t warnings = checks_count(checks, CHECK_WARNING);
        text_add(&t, "\n%zu checks: %zu failed, %zu warning%s, %zu unknown, %zu ok\n", checks->n,
                 checks_count(checks, CHECK_FAILED), warnings, warnings == 1 ? "" : "s",
                 checks_count(checks, CHECK_UNKNOWN), checks_count(checks, CHECK_OK));
        return text_take(&t);
}

static json_t *shown(const char *text) {
        _cleanup_(text_done) Text t = {};
        text_add_shown(&t, text, strlen(text), TEXT_MAX, 0);
        return json_string(t.data ?: "");
}

void json_set_shown(json_t *object, const char *key, const char *text) {
        if (text && *text)
                json_object_set_new(object, key, shown(text));
}

json_t *json_list_shown(char *const *texts) {
        json_t *list = json_array();
        for (char *const *text = texts; text && *text; text++)
                json_array_append_new(list, shown(*text));
        return list;
}

static json_t *check_to_json(const Check *c) {
        json_t *j = json_pack("{ss ss}", "verdict", check_verdict_to_string(c->verdict), "code", c->code);
        json_set_shown(j, "subject", c->subject);
        json_set_shown(j, "found", c->found);
        json_set_shown(j, "text", c->text);
        json_set_text(j, "step", c->step);
        if (c->cause != CAUSE_NONE)
                json_set_text(j, "cause", cause_word(c->cause));
        json_set_list(j, "types", c->types);
        return j;
}

json_t *checks_to_json(const Checks *checks) {
        json_t *all = json_array();
        for (size_t o = 0; o < ARRAY_SIZE(order); o++)
                for (size_t i = 0; i < checks->n; i++)
                        if (checks->items[i].verdict == order[o])
                                json_array_append_new(all, check_to_json(&checks->items[i]));
        return all;
}
