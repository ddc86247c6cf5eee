/* SPDX-License-Identifier: Apache-2.0
 * status.json → rows → SVG. One scale for all: where a boot spends its time is what the drawing is
 * for. */
#include "report/status-svg.h"

#include "base/json.h"
#include "base/str.h"
#include "base/time.h"
#include "report/critical.h"
#include "report/status.h"

#define ROW   18                        /* pixels, as all lengths here */
#define CHART 900                       /* from the first beginning to the last end */
#define GLYPH_TENTHS 75                 /* tenths of a pixel: a character of the font, at most */
#define TOOK  (14 * ROW / 2)            /* for the time behind the last bar */
#define TICKS 10                        /* at most */
#define NAME_SHOWN 96U
#define TEXT_SHOWN 2000
#define SENTENCE_LINES 8U

typedef struct ChartRow {
        char *class, *name, *title, *took;
        bool critical;                  /* kubelet's start waited for it longest */
        int64_t begin, end;             /* usec since the kernel started; begin 0: never began */
} ChartRow;

typedef struct Chart {
        ChartRow *rows; size_t n;
        int64_t begin, end;             /* of all */
        size_t longest;                 /* name, in characters */
        int width, y;                   /* of the picture; down to where it is drawn already */
        Text t;
} Chart;

static void chart_done(Chart *c) {
        for (size_t i = 0; i < c->n; i++) {
                free(c->rows[i].class);
                free(c->rows[i].name);
                free(c->rows[i].title);
                free(c->rows[i].took);
        }
        free(c->rows);
        text_done(&c->t);
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
                (ChartRow){ .class = is_phase ? xstrdup(streq(outcome, "failed") ? "phase failed" : "phase")
                                         : xasprintf("%s%s", outcome,
                                                     startswith(name, "await-") ? " wait" : ""),
                       .name = is_phase ? xasprintf("%s: %s", name, outcome) : xasprintf("  %s", name),
                       .title = text_take(&title),
                       .took = TAKE_PTR(took),
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

/* Where nobody said when that is, by the latest that is known to have begun. */
static int64_t now_of(const Chart *c, const json_t *status) {
        int64_t now = MAX(status_number(status, "nowUsec"), c->end);
        const json_t *entry, *step;
        size_t i, k;
        json_array_foreach(json_object_get(status, "phases"), i, entry) {
                now = MAX(now, status_number(entry, "beginUsec"));
                json_array_foreach(json_object_get(entry, "steps"), k, step)
                        now = MAX(now, status_number(step, "beginUsec"));
        }
        return now;
}

/* What is at work has no end yet. One process may do several phases. */
static void add_running(Chart *c, const json_t *status) {
        int64_t now = now_of(c, status);
        const json_t *before = NULL, *entry, *step;
        size_t i, k;
        json_array_foreach(json_object_get(status, "phases"), i, entry) {
                const json_t *steps = json_object_get(entry, "steps");
                if (!json_is_array(steps) || steps == before)
                        continue;
                before = steps;
                add_row(c, true, json_get_text(entry, "phase"), "running", "",
                        status_number(entry, "beginUsec"), now);
                json_array_foreach(steps, k, step)
                        add_row(c, false, json_get_text(step, "id"), "running", "",
                                status_number(step, "beginUsec"), now);
        }
}

static void add_all(Chart *c, const json_t *status) {
        const json_t *joined = json_object_get(status, "joined");
        for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++) {
                const json_t *run = json_object_get(json_object_get(status, "runs"), status_phases[i]);
                if (run)
                        add_run(c, status, status_phases[i], run);
        }
        add_running(c, status);
        if (joined)
                add_join(c, joined);
}

/* ---- rows → SVG ---- */

/* As XML: what it has no way to say becomes \x1b, and of U+FFFE and U+FFFF (w3.org/TR/xml, 2.2) nothing. */
static void add_xml(Text *t, const char *s, size_t size, size_t limit) {
        static const char *const names[] = {
                ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"
        };
        _cleanup_(text_done) Text shown = {};
        text_add_shown(&shown, s, size, limit, 0);
        for (const char *p = shown.data; p && *p; p++) {
                const char *name = (unsigned char)*p < ARRAY_SIZE(names) ? names[(unsigned char)*p] : NULL;
                if (startswith(p, "\xef\xbf\xbe") || startswith(p, "\xef\xbf\xbf")) {
                        p += 2;
                        continue;
                }
                text_add_bytes(t, name ?: p, name ? strlen(name) : 1);
        }
}

static int glyphs(size_t n) {
        return (int)(n * GLYPH_TENTHS + 9) / 10;
}

static int x_of(const Chart *c, int64_t usec) {
        return glyphs(c->longest) + 2 * ROW + (int)((usec - c->begin) * CHART / MAX(c->end - c->begin, 1));
}

/* ---- above the chart ---- */

/* How many bytes of s stand on one line: whole words, where they are not longer than it. */
static size_t fold(const char *s, size_t columns) {
        size_t last = 0, i = 0, shown = 0;
        while (s[i] && s[i] != '\n' && shown < columns) {
                if (s[i] == ' ')
                        last = i;
                shown += ((unsigned char)s[i++] & 0xc0) != 0x80;
        }
        if (!s[i] || s[i] == '\n' || s[i] == ' ')
                return i;
        while (last == 0 && ((unsigned char)s[i] & 0xc0) == 0x80)
                i++;                    /* not within a character */
        return last > 0 ? last : i;
}

static void add_line(Chart *c, const char *class, const char *s, size_t size) {
        c->y += ROW;
        text_add(&c->t, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, ROW, c->y);
        add_xml(&c->t, s, size, TEXT_SHOWN);
        text_add(&c->t, "</text>\n");
}

/* Of a text with several lines the first, on as many as it takes. */
static void add_folded(Chart *c, const char *class, const char *s) {
        size_t columns = (size_t)((c->width - 2 * ROW) * 10 / GLYPH_TENTHS);
        for (size_t i = 0; *s && *s != '\n' && i < SENTENCE_LINES; i++) {
                size_t n = fold(s, columns);
                add_line(c, class, s, n);
                s += n + (s[n] == ' ');
        }
}

static const char *color_of(const char *verdict) {
        return streq(verdict, "ok") ? "good" : streq(verdict, "failed") ? "bad" : "open";
}

static void add_named(Text *t, const json_t *object, const char *key, const char *before) {
        const char *value = json_get_text(object, key);
        if (*value)
                text_add(t, "%s%s%s", t->size > 0 ? ", " : "", before, value);
}

/* Which machine, boot and plan it is of, and how each phase ended. */
static void add_facts(Chart *c, const json_t *status) {
        const json_t *node = json_object_get(status, "node"), *entry;
        _cleanup_(text_done) Text where = {}, what = {}, phases = {};
        size_t i;
        add_named(&where, node, "host", "host ");
        add_named(&where, node, "instanceId", "");
        add_named(&where, node, "instanceType", "");
        add_named(&where, node, "region", "");
        add_named(&where, node, "cluster", "cluster ");
        add_named(&what, status, "bootedAt", "booted ");
        add_named(&what, status, "planId", "plan ");
        add_named(&what, status, "version", "nodestrap ");
        json_array_foreach(json_object_get(status, "phases"), i, entry) {
                int64_t begin = status_number(entry, "beginUsec"), end = status_number(entry, "endUsec");
                _cleanup_(freep) char *took = usec_text(end - begin);
                text_add(&phases, "%s%s %s%s%s%s", i > 0 ? ", " : "", json_get_text(entry, "phase"),
                         json_get_text(entry, "verdict"), end > 0 ? " (" : "", end > 0 ? took : "",
                         end > 0 ? ")" : "");
        }
        add_folded(c, "fact", phases.data ?: "");
        add_folded(c, "fact", where.data ?: "");
        add_folded(c, "fact", what.data ?: "");
}

static void add_legend(Chart *c) {
        static const struct { const char *class, *text; } keys[] = {
                { "done", "done" }, { "unchanged", "unchanged" }, { "failed", "failed" },
                { "running", "running" }, { "done wait", "waiting for something" },
                { "done critical", "kubelet's start waited for it (>)" }, { "none", "grey: skipped" },
        };
        int x = ROW;
        c->y += ROW + 4;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                text_add(&c->t,
                         "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
                         "<text class=\"fact\" x=\"%d\" y=\"%d\">",
                         keys[i].class, x, c->y - ROW + 6, ROW, ROW - 6, x + ROW + 5, c->y);
                add_xml(&c->t, keys[i].text, strlen(keys[i].text), TEXT_SHOWN);
                text_add(&c->t, "</text>\n");
                x += 3 * ROW + glyphs(strlen(keys[i].text));
        }
}

