/* SPDX-License-Identifier: Apache-2.0
 * Answers of the library one by one; its versions and its errors. */
#include "nvidia/nvml.h"

#include "fake-nvml.h"

static NvmlTrouble without;             /* from before the fake library is there */
__attribute__((constructor)) static void open_without(void) {
        NvmlGpus none = {};
        if (nvml_open(&none, &without) == 0)
                nvml_close(&none);
}

TEST(a_missing_library_is_an_error) {
        if (!without.text)
                SKIP("this machine has NVIDIA's library");
        ASSERT_EQ(without.code, 0);
        ASSERT_CONTAINS(without.text, "libnvidia-ml.so.1");
}

#define OPEN(name) NvmlGpus name = {}; NvmlTrouble trouble = {}; ASSERT_OK(nvml_open(&name, &trouble))

TEST(gpus_are_sorted_by_address) {
        MACHINE(m, "gpu 0000:b9:00.0\ngpu 0000:53:00.0\ngpu 0001:01:1f.0\n");
        OPEN(g);
        ASSERT_EQ(g.n, 3);
        ASSERT_STREQ(g.items[0].address, "0000:53:00.0");
        ASSERT_STREQ(g.items[1].address, "0000:b9:00.0");
        ASSERT_STREQ(g.items[2].address, "0001:01:1f.0");
        nvml_close(&g);
        ASSERT_EQ(calls_of(&m, "nvmlShutdown", -1), 1);
}

static void fails_to_open(Machine *m, const char *script, int code, const char *text) {
        NvmlGpus g = {};
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        machine_says(m, script);
        ASSERT_ERROR(nvml_open(&g, &trouble), EIO);
        ASSERT_EQ(trouble.code, code);
        ASSERT_STREQ(trouble.text, text);
}

TEST(errors_while_opening_have_code_and_call) {
        MACHINE(m, "gpus 2\n");
        fails_to_open(&m, "gpus 2\nerror nvmlInit 18\n", NVML_VERSION_MISMATCH, "nvmlInit_v2: Driver/library version mismatch (18)");
        fails_to_open(&m, "gpus 2\nerror nvmlDeviceGetCount 999\n", NVML_UNKNOWN, "nvmlDeviceGetCount_v2: Unknown Error (999)");
        fails_to_open(&m, "gpus 2\nerror nvmlDeviceGetHandleByIndex 15 1\n", NVML_GPU_IS_LOST, "nvmlDeviceGetHandleByIndex_v2 of GPU 1 of 2: GPU is lost (15)");
        fails_to_open(&m, "gpus 2\nerror nvmlDeviceGetPciInfo 15 0\n", NVML_GPU_IS_LOST, "nvmlDeviceGetPciInfo_v3 of GPU 0 of 2: GPU is lost (15)");
        ASSERT_TRUE(nvml_is_final(NVML_GPU_IS_LOST) && nvml_is_final(NVML_VERSION_MISMATCH));
        ASSERT_TRUE(!nvml_is_final(NVML_DRIVER_NOT_LOADED) && !nvml_is_final(NVML_OK) && !nvml_is_final(NVML_UNKNOWN));
        machine_says(&m, "gpus 2\n");
        OPEN(g);
        ASSERT_EQ(calls_of(&m, "nvmlShutdown", -1), 3);         /* one for each initialised library */
        nvml_close(&g);
}

static void fabric_is(const char *script, const char *uuid, unsigned clique, const char *fault) {
        MACHINE(m, script);
        OPEN(g);
        NvmlFabric f = {};
        ASSERT_EQ(nvml_fabric(g.items[0].device, &f), NVML_OK);
        ASSERT_STREQ(nvml_fabric_state_to_string(f.state), "Completed");
        ASSERT_EQ(f.status, NVML_TIMEOUT);
        ASSERT_EQ(memcmp(f.uuid, uuid, 16), 0);
        ASSERT_EQ(f.clique, clique);
        ASSERT_STREQ(f.misconfigured ?: "-", fault);
        nvml_close(&g);
}

#define UUID "7b968a6dc8aa45e19e07e1e51be99c31"
#define UUID_BYTES "\x7b\x96\x8a\x6d\xc8\xaa\x45\xe1\x9e\x07\xe1\xe5\x1b\xe9\x9c\x31"

