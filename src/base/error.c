/* SPDX-License-Identifier: Apache-2.0
 * The table of causes (explained in nodestrap-codes(7)) and the list of diagnostics. */
#include "base/error.h"

#include "base/str.h"

#include <errno.h>

#define CAUSE_ROW(name, word, exit_code) [CAUSE_##name] = { word, EXIT_##exit_code },
static const struct { char word[16]; ExitCode exit_code; } causes[_CAUSE_MAX] = { CAUSES(CAUSE_ROW) };

const char *cause_word(Cause cause) {
        return cause >= 0 && cause < _CAUSE_MAX ? causes[cause].word : "EINTERNAL";
}

ExitCode cause_exit_code(Cause cause) {
        return cause >= 0 && cause < _CAUSE_MAX ? causes[cause].exit_code : EXIT_INTERNAL;
}

#define PASSING_ROW(name, when) [CAUSE_##name] = when,
static const enum { NEVER, SILENT, ALWAYS } passing[_CAUSE_MAX] = { PASSING_CAUSES(PASSING_ROW) };

bool cause_passes(Cause cause, int error) {
        return cause >= 0 && cause < _CAUSE_MAX &&
               (passing[cause] == ALWAYS ||
                (passing[cause] == SILENT && (error == -ETIMEDOUT || error == -EHOSTUNREACH)));
}

#define HARDWARE_ROW(name, when) [CAUSE_##name] = HARDWARE_##when,
static const enum { HARDWARE_NEVER, HARDWARE_STEP, HARDWARE_ALWAYS } hardware[_CAUSE_MAX] = {
        HARDWARE_CAUSES(HARDWARE_ROW)
};

bool cause_is_hardware(Cause cause, bool step) {
        return cause >= 0 && cause < _CAUSE_MAX && hardware[cause] + step > HARDWARE_STEP;
}

void diag_done(Diag *d) {
        for (Diagnostic *i = d->items; i < d->items + d->n; i++)
                FREE_ALL(i->code, i->where, i->path, i->text, i->source, i->suggestion, i->excerpt);
        free(d->items);
        *d = (Diag){};
}

char *position_format(const Position *at, bool column) {
        Text t = {};
        if (!at->source)
                return NULL;
        text_add(&t, "%s", at->source);
        if (at->part > 0)
                text_add(&t, ", part %u", at->part);
        if (at->line > 0)
                text_add(&t, ", line %u", at->line);
        if (column && at->line > 0 && at->column > 0)
                text_add(&t, ", column %u", at->column);
        return text_take(&t);
}

void diagnostic_locate(Diagnostic *i, const Position *at) {
        if (i->where || !at->source)
                return;
        i->where = position_format(at, i->cause == CAUSE_SYNTAX);
        i->source = xstrdup(at->source);
        i->part = at->part;
        i->line = at->line;
        i->column = at->column;
}

static Diagnostic *diag_add(Diag *d, Cause cause, const Position *at, const char *path) {
        Diagnostic *i = APPEND(d->items, d->n);
        *i = (Diagnostic){ .cause = cause, .path = xstrdup_or_null(path) };
        if (at)
                diagnostic_locate(i, at);
        return i;
}

static Diagnostic *add_warning(Diag *d, const char *code, const Position *at, const char *path) {
        Diagnostic *i = diag_add(d, CAUSE_NONE, at, path);
        i->warning = true;
        i->code = xstrdup(code);
        return i;
}

int diag_error(Diag *d, int r, Cause cause, const char *format, ...) {
        diag_add(d, cause, NULL, NULL)->text = FORMATTED(format);
        return r;
}

int diag_error_at(Diag *d, int r, Cause cause, const Position *at, const char *path, const char *format,
                  ...) {
        diag_add(d, cause, at, path)->text = FORMATTED(format);
        return r;
}

int diag_error_in(Diag *d, int r, Cause cause, const char *source, const char *format, ...) {
        diag_add(d, cause, &(Position){ .source = source }, NULL)->text = FORMATTED(format);
        return r;
}

void diag_warn(Diag *d, const char *code, const char *format, ...) {
        add_warning(d, code, NULL, NULL)->text = FORMATTED(format);
}

void diag_warn_at(Diag *d, const char *code, const Position *at, const char *path, const char *format, ...) {
        add_warning(d, code, at, path)->text = FORMATTED(format);
}

void diag_foretell(Diag *d, Cause cause) {
        d->items[d->n - 1].cause = cause;
}

int diag_judge(Diag *d) {
        int r = 0;
        for (size_t i = 0; i < d->n; i++)
                if (d->items[i].warning && d->items[i].cause != CAUSE_NONE) {
                        d->items[i].warning = false;
                        r = -EINVAL;
                }
        return r;
}

void diag_suggest(Diag *d, const char *format, ...) {
        Diagnostic *i = &d->items[d->n - 1];
        RENEW(i->suggestion, FORMATTED(format));
        RENEW(i->text, xasprintf("%s; did you mean %s?", i->text, i->suggestion));
}

void diag_instead(Diag *d, const char *format, ...) {
        Diagnostic *i = &d->items[d->n - 1];
        RENEW(i->suggestion, FORMATTED(format));
        RENEW(i->text, xasprintf("%s; set %s instead", i->text, i->suggestion));
}

void diag_suggest_name(Diag *d, const char *before, const char *name) {
        if (name)
                diag_suggest(d, "%s%s", before, name);
}

typedef struct Placed { Diagnostic item; size_t at; } Placed;   /* its old index */

static int by_place(const void *a, const void *b) {
        const Placed *x = a, *y = b;
        uint64_t i = (uint64_t)x->item.line << 32 | x->item.column,
                 j = (uint64_t)y->item.line << 32 | y->item.column;
        int r = strcmp(x->item.source ?: "", y->item.source ?: "") ?: (i > j) - (i < j);
        return r ?: (x->at > y->at) - (x->at < y->at);
}

void diag_sort(Diag *d) {
        _free_ Placed *all = xcalloc(d->n, sizeof *all);
        for (size_t i = 0; i < d->n; i++)
                all[i] = (Placed){ d->items[i], i };
        qsort(all, d->n, sizeof *all, by_place);
        for (size_t i = 0; i < d->n; i++)
                d->items[i] = all[i].item;
}

void diag_move(Diag *to, Diag *from) {
        for (size_t i = 0; i < from->n; i++)
                *APPEND(to->items, to->n) = from->items[i];
        free(from->items);
        *from = (Diag){};
}

const Diagnostic *diag_first_error(const Diag *d) {
        return FIND(i, d->items, d->n, !i->warning);
}

size_t diag_count(const Diag *d, bool warnings) {
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++)
                n += d->items[i].warning == warnings;
        return n;
}

char *diagnostic_format(const Diagnostic *i) {
        const char *const parts[] = { i->where, i->path, i->code, i->text };
        Text t = {};
        for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
                if (parts[k]) {
                        text_add(&t, "%s", t.size > 0 ? ": " : "");
                        text_add_shown(&t, parts[k], strlen(parts[k]), SIZE_MAX, 0);
                }
        return text_take(&t);
}
