/* SPDX-License-Identifier: Apache-2.0
 * /proc/self/mountinfo (proc(5)) → Mounts, by libmount; and the visible mount at a path. */
#include "host/detect.h"

#include "base/str.h"
#include "disk/libmount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#define MOUNTINFO "/proc/self/mountinfo"

/* The first line that libmount cannot read, where it stops. Only the main thread detects. */
static int bad_line;
static int on_bad_line(_unused_ struct libmnt_table *table, _unused_ const char *file, int line) {
        bad_line = line;
        return -1;
}

/* libmount also accepts lines that the kernel never prints (fstab lines, relative targets). It replaces
 * /dev/root, which does not exist, with a device of this machine. */
static bool take_mount(struct libmnt_fs *fs, Mount *ret) {
        const char *target = libmount.get_target(fs), *root = libmount.get_root(fs),
                   *type = libmount.get_fstype(fs), *source = libmount.get_source(fs);
        int id = libmount.get_id(fs), parent = libmount.get_parent_id(fs);
        dev_t number = libmount.get_devno(fs);
        if (!libmount.is_kernel(fs) || id < 0 || parent < 0 || !root || !target || *target != '/' || !type)
                return false;
        *ret = (Mount){
                .target = xstrdup(target),
                .source = xstrdup(source ?: ""),
                .number = xasprintf("%u:%u", major(number), minor(number)),
                .root = xstrdup(root),
                .type = xstrdup(type),
                /* of the mount or the file system */
                .read_only = libmount.get_option(fs, "ro", NULL, NULL) == 0,
                .id = (unsigned)id,
                .parent = (unsigned)parent,
        };
        return true;
}

static int take_table(struct libmnt_table *table, Storage *s) {
        struct libmnt_iter *i = libmount.new_iter(MNT_ITER_FORWARD);
        struct libmnt_fs *fs = NULL;
        if (!i)
                return -ENOMEM;
        s->mounts = xcalloc((size_t)libmount.get_nents(table), sizeof *s->mounts);
        while (!bad_line && libmount.next_fs(table, i, &fs) == 0)
                if (take_mount(fs, &s->mounts[s->n_mounts]))
                        s->n_mounts++;
                else
                        bad_line = (int)s->n_mounts + 1;
        libmount.free_iter(i);
        return 0;
}

/* A volume may have thousands of targets, each a mount. */
static void make_index(Storage *s) {
        s->seen = json_object();
        for (size_t i = 0; i < s->n_mounts; i++) {
                Mount *m = &s->mounts[i];
                _free_ char *target = path_normalise(m->target), *id = xasprintf("#%u", m->id);
                m->before = (size_t)json_integer_value(json_object_get(s->seen, target));
                json_object_set_new_nocheck(s->seen, target, json_integer((json_int_t)i + 1));
                if (!json_object_get(s->seen, id))
                        json_object_set_new_nocheck(s->seen, id, json_integer((json_int_t)i + 1));
        }
}

int mounts_read(FILE *file, Storage *s, Diag *diag) {
        const char *why = libmount_load();
        if (why)
                return diag_error(diag, -ELIBACC, CAUSE_STORAGE_TOOL,
                                  "libmount.so.1, which reads the mounts, cannot be loaded: %s", why);
        struct libmnt_table *table = libmount.new_table();
        bad_line = 0;
        int r = table ? libmount.set_parser_errcb(table, on_bad_line) : -ENOMEM;
        if (r == 0)
                r = libmount.parse_stream(table, file, MOUNTINFO);
        if (r == 0)
                r = take_table(table, s);
        make_index(s);
        libmount.unref_table(table);
        if (bad_line)
                return diag_error_at(
                        diag, -EBADMSG, CAUSE_FACTS,
                        &(Position){ .source = MOUNTINFO, .line = (unsigned)bad_line }, NULL,
                        "this line does not have the format of proc(5), so the mounts are not known");
        return r < 0 ? fact_error(diag, r, MOUNTINFO, "the mounts are not known") : 0;
}

int detect_mounts(const Root *root, Storage *s, Diag *diag) {
        _cleanup_(close_fd) int fd = root_open(root, MOUNTINFO, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        FILE *file = fd >= 0 ? fdopen(fd, "re") : NULL;
        if (fd == -ENOENT)
                return 0;
        if (!file)
                return fact_error(diag, fd < 0 ? fd : -errno, MOUNTINFO, "the mounts are not known");
        (void)TAKE_FD(fd);
        int r = mounts_read(file, s, diag);
        fclose(file);
        return r;
}

bool path_same(const char *a, const char *b) {
        _free_ char *x = path_normalise(a), *y = path_normalise(b);
        return streq(x, y);
}

static const Mount *mount_number(const Storage *s, size_t n) {
        return n > 0 ? &s->mounts[n - 1] : NULL;
}

/* The last mount at path, or the one before m. */
static const Mount *mount_before(const Storage *s, const char *path, const Mount *m) {
        if (s->seen && m)
                return mount_number(s, m->before);
        if (s->seen) {
                _free_ char *target = path_normalise(path);
                return mount_number(s, (size_t)json_integer_value(json_object_get(s->seen, target)));
        }
        for (size_t i = m ? (size_t)(m - s->mounts) : s->n_mounts; i-- > 0;)
                if (path_same(s->mounts[i].target, path))
                        return &s->mounts[i];
        return NULL;
}

static const Mount *mount_by_id(const Storage *s, unsigned id) {
        _free_ char *name = xasprintf("#%u", id);
        if (s->seen)
                return mount_number(s, (size_t)json_integer_value(json_object_get(s->seen, name)));
        return id ? FIND(m, s->mounts, s->n_mounts, m->id == id) : NULL;
}

/* "/a/b" → "/a" → "" (which is "/") → false */
static bool go_up(char *path) {
        char *slash = strrchr(path, '/');
        if (slash)
                *slash = 0;
        return slash;
}

/* Does a mount of the same file system on a parent directory hide m? */
static bool is_hidden(const Storage *s, const Mount *m) {
        _free_ char *above = path_normalise(m->target);
        while (m->id && go_up(above))
                for (const Mount *n = NULL; (n = mount_before(s, above, n));)
                        if (n != m && n->id != m->parent && n->parent == m->parent)
                                return true;
        return false;
}

static bool is_reachable(const Storage *s, const Mount *m) {
        bool reachable = true;
        /* terminates on circular ids */
        for (size_t steps = 0; m && reachable && steps < s->n_mounts; steps++) {
                reachable = !is_hidden(s, m);
                m = m->parent == m->id || !m->parent ? NULL : mount_by_id(s, m->parent);
        }
        return reachable;
}

/* Is another mount on top of m? */
static bool is_covered(const Storage *s, const Mount *m) {
        for (const Mount *n = NULL; m->id && (n = mount_before(s, m->target, n));)
                if (n != m && n->parent == m->id)
                        return true;
        return false;
}

const Mount *storage_mount_at(const Storage *s, const char *target) {
        const Directory *d = storage_directory(s, target);
        if (d && d->real)
                target = d->real;
        for (const Mount *m = NULL; (m = mount_before(s, target, m));)
                if (!is_covered(s, m) && is_reachable(s, m))
                        return m;
        return NULL;
}

const Mount *storage_mount_of(const Storage *s, const char *path) {
        _free_ char *above = path_normalise(path);
        do {
                const Mount *m = storage_mount_at(s, *above ? above : "/");
                if (m && path_same(m->target, above))
                        return m;
        } while (go_up(above));
        return NULL;
}
