/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `nodestrap status` for people. */
#include "base/macro.h"
#include <jansson.h>

/* What status_read() gave, on stdout. */
_nonnull_ void status_show(const json_t *status);
/* Its first lines: verdict, next, instance, phases. */
_nonnull_ void status_show_head(const json_t *status);
