/* SPDX-License-Identifier: Apache-2.0
 * check-driver and check-versions over fixtures of the files of the NVIDIA driver. */
#include "apply/device.h"
#include "programs.h"

#define GPU0 "0000:53:00.0"
#define GPU1 "0000:64:00.0"
static char *gpus[] = { (char *)GPU0, (char *)GPU1, NULL };

static void gpu_bound(const Box *b, const char *address, const char *driver) {
        _free_ char *link = xasprintf("/sys/bus/pci/devices/%s/driver", address), *to = xasprintf("../../../bus/pci/drivers/%s", driver);
        box_link(b, link, to);
}

static void driver_init(Box *b) {
        box_init(b);
        b->action = (Action){ .id = (char *)"check-driver:nvidia", .device = { .seen = gpus, .count = 2 } };
        put(b, "/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root@host)  Tue Sep 23 09:55:41 UTC 2025\n"
                                              "GCC version:  gcc version 11.5.0 20240719 (Red Hat 11.5.0-5) (GCC)\n");
        put(b, "/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nImexChannelCount: 2048\nCreateImexChannel0: 0\nCoherentGPUMemoryMode: \"driver\"\nRegistryDwords: \"\"\n");
        put(b, "/proc/driver/nvidia/gpus/" GPU0 "/information", "Model: NVIDIA H100 80GB HBM3\n");
        put(b, "/proc/driver/nvidia/gpus/" GPU1 "/information", "Model: NVIDIA H100 80GB HBM3\n");
        gpu_bound(b, GPU0, "nvidia");
}
#define DRIVER(name) _cleanup_(box_done) Box name; driver_init(&name)

TEST(a_driver_that_runs_every_gpu) {
        DRIVER(b);
        gpu_bound(&b, GPU1, "nvidia");
        assert_works(&b, driver_work, 0);
        ASSERT_STREQ(json_string_value(json_object_get(b.work.found, "version")), "580.95.05");
}

TEST(a_missing_driver_is_an_error) {
        BOX(b);
        b.action = (Action){ .id = (char *)"check-driver:nvidia", .device.seen = gpus };
        assert_fails(&b, driver_work, CAUSE_DRIVER, "the NVIDIA driver is not loaded");
        put(&b, "/sys/module/nvidia/version", "\n");
        assert_fails(&b, driver_work, CAUSE_DRIVER, "the version of the NVIDIA driver cannot be read");
}

TEST(the_message_names_gpus_without_the_driver) {
        DRIVER(b);
        assert_fails(&b, driver_work, CAUSE_DRIVER, "missing: " GPU1 " (no driver);");
        gpu_bound(&b, GPU1, "vfio-pci");
        assert_fails(&b, driver_work, CAUSE_DRIVER, "missing: " GPU1 " (vfio-pci);");
}

TEST(the_message_names_a_bound_gpu_that_the_driver_does_not_list) {
        DRIVER(b);
        gpu_bound(&b, GPU1, "nvidia");
        _free_ char *known = box_path(&b, "/proc/driver/nvidia/gpus/" GPU1), *information = xasprintf("%s/information", known);
        ASSERT_EQ(unlink(information), 0);
        ASSERT_EQ(rmdir(known), 0);
        assert_fails(&b, driver_work, CAUSE_DRIVER, "missing: " GPU1 " (bound, but not listed in /proc/driver/nvidia/gpus);");
}

