/* SPDX-License-Identifier: Apache-2.0
 * The root of the daemons that doctor starts: the machine read-only, memory where they write, the planned
 * files. */
#include "doctor/ask.h"
#include "doctor/look.h"

#include "base/paths.h"
#include "base/run.h"
#include "config/kubelet.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define SPACE     "/tmp"
/* Time left to report that cp did not end. */
#define TELL_USEC (2 * USEC_PER_SEC)

static int put(const char *path, const void *data, size_t size, mode_t mode) {
        _cleanup_(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
        return fd >= 0 && write(fd, data, size) == (ssize_t)size && fchmod(fd, mode) == 0 ? 0 : -errno;
}

static int cover_whole(const char *path) {
        return mount("nodestrap", path, "tmpfs", 0, "mode=0755");
}

/* Makes a writable directory; covers a read-only one with a tmpfs. */
static int cover(const char *path) {
        _free_ char *part = xstrdup(path);
        for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
                if (slash)
                        *slash = 0;
                if (mkdir(part, 0755) < 0 && errno == EROFS) {
                        char *last = strrchr(part, '/');
                        *last = 0;
                        int r = streq(part, "/usr") ? -1 : cover_whole(part);
                        *last = '/';
                        if (r < 0 || mkdir(part, 0755) < 0)
                                return -errno;
                }
                if (!slash)
                        break;
                *slash = '/';
        }
        return access(path, W_OK) == 0 || errno != EROFS || cover_whole(path) == 0 ? 0 : -errno;
}

static int show_entry(const char *name) {
        _free_ char *from = xasprintf("/%s", name), *to = xasprintf(SPACE "/%s", name);
        char target[4096] = "";
        struct stat st;
        if (lstat(from, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode)))
                return 0;
        if (S_ISLNK(st.st_mode))
                return readlink(from, target, sizeof target - 1) < 0 || symlink(target, to) < 0 ? -errno : 0;
        bool ours = ONE_OF(name, "etc", "proc", "run", "sys", "tmp");
        return mkdir(to, 0755) < 0 || (!ours && mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0) ? -errno
                                                                                                   : 0;
}

/* Other checks look at swap and kernel settings. kubelet sees the values it wants, and may write there. */
static int show_kernel(_unused_ Ask *a) {
        static const char none[] = "Filename Type Size Used Priority\n";
        int r = put(SPACE "/swaps", none, strlen(none), 0644);
        if (r >= 0 && mount(SPACE "/swaps", "/proc/swaps", NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
                r = -errno;
        for (size_t i = 0; r >= 0 && i < n_kubelet_tunables; i++) {
                _free_ char *file = xasprintf(SPACE "/setting%zu", i);
                r = put(file, kubelet_tunables[i].value, strlen(kubelet_tunables[i].value), 0644);
                if (r >= 0 && mount(file, kubelet_tunables[i].path, NULL, MS_BIND, NULL) < 0 &&
                    errno != ENOENT)
                        r = -errno;
        }
        return r;
}

/* Here systemd does not make cgroups: containerd uses plain ones, as --cgroup-driver makes kubelet do. */
static int write_planned(Ask *a) {
        static const char by_systemd[] = "SystemdCgroup = true";
        int r = 0;
        for (size_t i = 0; r >= 0 && i < a->plan->n; i++) {
                const Action *file = &a->plan->actions[i];
                if (file->type != ACTION_WRITE_FILE)
                        continue;
                _free_ char *content = xmemdup(file->file.content, file->file.size),
                            *parent = parent_of(file->target);
                char *at = streq(file->target, CONTAINERD_CONFIG) ? content : NULL;
                while (at && (at = strstr(at, by_systemd)))     /* of the same length */
                        memcpy(at, "SystemdCgroup=false ", strlen(by_systemd));
                r = cover(parent);
                (void)!unlink(file->target);
                THEN(r, put(file->target, content, file->file.size, file->file.mode & 07777));
        }
        return r;
}

static int cover_places(Ask *a) {
        static const char places[][12] = { "/var/lib", "/var/log", "/var/tmp" };
        _cleanup_(storage_places_done) StoragePlaces theirs =
                storage_binds_of(a->config, a->image->containerd);
        int r = 0;
        (void)!cover("/usr/libexec/kubernetes");        /* for plugins; kubelet runs without it */
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(places); i++)
                r = cover(places[i]);
        for (size_t i = 0; r >= 0 && i < theirs.n; i++)
                r = *theirs.all[i].path == '/' ? cover(theirs.all[i].path) : 0;
        return r;
}

static int close_mounts(Ask *a) {
        const struct { uint64_t set, clear, propagation, userns; } closed = { 1 /* MOUNT_ATTR_RDONLY */, 0,
                                                                              MS_PRIVATE, 0 };
        if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0x8000 /* AT_RECURSIVE */, &closed, sizeof closed) >= 0)
                return 0;
        if (errno == EINVAL)            /* mount_setattr(2) */
                a->why = xstrdup("/ is not a mount point; run mount --bind DIR DIR before chroot DIR");
        return -errno;
}

static int make_root(Ask *a) {
        _strv_ char **names = NULL;
        int r = cover_whole(SPACE) < 0 ? -errno : 0;
        THEN(r, root_list(a->image->root, "/", &names));
        for (char **name = names; r >= 0 && name && *name; name++)
                r = show_entry(*name);
        return r;
}

static int copy_settings(Ask *a) {
        char *cp[] = { (char *)"cp", (char *)"-a", (char *)"/etc/.", (char *)SPACE "/etc", NULL };
        _cleanup_(child_result_done) ChildResult copied = {};
        int r = child_run_until(cp, a->end_usec - TELL_USEC, -1, 0, &copied);
        if (r >= 0 && copied.timed_out)
                a->why = xstrdup("cp -a /etc/. hangs; look for a file system there that does not respond");
        else if (r >= 0 && copied.status != 0) {
                const char *last = strrchr(copied.errors, '\n');
                last = last ? last + 1 : copied.errors;
                a->why = xasprintf("cp -a /etc/. exited with %d%s%s; correct the cause and try again",
                                   copied.status, *last ? ": " : "", last);
        }
        return a->why ? -EIO : r;
}

static int enter_root(_unused_ Ask *a) {
        return chdir(SPACE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
                               chdir("/") < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0 ||
                               mount("sysfs", "/sys", "sysfs", MS_RDONLY, NULL) < 0 || chmod(SPACE, 01777) < 0
                       ? -errno
                       : 0;
}

static const struct { const char *doing; int (*step)(Ask *a); } root_steps[] = {
        { "enter a control group", ask_groups_enter },
        { "make its mounts read-only", close_mounts },
        { "make a root directory of its own", make_root },
        { "copy /etc", copy_settings },
        { "enter a root directory of its own", enter_root },
        { "mount control groups", ask_groups_show },
        { "mount kernel settings", show_kernel },
        { "make directories for the daemons", cover_places },
        { "write the planned files", write_planned },
        { "create the control groups of kubelet", ask_groups_name },
};

char *ask_root_make(Ask *a) {
        for (size_t i = 0; i < ARRAY_SIZE(root_steps); i++) {
                int r = root_steps[i].step(a);
                if (r < 0)
                        return xasprintf("this machine does not let nodestrap %s: %s", root_steps[i].doing,
                                         a->why ?: strerror(-r));
        }
        return NULL;
}
