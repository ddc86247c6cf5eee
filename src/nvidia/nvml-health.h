/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The part of NVIDIA's management library that tells how a GPU fares, between nvml_open() and nvml_close().
 * Functions return its code as those of nvml.h do; what a GPU, a driver or a mode (MIG) has no answer for is
 * NVML_NOT_SUPPORTED most of the time. */
#include "nvidia/nvml.h"

/* What the driver wants done with a GPU: nvmlDeviceGpuRecoveryAction_t. */
typedef enum NvmlRecovery {
        NVML_RECOVERY_NONE,
        NVML_RECOVERY_RESET,
        NVML_RECOVERY_REBOOT,
        NVML_RECOVERY_DRAIN_P2P,
        NVML_RECOVERY_DRAIN_AND_RESET,
        NVML_RECOVERY_DOMAIN,           /* the IMEX domain, which is the rack's */
        NVML_RECOVERY_BUS_RESET,        /* this and the next by cuda-python: cuda.bindings.nvml */
        NVML_RECOVERY_SYSTEM_REBOOT,
} NvmlRecovery;
/* R570 and later */
_must_check_ _nonnull_ int nvml_recovery(NvmlDevice device, unsigned *ret);

/* Rows of memory that are to be replaced at the next reset; one could not be. From Ampere on. */
_must_check_ _nonnull_ int nvml_remapped_rows(NvmlDevice device, bool *ret_pending, bool *ret_failed);
/* The same of pages, before Ampere. */
_must_check_ _nonnull_ int nvml_retired_pages(NvmlDevice device, bool *ret_pending);
/* Errors of memory that ECC has not corrected, since the driver was loaded or the GPU reset. */
_must_check_ _nonnull_ int nvml_uncorrected_errors(NvmlDevice device, uint64_t *ret);

_must_check_ _nonnull_ int nvml_link_is_up(NvmlDevice device, unsigned link, bool *ret);

enum { /* nvmlClocksEventReason…, those that are no choice of anybody's */
       NVML_CLOCKS_HW_SLOWDOWN = 0x08,
       NVML_CLOCKS_SW_THERMAL = 0x20,
       NVML_CLOCKS_HW_THERMAL = 0x40,
       NVML_CLOCKS_HW_POWER_BRAKE = 0x80,
};
/* Why the clocks are not higher: bits, also others. */
_must_check_ _nonnull_ int nvml_clock_reasons(NvmlDevice device, uint64_t *ret);
