/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One process at a time: init of a unit and init of user data, or the processes of one udev event. */
#include "base/error.h"
#include "base/root.h"

/* Takes the lock at path, a file in RUN_DIR; keep the descriptor open. -ETIMEDOUT at the deadline
 * (now_usec()), -EINTR after a stop signal; all errors have a diagnostic. */
_must_check_ _nonnull_ int lock_take(const Root *root, const char *path, uint64_t deadline_usec, Diag *diag);
/* false also for an error. */
_must_check_ _nonnull_ bool lock_is_held(const Root *root, const char *path);
/* Unlocks for all copies of the descriptor (a child, a thread that hangs), and closes it; <= 0: nothing. */
_nonnull_ void lock_release(int *fd);
