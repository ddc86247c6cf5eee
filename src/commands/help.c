/* SPDX-License-Identifier: Apache-2.0
 * The texts of help and version. */
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/run.h"

#include <stdio.h>

#ifndef COMMIT
#define COMMIT ""                       /* nothing says it: an unpacked release, built by hand */
#endif

int command_help(Run *run) {
        output_begin();
        options_print_help(&run->options, &command_table);
        return output_end(&run->diag);
}

/* As nodeadm there is one form, which scripts may read. */
int command_version(Run *run) {
        bool ours = run->options.name == PROGRAM_NODESTRAP;
        if (ours && run->options.output == OUTPUT_JSON) {
                _cleanup_(json_decrefp) json_t *version =
                        json_pack("{ss ss*}", "version", VERSION, "commit", *COMMIT ? COMMIT : NULL);
                return output_json(version, NULL, &run->diag);
        }
        return output_text(ours && *COMMIT && !streq(COMMIT, VERSION) ? "nodestrap " VERSION " (" COMMIT ")\n"
                                                                      : "nodestrap " VERSION "\n",
                           &run->diag);
}
