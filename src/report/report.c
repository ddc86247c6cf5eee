/* SPDX-License-Identifier: Apache-2.0
 * A run → one verdict and its destinations. */
#include "report/report.h"

#include "base/log.h"
#include "base/progress.h"
#include "base/time.h"
#include "report/event.h"
#include "report/status.h"

#include <stdio.h>

static bool went_well(const Result *r) {
        return r && (r->outcome == OUTCOME_DONE || r->outcome == OUTCOME_UNCHANGED);
}

static const Result *result_of(const Results *r, ActionType type, const char *target) {
        return FIND(one, r->items, r->n,
                    one->action->type == type && streq(one->action->target ?: "", target));
}

const Result *report_result(const Report *report, ActionType type, const char *target) {
        return report->results ? result_of(report->results, type, target) : NULL;
}

bool report_did(const Report *report, ActionType type, const char *target) {
        return went_well(report_result(report, type, target));
}

/* failurePolicy join-tainted: only steps that the taint covers failed, the taint is written, and kubelet
 * runs with it. */
static bool is_tolerated(const Results *r) {
        const Result *taint = result_of(r, ACTION_MARK_NODE, TAINT_FILE),
                     *kubelet = result_of(r, ACTION_START_UNIT, "kubelet.service");
        if (!went_well(taint) || !*json_get_text(taint->found, "taint") || !went_well(kubelet))
                return false;
        return !ANY(one, r->items, r->n,
                    one->outcome == OUTCOME_FAILED &&
                            !strv_contains(taint->action->after_any, one->action->id));
}

/* If the policy tolerates it but the taint failed, the message has both. */
static char *failure_text(const Results *r, const Result *failed) {
        const Result *node = result_of(r, ACTION_CHECK_NODE, TAINT_KEY);
        const char *text = failed->text ?: "";
        size_t first = strcspn(text, "\n");
        if (!node || node == failed || node->outcome != OUTCOME_FAILED)
                return xstrdup(text);
        return xasprintf("%.*s; and the node cannot join with a taint: %s%s", (int)first, text,
                         node->text ?: "", text + first);
}

/* An error before any phase counts for the first one; a disk error, for the run. */
static const char *phase_of_error(const char *phases, ExitCode code) {
        int first = code == EXIT_STORAGE && phases && strstr(phases, "run") ? PHASE_RUN : 0;
        for (int i = first; i < _PHASE_MAX; i++)
                if (phases && strstr(phases, phase_to_string((Phase)i)))
                        return phase_to_string((Phase)i);
        return NULL;
}

static Verdict verdict_make(const Report *report) {
        const Result *failed = report->results ? results_first_failure(report->results) : NULL,
                     *pool = report_result(report, ACTION_CHECK_POOL, POOL_CHECK);
        const Diagnostic *error = diag_first_error(report->diag);
        Cause cause = failed ? failed->cause : error ? error->cause : CAUSE_NONE;
        Verdict v = { .word = failed || error ? "failed" : "ok", .code = cause_word(cause),
                      .exit_code = cause_exit_code(cause) };
        if (failed) {
                v.tolerated = is_tolerated(report->results);
                v.word = v.tolerated ? "tainted" : "failed";
                v.step = failed->action->id;
                v.phase = phase_to_string(failed->action->phase);
                v.text = failure_text(report->results, failed);
        } else if (pool && pool->outcome == OUTCOME_SKIPPED && !error) {
                v.step = pool->action->id;
                v.text = xstrdup(pool->text);
        } else if (error) {
                v.step = report->step ?: "start";
                v.phase = phase_of_error(report->phases, v.exit_code);
                v.text = diagnostic_format(error);
        }
        if (report->internal && v.exit_code != EXIT_DONE)
                v.exit_code = EXIT_INTERNAL;
        return v;
}

