/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic Fabric Adapters: their modules, and that the driver runs every one of them. */
#include "plan/devices.h"
#include "base/str.h"

#define GROUP "network"

/* amzn/amzn-drivers: kernel/linux/efa/conf/efa.conf */
static const char *const modules[] = { "ib_core", "ib_uverbs", "efa" };

bool plan_uses_efa(const Config *config, const Host *host) {
        const InstanceOptions *o = &config->instance;
        return o->efa == EFA_REQUIRE || (o->efa == EFA_AUTO && (o->expected_efa > 0 || host_efa(host) > 0));
}

static void warn_of_efa(Plan *plan, const Config *config, const Host *host) {
        unsigned expected = config->instance.expected_efa;
        const InstanceType *type = host->type;
        if (config->instance.efa == EFA_OFF) {
                if (expected > 0)
                        diag_warn_at(&plan->warnings, "no-effect", NULL,
                                     "spec.instance.network.efa.expectedDevices",
                                     "has no effect with mode off");
                return;
        }
        if (type && type->max_efa >= 0 &&
            (int)MAX(expected, config->instance.efa == EFA_REQUIRE) > type->max_efa)
                diag_warn_at(&plan->warnings, "too-many-efa", NULL, "spec.instance.network.efa",
                             "asks for more than the %d that a %s can have, so that the check will fail",
                             type->max_efa, type->name);
        if (host->ptrace_scope > 0 && plan_uses_efa(config, host))
                diag_warn(&plan->warnings, "ptrace-scope",
                          "kernel.yama.ptrace_scope is %d: libfabric does without shared memory between the "
                          "processes of a node; set spec.instance.sysctl to 0 if that is wanted",
                          host->ptrace_scope);
}

/* Nobody asked for EFA and its devices are here: a node without it is as good as it was. */
static bool is_extra(const InstanceOptions *o) {
        return o->efa == EFA_AUTO && o->expected_efa == 0;
}

void plan_efa(Plan *plan, const Config *config, const Host *host) {
        const InstanceOptions *o = &config->instance;
        _cleanup_(freep) char *before = NULL;
        warn_of_efa(plan, config, host);
        if (!plan_uses_efa(config, host))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
                Action *load = plan_add(plan, ACTION_LOAD_MODULE, PHASE_DEVICES, GROUP, modules[i],
                                        "EFA's driver and what it stands on");
                load->lenient = is_extra(o);
                if (before)
                        action_after(load, before);
                free(before);
                before = xstrdup(load->id);
        }
        unsigned count = MAX(o->expected_efa, (unsigned)(o->efa == EFA_REQUIRE));
        Action *check = plan_add(plan, ACTION_CHECK_EFA, PHASE_DEVICES, GROUP, "efa",
                                 "its driver runs every EFA device that the launch template attached");
        if (count > 0)
                check->with = xasprintf("%u device%s", count, count == 1 ? "" : "s");
        check->device.count = count;
        check->lenient = is_extra(o);
        devices_seen(check, host, pci_is_efa);
        action_after(check, before);
}
