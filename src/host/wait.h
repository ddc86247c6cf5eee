/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Waiting for disks: the kernel finds NVMe namespaces one by one, and udev puts arrays together out of them
 * in its own time. */
#include "host/host.h"

/* Where the configuration uses instance stores: until `expected` of them are there and none of the
 * controllers that are one lacks its namespace. Where it names volumes: until each of them is there. And
 * until udev knows each disk and each array over them, and its queue is empty; woken by udev, never by
 * polling; or until the time of the options is up, which is no error. Says on the console after a second, and
 * every 10 s, what it waits for. 1 if everything came, 0 if not, or a negative errno: -EINTR after a signal.
 * Never waits below a root that is not the host's, nor without udev (no /run/udev/control): it takes what is
 * there then. */
_must_check_ _nonnull_ int wait_for_disks(const Root *root, const Config *config, unsigned expected,
                                          const HostOptions *options, Diag *diag);
/* When it gives up: for volumes that are missing, and for udev, whose time begins anew when the last of them
 * has come. begin: of the wait; seen: when one was missing last, begin where none was. */
_nonnull_ uint64_t wait_deadline(uint64_t begin, uint64_t seen, bool missing, const HostOptions *options);
