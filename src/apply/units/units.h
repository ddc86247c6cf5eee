/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Executors of systemd units, for table.c and look.c. */
#include "apply/task.h"

/* One file with the inputs of each started unit. */
#define STARTED_DIR RUN_DIR "/started"

_must_check_ _nonnull_ int unit_check(Task *t);
_must_check_ _nonnull_ int unit_start(Task *t);
/* 1: started last with these inputs; 0; -ENOENT: not in this boot. */
_must_check_ _nonnull_ int unit_record(const Root *root, const Action *a);
_must_check_ _nonnull_ bool unit_reads_nothing(const Action *a);
_must_check_ _nonnull_ int reload_check(Task *t);
_must_check_ _nonnull_ int reload_start(Task *t);
_must_check_ _nonnull_ int mask_check(Task *t);         /* mask.c */
_must_check_ _nonnull_ int mask_start(Task *t);
_must_check_ _nonnull_ int await_check(Task *t);        /* await.c */
_must_check_ _nonnull_ int await_start(Task *t);
_must_check_ _nonnull_ int alive_check(Task *t);        /* alive.c */
_malloc_ _nonnull_ char *alive_waiting(Task *t);
_malloc_ _nonnull_ char *unit_waiting(Task *t);
_nonnull_ Cause unit_late(const Task *t);
_nonnull_ void unit_cancel(Task *t);
_nonnull_ void unit_release(Task *t);
struct Bus *bus_free(struct Bus *b);
