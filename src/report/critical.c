/* SPDX-License-Identifier: Apache-2.0
 * Times in status.json → the chain of actions that the start of kubelet waited for, and the longest
 * actions. The chain crosses processes: steps of the run phase wait for the devices phase (take-turn). The
 * process of the run phase waits for cloud-init, which begins after the config phase. */
#include "report/status.h"

#include "base/json.h"
#include "base/time.h"

#define KUBELET "start-unit:kubelet.service"
#define TURN    "take-turn:devices"
#define GAP     "cloud-init"
#define DEPTH   8U                      /* of a chain of actions that never began */
#define SHOWN   3U
#define LONGEST 5U

typedef struct Place { StatusRun *run; StatusAction *action; } Place;

static StatusAction *action_find(const StatusRun *run, const char *id) {
        for (StatusAction *a = run->actions; a && a->id; a++)
                if (streq(a->id, id))
                        return a;
        return NULL;
}

static StatusAction *later(StatusAction *a, StatusAction *b) {
        return !b || a->end_usec > b->end_usec ? a : b;
}

/* The predecessor that ended last. One that never began is replaced by its own predecessors. */
static StatusAction *last_before(const StatusRun *run, const StatusAction *action, unsigned depth) {
        StatusAction *last = NULL;
        for (const StatusWord *id = action->after; id && id->text; id++) {
                StatusAction *before = action_find(run, id->text);
                if (before && before->end_usec == 0 && depth > 0)
                        before = last_before(run, before, depth - 1);
                if (before && before->end_usec > 0)
                        last = later(before, last);
        }
        return last;
}

static StatusAction *last_of(const StatusRun *run) {
        StatusAction *last = NULL;
        for (StatusAction *a = run->actions; a && a->id; a++)
                if (a->end_usec > 0)
                        last = later(a, last);
        return last;
}

/* Another run with this phase that ended between these times. */
static Place run_find(const Status *s, const Place *own, const char *phase, int64_t from, int64_t to) {
        for (StatusRun *run = s->runs; run && run->phases; run++)
                if (run != own->run && strstr(run->phases, phase) && run->end_usec > from &&
                    run->end_usec <= to && last_of(run))
                        return (Place){ run, last_of(run) };
        return (Place){};
}

static void path_push(json_t *path, const char *run, const char *id, const char *phase, int64_t begin,
                      int64_t end) {
        json_t *step = json_pack("{ss ss sI sI}", "run", run, "id", id, "beginUsec", (json_int_t)begin,
                                 "endUsec", (json_int_t)end);
        json_set_text(step, "phase", *phase ? phase : NULL);
        json_array_insert_new(path, 0, step);
}

/* The step that this one waited for, in its process or in another. For the first step of a process: what
 * that process waited for. */
static Place step_back(json_t *path, const Status *s, const Place *at) {
        Place before = {};
        if (streq(at->action->id, TURN))
                before = run_find(s, at, "devices", at->action->begin_usec, at->action->end_usec);
        if (before.run)
                return before;
        before = (Place){ at->run, last_before(at->run, at->action, DEPTH) };
        if (before.action)
                return before;
        before = run_find(s, at, "config", 0, at->run->begin_usec);
        if (before.run && strstr(at->run->phases, "run"))
                path_push(path, at->run->phases, GAP, "", before.run->end_usec, at->run->begin_usec);
        return before;
}

void critical_put(json_t *status, const Status *s) {
        _cleanup_(json_decrefp) json_t *path = json_array();
        Place at = {};
        for (StatusRun *run = s->runs; run && run->phases; run++) {
                StatusAction *kubelet = action_find(run, KUBELET);
                if (kubelet && kubelet->end_usec > 0)
                        at = (Place){ run, kubelet };
        }
        while (at.action && !at.action->critical) {
                StatusAction *a = at.action;
                a->critical = true;
                path_push(path, at.run->phases, a->id, a->phase, a->begin_usec, a->end_usec);
                at = step_back(path, s, &at);
        }
        if (json_array_size(path) > 0)
                json_object_set(status, "criticalPath", path);
}

/* From the end of the previous step: kubelet waited for this one only from then. */
static int64_t share_of(const Status *s, const StatusStep *step) {
        return MAX(step->end_usec - (step > s->path ? step[-1].end_usec : step->begin_usec), 0);
}

int64_t critical_share(const Status *s, const char *part) {
        int64_t sum = 0;
        for (const StatusStep *step = s->path; step && step->id; step++) {
                /* in a run of several phases, the phase of the step */
                const char *own = streq(step->id, GAP) ? GAP : *step->phase ? step->phase : step->run;
                sum += streq(own, part) ? share_of(s, step) : 0;
        }
        return sum;
}

int64_t critical_end(const Status *s) {
        int64_t end = 0;
        for (const StatusStep *step = s->path; step && step->id; step++)
                end = step->end_usec;
        return end;
}

/* Sorted, longest first; equal ones keep their order. */
static void step_insert(StatusStep *longest, size_t n, StatusStep step) {
        size_t at = n;
        while (at > 0 && (!longest[at - 1].id || longest[at - 1].usec < step.usec))
                at--;
        if (at == n)
                return;
        memmove(&longest[at + 1], &longest[at], (n - at - 1) * sizeof *longest);
        longest[at] = step;
}

char *critical_text(const Status *s) {
        StatusStep longest[SHOWN + 1] = {};
        Text t = {};
        _free_ char *whole = usec_text(critical_end(s));
        for (const StatusStep *step = s->path; step && step->id; step++)
                step_insert(longest, SHOWN, (StatusStep){ .id = step->id, .usec = share_of(s, step) });
        if (!longest->id)
                return xstrdup("");
        text_add(&t, "critical path (>): kubelet started %s after the kernel", whole);
        for (const StatusStep *step = longest; step->id; step++) {
                _free_ char *took = usec_text(step->usec);
                text_add(&t, "%s %s of %s", step > longest ? "," : ";", took, step->id);
        }
        text_add(&t, "\n");
        return text_take(&t);
}

void longest_put(Status *s) {
        StatusStep longest[LONGEST + 1] = {};
        json_t *list = json_array();
        for (const StatusRun *run = s->runs; run && run->phases; run++)
                for (const StatusAction *a = run->actions; a && a->id; a++) {
                        int64_t usec = a->begin_usec > 0 ? a->end_usec - a->begin_usec : 0;
                        /* take-turn waits for other steps, which are in the list themselves */
                        if (usec > 0 && !startswith(a->id, "take-turn:"))
                                step_insert(longest, LONGEST,
                                            (StatusStep){ a->id, run->phases, .usec = usec });
                }
        for (const StatusStep *step = longest; step->id; step++)
                json_array_append_new(list, json_pack("{ss ss sI}", "run", step->run, "id", step->id, "usec",
                                                      (json_int_t)step->usec));
        json_object_set_new(s->json, "longest", list);
}
