/* SPDX-License-Identifier: Apache-2.0
 * Report → status.json, and back. The phases of a boot are several processes, and two of them may end at
 * the same time: each replaces its own part of the file and keeps the others'. "runs" is in the order in
 * which they ended. Nothing here can hold a secret: texts name paths and units, never contents. */
#include "report/status.h"

#include "base/json.h"
#include "base/lock.h"
#include "base/str.h"
#include "base/time.h"
#include "report/critical.h"
#include "report/device-report.h"
#include "report/join.h"
#include "report/phases.h"

#include <errno.h>
#include <sys/utsname.h>
#include <time.h>

#define STATUS_MAX (16 << 20)
#define LOCK_USEC  (5 * USEC_PER_SEC)  /* a report is worth more than one that is whole */

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

int64_t status_number(const json_t *object, const char *key) {
        return MIN(MAX(json_integer_value(json_object_get(object, key)), 0), 1LL << 52);
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
        json_object_set_new(action, "phase", json_string(phase_to_string(r->action->phase)));
        json_object_set_new(action, "outcome", json_string(outcome_to_string(r->outcome)));
        json_object_set_new(action, "beginUsec", json_integer((json_int_t)r->begin_usec));
        json_object_set_new(action, "endUsec", json_integer((json_int_t)r->end_usec));
        json_t *after = json_list(r->action->after), *after_any = json_list(r->action->after_any);
        json_array_extend(after, after_any);
        json_decref(after_any);
        json_object_set_new(action, "after", after);
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
        if (v->phase)
                json_object_set_new(run, "phase", text_json(v->phase));
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

/* ---- the boot ---- */

int status_lock(const Root *root) {
        Diag ignored = {};
        int r = lock_take(root, RUN_DIR "/status.lock", now_usec() + LOCK_USEC, &ignored);
        diag_done(&ignored);
        return r;
}

static bool phases_have(const char *phases, int phase) {
        return strstr(phases, phase_to_string((Phase)phase));
}

/* A run takes the place of those that did no more; but what the devices phase did stays beside the run phase,
 * which found most of it done. */
static bool is_replaced(const char *phases, const char *by) {
        if (streq(phases, "devices") && streq(by, "devices,run"))
                return false;
        for (int i = 0; i < _PHASE_MAX; i++)
                if (phases_have(phases, i) && !phases_have(by, i))
                        return false;
        return true;
}

/* What there is of this boot already; of another boot nothing: NULL. */
static json_t *old_read(const Root *root, const char *boot_id) {
        json_t *old = NULL;
        if (file_read(root, &old) >= 0 && streq(json_get_text(old, "bootId"), boot_id))
                return old;
        json_decref(old);
        return NULL;
}

/* The other phases' parts of it. */
static json_t *runs_kept(const json_t *old, const char *phases) {
        json_t *runs = json_object(), *run;
        const char *key;
        json_object_foreach(json_object_get(old, "runs"), key, run) {
                if (!is_replaced(key, phases))
                        json_object_set(runs, key, run);
        }
        return runs;
}

static bool verdict_is(const json_t *run, const char *word) {
        const char *verdict = json_string_value(json_object_get(run, "verdict"));
        return verdict && streq(verdict, word);
}

/* What a later run has done again is that one's to judge. */
static bool is_current(json_t *runs, const json_t *run) {
        const char *key, *phase = json_get_text(run, "phase");
        const json_t *latest = NULL;
        json_t *one;
        json_object_foreach(runs, key, one) {
                if (strstr(key, phase))
                        latest = one;
        }
        return !*phase || !latest || latest == run;
}

/* Of the whole boot: the first failure, in the order of the phases ("config" sorts before "run"); else what
 * taints the node. */
static json_t *overall_find(json_t *runs, json_t *own) {
        static const char *const words[] = { "failed", "tainted" };
        for (size_t w = 0; w < ARRAY_SIZE(words); w++)
                for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++) {
                        json_t *run = json_object_get(runs, status_phases[i]);
                        if (verdict_is(run, words[w]) && is_current(runs, run))
                                return run;
                }
        return own;
}

