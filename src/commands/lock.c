/* SPDX-License-Identifier: Apache-2.0
 * The lock is a file that only root can open, or anybody could hold up a boot. It is not waited for by
 * flock(2) itself: a signal that came a moment before would not end that, and it has no deadline. */
#include "commands/lock.h"

#include "base/paths.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#define LOCK_FILE  RUN_DIR "/lock"
#define PAUSE_USEC (50 * USEC_PER_MSEC)

static int lock_open(const Root *root, Diag *diag) {
        int fd = root_make_dirs(root, RUN_DIR, 0755);
        if (fd >= 0)
                fd = root_open(root, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (fd < 0)
                return diag_error(diag, fd, CAUSE_FILE,
                                  LOCK_FILE " cannot be made: %s. The lock and the status of this boot live "
                                  "there; /run must be a directory in which root can write",
                                  strerror(-fd));
        return fd;
}

int lock_take(const Root *root, uint64_t deadline_usec, Diag *diag) {
        _cleanup_(close_fd) int fd = lock_open(root, diag);
        if (fd < 0)
                return fd;
        for (bool told = false; flock(fd, LOCK_EX | LOCK_NB) < 0; told = true) {
                if (errno != EWOULDBLOCK)
                        return diag_error(diag, -errno, CAUSE_FILE, LOCK_FILE " cannot be locked: %s",
                                          strerror(errno));
                if (!told)
                        log_info("Another nodestrap is at work on this machine; waiting for it to end.");
                if (stop_signal())
                        return diag_error(diag, -EINTR, CAUSE_INTERRUPTED,
                                          "stopped by %s; nothing was changed", stop_name(stop_signal()));
                if (now_usec() >= deadline_usec)
                        return diag_error(diag, -ETIMEDOUT, CAUSE_DEADLINE,
                                          "another nodestrap holds " LOCK_FILE " and does not end, so "
                                          "nothing was changed; fuser -v " LOCK_FILE " names it, and "
                                          "journalctl -u 'nodestrap-*' -u 'nodeadm-*' says what it waits "
                                          "for");
                usleep(PAUSE_USEC);
        }
        return TAKE_FD(fd);
}
