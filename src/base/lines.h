/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Two texts → what of their lines differs. */
#include "base/str.h"

/* Adds the hunks of a unified diff (diff(1), -u), three lines around each change, every line of them behind
 * `indent`; nothing where the texts are the same. What could garble a terminal is shown as
 * text_add_shown() has it. */
_nonnull_ void lines_diff(Text *to, const char *old, size_t old_size, const char *new, size_t new_size,
                          const char *indent);
