/* SPDX-License-Identifier: Apache-2.0
 * Paths → child → a thread for each device → Contents, over a socket. A thread may never end, so it
 * owns its data; the last of thread and waiter frees it. A process with a thread in the kernel cannot end
 * (closing a disk waits for its requests), hence the child. */
#include "host/probe.h"

#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_USEC (3 * USEC_PER_SEC)   /* for the child, beyond the time of the devices */

typedef struct Probe {
        Root *root;
        char *path;
        int result;
        Content content;
        Diag diag;
        int ended_fd;
        pthread_mutex_t lock;
        bool ended, left;               /* under the lock: has its answer; is abandoned */
        pthread_t thread;
        bool running;
        uint64_t begin_usec;
} Probe;

static void probe_free(Probe *p) {
        root_free(p->root);
        free(p->path);
        content_done(&p->content);
        diag_done(&p->diag);
        close_fd(&p->ended_fd);
        pthread_mutex_destroy(&p->lock);
        free(p);
}

static void *probe_run(void *userdata) {
        Probe *p = userdata;
        p->result = content_probe(p->root, p->path, &p->content, &p->diag);
        pthread_mutex_lock(&p->lock);
        bool left = p->left;
        p->ended = true;
        if (!left)
                (void)!eventfd_write(p->ended_fd, 1);
        pthread_mutex_unlock(&p->lock);
        if (left)
                probe_free(p);
        return NULL;
}

