/* SPDX-License-Identifier: Apache-2.0
 * Report → status.json. Two processes of a boot may end at the same time: each replaces its own part of
 * the file. "runs" is in the order of their ends. There are no secrets here: texts name paths and units,
 * not contents. */
#include "report/status.h"

#include "base/json.h"
#include "base/lock.h"
#include "base/time.h"
#include "report/report.h"

#include <errno.h>
#include <sys/utsname.h>
#include <time.h>

#define LOCK_USEC (5 * USEC_PER_SEC)  /* then it writes without the lock */

const char status_phases[7][19] = {
        "config", "config,devices", "config,devices,run", "config,run", "devices", "devices,run", "run",
};

static json_t *result_json(const Result *r) {
        _cleanup_(json_decrefp) json_t *any = json_list(r->action->after_any);
        json_t *after = json_list(r->action->after);
        json_array_extend(after, any);
        return json_pack("{so ss ss sI sI so so* ss* sO*}", "id", text_json(r->action->id), "phase",
                         phase_to_string(r->action->phase), "outcome", outcome_to_string(r->outcome),
                         "beginUsec", (json_int_t)r->begin_usec, "endUsec", (json_int_t)r->end_usec, "after",
                         after, "text", r->text ? text_json(r->text) : NULL, "code",
                         r->outcome == OUTCOME_FAILED ? cause_word(r->cause) : NULL, "found", r->found);
}

/* seen: planner and stages may repeat a message. */
static void diag_put(json_t *list, json_t *seen, const Diag *diag, bool warnings) {
        for (size_t i = 0; i < diag->n; i++) {
                if (diag->items[i].warning != warnings)
                        continue;
                _free_ char *line = diagnostic_format(&diag->items[i]);
                if (!json_object_get(seen, line))
                        json_array_append_new(list, text_json(line));
                json_object_set_new_nocheck(seen, line, json_true());
        }
}

static json_t *run_json(const Report *report, const Verdict *v, uint64_t end_usec) {
        json_t *run = json_pack("{so so}", "command", text_json(report->command), "phases",
                                text_json(report->phases)),
               *actions = json_array(), *warnings = json_array(), *errors = json_array();
        _cleanup_(json_decrefp) json_t *seen = json_object(), *rest = NULL;
        _free_ char *when = verdict_time();

        verdict_put(run, v, report->plan ? report->plan->id : NULL);
        for (size_t i = 0; report->results && i < report->results->n; i++)
                json_array_append_new(actions, result_json(&report->results->items[i]));
        if (report->plan)
                diag_put(warnings, seen, &report->plan->warnings, true);
        diag_put(warnings, seen, report->diag, true);
        diag_put(errors, seen, report->diag, false);
        rest = json_pack("{ss* si ss sI sI s{si si} so so so}", "phase", v->phase, "tries",
                         (int)report->tries, "endedAt", when, "beginUsec", (json_int_t)report->begin_usec,
                         "endUsec", (json_int_t)end_usec, "requests", "imds", (int)report->imds_requests,
                         "ec2", (int)report->ec2_requests, "errors", errors, "warnings", warnings, "actions",
                         actions);
        json_object_update(run, rest);
        return run;
}

int status_lock(const Root *root) {
        _cleanup_(diag_done) Diag ignored = {};
        return lock_take(root, RUN_DIR "/status.lock", now_usec() + LOCK_USEC, &ignored);
}

static bool phases_have(const char *phases, int phase) {
        return strstr(phases, phase_to_string((Phase)phase));
}

/* A run replaces runs with the same phases or fewer. The devices phase stays beside the run phase, which
 * found most of it done. */
static bool is_replaced(const char *phases, const char *by) {
        if (streq(phases, "devices") && streq(by, "devices,run"))
                return false;
        for (int i = 0; i < _PHASE_MAX; i++)
                if (phases_have(phases, i) && !phases_have(by, i))
                        return false;
        return true;
}

/* The runs of other phases. */
static json_t *runs_kept(const json_t *old, const char *phases) {
        json_t *runs = json_object(), *run;
        const char *key;
        json_object_foreach(json_object_get(old, "runs"), key, run) {
                if (!is_replaced(key, phases))
                        json_object_set(runs, key, run);
        }
        return runs;
}

/* The first failure of the boot, in the order of the phases ("config" sorts before "run"), else what taints
 * the node. A phase that a later run repeated is judged by that run. */
static const char *overall_find(const Status *s, const char *own) {
        static const char *const words[] = { "failed", "tainted" };
        for (size_t w = 0; w < ARRAY_SIZE(words); w++)
                for (size_t i = 0; i < ARRAY_SIZE(status_phases); i++) {
                        const StatusRun *run = status_run(s, status_phases[i]);
                        const StatusRun *last = run && *run->phase ? status_last(s, run->phase) : NULL;
                        if (run && streq(run->verdict, words[w]) && (!last || last == run))
                                return run->phases;
                }
        return own;
}

