/* SPDX-License-Identifier: Apache-2.0 */
/* Backtracking search for the places of instances. */
#include "apply/mig.h"

#define TRIES_MAX 1000000U

void places_done(Places *p) {
        for (size_t i = 0; i < p->n; i++)
                nvml_instances_done(&p->possible[i]);
}

static bool is_free(const Places *p, size_t n, const NvmlInstance *place) {
        return !ANY(c, p->chosen, n,
                    place->start < (*c)->start + (*c)->size && (*c)->start < place->start + place->size);
}

/* Normally short: at most eight places for seven instances. TRIES_MAX guards against wrong answers of
 * NVML. */
static bool choose_from(Places *p, size_t i, unsigned *tries) {
        if (i == p->n)
                return true;
        for (size_t k = 0; k < p->possible[i].n && *tries < TRIES_MAX; k++) {
                ++*tries;
                p->chosen[i] = &p->possible[i].items[k];
                if (is_free(p, i, p->chosen[i]) && choose_from(p, i + 1, tries))
                        return true;
        }
        return false;
}

bool places_choose(Places *p) {
        unsigned tries = 0;
        return choose_from(p, 0, &tries);
}
