/* SPDX-License-Identifier: Apache-2.0
 * status.json → `nodestrap status`: eight lines with verdict, cause, advice, node and phases. --long has
 * everything, then a timeline of each process, one line for each action: "start duration outcome | === |
 * id". A terminal folds lines at its width and colours verdicts. */
#include "report/status.h"

#include "apply/apply.h"
#include "base/json.h"
#include "base/time.h"
#include "report/explain.h"
#include "report/join.h"

#include <limits.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define BAR 24
#define NARROW 100                      /* columns that a line with a bar needs */
#define INSTANT USEC_PER_MSEC

typedef struct View {
        Text text;
        bool whole;                     /* --long */
        size_t columns;                 /* of the terminal; 0: no limit */
} View;
#define SAY(v, ...) text_add(&(v)->text, __VA_ARGS__)

/* ---- on a terminal ---- */

/* Bytes from MARK on never occur in UTF-8; they stand for colours (ECMA-48, 8.3.117). */
#define MARK 0xf8
static const char colours[][3] = { "", "31", "33", "32", "0" };
static const struct { char word[14], mark; } marks[] = {
        { "failed", 1 }, { "failed so far", 1 }, { "NOT JOINED", 1 }, { "tainted", 2 },
        { "held", 2 },   { "skipped", 2 },       { "ok", 3 },
};

/* The word, padded to width, in the colour of its verdict. */
static void word_show(View *v, const char *word, int width) {
        char own = PICK(m, marks, ARRAY_SIZE(marks), streq(m->word, word), m->mark, 0);
        char mark[2] = { (char)(own ? MARK + own : 0) };
        SAY(v, "%s%-*s%s", mark, width, word, own ? "\xfc" : "");
}

/* https://no-color.org */
static bool has_colours(void) {
        const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
        return isatty(STDOUT_FILENO) && !(none && *none) && terminal && !ONE_OF(terminal, "", "dumb");
}

static void print(const View *v) {
        bool colour = has_colours();
        _cleanup_(text_done) Text folded = {};
        for (char *line = v->text.data; line && *line;) {
                size_t n = strcspn(line, "\n"), indent = strspn(line, " ") + 2;
                line[n] = 0;
                if (v->columns > 0 && n > v->columns && !strstr(line, "|  ")) {
                        _free_ char *lead = xstrndup(line, indent - 2);
                        text_fold(&folded, lead, indent, line + indent - 2, v->columns);
                } else
                        text_add(&folded, "%s\n", line);
                line += n + 1;
        }
        for (const char *p = folded.data ?: ""; *p; p++) {
                unsigned char c = (unsigned char)*p;
                if (c < MARK)
                        putchar((c < ' ' && c != '\n') || c == 0x7f ? ' ' : c);  /* terminals obey control
                                                                                  * characters */
                else if (colour)
                        printf("\033[%sm", colours[c - MARK]);
        }
}

/* ---- all of a process ---- */

static void lines_show(View *v, const char *indent, const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n");
                SAY(v, "%s%.*s\n", indent, (int)n, text);
                text += n + (text[n] == '\n');
        }
}

static void list_show(View *v, const char *title, const StatusWord *word) {
        for (; word && word->text; word++)
                SAY(v, "  %s: %s\n", title, word->text);
}

/* At least one mark. */
static void bar_make(char bar[static BAR + 1], int64_t from, int64_t to, int64_t whole) {
        int64_t first = whole > 0 ? from * BAR / whole : 0,
                last = whole > 0 ? (to * BAR + whole - 1) / whole : BAR;
        first = MAX(MIN(first, BAR - 1), 0);
        last = MAX(MIN(last, BAR), first + 1);
        for (int i = 0; i < BAR; i++)
                bar[i] = i >= first && i < last ? '=' : ' ';
        bar[BAR] = 0;
}

/* A quick success is not shown, unless kubelet waited for it. */
static bool was_instant(const StatusAction *a) {
        return a->begin_usec > 0 && a->end_usec - a->begin_usec < (int64_t)INSTANT && !a->critical &&
               !*a->text && ONE_OF(a->outcome, "done", "unchanged");
}

static bool is_narrow(const View *v) {
        return v->columns > 0 && v->columns < NARROW;
}

static void action_show(View *v, const StatusAction *a, const StatusRun *run) {
        int64_t begin = a->begin_usec - run->begin_usec, end = a->end_usec - run->begin_usec;
        bool narrow = is_narrow(v);
        char bar[BAR + 1] = "";
        _free_ char *start = NULL, *took = NULL;
        if (a->begin_usec > 0) {
                bar_make(bar, begin, end, run->end_usec - run->begin_usec);
                start = usec_text(begin);
                took = usec_text(end - begin);
        }
        if (!narrow)
                SAY(v, "  %9s", start ?: "-");
        SAY(v, "  %9s  ", took ?: "-");
        word_show(v, a->outcome, 9);
        if (!narrow)
                SAY(v, "  |%-*s|", BAR, bar);
        SAY(v, "%c %s\n", a->critical ? '>' : ' ', a->id);
        lines_show(v, narrow ? "    " : "                                 ", a->text);
}

