/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the planners of devices share: devices.c, sysctl.c, pages.c, efa.c, census.c, neuron.c, and nvidia.c
 * with mig.c and imex.c. */
#include "plan/planner.h"

#define CENSUS_ID   "check-machine:devices"
#define NVIDIA_PATH "spec.accelerator.nvidia"

_must_check_ _nonnull_ int plan_pages(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_efa(Plan *plan, const Config *config, const Host *host, Diag *diag);
_nonnull_ void plan_census(Plan *plan, const Config *config, const Host *host);
/* Comes behind plan_census(). */
_nonnull_ void plan_neuron(Plan *plan, const Host *host);
/* Addresses of this boot's devices, for messages; none in a model, whose addresses mean nothing. */
_nonnull(1, 2) void devices_seen(Action *a, const Host *host, bool (*is)(const PciDevice *));

/* How GPUs are to be divided: *ret_layouts for each of the GPUs that something was asked for, in the order of
 * their PCI addresses, and *ret_text for a reader ("all: 7 x 1g.5gb"); both empty where nobody asks. -EINVAL
 * where that cannot be. */
_must_check_ _nonnull_ int mig_layouts(Plan *plan, const Config *config, const Host *host, unsigned gpus,
                                       MigLayout **ret_layouts, size_t *ret_n, char **ret_text, Diag *diag);

#define IMEX_NODES "/etc/nvidia-imex/nodes_config.cfg"
/* The files of a service that this host runs itself. */
_nonnull_ void plan_imex_files(Plan *plan, const Nvidia *nvidia, const Host *host);
