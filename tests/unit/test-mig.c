/* SPDX-License-Identifier: Apache-2.0
 * Dividing GPUs: from the present layout to the wanted one, all or nothing, with at most one reboot. */
#include "fake-nvml.h"

#include <sys/eventfd.h>

#define LEDGER "/var/lib/nodestrap/mig-reboot"

/* Profiles of a GPU, separated by commas; "" turns MIG off. */
static void want(Machine *m, unsigned gpu, const char *profiles) {
        size_t n = m->action.device.n_layouts++;
        m->action.device.layouts = xrealloc(m->action.device.layouts, n + 1, sizeof *m->action.device.layouts);
        m->action.device.layouts[n] = (MigLayout){ .gpu = gpu };
        _free_ char *copy = xstrdup(profiles);
        for (char *save = NULL, *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
                strv_add(&m->action.device.layouts[n].profiles, word);
}

#define MIG(name, gpus, script)                                                                \
        MACHINE(name, script);                                                                 \
        name.action.type = ACTION_PARTITION_GPUS;                                       \
        name.action.id = (char *)"partition-gpus:mig";                                  \
        name.action.class = GPU_CLASS_NVSWITCH;                                         \
        name.action.device.count = gpus

static char *has(const Machine *m, size_t i) {
        _strv_ char **names = NULL;
        json_t *gpu = json_array_get(json_object_get(m->work.found, "gpus"), i), *name;
        size_t k;
        json_array_foreach(json_object_get(gpu, "profiles"), k, name)
                strv_add(&names, json_string_value(name));
        return json_is_true(json_object_get(gpu, "mig")) ? strv_join(names, ",") : xstrdup("off");
}
#define ASSERT_HAS(m, i, names) ({ _free_ char *_has = has(m, i); ASSERT_STREQ(_has, names); })

static unsigned instances(const Machine *m, const char *start) {
        _free_ char *text = NULL;
        unsigned n = 0;
        ASSERT_OK(root_read(m->root, "/script.state", 1 << 20, &text, NULL));
        for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                n += startswith(line, start);
        return n;
}

static void program(const Machine *m, const char *name, const char *script) {
        _free_ char *path = xasprintf("/bin/%s", name), *text = xasprintf("#!/bin/sh\necho \"%s $*\" >>%s/ran\n%s\n", name, m->path, script);
        ASSERT_OK(root_replace(m->root, path, text, strlen(text), 0755));
        _free_ char *search = xasprintf("%s/bin:/usr/bin:/bin", m->path);
        setenv("PATH", search, 1);
}

/* The commands that ran; queries (systemctl show) do not count. */
static void ran(const Machine *m, const char *wanted) {
        _free_ char *text = NULL;
        _cleanup_(text_done) Text t = {};
        if (root_read(m->root, "/ran", 1 << 20, &text, NULL) < 0)
                text = xstrdup("");
        char *rest = text;
        for (char *line = strsep(&rest, "\n"); line && rest; line = strsep(&rest, "\n"))
                if (!startswith(line, "systemctl show "))
                        text_add(&t, "%s\n", line);
        ASSERT_STREQ(t.data ?: "", wanted);
        ASSERT_OK(root_remove(m->root, "/ran"));
}

static void boot(const Machine *m, const char *id) {
        ASSERT_OK(root_replace(m->root, "/proc/sys/kernel/random/boot_id", id, strlen(id), 0644));
}

#define RESET "sed -Ei 's/^(mig [0-9]+) [01] ([01])$/\\1 \\2 \\2/' $FAKE_NVML.state"

TEST(gpus_are_divided_once) {
        MIG(m, 2, "gpus 2\n");
        want(&m, 0, "1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb");
        want(&m, 1, "9,3g.40gb");
        ASSERT_EQ(partition_work(&m.work), 1);
        ASSERT_HAS(&m, 0, "1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb");
        ASSERT_HAS(&m, 1, "3g.40gb,3g.40gb");
        machine_clear(&m);
        ASSERT_EQ(partition_work(&m.work), 0);
        ASSERT_HAS(&m, 1, "3g.40gb,3g.40gb");
        ASSERT_EQ(calls_of(&m, "nvmlDeviceCreateGpuInstance", 0), 7);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetMigMode", 0), 1);
}

TEST(only_gpus_that_differ_are_changed) {
        MIG(m, 3, "gpus 3\n");
        want(&m, 0, "3g.40gb,3g.40gb");
        want(&m, 2, "");
        write_file(m.state, "mig 0 1 1\ninstance 0 1 9 0 4 1\ninstance 0 2 9 4 4 1\nmig 1 1 1\ninstance 1 1 0 0 8 1\nmig 2 1 1\ninstance 2 1 19 3 1 1\n");
        ASSERT_EQ(partition_work(&m.work), 1);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceCreateGpuInstance", 0), 0);
        ASSERT_EQ(instances(&m, "instance 1 1 0 0 8 1"), 1);    /* no layout names GPU 1 */
        ASSERT_HAS(&m, 1, "off");
        ASSERT_EQ(instances(&m, "mig 2 0 0"), 1);
}

TEST(order_does_not_matter_but_incomplete_instances_do) {
        MIG(m, 1, "gpus 1\n");
        want(&m, 0, "1g.10gb,3g.40gb");
        write_file(m.state, "mig 0 1 1\ninstance 0 1 9 0 4 1\ninstance 0 2 19 6 1 1\n");
        ASSERT_EQ(partition_work(&m.work), 0);
        machine_clear(&m);
        write_file(m.state, "mig 0 1 1\ninstance 0 1 9 0 4 1\ninstance 0 2 19 6 1 0\n");
        ASSERT_EQ(partition_work(&m.work), 1);
        ASSERT_EQ(instances(&m, "instance 0 1 19 6 1 1"), 1);
}

/* The documented trap: small instances first leave no room for the large one. */
TEST(instances_are_made_in_an_order_that_fits) {
        MIG(m, 1, "gpus 1\n");
        want(&m, 0, "1g.10gb,2g.20gb,3g.40gb");
        ASSERT_EQ(partition_work(&m.work), 1);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceCreateGpuInstanceWithPlacement", 0), 3);
        ASSERT_EQ(instances(&m, "instance 0 "), 3);
        ASSERT_EQ(instances(&m, "instance 0 3 9 4 4 1"), 1);
}

TEST(unknown_profiles_and_layouts_that_do_not_fit_are_failures) {
        MIG(m, 2, "gpus 2\n");
        want(&m, 0, "7g.80gb");
        want(&m, 1, "4g.40gb,4g.40gb");
        write_file(m.state, "mig 0 1 1\ninstance 0 1 14 2 2 1\n");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "GPU 1 (0000:20:00.0): 4g.40gb, 4g.40gb do not fit on one GPU in any order; ");
        ASSERT_CONTAINS(m.work.text, "; every GPU has its earlier MIG state again");
        ASSERT_EQ(instances(&m, "instance 0 "), 1);
        ASSERT_EQ(instances(&m, "instance 0 1 14 2 2 1"), 1);   /* in its old place */
        ASSERT_EQ(instances(&m, "mig 1 0 0"), 1);
        free(m.action.device.layouts[1].profiles[0]);
        m.action.device.layouts[1].profiles[0] = xstrdup("4g.41gb");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "GPU 1 (0000:20:00.0) has no MIG profile 4g.41gb; it has 1g.10gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb, "
                     "1g.10gb+me, 1g.20gb");
        ASSERT_EQ(instances(&m, "instance 0 1 14 2 2 1"), 1);
}

