/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One init at a time: user data may call it while the unit does. */
#include "base/error.h"
#include "base/root.h"

/* The lock's descriptor, to be kept open as long as the machine is changed. Waits for another process that
 * holds it until the deadline (now_usec()): -ETIMEDOUT then, -EINTR after SIGTERM or SIGINT, both and all
 * else with a diagnostic. */
_must_check_ _nonnull_ int lock_take(const Root *root, uint64_t deadline_usec, Diag *diag);
