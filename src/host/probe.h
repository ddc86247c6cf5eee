/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* content_probe() of several devices at once, each on a thread of its own: a disk that does not answer may keep who reads it for
 * ever (nvme_core.io_timeout is set so on EC2), and must neither hold up the boot nor hide what the others carry. */
#include "host/content.h"

typedef struct Probe Probe;
_must_check_ _nonnull_ Probe *probe_start(const Root *root, const char *path);
/* What content_probe() said, and frees the probe. One that has said nothing until the instant (CLOCK_MONOTONIC) is left to itself:
 * CONTENT_UNREADABLE then. -EINTR without a diagnostic when SIGTERM or SIGINT came first. */
_must_check_ _nonnull_ int probe_take(Probe *p, uint64_t deadline_usec, Content *ret, Diag *diag);
