/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the executors that speak to NVIDIA's management library share: fabric.c, mig.c, clocks.c, cdi.c. */
#include "apply/work.h"
#include "nvidia/nvml.h"

/* nvml_open(), of device.count GPUs at least: -EIO and what is wrong where there are fewer. */
_must_check_ _nonnull_ int gpus_look(Work *w, NvmlGpus *ret, NvmlTrouble *ret_trouble);
/* The same; the task fails with what is wrong. */
_must_check_ _nonnull_ int gpus_open(Work *w, NvmlGpus *ret);
/* What is wrong with library or driver → the failure and what to look at. */
_nonnull_ int gpus_fail(Work *w, const NvmlTrouble *trouble);
/* "GPU 3 (0000:86:00.0)" */
_malloc_ _nonnull_ char *gpu_name(const NvmlGpus *gpus, size_t i);

/* ---- gpu-names.c ---- */
/* What NVML lists now, and a stamp of it: of a step that would find what it found before. */

typedef struct GpuName {
        char index[24];                 /* "0", of a MIG device "0:1", as NVIDIA's programs count */
        char address[24];               /* of a GPU; "" of a MIG device */
        NvmlUuid uuid;                  /* "" where the library is too old to say */
        char *node;                     /* "/dev/nvidia0"; NULL: the driver did not say */
        bool mig;                       /* a MIG device */
        bool divided;                   /* a GPU in MIG mode, which no pod gets as a whole */
} GpuName;
typedef struct GpuNames { GpuName *items; size_t n; size_t gpus; } GpuNames;

/* GPUs in the library's order, each before its MIG devices. 0, or -EIO and what is wrong. */
_must_check_ _nonnull_ int gpu_names_read(Work *w, GpuNames *ret, NvmlTrouble *ret_trouble);
void gpu_names_done(GpuNames *names);
/* Of the list, the driver's version and when it was loaded, the device nodes that are there and what
 * nvidia-ctk finds libraries by. A person who divides GPUs, loads the driver again or installs one makes it
 * another. */
_nonnull_ void gpu_names_digest(const Work *w, const GpuNames *names, char ret[static 65]);
/* Of a step that ended well in this boot: the stamp is the same. */
_must_check_ _nonnull_ bool stamp_same(const Work *w, const char *path, const char *digest);
_nonnull_ void stamp_write(const Work *w, const char *path, const char *digest);

/* ---- gpu-users.c ---- */
/* Who holds the GPUs, so that they can be neither reset nor left by their driver: daemons of the image's,
 * modules that stand on the driver, and whatever other process has one of them open. */

/* Stops those that run, and takes out nvidia_drm and nvidia_modeset where no process uses them. all: also
 * persistenced, fabric manager and IMEX. One that does not go is no failure: what is done then shows it.
 * Nothing where kubelet may run: holders_may_stop(). */
_nonnull_ void holders_stop(Work *w, bool all);
/* Starts and loads again what this process or one before it has stopped, or nothing; without waiting for
 * units, and also where the task was given up. A unit or module that does not start is a warning, and left
 * to the next run. all: also persistenced and fabric manager, which the plan starts by itself. */
_nonnull_ void holders_start(Work *w, bool all);
/* These modules go too, those that stand on others first. false: it cannot be noted, so leave them. */
_must_check_ _nonnull(1) bool holders_note(const Work *w, char *const *names);
/* Was it stopped, and not started again? */
_must_check_ _nonnull_ bool holders_stopped(const Work *w, const char *name);
/* Pods may use the GPUs, and jobs end with fabric manager. */
_must_check_ _nonnull_ bool holders_may_stop(Work *w);
/* What keeps the GPUs from being reset now: "nv-hostengine (812), python3 (900) have one open; nvidia_drm is
 * loaded"; "": nothing is seen. The caller frees it. */
_must_check_ _nonnull_ char *holders_found(const Work *w);
