/* SPDX-License-Identifier: Apache-2.0
 * The tables of GPU machines, compared with each other, and those parts of detection that read no machine.
 * tests/check/census.sh takes whole machines apart. */
#include "host/detect.h"
#include "health/health.h"
#include "host/tables.h"

#include "test.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- tables ---- */

TEST(models_are_sorted_and_found) {
        for (size_t i = 0; i < n_gpu_models; i++) {
                const GpuModel *m = &gpu_models[i];
                ASSERT_TRUE(i == 0 || gpu_models[i - 1].device < m->device);
                ASSERT_TRUE(gpu_model_find(m->device) == m);
                ASSERT_TRUE(*m->name && *m->generation);
                ASSERT_EQ(m->board == GPU_CLASS_NONE || m->board == GPU_CLASS_TRAY, m->switches == 0);
                ASSERT_EQ(m->board == GPU_CLASS_TRAY, m->coherent);     /* the GPUs of Grace CPUs */
                ASSERT_TRUE(!*m->mig || !m->no_gsp);     /* generations without MIG */
                ASSERT_TRUE(*m->mig || !m->mig_resets);
                if (m->board != GPU_CLASS_NONE && !pci_id_is_hbm_gpu(0x10deU << 16 | m->device))
                        FAIL("%s: conf/hbm-chips.csv has no row for %02x", m->name, m->device >> 8);
        }
        ASSERT_TRUE(!gpu_model_find(0) && !gpu_model_find(0x2331) && !gpu_model_find(0xffff));
}

TEST(models_have_their_properties) {
        ASSERT_STREQ(gpu_model_find(0x2330)->name, "h100");
        ASSERT_EQ(gpu_model_find(0x20b0)->switches, 6);
        ASSERT_EQ(gpu_model_find(0x2335)->switches, 4);
        ASSERT_EQ(gpu_model_find(0x2901)->board, GPU_CLASS_NVLINK5);
        ASSERT_TRUE(gpu_model_find(0x2941)->coherent && gpu_model_find(0x31c2)->coherent && gpu_model_find(0x31c3)->coherent);
        ASSERT_TRUE(!gpu_model_find(0x2901)->coherent && !gpu_model_find(0x2330)->no_gsp);
        ASSERT_TRUE(gpu_model_find(0x1eb8)->no_gsp && gpu_model_find(0x1eb4)->no_gsp && gpu_model_find(0x2237)->no_gsp);
        ASSERT_TRUE(!*gpu_model_find(0x27b8)->mig && *gpu_model_find(0x2bb5)->mig);
}

/* A word that is neither a GPU nor a feature would never match. */
TEST(requirements_name_known_gpus_and_features) {
        static const char *const features[] = { "cdi", "cdmm", "cdmm-auto", "compute-domains", "driver", "efa", "mig", NULL };
        for (const Requirement *r = requirements; r < requirements + n_requirements; r++) {
                for (const char *rest = r->what; *rest;) {
                        _free_ char *word = str_cut(&rest, "+");
                        if (!strv_contains((char *const *)features, word) && !startswith(word, "kubelet-1.") &&
                            !ANY(m, gpu_models, n_gpu_models, streq(m->name, word)))
                                FAIL("%s: no such GPU or feature", word);
                }
                ASSERT_TRUE(!*r->from || version_compare(r->from, r->before) < 0);
                /* parts of the driver, and only they, need the version of the driver */
                ASSERT_EQ(r->component >= COMPONENT_FABRICMANAGER, streq(r->before, "=driver"));
                ASSERT_EQ(streq(r->what, "driver"), streq(r->before, "=driver"));
                for (const Requirement *other = requirements; other < r; other++)
                        ASSERT_TRUE(!streq(other->what, r->what) || other->component != r->component || !streq(other->before, r->before));
        }
        for (Component c = COMPONENT_FABRICMANAGER; c < _COMPONENT_MAX; c++)
                ASSERT_TRUE(requirement_find("driver", c));
        ASSERT_TRUE(!requirement_find("t4", COMPONENT_DRIVER) && !requirement_find("h100", COMPONENT_KERNEL));
}

