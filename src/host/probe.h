/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* content_probe() of several devices in a process of its own. A read of a dead disk may never return (EC2
 * sets nvme_core.io_timeout so). It must not stop the boot or hide the contents of other disks. */
#include "disk/disk.h"

#include <sys/types.h>

typedef struct Prober {
        pid_t child;                    /* 0: none */
        int fd;                         /* our end of the socket */
        uint64_t timeout_usec, until_usec;
        bool pending;                   /* the answers are not complete */
} Prober;

typedef struct Probed {
        char *path;                     /* of the caller */
        int result;                     /* of content_probe(); -EINTR: a stop signal */
        Content content;                /* CONTENT_UNREADABLE: no answer in time */
} Probed;

/* Starts the process. Call it before any thread: a fork copies locks of other threads (malloc, dlopen), which
 * the child would never release. Call prober_end() in any case. */
_must_check_ _nonnull_ int prober_start(const Root *root, Prober *ret, Diag *diag);
/* Sends all devices, without waiting for answers. */
_nonnull_ void prober_ask(Prober *p, const Probed *all, size_t n, uint64_t timeout_usec);
/* Waits for the answers. An error of one device is in its result and in diag; a negative errno: the process
 * failed. */
_must_check_ _nonnull_ int prober_take(Prober *p, Probed *all, size_t n, Diag *diag);
void prober_end(Prober *p);
