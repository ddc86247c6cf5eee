/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/power.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Runs in a fork, so that only the child gives up its rights. Returns the number of the first failed
 * check. */
static int in_fork(int (*look)(void)) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
                _exit(look());
        return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static bool refuses(int error, long r) {
        return r == -1 && errno == error;
}

static void *nothing(void *argument) {
        return argument;
}

static int spawn_true(void) {
        char *const argv[] = { (char *)"true", NULL };
        pid_t pid;
        int status = -1, r = posix_spawnp(&pid, "true", NULL, NULL, argv, environ);
        return r != 0 ? r : waitpid(pid, &status, 0) == pid ? status : -1;
}

static int look_at_filter(void) {
        pthread_t thread;
        int status = 0;
        power_drop(0, false);
        if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
                return 1;
        if (!refuses(EPERM, unshare(CLONE_NEWUSER)) ||
            !refuses(EPERM, syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0)))
                return 2;
        if (!refuses(EPERM, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)))
                return 3;
        if (!refuses(ENOSYS, syscall(SYS_clone3, NULL, 0)) ||
            !refuses(EPERM, syscall(SYS_io_uring_setup, 1, NULL)))
                return 4;
        if (!refuses(EPERM, syscall(SYS_bpf, 0, NULL, 0)) ||
            !refuses(EPERM, syscall(SYS_keyctl, 0, 0, 0, 0, 0)))
                return 5;
        if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
                return 6;
        pid_t child = fork();
        if (child == 0)
                _exit(0);
        if (waitpid(child, &status, 0) != child || status != 0)
                return 7;
        return spawn_true() == EPERM ? 0 : 8;
}

TEST(the_filter_refuses_system_calls_and_programs) {
        if (TRANSLATED_BY(""))
                SKIP("a translator of instructions takes no filter of system calls");
        ASSERT_EQ(in_fork(look_at_filter), 0);
}

static int look_at_programs(void) {
        power_drop(0, true);
        return refuses(EPERM, unshare(CLONE_NEWUSER)) ? spawn_true() : 1;
}

TEST(the_filter_can_allow_programs) {
        if (TRANSLATED_BY(""))
                SKIP("a translator of instructions takes no filter of system calls");
        ASSERT_EQ(in_fork(look_at_programs), 0);
}

TEST_MAIN
