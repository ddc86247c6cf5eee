/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Licences of GRID drivers, as NVIDIA's management library tells them; conventions as in nvml.h, whose
 * nvml_open() comes first. */
#include "nvidia/nvml.h"

typedef struct NvmlLicense {
        bool supported;                 /* by the driver: without, it is not one of GRID's */
        bool licensed;
        char product[128];              /* "NVIDIA RTX Virtual Workstation"; or empty */
} NvmlLicense;
_must_check_ _nonnull_ int nvml_license(NvmlDevice device, NvmlLicense *ret);
