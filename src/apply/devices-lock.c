/* SPDX-License-Identifier: Apache-2.0
 * take-turn: flock(2) on DEVICES_LOCK until the process ends. The run phase waits here alone for the devices
 * phase: its disks and containerd need no device. */
#include "apply/device.h"

#include "base/paths.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PAUSE_USEC (50 * USEC_PER_MSEC)

static int turn_fail(Work *w, int r, const char *verb) {
        return work_fail(w, r, CAUSE_FILE,
                         DEVICES_LOCK " cannot be %s: %m; /run must be a directory in which root can write",
                         verb);
}

int turn_work(Work *w) {
        /* The lock was taken before the machine was read (commands/stages.c). */
        if (w->early)
                return 0;
        int fd = root_make_dirs(w->root, RUN_DIR, 0755);
        if (fd >= 0)
                fd = root_open(w->root, DEVICES_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (fd < 0)
                return turn_fail(w, fd, "made");
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                int r = -errno;
                if (r == -EWOULDBLOCK) {
                        work_progress(w, "another nodestrap holds " DEVICES_LOCK " and is working on the "
                                         "devices; journalctl -u nodestrap-devices shows what it is waiting "
                                         "for");
                        if (work_pause(w, PAUSE_USEC))
                                continue;
                }
                close(fd);
                return r == -EWOULDBLOCK ? work_fail(w, -ECANCELED, CAUSE_DEADLINE, "given up")
                                         : turn_fail(w, r, "locked");
        }
        w->turn_fd = fd;                /* held until the process ends */
        return 0;
}
