/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* content_probe() of several devices at once, in a process of its own: a disk that does not answer may keep
 * who reads it for ever (nvme_core.io_timeout is set so on EC2), and must neither hold up the boot nor hide
 * what the others carry. */
#include "disk/disk.h"

typedef struct Probed {
        char *path;                     /* the caller's */
        int result;                     /* of content_probe(), or -EINTR when SIGTERM or SIGINT came first */
        Content content;                /* CONTENT_UNREADABLE of one that has said nothing in time */
} Probed;
/* 0, or a negative errno with a diagnostic where nobody could look. Errors of one device stand in its result,
 * and in diag. */
_must_check_ _nonnull_ int probe_all(const Root *root, Probed *all, size_t n, uint64_t timeout_usec,
                                     Diag *diag);
