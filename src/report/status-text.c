/* SPDX-License-Identifier: Apache-2.0
 * status.json → `nodestrap status`: first the verdict, its cause and what to look at next, which node it is
 * and how its phases ended; then each process as a timeline, one line an action:
 *     start  duration  outcome  |  ===      |  id */
#include "report/status.h"

#include "apply/apply.h"
#include "base/str.h"
#include "base/time.h"
#include "report/explain.h"
#include "report/join.h"

#include <stdio.h>

#define BAR 24

static void lines_show(const char *indent, const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n");
                printf("%s%.*s\n", indent, (int)n, text);
                text += n + (text[n] == '\n');
        }
}

static void list_show(const char *title, const StatusWord *word) {
        for (; word && word->text; word++)
                printf("  %s: %s\n", title, word->text);
}

/* The part of the run in which the action worked; at least one mark. */
static void bar_make(char bar[static BAR + 1], int64_t from, int64_t to, int64_t whole) {
        int64_t first = whole > 0 ? from * BAR / whole : 0,
                last = whole > 0 ? (to * BAR + whole - 1) / whole : BAR;
        first = MAX(MIN(first, BAR - 1), 0);
        last = MAX(MIN(last, BAR), first + 1);
        for (int i = 0; i < BAR; i++)
                bar[i] = i >= first && i < last ? '=' : ' ';
        bar[BAR] = 0;
}

static void action_show(const StatusAction *a, const StatusRun *run) {
        int64_t begin = a->begin_usec - run->begin_usec, end = a->end_usec - run->begin_usec;
        char bar[BAR + 1] = "";
        _free_ char *start = NULL, *took = NULL;
        if (a->begin_usec > 0) {
                bar_make(bar, begin, end, run->end_usec - run->begin_usec);
                start = usec_text(begin);
                took = usec_text(end - begin);
        }
        printf("  %9s  %9s  %-9s  |%-*s|%c %s\n", start ?: "-", took ?: "-", a->outcome, BAR, bar,
               a->critical ? '>' : ' ', a->id);
        lines_show("                                 ", a->text);
}

static void run_show(const StatusRun *run) {
        _free_ char *since = usec_text(run->begin_usec),
                    *took = usec_text(run->end_usec - run->begin_usec);
        bool acted = run->actions && run->actions->id;
        printf("\n%s: %s, began %s after power-on, took %s, %lld IMDS and %lld EC2 requests, ended %s\n",
               run->phases, run->verdict, since, took, (long long)MAX(run->imds_requests, 0),
               (long long)MAX(run->ec2_requests, 0), run->ended_at);
        /* else they stand at the actions that failed */
        if (!acted)
                list_show("error", run->errors);
        list_show("warning", run->warnings);
        if (acted)
                printf("  %9s  %9s  %-9s  |%-*s|\n", "start", "took", "outcome", BAR, "");
        for (const StatusAction *a = run->actions; a && a->id; a++)
                action_show(a, run);
}

/* ---- the head of it ---- */

/* "i-0123 (p5.48xlarge, us-west-2) of cluster training" */
static void node_show(const Status *s) {
        const char *id = s->node.instance_id, *host = s->node.host, *cluster = s->node.cluster;
        const char *const more[] = { s->node.instance_type, s->node.region, s->node.name };
        _cleanup_(text_done) Text t = {};
        for (size_t i = 0; i < ARRAY_SIZE(more); i++)
                if (*more[i] && !streq(more[i], id))
                        text_add(&t, "%s%s", t.size > 0 ? ", " : " (", more[i]);
        text_add(&t, "%s%s%s", t.size > 0 ? ")" : "", *cluster ? " of cluster " : "", cluster);
        if (*id || *host || t.size > 0)
                printf("instance %s%s\n", *id ? id : host, t.data ?: "");
}

