/* SPDX-License-Identifier: Apache-2.0
 * What happened → status.json, metrics.prom, a journal entry with fields, a line on the console and the last
 * line on stderr. The two phases of a boot are two processes: each replaces its own part of status.json and
 * keeps the other's. Nothing here can hold a secret: texts name paths and units, never contents. */
#include "report.h"
#include "report-found.h"

#include "base/log.h"
#include "base/json.h"
#include "base/str.h"
#include "base/time.h"
#include "verdict.h"

#include <errno.h>
#include <jansson.h>

static bool went_well(const Result *r) {
        return r && (r->outcome == OUTCOME_DONE || r->outcome == OUTCOME_UNCHANGED);
}

static const Result *result_of(const Results *r, ActionType type, const char *target) {
        for (size_t i = 0; i < r->n; i++)
                if (r->items[i].action->type == type && streq(r->items[i].action->target, target))
                        return &r->items[i];
        return NULL;
}

/* failurePolicy: join-tainted: nothing failed but what the taint is for, it was written, and kubelet runs
 * with it. */
static bool is_tolerated(const Results *r) {
        const Result *taint = result_of(r, ACTION_TAINT_NODE, TAINT_FILE),
                     *kubelet = result_of(r, ACTION_START_UNIT, "kubelet.service");
        if (!went_well(taint) || !taint->found || !went_well(kubelet))
                return false;
        for (size_t i = 0; i < r->n; i++)
                if (r->items[i].outcome == OUTCOME_FAILED &&
                    !strv_contains(taint->action->after_any, r->items[i].action->id))
                        return false;
        return true;
}

static Verdict verdict_make(const Report *report) {
        const Result *failed = report->results ? results_first_failure(report->results) : NULL;
        const Diagnostic *error = diag_first_error(report->diag);
        bool tolerated = failed && is_tolerated(report->results);
        if (failed)
                return (Verdict){ tolerated ? "tainted" : "failed",
                                  cause_word(failed->cause),
                                  cause_exit_code(failed->cause),
                                  failed->action->id,
                                  xstrdup(failed->text),
                                  tolerated };
        if (error)
                return (Verdict){ "failed",
                                  cause_word(error->cause),
                                  cause_exit_code(error->cause),
                                  report->step ?: "start",
                                  diagnostic_format(error),
                                  false };
        return (Verdict){ "ok", cause_word(CAUSE_NONE), EXIT_DONE, NULL, NULL, false };
}

/* ---- status.json ---- */

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

/* The other phases' parts of this boot's status; of another boot nothing. */
static json_t *runs_read(const Root *root, const char *boot_id, const char *phases) {
        _cleanup_(freep) char *text = NULL;
        json_t *runs = json_object(), *run;
        const char *key;
        size_t size = 0;
        if (root_read(root, REPORT_STATUS, REPORT_MAX, &text, &size) < 0)
                return runs;
        json_t *old = json_loadb(text, size, 0, NULL);
        const char *old_boot = json_string_value(json_object_get(old, "bootId"));
        if (old_boot && streq(old_boot, boot_id)) {
                json_object_foreach(json_object_get(old, "runs"), key, run) {
                        if (!phases_overlap(key, phases))
                                json_object_set(runs, key, run);
                }
        }
        json_decref(old);
        return runs;
}

static bool verdict_is(const json_t *run, const char *word) {
        const char *verdict = json_string_value(json_object_get(run, "verdict"));
        return verdict && streq(verdict, word);
}

/* Of the whole boot: the first failure, in the order of the phases ("config" sorts before "run"); else what
 * taints the node. */
static json_t *overall_find(json_t *runs, json_t *own) {
        static const char *const order[] = { "config", "config,run", "run" }, *const words[] = { "failed",
                                                                                                 "tainted" };
        for (size_t w = 0; w < ARRAY_SIZE(words); w++)
                for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                        if (verdict_is(json_object_get(runs, order[i]), words[w]))
                                return json_object_get(runs, order[i]);
        return own;
}

