/* SPDX-License-Identifier: Apache-2.0
 * A part of a GPU needs a licence, which may be present, missing or impossible. */
#include "fake-nvml.h"

#define SCRIPT "gpu 0000:31:00.0\ngpu 0000:32:00.0\nmodel l4\n"

static void put(const Machine *m, const char *path, int mode) {
        _free_ char *full = xasprintf("%s%s", m->path, path), *directory = xstrdup(path);
        *strrchr(directory, '/') = 0;
        ASSERT_OK(root_make_dirs(m->root, *directory ? directory : "/", 0755));
        write_file(full, "#!/bin/sh\n");
        ASSERT_EQ(chmod(full, (mode_t)mode), 0);
}

/* license: a file that exists once there is a licence */
static void init(Machine *m, bool daemon) {
        machine_init(m, "");
        _free_ char *script = xasprintf(SCRIPT "license Workstation %s/license\n", m->path);
        machine_says(m, script);
        m->action.device.count = 2;
        m->work.deadline_usec = now_usec() + 500 * USEC_PER_MSEC;
        if (daemon)
                put(m, "/usr/bin/nvidia-gridd", 0755);
}
#define PARTS(name, daemon) _cleanup_(machine_done) Machine name; init(&name, daemon)

TEST(a_gpu_with_a_licence_passes) {
        PARTS(m, true);
        put(&m, "/license", 0644);
        ASSERT_EQ(license_work(&m.work), 0);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceGetGridLicensableFeatures", 1), 1);
}

TEST(a_licence_that_never_comes_is_a_failure) {
        PARTS(m, true);
        ASSERT_FAILS(license_work(&m.work), CAUSE_LICENSE,
                     "GPU 0 (0000:31:00.0) is a fractional GPU and has no licence for NVIDIA Workstation; without a licence, CUDA fails after some time");
        ASSERT_CONTAINS(m.work.text, "nvidia-gridd must get the licence, but does not run; journalctl");
        put(&m, "/run/nvidia-gridd/pid", 0644);
        m.work.deadline_usec = now_usec();
        ASSERT_FAILS(license_work(&m.work), CAUSE_LICENSE, "nvidia-gridd must get the licence; journalctl");
        m.action.lenient = true;
        machine_clear(&m);
        ASSERT_EQ(license_work(&m.work), 0);
        ASSERT_STREQ(m.work.warnings.items[0].code, "no-license");
}

TEST(a_licence_that_cannot_come_fails_at_once) {
        PARTS(m, false);
        m.work.deadline_usec = now_usec() + 600 * USEC_PER_SEC;       /* the alarm of the test is earlier */
        ASSERT_FAILS(license_work(&m.work), CAUSE_LICENSE, "this image lacks nvidia-gridd");
        put(&m, "/usr/bin/nvidia-gridd", 0755);
        machine_says(&m, SCRIPT);
        ASSERT_FAILS(license_work(&m.work), CAUSE_LICENSE, "its driver does not support licensing");
        machine_says(&m, SCRIPT "error nvmlDeviceGetGridLicensableFeatures 3 1\nlicense Workstation /dev/null\n");
        ASSERT_FAILS(license_work(&m.work), CAUSE_LICENSE, "the licence of GPU 1 (0000:32:00.0) cannot be read: Not Supported (3)");
}

TEST(a_passing_error_is_retried_until_the_deadline) {
        PARTS(m, true);
        m.work.deadline_usec = now_usec() + 100 * USEC_PER_SEC;        /* a licence ends the step at once */
        machine_says(&m, SCRIPT "error nvmlDeviceGetGridLicensableFeatures 999 1 2x\nlicense Workstation /dev/null\n");
        ASSERT_TRUE(license_work(&m.work) > 0);
        m.work.deadline_usec = now_usec();
        machine_says(&m, SCRIPT "error nvmlDeviceGetGridLicensableFeatures 999 1\nlicense Workstation /dev/null\n");
        ASSERT_FAILS(license_work(&m.work), CAUSE_LICENSE, "cannot be read: Unknown Error (999)");
}

TEST(a_driver_that_does_not_answer_is_a_failure) {
        PARTS(m, true);
        machine_says(&m, SCRIPT "error nvmlInit 9\n");
        ASSERT_FAILS(license_work(&m.work), CAUSE_NVML, "nvmlInit_v2");
}

TEST_MAIN