/* Signals go to the waiter. */
static int thread_start(Probe *p) {
        sigset_t all, before;
        sigfillset(&all);
        int r = -pthread_sigmask(SIG_BLOCK, &all, &before);
        if (r < 0)
                return r;
        r = -pthread_create(&p->thread, NULL, probe_run, p);
        p->running = r == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

static Probe *probe_start(const Root *root, const char *path) {
        Probe *p = xcalloc(1, sizeof *p);
        *p = (Probe){ .path = xstrdup(path), .begin_usec = now_usec(), .ended_fd = eventfd(0, EFD_CLOEXEC) };
        pthread_mutex_init(&p->lock, NULL);
        int r = p->ended_fd < 0 ? -errno : root_new(root_path(root), &p->root);
        if (r >= 0)
                r = thread_start(p);
        if (r < 0)
                p->result = diag_error(&p->diag, r, CAUSE_INTERNAL, "no thread to look at %s: %s", path,
                                       strerror(-r));
        return p;
}

/* 1: ended, 0: time is up, -EINTR */
static int probe_wait(const Probe *p, uint64_t deadline_usec) {
        int r = stop_wait(p->ended_fd, deadline_usec);
        while (r == 0 && now_usec() < deadline_usec)
                r = stop_wait(p->ended_fd, deadline_usec);
        return r;
}

/* Leaves it to the thread, unless that has just ended. */
static bool probe_leave(Probe *p) {
        pthread_t thread = p->thread;
        pthread_mutex_lock(&p->lock);
        bool left = p->left = !p->ended;
        pthread_mutex_unlock(&p->lock);
        if (left)
                pthread_detach(thread);
        return left;
}

static int probe_give_up(int r, unsigned long long seconds, Content *ret) {
        if (r >= 0)
                *ret = (Content){ .kind = CONTENT_UNREADABLE,
                                  .error = xasprintf("it did not answer within %llu s", seconds) };
        return r;
}

/* Takes the result and frees the probe; abandons it at the deadline. */
static int probe_take(Probe *p, uint64_t deadline_usec, Content *ret, Diag *diag) {
        uint64_t usec = deadline_usec > p->begin_usec ? deadline_usec - p->begin_usec : 0;
        int r = p->running ? probe_wait(p, deadline_usec) : 1;
        if (r <= 0 && probe_leave(p))
                return probe_give_up(r, (usec + USEC_PER_SEC / 2) / USEC_PER_SEC, ret);
        if (p->running)
                pthread_join(p->thread, NULL);
        r = p->result;
        if (r >= 0) {
                *ret = p->content;
                p->content = (Content){};
        }
        diag_move(diag, &p->diag);
        probe_free(p);
        return r;
}

/* ---- messages: a size, then the content ---- */

static void message_add_string(Text *t, const char *s) {
        size_t size = s ? strlen(s) + 1 : 0;    /* 0: NULL */
        text_add_bytes(t, &size, sizeof size);
        text_add_bytes(t, s ?: "", size);
}

static Text message_new(void) {
        Text t = {};
        size_t size = 0;
        text_add_bytes(&t, &size, sizeof size);
        return t;
}

/* A failed write shows as a closed socket at the reader. */
static void message_send(int fd, Text *t) {
        memcpy(t->data, &t->size, sizeof t->size);
        for (size_t done = 0; done < t->size;) {
                ssize_t k = send(fd, t->data + done, t->size - done, MSG_NOSIGNAL);
                if (k < 0 && errno != EINTR)
                        break;
                done += k > 0 ? (size_t)k : 0;
        }
        text_done(t);
}

#define NO_DEADLINE 0           /* and no signals */

/* 1: a whole message, 0: time is up, or a negative errno. */
static int message_read(int fd, uint64_t deadline_usec, Text *t) {
        char part[4096];
        for (size_t size = SIZE_MAX; t->size < size;) {
                int r = deadline_usec == NO_DEADLINE ? 1 : stop_wait(fd, deadline_usec);
                if (r < 0 || (r == 0 && now_usec() >= deadline_usec))
                        return r;
                ssize_t k = r > 0 ? read(fd, part, sizeof part) : 0;
                if (k < 0 && errno != EINTR)
                        return -errno;
                if (r > 0 && k == 0)
                        return -EPIPE;
                text_add_bytes(t, part, k > 0 ? (size_t)k : 0);
                if (t->size >= sizeof size)
                        memcpy(&size, t->data, sizeof size);
        }
        return 1;
}

typedef struct Rest { const char *data; size_t size; } Rest;

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

/* ---- answers ---- */

/* behind it: strings of content, and the error */
typedef struct Answer { int result; Content content; Cause cause; } Answer;

static char **answer_string(Content *c, size_t i) {
        char **strings[] = { &c->type, &c->label, &c->uuid, &c->raid.uuid, &c->raid.name, &c->error };
        return i < ARRAY_SIZE(strings) ? strings[i] : NULL;
}

static void add_answer(Text *t, Probed *p, const Diag *diag) {
        const Diagnostic *e = diag_first_error(diag);
        Answer a = { .result = p->result, .content = p->content, .cause = e ? e->cause : CAUSE_NONE };
        text_add_bytes(t, &a, sizeof a);
        for (size_t i = 0; answer_string(&p->content, i); i++)
                message_add_string(t, *answer_string(&p->content, i));
        message_add_string(t, e ? e->text : NULL);
}

static bool take_answer(Rest *r, Probed *p, Diag *diag) {
        _free_ char *error = NULL;
        Content strings = {};
        Answer a;
        bool whole = take_bytes(r, &a, sizeof a);
        for (size_t i = 0; whole && answer_string(&strings, i); i++)
                whole = take_string(r, answer_string(&strings, i));
        if (!whole || !take_string(r, &error)) {
                content_done(&strings);
                return false;
        }
        p->result = a.result;
        p->content = a.content;
        for (size_t i = 0; answer_string(&strings, i); i++)
                *answer_string(&p->content, i) = *answer_string(&strings, i);
        if (error)
                (void)diag_error(diag, a.result, a.cause, "%s", error);
        return true;
}

/* ---- the child ---- */

/* A child that hangs in the kernel must not hold the lock of this run or a pipe to a reader of messages. */
static void let_go(int *fd) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = STDIN_FILENO; null >= 0 && i <= STDERR_FILENO; i++)
                (void)!dup2(null, i);
        *fd = dup3(*fd, STDERR_FILENO + 1, O_CLOEXEC) >= 0 ? STDERR_FILENO + 1 : *fd;
        (void)!close_range((unsigned)*fd + 1, ~0U, 0);
}

