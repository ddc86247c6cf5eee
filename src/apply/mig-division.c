/* SPDX-License-Identifier: Apache-2.0
 * Finds the GPUs of the layouts in NVML. */
#include "apply/mig.h"

#include "base/str.h"

#include <errno.h>

void division_close(Division *d) {
        if (d->open)
                nvml_close(&d->gpus);
        d->open = false;
}

int division_fail(Division *d, const DividedGpu *part, int code, const char *what) {
        _free_ char *text = nvml_text(code), *users = code == NVML_IN_USE ? holders_found(d->w) : NULL;
        Cause cause = code == NVML_OK || nvml_is_final(code) ? CAUSE_NVML : CAUSE_MIG;
        if (users && *users)
                return work_fail(d->w, -EIO, cause, "%s: %s: %s; %s", part->name, what, text, users);
        return work_fail(d->w, -EIO, cause, "%s: %s: %s%s", part->name, what, text,
                         users ? "; nvidia-smi and fuser -v /dev/nvidia* show who uses it (DCGM, a device "
                                 "plugin)"
                               : "");
}

/* A change of mode or a reset may invalidate handles, so NVML is opened again. */
int division_open(Division *d) {
        division_close(d);
        int r = gpus_open(d->w, &d->gpus);
        if (r < 0)
                return r;
        d->open = true;
        for (size_t i = 0; i < d->n; i++) {
                unsigned gpu = d->parts[i].layout->gpu;
                if (gpu >= d->gpus.n)
                        return work_fail(
                                d->w, -ENODEV, CAUSE_MIG,
                                "spec.accelerator.nvidia.mig names GPU %u, but there are only %zu, counted "
                                "from 0", gpu,
                                d->gpus.n);
                d->parts[i].device = d->gpus.items[gpu].device;
                if (d->parts[i].name)
                        continue;
                d->parts[i].name = gpu_name(&d->gpus, gpu);
                d->parts[i].address = xstrdup(d->gpus.items[gpu].address);
        }
        return 0;
}

bool part_wants_mig(const DividedGpu *part) {
        return part->layout->profiles && part->layout->profiles[0];
}
