/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the actions found out about this node → "accelerator" and "hugepages" of status.json, lines for
 * people. */
#include "base/str.h"
#include <jansson.h>

/* From actions[].found of all runs; nothing is put where nothing was found. */
_nonnull_ void found_put(json_t *status, json_t *runs);
/* Whole lines, or "". */
_nonnull_ _malloc_ char *found_text(const json_t *status);
