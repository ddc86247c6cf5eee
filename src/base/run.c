/* SPDX-License-Identifier: Apache-2.0
 * Argument vector → exit status, output, last lines of stderr. A pidfd shows the end beside open pipes. */
#include "base/run.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ERRORS_KEPT 2048U
#define PIPE_HOLDS  (64U << 10)
/* For a killed process; one that waits for a dead disk never ends. */
#define END_USEC    (5 * USEC_PER_SEC)

typedef struct Stream { int fd; Text text; size_t limit; bool keep_tail, cut; } Stream;

static void stream_done(Stream *s) {
        close_fd(&s->fd);
        text_done(&s->text);
}

void child_result_done(ChildResult *r) {
        FREE_ALL(r->output, r->errors);
        *r = (ChildResult){};
}

static void stream_add(Stream *s, const char *data, size_t n) {
        size_t room = s->limit - MIN(s->limit, s->text.size);
        if (!s->keep_tail) {
                s->cut |= n > room;
                text_add_bytes(&s->text, data, MIN(n, room));
                return;
        }
        text_add_bytes(&s->text, data, n);
        if (s->text.size > s->limit) {
                size_t drop = s->text.size - s->limit;
                memmove(s->text.data, s->text.data + drop, s->limit + 1);
                s->text.size = s->limit;
                s->cut = true;
        }
}

/* At most the capacity of a pipe (pipe(7)): a child that writes fast must not hold us past its deadline. */
static void stream_read(Stream *s) {
        char buffer[4096];
        for (size_t taken = 0; s->fd >= 0 && taken < PIPE_HOLDS;) {
                ssize_t n = read(s->fd, buffer, sizeof buffer);
                if (n > 0) {
                        stream_add(s, buffer, (size_t)n);
                        taken += (size_t)n;
                } else if (n == 0 || (errno != EINTR && errno != EAGAIN))
                        close_fd(&s->fd);
                else if (errno == EAGAIN)
                        return;
        }
}

/* Only our end is non-blocking; programs expect a blocking stdout. */
static int stream_open(Stream *s, int *ret_child_fd) {
        int fds[2];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        s->fd = fds[0];
        *ret_child_fd = fds[1];
        return 0;
}

/* in: its stdin, or -1 for an empty one. */
static int spawn(char *const *argv, int in, int out, int err, pid_t *ret) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none, all;

        sigemptyset(&none);
        sigfillset(&all);
        posix_spawn_file_actions_init(&actions);
        if (in < 0)
                posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        else
                posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes,
                                 POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        int r = -posix_spawnp(ret, argv[0], &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return r;
}

/* Reads both streams until the child ends. false: the deadline, or cancel_fd is readable. */
static bool attend(int pidfd, int cancel_fd, Stream *out, Stream *err, uint64_t deadline) {
        for (;;) {
                struct pollfd fds[] = {
                        { .fd = pidfd,   .events = POLLIN },
                        { .fd = out->fd, .events = POLLIN },
                        { .fd = err->fd, .events = POLLIN },
                        { .fd = cancel_fd, .events = POLLIN },
                };
                uint64_t now = now_usec();
                if (now >= deadline)
                        return false;
                int n = poll(fds, ARRAY_SIZE(fds), (int)MIN((deadline - now + 999) / 1000, 60000ULL));
                if (n <= 0)
                        continue;
                stream_read(out);
                stream_read(err);
                if (fds[0].revents)
                        return true;
                if (fds[3].revents)
                        return false;
        }
}

/* Runs call in a fork, without our end of the pipe: it would wait for itself after our death. */
static int spawn_call(int (*call)(void *), void *argument, int out, Stream *ours, pid_t *ret) {
        *ret = fork();
        if (*ret < 0)
                return -errno;
        if (*ret > 0)
                return 0;
        setpgid(0, 0);
        dup2(out, STDOUT_FILENO);
        close_fd(&ours->fd);
        _exit(call(argument));
}

static int collect(pid_t pid, int cancel_fd, Stream *out, Stream *err, uint64_t deadline, ChildResult *ret) {
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), e = pidfd < 0 ? -errno : 0;
        bool in_time = pidfd >= 0 && attend(pidfd, cancel_fd, out, err, deadline), ended = in_time;
        siginfo_t how = { .si_code = CLD_KILLED };

        how.si_status = SIGKILL;
        if (!in_time) {
                kill(-pid, SIGKILL);
                ended = pidfd < 0 || attend(pidfd, -1, out, err, now_usec() + END_USEC);
        }
        close_fd(&pidfd);
        while (ended && waitid(P_PID, (id_t)pid, &how, WEXITED) < 0)
                if (errno != EINTR)
                        return -errno;
        if (e < 0)
                return e;
        stream_read(out);
        stream_read(err);
        const char *text = err->text.data ?: "", *line = err->cut ? strchr(text, '\n') : NULL;
        *ret = (ChildResult){
                .status = how.si_code == CLD_EXITED ? how.si_status : 128 + how.si_status,
                .timed_out = !in_time,
                .cut = out->cut,
                .size = out->text.size,
                .errors = str_strip(line ?: text),
        };
        ret->output = text_take(&out->text);
        return 0;
}

/* Either argv or call; joined: stderr goes to the output. */
static int run(char *const *argv, int in, bool joined, int (*call)(void *), void *argument, uint64_t deadline,
               int cancel_fd, size_t limit, ChildResult *ret) {
        _cleanup_(stream_done) Stream out = { .fd = -1, .limit = limit };
        _cleanup_(stream_done) Stream err = { .fd = -1, .limit = ERRORS_KEPT, .keep_tail = true };
        _cleanup_(close_fd) int child_out = -1, child_err = -1;
        pid_t pid = -1;
        int r;

        r = stream_open(&out, &child_out) ?: stream_open(&err, &child_err);
        if (r < 0)
                return r;
        r = argv ? spawn(argv, in, child_out, joined ? child_out : child_err, &pid)
                 : spawn_call(call, argument, child_out, &out, &pid);
        if (r < 0)
                return r;
        close_fd(&child_out);
        close_fd(&child_err);
        return collect(pid, cancel_fd, &out, &err, deadline, ret);
}

const char *kill_hint(int signal) {
        return signal != SIGKILL ? ""
                                 : " (from a user, or from the kernel when memory ran out: see journalctl "
                                   "-k -g 'oom|out of memory')";
}

int child_run(char *const *argv, uint64_t timeout_usec, size_t limit, ChildResult *ret) {
        return run(argv, -1, false, NULL, NULL, now_usec() + timeout_usec, -1, limit, ret);
}

int child_run_fed(char *const *argv, int in, uint64_t deadline, size_t limit, ChildResult *ret) {
        return run(argv, in, false, NULL, NULL, deadline, -1, limit, ret);
}

int child_run_until(char *const *argv, uint64_t deadline, int cancel_fd, size_t limit, ChildResult *ret) {
        return run(argv, -1, false, NULL, NULL, deadline, cancel_fd, limit, ret);
}

int child_run_joined(char *const *argv, uint64_t deadline, int cancel_fd, size_t limit, ChildResult *ret) {
        return run(argv, -1, true, NULL, NULL, deadline, cancel_fd, limit, ret);
}

int child_call(int (*call)(void *), void *argument, uint64_t timeout_usec, size_t limit, ChildResult *ret) {
        return run(NULL, -1, false, call, argument, now_usec() + timeout_usec, -1, limit, ret);
}
