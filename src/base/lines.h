/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Two texts → their difference */
#include "base/str.h"

/* Adds a unified diff (diff(1), -u) without file names, with `indent` before each line. */
_nonnull_ void lines_diff(Text *to, const char *old, size_t old_size, const char *new, size_t new_size,
                          const char *indent);
