/* SPDX-License-Identifier: Apache-2.0
 * modules.dep(5) → the file of a module, and its .modinfo. */
#include "doctor/look.h"

#include "base/str.h"

#define MODULES     "/lib/modules"
#define MODINFO_MAX (1U << 20)
#define DEP_MAX     (16U << 20) /* about 1 MiB on Debian 13 */

int modules_list(const Root *root, const char *kernel, size_t *rest, char **ret) {
        _free_ char *path = xasprintf(MODULES "/%s/modules.dep", kernel);
        size_t size = 0;
        int r = image_read(root, path, MIN(*rest, (size_t)DEP_MAX), ret, &size);
        *rest -= size;
        return r;
}

bool same_module(const char *s, size_t size, const char *name) {
        for (size_t i = 0; i < size; i++)
                if (!name[i] || (s[i] == '-' ? '_' : s[i]) != (name[i] == '-' ? '_' : name[i]))
                        return false;
        return !name[size];
}

char *module_path(const char *kernel, const char *list, const char *name) {
        for (const char *line = list; *line;) {
                size_t size = strcspn(line, "\n"), path = strcspn(line, ":\n");
                const char *base = memrchr(line, '/', path);
                base = base ? base + 1 : line;
                const char *suffix = memmem(base, (size_t)(line + path - base), ".ko", 3);
                if (suffix && same_module(base, (size_t)(suffix - base), name))
                        return *line == '/'
                                       ? xstrndup(line, path)
                                       : xasprintf(MODULES "/%s/%.*s", kernel, (int)MIN(path, 4096U), line);
                line += size + (line[size] == '\n');
        }
        return NULL;
}

char *module_information(const Root *root, const char *path, const char *key) {
        _free_ char *data = NULL;
        size_t size = 0, n = strlen(key);
        _cleanup_(close_fd) int fd = image_file(root, path);
        if (fd < 0 || elf_section(fd, ".modinfo", MODINFO_MAX, &data, &size) < 0)
                return NULL;
        for (size_t at = 0; at < size; at += strlen(data + at) + 1)
                if (strncmp(data + at, key, n) == 0 && data[at + n] == '=')
                        return xstrdup(data + at + n + 1);
        return NULL;
}
