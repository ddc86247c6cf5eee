/* SPDX-License-Identifier: Apache-2.0
 * Lines of conf/read-ahead → rows, and what their conditions say of this machine. A boot has no plan yet
 * when it reads them, so a condition asks the kernel for a device. */
#include "readahead/list.h"

#include "base/str.h"

#include <errno.h>
#include <fnmatch.h>

#define BLANKS    " \t\r"
#define LIBRARIES "/usr/{lib64,lib/*-linux-gnu}"

/* Any device in the folder with a matching attribute. modalias: kernel.org, Documentation/ABI/testing/
 * sysfs-bus-pci. EFA is 1d0f:efa0 and up (pci.ids). */
static const struct { char word[8], folder[21], attribute[9], pattern[35]; } conditions[] = {
        { "disks", "/sys/class/nvme", "model", "Amazon EC2 NVMe Instance Storage*" },
        { "efa", "/sys/bus/pci/devices", "modalias", "pci:v00001D0Fd0000EFA*" },
        { "nvidia", "/sys/bus/pci/devices", "vendor", "0x10de" },
};

bool list_next(char **at, ListRow *ret) {
        for (char *line; *at && (line = strsep(at, "\n"));) {
                ret->line++;
                line += strspn(line, BLANKS);
                line[strcspn(line, "#")] = 0;
                ret->condition = line;
                line += strcspn(line, BLANKS);
                ret->path = line;
                if (!*ret->condition)
                        continue;
                if (*line) {
                        *line++ = 0;
                        line += strspn(line, BLANKS);
                        ret->path = line;
                        line[strcspn(line, BLANKS)] = 0;
                }
                return true;
        }
        return false;
}

int list_condition(const Root *root, const char *condition) {
        if (streq(condition, "always"))
                return 1;
        __auto_type k = FIND(c, conditions, ARRAY_SIZE(conditions), streq(c->word, condition));
        if (!k)
                return -EINVAL;
        _strv_ char **names = root_names(root, k->folder);
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf("%s/%s/%s", k->folder, *name, k->attribute), *value = NULL;
                if (root_read_line(root, path, &value) >= 0 && fnmatch(k->pattern, value, 0) == 0)
                        return 1;
        }
        return 0;
}

char *list_pattern(const char *path, const char *release) {
        Text t = {};
        for (const char *p = path; *p; p++)
                if (p[0] == '%' && is_char_of(p[1], "vl"))
                        text_add(&t, "%s", *++p == 'v' ? release : LIBRARIES);
                else
                        text_add_bytes(&t, p, 1);
        return text_take(&t);
}
