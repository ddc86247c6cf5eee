/* SPDX-License-Identifier: Apache-2.0
 * Only root can open the lock, so no user can hold up a boot. flock(2) has no deadline, and may miss a
 * signal. */
#include "base/lock.h"

#include "base/log.h"
#include "base/paths.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAUSE_USEC (50 * USEC_PER_MSEC)
#define TELL_USEC  (1 * USEC_PER_SEC) /* a shorter wait is not worth a line */

static int lock_open(const Root *root, const char *path, Diag *diag) {
        struct stat st;
        int fd = root_check_run(root, &st);
        if (fd < 0)
                return diag_error(diag, fd, CAUSE_FILE,
                                  RUN_DIR " cannot be used: it must be a directory that only root can change "
                                          "(owner %u, mode %04o%s); remove it. Find the program that "
                                          "makes it (systemd-tmpfiles --cat-config)",
                                  (unsigned)st.st_uid, (unsigned)st.st_mode & 07777,
                                  S_ISLNK(st.st_mode) ? ", a link" : "");
        fd = root_make_dirs(root, RUN_DIR, 0755);
        THEN(fd, root_open(root, path, O_RDWR | O_CREAT | O_NOFOLLOW));
        if (fd < 0)
                return diag_error(diag, fd, CAUSE_FILE,
                                  "%s cannot be created: %s; make /run writable by root: the lock and the "
                                  "boot status live there",
                                  path, strerror(-fd));
        return fd;
}

int lock_take(const Root *root, const char *path, uint64_t deadline_usec, Diag *diag) {
        _cleanup_(close_fd) int fd = lock_open(root, path, diag);
        uint64_t begin = now_usec();
        bool told = false;
        if (fd < 0)
                return fd;
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return diag_error(diag, -errno, CAUSE_FILE, "%s cannot be locked: %s", path,
                                          strerror(errno));
                if (!told && now_usec() - begin >= TELL_USEC) {
                        log_info("Another nodestrap process holds %s; waiting for it.", path);
                        told = true;
                }
                if (stop_signal())
                        return diag_error(diag, -EINTR, CAUSE_INTERRUPTED,
                                          "stopped by %s; nothing was changed", stop_name(stop_signal()));
                if (now_usec() >= deadline_usec)
                        return diag_error(diag, -ETIMEDOUT, CAUSE_DEADLINE,
                                          "%s cannot be locked: another nodestrap process holds it, so "
                                          "nothing was changed. Find that process with fuser -v %s; "
                                          "journalctl -u 'nodestrap-*' -u 'nodeadm-*' shows what it waits "
                                          "for", path, path);
                usleep(PAUSE_USEC);
        }
        return TAKE_FD(fd);
}

bool lock_is_held(const Root *root, const char *path) {
        _cleanup_(close_fd) int fd = root_open(root, path, O_RDONLY | O_NOFOLLOW);
        return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

void lock_release(int *fd) {
        if (*fd <= 0)
                return;
        flock(*fd, LOCK_UN);
        close_fd(fd);
}
