/* SPDX-License-Identifier: Apache-2.0
 * The hardware by sysfs, procfs and the kernel log, on made-up machines. */
#include "health/health.h"
#include "programs.h"

#define DEVICES "/sys/bus/pci/devices/"

typedef struct Machine { Box box; Findings findings; char *told; } Machine;

static void machine_init(Machine *m) {
        *m = (Machine){};
        box_init(&m->box);
}

static void machine_done(Machine *m) {
        findings_done(&m->findings);
        free(m->told);
        box_done(&m->box);
}
#define MACHINE(name) _cleanup_(machine_done) Machine name; machine_init(&name)

/* A line "WORD ADDRESS" for each finding, with an exclamation mark if it makes a GPU unusable. */
static const char *found(Machine *m) {
        Text t = {};
        for (size_t i = 0; i < m->findings.n; i++)
                text_add(&t, "%s%s %s%s", i > 0 ? "\n" : "", m->findings.items[i].word, m->findings.items[i].address,
                         m->findings.items[i].unusable ? "!" : "");
        findings_done(&m->findings);
        free(m->told);
        m->told = text_take(&t);
        return m->told;
}

/* The words of one finding. */
static const char *says(const Machine *m, size_t i) {
        ASSERT_TRUE(i < m->findings.n);
        return m->findings.items[i].text;
}

static void file(Machine *m, const char *directory, const char *name, const char *content) {
        _free_ char *path = xasprintf("%s/%s", directory, name);
        if (content)
                put(&m->box, path, content);
}

/* ---- PCIe ---- */

static void device(Machine *m, const char *directory, const char *id, const char *speed, const char *width, const char *max_speed,
                   const char *max_width) {
        _free_ char *uevent = id ? xasprintf("DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=%s\n", id) : NULL;
        file(m, directory, "uevent", uevent);
        file(m, directory, "current_link_speed", speed);
        file(m, directory, "current_link_width", width);
        file(m, directory, "max_link_speed", max_speed);
        file(m, directory, "max_link_width", max_width);
}

static char g0[] = "0000:53:00.0", g1[] = "0000:64:00.0", g2[] = "0000:75:00.0", g3[] = "0000:86:00.0";
static char *all[] = { g0, g1, g2, g3, NULL };
#define H100(m, address, speed, width) device(m, DEVICES address, "10DE:2330", speed, width, "32.0 GT/s PCIe\n", "16\n")
/* Four GPUs, of which the second has this link. */
static void h100s(Machine *m, const char *speed, const char *width) {
        H100(m, "0000:53:00.0", "32.0 GT/s PCIe\n", "16\n");
        H100(m, "0000:64:00.0", speed, width);
        H100(m, "0000:75:00.0", "32.0 GT/s PCIe\n", "16\n");
        H100(m, "0000:86:00.0", "32.0 GT/s PCIe\n", "16\n");
}

static const char *pcie(Machine *m, const char *kind) {
        findings_done(&m->findings);
        health_pcie(m->box.root, kind, all, &m->findings);
        return m->findings.n > 0 ? m->findings.items[0].text : "";
}
#define ASSERT_PCIE(m, want) ({ pcie(m, "GPU"); ASSERT_STREQ(found(m), want); })

TEST(links_as_they_were_built_have_no_findings) {
        MACHINE(m);
        h100s(&m, "32.0 GT/s PCIe\n", "16\n");
        ASSERT_PCIE(&m, "");
        MACHINE(slow);                  /* p4d: GPUs for Gen4 on a board of Gen3, whose ports are not seen */
        for (size_t i = 0; i < 4; i++) {
                _free_ char *path = xasprintf(DEVICES "%s", all[i]);
                device(&slow, path, "10DE:20B0", "8.0 GT/s PCIe\n", "8\n", "16.0 GT/s PCIe\n", "16\n");
        }
        ASSERT_PCIE(&slow, "");
}

TEST(links_with_unknown_values_have_no_findings) {
        static const char *const nothing[][2] = { { "Unknown\n", "0\n" }, { "Unknown\n", "255\n" }, { "Unknown speed\n", "63\n" }, { "\n", "\n" }, { "-1\n", "-1\n" } };
        for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
                MACHINE(m);
                h100s(&m, nothing[i][0], nothing[i][1]);
                device(&m, DEVICES "0000:75:00.0", "10DE:2330", "32.0 GT/s PCIe\n", "16\n", nothing[i][0], nothing[i][1]);
                ASSERT_PCIE(&m, "");
        }
        MACHINE(none);                  /* no such files, no such devices */
        device(&none, DEVICES "0000:53:00.0", "10DE:2330", NULL, NULL, NULL, NULL);
        ASSERT_PCIE(&none, "");
}

TEST(a_link_is_compared_with_those_of_its_model) {
        MACHINE(m);
        h100s(&m, "16.0 GT/s PCIe\n", "8\n");
        ASSERT_CONTAINS(pcie(&m, "GPU"), "the PCIe link of this GPU uses 8 lanes, but most others of its model use 16;");
        ASSERT_CONTAINS(says(&m, 1), "the PCIe link of this GPU runs at 16.0 GT/s, but most others of its model at 32.0 GT/s;");
        ASSERT_STREQ(found(&m), "pcie-width 0000:64:00.0\npcie-speed 0000:64:00.0");
}

TEST(links_of_other_models_or_kinds_are_not_compared) {
        MACHINE(m);                     /* another model; and two of each kind are two kinds of cards */
        h100s(&m, "32.0 GT/s PCIe\n", "16\n");
        device(&m, DEVICES "0000:64:00.0", "10DE:2335", "8.0 GT/s PCIe\n", "4\n", NULL, NULL);
        ASSERT_PCIE(&m, "");
        h100s(&m, "8.0 GT/s PCIe\n", "4\n");
        H100(&m, "0000:86:00.0", "8.0 GT/s PCIe\n", "4\n");
        ASSERT_PCIE(&m, "");
}

