/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel settings, huge pages, EFA, what a machine of this type must have, and Neuron devices. */
#include "plan/devices.h"
#include "base/str.h"

void devices_seen(Action *a, const Host *host, bool (*is)(const PciDevice *)) {
        for (size_t i = 0; i < host->n_pci && !host->modelled; i++)
                if (is(&host->pci[i]))
                        strv_add(&a->device.seen, host->pci[i].address);
}

#define NUMBERS "-0123456789 \t\n"        /* a value of these characters cannot be a secret */

int plan_devices(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        /* config/sysctl.c has checked them. */
        const InstanceOptions *instance = &config->instance;
        for (const Variable *v = instance->sysctl; v < instance->sysctl + instance->n_sysctl; v++) {
                Action *set = plan_add(plan, ACTION_SET_SYSCTL, PHASE_DEVICES, "sysctl", v->name,
                                       "configured value, set before kubelet starts");
                set->with = xstrdup(v->value);
                set->secret = v->value[strspn(v->value, NUMBERS)];
        }
        int r = plan_pages(plan, config, host, diag);
        if (THEN(r, plan_efa(plan, config, host, diag)) < 0)
                return r;
        plan_census(plan, config, host);
        plan_neuron(plan, host);
        plan_tuning(plan, config, host);
        return 0;
}