TEST(a_gpu_that_cannot_be_divided_is_a_failure) {
        MIG(m, 1, "model l4\ngpus 1\n");
        want(&m, 0, "");
        ASSERT_EQ(partition_work(&m.work), 0);
        strv_add(&m.action.device.layouts[0].profiles, "1g.10gb");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "GPU 0 (0000:10:00.0) cannot be partitioned");
        m.action.device.layouts[0].gpu = 4;
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "spec.accelerator.nvidia.mig names GPU 4, but there are only 1, numbered from 0");
        machine_says(&m, "gpus 1\nerror nvmlInit 9\n");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_NVML, "nvmlInit_v2: Driver Not Loaded (9)");
}

TEST(a_missing_gpu_fails_before_any_change) {
        MIG(m, 3, "gpu 0000:10:00.0\ngpu 0000:30:00.0\n");
        for (unsigned i = 1; i <= 3; i++)
                strv_push(&m.action.device.seen, xasprintf("0000:%u0:00.0", i));
        want(&m, 1, "1g.10gb");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_NVML, "NVML sees 2 of 3 GPUs: not 0000:20:00.0");
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetMigMode", 1), 0);
}

TEST(a_failure_in_the_middle_restores_the_earlier_state) {
        MIG(m, 2, "gpus 2\nerror nvmlDeviceCreateGpuInstance 999 1\n");
        want(&m, 0, "7g.80gb");
        want(&m, 1, "7g.80gb");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "GPU 1 (0000:20:00.0): a 7g.80gb instance cannot be created: Unknown Error (999); every GPU has its earlier MIG state again");
        ASSERT_EQ(instances(&m, "mig 0 0 0"), 1);
        ASSERT_EQ(instances(&m, "mig 1 0 0"), 1);
        ASSERT_EQ(instances(&m, "instance "), 0);
        machine_says(&m, "gpus 2\nerror nvmlDeviceCreateGpuInstance 999 1\nerror nvmlDeviceCreateGpuInstanceWithPlacement 999 0\n");
        write_file(m.state, "mig 0 1 1\ninstance 0 1 14 2 2 1\n");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "; the earlier MIG state could not be restored on GPU 0 (0000:10:00.0)");
}

