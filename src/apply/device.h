/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The executors of devices: pages.c, sysctl.c, module.c, machine.c (what is there), driver.c, fabric.c,
 * health.c, mig.c, node.c, list.c, clocks.c, cdi.c, imex.c; devices-lock.c, of whose turn it is; and of what
 * a failure of theirs makes of the node, node-precheck.c and taint.c. Beside them state.c, of the files of
 * kubelet. Those that take a Work run on a thread, look for themselves whether anything is to be done, and
 * return > 0 done, 0 unchanged, < 0 after work_fail(). */
#include "apply/work.h"

_must_check_ _nonnull_ int sysctl_work(Work *w);
/* Has the setting at path its value? 1, 0 or a negative errno; what it has to *ret_have, which is new. */
_must_check_ _nonnull_ int sysctl_has(const Root *root, const Action *a, const char *path, char **ret_have);
_must_check_ _nonnull_ int pages_work(Work *w);
/* Are they as the action wants them? 1, 0 or a negative errno; how many there are to *ret_have. */
_must_check_ _nonnull_ int pages_have(const Root *root, const Action *a, uint64_t *ret_have);
_must_check_ _nonnull_ int module_work(Work *w);
/* Is it loaded, or a part of the kernel? 1, 0 or a negative errno. */
_must_check_ _nonnull_ int module_is_loaded(const Root *root, const char *name);
_must_check_ _nonnull_ int machine_work(Work *w);
_must_check_ _nonnull_ int efa_work(Work *w);
_must_check_ _nonnull_ int devices_work(Work *w);
_must_check_ _nonnull_ int driver_work(Work *w);
_must_check_ _nonnull_ int versions_work(Work *w);
_must_check_ _nonnull_ int fabric_work(Work *w);
_must_check_ _nonnull_ int license_work(Work *w);
_must_check_ _nonnull_ int health_work(Work *w);
_must_check_ _nonnull_ int mig_mode_work(Work *w);
_must_check_ _nonnull_ int partition_work(Work *w);
_must_check_ _nonnull_ int clocks_work(Work *w);
_must_check_ _nonnull_ int nodes_work(Work *w);
_must_check_ _nonnull_ int list_work(Work *w);
_must_check_ _nonnull_ int cdi_work(Work *w);
_must_check_ _nonnull_ int channel_work(Work *w);
_must_check_ _nonnull_ int imex_work(Work *w);

_must_check_ _nonnull_ int turn_work(Work *w);

_must_check_ _nonnull_ int state_work(Work *w);
/* 1, and which files would go and why in a new text, *ret; 0 and NULL: none; or a negative errno. */
_must_check_ _nonnull_ int state_look(const Root *root, const Action *a, char **ret);

/* Has any of those failed that the task comes after, however they end? */
_must_check_ _nonnull_ bool taint_is_wanted(const Task *t);
_must_check_ _nonnull_ int register_check(Task *t);
/* given: as of taint_reason() */
_must_check_ _nonnull_ int register_work(Work *w);
_must_check_ _nonnull_ int taint_check(Task *t);
/* What the node is to say, as the task's thread is told: word of the cause and id of the action that failed
 * first of all that the task comes after, and the clique of the GPUs; "" for what is not so, NULL for
 * nothing. The caller frees it. */
_must_check_ _nonnull_ char **taint_reason(const Task *t);
_must_check_ _nonnull_ int taint_work(Work *w);
