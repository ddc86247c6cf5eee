/* SPDX-License-Identifier: Apache-2.0
 * The clocks of a GPU, and the message where the driver refuses them. */
#include "fake-nvml.h"

#define CLOCKS(name, gpus, wish, script)                                                       \
        MACHINE(name, script);                                                                 \
        name.action.with = xstrdup(wish);                                                      \
        name.action.device.count = gpus

static json_t *found(const Machine *m, size_t i) {
        return json_array_get(json_object_get(m->work.found, "gpus"), i);
}

static void ASSERT_CLOCKS(const Machine *m, size_t i, int memory, int graphics) {
        ASSERT_EQ(json_integer_value(json_object_get(found(m, i), "memory")), memory);
        ASSERT_EQ(json_integer_value(json_object_get(found(m, i), "graphics")), graphics);
}

TEST(max_clocks_are_set_once) {
        CLOCKS(m, 2, "max", "gpus 2\nclocks 1593,2619 1200,1980,345\n");
        ASSERT_EQ(clocks_work(&m.work), 1);
        ASSERT_CLOCKS(&m, 1, 2619, 1980);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetPersistenceMode", 1), 1);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetDefaultAutoBoostedClocksEnabled", 1), 1);
        machine_clear(&m);
        ASSERT_EQ(clocks_work(&m.work), 0);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetApplicationsClocks", 1), 1);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetPersistenceMode", 1), 1);
        ASSERT_CLOCKS(&m, 0, 2619, 1980);
        ASSERT_EQ(m.work.warnings.n, 0);
}

TEST(default_resets_max_clocks) {
        CLOCKS(m, 1, "max", "gpus 1\nclocks 1593,2619 1200,1980\n");
        ASSERT_EQ(clocks_work(&m.work), 1);
        machine_clear(&m);
        free(m.action.with);
        m.action.with = xstrdup("default");
        ASSERT_EQ(clocks_work(&m.work), 1);
        ASSERT_CLOCKS(&m, 0, 1593, 1200);
        machine_clear(&m);
        ASSERT_EQ(clocks_work(&m.work), 0);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetPersistenceMode", 0), 1);
}

TEST(features_that_a_model_lacks_are_unsupported) {
        CLOCKS(m, 1, "max", "gpus 1\nclocks none\nauto-boost none\n");
        ASSERT_EQ(clocks_work(&m.work), 1);     /* persistence is left */
        ASSERT_EQ(m.work.warnings.n, 0);
        ASSERT_EQ(json_array_size(json_object_get(found(&m, 0), "unsupported")), 2);
        ASSERT_TRUE(!json_object_get(found(&m, 0), "graphics"));
}

/* R580 and later, on Blackwell: the driver reports clocks and refuses to set them. */
TEST(clocks_that_a_driver_refuses_are_unsupported) {
        static const char *const wishes[] = { "max", "default" };
        for (size_t i = 0; i < ARRAY_SIZE(wishes); i++) {
                CLOCKS(m, 1, wishes[i], "gpus 1\nclocks deprecated\n");
                ASSERT_EQ(clocks_work(&m.work), i == 0);        /* persistence is left */
                ASSERT_EQ(m.work.warnings.n, 0);
                ASSERT_STREQ(json_string_value(json_array_get(json_object_get(found(&m, 0), "unsupported"), 0)), "application clocks");
                ASSERT_TRUE(!json_object_get(found(&m, 0), "graphics"));
        }
}

TEST(gpus_with_mig_keep_their_clocks) {
        CLOCKS(m, 2, "max", "gpus 2\n");
        write_file(m.state, "mig 1 1 1\npersistence 1 1\n");
        ASSERT_EQ(clocks_work(&m.work), 1);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetApplicationsClocks", 0), 1);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetApplicationsClocks", 1), 0);
        ASSERT_TRUE(json_is_true(json_object_get(found(&m, 1), "mig")));
}

TEST(a_refusal_fails_and_names_the_gpu) {
        CLOCKS(m, 2, "max", "gpus 2\nerror nvmlDeviceSetApplicationsClocks 4 0\n");
        ASSERT_FAILS(clocks_work(&m.work), CAUSE_NVML, "GPU 0 (0000:10:00.0): application clocks cannot be set: Insufficient Permissions (4)");
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetApplicationsClocks", 1), 1);       /* the others anyway */
        ASSERT_EQ(json_array_size(json_object_get(m.work.found, "gpus")), 2);
}

TEST(a_refusal_in_a_lenient_action_is_a_warning) {
        CLOCKS(m, 2, "max", "gpus 2\nerror nvmlDeviceSetApplicationsClocks 4 1\n");
        m.action.lenient = true;
        ASSERT_EQ(clocks_work(&m.work), 1);
        ASSERT_EQ(m.work.warnings.n, 1);
        ASSERT_STREQ(m.work.warnings.items[0].text, "GPU 1 (0000:20:00.0): application clocks cannot be set: Insufficient Permissions (4); the GPU keeps its setting");
}

TEST(no_driver_is_a_failure) {
        CLOCKS(m, 2, "max", "gpus 2\nerror nvmlInit 9\n");
        ASSERT_FAILS(clocks_work(&m.work), CAUSE_NVML, "nvmlInit_v2: Driver Not Loaded (9); dmesg");
        machine_says(&m, "gpus 1\n");
        ASSERT_FAILS(clocks_work(&m.work), CAUSE_NVML, "NVML sees 1 of 2 GPUs; dmesg");
        assert_only_warns(&m, ACTION_SET_CLOCKS, "clocks", "NVML sees 1 of 2 GPUs");
}
TEST_MAIN
