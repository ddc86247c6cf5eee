/* SPDX-License-Identifier: Apache-2.0
 * Starts containerd and kubelet of this machine with the planned files, in namespaces of their own. Their
 * root is that of the machine, read-only, with memory where they write. They see a loopback, no socket of
 * a running daemon, and only the control groups made for them. The first process dies with us, and the
 * others with it. tests/oracles/kubelet.py does the same. */
#include "doctor/ask.h"
#include "doctor/look.h"

#include "base/paths.h"
#include "base/run.h"
#include "base/time.h"
#include "doc/env-file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Plus ASK_CLEAN_USEC: 20 s in all. */
#define LIMIT_USEC  (18 * USEC_PER_SEC)
/* kubelet listens before it has looked at all TLS settings. */
#define GRACE_USEC  USEC_PER_SEC
/* With log level error, containerd does not log that it has booted. */
#define SILENT_USEC (5 * USEC_PER_SEC)
/* containerd listens before it answers. */
#define BOOT_USEC   (300 * USEC_PER_MSEC)

static void ask_done(Ask *a) {
        for (size_t i = 0; i < a->n_groups; i++) {
                FREE_ALL(a->groups[i].own, a->groups[i].kind);
                close_fd(&a->groups[i].fd);
        }
        strv_free(a->containerd);
        strv_free(a->kubelet);
        FREE_ALL(a->alpha, a->why);
        for (size_t i = 0; i < ARRAY_SIZE(a->pipes); i++) {
                close_fd(&a->pipes[i][0]);
                close_fd(&a->pipes[i][1]);
        }
}

static void loopback_up(void) {
        _cleanup_(close_fd) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        (void)!ioctl(fd, SIOCSIFFLAGS, &lo);
}

/* Closes the parent's end of out. */
static void start(char *const *argv, int *out) {
        sigset_t none;
        if (fork() > 0) {
                close_fd(out);
                return;
        }
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (int n = 1; n < NSIG; n++)
                (void)!signal(n, SIG_DFL);
        int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(in, STDIN_FILENO);
        dup2(*out, STDOUT_FILENO);
        dup2(*out, STDERR_FILENO);
        execve(argv[0], argv, environ);
        _exit(127);
}

/* The first process of the namespace. A pipe without a writer shows that a daemon has ended. */
_noreturn_ static void first_process(Ask *a) {
        char byte;
        int again = a->pipes[START_AGAIN][0];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_fd(&a->pipes[START_AGAIN][1]);
        char *why = ask_root_make(a);
        (void)!write(a->pipes[ROOT_FAULT][1], why ?: ".", strlen(why ?: "."));
        if (why)
                _exit(1);
        close_fd(&a->pipes[ROOT_FAULT][1]);
        loopback_up();
        unsetenv("NOTIFY_SOCKET");
        if (a->alpha)
                setenv("KUBELET_CONFIG_DROPIN_DIR_ALPHA", a->alpha, 1);
        start(a->containerd, &a->pipes[CONTAINERD_SAYS][1]);
        start(a->kubelet, &a->pipes[KUBELET_SAYS][1]);
        if (read(again, &byte, 1) == 1)
                start(a->kubelet, &a->pipes[KUBELET_SAYS_AGAIN][1]);
        close_fd(&a->pipes[KUBELET_SAYS_AGAIN][1]);
        while (read(again, &byte, 1) > 0)
                ;
        _exit(0);
}

typedef struct Daemon {
        int *fd;                        /* -1: it has ended */
        Text line;
        char *said;                     /* the last line that may say why it ends, else the last */
        bool fatal, stands, refuses;
        uint64_t stands_usec;
} Daemon;

static void daemon_done(Daemon *d) {
        text_done(&d->line);
        free(d->said);
}

/* A line of klog or JSON with words of the main function of kubelet, or of its managers. */
static bool is_fatal(const char *line) {
        static const char *const begins[] = { "panic:", "fatal error:", "Error:", "containerd: " },
                                 *const words[] = { "\"command failed\"", "run.go:", "\"Failed to " };
        bool klog = line[0] && is_digit(line[1]) && is_digit(line[2]), json = *line == '{';
        for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
                if (startswith(line, begins[i]))
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if ((json || (klog && *line == 'E')) && strstr(line, words[i]))
                        return true;
        return (klog && *line == 'F') || (json && strstr(line, "\"level\":\"fatal\""));
}

