/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap status`: what this boot did and is doing, as text, JSON, picture, metrics or bundle. */
#include "commands/output.h"
#include "commands/run.h"

#include "report/status.h"

static int status_print(Run *run, const Status *status) {
        const Options *o = &run->options;
        Diag *diag = &run->diag;
        if (o->output == OUTPUT_JSON)
                return output_json(status->json, NULL, diag);
        if (o->output == OUTPUT_SVG || o->output == OUTPUT_METRICS) {
                _free_ char *text =
                        o->output == OUTPUT_SVG ? status_draw(status) : metrics_make(status, true);
                return output_text(text, diag);
        }
        output_begin();
        status_show(run->root, status, o->whole);
        return output_end(diag);
}

int command_status(Run *run) {
        _cleanup_(status_done) Status status = {};
        if (run->options.bundle)
                return status_bundle(run);
        if (run->options.follow)
                return status_follow(run);
        int r = status_now(run->root, false, &status, &run->diag);
        THEN(r, status_print(run, &status));
        if (r >= 0 && run->options.exit_code) {
                run->reported = true;
                run->exit_code = status_exit(&status);
        }
        return r;
}