TEST(fabric_info_is_read_in_each_version) {
        static const char machine[] = "gpus 1\nfabric all completed 10\ncluster " UUID " 7\nhealth all 0x400\n";
        _free_ char *second = xasprintf("%serror nvmlDeviceGetGpuFabricInfoV3 25\n", machine),
                    *first = xasprintf("%serror nvmlDeviceGetGpuFabricInfoV 13\n", machine);
        fabric_is(machine, UUID_BYTES, 7, "no partition");
        fabric_is(second, UUID_BYTES, 7, "no partition");
        fabric_is(first, UUID_BYTES, 7, "-");
}

TEST(fabric_states_and_errors_are_read) {
        MACHINE(m, "gpus 1\nfabric all not-started for 1x then in-progress for 1x then not-supported\n");
        OPEN(g);
        static const char *const names[] = { "Not Started", "In Progress", "Not Supported" };
        NvmlFabric f = {};
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                ASSERT_EQ(nvml_fabric(g.items[0].device, &f), NVML_OK);
                ASSERT_STREQ(nvml_fabric_state_to_string(f.state), names[i]);
        }
        machine_says(&m, "gpus 1\nerror nvmlDeviceGetGpuFabricInfoV 15\n");
        ASSERT_EQ(nvml_fabric(g.items[0].device, &f), NVML_GPU_IS_LOST);
        machine_says(&m, "gpus 1\nerror nvmlDeviceGetGpuFabricInfoV 13\nerror nvmlDeviceGetGpuFabricInfo 13\n");
        ASSERT_EQ(nvml_fabric(g.items[0].device, &f), NVML_FUNCTION_NOT_FOUND);
        ASSERT_TRUE(!nvml_fabric_state_to_string(9));
        nvml_close(&g);
}

TEST(mig_instances_are_made_and_destroyed) {
        MACHINE(m, "gpus 1\n");
        OPEN(g);
        NvmlDevice d = g.items[0].device;
        bool current = true, pending = true, whole = false;
        int activation = -1;
        ASSERT_EQ(nvml_mig_mode(d, &current, &pending), NVML_OK);
        ASSERT_TRUE(!current && !pending);
        ASSERT_EQ(nvml_mig_set_mode(d, true, &activation), NVML_OK);
        ASSERT_EQ(activation, NVML_OK);
        ASSERT_EQ(nvml_mig_mode(d, &current, &pending), NVML_OK);
        ASSERT_TRUE(current && pending);

        _free_ NvmlProfile *profiles = NULL;
        size_t n = 0;
        ASSERT_EQ(nvml_mig_profiles(d, &profiles, &n), NVML_OK);
        ASSERT_EQ(n, 7);
        ASSERT_STREQ(profiles[0].name, "1g.10gb");
        ASSERT_EQ(profiles[0].id, 19);
        ASSERT_STREQ(profiles[2].name, "3g.40gb");

        ASSERT_EQ(nvml_mig_create(d, &profiles[2], NULL), NVML_OK);
        ASSERT_EQ(nvml_mig_create(d, &profiles[0], &(NvmlInstance){ .start = 4, .size = 1 }), NVML_OK);
        ASSERT_EQ(nvml_mig_create(d, &profiles[2], NULL), NVML_INSUFFICIENT_RESOURCES);
        _cleanup_(nvml_instances_done) NvmlInstances i = {};
        ASSERT_EQ(nvml_mig_instances(d, profiles, n, &i), NVML_OK);
        ASSERT_EQ(i.n, 2);
        ASSERT_EQ(i.items[0].profile, 9);
        ASSERT_EQ(i.items[1].start, 4);
        ASSERT_EQ(nvml_mig_is_whole(&i.items[0], &profiles[2], &whole), NVML_OK);
        ASSERT_TRUE(whole);
        ASSERT_EQ(nvml_mig_destroy(&i.items[0]), NVML_OK);
        ASSERT_EQ(nvml_mig_destroy(&i.items[1]), NVML_OK);
        nvml_instances_done(&i);
        ASSERT_EQ(nvml_mig_instances(d, profiles, n, &i), NVML_OK);
        ASSERT_EQ(i.n, 0);
        nvml_close(&g);
}

