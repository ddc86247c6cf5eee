/* SPDX-License-Identifier: Apache-2.0
 * GPUDirect RDMA over EFA, in one of two ways, and GDRCopy; nvidia_peermem only serves Mellanox adapters.
 * - dma-buf: RDMA core since 5.12 with the open NVIDIA kernel modules, not the proprietary ones
 *   (https://docs.nvidia.com/cuda/gpudirect-rdma). aws-ofi-nccl before 1.19.2 does not use it on the first
 *   three generations of EFA (google/gvisor#13882). The EFA driver has it in Linux from 5.16 on
 *   (torvalds/linux commits 66f4817b5712, and 25edbc383b72, which merged that for 5.16-rc1), that of AWS from
 *   1.16.0 on (amzn/amzn-drivers:kernel/linux/efa/RELEASENOTES.md); only that of AWS has a version in sysfs.
 * - On a tray the driver refuses a PCIe mapping of dma-buf between devices of different IOMMU groups, unless
 *   GrdmaPciTopoCheckOverride is 1 (NVIDIA/open-gpu-kernel-modules:nv-pci.c, 570.86.15 to 590.48.01;
 *   595.45.04 has the option, but does not read it there; NVIDIA/aicr#2356). There dma-buf is the only way
 *   (aws/aws-ofi-nccl#861).
 * - by the EFA driver: attribute p2p of the function names the memory provider, "NVIDIA peermem"
 *   (efa_nv_peermem), "NVIDIA" (the GPU driver), "NEURON" or none
 *   (amzn/amzn-drivers:kernel/linux/efa/src/{efa_sysfs.c,efa_nvmem_impl.h}). The EFA driver of the kernel
 *   lacks it. */
#include "health/health.h"

#include "base/paths.h"
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
        static const char libraries[][44] = {
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

/* Lines are `Key: 2048`, `Key: "driver"` (NVIDIA/open-gpu-kernel-modules:nv-procfs.c). */
char *nvidia_param(const char *params, const char *key, size_t key_size) {
        for (const char *line = params; *line;) {
                size_t size = strcspn(line, "\n");
                if (size > key_size && memcmp(line, key, key_size) == 0 && line[key_size] == ':') {
                        _free_ char *raw = xstrndup(line + key_size + 1, size - key_size - 1);
                        char *value = str_strip(raw);
                        size_t n = strlen(value);
                        if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
                                memmove(value, value + 1, n - 2);
                                value[n - 2] = 0;
                        }
                        return value;
                }
                line += size + (line[size] == '\n');
        }
        return NULL;
}

/* Parts that EFA needs for dma-buf and lacks. sure: one is known to be missing, not just unreadable. */
typedef struct Lacks { Text what, remedy; bool sure; } Lacks;

static void lacks_done(Lacks *l) {
        text_done(&l->what);
        text_done(&l->remedy);
}

static void add_lack(Lacks *l, bool sure, const char *remedy, const char *what, const char *name) {
        text_add(&l->what, "%s%s%s", l->what.size > 0 ? " and " : "", what, name);
        text_add(&l->remedy, "%s%s", l->remedy.size > 0 ? " and " : "", remedy);
        l->sure |= sure;
}

static void check_efa_driver(const Root *root, const char *release, Lacks *l) {
        _free_ char *version = NULL;
        if (root_read_line(root, "/sys/module/efa/version", &version) < 0) {
                if (!version_at_least(release, 5, 16))
                        add_lack(l, true, "install the AWS EFA driver",
                                 "the EFA driver of this kernel does not support dma-buf (5.16 does)", "");
        } else if (!version_at_least(version, 0, 0))
                add_lack(l, false, "install the AWS EFA driver, 1.16.0 or newer",
                         "nodestrap cannot read the version of the EFA driver: ", version);
        else if (!version_at_least(version, 1, 16))
                add_lack(l, true, "install 1.16.0 or newer",
                         "EFA driver without dma-buf (1.16.0 has it): ", version);
}