/* A version is compared as far as its digits go; one that is too short to decide passes. */
TEST(versions_that_miss_a_requirement) {
        static const struct { const char *what, *version; Component component; bool misses; } cases[] = {
                { "cdmm", "580.65.05", COMPONENT_DRIVER, true }, { "cdmm", "580.65.06", COMPONENT_DRIVER, false }, { "cdmm", "595.45.04", COMPONENT_DRIVER, false },
                { "cdmm", "580.65", COMPONENT_DRIVER, false },   { "cdmm", "580", COMPONENT_DRIVER, false },       { "cdmm", "575", COMPONENT_DRIVER, true },
                { "cdmm", NULL, COMPONENT_DRIVER, false },       { "cdmm", "", COMPONENT_DRIVER, false },          { "gb200", "6.1.150-170.amzn2023", COMPONENT_KERNEL, true },
                { "gb200", "6.12.40-63.114.amzn2023.aarch64", COMPONENT_KERNEL, false }, { "gb200", "7.0", COMPONENT_KERNEL, false }, { "h100", "525.85", COMPONENT_DRIVER, false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (requirement_misses(requirement_find(cases[i].what, cases[i].component), cases[i].version) != cases[i].misses)
                        FAIL("%s, %s", cases[i].what, cases[i].version);
}

TEST(models_with_mig_have_profiles) {
        for (const GpuModel *m = gpu_models; m < gpu_models + n_gpu_models; m++) {
                size_t n = 0;
                if (*m->mig && !mig_profiles_of(m->mig, &n))
                        FAIL("%s: conf/mig-profiles.csv knows no %s", m->name, m->mig);
        }
}

/* A type may have several, such as 0x31c2 and 0x31c3: each is in the table, with the board of the type. */
TEST(every_gpu_of_an_instance_type_has_a_model) {
        size_t n = n_instance_types;
        const InstanceType *all = instance_types;
        for (const InstanceType *t = all; t < all + n; t++)
                for (size_t i = 0; i < ARRAY_SIZE(t->gpu_devices) && t->gpu_devices[i]; i++) {
                        const GpuModel *m = gpu_model_find(t->gpu_devices[i]);
                        if (!m)
                                FAIL("%s: %04x is not in conf/gpus.csv", t->name, t->gpu_devices[i]);
                        const char *name = t->gpu_model + strlen("nvidia-");
                        if (!startswith(name, m->name) || !strchr("-", name[strlen(m->name)]))
                                FAIL("%s: its model %s is not the %s that conf/gpus.csv has for %04x", t->name, t->gpu_model, m->name, t->gpu_devices[i]);
                        if (streq(t->nvswitch, "pci"))
                                ASSERT_EQ(m->board, GPU_CLASS_NVSWITCH);
                        if (streq(t->nvswitch, "nvl5-host"))
                                ASSERT_EQ(m->board, GPU_CLASS_NVLINK5);
                        if (streq(t->nvswitch, "nvl5-offhost"))
                                ASSERT_TRUE(m->coherent);
                }
}

static unsigned count_addresses(const PciLayout *l) {
        unsigned n = 0;
        for (const char *p = l->addresses; *p; p += strspn(p, "|")) {
                unsigned bus, slot, function;
                int length = 0;
                if (sscanf(p, "%2x:%2x.%1x%n", &bus, &slot, &function, &length) != 3 || length != 7 || !strchr("|", p[length]))
                        FAIL("%s, %s: \"%s\" is no address", l->type, l->part, p);
                p += length;
                n++;
        }
        return n;
}

TEST(layouts_have_as_many_devices_as_their_types) {
        for (const PciLayout *l = pci_layout; l < pci_layout + n_pci_layout; l++) {
                const InstanceType *t = instance_type_find(l->type);
                ASSERT_TRUE(t && *t->gpu_devices);
                const GpuModel *m = gpu_model_find(*t->gpu_devices);
                unsigned want = streq(l->part, "gpu") ? t->gpus : streq(l->part, "efa") ? (unsigned)t->max_efa : m->switches;
                if (count_addresses(l) != want)
                        FAIL("%s: %u addresses of %s, want %u", l->type, count_addresses(l), l->part, want);
        }
}

TEST(classes_have_words) {
        for (int i = GPU_CLASS_NONE; i <= GPU_CLASS_SINGLE; i++)
                ASSERT_EQ(gpu_class_from_string(gpu_class_to_string((GpuClass)i)), i);
        ASSERT_EQ(gpu_class_from_string("pcie"), _GPU_CLASS_INVALID);
}

TEST(gpus_switches_and_efas_are_known_by_their_pci_ids) {
        static const struct { PciDevice device; bool gpu, nvswitch, efa; } cases[] = {
                { { .vendor = 0x10de, .device = 0x2330, .class = 0x030200 }, true, false, false },
                { { .vendor = 0x10de, .device = 0x1eb8, .class = 0x030000 }, true, false, false },
                { { .vendor = 0x10de, .device = 0x1af1, .class = 0x068000 }, false, true, false },
                { { .vendor = 0x10de, .device = 0x22ba, .class = 0x040300 }, false, false, false },     /* the audio of a GPU */
                { { .vendor = 0x10de, .device = 0x22b1, .class = 0x060400 }, false, false, false },     /* root port of Grace */
                { { .vendor = 0x1d0f, .device = 0x1111, .class = 0x030000 }, false, false, false },     /* VGA of EC2 */
                { { .vendor = 0x1d0f, .device = 0xefa4, .class = 0x020000 }, false, false, true },
                { { .vendor = 0x1d0f, .device = 0xec20, .class = 0x020000 }, false, false, false },
                { { .vendor = 0x10de, .device = 0xefa1, .class = 0x020000 }, false, false, false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ASSERT_EQ(pci_is_gpu(&cases[i].device), cases[i].gpu);
                ASSERT_EQ(pci_is_nvswitch(&cases[i].device), cases[i].nvswitch);
                ASSERT_EQ(pci_is_efa(&cases[i].device), cases[i].efa);
        }
}

/* ---- vital product data ---- */

static void write_vpd(const char *dir, const void *data, size_t size) {
        _cleanup_(root_freep) Root *root = NULL;
        ASSERT_OK(root_new(dir, &root));
        ASSERT_TRUE(root_replace(root, "/sys/bus/pci/devices/0000:73:00.0/vpd", data, size, 0644) >= 0);
}

TEST(vital_product_data_is_searched_for_a_word) {
        char dir[] = P_tmpdir "/test-gpu-XXXXXX", data[200] = "";
        _cleanup_(root_freep) Root *root = NULL;
        ASSERT_TRUE(mkdtemp(dir));
        ASSERT_OK(root_new(dir, &root));
        for (size_t at = 50; at < 80; at++) {   /* across the border of two pieces, too */
                memset(data, 0, sizeof data);
                memcpy(data + at, "SW_MNG", sizeof "SW_MNG");
                write_vpd(dir, data, sizeof data);
                ASSERT_EQ(pci_vpd_has(root, "0000:73:00.0", "SW_MNG", now_usec() + USEC_PER_SEC), 1);
                write_vpd(dir, data, at + 5);
                ASSERT_EQ(pci_vpd_has(root, "0000:73:00.0", "SW_MNG", now_usec() + USEC_PER_SEC), 0);
        }
        ASSERT_ERROR(pci_vpd_has(root, "0000:73:00.0", "SW_MNG", 0), ETIMEDOUT);
        write_vpd(dir, "", 0);
        ASSERT_ERROR(pci_vpd_has(root, "0000:73:00.0", "SW_MNG", UINT64_MAX), ENODATA);
        ASSERT_ERROR(pci_vpd_has(root, "0000:74:00.0", "SW_MNG", UINT64_MAX), ENOENT);
        ASSERT_EQ(root_remove(root, "/sys/bus/pci/devices/0000:73:00.0/vpd"), 1);
        static const char *const made[] = { "/sys/bus/pci/devices/0000:73:00.0", "/sys/bus/pci/devices", "/sys/bus/pci", "/sys/bus", "/sys", "" };
        for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
                _free_ char *path = xasprintf("%s%s", dir, made[i]);
                ASSERT_EQ(rmdir(path), 0);
        }
}

TEST_MAIN
