/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Waits for disks: the kernel finds NVMe namespaces one by one, and udev assembles arrays later. */
#include "host/host.h"

/* Waits for `expected` instance stores, namespaces of their controllers, and configured volumes. Then udev
 * must know all of them with their arrays, and have an empty queue. Wakes by udev, without polling; ends at
 * the timeouts of the options. Logs after a second, then every 10 s. 1: all came, 0: not; -EINTR: a signal.
 * Does not wait below another root or without udev (/run/udev/control). */
_must_check_ _nonnull_ int wait_for_disks(const Root *root, const Config *config, unsigned expected,
                                          const HostOptions *options, Diag *diag);
/* The deadline for missing volumes, or for udev, whose time restarts when the last volume has come. begin: of
 * the wait; seen: the last time that one was missing, else begin. */
_nonnull_ uint64_t wait_deadline(uint64_t begin, uint64_t seen, bool missing, const HostOptions *options);
