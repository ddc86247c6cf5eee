/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "health/health.h"

/* Records as /dev/kmsg gives them, one a line (torvalds/linux:Documentation/ABI/testing/dev-kmsg): what they
 * say against the hardware. text is changed. gpus: addresses as sysfs has them, which complete those of
 * messages; may be NULL. */
_nonnull(1, 4) void kernel_log_findings(char *text, size_t size, char *const *gpus, Findings *f);
