/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where the instances of one GPU can lie so that all of them fit. */
#include "nvidia/nvml.h"

#define PLACES_MAX 16           /* instances of one GPU; none has more than 7 */

typedef struct Places {
        NvmlInstances possible[PLACES_MAX];     /* for each instance, as nvml_mig_places() lists them */
        const NvmlInstance *chosen[PLACES_MAX];         /* one of these */
        size_t n;
} Places;

/* From possible and n: a place for each that overlaps no other. false: there is none, in whatever order. */
_must_check_ _nonnull_ bool places_choose(Places *p);
_nonnull_ void places_done(Places *p);
