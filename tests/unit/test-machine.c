/* SPDX-License-Identifier: Apache-2.0
 * check-machine, check-efa, await-devices and load-module over fixtures; real modules and a real devtmpfs: tests/vm/modules.sh. */
#include "apply/device.h"
#include "programs.h"

#include <pthread.h>
#include <sys/eventfd.h>

/* ---- check-machine ---- */

TEST(a_complete_machine_passes) {
        BOX(b);
        assert_works(&b, machine_work, 0);
}

TEST(the_first_shortfall_is_the_cause_and_the_others_follow) {
        BOX(b);
        Shortfall shortfalls[] = { { CAUSE_GPU_MISSING, (char *)"7 of 8 GPUs are there" }, { CAUSE_NUMA, (char *)"1 of 2 NUMA nodes is there" } };
        b.action = (Action){ .census = { .missing = shortfalls, .n = 2 } };
        assert_fails(&b, machine_work, CAUSE_GPU_MISSING, "7 of 8 GPUs are there (and 1 more: nodestrap status --long)\n1 of 2 NUMA nodes is there");
        b.action.census.n = 1;
        assert_fails(&b, machine_work, CAUSE_GPU_MISSING, "7 of 8 GPUs are there");
        ASSERT_TRUE(!strchr(b.work.text, '('));
}

/* ---- check-efa ---- */

static char *efas[] = { (char *)"0000:10:1b.0", (char *)"0000:10:1d.0", NULL };

static void efa_init(Box *b, unsigned count) {
        box_init(b);
        b->action = (Action){ .id = (char *)"check-efa:efa", .device = { .seen = efas, .count = count } };
        box_link(b, "/sys/bus/pci/devices/0000:10:1b.0/driver", "../../../bus/pci/drivers/efa");
        ASSERT_OK(root_make_dirs(b->root, "/sys/bus/pci/devices/0000:10:1d.0", 0755));
}
#define EFA(name, count) _cleanup_(box_done) Box name; efa_init(&name, count)

TEST(every_efa_device_has_its_driver) {
        EFA(b, 2);
        box_link(&b, "/sys/bus/pci/devices/0000:10:1d.0/driver", "../../../bus/pci/drivers/efa");
        assert_works(&b, efa_work, 0);
        b.action.device.count = 0;              /* as many as there are */
        assert_works(&b, efa_work, 0);
}

TEST(an_efa_device_without_its_driver_fails_or_warns) {
        EFA(b, 0);
        assert_fails(&b, efa_work, CAUSE_EFA, "1 of 2 EFA devices have the efa driver; these do not: 0000:10:1d.0 (no driver)");
        box_link(&b, "/sys/bus/pci/devices/0000:10:1d.0/driver", "../../../bus/pci/drivers/vfio-pci");
        assert_fails(&b, efa_work, CAUSE_EFA, "0000:10:1d.0 (vfio-pci)");
        b.action.lenient = true;
        assert_works(&b, efa_work, 0);
        assert_warns(&b, "efa-missing", "0000:10:1d.0 (vfio-pci)");
}

TEST(fewer_efa_devices_than_configured_are_a_failure) {
        EFA(b, 4);
        box_link(&b, "/sys/bus/pci/devices/0000:10:1d.0/driver", "../../../bus/pci/drivers/efa");
        assert_fails(&b, efa_work, CAUSE_EFA, "2 EFA devices exist, and the configuration wants 4;");
}

/* ---- await-devices ---- */

#define UMAD "/dev/infiniband/umad"

static void devices_init(Box *b, unsigned count) {
        box_init(b);
        b->action = (Action){ .id = (char *)"await-devices:test", .target = (char *)UMAD "*", .device.count = count };
        put(b, "/dev/null", "");
}
#define DEVICES(name, count) _cleanup_(box_done) Box name; devices_init(&name, count)

TEST(present_devices_need_no_wait) {
        DEVICES(b, 2);
        put(&b, UMAD "0", "");
        put(&b, UMAD "1", "");
        put(&b, "/dev/infiniband/issm0", "");
        assert_works(&b, devices_work, 0);
}

static void *let_them_come(void *userdata) {
        const Box *b = userdata;
        static const char *const names[] = { "issm0", "umad0", "umad1" };       /* the first file makes the directory */
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _free_ char *path = xasprintf("%.*s%s", (int)strcspn(b->action.target, "*") - 4, b->action.target, names[i]);
                put(b, path, "");
        }
        return NULL;
}

/* The devices come before the step looks, between look and watch, or much later. It must miss none of
 * them. */
TEST(devices_that_come_during_the_wait_are_seen) {
        DEVICES(b, 2);
        for (int i = 0; i < 100; i++) {
                _free_ char *target = xasprintf("/dev/%d/infiniband/umad*", i);
                pthread_t thread;
                b.action.target = target;
                ASSERT_EQ(pthread_create(&thread, NULL, let_them_come, &b), 0);
                int r = devices_work(&b.work);
                pthread_join(thread, NULL);
                if (r < 0)
                        FAIL("%s", b.work.text);
        }
}