TEST(parameters_of_the_loaded_driver_are_compared) {
        DRIVER(b);
        gpu_bound(&b, GPU1, "nvidia");
        static const struct { const char *word, *says; } words[] = {
                { "ImexChannelCount=2048",         NULL },
                { "CoherentGPUMemoryMode=driver",  NULL },
                { "RegistryDwords=",               NULL },
                { "ImexChannelCount=204",          "loaded with ImexChannelCount=2048 (wanted: 204);" },
                { "CoherentGPUMemoryMode=numa",    "loaded with CoherentGPUMemoryMode=driver (wanted: numa);" },
                { "RegistryDwords=x",              "loaded with RegistryDwords=\"\" (wanted: x);" },
                { "ImexChannel=1",                 "does not know the parameter ImexChannel of " },
        };
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                char *list[] = { (char *)words[i].word, NULL };
                b.action.device.parameters = list;
                if (!words[i].says)
                        assert_works(&b, driver_work, 0);
                else
                        assert_fails(&b, driver_work, CAUSE_DRIVER_SETTING, words[i].says);
        }
        char *both[] = { (char *)"CreateImexChannel0=1", (char *)"ImexChannelCount=0", NULL };
        b.action.device.parameters = both;
        assert_fails(&b, driver_work, CAUSE_DRIVER_SETTING, "CreateImexChannel0=0 (wanted: 1), ImexChannelCount=2048 (wanted: 0); "
                     "it reads /etc/modprobe.d/zz-nodestrap-nvidia.conf");
        ASSERT_CONTAINS(b.work.text, "Reboot once");
}

/* A question mark behind a parameter: a choice of the planner, not of the user. */
TEST(an_unknown_parameter_of_the_planner_is_a_warning) {
        DRIVER(b);
        gpu_bound(&b, GPU1, "nvidia");
        char *words[] = { (char *)"CoherentGPUMemoryMode=driver?", (char *)"ImexChannel=2048?", (char *)"RegistryDwords=?", NULL };
        b.action.device.parameters = words;
        assert_works(&b, driver_work, 0);
        assert_warns(&b, "driver-parameter", "does not know the parameter ImexChannel of");
        words[0] = (char *)"CoherentGPUMemoryMode=numa?";
        assert_fails(&b, driver_work, CAUSE_DRIVER_SETTING, "loaded with CoherentGPUMemoryMode=driver (wanted: numa);");
}

/* Two question marks: the driver of AWS images may not need the parameter. */
TEST(a_wrong_value_of_an_optional_parameter_is_a_warning) {
        DRIVER(b);
        gpu_bound(&b, GPU1, "nvidia");
        char *words[] = { (char *)"ImexChannelCount=2048?", (char *)"GrdmaPciTopoCheckOverride=1??", NULL };
        b.action.device.parameters = words;
        assert_works(&b, driver_work, 0);
        assert_warns(&b, "driver-parameter", "does not know the parameter GrdmaPciTopoCheckOverride of");
        diag_done(&b.work.warnings);
        b.work.warnings = (Diag){};
        put(&b, "/proc/driver/nvidia/params", "ImexChannelCount: 2048\nGrdmaPciTopoCheckOverride: 0\n");
        assert_works(&b, driver_work, 0);
        assert_warns(&b, "driver-parameter", "the NVIDIA driver was loaded with GrdmaPciTopoCheckOverride=0 (wanted: 1); it reads ");
        put(&b, "/proc/driver/nvidia/params", "ImexChannelCount: 0\nGrdmaPciTopoCheckOverride: 0\n");
        assert_fails(&b, driver_work, CAUSE_DRIVER_SETTING, "the NVIDIA driver was loaded with ImexChannelCount=0 (wanted: 2048); ");
        diag_done(&b.work.warnings);
        b.work.warnings = (Diag){};
        put(&b, "/proc/driver/nvidia/params", "ImexChannelCount: 2048\nGrdmaPciTopoCheckOverride: 1\n");
        assert_works(&b, driver_work, 0);
        ASSERT_EQ(b.work.warnings.n, 0);
}

