/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside src/plan only: the expected Node. */
#include "plan/planner.h"

/* The planned kubelet files and command line, merged as kubelet does: an object with the names of
 * KubeletConfiguration, and for flags without one nodeLabels, hostnameOverride, rootDirectory,
 * ignoreEviction. A new reference. */
_nonnull_ json_t *node_settings(const Plan *plan, const Host *host);
/* A number or a text with one; else 0. */
_nonnull_ uint64_t node_setting_number(const json_t *settings, const char *name);
/* -1: not set */
_nonnull_ int node_setting_flag(const json_t *settings, const char *name);
/* The CPUs in a list such as "0-3,8"; 0 if it is not a list. */
_nonnull_ unsigned cpu_list_count(const char *list);

/* plan->facts gets the NUMA nodes with GPUs; warns if they are too many. settings: node_settings(). */
_nonnull_ void plan_numa(Plan *plan, const Config *config, const Host *host, const json_t *settings);

/* Bytes of the kubelet file system; 0: not known. *ret_doubt: why it may differ, static; NULL: exact. */
_nonnull_ uint64_t ephemeral_bytes(const Plan *plan, const Config *config, const Host *host,
                                   const char **ret_doubt);
/* Bytes for files, as statfs(2) says, of a new file system on a device of so many bytes. */
uint64_t filesystem_bytes(uint64_t device, Filesystem filesystem);
/* Bytes that md leaves for data on a member. */
uint64_t member_bytes(uint64_t disk);