static void line_take(Daemon *d, bool kubelet, const char *line) {
        bool plugin = !kubelet && !d->refuses && strstr(line, "failed to load plugin") &&
                      strstr(line, ".cri"),
             fatal = is_fatal(line) || plugin;
        if (strstr(line, kubelet ? "Starting Kubelet Plugin Manager" : "containerd successfully booted")) {
                d->stands = true;
                d->stands_usec = now_usec();
        }
        if (d->refuses || !*line || (d->fatal && !fatal))
                return;
        RENEW(d->said, xstrdup(line));
        d->fatal = fatal;
        d->refuses |= plugin;
}

static void daemon_read(Daemon *d, bool kubelet) {
        char buffer[4096];
        ssize_t n = read(*d->fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
                return;
        if (n <= 0)
                close_fd(d->fd);
        for (ssize_t i = 0; i < n || (n <= 0 && d->line.size > 0);) {
                const char *end = n > 0 ? memchr(buffer + i, '\n', (size_t)(n - i)) : NULL;
                size_t size = n > 0 ? (size_t)((end ?: buffer + n) - (buffer + i)) : 0;
                if (d->line.size < 1 << 16)
                        text_add_bytes(&d->line, buffer + i, size);
                i += (ssize_t)size + (end != NULL);
                if (n > 0 && !end)
                        break;
                _free_ char *line = text_take(&d->line);
                line_take(d, kubelet, line);
        }
}

static bool waits_for_containerd(const Daemon *kubelet) {
        return kubelet->said && strstr(kubelet->said, "validate service connection");
}

/* kubelet checks its settings while containerd starts. If it ends because containerd is missing, it starts
 * once more. */
static void listen_to(Ask *a, Daemon *containerd, Daemon *kubelet) {
        uint64_t begin = now_usec();
        bool again = false;
        for (uint64_t now = begin; now < a->end_usec && !stop_signal(); now = now_usec()) {
                bool up = now > (containerd->stands ? containerd->stands_usec + BOOT_USEC
                                                    : begin + SILENT_USEC),
                     over = containerd->refuses || *containerd->fd < 0;
                containerd->refuses |= *containerd->fd < 0;
                containerd->stands |= kubelet->stands;
                if (kubelet->stands && (*kubelet->fd < 0 || now > kubelet->stands_usec + GRACE_USEC))
                        return;
                if (*kubelet->fd < 0 && (again || over || !waits_for_containerd(kubelet))) {
                        kubelet->refuses = true;
                        if (over || up)
                                return;
                } else if (*kubelet->fd < 0 && up) {
                        again = true;
                        kubelet->fd = &a->pipes[KUBELET_SAYS_AGAIN][0];
                        kubelet->fatal = false;
                        (void)!write(a->pipes[START_AGAIN][1], "", 1);
                }
                struct pollfd fds[] = { { .fd = *containerd->fd, .events = POLLIN },
                                        { .fd = *kubelet->fd, .events = POLLIN } };
                if (poll(fds, ARRAY_SIZE(fds), 100) <= 0)
                        continue;
                if (fds[0].revents)
                        daemon_read(containerd, false);
                if (fds[1].revents)
                        daemon_read(kubelet, true);
        }
}

static void conclude(const Daemon *d, Asked *ret) {
        ret->verdict = d->refuses || (d->stands && *d->fd < 0) ? CHECK_FAILED
                       : d->stands                             ? CHECK_OK
                                                               : CHECK_UNKNOWN;
        ret->said = ret->verdict == CHECK_FAILED ? xstrdup(d->said ?: "it exits without a message")
                    : ret->verdict == CHECK_OK   ? NULL
                                                 : xasprintf("it neither starts nor exits within %d s; try "
                                                             "again with less load",
                                                             (int)(LIMIT_USEC / USEC_PER_SEC));
}

/* NULL, with a->why: not found. The caller frees it. */
static char *find_daemon(Ask *a, const char *name) {
        _free_ char *odd = NULL;
        char *path = program_find(a->image->root, "", name, &odd);
        if (!path && !a->why)
                a->why = odd ? xasprintf("%s is not executable; chmod 755 %s, or omit --ask", odd, odd)
                             : xasprintf("%s is not in the PATH of systemd; install it in /usr/bin, or omit "
                                         "--ask",
                                         name);
        return path;
}

/* Below --v=2 kubelet does not log that it has started. */
static int command_lines(Ask *a) {
        const Action *environment = plan_find(a->plan, "write-file:" KUBELET_ENVIRONMENT);
        const char *driver = json_get_text(a->config->kubelet.config, "cgroupDriver");
        _free_ char *kubelet = find_daemon(a, "kubelet"), *containerd = find_daemon(a, "containerd");
        if (!environment && !a->why)
                a->why = xstrdup("the plan does not write " KUBELET_ENVIRONMENT ", which kubelet needs; "
                                 "correct the NodeConfig, or omit --ask");
        if (a->why || !environment)
                return -ENOENT;
        _free_ char *line = assignment_in_environment(environment->file.content, "NODEADM_KUBELET_ARGS");
        _strv_ char **words = assignment_split(line ?: "");
        a->alpha = assignment_in_environment(environment->file.content, "KUBELET_CONFIG_DROPIN_DIR_ALPHA");
        strv_push(&a->kubelet, TAKE_PTR(kubelet));
        strv_extend(&a->kubelet, words);
        strv_add(&a->kubelet, "--v=2");
        if (!*driver || streq(driver, "systemd"))
                strv_add(&a->kubelet, "--cgroup-driver=cgroupfs");
        strv_push(&a->containerd, TAKE_PTR(containerd));
        strv_add(&a->containerd, "--config");
        strv_add(&a->containerd, CONTAINERD_CONFIG);
        return 0;
}

/* Why its root could not be made, else NULL; the caller frees it. */
static char *read_fault(Ask *a) {
        _cleanup_(text_done) Text why = {};
        char buffer[512];
        ssize_t n = 1;
        int fd = a->pipes[ROOT_FAULT][0];
        close_fd(&a->pipes[ROOT_FAULT][1]);
        while (n > 0) {
                int r = stop_wait(fd, a->end_usec);
                if (r < 0 || (r == 0 && now_usec() >= a->end_usec))
                        return xstrdup("the root directory of the test was not ready in time; try again "
                                       "when this "
                                       "machine is less busy");
                n = r > 0 ? read(fd, buffer, sizeof buffer) : 1;
                text_add_bytes(&why, buffer, r > 0 && n > 0 ? (size_t)n : 0);
        }
        if (why.data && streq(why.data, "."))
                return NULL;
        return why.data ? text_take(&why)
                        : xstrdup("the first process of the test was killed; look for an out-of-memory "
                                  "kill in dmesg");
}

/* SIGKILL does not end a process that waits for a disk. */
static void end(pid_t pid) {
        uint64_t until = now_usec() + ASK_CLEAN_USEC;
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, WNOHANG) == 0 && now_usec() < until)
                usleep(10 * USEC_PER_MSEC);
}

