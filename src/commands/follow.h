/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `nodestrap status --follow`, and what it shares with the rest of that command (status.c). */
#include "commands/run.h"

/* What was written, and what goes on now; an init that has yet to end its first phase has written nothing,
 * which any says is no error. -ENOENT and whatever keeps it from being read, with a diagnostic. */
_must_check_ _nonnull_ int status_now(const Root *root, bool any, json_t **ret, Diag *diag);
/* Of init: a node that joins tainted has ended well by its policy. EXIT_UNFINISHED where the boot has no
 * verdict yet. */
_must_check_ _nonnull_ ExitCode status_exit(const json_t *status);
/* Tells what goes on until the boot has a verdict, which becomes the exit code, or until a signal. */
_must_check_ _nonnull_ int status_follow(Run *run);
