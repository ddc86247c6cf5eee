/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One at a time: two runs of init, since user data may call it while the unit does, or what many processes of
 * one event share. */
#include "base/error.h"
#include "base/root.h"

/* The descriptor of the lock at path, a file in RUN_DIR, to be kept open as long as it is to be held. Waits
 * for another process that holds it until the deadline (now_usec()): -ETIMEDOUT then, -EINTR after a
 * request to stop, both and all else with a diagnostic. */
_must_check_ _nonnull_ int lock_take(const Root *root, const char *path, uint64_t deadline_usec, Diag *diag);
/* Another process holds it; false also where that cannot be found out. */
_must_check_ _nonnull_ bool lock_is_held(const Root *root, const char *path);
/* Others can take it from here on, also where a child has a copy of the descriptor, or a thread that the
 * kernel keeps will keep all of them after the process has ended. Closes it; <= 0: there is none. */
_nonnull_ void lock_release(int *fd);
