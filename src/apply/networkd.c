/* SPDX-License-Identifier: Apache-2.0
 * remove-file and link-file for systemd-networkd, and reload-networkd. The files are in /run, which no disk
 * can block, so the loop changes them itself.
 *
 * Thirty interfaces that come up at once cause as many processes. Each needs one reload that began after its
 * files were written: under a lock, a process skips its reload if another has made one since. */
#include "apply/device.h"
#include "apply/engine.h"
#include "apply/file.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "networkd/networkd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

/* Start of the last successful reload by CLOCK_MONOTONIC and by the clock of file times, and the mtime of
 * NETWORK_DIR then. */
#define RELOAD_STAMP RUN_DIR "/networkd-reload"
#define PAUSE_USEC   (10 * USEC_PER_MSEC)
#define NETWORK_FILE NETWORK_DIR "/70-eks-"

static int file_changed(Task *t, int r, const char *verb) {
        if (r < 0)
                return task_fail_file(t, r, verb, t->action->target);
        if (r > 0)
                task_end(t, OUTCOME_DONE);
        return CHECK_DONE_ALREADY;
}

int remove_check(Task *t) {
        const Root *root = t->apply->root;
        const char *path = t->action->target;
        (void)!root_tmp_sweep(root, path); /* of a killed run */
        int r = root_remove(root, path);
        return file_changed(t, r == -EISDIR ? root_remove_dir(root, path) : r, "removed");
}

int link_check(Task *t) {
        (void)!root_tmp_sweep(t->apply->root, t->action->target);
        int r = root_link(t->apply->root, t->action->target, t->action->with);
        return file_changed(t, r, "linked");
}

typedef struct Stamp { uint64_t began_usec, coarse_usec, directory_usec; } Stamp;

/* File times come from CLOCK_REALTIME_COARSE, which stands still between ticks, or since Linux 6.13 from
 * CLOCK_REALTIME (Documentation/filesystems/multigrain-ts.rst). */
