/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The boot as a drawing, of what status.json and joined.json hold. */
#include "base/macro.h"
#include <jansson.h>

/* A document of its own (SVG 1.1): time since the kernel started from left to right, a line for each phase,
 * action and wait; what is known of each appears where a viewer shows titles. status may hold anything, also
 * "joined". */
_malloc_ _nonnull_ char *status_draw(const json_t *status);
