/* SPDX-License-Identifier: Apache-2.0
 * nodestrap-prove while chrony sets the wall clock, early in a boot. Its own end, and the time that a
 * hanging GPU has, must not move. The program reads a wall clock that differs from that of the kernel, as
 * if the clock was set afterwards. */
#include <time.h>

static long set_by;     /* seconds */

static int read_clock(clockid_t clock, struct timespec *ret) {
        int r = clock_gettime(clock, ret);
        ret->tv_sec -= clock == CLOCK_REALTIME ? set_by : 0;
        return r;
}

int prove_main(int argc, char **argv);
#define clock_gettime read_clock
#define main          prove_main
#include "../../src/prove/main.c"       // NOLINT(bugprone-suspicious-include): with another clock
#undef main
#undef clock_gettime

#include "fake-nvml.h"

#include <sys/wait.h>

/* The lines of the test. */
static char *prove_with(const Root *root, const char *path, const char *script, long by, uint64_t *ret_took) {
        _free_ char *where = xasprintf("%s/cuda", path), *lines = xasprintf("%s/lines", path);
        char *argv[] = { (char *)"nodestrap-prove", (char *)"4", NULL }, *text = NULL;
        uint64_t start = now_usec();
        int status = 0;
        write_file(where, script);
        setenv("FAKE_CUDA", where, 1);
        set_by = by;
        pid_t pid = fork();
        ASSERT_TRUE(pid >= 0);
        if (pid == 0) {
                if (!freopen(lines, "we", stdout))
                        _exit(3);
                _exit(prove_main(2, argv));
        }
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        *ret_took = now_usec() - start;
        if (status != 0)
                FAIL("the clock is set by %ld s: wait status %d after %llu us", by, status, (unsigned long long)*ret_took);
        ASSERT_OK(root_read(root, "/lines", 1 << 20, &text, NULL));
        return text;
}

static const long steps[] = { 0, 3600, -3600, 50L * 365 * 86400 };

TEST(a_step_of_the_wall_clock_does_not_move_deadlines) {
        MACHINE(m, "gpus 2\n");
        _free_ char *library = beside_program("../fakes/libcuda.so.1");
        if (!dlopen(library, RTLD_NOW))
                FAIL("%s", dlerror());
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                uint64_t took;
                _free_ char *hangs = prove_with(m.root, m.path, "gpus 2\nmemory all 64\nsms 1\nhang cuLaunchKernel 1\n", steps[i], &took);
                ASSERT_CONTAINS(hangs, "\"gpu\": \"0000:20:00.0\", \"error\": \"timeout\"");
                if (!TRANSLATED_BY(""))         /* translated kernels take longer than the test may */
                        ASSERT_CONTAINS(hangs, "\"gpu\": \"0000:10:00.0\", \"done\": true");
                if (took < USEC_PER_SEC)
                        FAIL("the clock is set by %ld s: the hanging GPU had %llu us", steps[i], (unsigned long long)took);
                free(TAKE_PTR(hangs));
                hangs = prove_with(m.root, m.path, "gpus 2\nhang cuInit\n", steps[i], &took);
                ASSERT_CONTAINS(hangs, "\"error\": \"timeout\", \"code\": 0, \"call\": \"cuInit\"");
                if (took < 4 * USEC_PER_SEC)
                        FAIL("the clock is set by %ld s: the test had %llu us", steps[i], (unsigned long long)took);
        }
}

TEST_MAIN
