/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What became of this boot's inits, what goes on now, and what `nodestrap wait` can still hope for. */
#include "kube/kube.h"
#include "report/status.h"

/* Is an init at work on this machine, or will one of this boot's units run it? */
_must_check_ _nonnull_ bool outlook_has_init(const Root *root);
/* Has init failed in this boot, with none to come, and is kubelet not started therefore? Then cause and
 * text of ret say why, in the place of what it said. */
_must_check_ _nonnull_ bool outlook_is_lost(const Root *root, JoinOutcome *ret);
/* What each phase's units and processes do now; as much of it as the caller may know. */
_nonnull_ void outlook_ongoing(const Root *root, Ongoing *ret);
_nonnull_ void ongoing_done(Ongoing *ongoing);
/* What was written, and what goes on now. No init may have ended yet, on the machine itself or where any
 * says so; else -ENOENT. That, and whatever keeps it from being read, with a diagnostic. */
_must_check_ _nonnull_ int status_now(const Root *root, bool any, Status *ret, Diag *diag);
/* Of init: a node that joins tainted has ended well by its policy. EXIT_UNFINISHED where the boot has no
 * verdict yet. */
_must_check_ _nonnull_ ExitCode status_exit(const Status *s);
