/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Results of init in this boot, current work, and the outlook for `nodestrap wait`. */
#include "kube/kube.h"
#include "report/status.h"

/* Does init run now, or will a unit of this boot run it? */
_must_check_ _nonnull_ bool outlook_has_init(const Root *root);
/* true: init has failed and will not run again in this boot, so kubelet does not start. Replaces cause and
 * text of ret. */
_must_check_ _nonnull_ bool outlook_is_lost(const Root *root, JoinOutcome *ret);
/* Current work of units and processes, as far as this user may see it. */
_nonnull_ void outlook_ongoing(const Root *root, Ongoing *ret);
_nonnull_ void ongoing_done(Ongoing *ongoing);
/* status.json and current work. If no init has ended: empty on the machine itself or with any, else -ENOENT.
 * Errors have a diagnostic. */
_must_check_ _nonnull_ int status_now(const Root *root, bool any, Status *ret, Diag *diag);
/* The exit code of init: a tainted node is ok. EXIT_UNFINISHED: no verdict yet. */
_must_check_ _nonnull_ ExitCode status_exit(const Status *s);