static char *last_line(const Verdict *v, const Report *report, double seconds) {
        const Results *r = report->results;
        if (v->exit_code != EXIT_DONE) {
                size_t errors = diag_count(report->diag, false);
                _free_ char *more =
                        errors > 1 ? xasprintf(" (the first of %zu errors)", errors) : xstrdup("");
                return xasprintf("nodestrap: %s (%d %s) at %s: %.*s%s", v->word, (int)v->exit_code, v->code,
                                 v->step, (int)strcspn(v->text ?: "", "\n"), v->text ?: "", more);
        }
        size_t done = r ? results_count(r, OUTCOME_DONE) : 0,
               unchanged = r ? results_count(r, OUTCOME_UNCHANGED) : 0;
        size_t skipped = r ? results_count(r, OUTCOME_SKIPPED) : 0;
        _free_ char *left_out = skipped > 0 ? xasprintf(", %zu skipped", skipped) : xstrdup("");
        if (v->text)
                return xasprintf("nodestrap: ok: %s", v->text);
        if (done + unchanged == 0)
                return xasprintf("nodestrap: ok: nothing to do%s (%s, %.2f s)", left_out, report->phases,
                                 seconds);
        if (done == 0)
                return xasprintf(
                        "nodestrap: ok: nothing to change, %zu unchanged%s (%s, %.2f s)",
                        unchanged, left_out, report->phases, seconds);
        return xasprintf("nodestrap: ok: %zu done, %zu unchanged%s (%s, %.2f s)", done, unchanged, left_out,
                         report->phases, seconds);
}

static void files_write(const Root *root, const char *status, const char *metrics) {
        int r = root_replace_volatile(root, REPORT_STATUS, status, strlen(status), REPORT_MODE);
        if (r >= 0)
                r = root_replace_volatile(root, REPORT_METRICS, metrics, strlen(metrics), 0644);
        if (r < 0)
                (void)log_line_errno(LOG_WARNING, r, REPORT_STATUS " and metrics.prom beside it are out of "
                                                                   "date, because nodestrap cannot write "
                                                                   "them");
}

void report_tell(const Diag *diag) {
        size_t errors = diag_count(diag, false);
        for (size_t i = 0; i < diag->n; i++) {
                const Diagnostic *item = &diag->items[i];
                if (!item->warning && errors == 1 && !item->excerpt)
                        continue;
                _free_ char *line = diagnostic_format(item);
                line[strcspn(line, "\n")] = 0;  /* without output of a program or unit */
                if (item->excerpt)
                        dprintf(STDERR_FILENO, "%s\n%s", line, item->excerpt);
                else
                        log_line(item->warning ? LOG_WARNING : LOG_ERR, "%s", line);
        }
}

ExitCode report_tell_failure(const Report *report) {
        Verdict v = verdict_make(report);
        _free_ char *last = last_line(&v, report, 0);
        verdict_tell(&v, last);
        free(v.text);
        return v.exit_code;
}

ExitCode report_write(const Root *root, const Report *given) {
        Report report = *given;
        uint64_t end_usec = now_usec();
        double seconds = (double)(end_usec - report.begin_usec) / USEC_PER_SEC;
        Verdict v = verdict_make(&report);
        report.phases = report.phases ?: "config,devices,run";

        _cleanup_(close_fd) int lock = status_lock(root);
        _cleanup_(status_done) Status status = {};
        status_make(root, &report, &v, end_usec, &status);
        _free_ char *text = json_dumps(status.json, JSON_INDENT(1)),
                    *metrics = metrics_make(&status, false);
        _free_ char *console = xasprintf("NODESTRAP verdict=%s code=%s step=%s t=%.1fs plan=%s phases=%s",
                                         v.word, v.code, v.step ?: "-", seconds,
                                         report.plan ? report.plan->id : "-", report.phases),
                    *last = last_line(&v, &report, seconds);
        /* of the runs so far */
        bool well = status.exit == EXIT_DONE;
        if (report.plan)
                report_tell(&report.plan->warnings);
        report_tell(report.diag);
        files_write(root, text, metrics);
        close_fd(&lock);
        progress_note(root, "end", v.word);
        event_of_run(root, &report, &v, well);
        condition_of_run(root, &status);
        if (root_is_host(root))
                verdict_announce(&v, report.phases, report.plan ? report.plan->id : "", seconds, console);
        verdict_tell(&v, last);
        free(v.text);
        return v.tolerated ? EXIT_DONE : v.exit_code;
}