static void behind_port(Machine *m, size_t i, const char *port_speed, const char *port_width, const char *speed, const char *width) {
        _free_ char *port = xasprintf("/sys/devices/pci0000:00/0000:00:0%zu.0", i + 1), *gpu = xasprintf("%s/%s", port, all[i]),
                    *link = xasprintf(DEVICES "%s", all[i]), *to = xasprintf("../../..%s", gpu + strlen("/sys"));
        device(m, port, NULL, NULL, NULL, port_speed, port_width);
        device(m, gpu, "10DE:2330", speed, width, "32.0 GT/s PCIe\n", "16\n");
        box_link(&m->box, link, to);
}

TEST(the_port_of_a_gpu_limits_its_link) {
        MACHINE(m);
        behind_port(&m, 0, "16.0 GT/s PCIe\n", "8\n", "16.0 GT/s PCIe\n", "8\n");       /* as it was built */
        behind_port(&m, 1, "16.0 GT/s PCIe\n", "8\n", "16.0 GT/s PCIe\n", "4\n");
        behind_port(&m, 2, "32.0 GT/s PCIe\n", "16\n", "32.0 GT/s PCIe\n", "16\n");
        behind_port(&m, 3, "32.0 GT/s PCIe\n", "16\n", "32.0 GT/s PCIe\n", "16\n");
        ASSERT_CONTAINS(pcie(&m, "GPU"), "uses 4 of the 8 lanes that both ends have;");
        ASSERT_STREQ(found(&m), "pcie-width 0000:64:00.0");
}

TEST(a_slow_port_explains_a_slow_link) {
        MACHINE(m);                     /* three of four are faster, for their ports are */
        behind_port(&m, 0, "16.0 GT/s PCIe\n", "16\n", "16.0 GT/s PCIe\n", "16\n");
        for (size_t i = 1; i < 4; i++)
                behind_port(&m, i, "32.0 GT/s PCIe\n", "16\n", "32.0 GT/s PCIe\n", "16\n");
        ASSERT_PCIE(&m, "");
}

TEST(an_idle_gpu_may_have_a_slow_link) {
        MACHINE(m);                     /* an L4 in P8 beside some that work: no fault; at 8 GT/s none rests */
        for (size_t i = 0; i < 4; i++) {
                _free_ char *path = xasprintf(DEVICES "%s", all[i]);
                device(&m, path, "10DE:27B8", i > 0 ? "16.0 GT/s PCIe\n" : "2.5 GT/s PCIe\n", "8\n", "16.0 GT/s PCIe\n", "8\n");
        }
        ASSERT_PCIE(&m, "");
        put(&m.box, DEVICES "0000:53:00.0/current_link_speed", "8 GT/s\n");
        ASSERT_PCIE(&m, "pcie-speed 0000:53:00.0");
}

TEST(an_idle_h100_has_a_fast_link) {
        MACHINE(m);
        h100s(&m, "2.5 GT/s PCIe\n", "16\n");
        ASSERT_CONTAINS(pcie(&m, "GPU"), "at 2.5 GT/s");
        ASSERT_STREQ(found(&m), "pcie-speed 0000:64:00.0");
}

/* ---- EFA ---- */

static char *efas[] = { g0, g1, g2, NULL };

static void rdma_device(Machine *m, const char *name, const char *address, const char *state) {
        _free_ char *link = xasprintf("/sys/class/infiniband/%s/device", name), *to = xasprintf("../../../bus/pci/devices/%s", address),
                    *path = xasprintf("/sys/class/infiniband/%s/ports/1/state", name);
        box_link(&m->box, link, to);
        if (state)
                put(&m->box, path, state);
}

TEST(ports_of_efa_must_be_active) {
        MACHINE(m);
        health_efa_ports(m.box.root, efas, &m.findings);
        ASSERT_STREQ(found(&m), "");    /* no RDMA subsystem: other checks report it */
        rdma_device(&m, "mlx5_0", "0000:aa:00.0", "1: DOWN\n");
        rdma_device(&m, "rdmap83s0", g0, "4: ACTIVE\n");
        rdma_device(&m, "rdmap100s0", g1, "1: DOWN\n");
        rdma_device(&m, "rdmap117s0", g2, NULL);
        health_efa_ports(m.box.root, efas, &m.findings);
        ASSERT_CONTAINS(says(&m, 0), "the port of EFA device rdmap100s0 is \"1: DOWN\", not ACTIVE");
        ASSERT_STREQ(found(&m), "efa-port 0000:64:00.0");
}

TEST(efa_without_an_rdma_device) {
        MACHINE(m);
        static char unbound[] = "0000:a8:00.0";
        char *functions[] = { g0, g1, g2, unbound, NULL };
        for (size_t i = 0; i < 3; i++) {
                _free_ char *link = xasprintf(DEVICES "%s/driver", functions[i]);
                box_link(&m.box, link, "../../../../bus/pci/drivers/efa");
        }
        rdma_device(&m, "rdmap83s0", g0, "4: ACTIVE\n");
        rdma_device(&m, "rdmap117s0", g2, "4: ACTIVE\n");
        health_efa_ports(m.box.root, functions, &m.findings);
        ASSERT_CONTAINS(says(&m, 0), "this EFA function has no RDMA device");
        ASSERT_STREQ(found(&m), "efa-port 0000:64:00.0");
}

/* ---- GPUDirect ---- */

#define OPEN   "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root@host)\n"
#define CLOSED "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 09:55:41 UTC 2025\n"

