/* SPDX-License-Identifier: Apache-2.0
 * The texts of help and version. */
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/run.h"

#include "base/json.h"
#include "base/str.h"
#include "host/tables.h"

#include <stdio.h>

#ifndef COMMIT
#define COMMIT ""                       /* unknown: an unpacked release, built by hand */
#endif

int command_help(Run *run) {
        output_begin();
        options_print_help(&run->options, &command_table);
        return output_end(&run->diag);
}

/* The day alone; the rest of a line is for people. */
static json_t *ages(void) {
        json_t *all = json_object();
        _free_ char *copy = xstrdup(table_ages);
        for (char *rest = copy, *name; (name = strsep(&rest, " ")) && rest;) {
                char *line = strsep(&rest, "\n");
                json_set_text(all, name, strsep(&line, ","));
        }
        return all;
}

/* As nodeadm, only one format: scripts may read it. */
int command_version(Run *run) {
        bool ours = run->options.name == PROGRAM_NODESTRAP;
        if (ours && run->options.output == OUTPUT_JSON) {
                _cleanup_(json_decrefp) json_t *version =
                        json_pack("{ss ss* so}", "version", VERSION, "commit", *COMMIT ? COMMIT : NULL,
                                  "tables", ages());
                return output_json(version, NULL, &run->diag);
        }
        _free_ char *text = xasprintf("nodestrap " VERSION "%s\n%s",
                                      ours && *COMMIT && !streq(COMMIT, VERSION) ? " (" COMMIT ")" : "",
                                      ours && run->options.whole ? table_ages : "");
        return output_text(text, &run->diag);
}
