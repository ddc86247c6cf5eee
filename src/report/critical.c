/* SPDX-License-Identifier: Apache-2.0
 * The times of status.json → the chain of actions that kubelet's start really waited for. It leads from one
 * process into another: the run phase's steps of the devices wait for those of the devices phase
 * (take-turn), and its process for cloud-init, which begins when the configuration phase has ended. */
#include "report/critical.h"

#include "base/json.h"
#include "base/time.h"
#include "report/status.h"

#include <string.h>

#define KEY     "criticalPath"
#define KUBELET "start-unit:kubelet.service"
#define TURN    "take-turn:devices"
#define GAP     "cloud-init"
#define DEPTH   8U                      /* of actions that never began, one behind the other */
#define SHOWN   3U

/* name: its key, which phases it did; NULL: no such run. */
typedef struct Place { const char *name; const json_t *run, *action; } Place;

static const json_t *action_find(const json_t *run, const char *id) {
        const json_t *action;
        size_t i;
        json_array_foreach(json_object_get(run, "actions"), i, action)
                if (streq(json_get_text(action, "id"), id))
                        return action;
        return NULL;
}

static const json_t *later(const json_t *a, const json_t *b) {
        return !b || status_number(a, "endUsec") > status_number(b, "endUsec") ? a : b;
}

/* Of what it comes after the one that ended last. One that never began stands for what it comes after
 * itself. */
static const json_t *last_before(const json_t *run, const json_t *action, unsigned depth) {
        const json_t *last = NULL, *id;
        size_t i;
        json_array_foreach(json_object_get(action, "after"), i, id) {
                const json_t *before = action_find(run, json_string_value(id) ?: "");
                if (before && status_number(before, "endUsec") == 0 && depth > 0)
                        before = last_before(run, before, depth - 1);
                if (before && status_number(before, "endUsec") > 0)
                        last = later(before, last);
        }
        return last;
}

static const json_t *last_of(const json_t *run) {
        const json_t *last = NULL, *action;
        size_t i;
        json_array_foreach(json_object_get(run, "actions"), i, action)
                if (status_number(action, "endUsec") > 0)
                        last = later(action, last);
        return last;
}

/* Another run that did this phase, and ended between these times. */
static Place run_find(json_t *runs, const Place *own, const char *phase, int64_t from, int64_t to) {
        const char *name;
        json_t *run;
        json_object_foreach(runs, name, run) {
                int64_t end = status_number(run, "endUsec");
                if (run != own->run && strstr(name, phase) && end > from && end <= to && last_of(run))
                        return (Place) { .name = name, .run = run, .action = last_of(run) };
        }
        return (Place) {};
}

static json_t *path_push(json_t *path, const char *run, const char *id, int64_t begin, int64_t end) {
        json_t *step = json_pack("{ss ss sI sI}", "run", run, "id", id, "beginUsec", (json_int_t)begin,
                                 "endUsec", (json_int_t)end);
        json_array_insert_new(path, 0, step);
        return step;
}

/* What it waited for in its own process or in the one beside it; and where it was the first of its process,
 * what that one waited for. */
static Place step_back(json_t *path, json_t *runs, const Place *at) {
        Place before = {};
        int64_t begin = status_number(at->run, "beginUsec");
        if (streq(json_get_text(at->action, "id"), TURN))
                before = run_find(runs, at, "devices", status_number(at->action, "beginUsec"),
                                  status_number(at->action, "endUsec"));
        if (before.run)
                return before;
        before = (Place) { .name = at->name, .run = at->run };
        before.action = last_before(at->run, at->action, DEPTH);
        if (before.action)
                return before;
        before = run_find(runs, at, "config", 0, begin);
        if (before.run && strstr(at->name, "run"))
                path_push(path, at->name, GAP, status_number(before.run, "endUsec"), begin);
        return before;
}

static bool path_has(const json_t *path, const char *run, const char *id) {
        const json_t *step;
        size_t i;
        json_array_foreach(path, i, step)
                if (streq(json_get_text(step, "run"), run) && streq(json_get_text(step, "id"), id))
                        return true;
        return false;
}

void critical_put(json_t *status, json_t *runs) {
        json_t *path = json_array(), *run;
        const char *name;
        Place at = {};
        json_object_foreach(runs, name, run)
                if (status_number(action_find(run, KUBELET), "endUsec") > 0)
                        at = (Place) { .name = name, .run = run, .action = action_find(run, KUBELET) };
        while (at.action && !path_has(path, at.name, json_get_text(at.action, "id"))) {
                json_t *step =
                        path_push(path, at.name, json_get_text(at.action, "id"),
                                  status_number(at.action, "beginUsec"), status_number(at.action, "endUsec"));
                json_object_set(step, "phase", json_object_get(at.action, "phase"));
                at = step_back(path, runs, &at);
        }
        if (json_array_size(path) > 0)
                json_object_set(status, KEY, path);
        json_decref(path);
}

bool critical_has(const json_t *status, const char *run, const char *id) {
        return path_has(json_object_get(status, KEY), run, id);
}

/* ---- for people ---- */

/* From the end of the step before it to its own: only then was it the one that was waited for. */
static int64_t share_of(const json_t *path, size_t i) {
        const json_t *step = json_array_get(path, i);
        int64_t begin = status_number(i > 0 ? json_array_get(path, i - 1) : step,
                                      i > 0 ? "endUsec" : "beginUsec");
        return MAX(status_number(step, "endUsec") - begin, 0);
}

/* Which part of a boot the step belongs to: of a run of several phases to the one that it is a step of. */
static const char *part_of(const json_t *step) {
        const char *phase = json_get_text(step, "phase");
        return streq(json_get_text(step, "id"), GAP) ? GAP : *phase ? phase : json_get_text(step, "run");
}

int64_t critical_share(const json_t *path, const char *part) {
        int64_t sum = 0;
        for (size_t i = 0; i < json_array_size(path); i++)
                if (streq(part_of(json_array_get(path, i)), part))
                        sum += share_of(path, i);
        return sum;
}

int64_t critical_end(const json_t *path) {
        size_t n = json_array_size(path);
        return n > 0 ? status_number(json_array_get(path, n - 1), "endUsec") : 0;
}

char *critical_text(const json_t *status) {
        const json_t *path = json_object_get(status, KEY);
        size_t n = json_array_size(path), told[SHOWN];
        if (n == 0)
                return xstrdup("");
        Text t = {};
        _cleanup_(freep) char *whole = usec_text(critical_end(path));
        text_add(&t, "critical path (>): kubelet started %s after power-on", whole);
        for (size_t k = 0; k < MIN(n, SHOWN); k++) {
                told[k] = SIZE_MAX;
                for (size_t i = 0; i < n; i++) {
                        bool seen = false;
                        for (size_t j = 0; j < k; j++)
                                seen = seen || told[j] == i;
                        if (!seen && (told[k] == SIZE_MAX || share_of(path, i) > share_of(path, told[k])))
                                told[k] = i;
                }
                _cleanup_(freep) char *took = usec_text(share_of(path, told[k]));
                text_add(&t, "%s %s of %s", k > 0 ? "," : ";", took,
                         json_get_text(json_array_get(path, told[k]), "id"));
        }
        text_add(&t, "\n");
        return text_take(&t);
}
