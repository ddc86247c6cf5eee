/* SPDX-License-Identifier: Apache-2.0
 * How long the gate waits, and its messages. The test has its own clock: a busy machine does not matter. */
#include "fake-clock.h"
#include "fake-nvml.h"

#include <poll.h>
#include <sys/eventfd.h>

/* Time passes here as well: the gate waits only for its cancellation. */
int poll(struct pollfd *fds, nfds_t n, int msec) {  // NOLINT(readability-inconsistent-declaration-parameter-name): of the C library
        int r = ppoll(fds, n, &(struct timespec){}, NULL);
        fake_now += r == 0 && msec > 0 ? (uint64_t)msec * USEC_PER_MSEC : 0;
        return r;
}

#define GATE(name, gpus, seconds, script)                                               \
        MACHINE(name, script);                                                          \
        name.action.class = GPU_CLASS_NVSWITCH;                                         \
        name.action.device.count = gpus;                                                \
        name.work.deadline_usec = now_usec() + (seconds) * USEC_PER_SEC

/* The loop would end the task without a message, so this comes a tenth before the deadline, 2 s at most. */
TEST(the_gate_reports_before_the_deadline) {
        GATE(m, 1, 10, "gpus 1\nfabric 0 in-progress\n");
        uint64_t begin = now_usec();
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 0 of 1 (0000:10:00.0) still In Progress after 10 s");
        ASSERT_TRUE(now_usec() - begin >= 9 * USEC_PER_SEC);
        ASSERT_TRUE(now_usec() < m.work.deadline_usec);
        m.work.deadline_usec = now_usec() + 300 * USEC_PER_SEC;
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 0 of 1 (0000:10:00.0) still In Progress after 299 s");
        ASSERT_TRUE(now_usec() < m.work.deadline_usec);
}

/* Soon at first, and after a while once a second. */
TEST(the_gate_asks_again_about_once_a_second) {
        GATE(m, 1, 300, "gpus 1\nfabric 0 in-progress\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "still In Progress");
        unsigned n = calls_of(&m, "nvmlDeviceGetGpuFabricInfoV", 0);
        ASSERT_TRUE(n > 300);
        ASSERT_TRUE(n < 600);
}

/* The gate fails because of the fabric, not because of these errors. */
TEST(errors_that_have_passed_are_forgotten) {
        GATE(m, 2, 1, "gpus 2\nerror nvmlInit 9 1x\nfabric 1 in-progress\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 1 of 2 (0000:20:00.0) still In Progress after 1 s; journalctl");
}

TEST(the_wait_of_another_process_counts) {
        GATE(m, 1, 10, "gpus 1\nfabric 0 in-progress\n");
        m.work.waited_usec = 38 * USEC_PER_SEC;
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 0 of 1 (0000:10:00.0) still In Progress after 48 s");
        ASSERT_TRUE(json_real_value(json_object_get(m.work.found, "seconds")) >= 47);
}

TEST(a_cancelled_gate_ends_at_once) {
        GATE(m, 1, 300, "gpus 1\nfabric 0 in-progress\n");
        uint64_t begin = now_usec();
        m.work.cancel_fd = eventfd(1, EFD_CLOEXEC);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 0 of 1");
        ASSERT_TRUE(now_usec() - begin < USEC_PER_SEC);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceGetGpuFabricInfoV", 0), 1);
        close(m.work.cancel_fd);
}
TEST_MAIN
