/* SPDX-License-Identifier: Apache-2.0
 * Children by argument vector: how they end, what is kept of their output, and that none outlives its deadline. */
#include "base/run.h"

#include "test.h"
#include "base/str.h"
#include "base/time.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGV(...) ((char *[]){ __VA_ARGS__, NULL })
#define SCRIPT(text) ARGV((char *)"/bin/sh", (char *)"-c", (char *)(text))

/* syscall(2), whose pidfd_open() can fail as if no file descriptor was left. */
static bool no_pidfd;
long syscall(long number, ...) {         /* NOLINT(readability-inconsistent-declaration-parameter-name) */
        static long (*real)(long, ...);
        if (no_pidfd && number == SYS_pidfd_open) {
                errno = EMFILE;
                return -1;
        }
        if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "syscall");
        long a[6];
        va_list arguments;
        va_start(arguments, number);
        for (size_t i = 0; i < ARRAY_SIZE(a); i++)
                a[i] = va_arg(arguments, long);
        va_end(arguments);
        return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* A killed process that does not end, like one that waits for a disk (TASK_UNINTERRUPTIBLE). Its tracer
 * stops it at its exit (ptrace(2), PTRACE_O_TRACEEXIT) and never continues it. With the arguments "stuck"
 * and the number of a pipe, this program is that process, before main(). The tracer writes to the pipe
 * when it is attached. */
__attribute__((constructor)) static void be_stuck(int argc, char **argv) {
        if (argc < 3 || !streq(argv[1], "stuck"))
                return;
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        pid_t tracer = fork();
        if (tracer == 0) {
                setpgid(0, 0);          /* killing the group does not reach it */
                if (ptrace(PTRACE_SEIZE, getppid(), 0, PTRACE_O_TRACEEXIT) < 0)
                        _exit(77);
                dprintf(STDOUT_FILENO, "%d", getpid());
                (void)!write(atoi(argv[2]), "", 1);
                close_range(STDIN_FILENO, ~0U, 0);
                alarm(60);              /* if no signal ends it */
                for (;;)
                        pause();
        }
        int status = 0;
        waitpid(tracer, &status, 0);
        _exit(WEXITSTATUS(status));
}

TEST(exit_status_output_and_stderr_are_returned) {
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_OK(child_run(SCRIPT("echo one; echo two >&2; exit 3"), 60 * USEC_PER_SEC, 100, &c));
        ASSERT_EQ(c.status, 3);
        ASSERT_TRUE(!c.timed_out && !c.cut);
        ASSERT_STREQ(c.output, "one\n");
        ASSERT_EQ(c.size, 4);
        ASSERT_STREQ(c.errors, "two");
}

TEST(a_silent_child_has_empty_output) {
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_OK(child_run(SCRIPT("exit 0"), 60 * USEC_PER_SEC, 100, &c));
        ASSERT_EQ(c.status, 0);
        ASSERT_STREQ(c.output, "");
        ASSERT_STREQ(c.errors, "");
}

TEST(a_program_is_found_in_path) {
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_OK(child_run(ARGV((char *)"true"), 60 * USEC_PER_SEC, 100, &c));
        ASSERT_EQ(c.status, 0);
}

TEST(a_missing_program_is_an_error) {
        ChildResult c = { .status = 77 };
        SKIP_IF_VFORK_FORKS();
        ASSERT_ERROR(child_run(ARGV((char *)"/nonexistent/program"), USEC_PER_SEC, 100, &c), ENOENT);
        ASSERT_ERROR(child_run(ARGV((char *)"no-such-program-anywhere"), USEC_PER_SEC, 100, &c), ENOENT);
        ASSERT_ERROR(child_run(ARGV((char *)"/etc/passwd"), USEC_PER_SEC, 100, &c), EACCES);
        ASSERT_EQ(c.status, 77);
}

TEST(arguments_are_not_interpreted) {
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_OK(child_run(ARGV((char *)"printf", (char *)"%s|", (char *)"$HOME; `id`", (char *)"a b"), 60 * USEC_PER_SEC, 100, &c));
        ASSERT_STREQ(c.output, "$HOME; `id`|a b|");
}

TEST(death_by_a_signal_is_128_plus_its_number) {
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_OK(child_run(SCRIPT("kill -TERM $$"), 60 * USEC_PER_SEC, 100, &c));
        ASSERT_EQ(c.status, 128 + SIGTERM);
        ASSERT_TRUE(!c.timed_out);
}