static void node(Machine *m, const char *driver, const char *kernel, const char *id) {
        put(&m->box, "/proc/driver/nvidia/version", driver);
        put(&m->box, "/proc/sys/kernel/osrelease", kernel);
        put(&m->box, "/sys/bus/pci/drivers/efa/bind", "");
        device(m, DEVICES "0000:53:00.0", id, NULL, NULL, NULL, NULL);
        rdma_device(m, "rdmap83s0", "0000:50:00.0", "4: ACTIVE\n");
        rdma_device(m, "ibp83s0", "0000:aa:00.0", "4: ACTIVE\n");
}

static void assert_gpudirect(Machine *m, bool efa, const char *want, const char *findings) {
        _free_ char *is = health_gpudirect(m->box.root, efa, false, false, &m->findings);
        ASSERT_STREQ(is, want);
        ASSERT_STREQ(found(m), findings);
}

TEST(gpudirect_by_dma_buf) {
        MACHINE(m);
        assert_gpudirect(&m, true, "no, the NVIDIA driver is not loaded", "");
        node(&m, OPEN, "6.12.40-63.114.amzn2023.x86_64\n", "10DE:2330");
        assert_gpudirect(&m, true, "yes, by dma-buf", "");
        assert_gpudirect(&m, false, "no, this machine has no EFA device", "");
        MACHINE(without);
        put(&without.box, "/proc/driver/nvidia/version", OPEN);
        assert_gpudirect(&without, true, "no, the EFA driver is not loaded", "");
        put(&m.box, "/sys/bus/pci/devices/0000:50:00.0/p2p", "\n");     /* the attribute without a provider */
        assert_gpudirect(&m, true, "yes, by dma-buf", "");
        put(&m.box, "/sys/bus/pci/devices/0000:50:00.0/p2p", "NVIDIA peermem\n");
        assert_gpudirect(&m, true, "yes, by dma-buf and efa_nv_peermem", "");
        put(&m.box, "/sys/bus/pci/devices/0000:50:00.0/p2p", "NEURON\n");
        assert_gpudirect(&m, true, "yes, by dma-buf", "");
}

TEST(gpudirect_by_the_efa_driver) {
        MACHINE(m);
        node(&m, CLOSED, "5.10.240-238.959.amzn2.x86_64\n", "10DE:20B0");
        put(&m.box, "/sys/bus/pci/devices/0000:50:00.0/p2p", "NVIDIA\n");
        assert_gpudirect(&m, true, "yes, by the EFA and NVIDIA drivers", "");
}

TEST(missing_gpudirect_is_a_finding_on_gpus_with_hbm) {
        MACHINE(m);
        node(&m, OPEN, "5.10.240-238.959.amzn2.x86_64\n", "10DE:20B0");
        put(&m.box, "/sys/module/nvidia_peermem/initstate", "live\n");
        _free_ char *is = health_gpudirect(m.box.root, true, false, false, &m.findings);
        ASSERT_CONTAINS(is, "no, this kernel does not support dma-buf for RDMA (5.12 does)");
        ASSERT_CONTAINS(is, "install efa_nv_peermem");
        ASSERT_CONTAINS(is, "nvidia_peermem is loaded, but does not serve EFA");
        ASSERT_CONTAINS(says(&m, 0), "EFA cannot reach GPU memory");
        ASSERT_STREQ(found(&m), "peer-memory ");
}

TEST(gpudirect_is_expected_of_each_generation_with_hbm) {
        static const char *const ids[] = { "10DE:20B0", "10DE:2330", "10DE:2901", "10DE:3182" };       /* A100, H100, B200, B300 */
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                MACHINE(m);
                node(&m, OPEN, "5.11.0\n", ids[i]);
                free(health_gpudirect(m.box.root, true, false, false, &m.findings));
                ASSERT_STREQ(found(&m), "peer-memory ");
                put(&m.box, "/proc/sys/kernel/osrelease", "5.12.0\n");
                put(&m.box, "/sys/module/efa/version", "1.16.0g\n");
                assert_gpudirect(&m, true, "yes, by dma-buf", "");
        }
}

TEST(missing_gpudirect_is_not_a_finding_on_other_gpus) {
        MACHINE(m);                     /* an A10G, whose AMI takes the proprietary module */
        node(&m, CLOSED, "6.1.140-154.222.amzn2023.x86_64\n", "10DE:2237");
        _free_ char *is = health_gpudirect(m.box.root, true, false, false, &m.findings);
        ASSERT_CONTAINS(is, "no, the proprietary NVIDIA kernel module does not support dma-buf");
        ASSERT_STREQ(found(&m), "");
}

