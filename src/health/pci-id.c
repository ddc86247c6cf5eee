/* SPDX-License-Identifier: Apache-2.0
 * PCI ids as drivers/pci/pci-driver.c (pci_uevent) writes them: "PCI_ID=10DE:2330". */
#include "health/pci-id.h"

#include "base/str.h"

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
