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
