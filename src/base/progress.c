/* SPDX-License-Identifier: Apache-2.0
 * Several processes append lines: each write(2) with O_APPEND stays in one piece. */
#include "base/progress.h"

#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PROGRESS_MODE 0640              /* as status.json: for readers of the journal */
#define PROGRESS_MAX  (64 << 10)        /* users may run init often */

void progress_add(Text *t, uint64_t usec, const char *word, const char *what) {
        text_add(t, "%llu\t%d\t%s\t", (unsigned long long)usec, (int)getpid(), word);
        for (; *what; what++)
                text_add_bytes(t, (unsigned char)*what < ' ' ? " " : what, 1);
        text_add(t, "\n");
}

static int progress_open(const Root *root) {
        const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
        struct stat st;
        int fd = root_open(root, PROGRESS_FILE, flags);
        if (fd == -ENOENT && root_make_dirs(root, RUN_DIR, 0755) >= 0)
                fd = root_open(root, PROGRESS_FILE, flags);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
            ((st.st_mode & 07777) == PROGRESS_MODE || fchmod(fd, PROGRESS_MODE) == 0))
                return fd;
        close_fd(&fd);
        return -1;
}

void progress_write(const Root *root, int *fd, Text *t) {
        if (t->size > 0 && *fd < 0)
                *fd = progress_open(root);
        if (t->size > 0 && *fd >= 0)
                (void)!write(*fd, t->data, t->size);
        text_done(t);
}

void progress_note(const Root *root, const char *word, const char *what) {
        Text t = {};
        int fd = progress_open(root);
        if (fd >= 0 && streq(word, "start") && lseek(fd, 0, SEEK_END) > PROGRESS_MAX)
                (void)!ftruncate(fd, 0);
        progress_add(&t, now_usec(), word, what);
        progress_write(root, &fd, &t);
        close_fd(&fd);
}