TEST(devices_that_never_come_are_a_failure) {
        DEVICES(b, 2);
        b.work.deadline_usec = now_usec() + 50 * USEC_PER_MSEC;
        assert_fails(&b, devices_work, CAUSE_NVSWITCH, "0 of 2 " UMAD "* exist");
        ASSERT_TRUE(now_usec() >= b.work.deadline_usec - 10 * USEC_PER_MSEC);
}

TEST(fewer_devices_than_expected_are_a_warning) {
        DEVICES(b, 2);
        put(&b, UMAD "0", "");
        b.work.deadline_usec = now_usec() + 50 * USEC_PER_MSEC;
        assert_works(&b, devices_work, 0);
        assert_warns(&b, "devices-missing", "1 of 2 " UMAD "* exist");
        ASSERT_TRUE(now_usec() >= b.work.deadline_usec - 10 * USEC_PER_MSEC);
}

#define NEURON "/dev/neuron"

TEST(missing_neuron_devices_are_a_failure) {
        static char *seen[] = { (char *)"0000:10:00.0", (char *)"0000:11:00.0", NULL };
        DEVICES(b, 2);
        b.action.target = (char *)NEURON "*";
        b.action.device.seen = seen;
        put(&b, NEURON "0", "");
        put(&b, NEURON "_core1", "");
        ASSERT_OK(root_make_dirs(b.root, "/sys/bus/pci/devices/0000:11:00.0", 0755));
        box_link(&b, "/sys/bus/pci/devices/0000:10:00.0/driver", "../../../bus/pci/drivers/neuron-driver");
        b.work.deadline_usec = now_usec() + 50 * USEC_PER_MSEC;
        assert_fails(&b, devices_work, CAUSE_NEURON, "1 of 2 " NEURON "* exist; no driver is bound to 0000:11:00.0; ");
        put(&b, NEURON "12", "");
        assert_works(&b, devices_work, 0);
}

TEST(the_wait_ends_when_the_step_is_cancelled) {
        DEVICES(b, 2);
        _cleanup_(close_fd) int fd = eventfd(1, EFD_CLOEXEC);
        b.work.cancel_fd = fd;
        ASSERT_ERROR(devices_work(&b.work), ECANCELED);
}

/* ---- load-module ---- */

static void module_init(Box *b, const char *name) {
        box_init(b);
        b->action = (Action){ .id = (char *)"load-module:test", .target = (char *)name };
        put(b, "/proc/sys/kernel/osrelease", "6.1.0-test\n");
        put(b, "/lib/modules/6.1.0-test/modules.builtin", "kernel/fs/binfmt-misc.ko\nkernel/drivers/infiniband/core/ib_core.ko\n");
}
#define MODULE(var, name) _cleanup_(box_done) Box var; module_init(&var, name)

TEST(a_loaded_module_changes_nothing) {
        MODULE(b, "nvidia-uvm");
        put(&b, "/sys/module/nvidia_uvm/initstate", "live\n");
        assert_works(&b, module_work, 0);
}

TEST(a_built_in_module_changes_nothing) {
        MODULE(b, "ib_core");
        assert_works(&b, module_work, 0);
        b.action.target = (char *)"binfmt_misc";
        assert_works(&b, module_work, 0);
        b.action.target = (char *)"printk";     /* it has parameters, so it is in /sys */
        put(&b, "/sys/module/printk/parameters/time", "Y\n");
        assert_works(&b, module_work, 0);
}

TEST(modprobe_also_runs_for_a_module_that_is_loading) {
        MODULE(b, "efa");
        put(&b, "/sys/module/efa/initstate", "coming\n");
        _free_ char *script = xasprintf("echo live >%s/sys/module/$1/initstate", b.path);
        box_program(&b, "modprobe", script);
        assert_works(&b, module_work, 1);
}

TEST(a_module_that_cannot_be_loaded_is_a_failure) {
        MODULE(b, "efa");
        box_program(&b, "modprobe", "echo 'modprobe: FATAL: Module efa not found' >&2; exit 1");
        assert_fails(&b, module_work, CAUSE_EFA, "the kernel module efa cannot be loaded: modprobe exited with status 1, last said \"modprobe: FATAL: Module efa not found\"");
        b.action.target = (char *)"nvidia";
        assert_fails(&b, module_work, CAUSE_DRIVER, "If a pod installs the driver (NVIDIA GPU operator), set spec.accelerator.nvidia.mode: off");
        b.action.target = (char *)"ib_umad";
        assert_fails(&b, module_work, CAUSE_MODULE, "modinfo shows whether the image has it");
        box_program(&b, "modprobe", "exit 0");
        assert_fails(&b, module_work, CAUSE_MODULE, "modprobe ib_umad succeeded, but the kernel lacks the module");
}

TEST(a_missing_modprobe_is_a_failure) {
        MODULE(b, "efa");
        NO_PROGRAMS();
        assert_fails(&b, module_work, CAUSE_EFA, "modprobe is missing; the image needs kmod");
}

TEST_MAIN
