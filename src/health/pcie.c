/* SPDX-License-Identifier: Apache-2.0
 * PCIe links, by current_link_* and max_link_* of both ends
 * (torvalds/linux:Documentation/ABI/testing/sysfs-bus-pci).
 * - The lesser end decides: a Gen5 GPU behind a Gen4 port is as built. The port is the directory above the
 *   device (NVIDIA/nccl:src/graph/xml.cc). Most hypervisors put the device on a root bus without a port: then
 *   only siblings tell what it should be.
 * - "Unknown", 0, 255 or missing files of virtual functions and root buses are not a fault.
 * - An idle GPU may lower its generation (nvidia-smi(1), "PCIe generation", current). So speed is compared
 *   with siblings only, and 2.5 GT/s, the speed of rest, counts only for models that never rest there. */
#include "health/health.h"

#include "base/str.h"

#define RESTING_SPEED 25 /* in tenths of GT/s */

/* 0: not known. Speeds in tenths of GT/s. */
typedef struct Link {
        const char *address;
        unsigned id, width, width_limit, speed, speed_limit;
} Link;

/* As drivers/pci/pci-driver.c (pci_uevent) writes it: "PCI_ID=10DE:2330". */
unsigned pci_id_at(const Root *root, const char *address) {
        _free_ char *path = xasprintf("/sys/bus/pci/devices/%s/uevent", address), *text = NULL;
        const char *at = root_read(root, path, 4096, &text, NULL) < 0 ? NULL : strstr(text, "PCI_ID=");
        char *end = NULL;
        if (!at)
                return 0;
        unsigned long vendor = strtoul(at + strlen("PCI_ID="), &end, 16);
        if (*end != ':' || vendor > UINT16_MAX)
                return 0;
        unsigned long device = strtoul(end + 1, &end, 16);
        return device > UINT16_MAX ? 0 : (unsigned)(vendor << 16 | device);
}

bool pci_id_is_hbm_gpu(unsigned id) {
        return id >> 16 == 0x10de && memchr(hbm_chips, (int)(id >> 8 & 0xff), n_hbm_chips);
}

static unsigned parse_width(const char *text) {
        uint64_t n = 0;
        if (parse_u64(text, &n) < 0)
                return 0;
        /* PCIe base specification, link capabilities */
        return n == 1 || n == 2 || n == 4 || n == 8 || n == 12 || n == 16 || n == 32 ? (unsigned)n : 0;
}

/* "16.0 GT/s PCIe", "8 GT/s", "Unknown" */
static unsigned parse_speed(const char *text) {
        unsigned n = 0;
        size_t i = 0;
        for (; i < 4 && is_digit(text[i]); i++)
                n = n * 10 + (unsigned)(text[i] - '0');
        n *= 10;
        if (text[i] == '.' && is_digit(text[i + 1])) {
                n += (unsigned)(text[i + 1] - '0');
                i += 2;
        }
        return i > 0 && startswith(text + i, " GT/s") ? n : 0;
}

static unsigned read_link(const Root *root, const char *address, const char *name,
                          unsigned (*parse)(const char *text)) {
        _free_ char *path = xasprintf("/sys/bus/pci/devices/%s/%s", address, name), *line = NULL;
        return root_read_line(root, path, &line) < 0 ? 0 : parse(line);
}

/* 0: not known. */
static unsigned limit_at(const Root *root, const char *address, const char *name,
                         unsigned (*parse)(const char *text)) {
        _free_ char *port = xasprintf("../%s", name);
        unsigned own = read_link(root, address, name, parse), above = read_link(root, address, port, parse);
        return MIN(own, above);
}

/* If three quarters of the devices of this model have more than this one: their least; else 0. Not half of
 * them: cards of a model may be wired in two ways (on p6e-gb200 every other one has half the rate:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html). */
static unsigned most_have(const Link *links, size_t n, const Link *l, size_t at) {
        unsigned all = 0, more = 0, least = 0, own = *(const unsigned *)(const void *)((const char *)l + at);
        for (size_t i = 0; i < n; i++) {
                unsigned value = *(const unsigned *)(const void *)((const char *)&links[i] + at);
                all += links[i].id == l->id && value > 0;
                if (links[i].id != l->id || value <= own)
                        continue;
                more++;
                least = least > 0 ? MIN(least, value) : value;
        }
        return more * 4 >= all * 3 ? least : 0;
}

#define ADVICE                                                                                         \
        "its data rate drops in proportion. A slot or board is at fault: stop and start the instance to " \
        "move it to another host, or replace it"

static void check_width(const char *kind, const Link *links, size_t n, const Link *l, Findings *f) {
        unsigned siblings = most_have(links, n, l, offsetof(Link, width));
        if (l->width == 0)
                return;
        if (l->width < l->width_limit)
                finding_add(f, "pcie-width", l->address, false,
                            "the PCIe link of this %s uses %u of the %u lanes that both ends have; " ADVICE,
                            kind, l->width, l->width_limit);
        else if (siblings > 0)
                finding_add(f, "pcie-width", l->address, false,
                            "the PCIe link of this %s uses %u lanes, but most others of its model use %u; "
                            ADVICE,
                            kind, l->width, siblings);
}

static void check_speed(const char *kind, const Link *links, size_t n, const Link *l, Findings *f) {
        unsigned siblings = most_have(links, n, l, offsetof(Link, speed));
        bool built_so = l->speed_limit > 0 && l->speed >= l->speed_limit,
             rests = l->speed <= RESTING_SPEED && l->id >> 16 == 0x10de && !pci_id_is_hbm_gpu(l->id);
        if (l->speed > 0 && siblings > 0 && !built_so && !rests)
                finding_add(f, "pcie-speed", l->address, false,
                            "the PCIe link of this %s runs at %u.%u GT/s, but most others of its model at "
                            "%u.%u GT/s; "
                            ADVICE, kind, l->speed / 10, l->speed % 10, siblings / 10, siblings % 10);
}

void health_pcie(const Root *root, const char *kind, char *const *addresses, Findings *f) {
        size_t n = strv_length(addresses);
        _free_ Link *links = xcalloc(n + 1, sizeof *links);
        for (size_t i = 0; i < n; i++)
                links[i] = (Link){
                        .address = addresses[i],
                        .id = pci_id_at(root, addresses[i]),
                        .width = read_link(root, addresses[i], "current_link_width", parse_width),
                        .width_limit = limit_at(root, addresses[i], "max_link_width", parse_width),
                        .speed = read_link(root, addresses[i], "current_link_speed", parse_speed),
                        .speed_limit = limit_at(root, addresses[i], "max_link_speed", parse_speed),
                };
        for (size_t i = 0; i < n; i++) {
                check_width(kind, links, n, &links[i], f);
                check_speed(kind, links, n, &links[i], f);
        }
}