/* Each part has its own table: 'y' it is there, 'n' it is missing, '?' unknown. */
typedef struct Part { const char *is; char here, efa; const char *says; } Part;
static const Part kernels[] = {         /* efa: that of the kernel; with base pages of 4 and of 64 KiB */
        { "4.14.355-277.643.amzn2.x86_64\n",   'n', 'n', "this kernel does not support dma-buf" },
        { "5.10.240-238.959.amzn2.x86_64\n",   'n', 'n', "this kernel does not support dma-buf" },
        { "5.11.22\n",                         'n', 'n', "this kernel does not support dma-buf" },
        { "5.12.0\n",                          'y', 'n', NULL },
        { "5.15.0-1084-aws\n",                 'y', 'n', NULL },
        { "5.16.0\n",                          'y', 'y', NULL },
        { "6.1.140-154.222.amzn2023.x86_64\n", 'y', 'y', NULL },
        { "6.12.40-63.114.amzn2023.aarch64\n", 'y', 'y', NULL },
        { "6.12.40-64k\n",                     'y', 'y', NULL },
        { "6.8.0-1015-nvidia-64k\n",           'y', 'y', NULL },
        { "10.0.1\n",                          'y', 'y', NULL },
};
static const Part flavours[] = {
        { OPEN,                                                                                  'y', 0, NULL },
        { "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.126.20  Release Build", 'y', 0, NULL },
        { CLOSED,                                                                                'n', 0, "the proprietary NVIDIA kernel module does not support dma-buf" },
};
static const Part efa_drivers[] = {
        { NULL,         0,   0, "the EFA driver of this kernel does not support dma-buf" },        /* that of the kernel */
        { "1.14.2g\n",  'n', 0, "EFA driver without dma-buf (1.16.0 has it): 1.14.2g" },
        { "1.15\n",     'n', 0, "EFA driver without dma-buf (1.16.0 has it): 1.15" },
        { "1.16.0g\n",  'y', 0, NULL },
        { "2.17.3g\n",  'y', 0, NULL },
        { "3.1.0\n",    'y', 0, NULL },
        { "master\n",   '?', 0, "nodestrap cannot read the version of the EFA driver: master" },
};
#define TOPO "GrdmaPciTopoCheckOverride"
static const Part options[] = {
        { "EnableMSI: 1\n" TOPO ": 1\nRmMsg: \"\"\n",           'y', 0, NULL },
        { TOPO ": 1",                                            'y', 0, NULL },
        { "EnableMSI: 1\n" TOPO ": 0\n",                         'n', 0, "needs " TOPO "=1, but was loaded with 0" },
        { TOPO ": 2\n",                                          'n', 0, "needs " TOPO "=1, but was loaded with 2" },
        { TOPO ": 11\n",                                         'n', 0, "was loaded with 11" },
        { TOPO ": allow\n",                                      'n', 0, "was loaded with allow" },
        { NULL,                                                  '?', 0, "params does not show " TOPO },
        { "",                                                    '?', 0, "params does not show " TOPO },
        { "EnableMSI: 1\n" TOPO "2: 1\nNo" TOPO ": 1\n",          '?', 0, "params does not show " TOPO },
        { "{\"version\": 2, \"" TOPO "\": 1}\n",                   '?', 0, "params does not show " TOPO },  /* of a future driver */
};
static const Part providers[] = {
        { NULL, 'n', 0, NULL }, { "\n", 'n', 0, NULL }, { "NEURON\n", 'n', 0, NULL }, { "NVIDIA\n", 'y', 0, "the EFA and NVIDIA drivers" },
        { "NVIDIA peermem\n", 'y', 0, "efa_nv_peermem" },
};

static void put_or_not(Machine *m, const char *path, const char *content) {
        _free_ char *real = box_path(&m->box, path);
        unlink(real);
        if (content)
                put(&m->box, path, content);
}

/* dma-buf needs all parts. The EFA driver is another way, without them, but not on a tray. */
static void judge(Machine *m, bool tray, const Part *kernel, const Part *flavour, const Part *driver, const Part *option, const Part *provider) {
        char efa = driver->is ? driver->here : kernel->efa;
        const struct { char here; const char *says; } needed[] = {
                { kernel->here, kernel->says }, { flavour->here, flavour->says }, { kernel->here == 'y' ? efa : 'y', driver->says },
                { tray ? option->here : 'y', option->says },
        };
        bool lacks = false, unseen = false, other = !tray && provider->here == 'y';
        for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
                lacks |= needed[i].here == 'n';
                unseen |= needed[i].here == '?';
        }
        bool yes = other || (!lacks && !unseen);
        for (int required = 0; required < 2; required++) {
                findings_done(&m->findings);
                _free_ char *is = health_gpudirect(m->box.root, true, tray, required, &m->findings);
                ASSERT_TRUE(startswith(is, yes ? "yes, by " : lacks ? "no, " : "not known, "));
                ASSERT_EQ(m->findings.n, !yes);
                if (yes)
                        ASSERT_EQ(strstr(is, "dma-buf") != NULL, !lacks && !unseen);
                if (other)
                        ASSERT_CONTAINS(is, provider->says);
                if (yes)
                        continue;
                const Finding *f = m->findings.items;
                ASSERT_TRUE(streq(f->word, "peer-memory") && f->unusable == required && !*f->address);
                ASSERT_EQ(strstr(f->text, "spec.accelerator.nvidia.gpuDirect requires") != NULL, required);
                for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
                        if (needed[i].here != 'y') {
                                ASSERT_CONTAINS(is, needed[i].says);
                                ASSERT_CONTAINS(f->text, needed[i].says);
                        }
        }
}

TEST(gpudirect_with_each_combination_of_parts) {
        MACHINE(m);
        node(&m, OPEN, "6.12.40\n", "10DE:2941");
        unsigned n = 0;
        for (size_t k = 0; k < ARRAY_SIZE(kernels); k++) {
                put(&m.box, "/proc/sys/kernel/osrelease", kernels[k].is);
                for (size_t f = 0; f < ARRAY_SIZE(flavours); f++) {
                        put(&m.box, "/proc/driver/nvidia/version", flavours[f].is);
                        for (size_t e = 0; e < ARRAY_SIZE(efa_drivers); e++) {
                                put_or_not(&m, "/sys/module/efa/version", efa_drivers[e].is);
                                for (size_t o = 0; o < ARRAY_SIZE(options); o++) {
                                        put_or_not(&m, "/proc/driver/nvidia/params", options[o].is);
                                        for (size_t p = 0; p < ARRAY_SIZE(providers); p++, n++) {
                                                put_or_not(&m, "/sys/bus/pci/devices/0000:50:00.0/p2p", providers[p].is);
                                                for (int tray = 0; tray < 2; tray++)
                                                        judge(&m, tray, &kernels[k], &flavours[f], &efa_drivers[e], &options[o], &providers[p]);
                                        }
                                }
                        }
                }
        }
        ASSERT_EQ(n, ARRAY_SIZE(kernels) * ARRAY_SIZE(flavours) * ARRAY_SIZE(efa_drivers) * ARRAY_SIZE(options) * ARRAY_SIZE(providers));
}

