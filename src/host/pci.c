/* SPDX-License-Identifier: Apache-2.0
 * /sys/bus/pci/devices → PciDevices, by address. A uevent file has class, ids, subsystem and driver
 * (drivers/pci/pci-driver.c, pci_uevent): two small files for each function. */
#include "host/detect.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>

#define PCI_DEVICES "/sys/bus/pci/devices"
#define NVIDIA   0x10de
#define MELLANOX 0x15b3
#define AMAZON   0x1d0f

/* Hexadecimal digits before stop; else -EINVAL. */
static int parse_hex(const char **text, char stop, unsigned *ret) {
        size_t n = strspn(*text, "0123456789abcdefABCDEF");
        if (n == 0 || n > 8 || (*text)[n] != stop)
                return -EINVAL;
        *ret = (unsigned)strtoul(*text, NULL, 16);
        *text += n + (stop != 0);
        return 0;
}

static int parse_id_pair(const char *text, unsigned *ret_first, unsigned *ret_second) {
        return parse_hex(&text, ':', ret_first) ?: parse_hex(&text, 0, ret_second);
}

static int parse_line(const char *line, PciDevice *d) {
        const char *value = strchr(line, '=');
        if (!value)
                return *line ? -EINVAL : 0;
        value++;
        if (startswith(line, "PCI_CLASS="))
                return parse_hex(&value, 0, &d->class);
        if (startswith(line, "PCI_ID="))
                return parse_id_pair(value, &d->vendor, &d->device);
        if (startswith(line, "PCI_SUBSYS_ID="))
                return parse_id_pair(value, &d->subsystem_vendor, &d->subsystem_device);
        if (startswith(line, "DRIVER="))
                RENEW(d->driver, xstrdup(value));
        return 0;
}

static int parse_uevent(const char *text, PciDevice *d) {
        int r = 0;
        while (r >= 0 && *text) {
                _free_ char *line = str_cut(&text, "\n");
                r = parse_line(line, d);
        }
        return r < 0 ? r : d->vendor ? 0 : -ENODATA;
}

static int read_numa_node(const Root *root, const char *path, int *ret) {
        _free_ char *line = NULL;
        uint64_t node = 0;
        int r = root_read_line(root, path, &line);

        *ret = -1;
        if (r == -ENOENT || (r >= 0 && streq(line, "-1")))
                return 0;
        THEN(r, parse_u64(line, &node));
        if (r >= 0 && node <= INT16_MAX)
                *ret = (int)node;
        return r >= 0 && node > INT16_MAX ? -ERANGE : r;
}

static int read_device(const Root *root, const char *address, PciDevice *d, Diag *diag) {
        _free_ char *uevent = xasprintf(PCI_DEVICES "/%s/uevent", address), *text = NULL;
        _free_ char *node = xasprintf(PCI_DEVICES "/%s/numa_node", address);

        d->address = xstrdup(address);
        int r = root_read(root, uevent, 4096, &text, NULL) ?: parse_uevent(text, d);
        if (r < 0)
                return fact_error(diag, r, uevent,
                                  "a device that cannot be identified may be an accelerator");
        r = read_numa_node(root, node, &d->numa_node);
        return r < 0 ? fact_error(diag, r, node, "the NUMA node of this device is not known") : 0;
}

/* Ignores a function that just left the bus; the census reports missing ones. */
int detect_pci(const Root *root, Host *h, Diag *diag) {
        _strv_ char **names = NULL;
        int r = list_optional(root, PCI_DEVICES, &names,
                              "accelerators and network devices cannot be listed", diag);
        if (r < 0)
                return r;
        h->pci = xcalloc(strv_length(names), sizeof *h->pci);
        STRV_FOREACH(name, names) {
                _cleanup_(diag_done) Diag found = {};
                _free_ char *path = xasprintf(PCI_DEVICES "/%s", *name);
                PciDevice *d = &h->pci[h->n_pci];
                r = read_device(root, *name, d, &found);
                /* ENODEV: the kernel is removing its files (linux, fs/kernfs/file.c, kernfs_seq_start) */
                if (r == -ENODEV || (r < 0 && root_exists(root, path) == 0)) {
                        FREE_ALL(d->address, d->driver);
                        *d = (PciDevice){};
                        continue;
                }
                h->n_pci++;
                diag_move(diag, &found);
                if (r < 0)
                        return r;
        }
        return 0;
}

bool pci_is_gpu(const PciDevice *d) {
        return d->vendor == NVIDIA && (d->class >> 8 == 0x0300 || d->class >> 8 == 0x0302);
}

/* As in the driver (NVIDIA/open-gpu-kernel-modules, linux_nvswitch.c). */
bool pci_is_nvswitch(const PciDevice *d) {
        return d->vendor == NVIDIA && d->class >> 8 == 0x0680;
}

bool pci_is_connectx(const PciDevice *d) {
        return d->vendor == MELLANOX;
}

/* An open list: rdma-core knows efa4, the Amazon driver ends at efa3 (linux-rdma/rdma-core,
 * providers/efa/efa.c; amzn/amzn-drivers, kernel/linux/efa/src/efa_main.c). */
bool pci_is_efa(const PciDevice *d) {
        return d->vendor == AMAZON && d->device >> 4 == 0xefa;
}

/* Device ids by generation: 7064 to 7067, 7164, 7264, 7364, 7564 (aws-neuron/aws-neuron-driver,
 * neuron_device.h; bottlerocket-os/bottlerocket-core-kit#800). */
bool pci_is_neuron(const PciDevice *d) {
        return d->vendor == AMAZON && d->class >> 8 == 0x0880 && (d->device & 0xf0fc) == 0x7064;
}

/* NVMe of Amazon: 0061, 0065 and 8061 are EBS volumes; cd00, cd01 and cd02 are instance stores (linux,
 * drivers/nvme/host/pci.c, nvme_id_table; https://pci-ids.ucw.cz/read/PC/1d0f). */
bool pci_is_store(const PciDevice *d) {
        return d->vendor == AMAZON && d->device >> 4 == 0xcd0 && d->class >> 8 == 0x0108;
}

unsigned count_devices(const Host *h, bool (*is)(const PciDevice *)) {
        unsigned n = 0;
        for (size_t i = 0; i < h->n_pci; i++)
                n += is(&h->pci[i]);
        return n;
}

bool host_efa_is_known(const Host *host) {
        return !host->modelled || (host->type && host->type->max_efa >= 0);
}

unsigned host_efa(const Host *host) {
        return count_devices(host, pci_is_efa);
}

/* The kernel waits up to 125 ms per four bytes (drivers/pci/vpd.c): small reads meet the deadline. */
#define VPD_LIMIT (32 << 10)
#define VPD_PIECE 64

int pci_vpd_has(const Root *root, const char *address, const char *word, uint64_t until) {
        _free_ char *path = xasprintf(PCI_DEVICES "/%s/vpd", address), *vpd = xcalloc(VPD_LIMIT, 1);
        _cleanup_(close_fd) int fd = root_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return fd;
        for (size_t size = 0; size < VPD_LIMIT;) {
                if (now_usec() > until)
                        return -ETIMEDOUT;
                ssize_t n = read(fd, vpd + size, VPD_PIECE);
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return size > 0 ? 0 : -ENODATA; /* no data at all */
                size_t from = size < strlen(word) ? 0 : size - strlen(word);
                size += (size_t)n;
                if (memmem(vpd + from, size - from, word, strlen(word)))
                        return 1;
        }
        return 0;
}
