/* SPDX-License-Identifier: Apache-2.0
 * load-module: modprobe(8), which handles aliases, dependencies and options; then a look at /sys. */
#include "apply/device.h"

#include <errno.h>

#define BUILTIN_MAX (1 << 20)

/* As in /sys/module; modprobe takes both spellings. */
static char *kernel_name(const char *name) {
        char *s = xstrdup(name);
        for (char *p = s; *p; p++)
                if (*p == '-')
                        *p = '_';
        return s;
}

/* Loading ends when the state is "live"; built-in modules have no state. */
static int is_live(const Root *root, const char *name) {
        _free_ char *directory = xasprintf("/sys/module/%s", name),
                    *path = xasprintf("%s/initstate", directory), *state = NULL;
        int r = root_exists(root, directory);
        if (r <= 0)
                return r;
        r = root_read_line(root, path, &state);
        return r == -ENOENT ? 1 : r < 0 ? r : streq(state, "live");
}

/* Lines are "kernel/drivers/infiniband/core/ib_core.ko". Built-in modules without parameters are not in
 * /sys. */
static int is_builtin(const Root *root, const char *name) {
        _free_ char *release = NULL, *path = NULL, *list = NULL;
        int r = root_read_line(root, "/proc/sys/kernel/osrelease", &release);
        if (r < 0)
                return r;
        path = xasprintf("/lib/modules/%s/modules.builtin", release);
        r = root_read(root, path, BUILTIN_MAX, &list, NULL);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        char *rest = list;
        for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
                char *base = strrchr(line, '/'), *suffix = strstr(line, ".ko");
                if (!base || !suffix)
                        continue;
                *suffix = 0;
                _free_ char *there = kernel_name(base + 1);
                if (streq(there, name))
                        return 1;
        }
        return 0;
}

int module_is_loaded(const Root *root, const char *name) {
        _free_ char *spelt = kernel_name(name);
        int r = is_live(root, spelt);
        return r == 0 ? is_builtin(root, spelt) : r;
}

static int is_loaded(Work *w, Cause cause, const char *name) {
        int r = module_is_loaded(w->root, name);
        return r < 0 ? work_fail(w, r, cause, "the state of the kernel module %s cannot be read: %m", name)
                     : r;
}

Cause module_cause(const char *name) {
        static const struct { const char *name; Cause cause; } known[] = {
                { "efa", CAUSE_EFA },       { "ib_core", CAUSE_EFA },       { "ib_uverbs", CAUSE_EFA },
                { "nvidia", CAUSE_DRIVER }, { "nvidia_uvm", CAUSE_DRIVER }, { "neuron", CAUSE_NEURON },
        };
        return PICK(k, known, ARRAY_SIZE(known), streq(k->name, name), k->cause, CAUSE_MODULE);
}

static int load(Work *w, const char *name, Cause cause) {
        _free_ char *what = xasprintf("the kernel module %s cannot be loaded", name);
        _strv_ char **argv = command("modprobe", name, NULL);
        int r = work_run(w, cause, what, argv);
        THEN(r, is_loaded(w, cause, name));
        if (r == 0)
                r = work_fail(w, -ENOENT, cause,
                              "modprobe %s succeeded, but the kernel lacks the module; `modprobe "
                              "--showconfig` shows whether an install line in /etc/modprobe.d blocks it",
                              name);
        return r;
}

int module_work(Work *w) {
        _free_ char *name = kernel_name(w->action->target);
        bool driver = streq(name, "nvidia");
        Cause cause = module_cause(name);
        int r = is_loaded(w, cause, name);
        if (r > 0)
                r = driver ? driver_renew(w) : 0;
        else if (r == 0) {
                r = driver ? driver_note_options(w) : 0;
                r = r < 0 ? r : load(w, name, cause);
        }
        if (driver && r >= 0)
                driver_return(w);
        return r;
}
