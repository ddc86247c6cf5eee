/* SPDX-License-Identifier: Apache-2.0
 * The lists of needs and of checks. */
#include "doctor/checks.h"

DEFINE_STRING_TABLE(need_kind, NeedKind, "program", "unit", "module", "library", "directory", "file",
                    "feature", "sysctl", "swap")
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