static json_t *status_make(const Root *root, const Report *report, const Verdict *v, uint64_t end_usec) {
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

/* ---- metrics.prom: github.com/prometheus/docs, exposition formats, text ---- */

static char *label_escape(const char *value) {
        Text t = {};
        for (; *value; value++)
                if (*value == '\n')
                        text_add(&t, "\\n");
                else
                        text_add(&t, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
        return text_take(&t);
}

static double seconds_of(const json_t *object) {
        json_int_t begin = json_integer_value(json_object_get(object, "beginUsec")),
                   end = json_integer_value(json_object_get(object, "endUsec"));
        return begin > 0 && end > begin ? (double)(end - begin) / USEC_PER_SEC : 0;
}

void metric_head(Text *t, const char *name, const char *help) {
        text_add(t, "# HELP nodestrap_%s %s\n# TYPE nodestrap_%s gauge\n", name, help, name);
}

static void metrics_verdict(Text *t, const json_t *status) {
        _cleanup_(freep) char *step = label_escape(json_get_text(status, "step"));
        metric_head(t, "verdict", "1 for the verdict of this boot");
        text_add(t, "nodestrap_verdict{verdict=\"%s\",code=\"%s\",step=\"%s\"} 1\n",
                 json_get_text(status, "verdict"), json_get_text(status, "code"), step);
        metric_head(t, "info", "version and plan of this boot");
        text_add(t, "nodestrap_info{version=\"%s\",plan=\"%s\"} 1\n", json_get_text(status, "version"),
                 json_get_text(status, "planId"));
        metric_head(t, "exit_code", "exit status of the root cause, 0 if there is none");
        text_add(t, "nodestrap_exit_code %lld\n",
                 (long long)json_integer_value(json_object_get(status, "exit")));
        metric_head(t, "tainted",
                    "1 where the node joins with a taint, because a step failed that its policy tolerates");
        text_add(t, "nodestrap_tainted %d\n", streq(json_get_text(status, "verdict"), "tainted"));
}

static void metrics_runs(Text *t, json_t *runs) {
        const char *phases, *name;
        json_t *run, *count;
        metric_head(t, "phase_duration_seconds", "time from the start of the process to its report");
        json_object_foreach(runs, phases, run) {
                text_add(t, "nodestrap_phase_duration_seconds{phase=\"%s\"} %.6f\n", phases, seconds_of(run));
        }
        metric_head(t, "requests", "requests sent, retries counted");
        json_object_foreach(runs, phases, run) {
                json_object_foreach(json_object_get(run, "requests"), name, count) {
                        text_add(t, "nodestrap_requests{phase=\"%s\",service=\"%s\"} %lld\n", phases, name,
                                 (long long)json_integer_value(count));
                }
        }
        metric_head(t, "warnings", "warnings about the input and the machine");
        json_object_foreach(runs, phases, run) {
                text_add(t, "nodestrap_warnings{phase=\"%s\"} %zu\n", phases,
                         json_array_size(json_object_get(run, "warnings")));
        }
}

static void metrics_actions(Text *t, json_t *runs) {
        size_t counts[OUTCOME_FAILED + 1] = {}, i;
        const char *phases;
        json_t *run, *action;
        metric_head(t, "action_duration_seconds", "how long each action took");
        json_object_foreach(runs, phases, run) {
                json_array_foreach(json_object_get(run, "actions"), i, action) {
                        int outcome = outcome_from_string(json_get_text(action, "outcome"));
                        _cleanup_(freep) char *id = label_escape(json_get_text(action, "id"));
                        counts[MAX(outcome, 0)]++;
                        if (outcome != OUTCOME_SKIPPED)
                                text_add(t, "nodestrap_action_duration_seconds{action=\"%s\"} %.6f\n", id,
                                         seconds_of(action));
                }
        }
        metric_head(t, "actions", "actions by outcome");
        for (i = OUTCOME_UNCHANGED; i < ARRAY_SIZE(counts); i++)
                text_add(t, "nodestrap_actions{outcome=\"%s\"} %zu\n", outcome_to_string((Outcome)i),
                         counts[i]);
}

static char *metrics_make(json_t *status) {
        Text t = {};
        json_t *runs = json_object_get(status, "runs");
        metrics_verdict(&t, status);
        metrics_runs(&t, runs);
        metrics_actions(&t, runs);
        found_metrics(&t, status);
        return text_take(&t);
}

/* ---- for people ---- */

static char *console_line(const Verdict *v, const Report *report, double seconds) {
        return xasprintf("NODESTRAP verdict=%s code=%s step=%s t=%.1fs plan=%s", v->word, v->code,
                         v->step ?: "-", seconds, report->plan ? report->plan->id : "-");
}

static char *last_line(const Verdict *v, const Report *report, double seconds) {
        const Results *r = report->results;
        if (v->exit_code != EXIT_DONE) {
                size_t errors = diag_count(report->diag, false);
                _cleanup_(freep) char *more =
                        errors > 1 ? xasprintf(" (the first of %zu errors)", errors) : xstrdup("");
                return xasprintf("nodestrap: %s (%d %s) at %s: %.*s%s", v->word, (int)v->exit_code, v->code,
                                 v->step, (int)strcspn(v->text ?: "", "\n"), v->text ?: "", more);
        }
        size_t done = r ? results_count(r, OUTCOME_DONE) : 0,
               unchanged = r ? results_count(r, OUTCOME_UNCHANGED) : 0;
        size_t skipped = r ? results_count(r, OUTCOME_SKIPPED) : 0;
        _cleanup_(freep) char *left_out = skipped > 0 ? xasprintf(", %zu skipped", skipped) : xstrdup("");
        if (done == 0)
                return xasprintf(
                        "nodestrap: ok: nothing to change, %zu of %zu actions were so already%s (%s, %.2f s)",
                        unchanged, r ? r->n : 0, left_out, report->phases, seconds);
        return xasprintf("nodestrap: ok: %zu done, %zu unchanged%s (%s, %.2f s)", done, unchanged, left_out,
                         report->phases, seconds);
}

/* A unit's last words, one by one, before the line that names the root cause. */
static void tell_details(const char *text) {
        for (const char *p = text ? strchr(text, '\n') : NULL; p; p = strchr(p + 1, '\n'))
                log_error("  | %.*s", (int)strcspn(p + 1, "\n"), p + 1);
}

/* ---- all of it ---- */

static void files_write(const Root *root, const char *status, const char *metrics) {
        int r = root_replace_volatile(root, REPORT_STATUS, status, strlen(status), 0644);
        if (r >= 0)
                r = root_replace_volatile(root, REPORT_METRICS, metrics, strlen(metrics), 0644);
        if (r < 0)
                (void)log_line_errno(
                        LOG_WARNING, r,
                        REPORT_STATUS
                        " and metrics.prom beside it are not up to date, as they cannot be written");
}

void report_tell(const Diag *diag) {
        size_t errors = diag_count(diag, false);
        for (size_t i = 0; i < diag->n; i++) {
                if (!diag->items[i].warning && errors == 1)
                        continue;
                _cleanup_(freep) char *line = diagnostic_format(&diag->items[i]);
                log_line(diag->items[i].warning ? LOG_WARNING : LOG_ERR, "%s", line);
        }
}

ExitCode report_tell_failure(const Report *report) {
        Verdict v = verdict_make(report);
        _cleanup_(freep) char *last = last_line(&v, report, 0);
        verdict_tell(&v, last);
        free(v.text);
        return v.exit_code;
}

ExitCode report_write(const Root *root, const Report *given) {
        Report report = *given;
        uint64_t end_usec = now_usec();
        double seconds = (double)(end_usec - report.begin_usec) / USEC_PER_SEC;
        Verdict v = verdict_make(&report);
        report.phases = report.phases ?: "config,run";

        json_t *status = status_make(root, &report, &v, end_usec);
        _cleanup_(freep) char *text = json_dumps(status, JSON_INDENT(1)), *metrics = metrics_make(status);
        _cleanup_(freep) char *console = console_line(&v, &report, seconds),
                              *last = last_line(&v, &report, seconds);
        json_decref(status);
        if (report.plan)
                report_tell(&report.plan->warnings);
        report_tell(report.diag);
        files_write(root, text, metrics);
        if (root_is_host(root))
                verdict_announce(&v, report.phases, report.plan ? report.plan->id : "", seconds, console);
        tell_details(v.text);
        verdict_tell(&v, last);
        free(v.text);
        return v.tolerated ? EXIT_DONE : v.exit_code;
}
