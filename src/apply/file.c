/* SPDX-License-Identifier: Apache-2.0
 * write-file and write-block: stage new content beside the target (files.c renames it). A block lies between
 * two marker lines in a file that others own; its owner, mode and SELinux label stay. */
#include "apply/engine.h"
#include "apply/file.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK_BEGIN "# nodestrap begin"
#define BLOCK_END   "# nodestrap end"
#define BLOCK_FILE_MAX (4 << 20)

static const struct { int error; const char *advice; } advices[] = {
        { ENOSPC,  "free some space or inodes on that file system (df -h, df -i), then run nodestrap "
                   "again" },
        { EDQUOT,  "raise the quota, or free some space" },
        { EROFS,   "findmnt shows how it is mounted, dmesg whether errors caused that" },
        { EACCES,  "run nodestrap as root" },
        { EPERM,   "run nodestrap as root; lsattr shows whether the file or its directory is immutable" },
        { ENOTDIR, "a part of its path is not a directory" },
        { EISDIR,  "move the directory away" },
        { ELOOP,   "it is a symbolic link, and its target may have another owner; replace it with a "
                   "file" },
        { EBUSY,   "something is mounted over it; unmount that, or edit the source of that mount" },
        { EFBIG,   "it is too large to edit" },
        { EIO,     "the disk reports errors; replace the instance or the volume" },
        { EMFILE,  "raise the limit of open files (ulimit -n)" },
};

char *file_failure(const Root *root, const Action *a, int r, const char *verb, const char *path) {
        _free_ char *dead = r == -ENOENT ? root_dead_link(root, path) : NULL;
        const char *advice = dead ? "make that directory, or remove the link" : NULL;
        for (size_t i = 0; i < ARRAY_SIZE(advices) && !advice; i++)
                if (advices[i].error == -r)
                        advice = advices[i].advice;
        bool own = streq(path, a->target);      /* messages about the action name it already */
        return xasprintf("%s%scannot be %s: %s%s%s", own ? "" : path, own ? "" : " ", verb,
                         dead ?: strerror(-r), advice ? "; " : "", advice ?: "");
}

int task_fail_file(Task *t, int r, const char *verb, const char *path) {
        _free_ char *text = file_failure(t->apply->root, t->action, r, verb, path);
        return task_fail(t, r, CAUSE_FILE, "%s", text);
}

int file_fail(Work *w, int r, const char *verb, const char *path) {
        _free_ char *text = file_failure(w->root, w->action, r, verb, path);
        return work_fail(w, r, CAUSE_FILE, "%s", text);
}

int file_stage(Work *w, RootTmp *ret) {
        const Action *a = w->action;
        return root_tmp_stage(w->root, a->target, a->file.content ?: "", a->file.size, a->file.mode,
                              root_owner(w->root), ret);
}

int manager_expect(const Root *root, const char *path) {
        static const char read[][28] = { UNIT_DIR "/", "/run/systemd/system/",
                                         "/etc/systemd/system.conf.d/" };
        for (size_t i = 0; root_is_host(root) && i < ARRAY_SIZE(read); i++)
                if (startswith(path, read[i]))
                        return root_replace_volatile(root, RELOAD_WANTED, "", 0, 0644);
        return 0;
}

int file_publish(Work *w, RootTmp *tmp) {
        int r = manager_expect(w->root, w->action->target);
        return r < 0 ? r : root_tmp_publish(tmp);
}

static bool line_is(const char *line, size_t size, const char *marker) {
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
                size--;
        return size == strlen(marker) && memcmp(line, marker, size) == 0;
}

static size_t line_size(const char *p, const char *end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        return (size_t)((newline ? newline + 1 : end) - p);
}

/* The size of the block at p with its markers. Without an end marker only the begin marker counts, so a
 * damaged file loses no foreign line. */
static size_t block_size(const char *p, const char *end) {
        const char *first = p + line_size(p, end);
        for (const char *line = first; line < end;) {
                size_t n = line_size(line, end);
                if (line_is(line, n, BLOCK_BEGIN))
                        break;
                line += n;
                if (line_is(line - n, n, BLOCK_END))
                        return (size_t)(line - p);
        }
        return (size_t)(first - p);
}

