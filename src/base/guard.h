/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Could only root make the file at this path? */
#include "base/root.h"

/* 1: the file and all directories above belong to root (below another root: to its owner), and none is a
 * link. Other users cannot write to them, but to a sticky directory. 0: *ret_why, which the caller frees:
 * "/etc/nodestrap may be written by others than root". path is absolute. */
_must_check_ _nonnull_ int path_is_guarded(const Root *root, const char *path, char **ret_why);
