/* SPDX-License-Identifier: Apache-2.0
 * move-files: moves what daemons wrote on the root disk to the disks before binds cover it. One cp copies all
 * to a directory of its own. Once that is on disk, it is renamed into place or merged with older content, and
 * the originals are removed last. An interrupted run starts again from whole originals.
 *
 * On instance stores the root disk wins: it was written after the disks were last bound over it. A store
 * moves whole or not at all. A volume outlives the machine, so its content wins: it takes the root disk
 * content once, and later only the files of the plan. A volume that is one directory keeps a mark that it was
 * filled, since its user may leave it empty. */
#include "apply/storage.h"
#include "apply/tree.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define INCOMING ".nodestrap-incoming"
#define TAKEN    ".nodestrap-taken"             /* INCOMING after a whole volume was filled */
#define OWNER    "machine"                      /* in both: fill-marker.c */
#define FILE_MAX (8 << 20)

typedef struct Source {
        const Move *move;
        int fd;
        char *path;             /* without links */
        bool wanted;            /* must be copied */
        bool copied;            /* is copied: remove the original */
        bool there;             /* already shows the disks */
} Source;
typedef struct Moving {
        Work *work;
        const char *target;
        int fd;                 /* of the target */
        char *incoming;         /* its path, for cp */
        Source *sources; size_t n, n_wanted, n_copied;
        uint64_t room;          /* bytes free before the copy */
} Moving;

static void moving_done(Moving *m) {
        for (size_t i = 0; i < m->n; i++) {
                close_fd(&m->sources[i].fd);
                free(m->sources[i].path);
        }
        FREE_ALL(m->sources, m->incoming);
        close_fd(&m->fd);
}

static int move_fail(const Moving *m, int r, const char *what, const char *path) {
        (void)work_fail(m->work, r, CAUSE_MOVE, "%s %s: %m", path, what);
        return r;
}

/* mode: as the daemons create it; newer containerd changes 0711 to 0700. store: a database and the numbered
 * trees it names, useless apart. */
typedef struct SourceKind { const char *path, *name; mode_t mode; bool store; } SourceKind;

