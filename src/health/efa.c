/* SPDX-License-Identifier: Apache-2.0
 * Ports of EFA functions. The driver says ACTIVE while it serves the function
 * (amzn/amzn-drivers:kernel/linux/efa/src/efa_verbs.c, efa_query_port), so this finds functions without an
 * RDMA device, or newer drivers that say otherwise. It cannot see security groups or the network. */
#include "health/health.h"

#include "base/str.h"

#define RDMA_DEVICES "/sys/class/infiniband"

/* NULL: none */
static const char *rdma_device_of(const Root *root, char *const *devices, const char *address) {
        for (char *const *d = devices; d && *d; d++) {
                _free_ char *path = xasprintf(RDMA_DEVICES "/%s/device", *d), *name = NULL;
                if (root_link_name(root, path, &name) >= 0 && streq(name, address))
                        return *d;
        }
        return NULL;
}

static void check_port(const Root *root, const char *device, const char *address, Findings *f) {
        _free_ char *path = xasprintf(RDMA_DEVICES "/%s/ports/1/state", device), *state = NULL;
        /* "4: ACTIVE" (torvalds/linux:Documentation/ABI/stable/sysfs-class-infiniband) */
        if (root_read_line(root, path, &state) < 0 || startswith(state, "4:"))
                return;
        finding_add(f, "efa-port", address, false,
                    "the port of EFA device %s is \"%.32s\", not ACTIVE, and sends nothing; see dmesg (efa). "
                    "If the driver logs no error, stop and start the instance, or replace it", device, state);
}

/* check-efa reports a function without a driver. */
static bool has_driver(const Root *root, const char *address) {
        _free_ char *path = xasprintf("/sys/bus/pci/devices/%s/driver", address), *name = NULL;
        return root_link_name(root, path, &name) >= 0;
}

void health_efa_ports(const Root *root, char *const *addresses, Findings *f) {
        _strv_ char **devices = NULL;
        if (root_list(root, RDMA_DEVICES, &devices) < 0)
                return;
        for (char *const *a = addresses; *a; a++) {
                const char *device = rdma_device_of(root, devices, *a);
                if (device)
                        check_port(root, device, *a, f);
                else if (has_driver(root, *a))
                        finding_add(f, "efa-port", *a, false,
                                    "this EFA function has no RDMA device in " RDMA_DEVICES ": its driver "
                                    "could not start it; see dmesg (efa). Stop and start the instance, or "
                                    "replace it");
        }
}
