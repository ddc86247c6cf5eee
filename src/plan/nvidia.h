/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What nvidia.c (options, contradictions, the whole), nvidia-steps.c (the steps and their order) and health.c
 * share. */
#include "plan/devices.h"

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
void stack_done(Stack *s);

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
