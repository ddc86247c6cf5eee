/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a CDI file gives to containers (cncf-tags/container-device-interface:SPEC.md), as nvidia-ctk writes
 * it, beside what a machine has. Pure: no file, no library of NVIDIA's. */
#include "base/macro.h"
#include <jansson.h>

/* One that a container may ask for. node: "/dev/nvidia0", its own or its GPU's; NULL: nobody knows. */
typedef struct CdiWanted { const char *index, *uuid, *node; bool mig; } CdiWanted;

/* Why a container runtime would not take it; static text, or NULL: it would. */
const char *cdi_fault(const json_t *spec);
/* What is not in it: "/dev/nvidia-uvm" of those that all containers need, "device 0:1" of those wanted, by
 * whichever of its names; a device's nodes that are not with it. A string vector, NULL: nothing. */
_must_check_ char **cdi_lacks(const json_t *spec, const CdiWanted *wanted, size_t n,
                              const char *const *nodes);