/* gpuDirect: on also fails without a driver or an EFA device. */
TEST(gpudirect_that_is_required) {
        MACHINE(m);
        static const char *const obstacles[] = { "the NVIDIA driver is not loaded", "this machine has no EFA device", "the EFA driver is not loaded" };
        for (size_t i = 0; i < ARRAY_SIZE(obstacles); i++) {
                _free_ char *is = health_gpudirect(m.box.root, i == 2, true, true, &m.findings), *want = xasprintf("no, %s", obstacles[i]);
                ASSERT_STREQ(is, want);
                ASSERT_CONTAINS(says(&m, 0), obstacles[i]);
                ASSERT_CONTAINS(says(&m, 0), "EFA cannot reach GPU memory, so data between nodes goes through CPU memory, but spec.accelerator.nvidia.gpuDirect requires direct access: ");
                ASSERT_STREQ(found(&m), "peer-memory !");
                put(&m.box, "/proc/driver/nvidia/version", OPEN);
        }
        node(&m, OPEN, "6.12.40-64k\n", "10DE:2237");           /* where none is expected */
        put(&m.box, "/proc/driver/nvidia/params", TOPO ": 0\n");
        _free_ char *is = health_gpudirect(m.box.root, true, true, true, &m.findings);
        ASSERT_STREQ(is, "no, the NVIDIA driver needs " TOPO "=1, but was loaded with 0; reboot once, so that the driver reads /etc/modprobe.d/zz-nodestrap-nvidia.conf");
        ASSERT_STREQ(found(&m), "peer-memory !");
        free(health_gpudirect(m.box.root, true, true, false, &m.findings));
        ASSERT_STREQ(found(&m), "");
}

/* Branch 595 shows the option, and does not read it. */
TEST(gpudirect_of_a_driver_that_ignores_the_option) {
        MACHINE(m);
        static const struct { const char *version; bool yes; } drivers[] = {
                { "580.126.20", true }, { "594.99", true }, { "595.45.04", false }, { "596.10", true },
        };
        node(&m, OPEN, "6.12.40\n", "10DE:2941");
        put(&m.box, "/sys/module/efa/version", "2.17.3g\n");
        put(&m.box, "/proc/driver/nvidia/params", TOPO ": 1\n");
        for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
                put(&m.box, "/sys/module/nvidia/version", drivers[i].version);
                findings_done(&m.findings);
                _free_ char *is = health_gpudirect(m.box.root, true, true, true, &m.findings);
                ASSERT_TRUE(startswith(is, drivers[i].yes ? "yes, by dma-buf" : "no, this NVIDIA driver does not read " TOPO));
                ASSERT_STREQ(found(&m), drivers[i].yes ? "" : "peer-memory !");
                _free_ char *elsewhere = health_gpudirect(m.box.root, true, false, false, &m.findings);
                ASSERT_STREQ(elsewhere, "yes, by dma-buf");
        }
}

TEST(gdrcopy) {
        MACHINE(m);
        node(&m, OPEN, "6.12.40\n", "10DE:2330");
        put(&m.box, "/lib/modules/6.12.40/modules.dep", "kernel/drivers/video/nvidia.ko:\n");
        assert_gpudirect(&m, true, "yes, by dma-buf", "");
        put(&m.box, "/lib/modules/6.12.40/modules.dep", "extra/gdrdrv.ko.xz: kernel/drivers/video/nvidia.ko\n");
        free(health_gpudirect(m.box.root, true, false, false, &m.findings));
        ASSERT_CONTAINS(says(&m, 0), "its module is not loaded");
        ASSERT_STREQ(found(&m), "gdrdrv ");
        put(&m.box, "/proc/devices", "Character devices:\n  1 mem\n235 gdrdrv\n\nBlock devices:\n259 blkext\n");
        free(health_gpudirect(m.box.root, false, false, false, &m.findings));
        ASSERT_CONTAINS(says(&m, 0), "run `mknod -m 666 /dev/gdrdrv c 235 0`");
        ASSERT_STREQ(found(&m), "gdrdrv ");
        put(&m.box, "/dev/gdrdrv", "");
        assert_gpudirect(&m, true, "yes, by dma-buf", "");
}

TEST(gdrcopy_by_its_library_alone) {
        MACHINE(m);
        node(&m, OPEN, "6.12.40\n", "10DE:2330");
        put(&m.box, "/usr/lib64/libgdrapi.so.2", "");
        assert_gpudirect(&m, true, "yes, by dma-buf", "gdrdrv ");
}

/* ---- the kernel log ---- */

#define LOADED "6,700,11000000,-;nvidia-nvlink: Nvlink Core is being initialized, major device number 235\n"
#define XID(time, address, rest) "4,900," time ",-;NVRM: Xid (PCI:" address "): " rest "\n"

static const char *log_says(Machine *m, const char *log) {
        put(&m->box, "/dev/kmsg", log);
        findings_done(&m->findings);
        health_kernel_log(m->box.root, all, &m->findings);
        return m->findings.n > 0 ? m->findings.items[0].text : "";
}
#define ASSERT_LOG(m, log, want) ({ log_says(m, log); ASSERT_STREQ(found(m), want); })

