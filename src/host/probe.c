/* SPDX-License-Identifier: Apache-2.0
 * Thread → Content. The thread owns all that it touches, for it may come back long after nobody waits for it any more, or never;
 * whoever of the two comes last frees it. */
#include "host/probe.h"

#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct Probe {
        Root *root;
        char *path;
        int result;
        Content content;
        Diag diag;
        int ended_fd;
        pthread_mutex_t lock;
        bool ended, left;               /* under the lock: the thread has its answer; nobody waits for it */
        pthread_t thread;
        bool running;
        uint64_t begin_usec;
};

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

/* Signals are for who waits. */
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

Probe *probe_start(const Root *root, const char *path) {
        Probe *p = xcalloc(1, sizeof *p);
        *p = (Probe){ .path = xstrdup(path), .begin_usec = now_usec(), .ended_fd = eventfd(0, EFD_CLOEXEC) };
        pthread_mutex_init(&p->lock, NULL);
        int r = p->ended_fd < 0 ? -errno : root_new(root_path(root), &p->root);
        if (r >= 0)
                r = thread_start(p);
        if (r < 0)
                p->result = diag_error(&p->diag, r, CAUSE_INTERNAL, NULL, NULL, "no thread to look at %s: %s", path, strerror(-r));
        return p;
}

/* 1: it has ended, 0: the time is up, -EINTR. */
static int probe_wait(const Probe *p, uint64_t deadline_usec) {
        int r = stop_wait(p->ended_fd, deadline_usec);
        while (r == 0 && now_usec() < deadline_usec)
                r = stop_wait(p->ended_fd, deadline_usec);
        return r;
}

/* From here on it is the thread's, unless that has ended just now. */
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
                *ret = (Content){ .kind = CONTENT_UNREADABLE, .error = xasprintf("it did not answer within %llu s", seconds) };
        return r;
}

int probe_take(Probe *p, uint64_t deadline_usec, Content *ret, Diag *diag) {
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
