/* SPDX-License-Identifier: Apache-2.0
 * GPUDirect RDMA over EFA, in one of two ways, and GDRCopy; nvidia_peermem only serves Mellanox adapters.
 * - dma-buf: RDMA core since 5.12 with the open NVIDIA kernel modules, not the proprietary ones
 *   (https://docs.nvidia.com/cuda/gpudirect-rdma). aws-ofi-nccl before 1.19.2 does not use it on the first
 *   three generations of EFA (google/gvisor#13882).
 * - by the EFA driver: attribute p2p of the function names the memory provider, "NVIDIA peermem"
 *   (efa_nv_peermem), "NVIDIA" (the GPU driver), "NEURON" or none
 *   (amzn/amzn-drivers:kernel/linux/efa/src/{efa_sysfs.c,efa_nvmem_impl.h}). The EFA driver of the kernel
 *   lacks it. */
#include "health/health.h"

#include "base/str.h"

#include <stdio.h>

#define RDMA_DEVICES "/sys/class/infiniband"
#define PCI_DEVICES  "/sys/bus/pci/devices"
#define TEXT_MAX     (8 << 20)

static bool there(const Root *root, const char *path) {
        return root_exists(root, path) > 0;
}

/* "": none, or not known */
static char *memory_provider(const Root *root) {
        _strv_ char **devices = root_names(root, RDMA_DEVICES);
        for (char **d = devices; d && *d; d++) {
                _free_ char *path = xasprintf(RDMA_DEVICES "/%s/device/p2p", *d), *line = NULL;
                if (root_read_line(root, path, &line) >= 0)
                        return TAKE_PTR(line);
        }
        return xstrdup("");
}

static bool gdrcopy_installed(const Root *root) {
        static const char *const libraries[] = {
                "/usr/lib64/libgdrapi.so.2",
                "/usr/lib/x86_64-linux-gnu/libgdrapi.so.2",
                "/usr/lib/aarch64-linux-gnu/libgdrapi.so.2",
                "/usr/local/lib/libgdrapi.so.2",
        };
        _free_ char *release = NULL, *path = NULL, *modules = NULL;
        if (there(root, "/sys/module/gdrdrv"))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
                if (there(root, libraries[i]))
                        return true;
        if (root_read_line(root, "/proc/sys/kernel/osrelease", &release) < 0)
                return false;
        path = xasprintf("/lib/modules/%s/modules.dep", release);
        return root_read(root, path, TEXT_MAX, &modules, NULL) >= 0 && strstr(modules, "/gdrdrv.ko");
}

/* 0: not in /proc/devices */
static unsigned gdrdrv_major(const Root *root) {
        _free_ char *text = NULL;
        unsigned major = 0;
        if (root_read(root, "/proc/devices", TEXT_MAX, &text, NULL) < 0)
                return 0;
        for (char *line = text, *next; line; line = next) {
                next = strchr(line, '\n');
                if (next)
                        *next++ = 0;
                if (endswith(line, " gdrdrv"))
                        return sscanf(line, "%4u", &major) == 1 ? major : 0;
        }
        return 0;
}

static void check_gdrcopy(const Root *root, Findings *f) {
        unsigned major = gdrdrv_major(root);
        if (there(root, "/dev/gdrdrv") || !gdrcopy_installed(root))
                return;
        if (major > 0)
                finding_add(f, "gdrdrv", "", false,
                            "GDRCopy has no /dev/gdrdrv, though its module is loaded: small messages to and "
                            "from GPUs are slower; run `mknod -m 666 /dev/gdrdrv c %u 0`", major);
        else
                finding_add(f, "gdrdrv", "", false,
                            "GDRCopy is installed, but its module is not loaded: small messages to and from "
                            "GPUs are slower; run `modprobe gdrdrv`, or remove GDRCopy");
}

static char *ways(const Root *root, bool open) {
        _free_ char *provider = memory_provider(root), *release = NULL;
        bool dma_buf = open && root_read_line(root, "/proc/sys/kernel/osrelease", &release) >= 0 &&
                       version_at_least(release, 5, 12),
             direct = startswith(provider, "NVIDIA");
        if (!dma_buf && !direct)
                return NULL;
        return xasprintf("%s%s%s", dma_buf ? "dma-buf" : "", dma_buf && direct ? " and " : "",
                         !direct                             ? ""
                         : streq(provider, "NVIDIA peermem") ? "efa_nv_peermem"
                                                             : "the EFA driver with that of NVIDIA");
}

char *health_gpudirect(const Root *root, bool efa, Findings *f) {
        _free_ char *version = NULL, *how = NULL, *why = NULL;
        if (root_read(root, "/proc/driver/nvidia/version", TEXT_MAX, &version, NULL) < 0)
                return xstrdup("no, the NVIDIA driver is not loaded");
        check_gdrcopy(root, f);
        if (!efa)
                return xstrdup("no, this machine has no EFA device");
        if (!there(root, "/sys/bus/pci/drivers/efa"))
                return xstrdup("no, the EFA driver is not loaded");
        /* NVIDIA/open-gpu-kernel-modules: "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 …" */
        bool open = strstr(version, "Open Kernel Module") != NULL;
        how = ways(root, open);
        if (how)
                return xasprintf("yes, by %s", how);
        why = xasprintf("%s, and the EFA driver names no other way (p2p); %s%s",
                        open ? "this kernel has no dma-buf for RDMA (5.12 has it)"
                             : "the proprietary NVIDIA kernel module has no dma-buf",
                        open ? "use a newer kernel, or install efa_nv_peermem and load it"
                             : "use the open NVIDIA kernel modules",
                        there(root, "/sys/module/nvidia_peermem")
                                ? "; nvidia_peermem is loaded, but does not serve EFA"
                                : "");
        _strv_ char **devices = root_names(root, PCI_DEVICES);
        if (ANY(d, devices, strv_length(devices), pci_id_is_hbm_gpu(pci_id_at(root, *d))))
                finding_add(f, "peer-memory", "", false,
                            "EFA cannot reach GPU memory, so data between nodes goes through CPU memory: %s",
                            why);
        return xasprintf("no, %s", why);
}
