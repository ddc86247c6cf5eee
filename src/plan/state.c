/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet settings → words for apply/state.c. Everybody may read the plan: only known policies and CPUs. */
#include "plan/planner.h"
#include "base/str.h"

/* The first policy is the default; Linux has no others. */
static const struct { const char *name, *policies[2]; } managers[] = {
        { "cpuManagerPolicy",    { "none", "static" } },
        { "memoryManagerPolicy", { "None", "Static" } },
};

/* Before 1.31 the DRA state has another form (kubernetes/kubernetes:pkg/kubelet/cm/dra/state/checkpoint.go).
 * A file that stays is a warning: kubelet says why it exits. */
const char *plan_state(Plan *plan, const Config *config, const Host *host) {
        _cleanup_(storage_places_done) StoragePlaces places =
                storage_binds_of(config, host->containerd_version);
        _cleanup_(json_decrefp) json_t *settings = node_settings(plan, host);
        Action *a = plan_add(plan, ACTION_FORGET_STATE, PHASE_RUN, "kubelet", places.all[PLACE_KUBELET].path,
                             "resource manager state; removed if kubelet refuses it");
        a->lenient = true;
        for (size_t i = 0; i < ARRAY_SIZE(managers); i++) {
                const char *const *policies = managers[i].policies,
                                  *value = json_get_text(settings, managers[i].name);
                for (size_t k = 0; k < ARRAY_SIZE(managers[i].policies); k++)
                        if (streq(*value ? value : policies[0], policies[k]))
                                strv_push(&a->words, xasprintf("%s=%s", managers[i].name, policies[k]));
        }
        const char *cpus = json_get_text(settings, "reservedSystemCPUs");
        const json_t *options = json_object_get(settings, "cpuManagerPolicyOptions");
        if (cpu_list_count(cpus) > 0)
                strv_push(&a->words, xasprintf("reservedSystemCPUs=%s", cpus));
        if (options && node_setting_flag(options, "strict-cpu-reservation") > 0)
                strv_add(&a->words, "strict-cpu-reservation=true");
        if (version_at_least(host->kubelet_version, 1, 31))
                strv_add(&a->words, "draManagerState=v1");
        action_after(a, "write-file:" MOUNTS_READY);
        return a->id;
}
