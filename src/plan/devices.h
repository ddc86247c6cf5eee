/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the planners of devices. */
#include "plan/planner.h"

#define CENSUS_ID   "check-machine:devices"
#define NVIDIA_PATH "spec.accelerator.nvidia"

_must_check_ _nonnull_ int plan_pages(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_efa(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* After the sysctls and the census. */
_nonnull_ void plan_tuning(Plan *plan, const Config *config, const Host *host);
_nonnull_ void plan_census(Plan *plan, const Config *config, const Host *host);
/* After plan_census(). */
_nonnull_ void plan_neuron(Plan *plan, const Host *host);
/* Sets device.seen, but not in a model, which has no addresses. */
_nonnull(1, 2) void devices_seen(Action *a, const Host *host, bool (*is)(const PciDevice *));

/* The wanted GPU partitioning: *ret_layouts in the order of PCI addresses and *ret_text ("all GPUs:
 * 7 x 1g.5gb"); empty if the user wants none. -EINVAL if it is impossible. */
_must_check_ _nonnull_ int mig_layouts(Plan *plan, const Config *config, const Host *host, unsigned gpus,
                                       MigLayout **ret_layouts, size_t *ret_n, char **ret_text, Diag *diag);

#define IMEX_NODES "/etc/nvidia-imex/nodes_config.cfg"
/* The files of the IMEX service that this host runs. */
_nonnull_ void plan_imex_files(Plan *plan, const Nvidia *nvidia, const Host *host);

/* ---- nvidia.c ---- */
/* Shared by nvidia.c (options, contradictions), nvidia-steps.c (the steps and their order) and health.c. */

#define NVIDIA_GROUP "accelerator"
#define IMEX_CHANNELS 2048              /* driver default (NVIDIA/open-gpu-kernel-modules: nv-reg.h) */

typedef struct Stack {
        Plan *plan;
        const Nvidia *want;
        const Host *host;
        FailurePolicy policy;
        GpuClass class;
        unsigned gpus;
        ImexMode imex;                  /* IMEX_AUTO: as the image has it */
        bool efa;                       /* plan_uses_efa() */
        bool manager, no_manager;       /* fabric manager runs on this host */
        bool nvlink5, switches, tray;   /* of the class */
        bool registers;                 /* GPUs register with a fabric, so that NVML reports their state */
        bool gate, runs_imex, bars_imex, uses_imex, channel, programs, health, gridd, license;
        bool repairs;                   /* findings of unusable GPUs get the reason for a repair */
        bool proves;                    /* set by stack_plan_steps(): not in MIG mode */
        bool divides, mig_resets;       /* set by stack_plan_steps() */
        MigLayout *layouts; size_t n_layouts;   /* moved into its step */
        char *mig;                      /* for people, or NULL */
        char **options, **parameters;   /* of the module; checked if it is loaded already */
        char *ids[64];                  /* of the planned steps, by StepName; else NULL */
} Stack;

/* Sets the flags of s. */
_nonnull_ void stack_decide(Stack *s);
/* health.c: hardware checks */
_nonnull_ void stack_fill_health(Stack *s, Action *a);
_nonnull_ void stack_fill_prove(Stack *s, Action *a);
/* All steps of this machine, with their dependencies. */
_nonnull_ void stack_plan_steps(Stack *s);