const char status_version[] = VERSION;

const StatusJoin *status_not_joined(const Status *s) {
        return s->joined && streq(s->joined->verdict, "failed") && streq(s->verdict, "ok") ? s->joined : NULL;
}

const char *status_pool(const Status *s) {
        return streq(s->verdict, "ok") && startswith(s->step, "check-pool:") ? s->text : NULL;
}

bool join_lacks_devices(const StatusJoin *joined) {
        return streq(joined->code, cause_word(CAUSE_DEVICES));
}

void status_count(const Status *s, size_t counts[static OUTCOME_FAILED + 1]) {
        _cleanup_(json_decrefp) json_t *outcomes = json_object();       /* the last outcome of each id */
        const char *id;
        json_t *outcome;
        for (const StatusRun *run = s->runs; run && run->phases; run++)
                for (const StatusAction *a = run->actions; a && a->id; a++) {
                        bool did = streq(json_get_text(outcomes, a->id), outcome_to_string(OUTCOME_DONE));
                        if (!did || !streq(a->outcome, outcome_to_string(OUTCOME_UNCHANGED)))
                                json_object_set_new(outcomes, a->id, json_string(a->outcome));
                }
        json_object_foreach(outcomes, id, outcome)
                counts[MAX(outcome_from_string(json_string_value(outcome)), 0)]++;
}

char *status_host(const Root *root) {
        struct utsname name;
        char *host = NULL;
        if (root_is_host(root) && uname(&name) == 0)
                return xstrdup(name.nodename);
        return root_read_line(root, "/etc/hostname", &host) >= 0 ? host : xstrdup("");
}

/* On Nitro the firmware knows this before EC2 answers. */
static void put_known(json_t *node, const Root *root, const char *key, const char *value, const char *path) {
        _free_ char *read = NULL;
        if (!value && !json_object_get(node, key) && path && root_read_line(root, path, &read) >= 0)
                value = read;
        if (value && *value)
                json_object_set_new(node, key, text_json(value));
}

/* Keeps what an earlier run of this boot knew. */
static json_t *node_json(const Root *root, const Report *r, const json_t *old) {
        const json_t *before = json_object_get(old, "node");
        json_t *node = json_is_object(before) ? json_copy((json_t *)before) : json_object();
        _free_ char *host = status_host(root);
        put_known(node, root, "host", host, NULL);
        put_known(node, root, "instanceId", r->instance_id, "/sys/devices/virtual/dmi/id/board_asset_tag");
        put_known(node, root, "instanceType", r->instance_type, "/sys/devices/virtual/dmi/id/product_name");
        put_known(node, root, "region", r->region, NULL);
        put_known(node, root, "cluster", r->config ? r->config->cluster.name : NULL, NULL);
        put_known(node, root, "name", r->node, NULL);
        return node;
}

void status_make(const Root *root, const Report *report, const Verdict *v, uint64_t end_usec, Status *ret) {
        static const char copied[][8] = { "verdict", "code", "exit", "step", "text", "planId", "phase" };
        struct timespec since;
        clock_gettime(CLOCK_BOOTTIME, &since);
        /* the clock may have been set since the kernel started */
        _free_ char *boot_id = NULL, *booted = time_text(time(NULL) - since.tv_sec);
        _cleanup_(status_done) Status old = {}, parts = {};
        (void)!root_boot_id(root, &boot_id);
        bool same = status_read(root, &old) >= 0 && streq(old.boot_id, boot_id ?: "");
        const json_t *before = same ? old.json : NULL;
        json_t *status = json_pack("{ss so ss so}", "version", status_version, "bootId",
                                   text_json(boot_id ?: ""), "bootedAt", booted, "node",
                                   node_json(root, report, before)),
               *runs = runs_kept(before, report->phases);
        json_t *run = run_json(report, v, end_usec);
        const StatusRun *devices = before ? status_run(&old, "devices") : NULL;
        /* a process that fails before its first step does not fail a devices phase that was ok */
        if (!report->results && v->phase && streq(report->phases, "devices,run") && devices &&
            streq(devices->verdict, "ok"))
                json_object_set_new(run, "phase", json_string("run"));
        json_object_set_new(runs, report->phases, run);
        status_take(&parts, json_pack("{sO}", "runs", runs));
        json_t *overall = json_object_get(runs, overall_find(&parts, report->phases));

        for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
                json_object_set(status, copied[i], json_object_get(overall, copied[i]));
        found_put(status, &parts);
        critical_put(status, &parts);
        json_object_set_new(status, "runs", runs);
        status_take(ret, status);
        phases_put(ret, NULL);
        longest_put(ret);
        next_put(ret);
}
