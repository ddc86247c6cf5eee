/* SPDX-License-Identifier: Apache-2.0
 * A kernel setting → its value when init runs. On the machine /proc/sys has it. In an image sysctl.d(5) has
 * it, in the order of file names; else it is the kernel default. Ignores the kernel command line. */
#include "doctor/look.h"

#include "base/sysctl.h"

#define MAX_FILES 256u

/* Of files with one name, the first directory wins. /run of an image does not survive a boot. */
static const char *const folders[] = { "/etc/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d",
                                       "/lib/sysctl.d" };

/* Defaults, and the build option that changes them: https://docs.kernel.org/admin-guide/sysctl/ */
static const struct { const char *name, *option, *value; } defaults[] = {
        { "vm.overcommit_memory", NULL, "0" },
        { "vm.panic_on_oom", NULL, "0" },
        { "kernel.panic", "CONFIG_PANIC_TIMEOUT", "0" },
        { "kernel.panic_on_oops", "CONFIG_PANIC_ON_OOPS_VALUE", "0" },
        { "kernel.keys.root_maxkeys", NULL, "1000000" },
        { "kernel.keys.root_maxbytes", NULL, "25000000" },
        { "kernel.numa_balancing", "CONFIG_NUMA_BALANCING_DEFAULT_ENABLED", "0" },
};

/* NULL: not known. The caller frees it. */
static char *default_value(const Look *l, const char *name) {
        __auto_type d = FIND(one, defaults, ARRAY_SIZE(defaults), streq(one->name, name));
        char *value = d && d->option ? feature_text(l, d->option) : NULL;
        if (d && (!d->option || (value && !*value)))
                RENEW(value, xstrdup(d->value));
        if (value && streq(value, "y"))
                RENEW(value, xstrdup("1"));
        return value;
}

/* The last line that sets it wins. "-kernel.panic = 10": the "-" means that it may fail. */
static void read_file(const char *text, const char *path, const char *file, char **value, char **from) {
        for (const char *at = text; *at;) {
                _free_ char *line = str_cut(&at, "\n");
                char *equals = strchr(line, '=');
                if (!equals)
                        continue;
                *equals = 0;
                _free_ char *key = str_strip(line), *set = str_strip(equals + 1);
                const char *name = key + (*key == '-');
                _free_ char *its = sysctl_name_is_valid(name) ? sysctl_path(name) : NULL;
                if (its && streq(its, path)) {
                        RENEW(*value, TAKE_PTR(set));
                        RENEW(*from, xstrdup(file));
                }
        }
}

static char *configured_value(const Look *l, const char *path, char **from) {
        _strv_ char **files = look_conf_files(l, folders, ARRAY_SIZE(folders), "", MAX_FILES);
        char *value = NULL;
        STRV_FOREACH(file, files) {
                _free_ char *text = image_text(l->root, IMAGE_TEXT_MAX, "%s", *file);
                read_file(text ?: "", path, *file, &value, from);
        }
        return value;
}

void look_sysctl(Look *l, const Need *need) {
        const char *rest = need->name;
        _free_ char *name = str_cut(&rest, "="), *path = sysctl_path(name), *value = NULL, *from = NULL;
        bool running = l->image->running;
        if (!running)
                value = configured_value(l, path, &from) ?: default_value(l, name);
        else if (root_read_line(l->root, path, &value) >= 0)
                from = xstrdup(path);
        _free_ char *found = value ? xasprintf("%s, %s", value, from ?: "kernel default") : NULL;
        if (need->optional) {
                _free_ char *line = running || from ? NULL : image_command_line(l->image);
                if (value && (streq(value, rest) || strstr(line ?: "", "numa_balancing=disable")))
                        look_well(l, need, "sysctl", found);
                else if (value)
                        FAULT(l, need, "sysctl", found,
                              "NUMA balancing costs GPUs up to 15 %% of their transfer rate: set %s = "
                              "%s in a file in /etc/sysctl.d, or in spec.instance.sysctl",
                              name, rest);
                return;
        }
        if (!value)
                TELL(l->checks, CHECK_UNKNOWN, "sysctl", need->name, NULL, need,
                     running ? "%s is not readable, and kubelet starts only if its value is %s"
                             : "sysctl.d does not set %s, and its kernel default is not known: set it to %s "
                               "there, or kubelet may not start",
                     running ? path : name, rest);
        else if (streq(value, rest))
                look_well(l, need, "sysctl", found);
        else
                FAULT(l, need, "sysctl", found,
                      "with protectKernelDefaults, kubelet starts only if the value is %s: set %s = %s in a "
                      "file in /etc/sysctl.d, or in spec.instance.sysctl",
                      rest, name, rest);
}
