/* SPDX-License-Identifier: Apache-2.0
 * Report → status.json, and back. The two phases of a boot are two processes: each replaces its own part of
 * the file and keeps the other's. Nothing here can hold a secret: texts name paths and units, never
 * contents. */
#include "report/status.h"

#include "base/json.h"
#include "base/str.h"
#include "report/found.h"
#include "report/join.h"

#include <errno.h>

#define STATUS_MAX (16 << 20)

const char *const status_phases[7] = {
        "config", "config,devices", "config,devices,run", "config,run", "devices", "devices,run", "run",
};

/* ---- back from it ---- */

/* The file as it is: whichever boot has written it. */
static int file_read(const Root *root, json_t **ret) {
        _cleanup_(freep) char *text = NULL;
        size_t size = 0;
        int r = root_read(root, REPORT_STATUS, STATUS_MAX, &text, &size);
        if (r < 0)
                return r;
        json_t *status = json_loadb(text, size, 0, NULL);
        if (!json_is_object(status)) {
                json_decref(status);
                return -EBADMSG;
        }
        *ret = status;
        return 0;
}

int status_read(const Root *root, json_t **ret) {
        int r = file_read(root, ret);
        if (r < 0)
                return r;
        json_t *joined = join_read(root);
        if (joined)
                json_object_set_new(*ret, "joined", joined);
        return 0;
}

char *status_plan_id(const Root *root) {
        _cleanup_(json_decrefp) json_t *status = NULL;
        if (file_read(root, &status) < 0 || !*json_get_text(status, "planId"))
                return NULL;
        return xstrdup(json_get_text(status, "planId"));
}

/* ---- a run ---- */

static json_t *result_json(const Result *r) {
        json_t *action = json_object();
        json_object_set_new(action, "id", text_json(r->action->id));
        json_object_set_new(action, "outcome", json_string(outcome_to_string(r->outcome)));
        json_object_set_new(action, "beginUsec", json_integer((json_int_t)r->begin_usec));
        json_object_set_new(action, "endUsec", json_integer((json_int_t)r->end_usec));
        if (r->text)
                json_object_set_new(action, "text", text_json(r->text));
        if (r->outcome == OUTCOME_FAILED)
                json_object_set_new(action, "code", json_string(cause_word(r->cause)));
        if (r->found)
                json_object_set(action, "found", r->found);
        return action;
}

/* Planner and stages may have said the same: seen holds what is in the list already. */
static void diag_put(json_t *list, json_t *seen, const Diag *diag, bool warnings) {
        for (size_t i = 0; i < diag->n; i++) {
                if (diag->items[i].warning != warnings)
                        continue;
                _cleanup_(freep) char *line = diagnostic_format(&diag->items[i]);
                if (!json_object_get(seen, line))
                        json_array_append_new(list, text_json(line));
                json_object_set_new_nocheck(seen, line, json_true());
        }
}

static json_t *run_json(const Report *report, const Verdict *v, uint64_t end_usec) {
        json_t *run = json_object(), *actions = json_array(), *warnings = json_array(),
               *errors = json_array();
        _cleanup_(json_decrefp) json_t *seen = json_object();
        _cleanup_(freep) char *when = verdict_time();

        json_object_set_new(run, "command", text_json(report->command));
        json_object_set_new(run, "phases", text_json(report->phases));
        verdict_put(run, v, report->plan ? report->plan->id : NULL);
        json_object_set_new(run, "endedAt", json_string(when));
        json_object_set_new(run, "beginUsec", json_integer((json_int_t)report->begin_usec));
        json_object_set_new(run, "endUsec", json_integer((json_int_t)end_usec));
        json_object_set_new(
                run, "requests",
                json_pack("{si si}", "imds", (int)report->imds_requests, "ec2", (int)report->ec2_requests));
        for (size_t i = 0; report->results && i < report->results->n; i++)
                json_array_append_new(actions, result_json(&report->results->items[i]));
        if (report->plan)
                diag_put(warnings, seen, &report->plan->warnings, true);
        diag_put(warnings, seen, report->diag, true);
        diag_put(errors, seen, report->diag, false);
        json_object_set_new(run, "errors", errors);
        json_object_set_new(run, "warnings", warnings);
        json_object_set_new(run, "actions", actions);
        return run;
}

static bool phases_overlap(const char *a, const char *b) {
        return strstr(a, b) || strstr(b, a);    /* of "config", "run" and "config,run" */
}

/* ---- the boot ---- */

/* The other phases' parts of this boot's status; of another boot nothing. */
static json_t *runs_read(const Root *root, const char *boot_id, const char *phases) {
        _cleanup_(json_decrefp) json_t *old = NULL;
        json_t *runs = json_object(), *run;
        const char *key;
        if (file_read(root, &old) < 0 || !streq(json_get_text(old, "bootId"), boot_id))
                return runs;
        json_object_foreach(json_object_get(old, "runs"), key, run) {
                if (!phases_overlap(key, phases))
                        json_object_set(runs, key, run);
        }
        return runs;
}

static bool verdict_is(const json_t *run, const char *word) {
        const char *verdict = json_string_value(json_object_get(run, "verdict"));
        return verdict && streq(verdict, word);
}

/* Of the whole boot: the first failure, in the order of the phases ("config" sorts before "run"); else what
 * taints the node. */
static json_t *overall_find(json_t *runs, json_t *own) {
        static const char *const words[] = { "failed", "tainted" };
        for (size_t w = 0; w < ARRAY_SIZE(words); w++)
                for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++)
                        if (verdict_is(json_object_get(runs, status_phases[i]), words[w]))
                                return json_object_get(runs, status_phases[i]);
        return own;
}

json_t *status_make(const Root *root, const Report *report, const Verdict *v, uint64_t end_usec) {
        static const char *const copied[] = { "verdict", "code", "exit", "step", "text", "planId" };
        _cleanup_(freep) char *boot_id = NULL;
        (void)!root_boot_id(root, &boot_id);
        json_t *status = json_object(), *run = run_json(report, v, end_usec);
        json_t *runs = runs_read(root, boot_id ?: "", report->phases);
        json_object_set_new(runs, report->phases, run);
        json_t *overall = overall_find(runs, run);

        json_object_set_new(status, "version", json_string(VERSION));
        json_object_set_new(status, "bootId", text_json(boot_id ?: ""));
        for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
                json_object_set(status, copied[i], json_object_get(overall, copied[i]));
        found_put(status, runs);
        json_object_set_new(status, "runs", runs);
        return status;
}
