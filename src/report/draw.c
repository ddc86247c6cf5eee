/* SPDX-License-Identifier: Apache-2.0
 * status.json → rows → SVG. One scale for all: where a boot spends its time is what the drawing is
 * for. */
#include "report/draw.h"

#include "base/json.h"
#include "base/str.h"
#include "base/time.h"
#include "report/critical.h"
#include "report/status.h"

#define ROW   18                        /* pixels, as all lengths here */
#define CHART 900                       /* from the first beginning to the last end */
#define GLYPH 8                         /* a character of the font, at most */
#define TICKS 10                        /* at most */
#define NAME_SHOWN 100U
#define TEXT_SHOWN 2000

typedef struct ChartRow {
        char *class, *name, *title;
        bool critical;                  /* kubelet's start waited for it longest */
        int64_t begin, end;             /* usec since the kernel started; begin 0: never began */
} ChartRow;

typedef struct Chart {
        ChartRow *rows; size_t n;
        int64_t begin, end;             /* of all */
        size_t longest;                 /* name, in characters */
} Chart;

static void chart_done(Chart *c) {
        for (size_t i = 0; i < c->n; i++) {
                free(c->rows[i].class);
                free(c->rows[i].name);
                free(c->rows[i].title);
        }
        free(c->rows);
}

/* Of a text only the first line, which says all that matters. */
static void add_row(Chart *c, bool is_phase, const char *name, const char *outcome, const char *text,
                    int64_t begin, int64_t end) {
        _cleanup_(freep) char *since = usec_text(begin), *took = usec_text(end - begin);
        Text title = {};
        text_add(&title, "%s: %s", name, outcome);
        if (begin > 0)
                text_add(&title, ", began at %s, took %s", since, took);
        text_add(&title, "%s%.*s", *text ? ": " : "", (int)strcspn(text, "\n"), text);
        c->rows = xrealloc(c->rows, c->n + 1, sizeof *c->rows);
        c->rows[c->n++] =
                (ChartRow){ .class = is_phase ? xstrdup("phase")
                                         : xasprintf("%s%s", outcome,
                                                     startswith(name, "await-") ? " wait" : ""),
                       .name = is_phase ? xasprintf("%s: %s", name, outcome) : xasprintf("  %s", name),
                       .title = text_take(&title),
                       .begin = begin,
                       .end = MAX(begin, end) };
        if (begin > 0)
                c->begin = c->begin > 0 ? MIN(c->begin, begin) : begin;
        c->end = MAX(c->end, MAX(begin, end));
        c->longest = MAX(c->longest, MIN(strlen(name) + 2, NAME_SHOWN));
}

/* ---- status.json → rows ---- */

/* cloud-init's part of it is a row of its own, before the run that waited. */
static void add_gap(Chart *c, const json_t *status, const char *phases) {
        json_t *step;
        size_t i;
        json_array_foreach(json_object_get(status, "criticalPath"), i, step) {
                if (!streq(json_get_text(step, "run"), phases) || strchr(json_get_text(step, "id"), ':'))
                        continue;
                add_row(c, false, json_get_text(step, "id"), "wait", "", status_number(step, "beginUsec"),
                        status_number(step, "endUsec"));
                c->rows[c->n - 1].critical = true;
        }
}

static void add_run(Chart *c, const json_t *status, const char *phases, const json_t *run) {
        json_t *action;
        size_t i;
        add_gap(c, status, phases);
        add_row(c, true, phases, json_get_text(run, "verdict"), "", status_number(run, "beginUsec"),
                status_number(run, "endUsec"));
        json_array_foreach(json_object_get(run, "actions"), i, action) {
                add_row(c, false, json_get_text(action, "id"), json_get_text(action, "outcome"),
                        json_get_text(action, "text"), status_number(action, "beginUsec"),
                        status_number(action, "endUsec"));
                c->rows[c->n - 1].critical = critical_has(status, phases, json_get_text(action, "id"));
        }
}

/* From the start of the wait until kubelet has registered the node, and from then until it is Ready; earlier
 * waits of this boot may have seen either. */
static void add_join(Chart *c, const json_t *joined) {
        static const char *const steps[][2] = { { "registeredUsec", "await-registered" },
                                                { "readyUsec", "await-ready" } };
        int64_t begin = status_number(joined, "beginUsec");
        add_row(c, true, "join", json_get_text(joined, "verdict"), json_get_text(joined, "text"), begin,
                status_number(joined, "endUsec"));
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                int64_t end = status_number(joined, steps[i][0]);
                if (end == 0)
                        continue;
                add_row(c, false, steps[i][1], "done", "", MIN(begin, end), end);
                begin = end;
        }
}

