/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "apply/work.h"
#include "base/paths.h"

/* Exists from before a systemd file is changed until systemd has read it, also across runs. */
#define RELOAD_WANTED RUN_DIR "/reload-wanted"

_must_check_ _nonnull_ int file_stage(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int file_publish(Work *w, RootTmp *tmp);
_must_check_ _nonnull_ int block_stage(Work *w, RootTmp *ret);
/* Records that systemd must reload, if it reads this file. Call it before the file changes. */
_must_check_ _nonnull_ int manager_expect(const Root *root, const char *path);
/* "/etc/hosts cannot be edited: …; advice"; without the path if it is the target. */
_malloc_ _nonnull_ char *file_failure(const Root *root, const Action *a, int r, const char *verb,
                                      const char *path);
_nonnull_ int file_fail(Work *w, int r, const char *verb, const char *path);
_nonnull_ int task_fail_file(Task *t, int r, const char *verb, const char *path);
/* Replaces or appends our block in old; empty content removes it. Other bytes stay. */
_malloc_ _nonnull_ char *block_merge(const char *old, size_t old_size, const char *content, size_t *ret_size);
/* A file before and after the edit; old is NULL and fd negative if it is missing. */
typedef struct Block { int fd; char *old, *new; size_t old_size, new_size; } Block;
void block_done(Block *b);
_must_check_ _nonnull_ int block_read(const Root *root, const char *path, const char *content, Block *ret);
/* Stages the edit of the file at path: 0 nothing to do, 1 staged. */
_must_check_ _nonnull_ int block_prepare(const Root *root, const char *path, const char *content,
                                         RootTmp *ret);

/* manifest.c: never changes a manifest of an unknown version */
/* Stages the manifest with all files that this plan will write: 1; 0: they are listed already. Publish it
 * before the first file. */
_must_check_ _nonnull_ int manifest_announce(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int manifest_stage(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int manifest_publish(Work *w, RootTmp *tmp);
struct Pruning *pruning_free(struct Pruning *p);
/* Compares the manifest like root_compare(), and adds files to remove to *ret_stale. -EBADMSG: not a
 * manifest. */
_must_check_ _nonnull_ int manifest_look(const Root *root, const Plan *plan, const Action *a,
                                         char ***ret_stale);

TaskFunction remove_check, link_check, networkd_check;   /* the first two also do the work */
_must_check_ _nonnull_ char **networkd_links(const Task *t);    /* given of networkd_work() */
WorkFunction networkd_work;
