/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who could have made what a path leads to? */
#include "base/root.h"

/* 1 where only root could: the file and every directory above it, up to the root, belong to root and nobody
 * else may write there (but into a directory with the sticky bit, where nobody can replace what is not his),
 * and no symbolic link is on the way. Below another root than "/" the owner of that directory counts like
 * root. 0: others could, and *ret_why, the caller's, says where and how: "/etc/nodestrap may be written by
 * others than root". A negative errno where it cannot be looked at. path is absolute. */
_must_check_ _nonnull_ int path_is_guarded(const Root *root, const char *path, char **ret_why);
