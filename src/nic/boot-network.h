/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The end of what a boot does for its network. */
#include "base/error.h"
#include "base/root.h"

/* Waits until systemd-networkd has configured the primary interface and those that were decided for it, and
 * keeps its hands off all others. begin_usec: of the process; the metadata service has time from then on.
 * ret_configured: names of the links, "eth0, eth1", the caller frees them. What is missing at the deadline
 * is an error for each link (-ETIMEDOUT); -EINTR after a request to stop, with one, too. */
_must_check_ _nonnull_ int boot_network_wait(const Root *root, uint64_t begin_usec, uint64_t deadline_usec,
                                             char **ret_configured, Diag *diag);
