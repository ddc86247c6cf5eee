/* SPDX-License-Identifier: Apache-2.0
 * status.json → `nodestrap status`: first the verdict and its cause, then each phase as a timeline, one
 * line an action:
 *     start  duration  outcome  |  ===      |  id */
#include "report/show.h"

#include "apply/apply.h"
#include "base/json.h"
#include "base/str.h"
#include "base/time.h"
#include "report/critical.h"
#include "report/found.h"
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

static void counts_show(json_t *runs) {
        size_t counts[OUTCOME_FAILED + 1] = {};
        status_count(runs, counts);
        printf("%zu done, %zu unchanged, %zu skipped, %zu failed\n", counts[OUTCOME_DONE],
               counts[OUTCOME_UNCHANGED], counts[OUTCOME_SKIPPED], counts[OUTCOME_FAILED]);
}

void status_show(const json_t *status) {
        json_t *runs = json_object_get(status, "runs");
        if (streq(json_get_text(status, "verdict"), "ok"))
                printf("ok: ");
        else {
                printf("%s (%lld %s) at %s:\n", json_get_text(status, "verdict"),
                       (long long)status_number(status, "exit"), json_get_text(status, "code"),
                       json_get_text(status, "step"));
                lines_show("  ", json_get_text(status, "text"));
        }
        _cleanup_(freep) char *found = found_text(status);
        counts_show(runs);
        _cleanup_(freep) char *critical = critical_text(status);
        fputs(found, stdout);
        fputs(critical, stdout);
        if (json_object_get(status, "joined"))
                join_show(json_object_get(status, "joined"));
        printf("plan %s, nodestrap %s\n",
               *json_get_text(status, "planId") ? json_get_text(status, "planId") : "(none was made)",
               json_get_text(status, "version"));
        for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++)
                if (json_object_get(runs, status_phases[i]))
                        run_show(status, status_phases[i], json_object_get(runs, status_phases[i]));
}