TEST(an_instance_in_use_is_a_failure_and_nothing_changes) {
        MIG(m, 2, "gpus 2\nerror nvmlComputeInstanceDestroy 19 1\n");
        want(&m, 0, "7g.80gb");
        want(&m, 1, "7g.80gb");
        write_file(m.state, "mig 0 1 1\ninstance 0 1 14 2 2 1\nmig 1 1 1\ninstance 1 1 14 0 2 1\ninstance 1 2 9 4 4 1\n");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "GPU 1 (0000:20:00.0): the MIG instance 2g.20gb cannot be destroyed: In use by another client (19)");
        ASSERT_CONTAINS(m.work.text, "; every GPU has its earlier MIG state again");
        ASSERT_EQ(instances(&m, "instance 0 1 14 2 2 1"), 1);
        ASSERT_EQ(instances(&m, "instance 0 "), 1);
        ASSERT_EQ(instances(&m, "instance 1 1 14 0 2 1"), 1);
        ASSERT_EQ(instances(&m, "instance 1 2 9 4 4 1"), 1);
}

TEST(cdi_warns_of_a_gpu_in_mig_mode_without_instances) {
        MIG(m, 2, "model a100-40\ngpus 2\n");
        m.action.target = (char *)"/run/cdi/nvidia.yaml";
        program(&m, "nvidia-ctk", "echo 'no MIG devices' >&2; exit 1");
        write_file(m.state, "mig 0 1 1\ninstance 0 1 14 2 2 1\nmig 1 1 1\n");
        ASSERT_EQ(cdi_work(&m.work), 0);
        ASSERT_EQ(m.work.warnings.n, 1);
        ASSERT_CONTAINS(m.work.warnings.items[0].text, "GPU 1 (0000:20:00.0) is in MIG mode without an instance");
        write_file(m.state, "mig 0 1 1\ninstance 0 1 14 2 2 1\nmig 1 0 0\n");
        ASSERT_FAILS(cdi_work(&m.work), CAUSE_CDI, "nvidia-ctk exited with status 1, last said \"no MIG devices\"");
}

TEST(a_gpu_in_use_for_a_moment_is_retried) {
        MIG(m, 1, "gpus 1\nmig in-use 1x\n");
        want(&m, 0, "7g.80gb");
        ASSERT_EQ(partition_work(&m.work), 1);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceSetMigMode", 0), 2);
}

TEST(a_gpu_that_stays_in_use_is_a_failure) {
        MIG(m, 1, "gpus 1\nmig in-use\n");
        want(&m, 0, "7g.80gb");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "GPU 0 (0000:10:00.0): its MIG mode cannot be set: In use by another client (19); nvidia-smi and fuser");
}

TEST(ampere_gpus_are_reset_for_mig_mode) {
        MIG(m, 2, "model a100-40\ngpus 2\n");
        want(&m, 0, "3g.20gb,3g.20gb");
        program(&m, "nvidia-smi", "grep -q '^calls nvmlShutdown -1 1$' $FAKE_NVML.state || exit 3\n" RESET);   /* fails unless nodestrap has closed NVML */
        program(&m, "systemctl", "");
        ASSERT_EQ(partition_work(&m.work), 1);
        ASSERT_HAS(&m, 0, "3g.20gb,3g.20gb");
        ran(&m, "nvidia-smi --gpu-reset\n");
        ASSERT_TRUE(!m.work.text);
        m.action.class = GPU_CLASS_SINGLE;
        program(&m, "nvidia-smi", RESET);
        strv_free(TAKE_PTR(m.action.device.layouts[0].profiles));
        machine_clear(&m);
        ASSERT_EQ(partition_work(&m.work), 1);
        ran(&m, "nvidia-smi --gpu-reset -i 0000:10:00.0\n");
        ASSERT_HAS(&m, 0, "off");
}

