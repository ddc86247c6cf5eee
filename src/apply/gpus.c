/* SPDX-License-Identifier: Apache-2.0
 * NVML for a task: the GPUs, or a message about library and driver. */
#include "apply/gpus.h"

#include "base/str.h"

#include <errno.h>

int gpus_fail(Work *w, const NvmlTrouble *trouble) {
        if (trouble->code == NVML_OK)
                return work_fail(
                        w, -ELIBACC, CAUSE_NVML,
                        "the NVIDIA management library cannot be loaded: %s; it comes with the driver "
                        "(package libnvidia-ml or nvidia-driver-cuda-libs, libnvidia-ml1 on Debian)",
                        trouble->text);
        return work_fail(w, -EIO, CAUSE_NVML, "%s; %s", trouble->text,
                         trouble->code == NVML_VERSION_MISMATCH
                                 ? "the loaded driver and its library have different versions: install all "
                                   "NVIDIA packages at the same version (see /proc/driver/nvidia/version)"
                                 : "dmesg | grep -E 'NVRM|Xid' shows the messages of the driver");
}

char *gpu_name(const NvmlGpus *gpus, size_t i) {
        return xasprintf("GPU %zu (%s)", i, gpus->items[i].address);
}

static char *what_is_missing(const Work *w, const NvmlGpus *gpus) {
        if (gpus->n >= w->action->device.count)
                return NULL;
        Text t = {};
        const char *between = ": not ";
        text_add(&t, "NVML sees %zu of %u GPUs", gpus->n, w->action->device.count);
        for (char **seen = w->action->device.seen; seen && *seen; seen++)
                if (!ANY(g, gpus->items, gpus->n, streq(g->address, *seen))) {
                        text_add(&t, "%s%s", between, *seen);
                        between = ", ";
                }
        return text_take(&t);
}

int gpus_look(Work *w, NvmlGpus *ret, NvmlTrouble *ret_trouble) {
        NvmlGpus gpus = {};
        work_at(w, "the NVIDIA management library did not answer when asked for the GPUs");
        int r = nvml_open(&gpus, ret_trouble);
        if (r < 0)
                return r;
        char *missing = what_is_missing(w, &gpus);
        if (missing) {
                *ret_trouble = (NvmlTrouble){ NVML_UNKNOWN, missing };
                nvml_close(&gpus);
                return -EIO;
        }
        *ret = gpus;
        return 0;
}

int gpus_open(Work *w, NvmlGpus *ret) {
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        return gpus_look(w, ret, &trouble) < 0 ? gpus_fail(w, &trouble) : 0;
}
