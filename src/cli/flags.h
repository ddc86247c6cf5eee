/* SPDX-License-Identifier: Apache-2.0
 * The table of options, for those who read it and those who print it. */
#pragma once
#include "cli/cli.h"

typedef struct FlagRow {
        char name[24], argument[8];     /* argument "": it takes none */
        const char *help;
        char letter;
        uint16_t text, on;              /* offsets in Options */
} FlagRow;
extern const FlagRow flag_rows[_FLAG_MAX];
extern const char *const program_names[_PROGRAM_MAX];

/* The help on an option, as that command has it. */
_nonnull_ const char *flag_help(Flag flag, const Command *command);
