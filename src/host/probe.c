/* SPDX-License-Identifier: Apache-2.0
 * Paths → child → a thread for each device → Contents, by packets over a socket. A read of a dead disk
 * never returns, and no process ends while the kernel keeps one of its threads. So a child reads, and we
 * abandon it at the deadline. */
#include "host/detect.h"

#include "base/str.h"
#include "base/time.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE_MAX (128U << 10)

static void add_string(Text *t, const char *s) {
        size_t size = s ? strlen(s) + 1 : 0;    /* 0: NULL */
        text_add_bytes(t, &size, sizeof size);
        text_add_bytes(t, s ?: "", size);
}

/* A failed write shows as a closed socket at the reader. */
static void message_send(int fd, Text *t) {
        while (send(fd, t->data, t->size, MSG_NOSIGNAL) < 0 && errno == EINTR)
                continue;
        text_done(t);
}

typedef struct Rest { const char *data; size_t size; } Rest;

/* -EPIPE: the other side has closed. */
static int message_read(int fd, char *buffer, Rest *ret) {
        ssize_t n;
        while ((n = recv(fd, buffer, MESSAGE_MAX, 0)) < 0 && errno == EINTR)
                continue;
        *ret = (Rest){ buffer, (size_t)MAX(n, 0) };
        return n < 0 ? -errno : n == 0 ? -EPIPE : 0;
}

static bool take_bytes(Rest *r, void *to, size_t size) {
        if (r->size < size)
                return false;
        memcpy(to, r->data, size);
        r->data += size;
        r->size -= size;
        return true;
}

static bool take_string(Rest *r, char **ret) {
        size_t size;
        if (!take_bytes(r, &size, sizeof size) || size > r->size)
                return false;
        *ret = size > 0 ? xmemdup(r->data, size - 1) : NULL;
        r->data += size;
        r->size -= size;
        return true;
}

/* then the content strings, and the error */
typedef struct Answer { size_t device; int result; Content content; Cause cause; } Answer;

static char **answer_string(Content *c, size_t i) {
        char **strings[] = { &c->type, &c->label, &c->uuid, &c->raid.uuid, &c->raid.name, &c->error };
        return i < ARRAY_SIZE(strings) ? strings[i] : NULL;
}

static void answer_send(int fd, Answer a, const char *error) {
        Text t = {};
        text_add_bytes(&t, &a, sizeof a);
        for (size_t i = 0; answer_string(&a.content, i); i++)
                add_string(&t, *answer_string(&a.content, i));
        add_string(&t, error);
        message_send(fd, &t);
}

typedef struct Probe { const Root *root; char *path; size_t device; int fd; } Probe;

static void *probe_run(void *userdata) {
        const Probe *p = userdata;
        Answer a = { .device = p->device };
        Diag diag = {};
        a.result = content_probe(p->root, p->path, &a.content, &diag);
        const Diagnostic *e = diag_first_error(&diag);
        a.cause = e ? e->cause : CAUSE_NONE;
        answer_send(p->fd, a, e ? e->text : NULL);
        return NULL;
}

static void probe_start(const Root *root, int fd, char *path, size_t device) {
        Probe *p = xcalloc(1, sizeof *p);
        pthread_t thread;
        *p = (Probe){ root, path, device, fd };
        int r = -pthread_create(&thread, NULL, probe_run, p);
        _free_ char *error = r < 0 ? xasprintf("cannot start a thread to examine %s: %s", path, strerror(-r))
                                    : NULL;
        if (error)
                answer_send(fd, (Answer){ .device = device, .result = r, .cause = CAUSE_INTERNAL }, error);
}

/* A child that hangs in the kernel must not hold the lock of this run or a pipe to a reader of messages. */
static void let_go(int *fd) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = STDIN_FILENO; null >= 0 && i <= STDERR_FILENO; i++)
                (void)!dup2(null, i);
        *fd = dup3(*fd, STDERR_FILENO + 1, O_CLOEXEC) >= 0 ? STDERR_FILENO + 1 : *fd;
        (void)!close_range((unsigned)*fd + 1, ~0U, 0);
}

