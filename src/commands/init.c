/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap init`: carries out the plan and keeps the facts for the next phase. */
#include "commands/run.h"
#include "commands/sources.h"

#include "apply/apply.h"
#include "base/json.h"
#include "base/log.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"
#include "report/event.h"
#include "report/status.h"

#define IMDS_USEC        (3 * USEC_PER_SEC)     /* for the name in an Event */
#define SYSTEMCTL_USEC   (10 * USEC_PER_SEC)
#define SYSTEMCTL_OUTPUT 4096

/* Without these facts the next phase asks again. */
static void keep_facts(Run *run) {
        _cleanup_(json_decrefp) json_t *status = host_status(run->host);
        Kept kept = { .answers = run->imds ? imds_answers(run->imds) : NULL, .status = status };

        spec_digest(json_object_get(run->config->document, "spec"), kept.spec);
        int r = kept_write(run->root, &kept);
        if (r < 0)
                log_debug("%s cannot be written: %s", KEPT_FILE, strerror(-r));
}

/* For status --bundle. */
static void keep_plan(const Run *run) {
        const Options *o = &run->options;
        const char *path = o->skip_run && !o->skip_config ? RUN_DIR "/plan-config.txt"
                           : o->skip_run                  ? RUN_DIR "/plan-devices.txt"
                           : o->skip_config               ? RUN_DIR "/plan-run.txt"
                                                          : RUN_DIR "/plan.txt";
        _free_ char *text = plan_to_text(run->plan);
        int r = root_replace_volatile(run->root, path, text, strlen(text), REPORT_MODE);
        if (r < 0)
                log_debug("%s cannot be written: %s", path, strerror(-r));
}

/* A node starts without a cache. An older cache must go, or a later phase would use it. */
static void write_cache(Run *run) {
        _cleanup_(json_decrefp) json_t *status = host_status(run->host);
        _cleanup_(diag_done) Diag ignored = {};
        if (config_cache_write(run->root, run->cache, run->config, status, &ignored) < 0) {
                (void)!root_remove(run->root, run->cache);
                log_warning("%s cannot be written; the next run reads its sources again.", run->cache);
        }
}

/* The units of two bootstrappers exclude each other. A person who types a command may not know that. */
static void warn_of_other(Run *run) {
        const char *own = run->options.name == PROGRAM_NODEADM ? "nodeadm" : "nodestrap";
        _free_ char *by = NULL;
        if (root_link_name(run->root, BOOTSTRAPPER_LINK, &by) < 0 || streq(by, own))
                return;
        diag_warn(&run->diag, "two-bootstrappers",
                  "the %s units configured the node in this boot (" BOOTSTRAPPER_LINK "), and this %s init "
                                                                                      "overwrites "
                  "their work; reboot to restore it",
                  by, own);
}

bool init_devices_failed(const Run *run) {
        _cleanup_(status_done) Status status = {};
        const Options *o = &run->options;
        if (o->skip_devices || o->skip_run || !root_is_host(run->root))
                return false;
        (void)!status_read(run->root, &status);
        const StatusRun *devices = status_run(&status, "devices");
        return !devices || !streq(devices->verdict, "ok");
}

void init_forgive_devices(void) {
        static char *const argv[] = { (char *)"systemctl", (char *)"reset-failed",
                                      (char *)"nodestrap-devices.service", NULL };
        _cleanup_(child_result_done) ChildResult result = {};
        int r = child_run(argv, SYSTEMCTL_USEC, SYSTEMCTL_OUTPUT, &result);
        if (r < 0 || result.status != 0)
                log_debug("nodestrap-devices.service stays failed");
}

void node_name_done(NodeName *n) {
        FREE_ALL(n->node, n->region, n->instance_id, n->instance_type);
        *n = (NodeName){};
}

/* Asks nothing if the service has not answered before. */
static Host *recall_host(const Run *run) {
        _cleanup_(imds_freep) Imds *imds = imds_new(IMDS_USEC);
        json_t *answers = run->imds ? imds_answers(run->imds) : NULL;
        if (json_object_size(answers) == 0)
                return NULL;
        imds_recall(imds, answers);
        return host_recall(run->config, imds);
}

void init_find_name(const Run *run, NodeName *ret) {
        _cleanup_(host_freep) Host *recalled = run->host ? NULL : recall_host(run);
        const Host *host = run->host ?: recalled;
        const char *name = !host                                      ? NULL
                           : run->config->gates.instance_id_node_name ? host->instance.id
                                                                      : host->instance.private_dns_name;
        *ret = (NodeName){ .node = xstrdup_or_null(name), .guessed = recalled && recalled->name_assumed };
        if (!host)
                return;
        ret->region = xstrdup_or_null(host->instance.region);
        ret->instance_id = xstrdup_or_null(host->instance.id);
        ret->instance_type = xstrdup_or_null(host->instance.type);
}

int command_init(Run *run) {
        int r = run_enter(run, "apply");
        if (r < 0)
                return r;
        r = signatures_keep(run->root, &run->sources->signatures, &run->diag);
        if (r < 0)
                return r;
        tell_signatures(run);
        log_info("Applying plan %s.", run->plan->id);
        condition_of_start(run->root);
        warn_of_other(run);
        /* A corrected name is kept once the files have it, so that a run that ends sooner asks again. */
        const char *before = run->host->name_before;
        bool corrected = before && !streq(before, run->host->instance.private_dns_name);
        if (!corrected)
                keep_facts(run);
        keep_plan(run);
        r = apply_plan(run->root, run->plan, run->results, &run->diag);
        run->applied = true;
        if (r >= 0 && corrected)
                keep_facts(run);
        if (r >= 0 && run->cache && (before || !run->options.skip_config))
                write_cache(run);
        return r;
}