static void block_add(Text *t, const char *content) {
        size_t n = strlen(content);
        if (t->size > 0 && t->data[t->size - 1] != '\n')
                text_add(t, "\n");
        text_add(t, BLOCK_BEGIN "\n%s%s" BLOCK_END "\n", content, content[n - 1] == '\n' ? "" : "\n");
}

char *block_merge(const char *old, size_t old_size, const char *content, size_t *ret_size) {
        const char *end = old + old_size;
        bool placed = !*content;
        Text t = {};
        for (const char *p = old; p < end;) {
                size_t n = line_size(p, end);
                if (!line_is(p, n, BLOCK_BEGIN)) {
                        text_add_bytes(&t, p, n);
                        p += n;
                        continue;
                }
                p += block_size(p, end);
                if (!placed)
                        block_add(&t, content);
                placed = true;
        }
        if (!placed)
                block_add(&t, content);
        *ret_size = t.size;
        return text_take(&t);
}

static int label_copy(int from_fd, int to_fd) {
        char label[256];
        ssize_t n = fgetxattr(from_fd, "security.selinux", label, sizeof label);
        if (n < 0)
                return 0;       /* no SELinux here */
        if (fsetxattr(to_fd, "security.selinux", label, (size_t)n, 0) == 0)
                return 0;
        /* Disabled SELinux allows labels only with CAP_SYS_ADMIN; enabling it needs a full relabelling
         * anyway. */
        return errno == EPERM && access("/sys/fs/selinux/enforce", F_OK) < 0 ? 0 : -errno;
}

void block_done(Block *b) {
        close_fd(&b->fd);
        FREE_ALL(b->old, b->new);
}

int block_read(const Root *root, const char *path, const char *content, Block *ret) {
        _cleanup_(block_done) Block b = {};
        b.fd = root_open(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (b.fd < 0 && b.fd != -ENOENT && b.fd != -ENOTDIR)
                return b.fd;
        int r = b.fd < 0 ? 0 : root_read(root, path, BLOCK_FILE_MAX, &b.old, &b.old_size);
        if (r < 0)
                return r;
        b.new = block_merge(b.old ?: "", b.old_size, content, &b.new_size);
        *ret = (Block){ TAKE_FD(b.fd), TAKE_PTR(b.old), TAKE_PTR(b.new), b.old_size, b.new_size };
        return 0;
}

static int stage_alike(const Root *root, const char *path, const Block *b, RootTmp *ret) {
        struct stat st;
        if (fstat(b->fd, &st) < 0)
                return -errno;
        int r = root_tmp_stage(root, path, b->new, b->new_size, st.st_mode & 07777, ROOT_ANYBODY, ret);
        if (r <= 0)
                return r;
        if ((st.st_uid != geteuid() || st.st_gid != getegid()) &&
            (fchown(ret->fd, st.st_uid, st.st_gid) < 0 || fchmod(ret->fd, st.st_mode & 07777) < 0))
                r = -errno;
        if (r > 0 && label_copy(b->fd, ret->fd) < 0)
                r = -EPERM;
        if (r < 0)
                root_tmp_release(ret);
        return r;
}

int block_prepare(const Root *root, const char *path, const char *content, RootTmp *ret) {
        _cleanup_(block_done) Block b = { .fd = -1 };
        int r = block_read(root, path, content, &b);
        if (r < 0)
                return r;
        if (b.fd >= 0)
                return stage_alike(root, path, &b, ret);
        return *content ? root_tmp_stage(root, path, b.new, b.new_size, 0644, ROOT_ANYBODY, ret) : 0;
}

int block_stage(Work *w, RootTmp *ret) {
        int r = block_prepare(w->root, w->action->target, w->action->file.content ?: "", ret);
        return r < 0 ? file_fail(w, r, "edited", w->action->target) : r;
}
