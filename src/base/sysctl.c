/* SPDX-License-Identifier: Apache-2.0
 * Names of kernel settings ⇄ files (sysctl.d(5)) */
#include "base/sysctl.h"

#include "base/str.h"

/* Each setting has one name: a component "." would make unrecognised aliases. */
bool sysctl_name_is_valid(const char *name) {
        size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@");
        return n > 0 && !name[n] && !strstr(name, "..") && !strstr(name, "//") && !strstr(name, "/./") &&
               !strstr(name, "./.") && !strchr("./", name[0]) && !strchr("./", name[n - 1]);
}

char *sysctl_path(const char *name) {
        char *path = xasprintf(SYSCTL_DIR "%s", name);
        if (name[strcspn(name, "./")] != '.')
                return path;
        for (char *p = path + strlen(SYSCTL_DIR); *p; p++)
                *p = *p == '.' ? '/' : *p == '/' ? '.' : *p;
        return path;
}

char *sysctl_name(const char *path) {
        char *name = xstrdup(path + strlen(SYSCTL_DIR));
        for (char *p = name; *p; p++)
                if (*p == '/')
                        *p = '.';
        return name;
}

bool sysctl_names_program(const char *name, const char *value) {
        static const char settings[][24] = { "kernel/core_pattern",     "kernel/hotplug",
                                             "kernel/modprobe",         "kernel/poweroff_cmd",
                                             "fs/binfmt_misc/register", "fs/ocfs2/nm/hb_ctl_path" };
        _free_ char *path = sysctl_path(name);
        const char (*found)[24] =
                FIND(s, settings, ARRAY_SIZE(settings), streq(path + strlen(SYSCTL_DIR), *s));
        value += strspn(value, " \t");
        return found && (found == settings ? *value == '|' : *value != 0);
}
