/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* content_probe() of several devices at once, in a process of its own. A read from a disk that does not
 * answer may never return (nvme_core.io_timeout is set so on EC2); it must not hold up the boot or hide what
 * the other disks carry. */
#include "disk/disk.h"

#include <sys/types.h>

typedef struct Prober {
        pid_t child;                    /* 0: there is none */
        int fd;                         /* our end of the socket between us */
        uint64_t timeout_usec, until_usec;
        bool pending;                   /* it was asked, and has not answered for all devices */
} Prober;

typedef struct Probed {
        char *path;                     /* the caller's */
        int result;                     /* of content_probe(), or -EINTR when a request to stop came first */
        Content content;                /* CONTENT_UNREADABLE of one that has said nothing in time */
} Probed;

/* Starts the process, which waits for orders. Before any thread: a fork copies the locks that other threads
 * hold, those of malloc and dlopen among them, and nobody in the child would ever release them. End it in any
 * case. */
_must_check_ _nonnull_ int prober_start(const Root *root, Prober *ret, Diag *diag);
/* Has it look at all devices, as long as timeout_usec; does not wait for it. */
_nonnull_ void prober_ask(Prober *p, const Probed *all, size_t n, uint64_t timeout_usec);
/* Waits for what it says of the same devices. 0, or a negative errno with a diagnostic where nobody could
 * look. Errors of one device stand in its result, and in diag. */
_must_check_ _nonnull_ int prober_take(Prober *p, Probed *all, size_t n, Diag *diag);
void prober_end(Prober *p);
