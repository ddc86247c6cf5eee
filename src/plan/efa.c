/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic Fabric Adapters: modules, and a driver on each. */
#include "plan/devices.h"
#include "base/str.h"
#include <errno.h>

#define GROUP "network"

/* amzn/amzn-drivers: kernel/linux/efa/conf/efa.conf */
static const char modules[][12] = { "ib_core", "ib_uverbs", "efa" };

bool plan_uses_efa(const Config *config, const Host *host) {
        const InstanceOptions *o = &config->instance;
        return o->efa == EFA_REQUIRE || (o->efa == EFA_AUTO && (o->expected_efa > 0 || host_efa(host) > 0));
}

/* EFA that the user did not ask for: without it the node is still usable. */
static bool is_extra(const InstanceOptions *o) {
        return o->efa == EFA_AUTO && o->expected_efa == 0;
}

/* Its data to other nodes then passes through a CPU, or the adapter of another GPU. */
static void warn_of_far_gpus(Plan *plan, const Host *host) {
        bool placed = false;
        _strv_ char **far = host_far_gpus(host, &placed);
        if (far)
                json_object_set_new(plan->facts, "gpusWithoutEfa", json_list(far));
        if (plan_cards_here(plan, host, far) || !far)
                return;
        _free_ char *list = strv_join(far, ", ");
        diag_warn(&plan->warnings, "efa-far",
                  "GPU%s %s %s no EFA device %s: %s data takes a longer path to other nodes. Try other "
                  "network cards for EFA with nodestrap plan --efa CARDS",
                  far[1] ? "s" : "", list, far[1] ? "have" : "has",
                  placed ? "behind the same PCIe switch" : "on the same NUMA node", far[1] ? "their" : "its");
}

int plan_efa(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const InstanceOptions *o = &config->instance;
        _free_ char *before = NULL;
        if (host->ptrace_scope > 0 && plan_uses_efa(config, host))
                diag_warn(&plan->warnings, "ptrace-scope",
                          "kernel.yama.ptrace_scope is %d, so libfabric cannot use shared memory between the "
                          "processes of a node; set it to 0 in spec.instance.sysctl",
                          host->ptrace_scope);
        unsigned count = MAX(o->expected_efa, (unsigned)(o->efa == EFA_REQUIRE));
        Promise promise = { CAUSE_EFA,
                            o->expected_efa > 0 ? "spec.instance.network.efa.expectedDevices"
                                                : "spec.instance.network.efa.mode",
                            o->efa == EFA_OFF ? 0 : count, host->type ? host->type->max_efa : -1,
                            config->failure_policy == FAILURE_JOIN_TAINTED };
        int r = plan_promise(plan, host, &promise, diag);
        if (r < 0 || !plan_uses_efa(config, host))
                return r;
        warn_of_far_gpus(plan, host);
        for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
                Action *load = plan_add(plan, ACTION_LOAD_MODULE, PHASE_DEVICES, GROUP, modules[i],
                                        i + 1 < ARRAY_SIZE(modules) ? "dependency of the EFA driver"
                                                                    : "EFA driver");
                load->lenient = is_extra(o);
                if (before)
                        action_after(load, before);
                RENEW(before, xstrdup(load->id));
        }
        Action *check = plan_add(plan, ACTION_CHECK_EFA, PHASE_DEVICES, GROUP, "efa",
                                 count > 0 ? "check the configured count and the driver"
                                           : "check the driver of each EFA device");
        if (count > 0)
                check->with = xasprintf("%s%u device%s", o->expected_efa > 0 ? "" : "at least ", count,
                                        count == 1 ? "" : "s");
        check->device.count = count;
        check->lenient = is_extra(o);
        devices_seen(check, host, pci_is_efa);
        action_after(check, before);
        return 0;
}
