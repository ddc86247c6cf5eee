/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by mig*.c. Functions that fail have called work_fail() and return a negative errno. */
#include "apply/gpus.h"
#include "nvidia/nvml.h"

#define MIG_LEDGER "/var/lib/nodestrap/mig-reboot"

typedef struct DividedGpu {                   /* one GPU and its layout */
        const MigLayout *layout;
        NvmlDevice device;
        char *name, *address;           /* "GPU 3 (0000:86:00.0)", "0000:86:00.0" */
        NvmlProfile *profiles; size_t n_profiles;
        NvmlProfile *wanted; size_t n_wanted;
        bool supported, was_on, is_on, touched, mode_same;
        int activation;                 /* NVML_OK: the change of mode is complete */
        NvmlInstances before;
} DividedGpu;

typedef struct Division {
        Work *w;
        NvmlGpus gpus;
        bool open;
        DividedGpu *parts; size_t n;
        bool accepted;                  /* a mode is pending, and stays so */
        bool rebooting;
        char *reset_why;                /* why the reset failed */
} Division;

/* "GPU 3 (…): what: NVML error", and who uses it. */
_nonnull_ int division_fail(Division *d, const DividedGpu *part, int code, const char *what);
_must_check_ _nonnull_ int division_open(Division *d);
_nonnull_ void division_close(Division *d);
_nonnull_ bool part_wants_mig(const DividedGpu *part);

_nonnull_ const NvmlProfile *part_profile(const DividedGpu *part, unsigned id);
/* Resolves the profiles; none if the GPU lists none while its mode is off. */
_must_check_ _nonnull_ int part_resolve(Division *d, DividedGpu *part);
/* 1: before has the wanted instances. */
_must_check_ _nonnull_ int part_same(Division *d, const DividedGpu *part);
_must_check_ _nonnull(1, 2) int part_clear(Division *d, const DividedGpu *part, const NvmlInstances *keep);
_must_check_ _nonnull_ int part_fill(Division *d, const DividedGpu *part);
/* Recreates before in its old places; instances in use were never destroyed. */
_must_check_ _nonnull_ int instances_put_back(const DividedGpu *part);

/* Sets the mode now: stops users, resets, or else reboots once. */
_must_check_ _nonnull_ int modes_change(Division *d);
/* After new handles: 1 if every GPU has the wanted mode. */
_must_check_ _nonnull_ int modes_read(Division *d);
