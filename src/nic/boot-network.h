/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/error.h"
#include "base/root.h"

/* Waits until systemd-networkd has configured the primary interface and those decided for it, and leaves all
 * others unmanaged. begin_usec: start of the process, from which the metadata service gets its time.
 * ret_configured: "eth0, eth1"; the caller frees it. At the deadline, -ETIMEDOUT with an error for each link;
 * after a signal, -EINTR with one. */
_must_check_ _nonnull_ int boot_network_wait(const Root *root, uint64_t begin_usec, uint64_t deadline_usec,
                                             char **ret_configured, Diag *diag);