/* A return to the earlier mode would need one more reset, and the configuration does not want that mode. */
TEST(ampere_keeps_the_new_mig_mode_after_a_failure) {
        MIG(m, 1, "model a100-40\ngpus 1\nerror nvmlDeviceCreateGpuInstance 999\n");
        want(&m, 0, "7g.40gb");
        program(&m, "nvidia-smi", RESET);
        program(&m, "systemctl", "");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG, "GPU 0 (0000:10:00.0): a 7g.40gb instance cannot be created: Unknown Error (999)");
        ASSERT_TRUE(!strstr(m.work.text, "before"));
        ASSERT_EQ(instances(&m, "mig 0 1 1"), 1);
}

TEST(ampere_reboots_once_if_the_reset_fails) {
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "7g.40gb");
        program(&m, "nvidia-smi", "echo 'not supported here' >&2; exit 3");
        program(&m, "systemctl", "");
        boot(&m, "first\n");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "MIG mode of GPU 0 (0000:10:00.0) takes effect after a reboot (the GPUs cannot be reset: nvidia-smi exited "
                     "with status 3, last said \"not supported here\"); this machine reboots now, once, and then continues");
        ran(&m, "nvidia-smi --gpu-reset\nsystemctl --no-block reboot\n");
        ASSERT_EQ(instances(&m, "mig 0 0 1"), 1);               /* the mode stays pending */

        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "which nodestrap has already requested");
        ran(&m, "nvidia-smi --gpu-reset\n");
        ASSERT_EQ(instances(&m, "mig 0 0 1"), 1);

        boot(&m, "second\n");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "is still pending after a reboot (now: the GPUs cannot be reset: nvidia-smi exited with status 3, last said "
                     "\"not supported here\"); nodestrap does not reboot again. ");
        ASSERT_EQ(instances(&m, "mig 0 0 1"), 1);
        ran(&m, "nvidia-smi --gpu-reset\n");
        ASSERT_EQ(root_exists(m.root, LEDGER), 1);

        write_file(m.state, "mig 0 1 1\n");                     /* the reboot helped */
        machine_clear(&m);
        ASSERT_EQ(partition_work(&m.work), 1);
        ASSERT_HAS(&m, 0, "7g.40gb");
        ASSERT_EQ(root_exists(m.root, LEDGER), 0);
        ran(&m, "");
}

TEST(a_node_with_pods_is_not_rebooted) {
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "7g.40gb");
        program(&m, "nvidia-smi", "echo 'not supported'; exit 3");
        program(&m, "systemctl", "");
        boot(&m, "first\n");
        ASSERT_OK(root_replace(m.root, "/run/nodestrap/kubelet-may-start", "", 0, 0644));
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "MIG mode of GPU 0 (0000:10:00.0) is set and takes effect after a reboot. kubelet may already be running, so nodestrap does not reboot: "
                     "drain the node and reboot it");
        ran(&m, "");
        ASSERT_EQ(root_exists(m.root, LEDGER), 0);
        ASSERT_EQ(instances(&m, "mig 0 0 1"), 1);               /* so that reboot is enough */
        ASSERT_OK(root_remove(m.root, "/run/nodestrap/kubelet-may-start"));
        machine_clear(&m);
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "this machine reboots now, once, and then continues");
        ran(&m, "nvidia-smi --gpu-reset\nsystemctl --no-block reboot\n");
}

TEST(a_cancelled_step_does_not_reboot) {  /* the loop has reported the step as late, and its thread continues */
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "7g.40gb");
        program(&m, "nvidia-smi", "exec sleep 60");
        program(&m, "systemctl", "");
        boot(&m, "first\n");
        m.work.cancel_fd = eventfd(1, EFD_CLOEXEC);
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "the step ended before MIG mode of GPU 0 (0000:10:00.0) took effect");
        ASSERT_EQ(root_exists(m.root, LEDGER), 0);
        ASSERT_EQ(instances(&m, "mig 0 0 1"), 1);
        close(m.work.cancel_fd);
}

