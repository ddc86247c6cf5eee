/* SPDX-License-Identifier: Apache-2.0
 * Checks spec.instance.sysctl: may nodestrap make each setting, and does kubelet start with it? */
#include "base/json.h"
#include "base/str.h"
#include "base/sysctl.h"
#include "config/fields.h"
#include "config/kubelet.h"

#define PATH "spec.instance.sysctl"

/* kubernetes/kubernetes pkg/kubelet/cm/container_manager_linux.go: setupKernelTunables. */
const Tunable kubelet_tunables[] = {
        { SYSCTL_DIR "vm/overcommit_memory",      "1"        },
        { SYSCTL_DIR "vm/panic_on_oom",           "0"        },
        { SYSCTL_DIR "kernel/panic",              "10"       },
        { SYSCTL_DIR "kernel/panic_on_oops",      "1"        },
        { SYSCTL_DIR "kernel/keys/root_maxkeys",  "1000000"  },
        { SYSCTL_DIR "kernel/keys/root_maxbytes", "25000000" },
};
const size_t n_kubelet_tunables = ARRAY_SIZE(kubelet_tunables);

/* For a lone drop-in another document may turn it off. */
static bool protects_kernel_defaults(const Merge *m) {
        _strv_ char **flags = merge_flags(m);
        STRV_FOREACH(flag, flags)
                if (strstr(*flag, "--protect-kernel-defaults"))
                        return false;           /* the user decides */
        return !m->partial && !json_is_false(merge_find(m, "spec.kubelet.config.protectKernelDefaults"));
}

/* A new message, or NULL. */
static char *setting_fault(const Merge *m, const char *name, const char *text) {
        _free_ char *path = sysctl_path(name), *value = str_strip(text);
        const char *wanted = PICK(t, kubelet_tunables, n_kubelet_tunables, streq(path, t->path), t->value,
                                  NULL),
                   *mode = json_get_text(merge_find(m, "spec.instance.hugePages"), "mode");
        /* the builder of an image knows which program it is, a reader of user data does not */
        if (sysctl_names_program(name, text))
                return xstrdup("names a program that the kernel would start as root: set it in the image, in "
                               "a file in /etc/sysctl.d");
        if (wanted && !streq(value, wanted) && protects_kernel_defaults(m))
                return xasprintf("kubelet starts only with the value %s: leave this setting out, or set "
                                 "spec.kubelet.config.protectKernelDefaults: false", wanted);
        if (endswith(path, "/tcp_fastopen_key") || endswith(path, "/stable_secret"))
                return xstrdup("is a secret, which plans and logs would show. Have a script write it to a "
                               "file with mode 0600 in /etc/sysctl.d, and run sysctl -p FILE");
        if (startswith(path, SYSCTL_DIR "vm/nr_hugepages") && *mode && !streq(mode, "keep"))
                return xstrdup("reserves huge pages, and so does spec.instance.hugePages: keep only one");
        return NULL;
}

bool sysctl_validate(const Merge *m, Diag *diag) {
        _strv_ char **paths = NULL;
        bool good = true;
        const char *name;
        json_t *value;
        json_object_foreach(merge_find(m, PATH), name, value) {
                if (!sysctl_name_is_valid(name))
                        continue;               /* validate.c reports it */
                _free_ char *path = sysctl_path(name), *at = xasprintf(PATH ".%s", name),
                            *fault = setting_fault(m, name, json_string_value(value) ?: "");
                if (!fault && strv_contains(paths, path))
                        fault = xstrdup("is set twice, under two names");
                if (fault)
                        config_report(m, diag, at, fault);
                good &= !fault;
                strv_add(&paths, path);
        }
        return good;
}