TEST(mig_leaves_no_incomplete_instance) {
        MACHINE(m, "gpus 1\nerror nvmlGpuInstanceCreateComputeInstance 999\n");
        OPEN(g);
        NvmlDevice d = g.items[0].device;
        int activation = -1;
        _free_ NvmlProfile *profiles = NULL;
        _cleanup_(nvml_instances_done) NvmlInstances i = {};
        size_t n = 0;
        ASSERT_EQ(nvml_mig_set_mode(d, true, &activation), NVML_OK);
        ASSERT_EQ(nvml_mig_profiles(d, &profiles, &n), NVML_OK);
        ASSERT_EQ(nvml_mig_create(d, &profiles[0], NULL), NVML_UNKNOWN);
        ASSERT_EQ(nvml_mig_instances(d, profiles, n, &i), NVML_OK);
        ASSERT_EQ(i.n, 0);
        nvml_close(&g);
}

/* The name that the library gives profile 19, and the name that nodestrap makes of it. */
static void profile_is(const char *said, const char *wanted) {
        _free_ char *script = xasprintf("gpus 1\nprofile 19 %s\n", said);
        MACHINE(m, script);
        OPEN(g);
        _free_ NvmlProfile *profiles = NULL;
        size_t n = 0;
        ASSERT_EQ(nvml_mig_profiles(g.items[0].device, &profiles, &n), NVML_OK);
        ASSERT_EQ(n, 7);
        ASSERT_EQ(profiles[0].id, 19);
        ASSERT_STREQ(profiles[0].name, wanted);
        nvml_close(&g);
}

#define LETTERS_45 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrs"

/* A full buffer has no NUL at its end, and the bytes after it are not part of the name. The build with
 * sanitizers detects a read there. */
TEST(a_profile_name_may_fill_its_buffer) {
        profile_is("MIG 1g.10gb+me", "1g.10gb+me");
        profile_is("MIG " LETTERS_45 LETTERS_45 "1", LETTERS_45 LETTERS_45 "1");
        profile_is("MIG " LETTERS_45 LETTERS_45 "12", LETTERS_45 LETTERS_45 "12");      /* 96 bytes */
        profile_is(LETTERS_45 LETTERS_45 "123456", LETTERS_45 LETTERS_45 "12345");
}

TEST(mig_mode_is_not_supported_on_an_l4) {
        MACHINE(m, "model l4\ngpus 1\n");
        OPEN(g);
        bool current = false, pending = false;
        ASSERT_EQ(nvml_mig_mode(g.items[0].device, &current, &pending), NVML_NOT_SUPPORTED);
        nvml_close(&g);
}

TEST(clocks_persistence_and_boost_are_read_and_set) {
        MACHINE(m, "gpus 1\nclocks 1593,2619 1200,1980,345\n");
        OPEN(g);
        NvmlDevice d = g.items[0].device;
        unsigned memory = 0, graphics = 0;
        bool on = true, by_default = false;
        ASSERT_EQ(nvml_highest_clocks(d, &memory, &graphics), NVML_OK);
        ASSERT_EQ(memory, 2619);
        ASSERT_EQ(graphics, 1980);
        ASSERT_EQ(nvml_set_application_clocks(d, memory, graphics), NVML_OK);
        ASSERT_EQ(nvml_application_clocks(d, &memory, &graphics), NVML_OK);
        ASSERT_EQ(memory, 2619);
        ASSERT_EQ(graphics, 1980);
        ASSERT_EQ(nvml_reset_application_clocks(d), NVML_OK);
        ASSERT_EQ(nvml_application_clocks(d, &memory, &graphics), NVML_OK);
        ASSERT_EQ(memory, 1593);
        ASSERT_EQ(nvml_default_clocks(d, &memory, &graphics), NVML_OK);
        ASSERT_EQ(graphics, 1200);
        ASSERT_EQ(nvml_persistence(d, &on), NVML_OK);
        ASSERT_TRUE(!on);
        ASSERT_EQ(nvml_set_persistence(d, true), NVML_OK);
        ASSERT_EQ(nvml_persistence(d, &on), NVML_OK);
        ASSERT_TRUE(on);
        ASSERT_EQ(nvml_auto_boost(d, &on, &by_default), NVML_OK);
        ASSERT_TRUE(on && by_default);
        ASSERT_EQ(nvml_set_auto_boost(d, false), NVML_OK);
        ASSERT_EQ(nvml_auto_boost(d, &on, &by_default), NVML_OK);
        ASSERT_TRUE(!on && !by_default);
        nvml_close(&g);
}
TEST_MAIN
