/* SPDX-License-Identifier: Apache-2.0
 * Texts and documents → stdout, or a file that the caller names. */
#include "commands/output.h"

#include "base/root.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

void output_begin(void) {
        signal(SIGPIPE, SIG_DFL);
}

int output_end(Diag *diag) {
        return fflush(stdout) == 0 && !ferror(stdout)
                       ? 0
                       : diag_error(diag, -EIO, CAUSE_FILE, "stdout cannot be written");
}

int output_text(const char *text, Diag *diag) {
        output_begin();
        fputs(text, stdout);
        return output_end(diag);
}

static int write_whole(int fd, const void *data, size_t size) {
        for (const char *p = data; size > 0;) {
                ssize_t n = write(fd, p, size);
                if (n < 0 && errno != EINTR)
                        return -errno;
                p += MAX(n, 0);
                size -= (size_t)MAX(n, 0);
        }
        return 0;
}

/* Follows links where only root makes them (/dev/fd/63 of >(…)). Elsewhere another user may have put a
 * pipe, or a link to a disk, under a name that root writes to. */
static bool is_trusted(const char *path, const struct stat *target) {
        struct stat itself;
        return startswith(path, "/proc/") ||
               (startswith(path, "/dev/") && !startswith(path, "/dev/shm/")) ||
               (target->st_uid == geteuid() && lstat(path, &itself) == 0 && itself.st_ino == target->st_ino &&
                itself.st_dev == target->st_dev);
}

/* A pipe or a device, which cannot be replaced. A pipe without a reader is an error (O_NONBLOCK). */
static int write_into(const char *path, const void *data, size_t size) {
        _cleanup_(close_fd) int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (S_ISREG(st.st_mode))                /* the link has changed */
                return -ELOOP;
        if (!is_trusted(path, &st))
                return -EPERM;
        fcntl(fd, F_SETFL, 0);
        return write_whole(fd, data, size);
}

/* Makes no directories: a mistyped one is an error. */
static int replace_file(const char *path, const void *data, size_t size) {
        _cleanup_(root_freep) Root *here = NULL;
        _free_ char *directory = xstrndup(path, strlen(path) - strlen(basename(path)));
        int r = root_new("/", &here);
        if (r < 0)
                return r;
        _free_ char *absolute = root_absolute(here, path);
        if (!absolute)
                return -ENOENT;
        if (access(*directory ? directory : ".", data ? F_OK : W_OK) < 0)
                return -errno;
        if (!data)
                return 0;
        return root_replace(here, absolute, data, size, 0600);
}

/* Without data, only checks what it can in advance. */
static int write_file(const char *path, const void *data, size_t size) {
        struct stat itself, target;
        bool exists = lstat(path, &itself) == 0, leads = stat(path, &target) == 0;
        if (leads && S_ISDIR(target.st_mode))
                return -EISDIR;
        if (leads && !S_ISREG(target.st_mode))
                return data                         ? write_into(path, data, size)
                       : is_trusted(path, &target) ? 0
                                                   : -EPERM;
        if (exists && S_ISLNK(itself.st_mode))
                return -ELOOP;
        return replace_file(path, data, size);
}

static bool is_stdout(const char *path) {
        struct stat file, standard;
        return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
               file.st_dev == standard.st_dev && file.st_ino == standard.st_ino;
}

int output_file(const char *file, const void *data, size_t size, Diag *diag) {
        int r = write_file(file, data, size);
        if (r == -ELOOP)
                return diag_error(diag, r, CAUSE_FILE,
                                  "%s cannot be written: it is a link, or in a linked directory, and the "
                                  "output may hold secrets; give a path without links",
                                  file);
        return r < 0 ? diag_error(diag, r, CAUSE_FILE, "%s cannot be written: %s", file, strerror(-r)) : 0;
}

int output_bytes(const void *data, size_t size, Diag *diag) {
        if (isatty(STDOUT_FILENO))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "stdout is a terminal and cannot show a bundle: redirect it, or name a "
                                  "file");
        output_begin();
        (void)fwrite(data, 1, size, stdout);
        return output_end(diag);
}

int output_json(const json_t *json, const char *file, Diag *diag) {
        _free_ char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY) : NULL;
        if (!text)
                return diag_error(diag, -EILSEQ, CAUSE_INTERNAL,
                                  "the output cannot be written as JSON: a string in it is not UTF-8");
        _free_ char *line = xasprintf("%s\n", text);
        if (!file || is_stdout(file))
                return output_text(line, diag);
        return output_file(file, line, strlen(line), diag);
}
