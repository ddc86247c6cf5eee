/* SPDX-License-Identifier: Apache-2.0
 * /sys/class/net and the udev database → Interfaces. Unlike those of host/ they include interfaces without
 * hardware. */
#include "nic/nic.h"

#include "base/str.h"

#include <errno.h>

#define NET      "/sys/class/net"
#define UDEV     "/run/udev/data"       /* n<ifindex>: sd-device reads the same files */
#define UDEV_MAX (64 << 10)

static void interface_done(Interface *i) {
        free(i->name);
        free(i->mac);
        free(i->driver);
        *i = (Interface){};
}

void interfaces_done(Interfaces *i) {
        for (size_t k = 0; k < i->n; k++)
                interface_done(&i->items[k]);
        free(i->items);
        *i = (Interfaces){};
}

/* Lines "E:NODESTRAP_INTERFACE=1" and "I:" with the time. Without a file udev has not seen it yet, or does
 * not run. */
static void read_udev(const Root *root, Interface *i) {
        static const char ours[] = "\nE:" INTERFACE_PROPERTY "=1\n", since[] = "\nI:";
        _free_ char *path = xasprintf(UDEV "/n%u", i->index), *data = NULL;
        if (root_read(root, path, UDEV_MAX, &data, NULL) < 0)
                return;
        _free_ char *lines = xasprintf("\n%s\n", data);
        const char *time = strstr(lines, since);
        i->ours = strstr(lines, ours);
        i->since_usec = time ? strtoull(time + strlen(since), NULL, 10) : 0;
}

static int read_interface(const Root *root, const char *name, Interface *ret) {
        _free_ char *address = xasprintf(NET "/%s/address", name),
                    *number = xasprintf(NET "/%s/ifindex", name),
                    *driver = xasprintf(NET "/%s/device/driver", name);
        uint64_t index = 0;
        int r = root_read_u64(root, number, &index);
        if (r >= 0)
                r = root_read_line(root, address, &ret->mac);
        if (r < 0)
                return r;
        if (root_link_name(root, driver, &ret->driver) < 0)
                ret->driver = NULL;
        ret->name = xstrdup(name);
        ret->index = (unsigned)index;
        read_udev(root, ret);
        return 0;
}

/* Gone (-EINVAL: netdev_show() of net/core/net-sysfs.c), or a plain file such as bonding_masters. */
static bool is_none(int r) {
        return r == -ENOENT || r == -ENODEV || r == -ENOTDIR || r == -EINVAL;
}

int interfaces_read(const Root *root, Interfaces *ret, Diag *diag) {
        _cleanup_(interfaces_done) Interfaces all = {};
        _strv_ char **names = NULL;
        int r = root_list(root, NET, &names);
        if (r < 0)
                return diag_error(diag, r, CAUSE_INTERFACE, NET " cannot be read: %s", strerror(-r));
        all.items = xcalloc(strv_length(names) + 1, sizeof *all.items);
        for (char **name = names; name && *name; name++) {
                _cleanup_(interface_done) Interface i = {};
                r = read_interface(root, *name, &i);
                if (is_none(r))
                        continue;
                if (r < 0)
                        return diag_error(diag, r, CAUSE_INTERFACE, NET "/%s cannot be read: %s", *name,
                                          strerror(-r));
                all.items[all.n++] = i;
                i = (Interface){};
        }
        *ret = (Interfaces){ all.items, all.n };
        all.items = NULL;
        all.n = 0;
        return 0;
}

const Interface *interface_by_name(const Interfaces *i, const char *name) {
        for (size_t k = 0; k < i->n; k++)
                if (streq(i->items[k].name, name))
                        return &i->items[k];
        return NULL;
}

const Interface *interface_by_mac(const Interfaces *i, const char *mac) {
        const Interface *any = NULL;
        for (size_t k = 0; k < i->n; k++) {
                const Interface *found = &i->items[k];
                if (!streq(found->mac, mac))
                        continue;
                if (found->driver)
                        return found;
                any = any ?: found;
        }
        return any;
}
