/* SPDX-License-Identifier: Apache-2.0
 * PCI ids as drivers/pci/pci-driver.c (pci_uevent) writes them: "PCI_ID=10DE:2330". */
#include "health/pci-id.h"

#include "base/str.h"

unsigned pci_id_at(const Root *root, const char *address) {
        _cleanup_(freep) char *path = xasprintf("/sys/bus/pci/devices/%s/uevent", address), *text = NULL;
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

/* GA100 20xx, GH100 23xx, GB100 and GB102 29xx, GB110 31xx (https://pci-ids.ucw.cz/read/PC/10de). */
bool pci_id_is_hbm_gpu(unsigned id) {
        unsigned family = id >> 8 & 0xff;
        return id >> 16 == 0x10de && (family == 0x20 || family == 0x23 || family == 0x29 || family == 0x31);
}
