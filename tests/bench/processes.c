/* SPDX-License-Identifier: Apache-2.0
 * Runs a command once and prints how long it took and how many processes were started for it, one line of
 * "name value". The kernel tells (linux/cn_proc.h), so a run is not slowed down as it would be by a tracer.
 * As root, in the first namespaces.
 *
 * usage: processes COMMAND [ARGUMENT...]     its output goes to stderr; exit status: the command's
 *   wall       seconds
 *   processes  that the command started, and those they started; threads are none
 *   elsewhere  programs that others (systemd, udev) executed in the same time */
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PID (1 << 22)       /* PID_MAX_LIMIT (linux/threads.h) */
static bool ours[MAX_PID];

static double now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const char *what) {
        perror(what);
        return 127;
}

static int listen_to_kernel(void) {
        struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
        struct {
                struct nlmsghdr head;
                struct cn_msg message;          /* NOLINT(clang-diagnostic-gnu-variable-sized-type-not-at-end): the kernel reads it so */
                enum proc_cn_mcast_op what;
        } __attribute__((packed)) request = {
                .head = { .nlmsg_len = sizeof request, .nlmsg_type = NLMSG_DONE },
                .message = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = sizeof request.what },
                .what = PROC_CN_MCAST_LISTEN,
        };
        int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR), room = 8 << 20;
        if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0 ||
            send(fd, &request, sizeof request, 0) < 0)
                return -1;
        return fd;
}

/* Waits on the pipe until a reader listens, so that nothing is lost. */
static pid_t start(char **argv, int *ret_go) {
        int go[2];
        char c;
        if (pipe(go) < 0)
                return -1;
        pid_t pid = fork();
        if (pid == 0) {
                close(go[1]);
                if (read(go[0], &c, 1) != 1)
                        _exit(127);
                close(go[0]);
                dup2(STDERR_FILENO, STDOUT_FILENO);
                execvp(argv[0], argv);
                _exit(fail(argv[0]));
        }
        close(go[0]);
        *ret_go = go[1];
        return pid;
}

/* Counts until the command has ended. 0, or -1: an event was lost. */
static int count(int fd, pid_t pid, int *processes, int *elsewhere) {
        for (;;) {
                union { char bytes[4096]; struct nlmsghdr head; } u;
                ssize_t n = recv(fd, &u, sizeof u, 0);
                if (n < 0 && errno != EINTR)
                        return -1;      /* ENOBUFS: they came too fast */
                if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct cn_msg) + sizeof(struct proc_event)))
                        continue;
                const struct cn_msg *message = NLMSG_DATA(&u.head);
                struct proc_event e;
                memcpy(&e, message->data, sizeof e);
                if (e.what == PROC_EVENT_FORK &&
                    e.event_data.fork.child_pid == e.event_data.fork.child_tgid) {
                        bool mine = ours[e.event_data.fork.parent_tgid % MAX_PID];
                        ours[e.event_data.fork.child_pid % MAX_PID] =
                                mine || e.event_data.fork.child_pid == pid;
                        *processes += mine;
                } else if (e.what == PROC_EVENT_EXEC)
                        *elsewhere += !ours[e.event_data.exec.process_tgid % MAX_PID];
                else if (e.what == PROC_EVENT_EXIT && e.event_data.exit.process_pid == pid)
                        return 0;
        }
}

int main(int argc, char **argv) {
        int processes = 0, elsewhere = 0, status = 0, go = -1;
        if (argc < 2)
                return 2;
        int fd = listen_to_kernel();
        pid_t pid = fd < 0 ? -1 : start(argv + 1, &go);
        if (pid < 0)
                return fail("processes");
        double begin = now();
        if (write(go, "", 1) != 1 || count(fd, pid, &processes, &elsewhere) < 0)
                return fail("processes");
        double wall = now() - begin;
        if (waitpid(pid, &status, 0) < 0)
                return fail("waitpid");
        printf("wall %.3f\nprocesses %d\nelsewhere %d\n", wall, processes, elsewhere);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