TEST(a_missing_log_has_no_findings) {
        MACHINE(m);
        health_kernel_log(m.box.root, all, &m.findings);
        ASSERT_STREQ(found(&m), "");
        ASSERT_LOG(&m, "", "");
        ASSERT_LOG(&m, "6,1,0,-;Linux version 6.12.40\n" LOADED "6,701,11000001,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05\n", "");
}

TEST(xids_that_count_and_those_that_do_not) {
        MACHINE(m);
        ASSERT_CONTAINS(log_says(&m, LOADED XID("12345678", "0000:64:00", "95, pid=7062, Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No")),
                        "NVIDIA driver: a memory error that was not contained (Xid 95), at 12.345678 in dmesg. Reboot, since the GPU needs a reset before use");
        ASSERT_STREQ(found(&m), "xid 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "13, Graphics Exception") XID("2", "0000:64:00", "31, MMU Fault") XID("3", "0000:64:00", "43, Ch 8")
                   XID("4", "0000:64:00", "45, Ch 9") XID("5", "0000:64:00", "9999, of a later driver"), "");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "63, Row Remapper: New row marked for remapping, reset gpu to activate."), "xid 0000:64:00.0");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00 GPU-I:05", "94, pid=7194, Contained: CE User Channel (0x9)."), "xid 0000:64:00.0");
        ASSERT_LOG(&m, LOADED "4,900,1,-;NVRM: Xid (0000:64:00): 48, An uncorrectable double bit error\n", "xid 0000:64:00.0");
        ASSERT_LOG(&m, LOADED XID("1", "0008:01:00", "48, DBE"), "xid 0008:01:00.0");
}

TEST(xids_with_a_severity) {
        MACHINE(m);
#define SAW  "144, SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001 0x00000008)"
#define DOWN "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000)"
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", SAW), "");
        ASSERT_CONTAINS(log_says(&m, LOADED XID("1", "0000:64:00", DOWN)), "an NVLink error (NETIR) (Xid 149), at 0.000001 in dmesg. Reboot, since the GPU needs a reset before use");
        ASSERT_STREQ(found(&m), "xid 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", DOWN) XID("2", "0000:64:00", "149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 09 (0x0)"), "xid 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "149, x"), "xid 0000:64:00.0");           /* a driver without a severity */
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "48, pid=1, name=a Fatal b, DBE"), "xid 0000:64:00.0");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "48, pid=1, name=a Nonfatal b, DBE"), "xid 0000:64:00.0");
}

TEST(each_xid_is_one_finding_for_each_device) {
        MACHINE(m);
        ASSERT_CONTAINS(log_says(&m, LOADED XID("1500000", "0000:64:00", "48, x") XID("2000000", "0000:64:00", "48, y") XID("2500000", "0000:64:00", "48, z")),
                        "(Xid 48), 3 times, first at 1.500000 in dmesg");
        ASSERT_STREQ(found(&m), "xid 0000:64:00.0");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "48, x") XID("2", "0000:64:00", "92, y") XID("3", "0000:75:00", "48, z"),
                   "xid 0000:64:00.0\nxid 0000:64:00.0\nxid 0000:75:00.0");
}

TEST(gpus_that_have_fallen_off_the_bus) {
        MACHINE(m);
        ASSERT_CONTAINS(log_says(&m, LOADED XID("7000001", "0000:53:00", "79, GPU has fallen off the bus.")
                                     "4,901,7000002,-;NVRM: GPU 0000:53:00.0: GPU has fallen off the bus.\n"),
                        "the GPU has fallen off the bus (Xid 79), at 7.000001 in dmesg");
        ASSERT_STREQ(found(&m), "off-the-bus 0000:53:00.0!");
        ASSERT_LOG(&m, LOADED XID("7000001", "0000:53:00", "79, GPU has fallen off the bus."), "off-the-bus 0000:53:00.0!");
        /* when the driver starts, as one record and as three */
        ASSERT_LOG(&m, LOADED "3,901,7,-;NVRM: The NVIDIA GPU 0000:75:00.0\\x0aNVRM: (PCI ID: 10de:2330) installed in this system has\\x0aNVRM: fallen off the bus and is "
                              "not responding to commands.\\x0a\n",
                   "off-the-bus 0000:75:00.0!");
        ASSERT_LOG(&m, LOADED "3,901,7,-;NVRM: The NVIDIA GPU 0000:75:00.0\n3,902,8,-;NVRM: (PCI ID: 10de:2330) installed in this system has\n"
                              "3,903,9,-;NVRM: fallen off the bus and is not responding to commands.\n",
                   "off-the-bus 0000:75:00.0!");
        ASSERT_LOG(&m, LOADED "4,901,7,-;NVRM: GPU at PCI:0000:64:00: GPU-0b11d014\n4,902,8,-;NVRM: GPU at 0000:64:00.0 has fallen off the bus.\n", "off-the-bus 0000:64:00.0!");
}

/* nodestrap asks the driver afterwards, so the advice to reboot appears only once. */
TEST(the_advice_of_the_log_is_withdrawn) {
        MACHINE(m);
        (void)log_says(&m, LOADED XID("7000001", "0000:53:00", "79, GPU has fallen off the bus."));
        findings_excuse(&m.findings, "0000:53:00.0");
        ASSERT_STREQ(m.findings.items[0].text, "NVIDIA driver: the GPU has fallen off the bus (Xid 79), at 7.000001 in dmesg. "
                     "The driver asks for no action now; replace the instance if this happens again");
        ASSERT_STREQ(found(&m), "off-the-bus 0000:53:00.0");
}