TEST(a_changed_layout_may_reboot_again) {
        MIG(m, 1, "model a100-40\ngpus 1\nmig stuck\n");
        want(&m, 0, "7g.40gb");
        program(&m, "nvidia-smi", "");
        program(&m, "systemctl", "case $1 in --no-block) exit 1;; esac");
        boot(&m, "second\n");
        ASSERT_OK(root_replace(m.root, LEDGER, "first\n-\n0 1g.5gb\n", 17, 0644));
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "MIG mode takes effect after a reboot, which systemd did not start: systemctl exited with status 1");
        ran(&m, "nvidia-smi --gpu-reset\nsystemctl --no-block reboot\n");
        ASSERT_EQ(instances(&m, "mig 0 0 1"), 1);
        ASSERT_EQ(root_exists(m.root, LEDGER), 0);      /* the reboot failed, so another one is allowed */
}

TEST(another_instance_of_the_same_image_may_reboot) {
        static const char tag[] = "/sys/devices/virtual/dmi/id/board_asset_tag";
        MIG(m, 1, "model a100-40\ngpus 1\nmig stuck\n");
        want(&m, 0, "7g.40gb");
        program(&m, "nvidia-smi", "");
        program(&m, "systemctl", "");
        boot(&m, "first\n");
        ASSERT_OK(root_replace(m.root, tag, "i-0aaa\n", 7, 0644));
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "this machine reboots now, once");
        boot(&m, "second\n");
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "nodestrap does not reboot again");
        ASSERT_OK(root_replace(m.root, tag, "i-0bbb\n", 7, 0644));
        ASSERT_FAILS(partition_work(&m.work), CAUSE_MIG_REBOOT, "this machine reboots now, once");
}

/* ---- the mode as a step of its own ---- */

/* The output of `systemctl show`. A stop releases the GPUs (script "attached …/attached"). */
static void runs(const Machine *m, const char *units, const char *when_stopped) {
        _free_ char *script = xasprintf("case $1 in show) for u in %s; do printf 'Id=%%s.service\nActiveState=active\n\n' $u; done;"
                                        " printf 'Id=nvsm.service\nActiveState=inactive\n';; stop) %s;; esac", units, when_stopped);
        program(m, "systemctl", script);
}

static int set_mode(Machine *m) {
        m->action.type = ACTION_SET_MIG_MODE;
        m->action.id = (char *)"set-mig-mode:mig";
        return mig_mode_work(&m->work);
}

static void say_attached(Machine *m, const char *script) {
        _free_ char *path = xasprintf("%s/attached", m->path), *text = xasprintf("%sattached %s\n", script, path);
        machine_says(m, text);
        ASSERT_OK(root_make_dirs(m->root, "/attached", 0755));
}

TEST(services_that_hold_the_gpus_stop_and_start_again) {
        MIG(m, 2, "");
        say_attached(&m, "model a100-40\ngpus 2\n");
        want(&m, 0, "1g.5gb");
        want(&m, 1, "");
        write_file(m.state, "mig 1 1 1\ninstance 1 1 14 2 2 1\npersistence 0 1\n");
        runs(&m, "nvidia-dcgm nvidia-persistenced nvidia-fabricmanager", "rm -rf ${0%%/bin/*}/attached");
        program(&m, "nvidia-smi", "grep -q 'persistence 0 0' $FAKE_NVML.state || exit 4\n" RESET);
        ASSERT_EQ(set_mode(&m), 1);
        ASSERT_EQ(instances(&m, "mig 0 1 1"), 1);
        ASSERT_EQ(instances(&m, "mig 1 0 0"), 1);
        ASSERT_EQ(instances(&m, "instance "), 0);       /* another step makes those of GPU 0 */
        /* persistenced and fabric manager have steps of their own */
        ran(&m, "systemctl stop nvidia-dcgm.service\nsystemctl stop nvidia-persistenced.service nvidia-fabricmanager.service\nnvidia-smi --gpu-reset\n"
                "systemctl --no-block start nvidia-dcgm.service\n");
        machine_clear(&m);
        ASSERT_EQ(set_mode(&m), 0);
        ran(&m, "");
}

TEST(a_reset_after_the_fabric_waits_for_fabric_manager) {
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "7g.40gb");
        runs(&m, "nvidia-persistenced nvidia-fabricmanager", ":");
        program(&m, "nvidia-smi", RESET);
        ASSERT_EQ(partition_work(&m.work), 1);
        ran(&m, "systemctl stop nvidia-persistenced.service nvidia-fabricmanager.service\nnvidia-smi --gpu-reset\n"
                "systemctl --no-block start nvidia-fabricmanager.service nvidia-persistenced.service\nsystemctl start nvidia-fabricmanager.service\n");
}

