/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "apply/work.h"
#include "health/health.h"

/* nvml_open() with at least device.count GPUs; otherwise -EIO and the reason. */
_must_check_ _nonnull_ int gpus_look(Work *w, NvmlGpus *ret, NvmlTrouble *ret_trouble);
_must_check_ _nonnull_ int gpus_open(Work *w, NvmlGpus *ret);
_nonnull_ int gpus_fail(Work *w, const NvmlTrouble *trouble);
_malloc_ _nonnull_ char *gpu_name(const NvmlGpus *gpus, size_t i);

/* health.c: how a step reports findings */

/* For Result.found; a new reference. */
_must_check_ _nonnull_ json_t *findings_json(const Work *w, const Findings *f);
/* Keeps them, and found, in case the step hangs from here on. */
_nonnull(1, 2) void findings_draft(Work *w, const Findings *f, json_t *found);
/* A warning for each; < 0 if one of them is a failure. */
_must_check_ _nonnull_ int findings_judge(Work *w, const Findings *f);

/* gpu-names.c: the devices of NVML, and a digest that lets a step skip itself */

typedef struct GpuName {
        char index[24];                 /* "0", of a MIG device "0:1" */
        char address[24];               /* of a GPU; or "" */
        NvmlUuid uuid;                  /* "" from an old library */
        char *node;                     /* "/dev/nvidia0"; NULL: unknown */
        bool mig;                       /* a MIG device */
        bool divided;                   /* a GPU in MIG mode, which pods cannot get whole */
} GpuName;
typedef struct GpuNames { GpuName *items; size_t n; size_t gpus; } GpuNames;

/* GPUs in the order of NVML, each before its MIG devices. 0, or -EIO and the reason. */
_must_check_ _nonnull_ int gpu_names_read(Work *w, GpuNames *ret, NvmlTrouble *ret_trouble);
void gpu_names_done(GpuNames *names);
/* Covers the list, the driver version and load, device nodes, nvidia-ctk and the ld.so cache. */
_nonnull_ void gpu_names_digest(const Work *w, const GpuNames *names, char ret[static 65]);
/* Did a step in this boot succeed with the same digest? */
_must_check_ _nonnull_ bool stamp_same(const Work *w, const char *path, const char *digest);
_nonnull_ void stamp_write(const Work *w, const char *path, const char *digest);

/* gpu-users.c: daemons, modules and processes that keep a GPU or the driver in use */

/* Stops running units and unloads unused nvidia_drm and nvidia_modeset. all: also persistenced, fabric
 * manager and IMEX. Units that do not stop are not a failure here; later steps show it. Does nothing if
 * kubelet may run. */
_nonnull_ void holders_stop(Work *w, bool all);
/* Starts and loads what was stopped, without waiting, also after the deadline. Failures are warnings, left to
 * the next run. all: also persistenced and fabric manager, which the plan starts itself. */
_nonnull_ void holders_start(Work *w, bool all);
/* Adds modules, dependents first. false: not recorded, so leave them. */
_must_check_ _nonnull(1) bool holders_note(const Work *w, char *const *names);
_must_check_ _nonnull_ bool holders_stopped(const Work *w, const char *name);
/* false: kubelet may run, so pods may use the GPUs. */
_must_check_ _nonnull_ bool holders_may_stop(Work *w);
/* "nv-hostengine (812), python3 (900) have a GPU open; nvidia_drm is loaded"; "": no user found. The caller
 * frees it. */
_must_check_ _nonnull_ char *holders_found(const Work *w);