/* By id, as the last of the boot has it. */
static json_t *outcomes_of(json_t *runs) {
        json_t *outcomes = json_object(), *run, *action;
        const char *key;
        size_t i;
        json_object_foreach(runs, key, run) {
                json_array_foreach(json_object_get(run, "actions"), i, action) {
                        const char *id = json_get_text(action, "id"), *now = json_get_text(action, "outcome");
                        bool did = streq(json_get_text(outcomes, id), outcome_to_string(OUTCOME_DONE));
                        if (!did || !streq(now, outcome_to_string(OUTCOME_UNCHANGED)))
                                json_object_set_new(outcomes, id, json_string(now));
                }
        }
        return outcomes;
}

void status_count(json_t *runs, size_t counts[static OUTCOME_FAILED + 1]) {
        _cleanup_(json_decrefp) json_t *outcomes = outcomes_of(runs);
        const char *id;
        json_t *outcome;
        json_object_foreach(outcomes, id, outcome) {
                counts[MAX(outcome_from_string(json_string_value(outcome)), 0)]++;
        }
}

/* ---- which node it is of ---- */

char *status_host(const Root *root) {
        struct utsname name;
        char *host = NULL;
        if (root_is_host(root) && uname(&name) == 0)
                return xstrdup(name.nodename);
        return root_read_line(root, "/etc/hostname", &host) >= 0 ? host : xstrdup("");
}

/* Before anybody was asked, the firmware says as much on Nitro. */
static void put_known(json_t *node, const Root *root, const char *key, const char *value, const char *path) {
        _cleanup_(freep) char *read = NULL;
        if (!value && !json_object_get(node, key) && path && root_read_line(root, path, &read) >= 0)
                value = read;
        if (value && *value)
                json_object_set_new(node, key, text_json(value));
}

/* What an earlier run of this boot knew, this one may not have come to. */
static json_t *node_json(const Root *root, const Report *r, const json_t *old) {
        const json_t *before = json_object_get(old, "node");
        json_t *node = json_is_object(before) ? json_copy((json_t *)before) : json_object();
        _cleanup_(freep) char *host = status_host(root);
        put_known(node, root, "host", host, NULL);
        put_known(node, root, "instanceId", r->instance_id, "/sys/devices/virtual/dmi/id/board_asset_tag");
        put_known(node, root, "instanceType", r->instance_type, "/sys/devices/virtual/dmi/id/product_name");
        put_known(node, root, "region", r->region, NULL);
        put_known(node, root, "cluster", r->config ? r->config->cluster.name : NULL, NULL);
        put_known(node, root, "name", r->node, NULL);
        return node;
}

/* By a clock that may have been set since the kernel started. */
static char *booted_at(void) {
        struct timespec since;
        clock_gettime(CLOCK_BOOTTIME, &since);
        return time_text(time(NULL) - since.tv_sec);
}

json_t *status_make(const Root *root, const Report *report, const Verdict *v, uint64_t end_usec) {
        static const char *const copied[] = { "verdict", "code", "exit", "step", "text", "planId" };
        _cleanup_(freep) char *boot_id = NULL, *booted = booted_at();
        (void)!root_boot_id(root, &boot_id);
        _cleanup_(json_decrefp) json_t *old = old_read(root, boot_id ?: "");
        json_t *status = json_object(), *run = run_json(report, v, end_usec);
        json_t *runs = runs_kept(old, report->phases);
        json_object_set_new(runs, report->phases, run);
        json_t *overall = overall_find(runs, run);

        json_object_set_new(status, "version", json_string(VERSION));
        json_object_set_new(status, "bootId", text_json(boot_id ?: ""));
        json_object_set_new(status, "bootedAt", json_string(booted));
        json_object_set_new(status, "node", node_json(root, report, old));
        for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
                json_object_set(status, copied[i], json_object_get(overall, copied[i]));
        found_put(status, runs);
        critical_put(status, runs);
        json_object_set_new(status, "runs", runs);
        phases_put(status, NULL);
        longest_put(status);
        next_put(status);
        return status;
}
