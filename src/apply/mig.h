/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What mig.c (what is wanted, what is there, all or nothing), mig-mode.c and mig-instances.c share. Functions
 * that fail have called work_fail() and return a negative errno. */
#include "apply/gpus.h"
#include "nvidia/nvml.h"

#define MIG_LEDGER "/var/lib/nodestrap/mig-reboot"

typedef struct DividedGpu {                   /* one GPU and what is wanted of it */
        const MigLayout *layout;
        NvmlDevice device;
        char *name, *address;           /* "GPU 3 (0000:86:00.0)", "0000:86:00.0":
                                         * known also while the library is closed */
        NvmlProfile *profiles; size_t n_profiles;
        NvmlProfile *wanted; size_t n_wanted;
        bool supported, was_on, is_on, touched, mode_same;
        int activation;                 /* what the change of its mode waits for: NVML_OK: nothing */
        NvmlInstances before;
} DividedGpu;

typedef struct Division {
        Work *w;
        NvmlGpus gpus;
        bool open;
        DividedGpu *parts; size_t n;
        bool accepted;                  /* a mode is pending now, and stays so whatever fails */
        bool rebooting;
        char *reset_why;                /* why resetting did not help */
} Division;

/* mig-division.c */
/* "GPU 3 (…): what: the library's words", and, where it is in use, by whom. */
_nonnull_ int division_fail(Division *d, const DividedGpu *part, int code, const char *what);
/* Looks the GPUs up; a change of mode, or a reset, may make new handles. */
_must_check_ _nonnull_ int division_open(Division *d);
_nonnull_ void division_close(Division *d);
_nonnull_ bool part_wants_mig(const DividedGpu *part);

/* mig-instances.c */
/* NULL: the GPU has none with this id. */
_nonnull_ const NvmlProfile *part_profile(const DividedGpu *part, unsigned id);
/* What the words of the layout mean on this GPU; nothing where it lists no profiles while its mode is off. */
_must_check_ _nonnull_ int part_resolve(Division *d, DividedGpu *part);
/* 1: before is what is wanted. */
_must_check_ _nonnull_ int part_same(Division *d, const DividedGpu *part);
/* keep: places of instances that stay; or NULL. */
_must_check_ _nonnull(1, 2) int part_clear(Division *d, const DividedGpu *part, const NvmlInstances *keep);
_must_check_ _nonnull_ int part_fill(Division *d, const DividedGpu *part);
/* Those of before, where they were. What could not be destroyed, because a pod uses it, is there still. */
_must_check_ _nonnull_ int instances_put_back(const DividedGpu *part);

/* mig-mode.c */
/* All that are touched get the mode that is wanted, now: what holds them is stopped, they are reset, else the
 * machine is rebooted once. */
_must_check_ _nonnull_ int modes_change(Division *d);
/* After the handles were renewed: 1 if every GPU has the mode that is wanted. */
_must_check_ _nonnull_ int modes_read(Division *d);

/* ---- mig-places.c ---- */
/* Where the instances of one GPU can lie so that all of them fit. */

#define PLACES_MAX 16           /* instances of one GPU; none has more than 7 */

typedef struct Places {
        NvmlInstances possible[PLACES_MAX];     /* for each instance, as nvml_mig_places() lists them */
        const NvmlInstance *chosen[PLACES_MAX];         /* one of these */
        size_t n;
} Places;

/* From possible and n: a place for each that overlaps no other. false: there is none, in whatever order. */
_must_check_ _nonnull_ bool places_choose(Places *p);
_nonnull_ void places_done(Places *p);