static void add_head(Chart *c, const json_t *status) {
        const char *verdict = json_get_text(status, "verdict"), *code = json_get_text(status, "code"),
                   *step = json_get_text(status, "step");
        bool failed = *code && !streq(code, "OK");
        _cleanup_(freep) char *exit = xasprintf("%lld ", (long long)status_number(status, "exit")),
                              *title = xasprintf("nodestrap: %s%s%s%s%s%s%s", verdict, failed ? " (" : "",
                                                 failed ? exit : "", failed ? code : "", failed ? ")" : "",
                                                 failed && *step ? " at " : "", failed ? step : "");
        _cleanup_(freep) char *class = xasprintf("title %s", color_of(verdict));
        add_folded(c, class, title);
        if (failed)
                add_folded(c, streq(verdict, "tainted") ? "open" : "bad", json_get_text(status, "text"));
        add_facts(c, status);
        add_legend(c);
}

/* ---- the chart ---- */

/* 1, 2 or 5 of a power of ten. */
static int64_t tick_of(int64_t span) {
        int64_t tick = USEC_PER_MSEC;
        for (unsigned i = 0; span / tick > TICKS; i++)
                tick = i % 3 == 1 ? tick / 2 * 5 : tick * 2;
        return tick;
}

static void add_axis(Chart *c) {
        int64_t tick = tick_of(c->end - c->begin);
        int bottom = c->y + (int)(c->n + 2) * ROW;
        c->y += 2 * ROW;
        text_add(&c->t, "<text class=\"fact\" x=\"%d\" y=\"%d\">since the kernel started</text>\n", ROW,
                 c->y - 5);
        for (int64_t usec = (c->begin + tick - 1) / tick * tick; usec <= c->end; usec += tick) {
                int x = x_of(c, usec);
                text_add(&c->t,
                         "<path class=\"tick\" d=\"M%d %d V%d\"/><text x=\"%d\" y=\"%d\">%.10g s</text>\n",
                         x, c->y - ROW, bottom, x + 3, c->y - 5, (double)usec / USEC_PER_SEC);
        }
}

