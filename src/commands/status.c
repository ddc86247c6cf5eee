/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap status`: what this boot did and is doing, for people, for machines, drawn, or with all around
 * it. */
#include "commands/bundle.h"
#include "commands/commands.h"
#include "commands/follow.h"
#include "commands/outlook.h"
#include "commands/output.h"
#include "commands/run.h"

#include "base/json.h"
#include "report/draw.h"
#include "report/metrics.h"
#include "report/show.h"
#include "report/status.h"

#include <errno.h>

static bool is_idle(const Ongoing *ongoing) {
        for (size_t i = 0; i < _ONGOING_MAX; i++)
                if (ongoing->units[i] != UNIT_IDLE)
                        return false;
        return json_array_size(ongoing->processes) == 0;
}

/* Another boot's phases say nothing of this one's. */
static bool is_of_this_boot(const Root *root, const json_t *status) {
        _cleanup_(freep) char *boot_id = NULL;
        return !root_is_host(root) || root_boot_id(root, &boot_id) < 0 ||
               streq(json_get_text(status, "bootId"), boot_id);
}

static int refuse(int r, Diag *diag) {
        if (r == -ENOENT)
                return diag_error(diag, r, CAUSE_USAGE,
                                  "there is no " REPORT_STATUS
                                  ": nodestrap init has not run since this machine booted");
        if (r == -EACCES)
                return diag_error(diag, r, CAUSE_FILE,
                                  REPORT_STATUS " is for root and who may read the journal: sudo nodestrap "
                                                "status, or be of the group systemd-journal");
        return diag_error(diag, r, CAUSE_FILE, REPORT_STATUS " cannot be shown: %s", strerror(-r));
}

int status_now(const Root *root, bool any, json_t **ret, Diag *diag) {
        _cleanup_(ongoing_done) Ongoing ongoing = {};
        int r = status_read(root, ret);
        outlook_ongoing(root, &ongoing);
        if (r == -ENOENT && (any || !is_idle(&ongoing)))
                *ret = json_pack("{ss}", "version", VERSION);
        else if (r < 0)
                return refuse(r, diag);
        phases_put(*ret, is_of_this_boot(root, *ret) ? &ongoing : NULL);
        next_put(*ret);
        return 0;
}

ExitCode status_exit(const json_t *status) {
        const char *verdict = json_get_text(status, "verdict");
        if (streq(verdict, "ok") || streq(verdict, "tainted"))
                return EXIT_DONE;
        if (!streq(verdict, "failed"))
                return EXIT_UNFINISHED;
        int64_t code = status_number(status, "exit");
        return code > 0 && code < 128 ? (ExitCode)code : EXIT_INTERNAL;
}

static int status_print(const Options *o, const json_t *status, Diag *diag) {
        if (o->output == OUTPUT_JSON)
                return output_json(status, NULL, diag);
        if (o->output == OUTPUT_SVG || o->output == OUTPUT_METRICS) {
                _cleanup_(freep) char *text =
                        o->output == OUTPUT_SVG ? status_draw(status) : metrics_make(status, true);
                return output_text(text, diag);
        }
        output_begin();
        status_show(status);
        return output_end(diag);
}

int command_status(Run *run) {
        _cleanup_(json_decrefp) json_t *status = NULL;
        if (run->options.bundle)
                return status_bundle(run);
        if (run->options.follow)
                return status_follow(run);
        int r = status_now(run->root, false, &status, &run->diag);
        if (r >= 0)
                r = status_print(&run->options, status, &run->diag);
        if (r >= 0 && run->options.exit_code) {
                run->reported = true;
                run->exit_code = status_exit(status);
        }
        return r;
}
