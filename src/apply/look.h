/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What apply_plan() would find, by the same comparisons, for who only wants to know: nothing is changed. */
#include "plan/plan.h"

/* Fills in Plan.looked, and of its actions live and live_why. The plan has no other reference. Below a root
 * that is not the host's nothing is said of units, as nothing would be done with them. */
_nonnull_ void apply_look(const Root *root, Plan *plan);

/* Of a write-file or write-block: what is there, NULL for no file, and what would be; all the caller's. */
typedef struct Texts {
        char *old, *new;
        size_t old_size, new_size;
        bool private;                   /* not everybody may read what is there */
} Texts;
void texts_done(Texts *t);
_must_check_ _nonnull_ int look_texts(const Root *root, const Action *a, Texts *ret);