/* Also by name, since users may relocate it. */
static SourceKind source_kind(const Move *move) {
        static const SourceKind kinds[] = {
                { CONTAINERD_DIR, "containerd", 0711, true },
                { KUBELET_DIR, "kubelet", 0750, false },
                { SOCI_DIR, "soci-snapshotter-grpc", 0700, true },
                { "", "overlayfs", 0700, true }, { "", "native", 0700, true },
                { "", "erofs", 0700, true },     { "", "blockfile", 0700, true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (streq(move->from, kinds[i].path) || streq(move->name, kinds[i].name))
                        return kinds[i];
        return (SourceKind){ move->from, move->name, 0755, false };
}

static int source_open(const Moving *m, Source *s) {
        const char *path = s->move->from;
        s->fd = root_open(m->work->root, path, O_RDONLY | O_DIRECTORY);
        if (s->fd == -ENOENT) {
                _free_ char *parent = xstrndup(path, (size_t)(path_last(path) - path));
                int r = root_make_dirs(m->work->root, parent, 0755);
                THEN(r, root_make_dirs(m->work->root, path, source_kind(s->move).mode));
                if (r < 0)
                        return move_fail(m, r, "cannot be made", path);
                s->fd = root_open(m->work->root, path, O_RDONLY | O_DIRECTORY);
        }
        if (s->fd < 0)
                return move_fail(m, s->fd, "cannot be opened as a directory", path);
        s->path = place_path(s->fd);
        return s->path ? 0 : move_fail(m, -ENOSYS, "cannot be resolved (is /proc mounted?)", path);
}

static bool is_whole(const Source *s) {
        return !*s->move->name;
}

static int open_there(const Moving *m, const Source *s) {
        return tree_open(m->fd, is_whole(s) ? "." : s->move->name);
}

static bool needs_names(const Moving *m) {
        for (size_t i = 0; i < m->n; i++)
                for (size_t k = 0; k < i && !m->work->action->storage.volume; k++)
                        if (streq(path_last(m->sources[i].move->from), path_last(m->sources[k].move->from)))
                                return true;
        return m->work->action->storage.volume;
}

static const char *incoming_name(const Moving *m, const Source *s) {
        return needs_names(m) && !is_whole(s) ? s->move->name : path_last(s->move->from);
}

static bool is_directory(int dir, const char *name) {
        struct stat st;
        return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Only what mkfs makes, or an interrupted copy: INCOMING remains until its end. */
static int volume_is_new(const Moving *m) {
        _strv_ char **names = NULL;
        int r = tree_list(m->fd, &names);
        bool other = false;
        if (r < 0)
                return move_fail(m, r, "cannot be listed", m->target);
        for (char **name = names; name && *name; name++)
                other = other || !(streq(*name, "lost+found") || streq(*name, INCOMING));
        if (!strv_contains(names, INCOMING) || strv_contains(names, TAKEN))
                return !other;
        r = other ? filling_check(m->work, m->target, INCOMING "/" OWNER) : 0;
        return r < 0 ? r : 1;
}

/* The plan files are on the volume already. The rest on the root disk is from an interrupted run, or hidden
 * by the mount. */
static int source_kept(const Moving *m, Source *s) {
        _strv_ char **names = NULL;
        _cleanup_(close_fd) int there = open_there(m, s);
        _free_ char *where = NULL;
        int r = there < 0 ? there : tree_list(s->fd, &names);
        if (r >= 0 && names)
                r = tree_check_copied(s->fd, there, &where);
        s->copied = r >= 0 && names;
        if (r == -ESTALE) {
                diag_warn(&m->work->warnings, "store-kept",
                          "%s/%s of the root disk is missing on the volume at %s, or differs there. The "
                          "volume is used, and %s of the root disk stays hidden under the mount. `mount "
                          "--bind / /mnt` shows it as /mnt%s; empty that if you need nothing in it",
                          s->move->from, where, m->target, s->move->from, s->move->from);
                return 0;
        }
        _free_ char *path = xasprintf("%s/%s", s->move->from, where ?: "");
        return r < 0 ? move_fail(m, r, "cannot be compared with what is on the volume", path) : 0;
}

static int volume_kept(Moving *m) {
        bool none = m->n_wanted == m->n;
        int r = m->n > 0 ? layout_check(m->work, m->fd, m->sources[0].move, none) : 0;
        for (Source *s = m->sources; r >= 0 && s < m->sources + m->n; s++) {
                if (s->wanted || s->there)
                        continue;
                r = source_kept(m, s);
                m->n_copied += s->copied;
                if (r >= 0 && is_whole(s))
                        r = filling_end(m->work, m->target);
        }
        return r;
}

/* An empty directory is copied if the disks lack it, for its mode, owner, label and ACL. */
static int source_want(const Moving *m, Source *s) {
        _strv_ char **names = NULL;
        if (m->work->action->storage.volume) {
                int r = is_whole(s) ? volume_is_new(m) : !is_directory(m->fd, s->move->name);
                s->wanted = r > 0;
                return MIN(r, 0);
        }
        int r = tree_list(s->fd, &names);
        s->wanted = names || !is_directory(m->fd, s->move->name);
        return r < 0 ? move_fail(m, r, "cannot be listed", s->move->from) : 0;
}

/* Two stores are never mixed: if both have unique content, the one on the disks stays in use. If one contains
 * the other, an interrupted run left it: the original behind the copy, or the copy before the original. */
static int store_choose(const Moving *m, Source *s) {
        _cleanup_(close_fd) int there = tree_open(m->fd, s->move->name);
        _free_ char *where = NULL;
        /* missing, or not a directory: set aside later */
        if (there == -ENOENT || there == -ENOTDIR || there == -ELOOP)
                return 0;
        int r = there < 0 ? there : tree_check_copied(there, s->fd, &where);
        if (r == -ESTALE) {
                s->wanted = false;
                free(TAKE_PTR(where));
                r = tree_check_copied(s->fd, there, &where);
                s->copied = r >= 0;
        }
        if (r == -ESTALE) {
                diag_warn(&m->work->warnings, "store-kept",
                          "%s of the root disk and %s/%s differ, and two stores cannot be merged. The one "
                          "on the disks is used; the other stays hidden under the mount. `mount --bind / "
                          "/mnt` shows it as /mnt%s; empty that if you need nothing in it",
                          s->move->from, m->target, s->move->name, s->move->from);
                return 0;
        }
        _free_ char *path = xasprintf("%s/%s", s->move->from, where ?: "");
        return r < 0 ? move_fail(m, r, "cannot be compared with what is on the disks", path) : 0;
}

static int source_look(const Moving *m, Source *s) {
        _free_ char *below = NULL;
        Place place;
        int r = source_open(m, s);
        if (r < 0)
                return r;
        r = place_look(s->fd, &place);
        if (r < 0)
                return move_fail(m, r, "cannot be examined", s->move->from);
        /* It is bound already, or links there. */
        _cleanup_(close_fd) int fd = open_there(m, s);
        Place there;
        s->there = fd >= 0 && place_look(fd, &there) >= 0 && place_same(place, there);
        if (s->there)
                return 0;
        if (place.mount)
                return work_fail(
                        m->work, -EBUSY, CAUSE_MOVE,
                        "%s has its own file system mounted on it, and nodestrap does not move file systems; "
                        "unmount it, or name %s",
                        s->move->from,
                        m->work->action->storage.volume ? "another target"
                                                        : "the directory in "
                                                          "spec.instance.localStorage.disabledMounts");
        r = mount_below(m->work, s->path, &below);
        if (r > 0)
                r = work_fail(
                        m->work, -EBUSY, CAUSE_MOVE,
                        "%s is mounted below %s, and the disks would hide it; unmount it first (stop the "
                        "pods that run from there)",
                        below, s->move->from);
        THEN(r, source_want(m, s));
        /* a volume takes only what it lacks */
        bool choose = source_kind(s->move).store && !m->work->action->storage.volume;
        return r >= 0 && s->wanted && choose ? store_choose(m, s) : r;
}

static bool lies_in(const char *path, const char *directory) {
        size_t n = strlen(directory);
        return strncmp(path, directory, n) == 0 && (path[n] == '/' || !path[n]);
}

static int target_open(Moving *m) {
        struct statvfs room;
        Place place;
        m->fd = root_open(m->work->root, m->target, O_RDONLY | O_DIRECTORY);
        if (m->fd < 0)
                return move_fail(m, m->fd, "cannot be opened", m->target);
        int r = place_look(m->fd, &place);
        if (r >= 0 && fstatvfs(m->fd, &room) < 0)
                r = -errno;
        if (r < 0)
                return move_fail(m, r, "cannot be examined", m->target);
        if (!place.mount)
                return work_fail(m->work, -ENODEV, CAUSE_MOVE,
                                 "nothing is mounted on %s, so nodestrap would copy to the root disk; "
                                 "findmnt and dmesg show what happened",
                                 m->target);
        _free_ char *path = place_path(m->fd);
        if (!path)
                return move_fail(m, -ENOSYS, "cannot be resolved (is /proc mounted?)", m->target);
        m->incoming = xasprintf("%s/" INCOMING, path);
        m->room = (uint64_t)room.f_bavail * room.f_frsize;
        return 0;
}

static int move_look(Moving *m) {
        const Action *a = m->work->action;
        int r = target_open(m);
        m->sources = xcalloc(a->storage.n_moves, sizeof *m->sources);
        for (; r >= 0 && m->n < a->storage.n_moves; m->n++) {
                Source *s = &m->sources[m->n];
                *s = (Source){ .move = &a->storage.moves[m->n], .fd = -1 };
                r = source_look(m, s);
                m->n_wanted += s->wanted;
                m->n_copied += s->copied;
        }
        if (r < 0)
                return r;
        for (size_t i = 0; i < m->n; i++)
                for (size_t k = 0; k < m->n; k++)
                        if (i != k && lies_in(m->sources[i].path, m->sources[k].path))
                                return work_fail(m->work, -ELOOP, CAUSE_MOVE,
                                                 "%s resolves to a path in %s (%s); give each its own "
                                                 "directory",
                                                 m->sources[i].move->from, m->sources[k].move->from,
                                                 m->sources[i].path);
        return 0;
}

static bool fills_whole(const Moving *m) {
        return m->n == 1 && m->sources[0].wanted && is_whole(&m->sources[0]);
}

/* The directory stays on a new volume, as a sign of an unfinished copy. */
static int incoming_clear(const Moving *m, char **where) {
        if (!fills_whole(m) || !is_directory(m->fd, INCOMING))
                return tree_remove(m->fd, INCOMING, where);
        _strv_ char **names = NULL;
        _cleanup_(close_fd) int fd = tree_open(m->fd, INCOMING);
        int r = fd < 0 ? fd : tree_list(fd, &names);
        for (char **name = names; r >= 0 && name && *name; name++)
                r = streq(*name, OWNER) ? 0 : tree_remove(fd, *name, where);
        return r;
}

static int incoming_remove(const Moving *m, bool done) {
        _free_ char *where = NULL;
        int r = done ? tree_remove(m->fd, INCOMING, &where) : incoming_clear(m, &where);
        _free_ char *path = xasprintf("%s/%s", m->target, where ?: "");
        return r < 0 ? move_fail(m, r, "is left over from an earlier copy and cannot be removed", path) : 0;
}

/* The slash copies what a link points to, under the name of the link. --preserve=xattr: -a alone ignores a
 * lost attribute, e.g. an overlay whiteout or a capability. */
static char **cp_arguments(const Moving *m) {
        static const char options[][20] = { "cp", "-a", "--preserve=xattr", "--" };
        const char *root = root_is_host(m->work->root) ? "" : root_path(m->work->root);
        char **argv = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                strv_add(&argv, options[i]);
        for (size_t i = 0; i < m->n; i++)
                if (m->sources[i].wanted)
                        strv_push(&argv, xasprintf("%s%s/", root, m->sources[i].move->from));
        strv_add(&argv, m->incoming);
        return argv;
}

static int cp_each(const Moving *m, const char *what) {
        const char *root = root_is_host(m->work->root) ? "" : root_path(m->work->root);
        int r = 0;
        for (size_t i = 0; r >= 0 && i < m->n; i++) {
                const Source *s = &m->sources[i];
                _free_ char *from = xasprintf("%s%s/", root, s->move->from),
                            *to = xasprintf("%s/%s", m->incoming, incoming_name(m, s));
                _strv_ char **argv = command("cp", "-aT", "--preserve=xattr", "--", from, to, NULL);
                if (s->wanted)
                        r = work_run(m->work, CAUSE_MOVE, what, argv);
        }
        return r;
}

static int sync_target(const Moving *m) {
        work_at(m->work, "writing the copy to the disks");
        return syncfs(m->fd) < 0 ? move_fail(m, -errno, "cannot be written to the disks", m->target) : 0;
}

static int fail_changed(const Moving *m, const Source *s, const char *where) {
        return work_fail(m->work, -ESTALE, CAUSE_MOVE,
                         "%s/%s changed during the copy, so it was not removed; find the program that "
                         "writes there, stop it, and run nodestrap init again",
                         s->move->from, where);
}

/* Before the takeover, as a file in the middle of a write is useless. */
static int verify(const Moving *m) {
        _cleanup_(close_fd) int incoming = tree_open(m->fd, INCOMING);
        int r = incoming < 0 ? move_fail(m, incoming, "cannot be opened", m->incoming) : 0;
        for (const Source *s = m->sources; r >= 0 && s < m->sources + m->n; s++) {
                if (!s->wanted)
                        continue;
                _cleanup_(close_fd) int copied = tree_open(incoming, incoming_name(m, s));
                _free_ char *where = NULL;
                r = copied < 0 ? copied : tree_check_copied(s->fd, copied, &where);
                if (r == -ESTALE)
                        return fail_changed(m, s, where);
                if (r < 0)
                        return move_fail(m, r, "cannot be compared with its copy", s->move->from);
        }
        return r;
}

static int move_copy(const Moving *m) {
        _strv_ char **argv = cp_arguments(m);
        _free_ char *what =
                xasprintf("copying to %s, where %llu MiB were free (the originals stay as they are)",
                          m->target, (unsigned long long)(m->room >> 20));
        /* no setgid bit for cp to inherit */
        if ((mkdirat(m->fd, INCOMING, 0700) < 0 && errno != EEXIST) || fchmodat(m->fd, INCOMING, 0700, 0) < 0)
                return move_fail(m, -errno, "cannot be made", m->incoming);
        if (fills_whole(m)) {
                /* A mark in the original came from another volume. */
                const Source *s = &m->sources[0];
                _free_ char *where = NULL;
                int r = tree_remove(s->fd, TAKEN, &where);
                if (r < 0)
                        return move_fail(m, r, "holds " TAKEN ", which cannot be removed", s->move->from);
                r = filling_begin(m->work, m->target, INCOMING "/" OWNER);
                if (r < 0)
                        return r;
        }
        int r = needs_names(m) ? cp_each(m, what) : work_run(m->work, CAUSE_MOVE, what, argv);
        THEN(r, verify(m));
        return r < 0 ? r : sync_target(m);
}

static int take_over_whole(const Moving *m, int incoming, const char *name, char **where) {
        _cleanup_(close_fd) int copy = tree_open(incoming, name);
        _strv_ char **names = NULL;
        int r = copy < 0 ? copy : tree_list(copy, &names);
        THEN(r, attributes_copy(copy, m->fd));
        for (char **entry = names; r >= 0 && entry && *entry; entry++)
                r = tree_merge(copy, *entry, m->fd, *entry, where);
        return r < 0 ? r : tree_remove(incoming, name, where);
}

static int take_over(const Moving *m) {
        _cleanup_(close_fd) int incoming = tree_open(m->fd, INCOMING);
        _free_ char *where = NULL;
        int r = incoming < 0 ? incoming : 0;
        for (size_t i = 0; r >= 0 && i < m->n; i++) {
                const Source *s = &m->sources[i];
                const char *name = incoming_name(m, s);
                if (s->wanted)
                        r = is_whole(s) ? take_over_whole(m, incoming, name, &where)
                                        : tree_merge(incoming, name, m->fd, s->move->name, &where);
        }
        _free_ char *path = xasprintf("%s/%s", m->target, where ?: INCOMING);
        return r < 0 ? move_fail(m, r, "cannot replace the old content", path) : sync_target(m);
}

/* The sync makes all removals below permanent (ext4 and xfs write their journals in order). An old file that
 * returned after a power cut would win over a newer one. */
static int original_remove(const Moving *m, const Source *s) {
        _cleanup_(close_fd) int there = open_there(m, s);
        _free_ char *where = NULL;
        int r = there < 0 ? there : tree_remove_copied(s->fd, there, &where);
        if (r >= 0 && fsync(s->fd) < 0)
                r = -errno;
        if (r == -ESTALE)
                return fail_changed(m, s, where);
        _free_ char *path = xasprintf("%s%s%s", s->move->from, where ? "/" : "", where ?: "");
        return r >= 0 ? 0
                      : move_fail(m, r, "is on the disks now, but could not be deleted from the root disk",
                                  path);
}

static int move(const Moving *m) {
        int r = m->n_wanted > 0 ? move_copy(m) : 0;
        if (r >= 0 && m->n_wanted > 0)
                r = take_over(m);
        if (r >= 0 && fills_whole(m)) {
                /* From here on the volume is filled for any machine, so originals may go. */
                if (renameat(m->fd, INCOMING, m->fd, TAKEN) < 0 || fsync(m->fd) < 0)
                        return move_fail(m, -errno, "cannot be marked as filled", m->target);
                r = filling_end(m->work, m->target);
        }
        for (size_t i = 0; r >= 0 && i < m->n; i++)
                if (m->sources[i].wanted || m->sources[i].copied)
                        r = original_remove(m, &m->sources[i]);
        return r;
}

/* The first phase wrote these files below the mount; those on the volume are from an earlier boot. */
static int file_renew(const Moving *m, const Source *s, const char *path) {
        _free_ char *data = NULL,
                    *there = xasprintf("%s/%s%s", m->target, s->move->name, path + strlen(s->move->from));
        struct stat st = {};
        size_t size = 0;
        int fd = root_open(m->work->root, path, O_PATH | O_NOFOLLOW),
            r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
        close_fd(&fd);
        if (r == -ENOENT || (r >= 0 && !S_ISREG(st.st_mode)))
                return 0;
        THEN(r, root_read(m->work->root, path, FILE_MAX, &data, &size));
        const int written = r < 0 ? r : root_replace(m->work->root, there, data, size, st.st_mode & 07777);
        r = written;
        /* With the same time it counts as a copy for original_remove(). */
        const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, st.st_mtim };
        _cleanup_(close_fd) int copy = r < 0 ? -1 : root_open(m->work->root, there, O_RDONLY | O_NOFOLLOW);
        if (r >= 0 && (copy < 0 || futimens(copy, times) < 0))
                r = copy < 0 ? copy : -errno;
        return r < 0 ? move_fail(m, r, "cannot be copied to the volume", path) : r;
}

static int files_renew(const Moving *m) {
        int changed = 0;
        for (char **path = m->work->action->storage.files; path && *path; path++)
                for (size_t i = 0; i < m->n; i++) {
                        const Source *s = &m->sources[i];
                        if (s->wanted || s->there || !lies_in(*path, s->move->from))
                                continue;
                        int r = file_renew(m, s, *path);
                        if (r < 0)
                                return r;
                        changed |= r;
                }
        return changed;
}

int move_work(Work *w) {
        _cleanup_(moving_done) Moving m = { .work = w, .target = w->action->target, .fd = -1 };
        int r = move_look(&m);
        THEN(r, incoming_remove(&m, false));
        int changed = r >= 0 ? files_renew(&m) : r;
        r = changed >= 0 && w->action->storage.volume ? volume_kept(&m) : changed;
        if (r < 0 || m.n_wanted + m.n_copied == 0)
                return MIN(r, 0) ?: changed;
        r = move(&m);
        if (r < 0) {
                _free_ char *where = NULL;
                /* the next run retries and reports */
                if (incoming_clear(&m, &where) < 0)
                        log_debug("%s/%s is left", m.target, where ?: INCOMING);
                return r;
        }
        r = incoming_remove(&m, true);
        if (r >= 0 && w->action->storage.volume && fsync(m.fd) < 0)
                r = move_fail(&m, -errno, "cannot be written to the volume", m.target);
        return r < 0 ? r : 1;
}
