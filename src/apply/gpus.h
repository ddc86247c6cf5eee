/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the executors that speak to NVIDIA's management library share: fabric.c, mig.c, clocks.c, cdi.c. */
#include "apply/work.h"
#include "nvidia/nvml.h"

/* Opens the library for as long as it takes; the task fails where that cannot be, or fewer than device.count GPUs are there. */
_must_check_ _nonnull_ int gpus_open(Work *w, NvmlGpus *ret);
/* What is wrong with library or driver → the failure and what to look at. */
_nonnull_ int gpus_fail(Work *w, const NvmlTrouble *trouble);
/* "GPU 3 (0000:86:00.0)" */
_malloc_ _nonnull_ char *gpu_name(const NvmlGpus *gpus, size_t i);
/* "NVML sees 7 of 8 GPUs: not 0000:86:00.0", by the addresses that the census saw; NULL: all are there. */
char *gpus_missing(const Work *w, const NvmlGpus *gpus) _nonnull_;
