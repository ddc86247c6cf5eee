/* SPDX-License-Identifier: Apache-2.0
 * status.json → `nodestrap status`: first the verdict, its cause and what to look at next, which node it is
 * and how its phases ended; then each process as a timeline, one line an action:
 *     start  duration  outcome  |  ===      |  id */
#include "report/status-text.h"

#include "apply/apply.h"
#include "base/json.h"
#include "base/str.h"
#include "base/time.h"
#include "report/critical.h"
#include "report/device-report.h"
#include "report/join.h"
#include "report/status.h"

#include <stdio.h>

#define BAR 24

static void lines_show(const char *indent, const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n");
                printf("%s%.*s\n", indent, (int)n, text);
                text += n + (text[n] == '\n');
        }
}

static void list_show(const char *title, const json_t *list) {
        json_t *item;
        size_t i;
        json_array_foreach(list, i, item) {
                printf("  %s: %s\n", title, json_string_value(item) ?: "");
        }
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

/* critical: kubelet's start waited for it longest. */
static void action_show(const json_t *action, int64_t run_begin, int64_t run_end, bool critical) {
        int64_t begin = status_number(action, "beginUsec"), end = status_number(action, "endUsec");
        char bar[BAR + 1] = "";
        _cleanup_(freep) char *start = NULL, *took = NULL;
        if (begin > 0) {
                bar_make(bar, begin - run_begin, end - run_begin, run_end - run_begin);
                start = usec_text(begin - run_begin);
                took = usec_text(end - begin);
        }
        printf("  %9s  %9s  %-9s  |%-*s|%c %s\n", start ?: "-", took ?: "-", json_get_text(action, "outcome"),
               BAR, bar, critical ? '>' : ' ', json_get_text(action, "id"));
        lines_show("                                 ", json_get_text(action, "text"));
}

static void run_show(const json_t *status, const char *phases, const json_t *run) {
        int64_t begin = status_number(run, "beginUsec"), end = status_number(run, "endUsec");
        _cleanup_(freep) char *since = usec_text(begin), *took = usec_text(end - begin);
        const json_t *requests = json_object_get(run, "requests");
        json_t *action;
        size_t i;

        printf("\n%s: %s, began %s after power-on, took %s, %lld IMDS and %lld EC2 requests, ended %s\n",
               phases, json_get_text(run, "verdict"), since, took, (long long)status_number(requests, "imds"),
               (long long)status_number(requests, "ec2"), json_get_text(run, "endedAt"));
        /* else they stand at the actions that failed */
        if (json_array_size(json_object_get(run, "actions")) == 0)
                list_show("error", json_object_get(run, "errors"));
        list_show("warning", json_object_get(run, "warnings"));
        if (json_array_size(json_object_get(run, "actions")) > 0)
                printf("  %9s  %9s  %-9s  |%-*s|\n", "start", "took", "outcome", BAR, "");
        json_array_foreach(json_object_get(run, "actions"), i, action) {
                action_show(action, begin, end, critical_has(status, phases, json_get_text(action, "id")));
        }
}

/* ---- the head of it ---- */

/* "i-0123 (p5.48xlarge, us-west-2) of cluster training" */
static void node_show(const json_t *status) {
        static const char *const keys[] = { "instanceType", "region", "name" };
        const json_t *node = json_object_get(status, "node");
        const char *id = json_get_text(node, "instanceId"), *cluster = json_get_text(node, "cluster");
        const char *before = " (";
        if (json_object_size(node) == 0)
                return;
        printf("instance %s", *id ? id : json_get_text(node, "host"));
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                const char *value = json_get_text(node, keys[i]);
                if (!*value || streq(value, id))
                        continue;
                printf("%s%s", before, value);
                before = ", ";
        }
        printf("%s%s%s\n", streq(before, ", ") ? ")" : "", *cluster ? " of cluster " : "", cluster);
}

