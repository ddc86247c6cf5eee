/* SPDX-License-Identifier: Apache-2.0
 * /etc/systemd/system/NAME.mount → MountUnits (systemd.mount(5)). Such a unit may outlive its disk: then
 * systemd waits for the device at each boot, and so does all that needs the directory. */
#include "host/detect.h"

#include "base/paths.h"
#include "base/str.h"
#include "doc/env-file.h"

#define UNIT_MAX (1 << 20)

/* The device node, or NULL (the source of a bind). */
static char *device_of(const char *what) {
        if (startswith(what, "UUID="))
                return xasprintf("/dev/disk/by-uuid/%s", what + strlen("UUID="));
        return startswith(what, "/dev/") ? xstrdup(what) : NULL;
}

static void unit_clear(MountUnit *u) {
        FREE_ALL(u->name, u->what, u->where);
        *u = (MountUnit){};
}

/* Ignores unreadable units: no decision needs them. */
static bool read_unit(const Root *root, const char *name, MountUnit *u) {
        _free_ char *path = xasprintf(UNIT_DIR "/%s", name), *text = NULL;
        if (root_read(root, path, UNIT_MAX, &text, NULL) < 0)
                return false;
        u->what = assignment_in_unit(text, "Mount", "What");
        u->where = assignment_in_unit(text, "Mount", "Where");
        if (!u->what || !u->where || u->where[0] != '/')
                return false;
        _free_ char *device = device_of(u->what);
        u->name = xstrdup(name);
        u->missing = device && root_exists(root, device) == 0;
        return true;
}

void detect_mount_units(const Root *root, Storage *s) {
        _strv_ char **names = NULL;
        if (root_list(root, UNIT_DIR, &names) < 0)
                return;
        s->units = xcalloc(strv_length(names) + 1, sizeof *s->units);
        STRV_FOREACH(name, names) {
                if (!endswith(*name, ".mount"))
                        continue;
                if (read_unit(root, *name, &s->units[s->n_units]))
                        s->n_units++;
                else
                        unit_clear(&s->units[s->n_units]);
        }
}

void mount_units_clear(Storage *s) {
        for (size_t i = 0; i < s->n_units; i++)
                unit_clear(&s->units[i]);
        free(s->units);
}

/* ---- units of nodeadm ----
 * The EKS image enables them (awslabs/amazon-eks-ami:
 * templates/al2023/provisioners/install-nodeadm.sh). Drop-ins in units/nodeadm-*.service.d keep them off
 * beside ours, but enabling both is wrong. */

#define WANTS UNIT_DIR "/multi-user.target.wants"

/* A mask: a link to /dev/null, or an empty file (systemd.unit(5)) */
static bool is_masked(const Root *root, const char *unit) {
        _free_ char *path = xasprintf(UNIT_DIR "/%s", unit), *target = NULL, *text = NULL;
        size_t size = 0;
        if (root_link_name(root, path, &target) >= 0 && streq(target, "null"))
                return true;
        return root_read(root, path, UNIT_MAX, &text, &size) >= 0 && size == 0;
}

bool unit_is_on(const Root *root, const char *unit) {
        static const char targets[][12] = { "multi-user", "sysinit", "basic", "graphical" };
        for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
                _free_ char *wants = xasprintf(UNIT_DIR "/%s.target.wants", targets[i]);
                _strv_ char **enabled = root_names(root, wants);
                if (enabled && strv_contains(enabled, unit) && !is_masked(root, unit))
                        return true;
        }
        return false;
}

char **detect_bootstrappers(const Root *root) {
        static const char *const others[] = { "nodeadm-config.service", "nodeadm-run.service" };
        _strv_ char **enabled = NULL;
        char **found = NULL;
        if (root_list(root, WANTS, &enabled) < 0 ||
            !(strv_contains(enabled, "nodestrap-config.service") ||
              strv_contains(enabled, "nodestrap-run.service")))
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (strv_contains(enabled, others[i]) && !is_masked(root, others[i]))
                        strv_add(&found, others[i]);
        return found;
}
