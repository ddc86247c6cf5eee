/* SPDX-License-Identifier: Apache-2.0
 * A command line, a word on each line → Options, or one sentence; the first word is the name of the
 * program. */
#include "base/str.h"
#include "commands/commands.h"

#include <getopt.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _free_ char *text = xmemdup(data, size);
        _strv_ char **argv = NULL;
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(options_done) Options options = {};
        for (char *rest = text, *word = strsep(&rest, "\n"); word; word = strsep(&rest, "\n"))
                strv_add(&argv, word);
        optind = 0;                     /* getopt_long() begins again */
        int argc = (int)strv_length(argv), r = options_parse(argc, argv, &command_table, &options, &diag);
        if (!options.command || (r < 0) != (diag_first_error(&diag) != NULL) || diag_count(&diag, false) > 1)
                abort();
        return 0;
}
