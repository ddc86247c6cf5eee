/* SPDX-License-Identifier: Apache-2.0
 * A kernel setting → its value when init runs: from /proc/sys on the machine; of an image from
 * sysctl.d(5), in the order of file names, else the kernel default. The kernel command line is ignored. */
#include "doctor/look.h"

#include "base/str.h"
#include "base/sysctl.h"

#define MAX_FILES 256u

/* Of two files of one name the first directory wins. /run of an image does not survive a boot. */
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
};

/* NULL: not known. The caller frees it. */
static char *default_value(const Look *l, const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
                if (!streq(defaults[i].name, name))
                        continue;
                if (!defaults[i].option)
                        return xstrdup(defaults[i].value);
                char *value = feature_text(l, defaults[i].option);
                if (value && !*value) {
                        RENEW(value, xstrdup(defaults[i].value));
                }
                return value;
        }
        return NULL;
}

/* The last line that sets it wins. "-kernel.panic = 10": the "-" means that it may fail. */
static void read_file(const char *text, const char *path, const char *file, char **value, char **from) {
        for (const char *line = text; *line;) {
                size_t size = strcspn(line, "\n");
                _free_ char *copy = xstrndup(line, size);
                char *equals = strchr(copy, '=');
                line += size + (line[size] == '\n');
                if (!equals)
                        continue;
                *equals = 0;
                _free_ char *key = str_strip(copy), *set = str_strip(equals + 1);
                const char *name = key + (*key == '-');
                _free_ char *its = sysctl_name_is_valid(name) ? sysctl_path(name) : NULL;
                if (!its || !streq(its, path))
                        continue;
                FREE_ALL(*value, *from);
                *value = TAKE_PTR(set);
                *from = xstrdup(file);
        }
}

/* A link to /dev/null hides the files of this name in later directories. */
static void read_name(const Look *l, const char *name, const char *path, char **value, char **from) {
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _free_ char *file = xasprintf("%s/%s", folders[i], name), *target = NULL, *text = NULL;
                bool link = root_read_link(l->root, file, &target) >= 0;
                if (!link && root_exists(l->root, file) == 0)
                        continue;
                if (!(link && streq(target, "/dev/null")) &&
                    image_read(l->root, file, IMAGE_TEXT_MAX, &text, NULL) >= 0)
                        read_file(text, path, file, value, from);
                return;
        }
}

static char *configured_value(const Look *l, const char *path, char **from) {
        _strv_ char **names = NULL;
        char *value = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _strv_ char **files = root_names(l->root, folders[i]);
                for (char **f = files; f && *f && strv_length(names) < MAX_FILES; f++)
                        if (endswith(*f, ".conf") && !strv_contains(names, *f))
                                strv_add(&names, *f);
        }
        strv_sort(names);
        for (char **name = names; name && *name; name++)
                read_name(l, *name, path, &value, from);
        return value;
}

void look_sysctl(Look *l, const Need *need) {
        _free_ char *name = xstrdup(need->name), *path = NULL, *value = NULL, *from = NULL;
        char *want = strchr(name, '=');
        *want++ = 0;
        path = sysctl_path(name);
        if (l->image->running) {
                if (root_read_line(l->root, path, &value) >= 0)
                        from = xstrdup(path);
        } else
                value = configured_value(l, path, &from);
        if (!value && !l->image->running)
                value = default_value(l, name);
        _free_ char *found = value ? xasprintf("%s, %s", value, from ?: "the kernel's own") : NULL;
        if (!value)
                check_tell(checks_add(l->checks, CHECK_UNKNOWN, "sysctl", need->name, NULL), need,
                           l->image->running
                                   ? "%s cannot be read, and kubelet does not start with another"
                                   : "no file in sysctl.d sets %s, and nothing tells what the kernel "
                                     "makes of it; kubelet does not start with another",
                           l->image->running ? path : name);
        else if (streq(value, want))
                look_well(l, need, "sysctl", found);
        else
                check_tell(look_fault(l, need, "sysctl", found), need,
                           "kubelet does not start with another value than %s, because of its "
                           "protectKernelDefaults: have a file in /etc/sysctl.d say %s = %s, or "
                           "spec.instance.sysctl",
                           want, name, want);
}