TEST(output_is_capped_and_the_rest_is_drained) {
        _cleanup_(child_result_done) ChildResult c = {};
        /* Far more than a pipe holds: if the rest was not read, the child would hang until its deadline. */
        ASSERT_OK(child_run(SCRIPT("head -c 1000000 /dev/zero | tr '\\0' x; exit 5"), 60 * USEC_PER_SEC, 1000, &c));
        ASSERT_EQ(c.status, 5);
        ASSERT_TRUE(c.cut);
        ASSERT_EQ(c.size, 1000);
        ASSERT_EQ(strspn(c.output, "x"), 1000);
}

TEST(the_last_lines_of_stderr_are_kept) {
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_OK(child_run(SCRIPT("i=0; while [ $i -lt 900 ]; do i=$((i+1)); echo \"line $i\" >&2; done"), 60 * USEC_PER_SEC, 10, &c));
        ASSERT_TRUE(endswith(c.errors, "line 899\nline 900"));
        ASSERT_TRUE(startswith(c.errors, "line "));     /* begins with a whole line */
        ASSERT_TRUE(strlen(c.errors) < 4096);
}

TEST(deadline_kills_the_whole_group) {
        _cleanup_(child_result_done) ChildResult c = {};
        uint64_t pid = 0;
        ASSERT_OK(child_run(SCRIPT("sleep 1000 & printf %s $!; wait"), 300 * USEC_PER_MSEC, 100, &c));
        ASSERT_TRUE(c.timed_out);
        ASSERT_EQ(c.status, 128 + SIGKILL);
        ASSERT_OK(parse_u64(c.output, &pid));
        /* The orphan was killed as well; it may stay a zombie until init takes it. */
        _free_ char *path = xasprintf("/proc/%lu/stat", (unsigned long)pid);
        for (;;) {
                char state = 0;
                FILE *f = fopen(path, "re");
                if (!f)
                        break;
                int n = fscanf(f, "%*d (%*[^)]) %c", &state);
                fclose(f);
                if (n != 1 || state == 'Z' || state == 'X')
                        break;
                ASSERT_TRUE(state == 'S' || state == 'R' || state == 'D');
        }
}

TEST(a_grandchild_with_the_pipe_open_does_not_block_us) {
        _cleanup_(child_result_done) ChildResult c = {};
        uint64_t pid = 0;
        ASSERT_OK(child_run(SCRIPT("sleep 1000 & printf %s $!"), 600 * USEC_PER_SEC, 100, &c));
        ASSERT_TRUE(!c.timed_out);
        ASSERT_EQ(c.status, 0);
        ASSERT_OK(parse_u64(c.output, &pid));
        ASSERT_EQ(kill((pid_t)pid, SIGKILL), 0);
}

TEST(a_child_with_endless_output_ends_at_the_deadline) {
        _cleanup_(child_result_done) ChildResult c = {};
        alarm(60);                      /* instead of a test that never ends */
        ASSERT_OK(child_run(SCRIPT("cat /dev/zero & cat /dev/zero & cat /dev/zero & exec cat /dev/zero"), 300 * USEC_PER_MSEC, 100, &c));
        ASSERT_TRUE(c.timed_out && c.cut);
        child_result_done(&c);
        /* Orphans with the pipe open, which die when it is closed. */
        ASSERT_OK(child_run(SCRIPT("cat /dev/zero & cat /dev/zero & cat /dev/zero & echo over >&2"), 600 * USEC_PER_SEC, 100, &c));
        alarm(0);
        ASSERT_TRUE(!c.timed_out);
        ASSERT_STREQ(c.errors, "over");
}

