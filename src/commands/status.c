/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap status`: what this boot did and is doing, for people, for machines, drawn, or with all around
 * it. */
#include "commands/bundle.h"
#include "commands/commands.h"
#include "commands/follow.h"
#include "commands/output.h"
#include "commands/run.h"

#include "base/json.h"
#include "report/metrics.h"
#include "report/outlook.h"
#include "report/status-svg.h"
#include "report/status-text.h"
#include "report/status.h"

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
