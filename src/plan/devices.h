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

/* ---- nvidia.c ---- */
/* What nvidia.c (options, contradictions, the whole), nvidia-steps.c (the steps and their order) and health.c
 * share. */

#define NVIDIA_GROUP "accelerator"
#define IMEX_CHANNELS 2048              /* the driver's default (NVIDIA/open-gpu-kernel-modules: nv-reg.h) */

typedef struct Stack {
        Plan *plan;
        const Nvidia *want;
        const Host *host;
        FailurePolicy policy;
        GpuClass class;
        unsigned gpus;                  /* that there must be */
        ImexMode imex;                  /* IMEX_AUTO: left as the image has it */
        bool efa;                       /* EFA devices are used: there are some, or must be */
        bool manager;                   /* fabric manager runs on this host */
        MigLayout *layouts; size_t n_layouts;   /* given away to its step */
        char *mig;                      /* the same for a reader, or NULL */
        char **options, **parameters;   /* for the module, and what must be so where it is loaded already */
        char *ids[64];                  /* of the steps that are planned, by StepName; else NULL */
} Stack;

_nonnull_ bool stack_has_switches(const Stack *s);
_nonnull_ bool stack_is_tray(const Stack *s);
_nonnull_ bool stack_gates_fabric(const Stack *s);
_nonnull_ bool stack_runs_imex(const Stack *s);
_nonnull_ bool stack_bars_imex(const Stack *s);
_nonnull_ bool stack_wants_channel(const Stack *s);
/* Do its GPUs register with a fabric, so that NVML tells how each fares there? */
_nonnull_ bool stack_registers(const Stack *s);
/* health.c: what of this machine is looked at before it is used; nothing where nobody wants that. */
_nonnull_ bool stack_looks_at_health(const Stack *s);
_nonnull_ void stack_fill_health(Stack *s, Action *a);
/* All steps that this machine has, each behind those that it needs. */
_nonnull_ void stack_plan_steps(Stack *s);
