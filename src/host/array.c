/* SPDX-License-Identifier: Apache-2.0
 * /sys/block/md* → Arrays, by name. Members are the slaves in any state: a partly assembled array is
 * inactive and holds them (kernel: Documentation/admin-guide/md.rst). */
#include "host/detect.h"

#include "base/str.h"

#include <errno.h>

static int read_attribute(const Root *root, const char *array, const char *name, char **ret, Diag *diag) {
        _free_ char *path = xasprintf("/sys/block/%s/%s", array, name);
        return read_optional(root, path, ret, "the state of this array is not known", diag);
}

/* "4 (3)" during a reshape from three to four. */
static unsigned leading_number(const char *text) {
        unsigned long n = text ? strtoul(text, NULL, 10) : 0;
        return n <= UINT16_MAX ? (unsigned)n : 0;
}

static int read_state(const Root *root, Array *a, const char *state, Diag *diag) {
        _free_ char *disks = NULL, *degraded = NULL;

        a->active = !streq(state, "inactive");
        int r = read_attribute(root, a->name, "md/level", &a->level, diag) ?:
                read_attribute(root, a->name, "md/raid_disks", &disks, diag) ?:
                read_attribute(root, a->name, "md/degraded", &degraded, diag);
        a->disks = leading_number(disks);
        /* "broken": a raid0 that lost a member */
        a->degraded = leading_number(degraded) > 0 || streq(state, "broken");
        return r;
}

static int read_array(const Root *root, const char *name, const char *state, Array *a, Diag *diag) {
        _free_ char *slaves = xasprintf("/sys/block/%s/slaves", name);

        a->name = xstrdup(name);
        int r = read_state(root, a, state, diag) ?: read_attribute(root, name, "dev", &a->number, diag) ?:
                block_bytes(root, name, &a->bytes, diag) ?:
                block_use(root, name, &a->partitions, &a->holders, diag);
        if (r < 0)
                return r;
        r = root_list(root, slaves, &a->members);
        return r == -ENOENT ? 0
               : r < 0      ? fact_error(diag, r, slaves, "what this array is made of is not known")
                            : 0;
}

int detect_arrays(const Root *root, Storage *s, Diag *diag) {
        _strv_ char **names = NULL;
        int r = root_list(root, "/sys/block", &names);

        if (r < 0)
                return r == -ENOENT ? 0 : fact_error(diag, r, "/sys/block", "arrays cannot be found");
        STRV_FOREACH(name, names) {
                _free_ char *state = NULL;
                if (!startswith(*name, "md"))
                        continue;
                r = read_attribute(root, *name, "md/array_state", &state, diag);
                if (r < 0)
                        return r;
                if (!state || streq(state, "clear"))    /* left behind by a stopped array */
                        continue;
                Array *a = APPEND(s->arrays, s->n_arrays);
                *a = (Array){};
                r = read_array(root, *name, state, a, diag);
                if (r < 0)
                        return r;
        }
        return 0;
}
