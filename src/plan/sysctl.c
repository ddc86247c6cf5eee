/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel settings. Two names of one setting, and values that kubelet would not start with, are refused. */
#include "plan/devices.h"
#include "base/str.h"
#include "base/sysctl.h"
#include <errno.h>

/* kubernetes/kubernetes pkg/kubelet/cm/container_manager_linux.go: setupKernelTunables, the same in all
 * releases that EKS has. */
const Tunable kubelet_tunables[] = {
        { SYSCTL_DIR "vm/overcommit_memory",      "1"        },
        { SYSCTL_DIR "vm/panic_on_oom",           "0"        },
        { SYSCTL_DIR "kernel/panic",              "10"       },
        { SYSCTL_DIR "kernel/panic_on_oops",      "1"        },
        { SYSCTL_DIR "kernel/keys/root_maxkeys",  "1000000"  },
        { SYSCTL_DIR "kernel/keys/root_maxbytes", "25000000" },
};
const size_t n_kubelet_tunables = ARRAY_SIZE(kubelet_tunables);

#define NUMBERS "-0123456789 \t\n"        /* a value that is made of these alone is no secret */

static bool protects_kernel_defaults(const Config *config) {
        for (char **flag = config->kubelet.flags; flag && *flag; flag++)
                if (strstr(*flag, "--protect-kernel-defaults"))
                        return false;           /* it says so itself, one way or the other */
        return !json_is_false(json_object_get(config->kubelet.config, "protectKernelDefaults"));
}

static int check_setting(const Config *config, const Variable *v, const char *path, Diag *diag) {
        _cleanup_(freep) char *at = xasprintf("spec.instance.sysctl.%s", v->name),
                              *value = str_strip(v->value);
        for (size_t i = 0; i < n_kubelet_tunables; i++)
                if (streq(path, kubelet_tunables[i].path) && !streq(value, kubelet_tunables[i].value) &&
                    protects_kernel_defaults(config))
                        return diag_error_at(
                                diag, -EINVAL, CAUSE_INVALID, NULL, at,
                                "kubelet starts with no other value than %s here: leave it out, or "
                                "set spec.kubelet.config.protectKernelDefaults: false",
                                kubelet_tunables[i].value);
        if (endswith(path, "/tcp_fastopen_key") || endswith(path, "/stable_secret"))
                return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, at,
                                     "is a secret, and what is set here stands in plans and logs: set it by "
                                     "a part of the user data that only root can read");
        if (startswith(path, SYSCTL_DIR "vm/nr_hugepages") &&
            config->instance.hugepages.mode != HUGEPAGES_KEEP)
                return diag_error_at(
                        diag, -EINVAL, CAUSE_INVALID, NULL, at,
                        "reserves huge pages, and so does spec.instance.hugePages: keep one of the two");
        return 0;
}

int plan_sysctl(Plan *plan, const Config *config, Diag *diag) {
        const InstanceOptions *instance = &config->instance;
        _cleanup_(strv_freep) char **paths = NULL;
        int r = 0;
        for (size_t i = 0; i < instance->n_sysctl; i++) {
                const Variable *v = &instance->sysctl[i];
                _cleanup_(freep) char *path = sysctl_path(v->name);
                int k = check_setting(config, v, path, diag);
                if (strv_contains(paths, path))
                        k = diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, "spec.instance.sysctl",
                                          "%s is set twice, under two names", v->name);
                r = k < 0 ? k : r;
                strv_add(&paths, path);
                if (r < 0)
                        continue;
                Action *set = plan_add(plan, ACTION_SET_SYSCTL, PHASE_DEVICES, "sysctl", v->name,
                                       "as asked for, before kubelet looks");
                set->with = xstrdup(v->value);
                set->secret = v->value[strspn(v->value, NUMBERS)];
        }
        return r;
}