static void ask(Ask *a, Asked ret[static 2]) {
        _cleanup_(daemon_done) Daemon containerd = { .fd = &a->pipes[CONTAINERD_SAYS][0] },
                                      kubelet = { .fd = &a->pipes[KUBELET_SAYS][0] };
        a->end_usec = now_usec() + LIMIT_USEC;
        pid_t pid = (pid_t)syscall(SYS_clone,
                                   CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | SIGCHLD, NULL,
                                   NULL, NULL, NULL);
        if (pid == 0)
                first_process(a);
        for (size_t i = CONTAINERD_SAYS; i <= KUBELET_SAYS_AGAIN; i++)
                close_fd(&a->pipes[i][1]);
        _free_ char *fault =
                pid < 0 ? xasprintf("this machine refuses new namespaces: %s", strerror(errno))
                        : read_fault(a);
        if (!fault)
                listen_to(a, &containerd, &kubelet);
        if (pid > 0)
                end(pid);
        conclude(&containerd, &ret[0]);
        conclude(&kubelet, &ret[1]);
        bool blind = ret[0].verdict == CHECK_FAILED && waits_for_containerd(&kubelet);
        for (size_t i = 0; i < 2; i++)
                if (fault || (i == 1 && blind)) {
                        free(ret[i].said);
                        ret[i] = (Asked){ CHECK_UNKNOWN,
                                          xstrdup(fault ?: "not fully tested, because containerd failed") };
                }
}

int daemons_ask(const Image *image, const Config *config, const Plan *plan, Asked ret[static 2], Diag *diag) {
        _cleanup_(ask_done) Ask a = { .config = config, .plan = plan, .image = image };
        memset(a.pipes, -1, sizeof a.pipes);
        int r = command_lines(&a);
        stop_catch();
        for (size_t i = 0; i < ARRAY_SIZE(a.pipes); i++)
                THEN(r, pipe2(a.pipes[i], O_CLOEXEC) < 0 ? -errno : 0);
        THEN(r, ask_groups_make(&a));
        if (r >= 0)
                ask(&a, ret);
        ask_groups_remove(&a);
        if (r >= 0 && stop_signal())
                r = -EINTR;
        return r >= 0 ? 0
                      : diag_error(diag, r, r == -EINTR ? CAUSE_INTERRUPTED : CAUSE_IMAGE,
                                   "kubelet and containerd could not be tested: %s",
                                   r == -EINTR ? stop_name(stop_signal()) : a.why ?: strerror(-r));
}
