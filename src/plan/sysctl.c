/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel settings, as config/sysctl.c has found them good. */
#include "plan/devices.h"
#include "base/str.h"

#define NUMBERS "-0123456789 \t\n"        /* a value that is made of these alone is no secret */

void plan_sysctl(Plan *plan, const Config *config) {
        const InstanceOptions *instance = &config->instance;
        for (size_t i = 0; i < instance->n_sysctl; i++) {
                const Variable *v = &instance->sysctl[i];
                Action *set = plan_add(plan, ACTION_SET_SYSCTL, PHASE_DEVICES, "sysctl", v->name,
                                       "as asked for, before kubelet looks");
                set->with = xstrdup(v->value);
                set->secret = v->value[strspn(v->value, NUMBERS)];
        }
}