static void add_all(Chart *c, const json_t *status) {
        const json_t *joined = json_object_get(status, "joined");
        for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++) {
                const json_t *run = json_object_get(json_object_get(status, "runs"), status_phases[i]);
                if (run)
                        add_run(c, status, status_phases[i], run);
        }
        if (joined)
                add_join(c, joined);
}

/* ---- rows → SVG ---- */

/* As XML: what it has no way to say becomes \x1b. */
static void add_xml(Text *t, const char *s) {
        static const char *const names[] = {
                ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"
        };
        _cleanup_(text_done) Text shown = {};
        text_add_shown(&shown, s, strlen(s), TEXT_SHOWN, 0);
        for (const char *p = shown.data; p && *p; p++) {
                const char *name = (unsigned char)*p < ARRAY_SIZE(names) ? names[(unsigned char)*p] : NULL;
                text_add_bytes(t, name ?: p, name ? strlen(name) : 1);
        }
}

static int x_of(const Chart *c, int64_t usec) {
        return (int)c->longest * GLYPH + 2 * ROW +
               (int)((usec - c->begin) * CHART / MAX(c->end - c->begin, 1));
}

/* 1, 2 or 5 of a power of ten. */
static int64_t tick_of(int64_t span) {
        int64_t tick = USEC_PER_MSEC;
        for (unsigned i = 0; span / tick > TICKS; i++)
                tick = i % 3 == 1 ? tick / 2 * 5 : tick * 2;
        return tick;
}

static void add_axis(Text *t, const Chart *c, int height) {
        int64_t tick = tick_of(c->end - c->begin);
        for (int64_t usec = (c->begin + tick - 1) / tick * tick; usec <= c->end; usec += tick) {
                int x = x_of(c, usec);
                text_add(t, "<path class=\"tick\" d=\"M%d %d V%d\"/><text x=\"%d\" y=\"%d\">%.10g s</text>\n",
                         x, 2 * ROW, height - ROW / 2, x + 3, 3 * ROW - 5, (double)usec / USEC_PER_SEC);
        }
}

static void add_bar(Text *t, const Chart *c, size_t i) {
        const ChartRow *r = &c->rows[i];
        int y = (int)(i + 3) * ROW, x = x_of(c, r->begin);
        text_add(t, "<g class=\"%s", r->critical ? "critical " : "");
        add_xml(t, r->class);
        text_add(t, "\"><title>");
        add_xml(t, r->title);
        text_add(t, "</title><text x=\"%d\" y=\"%d\">", ROW, y + ROW - 5);
        add_xml(t, r->critical ? ">" : "");
        add_xml(t, r->name + (r->critical && *r->name));
        text_add(t, "</text>");
        if (r->begin > 0)
                text_add(t, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", x, y + 2,
                         MAX(x_of(c, r->end) - x, 2), ROW - 4);
        text_add(t, "</g>\n");
}

char *status_draw(const json_t *status) {
        static const char style[] = "text{font:12px monospace;white-space:pre}.tick{stroke:#ddd}.phase "
                                    "text{font-weight:bold}.phase rect{fill:#9fb3c8}"
                                    ".done rect{fill:#2e9d5b}.unchanged rect{fill:#9bbfa8}.failed "
                                    "rect{fill:#d0342c}.failed text{fill:#d0342c}"
                                    ".skipped text{fill:#888}.wait rect{fill-opacity:.5}"
                                    ".critical rect{stroke:#000;stroke-width:2}";
        _cleanup_(chart_done) Chart c = {};
        Text t = {};
        add_all(&c, status);
        int width = x_of(&c, c.end) + 4 * ROW, height = (int)(c.n + 4) * ROW;
        text_add(&t,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">\n<style>%s</style>\n"
                 "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"%d\">nodestrap ",
                 width, height, style, ROW, 2 * ROW - 5);
        add_xml(&t, json_get_text(status, "verdict"));
        text_add(&t, " ");
        add_xml(&t, json_get_text(status, "code"));
        text_add(&t, " (seconds since the kernel started)</text>\n");
        add_axis(&t, &c, height);
        for (size_t i = 0; i < c.n; i++)
                add_bar(&t, &c, i);
        text_add(&t, "</svg>\n");
        return text_take(&t);
}