/* Meanwhile the loop reports the step as late. */
TEST(a_cancelled_step_starts_services_and_modules_again) {
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "7g.40gb");
        boot(&m, "first\n");
        _free_ char *pipe = xasprintf("%s/cancel", m.path);
        ASSERT_OK(mkfifo(pipe, 0600));
        m.work.cancel_fd = ASSERT_OK(open(pipe, O_RDWR | O_CLOEXEC));
        ASSERT_OK(root_replace(m.root, "/sys/module/nvidia_drm/refcnt", "0\n", 2, 0644));
        runs(&m, "nvidia-dcgm nvidia-persistenced", ":");
        program(&m, "rmmod", "rm -r ${0%/bin/*}/sys/module/$1");
        program(&m, "modprobe", "");
        program(&m, "nvidia-smi", "cat ${0%/bin/*}/run/nodestrap/stopped >>${0%/bin/*}/ran; echo >${0%/bin/*}/cancel; exec sleep 60");
        ASSERT_FAILS(set_mode(&m), CAUSE_MIG_REBOOT, "the step ended before MIG mode of GPU 0 (0000:10:00.0) took effect");
        ran(&m, "systemctl stop nvidia-dcgm.service\nsystemctl stop nvidia-persistenced.service\nrmmod nvidia_drm\nnvidia-smi --gpu-reset\n"
                "nvidia-dcgm.service\nnvidia-persistenced.service\nnvidia_drm\n"
                "modprobe nvidia_drm\nsystemctl --no-block start nvidia-persistenced.service nvidia-dcgm.service\n");
        ASSERT_EQ(root_exists(m.root, "/run/nodestrap/stopped"), 0);
        close(m.work.cancel_fd);
}

TEST(the_next_run_starts_what_a_killed_run_stopped) {
        static const char stopped[] = "nvidia-dcgm.service\nnvidia-imex.service\nnvidia-persistenced.service\nnvidia_drm\nnvidia_modeset";
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "7g.40gb");
        write_file(m.state, "mig 0 1 1\n");
        program(&m, "systemctl", "");
        program(&m, "modprobe", "");
        ASSERT_OK(root_make_dirs(m.root, "/sys/module/nvidia_drm", 0755));
        ASSERT_OK(root_replace(m.root, "/run/nodestrap/stopped", stopped, strlen(stopped), 0644));
        ASSERT_EQ(set_mode(&m), 0);
        ran(&m, "modprobe nvidia_modeset\nsystemctl --no-block start nvidia-imex.service nvidia-dcgm.service\n");
        ASSERT_EQ(set_mode(&m), 0);
        ran(&m, "");
}

TEST(a_service_that_does_not_start_again_warns_and_is_retried) {
        static const char stopped[] = "nvidia-dcgm.service\nnvsm.service\nnvidia_modeset\n";
        _free_ char *left = NULL;
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "7g.40gb");
        write_file(m.state, "mig 0 1 1\n");
        program(&m, "systemctl", "case $* in *dcgm*) echo Failed. >&2; echo Unit nvidia-dcgm.service is masked. >&2; exit 1;; esac");
        program(&m, "modprobe", "");
        ASSERT_OK(root_replace(m.root, "/run/nodestrap/stopped", stopped, strlen(stopped), 0644));
        ASSERT_EQ(set_mode(&m), 0);
        ran(&m, "modprobe nvidia_modeset\nsystemctl --no-block start nvsm.service nvidia-dcgm.service\nsystemctl --no-block start nvsm.service\n"
                "systemctl --no-block start nvidia-dcgm.service\n");
        ASSERT_EQ(m.work.warnings.n, 1);
        ASSERT_STREQ(m.work.warnings.items[0].path, "nvidia-dcgm.service");
        ASSERT_STREQ(m.work.warnings.items[0].code, "not-started-again");
        ASSERT_CONTAINS(m.work.warnings.items[0].text, "does not start again (Unit nvidia-dcgm.service is masked.); try `systemctl --no-block start nvidia-dcgm.service`");
        ASSERT_OK(root_read(m.root, "/run/nodestrap/stopped", 100, &left, NULL));
        ASSERT_STREQ(left, "nvidia-dcgm.service\n");
        program(&m, "systemctl", "");
        ASSERT_EQ(set_mode(&m), 0);
        ran(&m, "systemctl --no-block start nvidia-dcgm.service\n");
        ASSERT_EQ(root_exists(m.root, "/run/nodestrap/stopped"), 0);
}