/* What goes on in a phase that has not ended; now 0: nobody knows for how long. */
static void steps_show(const json_t *entry, int64_t now) {
        const json_t *step;
        size_t i;
        json_array_foreach(json_object_get(entry, "steps"), i, step) {
                int64_t begin = status_number(step, "beginUsec");
                _cleanup_(freep) char *span = usec_text(now > 0 ? now - begin : begin);
                printf("%s %s (%s %s)", i > 0 ? "," : ":", json_get_text(step, "id"),
                       now > 0 ? "for" : "since", span);
        }
}

static void phase_show(const json_t *entry, int64_t now) {
        int64_t begin = status_number(entry, "beginUsec"), end = status_number(entry, "endUsec");
        _cleanup_(freep) char *took = usec_text(end - begin), *since = usec_text(begin);
        printf("  %-8s %-9s", json_get_text(entry, "phase"), json_get_text(entry, "verdict"));
        if (end > 0)
                printf(" %9s", took);
        if (begin > 0)
                printf("%s from %s after power-on", end > 0 ? "," : "", since);
        steps_show(entry, now);
        printf("\n");
}

static void phases_show(const json_t *status) {
        const json_t *entry;
        size_t i;
        json_array_foreach(json_object_get(status, "phases"), i, entry)
                phase_show(entry, status_number(status, "nowUsec"));
}

static void longest_show(const json_t *status) {
        const json_t *step;
        size_t i;
        json_array_foreach(json_object_get(status, "longest"), i, step) {
                _cleanup_(freep) char *took = usec_text(status_number(step, "usec"));
                printf("%s %s %s", i > 0 ? "," : "longest:", took, json_get_text(step, "id"));
        }
        if (i > 0)
                printf("\n");
}

static void counts_show(json_t *runs) {
        size_t counts[OUTCOME_FAILED + 1] = {};
        status_count(runs, counts);
        printf("%zu done, %zu unchanged, %zu skipped, %zu failed\n", counts[OUTCOME_DONE],
               counts[OUTCOME_UNCHANGED], counts[OUTCOME_SKIPPED], counts[OUTCOME_FAILED]);
}

/* Of the boot: ok, unfinished, waiting or running, and what has failed already. */
static void verdict_show(const json_t *status) {
        const char *verdict = json_get_text(status, "verdict"), *code = json_get_text(status, "code");
        bool ended = streq(verdict, "failed") || streq(verdict, "tainted");
        if (streq(verdict, "unfinished") && json_object_size(json_object_get(status, "runs")) == 0) {
                printf("unfinished: nodestrap init has not run since this machine booted\n");
                return;
        }
        if (!ended)
                printf("%s: ", *verdict ? verdict : "unfinished");
        if (!ended && (!*code || streq(code, "OK"))) {
                counts_show(json_object_get(status, "runs"));
                return;
        }
        printf("%s (%lld %s) at %s:\n", ended ? verdict : "failed so far",
               (long long)status_number(status, "exit"), code, json_get_text(status, "step"));
        lines_show("  ", json_get_text(status, "text"));
        counts_show(json_object_get(status, "runs"));
}

void status_show_head(const json_t *status) {
        verdict_show(status);
        if (*json_get_text(status, "next"))
                printf("next: %s\n", json_get_text(status, "next"));
        node_show(status);
        phases_show(status);
        if (json_object_get(status, "joined"))
                join_show(json_object_get(status, "joined"));
}

void status_show(const json_t *status) {
        json_t *runs = json_object_get(status, "runs");
        _cleanup_(freep) char *found = found_text(status), *critical = critical_text(status);
        const char *plan = json_get_text(status, "planId"), *booted = json_get_text(status, "bootedAt");
        status_show_head(status);
        longest_show(status);
        fputs(critical, stdout);
        fputs(found, stdout);
        printf("plan %s, nodestrap %s%s%s\n", *plan ? plan : "(none was made)",
               json_get_text(status, "version"), *booted ? ", booted " : "", booted);
        for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++)
                if (json_object_get(runs, status_phases[i]))
                        run_show(status, status_phases[i], json_object_get(runs, status_phases[i]));
}
