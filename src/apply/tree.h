/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Trees by directory descriptors: never through links, never across mounts (-EXDEV). On failure *ret_where is
 * the relative path of the entry. */
#include "base/macro.h"

/* Opens a directory; shows what is mounted there. A descriptor or a negative errno. */
_must_check_ _nonnull_ int tree_open(int dir, const char *name);
/* Sorted names without "." and "..". */
_must_check_ _nonnull_ int tree_list(int dir, char ***ret);
/* Removes an entry recursively; 0 if missing. */
_must_check_ _nonnull_ int tree_remove(int dir, const char *name, char **ret_where);
/* Moves the entry to another directory of the same file system, as `as`. It replaces an old file, and merges
 * into an old directory, which keeps its attributes. If only one is a directory, the old one becomes
 * "AS.nodestrap-old". */
_must_check_ _nonnull_ int tree_merge(int from, const char *name, int to, const char *as, char **ret_where);
/* -ESTALE at the first entry of dir that copy lacks. Compared: type; file size and time; link length. */
_must_check_ _nonnull_ int tree_check_copied(int dir, int copy, char **ret_where);
/* Removes the entries of dir that copy has. -ESTALE as above. */
_must_check_ _nonnull_ int tree_remove_copied(int dir, int copy, char **ret_where);
