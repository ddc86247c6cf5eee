/* SPDX-License-Identifier: Apache-2.0
 * /sys/class/net → Nics with hardware, unlike loopback, bridges and veth pairs */
#include "host/detect.h"

#include "base/paths.h"
#include "base/str.h"

#include <errno.h>

#define NET "/sys/class/net"
#define ATTEMPTS 1000

static int read_nic(const Root *root, const char *name, Nic *n, Diag *diag) {
        _free_ char *address = xasprintf(NET "/%s/address", name),
                    *mtu = xasprintf(NET "/%s/mtu", name),
                    *driver = xasprintf(NET "/%s/device/driver", name),
                    *drop_in = xasprintf(NETWORK_DIR "/70-eks-%s.network.d/" MTU_DROP_IN, name);
        uint64_t value = 0;

        n->name = xstrdup(name);
        int r = root_read_line(root, address, &n->mac);
        if (r < 0)
                return fact_error(diag, r, address,
                                  "nodestrap cannot match this interface to one that EC2 lists");
        r = root_read_u64(root, mtu, &value);
        if (r >= 0 && value > UINT32_MAX)
                r = -ERANGE;
        if (r < 0)
                return fact_error(diag, r, mtu, "the MTU of this interface is not known");
        n->mtu = (unsigned)value;
        n->mtu_drop_in = root_exists(root, drop_in) > 0;
        r = root_link_name(root, driver, &n->driver);
        return r < 0 && r != -ENOENT
                       ? fact_error(diag, r, driver, "the driver of this interface is not known")
                       : 0;
}

void nics_clear(Host *h) {
        for (Nic *n = h->nics; n < h->nics + h->n_nics; n++)
                FREE_ALL(n->name, n->mac, n->driver, n->pci_address);
        free(h->nics);
        h->nics = NULL;
        h->n_nics = 0;
}

/* -EAGAIN: an interface vanished. */
static int list_nics(const Root *root, Host *h, Diag *diag) {
        _strv_ char **names = NULL;
        int r = list_optional(root, NET, &names, "network interfaces cannot be listed", diag);
        if (r < 0)
                return r;
        h->nics = xcalloc(strv_length(names), sizeof *h->nics);
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf(NET "/%s", *name),
                            *device = xasprintf("%s/device", path), *address = NULL;
                r = root_link_name(root, device, &address);
                if (r == -ENOENT && root_exists(root, path) == 0)
                        return -EAGAIN;
                /* no hardware, or a file like bonding_masters */
                if (r == -ENOENT || r == -ENOTDIR)
                        continue;
                if (r < 0)
                        return fact_error(diag, r, device, "cannot tell if this interface is hardware");
                Nic *n = &h->nics[h->n_nics++];
                n->pci_address = TAKE_PTR(address);
                r = read_nic(root, *name, n, diag);
                if (r < 0)
                        return r == -ENOENT && root_exists(root, path) == 0 ? -EAGAIN : r;
        }
        return 0;
}

/* udev may still rename interfaces after the first is in use: retry. */
int detect_nics(const Root *root, Host *h, Diag *diag) {
        for (unsigned attempt = 1;; attempt++) {
                _cleanup_(diag_done) Diag found = {};
                int r = list_nics(root, h, &found);
                if (r != -EAGAIN) {
                        diag_move(diag, &found);
                        return r;
                }
                if (attempt == ATTEMPTS)
                        return fact_error(diag, r, NET,
                                          "the interfaces did not stop changing while nodestrap read them");
                nics_clear(h);
        }
}
