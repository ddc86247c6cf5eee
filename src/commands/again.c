/* SPDX-License-Identifier: Apache-2.0
 * Phases of a unit that failed by a cause that may pass → the same phases again. One process keeps the
 * metadata and the count of its requests. A command by hand and nodeadm units have one try. */
#include "commands/run.h"
#include "commands/sources.h"

#include "apply/apply.h"
#include "aws/aws.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "report/report.h"

#include <errno.h>

#define TRIES        3
#define PAUSE_USEC   (3 * USEC_PER_SEC)         /* thousands of nodes may have the same trouble */
#define PAUSE_CAP    (30 * USEC_PER_SEC)
/* No try begins later than this. The units set no limit (TimeoutStartSec=infinity). */
#define LAST_USEC    (600 * USEC_PER_SEC)
/* In all, while EC2 does not answer (tests/unit/test-fleet.c). */
#define EC2_REQUESTS 3
#define CLOUD_INIT   "/run/cloud-init/status.json"
#define CLOUD_MAX    (1 << 20)

/* The network stage of cloud-init runs the first user scripts. They may change files of the configuration
 * phase. A status that cannot be read counts as begun. */
static bool scripts_have_begun(const Root *root) {
        _free_ char *text = NULL;
        size_t size = 0;
        int r = root_read(root, CLOUD_INIT, CLOUD_MAX, &text, &size);
        _cleanup_(json_decrefp) json_t *json = r >= 0 ? json_loadb(text, size, 0, NULL) : NULL;
        json_t *stage = json_object_get(json_object_get(json, "v1"), "init");
        return r != -ENOENT && !json_is_null(json_object_get(stage, "start"));
}

/* Would a next try with as many EC2 requests exceed the limit? A known host needs none. */
static bool asks_too_often(const Run *run, size_t tries) {
        return !run->host && ec2_requests() * (tries + 1) > EC2_REQUESTS * tries;
}

static bool may_pass(const Run *run, int error) {
        const Diag *d = &run->diag;
        return diag_first_error(d) &&
               !ANY(i, d->items, d->n, !i->warning && !cause_passes(i->cause, error));
}

/* EC2 now has another name for the node. No file has it yet, and the next try may not ask. */
static bool corrects_name(const Run *run) {
        return run->host && run->host->name_before &&
               !streq(run->host->name_before, run->host->instance.private_dns_name ?: "");
}

static bool is_allowed(const Run *run, int error) {
        const Options *o = &run->options;
        size_t tries = run->tried.n + 1;
        return run_changes_machine(run) && o->name == PROGRAM_NODESTRAP && verdict_is_of_unit() &&
               !corrects_name(run) && tries < TRIES && may_pass(run, error) && !asks_too_often(run, tries) &&
               (o->skip_config || !scripts_have_begun(run->root)) &&
               root_exists(run->root, KUBELET_TURN) == 0; /* else pods may run here */
}

/* The next try need not ask for these facts. A corrected name is in no file yet. */
static void keep_host(Run *run) {
        Kept *kept = &run->sources->kept;
        if (!run->host || run->host->name_before)
                return;
        json_decref(kept->status);
        kept->status = host_status(run->host);
        spec_digest(json_object_get(run->config->document, "spec"), kept->spec);
}

/* As before the sources were read, except threads stuck in the kernel. */
static void start_over(Run *run) {
        Imds *imds = TAKE_PTR(run->imds);
        keep_host(run);
        run_release_locks(run);
        run->threads_left += run->results->threads_left;
        results_done(run->results);
        run->plan = plan_free(run->plan);
        run->host = host_free(run->host);
        json_decref(TAKE_PTR(run->cached_status));
        run_forget_config(run);
        run->imds = imds;
        imds_renew(imds, 0);
        run->applied = false;
}

bool run_again(Run *run, int error) {
        if (error == -EINTR || stop_signal() || !is_allowed(run, error))
                return false;
        run->pause_usec = backoff_apart_usec(run->pause_usec, PAUSE_USEC, PAUSE_CAP);
        if (now_usec() + run->pause_usec > run->begin_usec + LAST_USEC)
                return false;
        hide_in_run(run);
        const Diagnostic *why = diag_first_error(&run->diag);
        _free_ char *line = diagnostic_format(why);
        _free_ char *text = xasprintf("attempt %zu of %d failed (%s) at %s: %.*s", run->tried.n + 1, TRIES,
                                      cause_word(why->cause), run->step, (int)strcspn(line, "\n"), line);
        log_warning("%s; the next attempt begins in %.0f s.", text, usec_seconds(run->pause_usec));
        sleep_usec(run->pause_usec);
        if (stop_signal())
                return false;
        diag_warn(&run->tried, "tried-again", "%s", text);
        start_over(run);
        return true;
}
