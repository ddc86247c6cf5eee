/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that this machine lacks for its type. A step finds them, so that the plan id stays the same. */
#include "plan/devices.h"
#include "base/str.h"

/* Does this configuration use it? Else it is only a warning. */
static bool is_needed(const Config *config, const Host *host, Cause cause) {
        switch (cause) {
        case CAUSE_GPU_CLASS:
        case CAUSE_GPU_MISSING:
        case CAUSE_NVSWITCH:
                return config->nvidia.mode != NVIDIA_OFF;
        case CAUSE_NEURON:
                return host->neuron.driver;
        case CAUSE_EFA:
                return config->instance.efa != EFA_OFF;
        case CAUSE_DISKS:
                return config->instance.storage.strategy != STORAGE_NONE;
        /* otherwise it may be intended: numa=off, CPU options of the launch template */
        case CAUSE_NUMA:
                return ANY(p, config->instance.hugepages.pages, config->instance.hugepages.n_pages,
                           p->numa_node >= 0);
        default:
                return true;
        }
}

void plan_census(Plan *plan, const Config *config, const Host *host) {
        bool accelerated = host->gpus.class != GPU_CLASS_NONE || host->neuron.expected > 0 ||
                           (host->type && *host->type->gpu_model);
        if (!accelerated && !host->type && config->instance.expected_efa == 0 &&
            !config->cluster.expect_devices)
                return;
        _free_ char *why = host->type ? xasprintf("check that %s has all devices", host->type->name)
                                      : xstrdup("check that all expected devices are present");
        Action *check = plan_add(plan, ACTION_CHECK_MACHINE, PHASE_DEVICES,
                                 accelerated ? "accelerator" : "network", "devices", why);
        check->class = host->gpus.class;
        check->census.gpus = host->gpus.count;
        check->census.efa = config->instance.efa != EFA_OFF ? host_efa(host) : 0;
        check->census.expect = config->cluster.expect_devices;
        if (host->gpus.unread && config->nvidia.mode != NVIDIA_OFF)
                diag_warn(&plan->warnings, "switches-unread", "%s", host->gpus.unread);
        for (const Shortfall *s = host->shortfalls; s < host->shortfalls + host->n_shortfalls; s++) {
                bool needed = is_needed(config, host, s->cause);
                diag_warn(&plan->warnings, needed ? "missing-device" : "unused-device-missing", "%s",
                          s->text);
                if (needed)
                        *APPEND(check->census.missing, check->census.n) =
                                (Shortfall){ s->cause, xstrdup(s->text) };
        }
}
