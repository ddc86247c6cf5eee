/* SPDX-License-Identifier: Apache-2.0
 * status.json → rows → SVG, with one time scale. */
#include "report/status.h"

#include "base/time.h"

#define ROW   18                        /* pixels, as all lengths here */
#define CHART 900                       /* from the first start to the last end */
#define GLYPH_TENTHS 75                 /* tenths of a pixel: the widest character */
#define TOOK  (14 * ROW / 2)            /* for the duration after the last bar */
#define TICKS 10                        /* at most */
#define NAME_SHOWN 96U
#define TEXT_SHOWN 2000
#define SENTENCE_LINES 8U

typedef struct ChartRow {
        char *class, *name, *title, *took;
        bool critical;                  /* on the critical path */
        int64_t begin, end;             /* µs since the kernel started; begin 0: never began */
} ChartRow;

typedef struct Chart {
        ChartRow *rows; size_t n;
        int64_t begin, end;             /* of all */
        size_t longest;                 /* name, in characters */
        int width, y;                   /* of the picture; y: the end of what is drawn */
        Text t;
} Chart;

static void chart_done(Chart *c) {
        for (size_t i = 0; i < c->n; i++)
                FREE_ALL(c->rows[i].class, c->rows[i].name, c->rows[i].title, c->rows[i].took);
        free(c->rows);
        text_done(&c->t);
}

/* text: only its first line. */
static void add_row(Chart *c, bool is_phase, const char *name, const char *outcome, const char *text,
                    int64_t begin, int64_t end) {
        _free_ char *since = usec_text(begin), *took = usec_text(end - begin);
        Text title = {};
        text_add(&title, "%s: %s", name, outcome);
        if (begin > 0)
                text_add(&title, ", began at %s, took %s", since, took);
        text_add(&title, "%s%.*s", *text ? ": " : "", (int)strcspn(text, "\n"), text);
        *APPEND(c->rows, c->n) =
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

static void add_run(Chart *c, const Status *s, const StatusRun *run) {
        /* the wait for cloud-init is a row before the run */
        for (const StatusStep *step = s->path; step && step->id; step++)
                if (streq(step->run, run->phases) && !strchr(step->id, ':')) {
                        add_row(c, false, step->id, "wait", "", step->begin_usec, step->end_usec);
                        c->rows[c->n - 1].critical = true;
                }
        add_row(c, true, run->phases, run->verdict, "", run->begin_usec, run->end_usec);
        for (const StatusAction *a = run->actions; a && a->id; a++) {
                add_row(c, false, a->id, a->outcome, a->text, a->begin_usec, a->end_usec);
                c->rows[c->n - 1].critical = a->critical;
        }
}

/* From the start of the wait to registered, then to Ready; earlier waits of this boot may have seen
 * either. */
static void add_join(Chart *c, const StatusJoin *joined) {
        const struct { int64_t end; const char *name; } steps[] = {
                { joined->registered_usec, "await-registered" }, { joined->ready_usec, "await-ready" }
        };
        int64_t begin = joined->begin_usec;
        add_row(c, true, "join", joined->verdict, joined->text, begin, joined->end_usec);
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                if (steps[i].end == 0)
                        continue;
                add_row(c, false, steps[i].name, "done", "", MIN(begin, steps[i].end), steps[i].end);
                begin = steps[i].end;
        }
}

/* If not known, the latest known start. */
static int64_t now_of(const Chart *c, const Status *s) {
        int64_t now = MAX(s->now_usec, c->end);
        for (const StatusPhase *phase = s->phases; phase && phase->phase; phase++) {
                now = MAX(now, phase->begin_usec);
                for (const StatusStep *step = phase->steps; step && step->id; step++)
                        now = MAX(now, step->begin_usec);
        }
        return now;
}

/* One process may do several phases. */
static void add_running(Chart *c, const Status *s) {
        int64_t now = now_of(c, s), before = -1;
        for (const StatusPhase *phase = s->phases; phase && phase->phase; phase++) {
                if (!phase->steps || phase->begin_usec == before)
                        continue;
                before = phase->begin_usec;
                add_row(c, true, phase->phase, "running", "", before, now);
                for (const StatusStep *step = phase->steps; step->id; step++)
                        add_row(c, false, step->id, "running", "", step->begin_usec, now);
        }
}

