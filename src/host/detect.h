/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The detectors of this folder; host_detect() calls them in turn. Each fills its own part of Host and only looks. What a plain
 * container lacks (PCI, NUMA, disks) may be missing; what is there and cannot be understood is an error with the path and why. */
#include "host/host.h"

_must_check_ _nonnull_ int detect_pci(const Root *root, Host *h, Diag *diag);
_must_check_ _nonnull_ int detect_disks(const Root *root, Host *h, Diag *diag);
_must_check_ _nonnull_ int detect_nics(const Root *root, Host *h, Diag *diag);
_nonnull_ void nics_clear(Host *h);
_must_check_ _nonnull_ int detect_memory(const Root *root, Host *h, Diag *diag);        /* CPUs, MemTotal, NUMA nodes */
/* kubelet, containerd, driver, and which optional programs are there. */
_must_check_ _nonnull_ int detect_versions(const Root *root, const HostOptions *options, Host *h, Diag *diag);
/* h->instance from the cache, the metadata service and EC2, or assumed. Wants h->product_name. */
_must_check_ _nonnull_ int detect_identity(const Root *root, const Config *config, const HostOptions *options, Host *h,
                                           Diag *diag);
/* Everything of h for a machine of options->instance_type. */
_must_check_ _nonnull_ int model_host(const Config *config, const HostOptions *options, Host *h, Diag *diag);

/* Instance facts nobody was asked for; each goes to h->assumed. What is set already stays. */
_nonnull_ void assume_identity(const Config *config, Host *h);
_nonnull_ void assume(Host *h, const char *fact);
/* Takes a version given by option, or -EINVAL with CAUSE_USAGE; "v1.33.4" and "1.33" are accepted. */
_must_check_ _nonnull_ int version_option(const char *option, const char *text, char **ret, Diag *diag);
/* The first "1.33.4" in text; NULL if there is none. */
char *version_find(const char *text);
/* "path: cannot be read: why; meaning" as CAUSE_FACTS; returns r. */
_nonnull_ int fact_error(Diag *diag, int r, const char *path, const char *meaning);
