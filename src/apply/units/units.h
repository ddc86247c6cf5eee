/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Executors of systemd units, for table.c and look.c. */
#include "apply/task.h"

#define STARTED_DIR RUN_DIR "/started"

TaskFunction unit_check, unit_start, reload_check, reload_start, mask_check, mask_start, await_check,
        await_start, alive_check;
/* 1: started last with these inputs; 0; -ENOENT: not in this boot. */
_must_check_ _nonnull_ int unit_record(const Root *root, const Action *a);
_must_check_ _nonnull_ bool unit_reads_nothing(const Action *a);
_malloc_ _nonnull_ char *alive_waiting(Task *t);
_malloc_ _nonnull_ char *unit_waiting(Task *t);
_nonnull_ Cause unit_late(const Task *t);
_nonnull_ void unit_cancel(Task *t);
_nonnull_ void unit_release(Task *t);
struct Bus *bus_free(struct Bus *b);