TEST(gsp_time_outs) {
        MACHINE(m);
        ASSERT_CONTAINS(log_says(&m, LOADED XID("9", "0000:64:00", "119, pid=1, name=x, Timeout after 6s of waiting for RPC response from GPU1 GSP! Expected function 76")
                                     "3,902,8,-;NVRM: GPU1 _kgspLogRpcTimeout: ***** GSP Timeout *****\n"),
                        "(GSP) does not answer (Xid 119)");
        ASSERT_STREQ(found(&m), "gsp-timeout 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED XID("9", "0000:64:00", "120, GSP task panic"), "gsp-timeout 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED "3,902,8,-;NVRM: GPU1 _kgspLogRpcTimeout: ***** GSP Timeout *****\n", "gsp-timeout ");
        ASSERT_LOG(&m, LOADED "3,902,8,-;NVRM: API mismatch: the client 'GSP timeout' has the version 1, but\n", "");        /* a process may be called so */
}

#define SAID(rest) "3,902,8,-;NVRM: " rest "\n"
#define REQUIRED   "nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status @ kernel_channel.c:2874"

/* Lines of the public logs that the table of forms names, and other lines, which mean nothing. */
TEST(lines_without_a_gpu) {
        MACHINE(m);
        static const struct { const char *line, *want, *says; } lines[] = {
                { SAID(REQUIRED), "reset-required ", "NVIDIA driver: a GPU accepts no work until it is reset, at 0.000008 in dmesg. The message names no GPU" },
                { SAID("GPU0 nvCheckOkFailedNoLog: Check failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from _gpushareddataSendDataPollRpc(pGpu)"),
                  "reset-required ", "The message names no GPU" },
                { SAID("GPU 0000:64:00.0: Check failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)"), "reset-required 0000:64:00.0", "until it is reset, at 0.000008 in dmesg. Replace" },
                { SAID("nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F) returned from rmStatus @ kernel_ce_gv100.c:106"),
                  "off-the-bus ", "no longer answers on the PCI bus" },
                { SAID("nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover."), "uvm-error ", "fails until a reboot" },
                { SAID("knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!"), "nvlink-error ", "which NVLinks are up" },
                { SAID("knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!"), "nvlink-error ", "which NVLinks are up" },
                { SAID("_kgspRpcRecvPoll: GSP RM heartbeat timed out"), "gsp-timeout ", "(GSP) does not answer" },
                { SAID("_kgspRpcRecvPoll: LibOS heartbeat timed out"), "gsp-timeout ", "(GSP) does not answer" },
                { SAID("_kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 3175895033 heartbeat 19834604 diff 79682 timeout 5200"), "gsp-timeout ", "(GSP) does not answer" },
                { SAID("GPU0 kgspHealthCheck_TU102: ********** GSP-CrashCat Report **********"), "gsp-timeout ", "(GSP) has crashed" },
                { SAID("krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7"), "gpu-locked ", "a GPU hangs: it has stopped processing" },
                { SAID("rpcRmApiAlloc_GSP: GspRmAlloc failed: hClient=0xc1d1a616; paramsStatus=0x00000062; status=0x00000062"), "", NULL },
                { SAID("nvAssertFailedNoLog: Assertion failed: 0 @ kernel_gsp.c:1476"), "", NULL },
                { SAID("nvAssertFailedNoLog: Assertion failed: (status == NV_OK) || (status == NV_ERR_GPU_IN_FULLCHIP_RESET) @ rs_server.c:259"), "", NULL },
                { SAID("nvAssertOkFailedNoLog: Assertion failed: Generic operating system error [NV_ERR_OPERATING_SYSTEM]"), "", NULL },
                { SAID("testIfDsmSubFunctionEnabled: GPS ACPI DSM called before _acpiDsmSupportedFuncCacheInit subfunction = 11."), "", NULL },
                { SAID("API mismatch: the client '[NV_ERR_RESET_REQUIRED]' has the version 1, but"), "", NULL },
                { "3,902,8,-;python3[7]: Reset required [NV_ERR_RESET_REQUIRED]\n", "", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                _free_ char *log = xasprintf(LOADED "%s%s", lines[i].line, lines[i].line);
                if (lines[i].says) {
                        ASSERT_CONTAINS(log_says(&m, lines[i].line), lines[i].says);
                        (void)log_says(&m, log);
                        ASSERT_CONTAINS(says(&m, 0), ", 2 times, first at 0.000008 in dmesg");
                }
                ASSERT_LOG(&m, log, lines[i].want);
        }
}

/* The Xid names a GPU, its consequence does not. */
TEST(lines_that_follow_from_an_xid) {
        MACHINE(m);
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "95, Uncontained") SAID(REQUIRED), "xid 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "63, Row Remapper") SAID(REQUIRED), "xid 0000:64:00.0\nreset-required ");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "95, Uncontained") LOADED SAID(REQUIRED), "xid 0000:64:00.0\nreset-required ");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "95, x") SAID("GPU 0000:75:00.0: [NV_ERR_RESET_REQUIRED]"), "xid 0000:64:00.0!\nreset-required 0000:75:00.0");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "79, GPU has fallen off the bus.") SAID("Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST]"), "off-the-bus 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "95, x") SAID("knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!"), "xid 0000:64:00.0!\nnvlink-error ");
        /* that reset has come */
        ASSERT_LOG(&m, LOADED SAID(REQUIRED) XID("3", "0000:64:00", "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"), "");
        ASSERT_CONTAINS(log_says(&m, LOADED SAID(REQUIRED) LOADED), "by a driver that was reloaded since");
}