/* What goes on in a phase that has not ended; now 0: nobody knows for how long. */
static void steps_show(const StatusStep *steps, int64_t now) {
        for (const StatusStep *step = steps; step && step->id; step++) {
                _free_ char *span = usec_text(now > 0 ? now - step->begin_usec : step->begin_usec);
                printf("%s %s (%s %s)", step > steps ? "," : ":", step->id, now > 0 ? "for" : "since", span);
        }
}

static void phases_show(const Status *s) {
        for (const StatusPhase *p = s->phases; p && p->phase; p++) {
                _free_ char *took = usec_text(p->end_usec - p->begin_usec),
                            *since = usec_text(p->begin_usec);
                printf("  %-8s %-9s", p->phase, p->verdict);
                if (p->end_usec > 0)
                        printf(" %9s", took);
                if (p->begin_usec > 0)
                        printf("%s from %s after power-on", p->end_usec > 0 ? "," : "", since);
                steps_show(p->steps, s->now_usec);
                printf("\n");
        }
}

static void longest_show(const StatusStep *longest) {
        for (const StatusStep *step = longest; step && step->id; step++) {
                _free_ char *took = usec_text(step->usec);
                printf("%s %s %s", step > longest ? "," : "longest:", took, step->id);
        }
        if (longest && longest->id)
                printf("\n");
}

static void counts_show(const Status *s) {
        size_t counts[OUTCOME_FAILED + 1] = {};
        status_count(s, counts);
        printf("%zu done, %zu unchanged, %zu skipped, %zu failed\n", counts[OUTCOME_DONE],
               counts[OUTCOME_UNCHANGED], counts[OUTCOME_SKIPPED], counts[OUTCOME_FAILED]);
}

/* Prints the manual on a code, where the package has put it. */
static void advice_show(const Root *root, const char *code) {
        static const char *const parts[] = { "Look: ", "Do: " }, *const names[] = { "look", "do" };
        _free_ char *entries = NULL;
        if (explain_read(root, &entries) < 0)
                return;
        _free_ char *entry = explain_find(entries, code);
        for (size_t i = 0; entry && i < ARRAY_SIZE(parts); i++) {
                _free_ char *text = explain_paragraph(entry, parts[i]);
                if (text)
                        printf("%s: %s\n", names[i], text);
        }
}

/* Of the boot: ok, unfinished, waiting or running, and what has failed already. */
static void verdict_show(const Root *root, const Status *s) {
        const StatusJoin *joined = status_not_joined(s);
        bool ended = streq(s->verdict, "failed") || streq(s->verdict, "tainted");
        if (streq(s->verdict, "unfinished") && (!s->runs || !s->runs->phases)) {
                printf("unfinished: nodestrap init has not run since this machine booted\n");
                return;
        }
        if (joined) {
                printf("NOT JOINED (%lld %s):\n", (long long)joined->exit, joined->code);
                lines_show("  ", joined->text);
                advice_show(root, joined->code);
                printf("init ");
        }
        if (!ended)
                printf("%s: ", *s->verdict ? s->verdict : "unfinished");
        if (ended || (*s->code && !streq(s->code, "OK"))) {
                printf("%s (%lld %s) at %s:\n", ended ? s->verdict : "failed so far", (long long)s->exit,
                       s->code, s->step);
                lines_show("  ", s->text);
                advice_show(root, s->code);
        }
        counts_show(s);
}

void status_show_head(const Root *root, const Status *s) {
        verdict_show(root, s);
        if (*s->next)
                printf("next: %s\n", s->next);
        node_show(s);
        phases_show(s);
        if (s->joined && !status_not_joined(s))
                join_show(s->joined);
}

void status_show(const Root *root, const Status *s) {
        _free_ char *found = found_text(s), *critical = critical_text(s);
        status_show_head(root, s);
        longest_show(s->longest);
        fputs(critical, stdout);
        fputs(found, stdout);
        printf("plan %s, nodestrap %s%s%s\n", *s->plan_id ? s->plan_id : "(none was made)", s->version,
               *s->booted_at ? ", booted " : "", s->booted_at);
        for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++) {
                const StatusRun *run = status_run(s, status_phases[i]);
                if (run)
                        run_show(run);
        }
}
