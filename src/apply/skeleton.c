/* SPDX-License-Identifier: Apache-2.0
 * Executors that are being built: each moves to its own file, and this one goes. */
#include "apply/device.h"
#include <errno.h>
int pages_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int module_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int machine_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int efa_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int devices_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int driver_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int versions_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int list_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int cdi_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int channel_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int imex_work(Work *w) { return work_fail(w, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int sysctl_check(_unused_ Task *t) { return CHECK_NEEDED; }
int sysctl_start(Task *t) { return task_fail(t, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int mask_check(_unused_ Task *t) { return CHECK_NEEDED; }
int mask_start(Task *t) { return task_fail(t, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int await_check(_unused_ Task *t) { return CHECK_NEEDED; }
int await_start(Task *t) { return task_fail(t, -ENOSYS, CAUSE_INTERNAL, "not built"); }
int taint_check(_unused_ Task *t) { return CHECK_NEEDED; }
int taint_start(Task *t) { return task_fail(t, -ENOSYS, CAUSE_INTERNAL, "not built"); }