TEST(parameters_in_an_unknown_format) {
        static const char *const formats[] = {
                "", "{\"ImexChannelCount\": 2048}\n", "{\n  \"ImexChannelCount\": 2048\n}\n", "ImexChannelCount=2048\nGrdmaPciTopoCheckOverride=1\n", ":\n::\n", ": 1\n",
        };
        for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
                DRIVER(b);
                gpu_bound(&b, GPU1, "nvidia");
                char *words[] = { (char *)"ImexChannelCount=2048?", (char *)"GrdmaPciTopoCheckOverride=1??", NULL };
                put(&b, "/proc/driver/nvidia/params", formats[i]);
                b.action.device.parameters = words;
                assert_works(&b, driver_work, 0);
                assert_warns(&b, "driver-parameter", "/proc/driver/nvidia/params has an unknown format, so nodestrap cannot check the parameter ImexChannelCount, GrdmaPciTopoCheckOverride; ");
                words[1] = (char *)"GrdmaPciTopoCheckOverride=1";
                assert_fails(&b, driver_work, CAUSE_DRIVER_SETTING, "has an unknown format, so nodestrap cannot check the parameter GrdmaPciTopoCheckOverride; ");
        }
}

/* ---- versions ---- */

static char *programs[] = { (char *)"nv-fabricmanager", (char *)"nvidia-imex", NULL };

static void versions_init(Box *b) {
        driver_init(b);
        b->action.words = programs;
        box_program(b, "nv-fabricmanager", "[ \"$1\" = --version ] && printf '\\n\\tFabric Manager version is : 580.95.05\\n\\n'");
}
#define VERSIONS(name) _cleanup_(box_done) Box name; versions_init(&name)

TEST(programs_of_the_same_version_are_accepted) {
        VERSIONS(b);
        assert_works(&b, versions_work, 0);     /* its unit deals with a missing program */
        ASSERT_STREQ(json_string_value(json_object_get(b.work.found, "nv-fabricmanager")), "580.95.05");
        ASSERT_STREQ(json_string_value(json_object_get(b.work.found, "driver")), "580.95.05");
}

TEST(programs_of_another_version_are_an_error) {
        VERSIONS(b);
        put(&b, "/sys/module/nvidia/version", "580.65.06\n");
        box_program(&b, "nvidia-imex", "echo 'IMEX version is: 570.172.08'");
        assert_fails(&b, versions_work, CAUSE_VERSION, "the NVIDIA driver is 580.65.06, but nv-fabricmanager is 580.95.05 and nvidia-imex is 570.172.08:");
}

TEST(a_program_that_prints_no_version_is_a_warning) {
        VERSIONS(b);
        box_program(&b, "nvidia-imex", "echo 'IMEX of x86_64, 3.'");
        assert_works(&b, versions_work, 0);
        assert_warns(&b, "version-unknown", "nvidia-imex --version prints no version");
}

TEST(a_program_that_fails_at_its_version_is_a_warning) {
        VERSIONS(b);
        box_program(&b, "nvidia-imex", "echo 'usage: nvidia-imex' >&2; echo 'no library' >&2; exit 127");
        assert_works(&b, versions_work, 0);
        assert_warns(&b, "version-unknown", "the version of nvidia-imex is not known: nvidia-imex exited with status 127, last said \"no library\"");
        ASSERT_TRUE(!strchr(b.work.warnings.items[0].text, '\n'));
        put(&b, "/sys/module/nvidia/version", "580.65.06\n");   /* the other program has a known version */
        assert_fails(&b, versions_work, CAUSE_VERSION, "but nv-fabricmanager is 580.95.05:");
}

TEST(a_missing_subnet_manager_is_an_error) {
        VERSIONS(b);
        char *words[] = { (char *)"nv-fabricmanager", (char *)"nvlsm", NULL };
        b.action.words = words;
        assert_fails(&b, versions_work, CAUSE_FABRIC_MANAGER, "the image lacks /opt/nvidia/nvlsm/sbin/nvlsm and ibstat, so");
        ASSERT_OK(root_replace_volatile(b.root, "/opt/nvidia/nvlsm/sbin/nvlsm", "", 0, 0755));
        assert_fails(&b, versions_work, CAUSE_FABRIC_MANAGER, "the image lacks ibstat, so");
        ASSERT_OK(root_replace_volatile(b.root, "/usr/sbin/ibstat", "", 0, 0755));
        assert_works(&b, versions_work, 0);
}

TEST_MAIN
