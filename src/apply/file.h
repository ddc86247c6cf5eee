/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Executors of files: file.c and manifest.c, whose stage() and publish() files.c calls on a thread, and
 * networkd.c. */
#include "apply/work.h"
#include "base/paths.h"

/* There from before a file that systemd reads is changed until it has read it: a run that ends in between
 * leaves it to the next. */
#define RELOAD_WANTED RUN_DIR "/reload-wanted"

/* file.c */
_must_check_ _nonnull_ int file_stage(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int file_publish(Work *w, RootTmp *tmp);
_must_check_ _nonnull_ int block_stage(Work *w, RootTmp *ret);
/* Notes that systemd must reload, if it is one of the files that it reads; call it before the file is written
 * or removed. */
_must_check_ _nonnull_ int manager_expect(const Root *root, const char *path);
/* "/etc/hosts cannot be edited: …; what to do": path is left out where it is the action's own. */
_malloc_ _nonnull_ char *file_failure(const Root *root, const Action *a, int r, const char *verb,
                                      const char *path);
/* Fails with that sentence and CAUSE_FILE; returns r. */
_nonnull_ int file_fail(Work *w, int r, const char *verb, const char *path);
_nonnull_ int task_fail_file(Task *t, int r, const char *verb, const char *path);
/* old (may be empty) with content between our markers: in the place of the old block, at the end where there
 * is none; empty content: without a block. The rest stays byte for byte. */
_malloc_ _nonnull_ char *block_merge(const char *old, size_t old_size, const char *content, size_t *ret_size);
/* A file as it is, and as it is to be with that block; without one it is NULL, and fd is negative. */
typedef struct Block { int fd; char *old, *new; size_t old_size, new_size; } Block;
void block_done(Block *b);
_must_check_ _nonnull_ int block_read(const Root *root, const char *path, const char *content, Block *ret);
/* The same for the file at path: 0 nothing to do, 1 staged. Shared with the manifest, which takes blocks
 * away. */
_must_check_ _nonnull_ int block_prepare(const Root *root, const char *path, const char *content,
                                         RootTmp *ret);

/* manifest.c: one of a version that this program does not know stays as it is, and nothing is removed. */
/* The manifest with all that this plan is about to write: 1 staged, 0 if it is listed already. Publish it
 * before the first file. */
_must_check_ _nonnull_ int manifest_announce(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int manifest_stage(Work *w, RootTmp *ret);
_must_check_ _nonnull_ int manifest_publish(Work *w, RootTmp *tmp);
struct Pruning *pruning_free(struct Pruning *p);
/* What prune-files would find: how the manifest differs, as root_compare() says it, and the files that would
 * be removed, added to *ret_stale; -EBADMSG where there is something else in its place. */
_must_check_ _nonnull_ int manifest_look(const Root *root, const Plan *plan, const Action *a,
                                         char ***ret_stale);

/* networkd.c */
_must_check_ _nonnull_ int remove_check(Task *t);       /* these two do what they find missing */
_must_check_ _nonnull_ int link_check(Task *t);
_must_check_ _nonnull_ int networkd_check(Task *t);
_must_check_ _nonnull_ char **networkd_links(const Task *t);    /* what networkd_work() is given */
_must_check_ _nonnull_ int networkd_work(Work *w);