static void probe_devices(const Root *root, char **paths, uint64_t timeout_usec, Text *answers) {
        uint64_t deadline = now_usec() + timeout_usec;
        Probe **probes = xcalloc(strv_length(paths) + 1, sizeof(Probe *));
        for (size_t i = 0; paths && paths[i]; i++)
                probes[i] = probe_start(root, paths[i]);
        for (size_t i = 0; probes[i]; i++) {
                Probed p = {};
                Diag diag = {};
                p.result = probe_take(probes[i], deadline, &p.content, &diag);
                add_answer(answers, &p, &diag);
        }
}

/* Takes one order, unless the parent ends first. */
static void probe_in_child(const Root *root, int fd) {
        Text order = {}, answers = message_new();
        char **paths = NULL, *path;
        uint64_t timeout_usec;
        size_t size;
        let_go(&fd);
        int r = message_read(fd, NO_DEADLINE, &order);
        Rest rest = { order.data, order.size };
        if (r <= 0 || !take_bytes(&rest, &size, sizeof size) ||
            !take_bytes(&rest, &timeout_usec, sizeof timeout_usec))
                return;
        while (take_string(&rest, &path))
                strv_push(&paths, path);
        probe_devices(root, paths, timeout_usec, &answers);
        message_send(fd, &answers);
}

/* ---- both ---- */

int prober_start(const Root *root, Prober *ret, Diag *diag) {
        int fds[2] = { -1, -1 };
        pid_t child = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ? -1 : fork();
        if (child < 0) {
                int r = -errno;
                close_fd(&fds[0]);
                close_fd(&fds[1]);
                return diag_error(diag, r, CAUSE_INTERNAL, "no process to look at the disks: %s",
                                  strerror(-r));
        }
        if (child == 0) {
                probe_in_child(root, fds[1]);
                _exit(0);
        }
        close(fds[1]);
        *ret = (Prober){ .child = child, .fd = fds[0] };
        return 0;
}

void prober_ask(Prober *p, const Probed *all, size_t n, uint64_t timeout_usec) {
        Text order = message_new();
        assert(p->child > 0 && !p->pending);
        text_add_bytes(&order, &timeout_usec, sizeof timeout_usec);
        for (size_t i = 0; i < n; i++)
                message_add_string(&order, all[i].path);
        p->pending = true;
        p->timeout_usec = timeout_usec;
        p->until_usec = now_usec() + timeout_usec + GRACE_USEC;
        message_send(p->fd, &order);
}

int prober_take(Prober *p, Probed *all, size_t n, Diag *diag) {
        _cleanup_(text_done) Text t = {};
        int r = message_read(p->fd, p->until_usec, &t);
        Rest rest = { t.data, t.size };
        size_t size, i = 0;
        bool whole = r > 0 && take_bytes(&rest, &size, sizeof size);
        while (whole && i < n && take_answer(&rest, &all[i], diag))
                i++;
        for (; i < n; i++)
                all[i].result = r < 0 ? r : probe_give_up(0, p->timeout_usec / USEC_PER_SEC, &all[i].content);
        p->pending = r < 0;
        for (i = 0; i < n; i++)
                if (all[i].result == -EINTR || all[i].content.kind == CONTENT_UNREADABLE)
                        p->pending = true;
        return r == -EINTR || r >= 0
                       ? 0
                       : diag_error(diag, r, CAUSE_INTERNAL,
                                    "the process that looks at the disks has ended without an answer: %s",
                                    strerror(-r));
}

/* Abandons a child that hangs in the kernel. */
void prober_end(Prober *p) {
        if (p->child <= 0)
                return;
        close_fd(&p->fd);
        (void)kill(p->child, SIGKILL);
        while (waitpid(p->child, NULL, p->pending ? WNOHANG : 0) < 0 && errno == EINTR)
                ;
        *p = (Prober){};
}
