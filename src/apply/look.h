/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Predicts what apply_plan() would do, by the same comparisons, and changes nothing. */
#include "plan/plan.h"

/* Sets Plan.looked and live and live_why of its actions. Skips units below another root. */
_nonnull_ void apply_look(const Root *root, Plan *plan);

/* The current file (NULL: none) and the new one; the caller frees both. */
typedef struct Texts {
        char *old, *new;
        size_t old_size, new_size;
        bool private;                   /* the current one is not world-readable */
} Texts;
void texts_done(Texts *t);
_must_check_ _nonnull_ int look_texts(const Root *root, const Action *a, Texts *ret);