/* Takes one request. Its threads answer until the parent closes the socket or kills it. */
static void probe_in_child(const char *root_path, int fd) {
        char *buffer = xcalloc(MESSAGE_MAX, 1), *path;
        sigset_t all;
        Root *root;
        Rest rest;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        let_go(&fd);
        if (root_new(root_path, &root) < 0 || message_read(fd, buffer, &rest) < 0)
                return;
        for (size_t i = 0; take_string(&rest, &path); i++)
                probe_start(root, fd, path, i);
        (void)!message_read(fd, buffer, &rest);
}

int prober_start(const Root *root, Prober *ret, Diag *diag) {
        int fds[2] = { -1, -1 };
        pid_t child = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0 ? -1 : fork();
        if (child < 0) {
                int r = -errno;
                close_fd(&fds[0]);
                close_fd(&fds[1]);
                return diag_error(diag, r, CAUSE_INTERNAL, "cannot start a process to examine the disks: %s",
                                  strerror(-r));
        }
        if (child == 0) {
                close(fds[0]);
                probe_in_child(root_path(root), fds[1]);
                _exit(0);
        }
        close(fds[1]);
        *ret = (Prober){ .child = child, .fd = fds[0] };
        return 0;
}

void prober_ask(Prober *p, const Probed *all, size_t n, uint64_t timeout_usec) {
        Text order = {};
        assert(p->child > 0 && !p->pending);
        for (size_t i = 0; i < n; i++)
                add_string(&order, all[i].path);
        p->pending = true;
        p->timeout_usec = timeout_usec;
        p->until_usec = now_usec() + timeout_usec;
        message_send(p->fd, &order);
}

/* 1: a message came, 0: the time is up, or a negative errno. */
static int wait_for_answer(const Prober *p) {
        int r;
        do                      /* also past the deadline: answers may lie in the socket */
                r = stop_wait(p->fd, p->until_usec);
        while (r == 0 && now_usec() < p->until_usec);
        return r;
}

typedef struct Outcome { bool answered; Cause cause; char *error; } Outcome;

/* Answers come in any order. */
static bool take_answer(Rest r, Probed *all, Outcome *outcomes, size_t n) {
        Answer a;
        if (!take_bytes(&r, &a, sizeof a) || a.device >= n)
                return false;
        Content *c = &all[a.device].content;
        *c = a.content;
        for (size_t i = 0; answer_string(c, i); i++)
                if (!take_string(&r, answer_string(c, i)))
                        *answer_string(c, i) = NULL;
        all[a.device].result = a.result;
        outcomes[a.device] = (Outcome){ .answered = true, .cause = a.cause };
        return take_string(&r, &outcomes[a.device].error);
}

int prober_take(Prober *p, Probed *all, size_t n, Diag *diag) {
        _free_ char *buffer = xcalloc(MESSAGE_MAX, 1);
        _free_ Outcome *outcomes = xcalloc(n, sizeof *outcomes);
        size_t left = n;
        Rest rest;
        int r = 0;
        while (left > 0 && (r = wait_for_answer(p)) > 0 && (r = message_read(p->fd, buffer, &rest)) >= 0)
                left -= take_answer(rest, all, outcomes, n);
        p->pending = left > 0;
        for (size_t i = 0; i < n; i++) {
                _free_ char *error = outcomes[i].error;
                if (error)
                        (void)diag_error(diag, all[i].result, outcomes[i].cause, "%s", error);
                if (outcomes[i].answered)
                        continue;
                all[i].result = r;
                all[i].content = (Content){ .kind = r < 0 ? CONTENT_UNKNOWN : CONTENT_UNREADABLE };
                if (r >= 0)
                        all[i].content.error = xasprintf("it did not answer within %u s",
                                                         (unsigned)(p->timeout_usec / USEC_PER_SEC));
        }
        return r == -EINTR || r >= 0
                       ? 0
                       : diag_error(diag, r, CAUSE_INTERNAL,
                                    "the process that examines the disks exited without an answer: %s",
                                    strerror(-r));
}

/* Abandons a child that hangs in the kernel. */
void prober_end(Prober *p) {
        if (p->child <= 0)
                return;
        close_fd(&p->fd);
        (void)kill(p->child, SIGKILL);
        while (waitpid(p->child, NULL, p->pending ? WNOHANG : 0) < 0 && errno == EINTR)
                continue;
        *p = (Prober){};
}
