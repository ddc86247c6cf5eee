/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The list of nodestrap-read-ahead (conf/read-ahead): a line is "CONDITION PATH", in the order of need. */
#include "base/root.h"

/* Both point into the text; "" if the line lacks it. */
typedef struct ListRow { unsigned line; char *condition, *path; } ListRow;
/* ret: zero at first. Cuts the next row off *at, without comments and empty lines; false: no more rows. */
_must_check_ _nonnull_ bool list_next(char **at, ListRow *ret);
/* Does it hold here? -EINVAL: not a condition. */
_must_check_ _nonnull_ int list_condition(const Root *root, const char *condition);
/* The pattern for glob(3) of a path: %v is the release of the kernel, %l the folders of libraries. */
_malloc_ _nonnull_ char *list_pattern(const char *path, const char *release);