TEST(unused_modules_are_unloaded_for_a_reset) {
        MIG(m, 1, "");
        say_attached(&m, "model a100-40\ngpus 1\n");
        want(&m, 0, "7g.40gb");
        ASSERT_OK(root_replace(m.root, "/sys/module/nvidia_drm/refcnt", "0\n", 2, 0644));
        ASSERT_OK(root_replace(m.root, "/sys/module/nvidia_modeset/refcnt", "1\n", 2, 0644));
        program(&m, "systemctl", "");
        program(&m, "rmmod", "rm -rf ${0%/bin/*}/attached ${0%/bin/*}/sys/module/$1; [ $1 != nvidia_drm ] || echo 0 >${0%/bin/*}/sys/module/nvidia_modeset/refcnt");
        program(&m, "modprobe", "");
        program(&m, "nvidia-smi", RESET);
        ASSERT_EQ(set_mode(&m), 1);
        ran(&m, "rmmod nvidia_drm\nrmmod nvidia_modeset\nnvidia-smi --gpu-reset\nmodprobe nvidia_modeset\nmodprobe nvidia_drm\n");
}

TEST(a_pending_mig_mode_is_never_undone) {
        /* a process keeps its GPU open: one reboot, and a message that names the process */
        MIG(m, 2, "");
        say_attached(&m, "model a100-40\ngpus 2\n");
        want(&m, 0, "1g.5gb");
        want(&m, 1, "1g.5gb");
        boot(&m, "first\n");
        runs(&m, "nvidia-persistenced", ":");
        program(&m, "nvidia-smi", "printf 'The following GPUs could not be reset:\\n  GPU 00000000:20:00.0: In use by another client\\n\\n1 device is\\n'; "
                                  "sed -i 's/^mig 0 0 1/mig 0 1 1/' $FAKE_NVML.state; exit 255");
        ASSERT_OK(root_replace(m.root, "/proc/812/comm", "python3\n", 8, 0644));
        ASSERT_OK(root_link(m.root, "/proc/812/fd/4", "/dev/nvidia1"));
        ASSERT_OK(root_replace(m.root, "/proc/813/comm", "bash\n", 5, 0644));
        ASSERT_OK(root_link(m.root, "/proc/813/fd/0", "/dev/null"));
        m.work.early = true;
        ASSERT_FAILS(set_mode(&m), CAUSE_MIG_REBOOT, "MIG mode of GPU 1 (0000:20:00.0) takes effect after a reboot (resetting: In use by another client; python3 (812) has a GPU open); "
                     "the run phase reboots after the user scripts");
        ran(&m, "systemctl stop nvidia-persistenced.service\nnvidia-smi --gpu-reset\nsystemctl stop nvidia-persistenced.service\nnvidia-smi --gpu-reset\n"
                "systemctl stop nvidia-persistenced.service\nnvidia-smi --gpu-reset\nsystemctl --no-block start nvidia-persistenced.service\n");
        ASSERT_EQ(instances(&m, "mig 0 1 1"), 1);
        ASSERT_EQ(instances(&m, "mig 1 0 1"), 1);
        ASSERT_EQ(root_exists(m.root, LEDGER), 0);
        m.work.early = false;
        ASSERT_FAILS(set_mode(&m), CAUSE_MIG_REBOOT, "GPU 1 (0000:20:00.0) takes effect after a reboot (resetting: In use by another client; python3 (812) has a GPU open); this machine reboots now, once");
        ASSERT_EQ(root_exists(m.root, LEDGER), 1);
        ASSERT_EQ(instances(&m, "mig 1 0 1"), 1);
}

