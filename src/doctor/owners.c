/* SPDX-License-Identifier: Apache-2.0
 * Files that root trusts → those that other users may change. Files copied into an image often keep the
 * owner of the build machine, which is the first user here. The owner of a directory can replace what is
 * in it, so every directory on the path counts. */
#include "doctor/look.h"

#include <fcntl.h>

#define FIRST_GROUP 1000u               /* of people: login.defs(5), GID_MIN. System groups may write to
                                         * /var/log (syslog) and /usr/local (staff) */
#define MAX_SEEN    4096u
#define SHOWN       3u                  /* paths in a message */

struct Owners {
        char **seen;
        size_t n_seen;
        char **foreign;
        char *base;                          /* the real path of the root */
};

Owners *owners_new(const Root *root) {
        Owners *o = xcalloc(1, sizeof *o);
        _cleanup_(close_fd) int fd = root_open(root, "/", O_PATH | O_DIRECTORY);
        o->base = fd >= 0 ? real_path(fd, "/") : NULL;
        return o;
}

Owners *owners_free(Owners *o) {
        if (!o)
                return NULL;
        strv_free(o->seen);
        strv_free(o->foreign);
        FREE_ALL(o->base, o);
        return NULL;
}

bool is_foreign(const Look *l, const struct stat *st) {
        bool people = st->st_gid >= FIRST_GROUP && st->st_gid != l->group,
             open = st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && people),
             sticky = S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX; /* entries belong to their own owners */
        return (st->st_uid != 0 && st->st_uid != l->owner) || (open && !sticky);
}

/* From the file up to the first directory that is known. The owner of a link does not matter: its target is
 * checked with its own path. */
static void look_at(const Look *l, const char *path, bool real) {
        Owners *o = l->owners;
        for (size_t n = strlen(path);; n -= n > 0) {
                struct stat st;
                _free_ char *at = n > 0 ? xstrndup(path, n) : xstrdup("/");
                _cleanup_(close_fd) int fd = strv_contains(o->seen, at) ? -1 : root_open(l->root, at, O_PATH);
                if (fd < 0 || fstat(fd, &st) < 0 || o->n_seen >= MAX_SEEN)
                        return;
                _free_ char *below = real || !o->base ? NULL : real_path(fd, o->base);
                strv_push_at(&o->seen, o->n_seen++, xstrdup(at));
                if (below && !streq(below, at))
                        look_at(l, below, true);
                else if (is_foreign(l, &st))
                        strv_push(&o->foreign, xasprintf("%s is %04o, owner %u, group %u", at,
                                                         (unsigned)st.st_mode & 07777, (unsigned)st.st_uid,
                                                         (unsigned)st.st_gid));
                if (n == 0)
                        return;
                while (path[n - 1] != '/')
                        n--;
        }
}

void owners_look(const Look *l, const char *path) {
        if (l->owners && *path == '/')
                look_at(l, path, false);
}

void owners_report(const Owners *o, Checks *checks) {
        _cleanup_(text_done) Text paths = {};
        size_t n = strv_length(o->foreign);
        for (size_t i = 0; i < MIN(n, (size_t)SHOWN); i++)
                text_add(&paths, "%s%s", i > 0 ? "; " : "", o->foreign[i]);
        _free_ char *found = xasprintf("%zu of %zu files and directories", n, o->n_seen);
        if (n > 0)
                TELL(checks, CHECK_WARNING, "owner", "files that others may change", found, NULL,
                     "%s%s: users who may change them can make root run anything. When you build the image, "
                     "chown root:root and chmod go-w them",
                     paths.data, n > SHOWN ? "; and more" : "");
}