/* Drivers of branch 595 show the option and do not read it: EFA does not attach (NVIDIA/aicr#2439). */
static void check_option(const Root *root, Lacks *l) {
        _free_ char *params = NULL, *value = NULL, *version = NULL;
        (void)!root_read_line(root, "/sys/module/nvidia/version", &version);
        if (root_read(root, "/proc/driver/nvidia/params", TEXT_MAX, &params, NULL) >= 0)
                value = nvidia_param(params, GPU_DIRECT_OPTION, strlen(GPU_DIRECT_OPTION));
        if (!value)
                add_lack(l, false, "use an NVIDIA driver that shows it (570.86.15 does)",
                         "/proc/driver/nvidia/params does not show " GPU_DIRECT_OPTION, "");
        else if (!streq(value, "1"))
                add_lack(l, true, "reboot once, so that the driver reads " NVIDIA_OPTIONS,
                         "the NVIDIA driver needs " GPU_DIRECT_OPTION "=1, but was loaded with ", value);
        else if (version_at_least(version, 595, 0) && !version_at_least(version, 596, 0))
                add_lack(l, true, "install a driver from branch 580",
                         "this NVIDIA driver does not read " GPU_DIRECT_OPTION ": ", version);
}

static void find_lacks(const Root *root, bool open, bool tray, Lacks *l) {
        _free_ char *release = NULL;
        (void)!root_read_line(root, "/proc/sys/kernel/osrelease", &release);
        if (!open)
                add_lack(l, true, "use the open NVIDIA kernel modules",
                         "the proprietary NVIDIA kernel module does not support dma-buf", "");
        if (version_at_least(release, 5, 12))
                check_efa_driver(root, release, l);
        else
                add_lack(l, true, tray ? "use a newer kernel"
                                       : "use a newer kernel (or install efa_nv_peermem and load it)",
                         "this kernel does not support dma-buf for RDMA (5.12 does)", "");
        if (tray)
                check_option(root, l);
}

/* How EFA reaches GPU memory, or, if *ret_not, why not. */
static char *find_way(const Root *root, bool open, bool tray, Lacks *l, bool *ret_not) {
        _free_ char *provider = memory_provider(root);
        bool direct = !tray && startswith(provider, "NVIDIA");
        find_lacks(root, open, tray, l);
        bool dma_buf = l->what.size == 0;
        *ret_not = !dma_buf && !direct;
        if (!*ret_not)
                return xasprintf("%s%s%s", dma_buf ? "dma-buf" : "", dma_buf && direct ? " and " : "",
                                 !direct                             ? ""
                                 : streq(provider, "NVIDIA peermem") ? "efa_nv_peermem"
                                                                     : "the EFA and NVIDIA drivers");
        return xasprintf("%s%s; %s%s", l->what.data,
                         tray ? "" : ", and the EFA driver names no other way (p2p)", l->remedy.data,
                         there(root, "/sys/module/nvidia_peermem")
                                 ? "; nvidia_peermem is loaded, but does not serve EFA"
                                 : "");
}

static const char *find_obstacle(const Root *root, bool driver, bool efa) {
        if (!driver)
                return "the NVIDIA driver is not loaded";
        if (!efa)
                return "this machine has no EFA device";
        return there(root, "/sys/bus/pci/drivers/efa") ? NULL : "the EFA driver is not loaded";
}

static bool is_for_efa(const Root *root) {
        _strv_ char **devices = root_names(root, PCI_DEVICES);
        return ANY(d, devices, strv_length(devices), pci_id_is_hbm_gpu(pci_id_at(root, *d)));
}

char *health_gpudirect(const Root *root, bool efa, bool tray, bool required, Findings *f) {
        _free_ char *version = NULL, *how = NULL;
        _cleanup_(lacks_done) Lacks lacks = {};
        bool driver = root_read(root, "/proc/driver/nvidia/version", TEXT_MAX, &version, NULL) >= 0;
        const char *obstacle = find_obstacle(root, driver, efa);
        bool not = obstacle != NULL;
        if (driver)
                check_gdrcopy(root, f);
        /* NVIDIA/open-gpu-kernel-modules: "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 …" */
        how = obstacle ? xstrdup(obstacle)
                       : find_way(root, strstr(version, "Open Kernel Module"), tray, &lacks, &not);
        if (!not)
                return xasprintf("yes, by %s", how);
        bool sure = obstacle || lacks.sure;
        if (required || (!obstacle && is_for_efa(root)))
                finding_add(f, "peer-memory", "", required, "%s%s: %s",
                            sure ? "EFA cannot reach GPU memory, so data between nodes goes through CPU "
                                   "memory"
                                 : "nodestrap cannot tell if EFA reaches GPU memory",
                            required ? ", but spec.accelerator.nvidia.gpuDirect requires direct access" : "",
                            how);
        return xasprintf("%s, %s", sure ? "no" : "not known", how);
}
