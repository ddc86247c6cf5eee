/* SPDX-License-Identifier: Apache-2.0
 * generate-cdi → nvidia-ctk: the file by which container runtimes know the GPUs. It is made outside of the
 * directory that they watch, for they read whatever ends in .yaml there, and takes its place with one rename,
 * only where it differs. */
#include "apply/device.h"
#include "apply/gpus.h"

#include "base/str.h"

#include <errno.h>

#define DRAFT     RUN_DIR "/nvidia-cdi.yaml"
#define DRAFT_MAX (16U << 20)

static int publish(Work *w) {
        const char *target = w->action->target;
        _cleanup_(freep) char *text = NULL;
        size_t size = 0;
        int r = root_read(w->root, DRAFT, DRAFT_MAX, &text, &size);
        if (r >= 0 && size == 0)
                r = -ENODATA;
        if (r < 0)
                return work_fail(w, r, CAUSE_CDI,
                                 "nvidia-ctk ended well, but what it was to write to " DRAFT
                                 " cannot be used: %s",
                                 strerror(-r));
        r = root_replace_volatile(w->root, target, text, size, 0644);
        return r < 0 ? work_fail(w, r, CAUSE_CDI, "%s cannot be written: %s", target, strerror(-r)) : r;
}

static bool is_divided_into_nothing(NvmlDevice device) {
        _cleanup_(nvml_instances_done) NvmlInstances there = {};
        _cleanup_(freep) NvmlProfile *profiles = NULL;
        bool on = false, pending = false;
        size_t n = 0;
        return nvml_mig_mode(device, &on, &pending) == NVML_OK && on &&
               nvml_mig_profiles(device, &profiles, &n) == NVML_OK &&
               nvml_mig_instances(device, profiles, n, &there) == NVML_OK && there.n == 0;
}

/* "GPU 3 (0000:86:00.0)": in MIG mode and without an instance, with which the generator fails
 * (Azure/AgentBaker#8736). A100 keeps the mode over reboots, and never the instances. NULL: no such GPU, or
 * nobody knows. */
static char *gpu_without_instances(Work *w) {
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        NvmlGpus gpus = {};
        char *name = NULL;
        work_at(w, "NVML was asked for MIG instances, and did not answer");
        if (nvml_open(&gpus, &trouble) < 0)
                return NULL;
        for (size_t i = 0; i < gpus.n && !name; i++)
                if (is_divided_into_nothing(gpus.items[i].device))
                        name = gpu_name(&gpus, i);
        nvml_close(&gpus);
        return name;
}

/* Instances that the configuration asks for are there by now: those that are missing are another's to make,
 * such as NVIDIA's MIG manager, which needs kubelet for it and makes the file itself then. */
static int generator_failed(Work *w, int r) {
        _cleanup_(freep) char *gpu = r == -EIO ? gpu_without_instances(w) : NULL;
        if (!gpu)
                return r;
        diag_warn_at(&w->warnings, "cdi", NULL, w->action->id,
                     "no file was made: %s is in MIG mode and has no instance, which nvidia-ctk does not "
                     "take; whoever "
                     "makes instances has to make it, or name them in spec.accelerator.nvidia.mig",
                     gpu);
        return 0;
}

/* Such images boot well and run pods: containerd's NVIDIA runtime gives them GPUs without this file. */
static int generator_missing(Work *w) {
        diag_warn_at(&w->warnings, "cdi", NULL, w->action->id,
                     "no file was made: nvidia-ctk is not there (package nvidia-container-toolkit); "
                     "containers get "
                     "GPUs only through the legacy nvidia runtime");
        return 0;
}

int cdi_work(Work *w) {
        const char *root = root_is_host(w->root) ? "" : root_path(w->root);
        _cleanup_(freep) char *output = xasprintf("--output=%s" DRAFT, root);
        _cleanup_(strv_freep) char **argv = command("nvidia-ctk", "cdi", "generate", output, NULL);
        int r = root_make_dirs(w->root, RUN_DIR, 0755);
        if (r < 0)
                return work_fail(w, r, CAUSE_CDI, RUN_DIR " cannot be made: %s", strerror(-r));
        r = work_run(w, CAUSE_CDI, "containers get no GPU", argv);
        r = r == -ENOENT ? generator_missing(w) : r < 0 ? generator_failed(w, r) : publish(w);
        (void)!root_remove(w->root, DRAFT);
        return r;
}