static void add_bar(Chart *c, const ChartRow *r) {
        Text *t = &c->t;
        int y = c->y, x = x_of(c, r->begin), width = MAX(x_of(c, r->end) - x, 2);
        const char *name = r->name + (r->critical && *r->name);
        text_add(t, "<g class=\"%s", r->critical ? "critical " : "");
        add_xml(t, r->class, strlen(r->class), TEXT_SHOWN);
        text_add(t, "\"><title>");
        add_xml(t, r->title, strlen(r->title), TEXT_SHOWN);
        text_add(t, "</title><text x=\"%d\" y=\"%d\">%s", ROW, y + ROW - 5, r->critical ? "&gt;" : "");
        add_xml(t, name, strlen(name), NAME_SHOWN);
        text_add(t, "</text>");
        if (r->begin > 0)
                text_add(t,
                         "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
                         "<text class=\"took\" x=\"%d\" y=\"%d\">%s</text>",
                         x, y + 2, width, ROW - 4, x + width + 4, y + ROW - 5, r->took);
        text_add(t, "</g>\n");
        c->y += ROW;
}

char *status_draw(const json_t *status) {
        static const char style[] =
                "text{font:12px monospace;white-space:pre}.title{font-size:16px;font-weight:bold}"
                ".fact,.took{fill:#555}.good{fill:#1e7b43}.bad{fill:#d0342c}.open{fill:#a65f00}"
                ".tick{stroke:#ddd}.phase text{font-weight:bold}.phase rect{fill:#9fb3c8}"
                ".done rect,rect.done{fill:#2e9d5b}.unchanged rect,rect.unchanged{fill:#9bbfa8}"
                ".failed rect,rect.failed{fill:#d0342c}.failed text{fill:#d0342c}"
                ".running rect,rect.running{fill:#e0a030}.skipped text{fill:#888}"
                ".wait rect,rect.wait{fill-opacity:.5}.failed.wait rect{fill-opacity:1}.none{fill:none}"
                ".critical rect,rect.critical{stroke:#000;stroke-width:2}";
        _cleanup_(chart_done) Chart c = {};
        Text t = {};
        add_all(&c, status);
        c.width = x_of(&c, c.end) + TOOK;
        c.y = ROW / 2;
        add_head(&c, status);
        add_axis(&c);
        for (size_t i = 0; i < c.n; i++)
                add_bar(&c, &c.rows[i]);
        int height = c.y + ROW;
        text_add(&t,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                 "viewBox=\"0 0 %d %d\">\n<style>%s</style>\n"
                 "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                 c.width, height, c.width, height, style);
        text_add_bytes(&t, c.t.data, c.t.size);
        text_add(&t, "</svg>\n");
        return text_take(&t);
}