static void add_all(Chart *c, const Status *s) {
        for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++) {
                const StatusRun *run = status_run(s, status_phases[i]);
                if (run)
                        add_run(c, s, run);
        }
        add_running(c, s);
        if (s->joined)
                add_join(c, s->joined);
}

/* XML cannot express control characters (escaped as \x1b) nor U+FFFE and U+FFFF (dropped): w3.org/TR/xml,
 * 2.2. */
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

/* The bytes of s that fit on one line, by words if possible. */
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
                i++;                    /* not inside a character */
        return last > 0 ? last : i;
}

static void add_line(Chart *c, const char *class, const char *s, size_t size) {
        c->y += ROW;
        text_add(&c->t, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, ROW, c->y);
        add_xml(&c->t, s, size, TEXT_SHOWN);
        text_add(&c->t, "</text>\n");
}

/* The first line of the text, folded. */
static void add_folded(Chart *c, const char *class, const char *s) {
        size_t columns = (size_t)((c->width - 2 * ROW) * 10 / GLYPH_TENTHS);
        for (size_t i = 0; *s && *s != '\n' && i < SENTENCE_LINES; i++) {
                size_t n = fold(s, columns);
                add_line(c, class, s, n);
                s += n + (s[n] == ' ');
        }
}

static void add_named(Text *t, const char *before, const char *value) {
        if (*value)
                text_add(t, "%s%s%s", t->size > 0 ? ", " : "", before, value);
}

/* Phases, machine, boot and plan. */
static void add_facts(Chart *c, const Status *s) {
        _cleanup_(text_done) Text where = {}, what = {}, phases = {};
        add_named(&where, "host ", s->node.host);
        add_named(&where, "", s->node.instance_id);
        add_named(&where, "", s->node.instance_type);
        add_named(&where, "", s->node.region);
        add_named(&where, "cluster ", s->node.cluster);
        add_named(&what, "booted ", s->booted_at);
        add_named(&what, "plan ", s->plan_id);
        add_named(&what, "nodestrap ", s->version);
        for (const StatusPhase *p = s->phases; p && p->phase; p++) {
                _free_ char *took = usec_text(p->end_usec - p->begin_usec);
                bool over = p->end_usec > 0;
                text_add(&phases, "%s%s %s%s%s%s", p > s->phases ? ", " : "", p->phase, p->verdict,
                         over ? " (" : "", over ? took : "", over ? ")" : "");
        }
        add_folded(c, "fact", phases.data ?: "");
        add_folded(c, "fact", where.data ?: "");
        add_folded(c, "fact", what.data ?: "");
}

static void add_legend(Chart *c) {
        static const struct { const char *class, *text; } keys[] = {
                { "done", "done" }, { "unchanged", "unchanged" }, { "failed", "failed" },
                { "running", "running" }, { "done wait", "waiting for something" },
                { "done critical", "kubelet waited for it (>)" }, { "none", "grey: skipped" },
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

static void add_head(Chart *c, const Status *s) {
        bool failed = *s->code && !streq(s->code, "OK");
        _free_ char *exit = xasprintf("%lld ", (long long)s->exit),
                    *title = xasprintf("nodestrap: %s%s%s%s%s%s%s", s->verdict,
                                       failed ? " (" : "", failed ? exit : "",
                                       failed ? s->code : "", failed ? ")" : "",
                                       failed && *s->step ? " at " : "", failed ? s->step : "");
        _free_ char *class = xasprintf("title %s", streq(s->verdict, "ok")       ? "good"
                                                   : streq(s->verdict, "failed") ? "bad"
                                                                                 : "open");
        add_folded(c, class, title);
        if (failed)
                add_folded(c, streq(s->verdict, "tainted") ? "open" : "bad", s->text);
        add_facts(c, s);
        add_legend(c);
}

/* ---- the chart ---- */

/* 1, 2 or 5 times a power of ten. */
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

char *status_draw(const Status *s) {
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
        add_all(&c, s);
        c.width = x_of(&c, c.end) + TOOK;
        c.y = ROW / 2;
        add_head(&c, s);
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