TEST(if_kubelet_may_run_a_new_mig_mode_does_not_reboot) {
        MIG(m, 2, "");
        say_attached(&m, "model a100-40\ngpus 2\n");
        want(&m, 0, "1g.5gb");
        want(&m, 1, "1g.5gb");
        runs(&m, "nvidia-persistenced", ":");
        ASSERT_OK(root_replace(m.root, "/run/nodestrap/kubelet-may-start", "", 0, 0644));
        ASSERT_FAILS(set_mode(&m), CAUSE_MIG_REBOOT, "MIG mode of all 2 GPUs is set and takes effect after a reboot. kubelet may already be running, so nodestrap does not reboot");
        ran(&m, "");
        ASSERT_EQ(instances(&m, "mig 0 0 1"), 1);
        write_file(m.state, "mig 0 1 1\nmig 1 1 1\n");         /* drained and rebooted */
        ASSERT_OK(root_replace(m.root, LEDGER, "first\n", 6, 0644));
        ASSERT_EQ(set_mode(&m), 0);
        ASSERT_EQ(root_exists(m.root, LEDGER), 0);
}

/* NVML refuses the first try and has the mode pending after the second. That does not allow a reset of a
 * node with pods, either. */
TEST(if_kubelet_may_run_a_late_mig_mode_resets_nothing) {
        MIG(m, 1, "model a100-40\ngpus 1\nmig in-use 1x\n");
        want(&m, 0, "1g.5gb");
        boot(&m, "first\n");
        runs(&m, "nvidia-persistenced nvidia-fabricmanager", ":");
        program(&m, "nvidia-smi", "exit 3");
        ASSERT_OK(root_replace(m.root, "/run/nodestrap/kubelet-may-start", "", 0, 0644));
        ASSERT_FAILS(set_mode(&m), CAUSE_MIG_REBOOT, "MIG mode of GPU 0 (0000:10:00.0) is set and takes effect after a reboot. kubelet may already be running, so nodestrap does not reboot");
        ran(&m, "");
        ASSERT_EQ(instances(&m, "mig 0 0 1"), 1);
        ASSERT_EQ(root_exists(m.root, LEDGER), 0);
}

TEST(an_active_kubelet_prevents_reset_and_reboot) {
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "1g.5gb");
        runs(&m, "kubelet nvidia-persistenced", ":");
        program(&m, "nvidia-smi", "");
        ASSERT_FAILS(set_mode(&m), CAUSE_MIG_REBOOT, "kubelet may already be running, so nodestrap does not reboot");
        ran(&m, "");
}

/* systemd prints the real name of the unit first. */
TEST(a_kubelet_behind_an_alias_prevents_reset_and_reboot) {
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "1g.5gb");
        program(&m, "systemctl", "case \"$*\" in *kubelet*) printf 'Id=eks-kubelet.service\nNames=eks-kubelet.service kubelet.service\nActiveState=active\n';; esac");
        program(&m, "nvidia-smi", "");
        ASSERT_FAILS(set_mode(&m), CAUSE_MIG_REBOOT, "kubelet may already be running, so nodestrap does not reboot");
        ran(&m, "");
}

/* kubelet may start at any time, for example by hand. */
TEST(a_kubelet_that_starts_during_a_reset_prevents_the_reboot) {
        MIG(m, 1, "model a100-40\ngpus 1\n");
        want(&m, 0, "1g.5gb");
        boot(&m, "first\n");
        runs(&m, "nvidia-persistenced", ":");
        program(&m, "nvidia-smi", "mkdir -p ${0%/bin/*}/run/nodestrap; : >${0%/bin/*}/run/nodestrap/kubelet-may-start; echo 'In use by another client'; exit 255");
        ASSERT_FAILS(set_mode(&m), CAUSE_MIG_REBOOT, "kubelet may already be running, so nodestrap does not reboot");
        ran(&m, "systemctl stop nvidia-persistenced.service\nnvidia-smi --gpu-reset\nsystemctl --no-block start nvidia-persistenced.service\n");
        ASSERT_EQ(root_exists(m.root, LEDGER), 0);
}

/* Hopper needs no reset, so fabric manager keeps running. */
TEST(on_hopper_only_dcgm_is_stopped) {
        MIG(m, 1, "");
        _free_ char *path = xasprintf("%s/held", m.path), *text = xasprintf("gpus 1\nheld-by %s\n", path);
        machine_says(&m, text);
        ASSERT_OK(root_make_dirs(m.root, "/held", 0755));
        want(&m, 0, "7g.80gb");
        runs(&m, "nvidia-dcgm nvidia-persistenced nvidia-fabricmanager", "rm -rf ${0%%/bin/*}/held");
        ASSERT_EQ(partition_work(&m.work), 1);
        ASSERT_HAS(&m, 0, "7g.80gb");
        ran(&m, "systemctl stop nvidia-dcgm.service\nsystemctl --no-block start nvidia-dcgm.service\n");
}
TEST_MAIN
