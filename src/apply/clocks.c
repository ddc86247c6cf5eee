/* SPDX-License-Identifier: Apache-2.0
 * set-clocks: persistence on, auto boost off, highest application clocks, as EKS images set them
 * (awslabs/amazon-eks-ami:templates/al2023/runtime/gpu, set-nvidia-clocks); or the defaults. Skips what a
 * model lacks, and clocks of a GPU in MIG mode. */
#include "apply/device.h"
#include "apply/gpus.h"

#include "base/str.h"

#include <errno.h>

typedef struct Tuning {
        Work *w;
        const char *name;       /* "GPU 3 (0000:86:00.0)" */
        NvmlDevice device;
        json_t *found;
        bool changed;
        int failure;            /* the first, unless a warning replaces it */
} Tuning;

/* Settings that the model or driver lacks are not errors. false: not set. */
static bool accepted(Tuning *t, int code, const char *what) {
        if (code == NVML_OK)
                return true;
        if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND || code == NVML_DEPRECATED) {
                json_array_append_new(json_object_get(t->found, "unsupported"), json_string(what));
                return false;
        }
        _free_ char *text = nvml_text(code);
        int r = t->failure < 0 ? 0
                               : work_miss(t->w, -EIO, CAUSE_NVML, "clocks",
                                           "%s: %s cannot be set: %s; the GPU keeps its setting", t->name,
                                           what, text);
        t->failure = MIN(t->failure, r);
        return false;
}

/* Changes a switch whose queried state differs. */
static void switch_set(Tuning *t, int code, bool same, int (*set)(NvmlDevice device, bool on), bool on,
                       const char *what) {
        if (code != NVML_OK || !same)
                t->changed |= accepted(t, code == NVML_OK ? set(t->device, on) : code, what);
}

static void clocks_set(Tuning *t, bool highest) {
        unsigned memory = 0, graphics = 0, now_memory = 0, now_graphics = 0;
        int code = highest ? nvml_highest_clocks(t->device, &memory, &graphics)
                           : nvml_default_clocks(t->device, &memory, &graphics);
        if (code == NVML_OK)
                code = nvml_application_clocks(t->device, &now_memory, &now_graphics);
        bool same = code == NVML_OK && memory == now_memory && graphics == now_graphics;
        if (code == NVML_OK && !same)
                code = highest ? nvml_set_application_clocks(t->device, memory, graphics)
                               : nvml_reset_application_clocks(t->device);
        if (!accepted(t, code, "application clocks"))
                return;
        t->changed |= !same;
        json_object_set_new(t->found, "memory", json_integer(memory));
        json_object_set_new(t->found, "graphics", json_integer(graphics));
}

static void gpu_tune(Tuning *t, const NvmlGpus *gpus, size_t index, json_t *found) {
        _free_ char *name = gpu_name(gpus, index);
        const NvmlGpu *gpu = &gpus->items[index];
        bool on = false, pending = false, highest = streq(t->w->action->with, "max"),
             divided = nvml_mig_mode(gpu->device, &on, &pending) == NVML_OK && on;
        t->name = name;
        t->device = gpu->device;
        t->found = json_pack("{s:I, s:s, s:b, s:[]}", "index", (json_int_t)index, "address", gpu->address,
                             "mig", divided, "unsupported");
        work_at(t->w, "NVML did not answer when asked to set the clocks of %s", name);
        json_array_append_new(found, t->found);
        bool persists = false, boosts = false, by_default = false;
        int code = highest ? nvml_persistence(t->device, &persists) : NVML_OK;
        if (highest)
                switch_set(t, code, persists, nvml_set_persistence, true, "persistence mode");
        code = highest && !divided ? nvml_auto_boost(t->device, &boosts, &by_default) : NVML_OK;
        if (highest && !divided)
                switch_set(t, code, !boosts && !by_default, nvml_set_auto_boost, false, "auto boost");
        if (!divided)
                clocks_set(t, highest);
}

int clocks_work(Work *w) {
        NvmlGpus gpus = {};
        Tuning t = { .w = w };
        int r = gpus_open(w, &gpus);
        if (r < 0)
                return r;
        json_t *found = json_array();
        for (size_t i = 0; i < gpus.n; i++)
                gpu_tune(&t, &gpus, i, found);
        w->found = json_pack("{s:o}", "gpus", found);
        nvml_close(&gpus);
        return t.failure < 0 ? t.failure : t.changed;
}
