/* SPDX-License-Identifier: Apache-2.0
 * What the program says of itself: help and the version. */
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/run.h"

#include <stdio.h>

int command_help(Run *run) {
        output_begin();
        options_print_help(&run->options, &command_table);
        return output_end(&run->diag);
}

int command_version(Run *run) {
        return output_text("nodestrap " VERSION "\n", &run->diag);
}
