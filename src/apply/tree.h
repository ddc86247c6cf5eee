/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Directory trees by descriptors of directories: never through a link, never across a mount point (-EXDEV).
 * After a failure *ret_where is the path of the entry, from the directory that was given. */
#include "base/macro.h"

/* A directory of that name itself, for looking: what is mounted there is seen. A descriptor or a negative
 * errno. */
_must_check_ _nonnull_ int tree_open(int dir, const char *name);
/* The names in the directory, sorted, without "." and "..". */
_must_check_ _nonnull_ int tree_list(int dir, char ***ret);
/* Removes an entry and all below it; 0 also where there is none. */
_must_check_ _nonnull_ int tree_remove(int dir, const char *name, char **ret_where);
/* Moves the entry to another directory of the same file system, as `as`. What is there by that name loses: a
 * file is replaced, a directory takes in what the other one holds and keeps its own mode, owner and label.
 * Where one is a directory and the other one is not, the loser is kept as "AS.nodestrap-old". */
_must_check_ _nonnull_ int tree_merge(int from, const char *name, int to, const char *as, char **ret_where);
/* Has copy all that dir has: same type and, for files, size and time, for links their length? -ESTALE at the
 * first that it has not. */
_must_check_ _nonnull_ int tree_check_copied(int dir, int copy, char **ret_where);
/* Removes everything in dir that copy has too, by the same measure. -ESTALE at the first that it has not. */
_must_check_ _nonnull_ int tree_remove_copied(int dir, int copy, char **ret_where);
