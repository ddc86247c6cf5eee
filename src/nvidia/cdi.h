/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks a CDI file (cncf-tags/container-device-interface:SPEC.md). Pure: no file, no NVIDIA library. */
#include "base/macro.h"
#include <jansson.h>

/* A device that a container may ask for. node: "/dev/nvidia0", its own or of its GPU; NULL: not known. */
typedef struct CdiWanted { const char *index, *uuid, *node; bool mig; } CdiWanted;

/* Why a container runtime refuses it: static text, or NULL. */
const char *cdi_fault(const json_t *spec);
/* Missing entries: of nodes, which all containers need, "/dev/nvidia-uvm"; of wanted, by any of its names,
 * "device 0:1" or a node of it. A string vector; NULL: none. */
_must_check_ char **cdi_lacks(const json_t *spec, const CdiWanted *wanted, size_t n,
                              const char *const *nodes);