static uint64_t clock_usec(clockid_t clock) {
        struct timespec t = {};
        (void)clock_gettime(clock, &t);
        return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

static Stamp stamp_read(const Root *root) {
        _free_ char *line = NULL;
        Stamp s = {};
        unsigned long long began, coarse, directory;
        if (root_read_line(root, RELOAD_STAMP, &line) >= 0 &&
            sscanf(line, "%llu %llu %llu", &began, &coarse, &directory) == 3 && began <= now_usec())
                s = (Stamp){ began, coarse, directory };
        return s;
}

static int stamp_write(const Root *root, const Stamp *s) {
        _free_ char *line = xasprintf("%llu %llu %llu\n", (unsigned long long)s->began_usec,
                                      (unsigned long long)s->coarse_usec,
                                      (unsigned long long)s->directory_usec);
        return root_replace_volatile(root, RELOAD_STAMP, line, strlen(line), 0644);
}

static uint64_t directory_usec(const Root *root, const char *dir) {
        struct stat st;
        int fd = root_open(root, dir, O_PATH | O_DIRECTORY);
        bool known = fd >= 0 && fstat(fd, &st) == 0;
        close_fd(&fd);
        return known ? (uint64_t)st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec / 1000 : 0;
}

/* A run may end after its last file and before the reload; the directory time shows that. An early clock may
 * be set back, so any other time counts as changed, too. */
static bool directory_changed(const Root *root, const char *path, const Stamp *last) {
        _free_ char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
        uint64_t usec = directory_usec(root, dir);
        return usec > 0 && (usec >= last->coarse_usec ||
                            (streq(dir, NETWORK_DIR) && usec != last->directory_usec));
}

int networkd_check(Task *t) {
        Stamp last = stamp_read(t->apply->root);
        for (size_t i = 0; i < t->n_after; i++) {
                const Task *before = t->after[i];
                if (before->result->outcome == OUTCOME_DONE ||
                    (startswith(before->action->target, NETWORK_DIR "/") &&
                     directory_changed(t->apply->root, before->action->target, &last)))
                        return CHECK_NEEDED;
        }
        return CHECK_DONE_ALREADY;
}

static int reload_lock(Work *w) {
        _cleanup_(close_fd) int fd = root_open(w->root, NETWORKD_RELOAD_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (fd < 0)
                return work_fail(w, fd, CAUSE_FILE, NETWORKD_RELOAD_LOCK " cannot be made: %m");
        work_at(w, "another process is reloading systemd-networkd");
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return work_fail(w, -errno, CAUSE_FILE, NETWORKD_RELOAD_LOCK " cannot be locked: %m");
                if (!work_pause(w, PAUSE_USEC))
                        return work_fail(w, -ECANCELED, CAUSE_INTERFACE, "given up");
        }
        return TAKE_FD(fd);
}

static Stamp stamp_now(const Root *root) {
        return (Stamp){ .began_usec = now_usec(),
                        .coarse_usec = clock_usec(CLOCK_REALTIME_COARSE),
                        .directory_usec = directory_usec(root, NETWORK_DIR) };
}

typedef struct Reload { const Root *root; Stamp stamp; } Reload;

/* May start seconds later, when there is a bus. Files written until then are read, too. */
static void begin_reload(void *userdata) {
        Reload *reload = userdata;
        reload->stamp = stamp_now(reload->root);
}

static int reload_in_turn(Work *w) {
        uint64_t written = now_usec(), coarse = clock_usec(CLOCK_REALTIME_COARSE),
                 fine = clock_usec(CLOCK_REALTIME);
        Diag diag = {};
        _cleanup_(close_fd) int fd = reload_lock(w);
        if (fd < 0)
                return fd;
        Stamp last = stamp_read(w->root);
        if (last.began_usec > written)
                return 0;
        /* Waits until both clocks are past the files: the coarse one may lag. A clock that is set back ends
         * the wait. */
        uint64_t now = coarse;
        while (now >= coarse && now <= fine && work_pause(w, PAUSE_USEC / 10))
                now = clock_usec(CLOCK_REALTIME_COARSE);
        work_at(w, "systemd-networkd has not reloaded its files");
        Reload reload = { .root = w->root, .stamp = stamp_now(w->root) };
        int r = networkd_reload(work_patience(w), begin_reload, &reload, &diag);
        const Diagnostic *error = diag_first_error(&diag);
        if (r < 0)
                (void)work_fail(w, r, CAUSE_INTERFACE, "%s", error ? error->text : strerror(-r));
        else if (stamp_write(w->root, &reload.stamp) < 0)
                log_debug(RELOAD_STAMP " cannot be written; the next run reloads again");
        diag_done(&diag);
        return r;
}

int networkd_work(Work *w) {
        int r = reload_in_turn(w);
        if (r < 0)
                return r;
        /* If another file configured the interface first, systemd 257 keeps its results on reload, e.g. a
         * route in the main table. The last reload may be that of another process, so the origin is
         * unknown. */
        for (char **name = w->given; name && *name; name++) {
                _free_ char *file = xasprintf(NETWORK_FILE "%s.network", *name);
                work_at(w, "systemd-networkd is reconfiguring %s", *name);
                r = networkd_reconfigure(*name, file, work_patience(w));
                if (r < 0)
                        log_debug("systemd-networkd cannot reconfigure %s: %s", *name, strerror(-r));
        }
        return 1;
}

/* Written links that networkd already has. Not the primary one: the default file of the image sets it up
 * alike, and it must not be cut off. */
char **networkd_links(const Task *t) {
        _strv_ char **links = NULL;
        bool primary = false;
        for (size_t i = 0; i < t->n_after; i++) {
                const Action *a = t->after[i]->action;
                primary |= startswith(a->target, NETWORK_DIR "/80-");
                if (a->type != ACTION_WRITE_FILE || !startswith(a->target, NETWORK_FILE) ||
                    !endswith(a->target, ".network"))
                        continue;
                const char *name = a->target + strlen(NETWORK_FILE);
                _free_ char *link = xstrndup(name, strlen(name) - strlen(".network"));
                if (networkd_has(link))
                        strv_add(&links, link);
        }
        return primary ? NULL : TAKE_PTR(links);
}