TEST(a_child_that_survives_sigkill_is_left_behind) {
        _cleanup_(child_result_done) ChildResult c = {};
        uint64_t tracer = 0, begin = now_usec();
        int status = 0, fds[2];
        ASSERT_EQ(pipe(fds), 0);        /* the child inherits it */
        _free_ char *fd = xasprintf("%d", fds[1]);
        alarm(60);                      /* instead of a test that never ends */
        ASSERT_OK(child_run_until(ARGV(program_invocation_name, (char *)"stuck", fd), begin + 50 * USEC_PER_SEC, fds[0], 100, &c));
        alarm(0);
        close(fds[0]);
        close(fds[1]);
        if (c.status == 77)
                SKIP("tracing is not allowed here");
        ASSERT_TRUE(c.timed_out);
        ASSERT_EQ(c.status, 128 + SIGKILL);
        ASSERT_TRUE(now_usec() - begin < 30 * USEC_PER_SEC);
        ASSERT_EQ(waitpid(-1, &status, WNOHANG), 0);    /* it is still there */
        ASSERT_OK(parse_u64(c.output, &tracer));
        ASSERT_EQ(kill((pid_t)tracer, SIGKILL), 0);
        ASSERT_TRUE(waitpid(-1, &status, 0) > 0);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(a_child_that_cannot_be_watched_is_killed_and_reaped) {
        ChildResult c = {};
        int status = 0;
        if (TRANSLATED_BY("qemu-user"))
                SKIP("vfork() is fork() here, and the child has no group yet when it is to be killed");
        no_pidfd = true;
        ASSERT_ERROR(child_run(SCRIPT("exec sleep 1000"), 60 * USEC_PER_SEC, 100, &c), EMFILE);
        no_pidfd = false;
        ASSERT_EQ(waitpid(-1, &status, WNOHANG), -1);
        ASSERT_EQ(errno, ECHILD);
}

TEST(stdin_is_empty_and_no_descriptor_leaks) {
        _cleanup_(child_result_done) ChildResult c = {};
        /* The child must not inherit the environment of the test here. */
        ASSERT_EQ(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC), 0);
        ASSERT_OK(child_run(SCRIPT("cat; ls /proc/self/fd | wc -l"), 60 * USEC_PER_SEC, 100, &c));
        ASSERT_EQ(atoi(c.output), 4);           /* 0, 1, 2, and the directory ls reads */
}

TEST(a_child_has_default_signals) {
        _cleanup_(child_result_done) ChildResult c = {};
        unsigned long long blocked = 1, ignored = 1;
        sigset_t all, old;
        sigfillset(&all);
        ASSERT_EQ(sigprocmask(SIG_BLOCK, &all, &old), 0);
        signal(SIGPIPE, SIG_IGN);
        ASSERT_OK(child_run(ARGV((char *)"grep", (char *)"-E", (char *)"^Sig(Blk|Ign)", (char *)"/proc/self/status"), 60 * USEC_PER_SEC, 200, &c));
        signal(SIGPIPE, SIG_DFL);
        ASSERT_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
        ASSERT_EQ(sscanf(c.output, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
        ASSERT_EQ(blocked, 0);
        ASSERT_EQ(ignored & 0x7fffffff, 0);     /* above are two that the C library keeps for itself */
}

static int say(void *text) {
        (void)!write(STDOUT_FILENO, text, strlen(text));
        return 7;
}

static int hang(void *text) {
        (void)say(text);
        return pause();
}

TEST(a_function_runs_in_a_process_with_a_deadline) {
        _cleanup_(child_result_done) ChildResult said = {}, hung = {};
        char text[] = "hello";
        ASSERT_EQ(child_call(say, text, 60 * USEC_PER_SEC, 100, &said), 0);
        ASSERT_EQ(said.status, 7);
        ASSERT_STREQ(said.output, "hello");
        ASSERT_TRUE(!said.timed_out);
        ASSERT_EQ(child_call(hang, text, USEC_PER_SEC / 10, 100, &hung), 0);
        ASSERT_TRUE(hung.timed_out);
        ASSERT_EQ(hung.status, 137);
        ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1);
}

/* Its reader is stopped, so that the pipe is full when that reader dies. */
static int fill(void *argument) {
        static const char much[1 << 20];
        (void)argument;
        kill(getppid(), SIGSTOP);
        return write(STDOUT_FILENO, much, sizeof much) < 0;
}

TEST(a_function_ends_when_its_reader_dies) {
        _cleanup_(close_fd) int seen = -1;
        int fds[2], status;
        ASSERT_EQ(pipe(fds), 0);
        seen = fds[0];
        pid_t reader = fork();
        if (reader == 0) {
                ChildResult result;
                close(fds[0]);
                _exit(child_call(fill, NULL, 60 * USEC_PER_SEC, 100, &result) < 0);
        }
        close(fds[1]);
        ASSERT_EQ(waitpid(reader, &status, WUNTRACED), reader);
        ASSERT_TRUE(WIFSTOPPED(status));
        ASSERT_EQ(kill(reader, SIGKILL), 0);
        ASSERT_EQ(waitpid(reader, &status, 0), reader);
        struct pollfd end = { .fd = seen, .events = POLLIN };
        ASSERT_EQ(poll(&end, 1, 60000), 1);     /* both processes have ended */
        ASSERT_TRUE(end.revents & POLLHUP);
}
TEST_MAIN
