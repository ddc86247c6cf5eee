/* SPDX-License-Identifier: Apache-2.0
 * Executors that are being built: each moves to its own file, and this one goes. */
#include "apply/device.h"
#include <errno.h>
int partition_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int clocks_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
