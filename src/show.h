/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a command answers on stdout: the last thing that it does. A reader that goes away ends the program, as
 * in any pipeline. */
#include "cli.h"

/* On stdout, or into the file of --config-output, which may hold secrets (0600). */
_must_check_ _nonnull_ int show_json(const Options *o, const json_t *json, Diag *diag);
/* As text or JSON; with --write-to every planned file goes below that directory first. */
_must_check_ _nonnull_ int show_plan(const Options *o, const Plan *plan, Diag *diag);
_must_check_ _nonnull_ int show_status(const Options *o, const Root *root, Diag *diag);
_must_check_ _nonnull_ int show_schema(const Options *o, Diag *diag);
/* A text as it is. */
_must_check_ _nonnull_ int show_text(const char *text, Diag *diag);
/* Help or the version. */
_must_check_ _nonnull_ int show_about(const Options *o, Diag *diag);