TEST(sxids_of_nvswitches) {
        MACHINE(m);
        ASSERT_CONTAINS(log_says(&m, LOADED "3,900,5,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)\n"
                                            "3,901,6,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 28006, Severity 0 Engine instance 46 Sub-engine instance 00\n"
                                            "3,902,7,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 28006, Data {0x00140004, 0x00100000, 0x00140004}\n"),
                        "an NVSwitch reports SXid error 28006, at 0.000005 in dmesg");
        ASSERT_STREQ(found(&m), "sxid 0000:c1:00.0");
        ASSERT_CONTAINS(log_says(&m, LOADED "3,900,5,-;nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"), "20034, fatal for a link");
        ASSERT_STREQ(found(&m), "sxid 0000:c4:00.0");
}

#define SXID(rest) "3,900,5,-;nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): " rest "\n"
TEST(sxids_of_healthy_machines_are_ignored) {
        MACHINE(m);
        ASSERT_LOG(&m, LOADED SXID("22013, Non-fatal, Link 47 Minion Link DLREQ interrupt") SXID("22013, Severity 0 Engine instance 47 Sub-engine instance 00")
                   SXID("22013, Data {0x0000002f, 0x0000002f, 0x00000000, 0x0000002f, 0x80000302}"), "");
        ASSERT_LOG(&m, LOADED SXID("11012, Non-fatal, Link 03 Single bit ECC"), "");
        ASSERT_LOG(&m, LOADED SXID("24003, Fatal, Link 03 x"), "sxid 0000:c1:00.0");
        ASSERT_LOG(&m, LOADED SXID("20012, Non-fatal, Link 03 Broken connection"), "sxid 0000:c1:00.0");
}

TEST(gpus_that_the_driver_could_not_start) {
        MACHINE(m);
        ASSERT_LOG(&m, LOADED "4,900,5,-;nvidia: probe of 0000:53:00.0 failed with error -1\n", "gpu-init 0000:53:00.0");
        ASSERT_LOG(&m, LOADED "4,900,5,-;nvidia 0000:53:00.0: probe with driver nvidia failed with error -1\n", "gpu-init 0000:53:00.0");
        ASSERT_LOG(&m, LOADED "4,900,5,-;NVRM: GPU 0000:53:00.0: RmInitAdapter failed! (0x62:0x40:2417)\n4,901,6,-;NVRM: GPU 0000:53:00.0: rm_init_adapter failed, device minor number 0\n",
                   "gpu-init 0000:53:00.0");
        ASSERT_LOG(&m, "4,900,5,-;nvme: probe of 0000:53:00.0 failed with error -1\n", "");
        /* the image tried another driver first */
        ASSERT_LOG(&m, LOADED "4,900,5,-;nvidia: probe of 0000:53:00.0 failed with error -1\n" LOADED, "");
}

TEST(an_xid_counts_less_after_a_reload_of_the_driver) {
        MACHINE(m);
        ASSERT_CONTAINS(log_says(&m, LOADED XID("1", "0000:64:00", "95, Uncontained") LOADED), "by a driver that was reloaded since. Replace the instance if it happens again");
        ASSERT_STREQ(found(&m), "xid 0000:64:00.0");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "95, Uncontained") LOADED XID("2", "0000:64:00", "95, Uncontained"), "xid 0000:64:00.0!");
}

TEST(recovery_actions_in_the_log) {
        MACHINE(m);
#define RESET XID("2", "0000:64:00", "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
#define WELL  XID("3", "0000:64:00", "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")
        ASSERT_CONTAINS(log_says(&m, LOADED RESET), "recovery action: GPU Reset Required (Xid 154)");
        ASSERT_STREQ(found(&m), "xid 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED XID("1", "0000:64:00", "95, x") XID("1", "0000:75:00", "95, x") RESET WELL, "xid 0000:64:00.0\nxid 0000:75:00.0!");
        ASSERT_LOG(&m, LOADED RESET WELL RESET, "xid 0000:64:00.0!");
        ASSERT_LOG(&m, LOADED XID("2", "0000:64:00", "154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)"), "xid 0000:64:00.0!");
}

TEST(only_lines_of_the_kernel_count) {
        MACHINE(m);                     /* facility 3 belongs to daemons */
        ASSERT_LOG(&m, "30,9,5,-;NVRM: Xid (PCI:0000:64:00): 79, x\n", "");
        ASSERT_LOG(&m, " NVRM: Xid (PCI:0000:64:00): 79, x\nNVRM: Xid (PCI:0000:64:00): 79, x\n4;NVRM: Xid (PCI:0000:64:00): 79, x\n", "");
        ASSERT_LOG(&m, "4,9,5,-;audit: NVRM: Xid (PCI:0000:64:00): 79, x\n", "");
}

TEST(a_gpu_may_have_another_pci_function) {
        MACHINE(m);
        static char other[] = "0000:64:00.1";
        char *gpus[] = { other, NULL }, log[] = XID("1", "0000:64:00", "48, x");
        kernel_log_findings(log, sizeof log - 1, gpus, &m.findings);
        ASSERT_STREQ(found(&m), "xid 0000:64:00.1");
}

TEST(a_flood_of_xids_is_bounded) {
        MACHINE(m);
        Text log = {};
        for (unsigned i = 0; i < 5000; i++)
                text_add(&log, "4,%u,%u,-;NVRM: Xid (PCI:%04x:64:00): 48, x\n", i, i, i);
        kernel_log_findings(log.data, log.size, NULL, &m.findings);
        text_done(&log);
        ASSERT_EQ(m.findings.n, 256);
        findings_done(&m.findings);
}

/* The real kernel log, if it can be read: the read must end. */
TEST(the_log_of_this_machine_can_be_read) {
        MACHINE(m);
        Root *host = NULL;
        ASSERT_OK(root_new("/", &host));
        health_kernel_log(host, NULL, &m.findings);
        root_free(host);
        findings_done(&m.findings);
}

TEST_MAIN
