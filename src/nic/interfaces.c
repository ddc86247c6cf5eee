/* SPDX-License-Identifier: Apache-2.0
 * /sys/class/net and the udev database → Interfaces, also those without hardware. */
#include "nic/nic.h"

#include "base/str.h"

#include <errno.h>

#define NET      "/sys/class/net"
#define UDEV     "/run/udev/data"       /* n<ifindex>: sd-device reads the same files */
#define UDEV_MAX (64 << 10)

static void interface_done(Interface *i) {
        FREE_ALL(i->name, i->mac, i->driver);
        *i = (Interface){};
}

void interfaces_done(Interfaces *i) {
        for (size_t k = 0; k < i->n; k++)
                interface_done(&i->items[k]);
        free(i->items);
        *i = (Interfaces){};
}

/* Lines "E:NODESTRAP_INTERFACE=1" and "I:" with the time. No file: udev has not seen it, or does not run. */
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
        THEN(r, root_read_line(root, address, &ret->mac));
        if (r < 0)
                return r;
        if (root_link_name(root, driver, &ret->driver) < 0)
                ret->driver = NULL;
        ret->name = xstrdup(name);
        ret->index = (unsigned)index;
        read_udev(root, ret);
        return 0;
}

int interfaces_read(const Root *root, Interfaces *ret, Diag *diag) {
        _strv_ char **names = NULL;
        int r = root_list(root, NET, &names);
        if (r < 0)
                return diag_error(diag, r, CAUSE_INTERFACE, NET " cannot be read: %s", strerror(-r));
        _cleanup_(interfaces_done) Interfaces all = {};
        STRV_FOREACH(name, names) {
                _cleanup_(interface_done) Interface i = {};
                r = read_interface(root, *name, &i);
                /* gone (-EINVAL: netdev_show() of net/core/net-sysfs.c), or a plain file (bonding_masters) */
                if (r == -ENOENT || r == -ENODEV || r == -ENOTDIR || r == -EINVAL)
                        continue;
                if (r < 0)
                        return diag_error(diag, r, CAUSE_INTERFACE, NET "/%s cannot be read: %s", *name,
                                          strerror(-r));
                *APPEND(all.items, all.n) = i;
                i = (Interface){};
        }
        *ret = (Interfaces){ all.items, all.n };
        all.items = NULL;
        all.n = 0;
        return 0;
}

const Interface *interface_by_name(const Interfaces *i, const char *name) {
        return FIND(one, i->items, i->n, streq(one->name, name));
}

const Interface *interface_by_mac(const Interfaces *i, const char *mac) {
        return FIND(one, i->items, i->n, streq(one->mac, mac) && one->driver)
                       ?: FIND(one, i->items, i->n, streq(one->mac, mac));
}
