/* SPDX-License-Identifier: Apache-2.0
 * Directories that steps write to, and files that they read → Checks. */
#include "doctor/look.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static bool is_read_only(int fd) {
        struct statvfs fs;
        return fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

char *parent_of(const char *path) {
        const char *slash = strrchr(path, '/');
        return slash && slash > path ? xstrndup(path, (size_t)(slash - path)) : xstrdup("/");
}

static bool is_dangling(const Look *l, const char *path) {
        _free_ char *target = NULL;
        return root_read_link(l->root, path, &target) >= 0;
}

/* The directory itself, or the nearest one above it: fd is from root_open(). */
static void look_at(Look *l, const Need *need, const char *path, int fd) {
        struct stat st;
        bool itself = streq(path, need->name);
        if (fd == -ENOENT || fd == -ENOTDIR)
                FAULT(l, need, "directory", path,
                      "%s is a dangling link, so mkdir fails: create its target, or remove the link", path);
        else if (fd < 0)
                TELL(l->checks, CHECK_UNKNOWN, "directory", need->name, NULL, need, "%s is not readable: %s",
                     path, strerror(-fd));
        else if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
                FAULT(l, need, "directory", path, "%s is not a directory: move it away", path);
        else if (is_foreign(l, &st)) {
                _free_ char *found = xasprintf("%s %04o, owner %u", path, (unsigned)st.st_mode & 07777,
                                               (unsigned)st.st_uid);
                TELL(l->checks, CHECK_WARNING, "directory-mode", need->name, found, need,
                     "users other than root may change it, and root writes there: chown root %s, chmod go-w "
                     "%s",
                     path, path);
        } else if (l->image->running && is_read_only(fd))
                FAULT(l, need, "directory-read-only", path,
                      "its file system is mounted read-only, but the plan writes there; mount it read-write");
        else
                look_well(l, need, "directory", itself ? path : "can be made");
        if (fd >= 0 && itself)
                labels_look(l->labels, l->root, path);
}

void look_directory(Look *l, const Need *need) {
        _free_ char *path = xstrdup(need->name);
        for (bool found = false; !found;) {
                _cleanup_(close_fd) int fd = root_open(l->root, path, O_PATH);
                found = (fd != -ENOENT && fd != -ENOTDIR) || is_dangling(l, path) || streq(path, "/");
                if (found)
                        look_at(l, need, path, fd);
                else
                        RENEW(path, parent_of(path));
        }
}

/* NRI is on by default from containerd 2.0 on (containerd/containerd: docs/NRI.md). */
void look_nri(Look *l, const Need *need) {
        static const char folder[] = "/opt/nri/plugins";
        _strv_ char **plugins = root_names(l->root, folder);
        if (!plugins || !l->image->containerd)
                return;
        if (version_at_least(l->image->containerd, 2, 0))
                look_well(l, need, "nri", folder);
        else
                FAULT(l, need, "nri", folder,
                      "containerd %s does not start these plugins: set disable = false in the table "
                      "plugins.'io.containerd.nri.v1.nri' of spec.containerd.config, or install containerd 2",
                      l->image->containerd);
}

void look_file(Look *l, const Need *need) {
        struct stat st;
        _free_ char *path = xstrdup(need->name);
        for (char **tree = l->image->trees; tree && *tree && root_exists(l->root, path) == 0; tree++)
                RENEW(path, xasprintf("%s%s", *tree, need->name));
        _cleanup_(close_fd) int fd = root_open(l->root, path, O_PATH);
        bool dangling = fd < 0 && is_dangling(l, need->name), there = fd >= 0 && fstat(fd, &st) == 0;
        if (fd < 0 && !dangling && look_is_later(l, need, "file"))
                return;
        if (!there || !S_ISREG(st.st_mode) || st.st_size == 0)
                FAULT(l, need, "file", there ? path : NULL, "%s: add the file to the image%s",
                      dangling               ? "it is a dangling link"
                      : !there               ? "it is missing"
                      : !S_ISREG(st.st_mode) ? "it is not a regular file"
                                             : "it is empty",
                      need->optional ? ", if a boot needs it" : "");
        else {
                labels_look(l->labels, l->root, path);
                owners_look(l, path);
                look_well(l, need, "file", path);
        }
}
