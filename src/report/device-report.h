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
/* Of an entry of "hugepages": the NUMA node as a word, "" where it is over all of them. */
_nonnull_ _malloc_ char *found_node(const json_t *pages);
/* 0 where there is none. */
_nonnull_ long long found_number(const json_t *object, const char *key);
