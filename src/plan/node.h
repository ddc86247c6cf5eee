/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside src/plan only: the Node that kubelet will register, as it follows from a plan. node-settings.c: what
 * kubelet will read; ephemeral.c: the file system below it; node.c: capacity and allocatable. */
#include "plan/planner.h"

/* What kubelet's files and command line in the plan come to, as kubelet merges them: an object with the names
 * of KubeletConfiguration. Of flags without such a name it has nodeLabels, hostnameOverride, rootDirectory
 * and ignoreEviction. A new reference. */
_nonnull_ json_t *node_settings(const Plan *plan, const Host *host);
/* A number, however it came; 0 where there is none. */
_nonnull_ uint64_t node_setting_number(const json_t *settings, const char *name);
/* -1: not said */
_nonnull_ int node_setting_flag(const json_t *settings, const char *name);
/* How many CPUs a list such as "0-3,8" names; 0 where it is none. */
_nonnull_ unsigned cpu_list_count(const char *list);

/* How many NUMA nodes kubelet will find, for plan->facts where those of GPUs are among them. Warns where
 * kubelet fails with so many. settings: node_settings(). */
_nonnull_ void plan_numa(Plan *plan, const Config *config, const Host *host, const json_t *settings);

/* How large the file system is that kubelet will find below its directory, in bytes; 0: not known.
 * *ret_doubt: why it may be another size on the machine, static text; NULL: it is just this. */
_nonnull_ uint64_t ephemeral_bytes(const Plan *plan, const Config *config, const Host *host,
                                   const char **ret_doubt);
/* Of a device of so many bytes, how many a new file system has for files and statfs(2) tells: all but the log
 * of xfs; all but the inode tables and the journal of ext4, nearly. */
uint64_t filesystem_bytes(uint64_t device, Filesystem filesystem);
/* Of a disk in an array, what md leaves for data. */
uint64_t member_bytes(uint64_t disk);
