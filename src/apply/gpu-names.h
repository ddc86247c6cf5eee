/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What NVML lists now, and a stamp of it: of a step that would find what it found before. */
#include "apply/gpus.h"

typedef struct GpuName {
        char index[24];                 /* "0", of a MIG device "0:1", as NVIDIA's programs count */
        char address[24];               /* of a GPU; "" of a MIG device */
        NvmlUuid uuid;                  /* "" where the library is too old to say */
        char *node;                     /* "/dev/nvidia0"; NULL: the driver did not say */
        bool mig;                       /* a MIG device */
        bool divided;                   /* a GPU in MIG mode, which nobody is given as a whole */
} GpuName;
typedef struct GpuNames { GpuName *items; size_t n; size_t gpus; } GpuNames;

/* GPUs in the library's order, each before its MIG devices. 0, or -EIO and what is wrong. */
_must_check_ _nonnull_ int gpu_names_read(Work *w, GpuNames *ret, NvmlTrouble *ret_trouble);
void gpu_names_done(GpuNames *names);
/* Of the list, the driver's version and when it was loaded, the device nodes that are there and what
 * nvidia-ctk finds libraries by. Somebody who divides GPUs, loads the driver anew or installs one makes it
 * another. */
_nonnull_ void gpu_names_digest(const Work *w, const GpuNames *names, char ret[static 65]);
/* Of a step that ended well in this boot: the stamp is the same. */
_must_check_ _nonnull_ bool stamp_same(const Work *w, const char *path, const char *digest);
_nonnull_ void stamp_write(const Work *w, const char *path, const char *digest);