static void run_show(View *v, const StatusRun *run) {
        _free_ char *since = usec_text(run->begin_usec),
                    *took = usec_text(run->end_usec - run->begin_usec);
        bool acted = run->actions && run->actions->id;
        size_t instant = 0;
        SAY(v, "\n%s: %s, began %s after the kernel started, took %s, %lld IMDS and %lld EC2 requests, "
               "ended %s\n",
            run->phases, run->verdict, since, took, (long long)MAX(run->imds_requests, 0),
            (long long)MAX(run->ec2_requests, 0), run->ended_at);
        /* else the failed actions have them */
        if (!acted)
                list_show(v, "error", run->errors);
        list_show(v, "warning", run->warnings);
        if (acted)
                SAY(v, is_narrow(v) ? "       took  outcome\n" : "      start       took  outcome\n");
        for (const StatusAction *a = run->actions; a && a->id; a++)
                if (was_instant(a))
                        instant++;
                else
                        action_show(v, a, run);
        if (instant > 0)
                SAY(v, "  %zu step%s took no time (see --output json)\n",
                       instant, instant == 1 ? "" : "s");
}

/* ---- the head of it ---- */

/* "i-0123 (p5.48xlarge, us-west-2) of cluster training" */
static void node_show(View *v, const Status *s) {
        const char *id = s->node.instance_id, *host = s->node.host, *cluster = s->node.cluster;
        const char *const more[] = { s->node.instance_type, s->node.region, s->node.name };
        _cleanup_(text_done) Text t = {};
        for (size_t i = 0; i < ARRAY_SIZE(more); i++)
                if (*more[i] && !streq(more[i], id))
                        text_add(&t, "%s%s", t.size > 0 ? ", " : " (", more[i]);
        text_add(&t, "%s%s%s", t.size > 0 ? ")" : "", *cluster ? " of cluster " : "", cluster);
        if (*id || *host || t.size > 0)
                SAY(v, "instance %s%s\n", *id ? id : host, t.data ?: "");
}

/* Current steps of a phase; now 0: duration not known. */
static void steps_show(View *v, const StatusStep *steps, int64_t now) {
        for (const StatusStep *step = steps; step && step->id; step++) {
                _free_ char *span = usec_text(now > 0 ? now - step->begin_usec : step->begin_usec);
                SAY(v, "%s %s (%s %s)", step > steps ? "," : ":", step->id, now > 0 ? "for" : "since", span);
        }
}

/* "phases: config ok 700.0 ms, devices failed 310.7 s, run held" */
static void phases_show(View *v, const Status *s) {
        for (const StatusPhase *p = s->phases; p && p->phase; p++) {
                _free_ char *took = usec_text(p->end_usec - p->begin_usec);
                SAY(v, "%s %s ", p > s->phases ? "," : "phases:", p->phase);
                word_show(v, p->verdict, 0);
                if (p->end_usec > 0)
                        SAY(v, " %s", took);
                steps_show(v, p->steps, s->now_usec);
        }
        SAY(v, s->phases && s->phases->phase ? "\n" : "");
}

static void longest_show(View *v, const StatusStep *longest) {
        for (const StatusStep *step = longest; step && step->id; step++) {
                _free_ char *took = usec_text(step->usec);
                SAY(v, "%s %s %s", step > longest ? "," : "longest:", took, step->id);
        }
        if (longest && longest->id)
                SAY(v, "\n");
}

/* well: also the first warning. */
static void counts_show(View *v, const Status *s, bool well) {
        size_t counts[OUTCOME_FAILED + 1] = {};
        const char *first = NULL;
        _cleanup_(json_decrefp) json_t *warnings = json_object();      /* processes may repeat a warning */
        status_count(s, counts);
        for (const StatusRun *run = s->runs; run && run->phases; run++)
                for (const StatusWord *word = run->warnings; word && word->text; word++) {
                        json_object_set_new(warnings, word->text, json_true());
                        first = first ?: word->text;
                }
        size_t n = json_object_size(warnings);
        SAY(v, "%zu done, %zu unchanged, %zu skipped, %zu failed", counts[OUTCOME_DONE],
            counts[OUTCOME_UNCHANGED], counts[OUTCOME_SKIPPED], counts[OUTCOME_FAILED]);
        if (n > 0)
                SAY(v, ", %zu warning%s", n, n == 1 ? "" : "s");
        SAY(v, v->whole ? "\n" : "; nodestrap status --long lists them\n");
        if (first && well && !v->whole)
                SAY(v, "warning: %.*s\n", (int)strcspn(first, "\n"), first);
}

