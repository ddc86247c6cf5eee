/* SPDX-License-Identifier: Apache-2.0
 * The PCI bus and the instance type → what class of GPU machine this is, and what of it is missing. */
#include "host/detect.h"

DEFINE_STRING_TABLE(gpu_class, GpuClass, "none", "tray", "nvswitch", "nvlink5", "single")

unsigned host_efa(const Host *host) {
        unsigned n = 0;
        for (size_t i = 0; i < host->n_pci; i++)
                n += host->pci[i].vendor == 0x1d0f && host->pci[i].device >> 4 == 0xefa;
        return n;
}
