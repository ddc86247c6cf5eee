/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap status`: what the last boot did, for people, for machines, drawn, or with all around it. */
#include "commands/bundle.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/run.h"

#include "report/draw.h"
#include "report/show.h"
#include "report/status.h"

#include <errno.h>

int command_status(Run *run) {
        _cleanup_(json_decrefp) json_t *status = NULL;
        Diag *diag = &run->diag;
        if (run->options.bundle)
                return status_bundle(run);
        int r = status_read(run->root, &status);
        if (r == -ENOENT)
                return diag_error(diag, r, CAUSE_USAGE,
                                  "there is no " REPORT_STATUS
                                  ": nodestrap init has not run since this machine booted");
        if (r == -EACCES)
                return diag_error(diag, r, CAUSE_FILE,
                                  REPORT_STATUS " is for root and who may read the journal: sudo nodestrap "
                                                "status, or be of the group systemd-journal");
        if (r < 0)
                return diag_error(diag, r, CAUSE_FILE, REPORT_STATUS " cannot be shown: %s", strerror(-r));
        if (run->options.output == OUTPUT_JSON)
                return output_json(status, NULL, diag);
        if (run->options.output == OUTPUT_SVG) {
                _cleanup_(freep) char *drawing = status_draw(status);
                return output_text(drawing, diag);
        }
        output_begin();
        status_show(status);
        return output_end(diag);
}