/* Replaces UNIT and the like in a command of the manual. */
static void command_show(View *v, const char *text, const char *step) {
        static const struct { char word[7], type[14]; } names[] = {
                { "UNIT", "start-unit:" },    { "UNIT", "restart-unit:" }, { "UNIT", "await-unit:" },
                { "MODULE", "load-module:" }, { "PATH", "write-file:" },   { "KEY", "set-sysctl:" },
        };
        while (*text) {
                __auto_type name = FIND(n, names, ARRAY_SIZE(names),
                                        startswith(text, n->word) && startswith(step, n->type));
                SAY(v, "%.*s", name ? INT_MAX : 1, name ? step + strlen(name->type) : text);
                text += name ? strlen(name->word) : 1;
        }
}

/* The advice of the manual on a code, if it is installed. */
static void advice_show(View *v, const Root *root, const char *code, const char *step) {
        static const char parts[][7] = { "Look: ", "Do: " };
        _free_ char *entries = NULL;
        if (explain_read(root, &entries) < 0)
                return;
        _free_ char *entry = explain_find(entries, code);
        for (size_t i = 0; entry && i < ARRAY_SIZE(parts); i++) {
                _free_ char *text = explain_paragraph(entry, parts[i]);
                if (!text)
                        continue;
                SAY(v, "%c%s", *parts[i] | ' ', parts[i] + 1);
                command_show(v, text, step);
                SAY(v, "\n");
        }
}

/* "failed (33 EFABRIC) at fabric in the devices phase:", the message, without --long its first line, and
 * advice of the manual. */
static void trouble_show(View *v, const Root *root, const char *word, int64_t exit, const char *code,
                         const char *step, const char *phase, const char *text) {
        word_show(v, word, 0);
        SAY(v, " (%lld %s)%s%s%s%s%s:\n", (long long)exit, code, *step ? " at " : "", step,
            *phase ? " in the " : "", phase, *phase ? " phase" : "");
        _free_ char *sentence = xstrndup(text, v->whole ? strlen(text) : strcspn(text, "\n"));
        lines_show(v, "  ", sentence);
        advice_show(v, root, code, step);
}

/* The verdict of the boot, and failures so far. true: there are some. */
static bool verdict_show(View *v, const Root *root, const Status *s) {
        const StatusJoin *joined = status_not_joined(s);
        const char *pool = status_pool(s);
        bool ended = ONE_OF(s->verdict, "failed", "tainted");
        bool failed = ended || (*s->code && !streq(s->code, "OK"));
        if (streq(s->verdict, "unfinished") && (!s->runs || !s->runs->phases)) {
                SAY(v, "unfinished: nodestrap init has not run since this machine booted\n");
                return false;
        }
        if (joined) {
                trouble_show(v, root, join_lacks_devices(joined) ? "DEVICES MISSING" : "NOT JOINED",
                             joined->exit, joined->code, "", "", joined->text);
                SAY(v, "init ");
        }
        if (!ended) {
                word_show(v, *s->verdict ? s->verdict : "unfinished", 0);
                SAY(v, ": %s%s", pool ?: "", pool ? "\n" : "");
        }
        if (failed) {
                trouble_show(v, root, ended ? s->verdict : "failed so far", s->exit, s->code, s->step,
                             s->phase, s->text);
        }
        counts_show(v, s, !failed && !joined && streq(s->verdict, "ok"));
        return failed || joined;
}

/* Eight lines at most, except with --long. */
static void head_show(View *v, const Root *root, const Status *s) {
        bool trouble = verdict_show(v, root, s);
        if (*s->next)
                SAY(v, "next: %s\n", s->next);
        node_show(v, s);
        phases_show(v, s);
        if (s->joined && !status_not_joined(s) && (v->whole || !trouble))
                join_show(&v->text, s->joined);
}

static void ahead_show(View *v, const json_t *ahead) {
        if (ahead)
                SAY(v, "read ahead: %lld MiB from the disk, %lld MiB were in memory already\n",
                    json_integer_value(json_object_get(ahead, "bytesBrought")) >> 20,
                    json_integer_value(json_object_get(ahead, "bytesPresent")) >> 20);
}

/* "images: 3 of 4 pulled, 10.2 GB, 35 s", and why others were not, as src/pull/main.c says it. */
static void images_show(View *v, const json_t *images) {
        if (images)
                SAY(v, "images: %s\n", json_get_text(images, "text"));
}

static void rest_show(View *v, const Status *s) {
        _free_ char *found = found_text(s), *critical = critical_text(s);
        longest_show(v, s->longest);
        ahead_show(v, json_object_get(s->json, "readAhead"));
        images_show(v, json_object_get(s->json, "images"));
        SAY(v, "%s%splan %s, nodestrap %s%s%s\n", critical, found,
            *s->plan_id ? s->plan_id : "(none was made)", s->version, *s->booted_at ? ", booted " : "",
            s->booted_at);
        for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++) {
                const StatusRun *run = status_run(s, status_phases[i]);
                if (run)
                        run_show(v, run);
        }
}

void status_show(const Root *root, const Status *s, bool whole) {
        struct winsize size = {};
        View v = { .whole = whole };
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
                v.columns = size.ws_col;
        head_show(&v, root, s);
        if (whole)
                rest_show(&v, s);
        print(&v);
        text_done(&v.text);
}
