/* SPDX-License-Identifier: Apache-2.0
 * The planned files → what containerd and kubelet of this machine say of them. Both start in namespaces of
 * their own, on a root that shows that of the machine read-only, with memory wherever they write. They see
 * no network but a loopback, no socket of a daemon that runs, and of control groups only what is made for
 * them. Their first process ends with us, and all others with it. tests/oracles/kubelet.py asks likewise. */
#include "doctor/checks.h"
#include "doctor/look.h"

#include "base/journal.h"
#include "base/paths.h"
#include "base/run.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"
#include "config/kubelet.h"
#include "doc/assignment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <jansson.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
/* Until both have answered, and then until what they had is gone: 20 s together. */
#define LIMIT_USEC  (18 * USEC_PER_SEC)
#define CLEAN_USEC  (2 * USEC_PER_SEC)
/* For the sentence that a program in the way has not ended. */
#define TELL_USEC   (2 * USEC_PER_SEC)
/* kubelet listens before it has looked at all settings of TLS. */
#define GRACE_USEC  USEC_PER_SEC
/* A containerd that may only log errors does not say that it has booted. */
#define SILENT_USEC (5 * USEC_PER_SEC)
/* It listens before it answers. */
#define BOOT_USEC   (300 * USEC_PER_MSEC)
#define SPACE       "/tmp"              /* where the new root is made */
#define CGROUPS     "/sys/fs/cgroup"

#define GROUP       "nodestrap-ask."

/* kind: "cpu", "name=systemd", "" is cgroup v2. fd: its lock, as long as we or the first process are there */
typedef struct Group { char *own, *kind; int fd; } Group;
typedef struct Ask {
        const Config *config;
        const Plan *plan;
        const Image *image;
        Group groups[16]; size_t n_groups;
        char **containerd, **kubelet, *alpha;           /* command lines; a variable for kubelet */
        int said[3], told[3];           /* pipes: what containerd, kubelet and kubelet again say */
        int again[2], fault[2];         /* a byte: kubelet again; why the root could not be made, or "." */
        uint64_t end_usec;              /* for all of it */
        char *why;                      /* nothing could be asked, in place of an error of the system */
} Ask;

static void ask_done(Ask *a) {
        for (size_t i = 0; i < a->n_groups; i++) {
                free(a->groups[i].own);
                free(a->groups[i].kind);
                close_fd(&a->groups[i].fd);
        }
        strv_free(a->containerd);
        strv_free(a->kubelet);
        free(a->alpha);
        free(a->why);
        for (size_t i = 0; i < ARRAY_SIZE(a->said); i++) {
                close_fd(&a->said[i]);
                close_fd(&a->told[i]);
        }
        for (size_t i = 0; i < 2; i++) {
                close_fd(&a->again[i]);
                close_fd(&a->fault[i]);
        }
}

static int put(const char *path, const void *data, size_t size, mode_t mode) {
        _cleanup_(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
        return fd >= 0 && write(fd, data, size) == (ssize_t)size && fchmod(fd, mode) == 0 ? 0 : -errno;
}

static int put_value(const char *path, const char *value) {
        _cleanup_(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd >= 0 && write(fd, value, strlen(value)) >= 0 ? 0 : -errno;
}

/* ---- control groups ---- */

static const char *kind_name(const char *kind) {
        return startswith(kind, "name=") ? kind + strlen("name=") : kind;
}

/* A group of cgroup v1 has no CPUs and no memory until it is given some. */
static void copy_cpuset(const char *from, const char *to) {
        static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _cleanup_(freep) char *source = xasprintf("%s/%s", from, files[i]),
                                      *target = xasprintf("%s/%s", to, files[i]), *value = NULL;
                _cleanup_(close_fd) int fd = open(source, O_RDONLY | O_CLOEXEC);
                if (fd >= 0 && fd_read(fd, 4096, &value, NULL) >= 0)
                        (void)!put_value(target, value);
        }
}

/* Where no process is in it. */
static bool group_remove(const char *path) {
        FTS *tree = fts_open((char *[]){ (char *)path, NULL }, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
        for (FTSENT *e = tree ? fts_read(tree) : NULL; e; e = fts_read(tree))
                if (e->fts_info == FTS_DP)
                        (void)!rmdir(e->fts_accpath);
        if (tree)
                fts_close(tree);
        return access(path, F_OK) < 0;
}

/* Of one that was killed. A number of a process is its own only within a namespace, and in a lock there is no
 * such doubt. */
static void stale_remove(const Root *root, const char *base) {
        _cleanup_(strv_freep) char **names = NULL;
        int r = root_list(root, base, &names);
        for (char **name = names; r >= 0 && name && *name; name++) {
                _cleanup_(freep) char *path = xasprintf("%s/%s", base, *name);
                _cleanup_(close_fd) int fd =
                        startswith(*name, GROUP) ? root_open(root, path, O_RDONLY | O_DIRECTORY) : -1;
                if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
                        (void)group_remove(path);
        }
}

/* In cgroup v1 below our own group, which a container may confine us to. In v2 the root alone may have both
 * processes and groups that have controllers. */
static int group_make(Ask *a, const char *kind, const char *path) {
        const Root *root = a->image->root;
        bool two = !*kind, pure = root_exists(root, CGROUPS "/cgroup.controllers") > 0;
        _cleanup_(freep) char *top = xasprintf(CGROUPS "%s%s", pure && two ? "" : "/",
                                               two ? (pure ? "" : "unified") : kind_name(kind)),
                              *base = xasprintf("%s%s", top, two ? "" : path);
        if (root_exists(root, top) <= 0 || a->n_groups == ARRAY_SIZE(a->groups))
                return 0;
        if (root_exists(root, base) <= 0) {
                free(base);
                base = xstrdup(top);
        }
        stale_remove(root, base);
        char *own = xasprintf("%s/" GROUP "%d.%llu", base, (int)getpid(), (unsigned long long)now_usec());
        Group *group = &a->groups[a->n_groups++];
        *group = (Group){ own, xstrdup(kind), -1 };
        if (mkdir(own, 0755) < 0)
                return -errno;
        group->fd = root_open(root, own, O_RDONLY | O_DIRECTORY);
        if (group->fd < 0)
                return group->fd;
        if (flock(group->fd, LOCK_SH) < 0)
                return -errno;
        if (!two)
                copy_cpuset(base, own);
        return 0;
}

static int groups_make(Ask *a) {
        static const char help[] = "give this container some that it can write to, or ask on a machine";
        _cleanup_(freep) char *text = NULL;
        int r = root_read(a->image->root, "/proc/self/cgroup", 1 << 16, &text, NULL);
        for (char *rest = text, *line = strsep(&rest, "\n"); r >= 0 && line && *line;
             line = strsep(&rest, "\n")) {
                char *path = line;
                (void)strsep(&path, ":");
                const char *kind = strsep(&path, ":");
                if (path)
                        r = group_make(a, kind, streq(path, "/") ? "" : path);
        }
        if (r < 0 && a->n_groups > 0)
                a->why = xasprintf("the control group %s cannot be made: %s; %s",
                                   a->groups[a->n_groups - 1].own, strerror(-r), help);
        else if (r >= 0 && a->n_groups == 0)
                a->why = xasprintf(CGROUPS " shows none of the control groups of this process; %s", help);
        return a->why && r >= 0 ? -ENOENT : r;
}

/* The kernel has ended every process of the namespace by then. */
static void groups_remove(const Ask *a) {
        uint64_t end = now_usec() + CLEAN_USEC;
        for (size_t i = 0; i < a->n_groups; i++)
                while (!group_remove(a->groups[i].own) && now_usec() < end)
                        usleep(10 * USEC_PER_MSEC);
}

/* ---- in the namespaces: the root ---- */

/* A directory that can be written: where that of the machine is in the way, memory covers it. */
static int cover(const char *path) {
        _cleanup_(freep) char *part = xstrdup(path);
        for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
                if (slash)
                        *slash = 0;
                if (mkdir(part, 0755) < 0 && errno == EROFS) {
                        char *last = strrchr(part, '/');
                        *last = 0;
                        int r = streq(part, "/usr") ? -1 : mount("nodestrap", part, "tmpfs", 0, "mode=0755");
                        *last = '/';
                        if (r < 0 || mkdir(part, 0755) < 0)
                                return -errno;
                }
                if (!slash)
                        break;
                *slash = '/';
        }
        return access(path, W_OK) == 0 || errno != EROFS ||
                               mount("nodestrap", path, "tmpfs", 0, "mode=0755") == 0
                       ? 0
                       : -errno;
}

static bool is_own_entry(const char *name) {
        static const char *const ours[] = { "etc", "proc", "run", "sys", "tmp", NULL };
        return strv_contains((char *const *)ours, name);
}

static int show_entry(const char *name) {
        _cleanup_(freep) char *from = xasprintf("/%s", name), *to = xasprintf(SPACE "/%s", name);
        char target[4096] = "";
        struct stat st;
        if (lstat(from, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode)))
                return 0;
        if (S_ISLNK(st.st_mode))
                return readlink(from, target, sizeof target - 1) < 0 || symlink(target, to) < 0 ? -errno : 0;
        bool ours = is_own_entry(name);
        return mkdir(to, 0755) < 0 || (!ours && mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0) ? -errno
                                                                                                   : 0;
}

/* The first process is in each group, whose root it is then. */
static int enter_groups(Ask *a) {
        for (size_t i = 0; i < a->n_groups; i++) {
                _cleanup_(freep) char *procs = xasprintf("%s/cgroup.procs", a->groups[i].own);
                int r = put_value(procs, "0");
                if (r < 0)
                        return r;
        }
        return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

/* v2 alone */
static bool groups_are_pure(const Ask *a) {
        return a->n_groups == 1 && !*a->groups[0].kind;
}

static char *group_top(const Ask *a, const Group *g) {
        bool pure = groups_are_pure(a);
        return xasprintf(CGROUPS "%s%s", pure ? "" : "/",
                         pure ? "" : *g->kind ? kind_name(g->kind) : "unified");
}

static int show_groups(Ask *a) {
        if (!groups_are_pure(a) && mount("nodestrap", CGROUPS, "tmpfs", 0, "mode=0755") < 0)
                return -errno;
        for (size_t i = 0; i < a->n_groups; i++) {
                const char *kind = a->groups[i].kind;
                _cleanup_(freep) char *top = group_top(a, &a->groups[i]),
                                      *data = xasprintf("%s%s", startswith(kind, "name=") ? "none," : "",
                                                        kind);
                (void)!mkdir(top, 0755);
                if (mount("nodestrap", top, *kind ? "cgroup" : "cgroup2", 0, *kind ? data : NULL) < 0)
                        return -errno;
                /* in v2 a group that gives controllers away has no process */
                _cleanup_(freep) char *daemons = xasprintf("%s/daemons", top),
                                      *procs = xasprintf("%s/cgroup.procs", daemons);
                if (!*kind && (mkdir(daemons, 0755) < 0 || put_value(procs, "0") < 0))
                        return -errno;
        }
        return 0;
}

/* Other checks are about swap and settings of the kernel. kubelet sees what it wants, and writes there. */
static int show_kernel(_unused_ Ask *a) {
        static const char none[] = "Filename Type Size Used Priority\n";
        int r = put(SPACE "/swaps", none, strlen(none), 0644);
        if (r >= 0 && mount(SPACE "/swaps", "/proc/swaps", NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
                r = -errno;
        for (size_t i = 0; r >= 0 && i < n_kubelet_tunables; i++) {
                _cleanup_(freep) char *file = xasprintf(SPACE "/setting%zu", i);
                r = put(file, kubelet_tunables[i].value, strlen(kubelet_tunables[i].value), 0644);
                if (r >= 0 && mount(file, kubelet_tunables[i].path, NULL, MS_BIND, NULL) < 0 &&
                    errno != ENOENT)
                        r = -errno;
        }
        return r;
}

/* Both daemons have systemd make their cgroups, and here is none. So those of containerd are plain, as
 * --cgroup-driver makes those of kubelet. */
static int write_planned(Ask *a) {
        static const char by_systemd[] = "SystemdCgroup = true";
        int r = 0;
        for (size_t i = 0; r >= 0 && i < a->plan->n; i++) {
                const Action *file = &a->plan->actions[i];
                if (file->type != ACTION_WRITE_FILE)
                        continue;
                _cleanup_(freep) char *content = xmemdup(file->file.content, file->file.size),
                                      *parent = xstrndup(file->target,
                                                         (size_t)(strrchr(file->target, '/') - file->target));
                char *at = streq(file->target, CONTAINERD_CONFIG) ? content : NULL;
                while (at && (at = strstr(at, by_systemd)))     /* by as many characters */
                        memcpy(at, "SystemdCgroup=false ", strlen(by_systemd));
                r = cover(parent);
                (void)!unlink(file->target);
                if (r >= 0)
                        r = put(file->target, content, file->file.size, file->file.mode & 07777);
        }
        return r;
}

/* In v2 what is below has those controllers alone that it is given. */
static void give_controllers(const char *group) {
        _cleanup_(freep) char *from = xasprintf("%s/cgroup.controllers", group), *text = NULL,
                              *to = xasprintf("%s/cgroup.subtree_control", group);
        _cleanup_(close_fd) int fd = open(from, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fd_read(fd, 4096, &text, NULL) < 0)
                return;
        for (char *rest = text, *word = strsep(&rest, " \n"); word; word = strsep(&rest, " \n")) {
                _cleanup_(freep) char *more = xasprintf("+%s", word);
                if (*word)
                        (void)!put_value(to, more);
        }
}

/* Where it cannot be made, kubelet tells of it. */
static void group_name(const Ask *a, const char *name) {
        name += strspn(name, "/");
        for (size_t i = 0; *name && !strstr(name, "..") && i < a->n_groups; i++) {
                char *parent = group_top(a, &a->groups[i]);
                _cleanup_(freep) char *words = xstrdup(name);
                for (char *rest = words, *word = strsep(&rest, "/"); word; word = strsep(&rest, "/")) {
                        char *path = xasprintf("%s/%s", parent, word);
                        give_controllers(parent);
                        if (mkdir(path, 0755) == 0)
                                copy_cpuset(parent, path);
                        free(parent);
                        parent = path;
                }
                free(parent);
        }
}

/* A boot has them from systemd, and kubelet ends where one is missing (kubernetes: pkg/kubelet/cm/
 * container_manager_linux.go and node_container_manager_linux.go). */
static const char *const named_groups[][2] = {
        { "cgroupRoot", "--cgroup-root" },
        { "kubeReservedCgroup", "--kube-reserved-cgroup" },
        { "systemReservedCgroup", "--system-reserved-cgroup" },
};

static void name_in_file(const Ask *a, const char *path) {
        _cleanup_(json_decrefp) json_t *json = json_load_file(path, 0, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(named_groups); i++)
                group_name(a, json_get_text(json, named_groups[i][0]));
}

/* "" where it is not among them */
static const char *flag_value(char *const *words, const char *flag) {
        const char *value = "";
        for (char *const *w = words; *w; w++)
                if (startswith(*w, flag) && (*w)[strlen(flag)] == '=')
                        value = *w + strlen(flag) + 1;
                else if (streq(*w, flag) && w[1])
                        value = w[1];
        return value;
}

/* As it is going to read them, with drop-ins of the image. */
static int name_groups(Ask *a) {
        const char *dir = flag_value(a->kubelet, "--config-dir");
        DIR *all = *dir ? opendir(dir) : NULL;
        name_in_file(a, flag_value(a->kubelet, "--config"));
        for (const struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
                _cleanup_(freep) char *path = xasprintf("%s/%s", dir, e->d_name);
                if (endswith(path, ".conf"))
                        name_in_file(a, path);
        }
        if (all)
                closedir(all);
        for (size_t i = 0; i < ARRAY_SIZE(named_groups); i++)
                group_name(a, flag_value(a->kubelet, named_groups[i][1]));
        return 0;
}

static int cover_places(Ask *a) {
        static const char *const places[] = { "/var/lib", "/var/log", "/var/tmp" };
        _cleanup_(storage_places_done) StoragePlaces theirs = storage_binds_of(a->config);
        int r = 0;
        (void)!cover("/usr/libexec/kubernetes");        /* for plugins: kubelet goes on without */
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(places); i++)
                r = cover(places[i]);
        for (size_t i = 0; r >= 0 && i < theirs.n; i++)
                r = *theirs.all[i].path == '/' ? cover(theirs.all[i].path) : 0;
        return r;
}

static void loopback_up(void) {
        _cleanup_(close_fd) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        (void)!ioctl(fd, SIOCSIFFLAGS, &lo);
}

static int close_mounts(Ask *a) {
        const struct { uint64_t set, clear, propagation, userns; } closed = { 1 /* MOUNT_ATTR_RDONLY */, 0,
                                                                              MS_PRIVATE, 0 };
        if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0x8000 /* AT_RECURSIVE */, &closed, sizeof closed) >= 0)
                return 0;
        if (errno == EINVAL)            /* mount_setattr(2) */
                a->why = xstrdup("/ is not a mount, as in a chroot whose directory is not one; mount --bind "
                                 "DIR DIR before chroot DIR");
        return -errno;
}

static int make_root(Ask *a) {
        _cleanup_(strv_freep) char **names = NULL;
        int r = mount("nodestrap", SPACE, "tmpfs", 0, "mode=0755") < 0 ? -errno : 0;
        if (r >= 0)
                r = root_list(a->image->root, "/", &names);
        for (char **name = names; r >= 0 && name && *name; name++)
                r = show_entry(*name);
        return r;
}

static int copy_settings(Ask *a) {
        char *cp[] = { (char *)"cp", (char *)"-a", (char *)"/etc/.", (char *)SPACE "/etc", NULL };
        _cleanup_(child_result_done) ChildResult copied = {};
        int r = child_run_until(cp, a->end_usec - TELL_USEC, -1, 0, &copied);
        if (r >= 0 && copied.timed_out)
                a->why = xstrdup("cp -a /etc/. does not end; look for a file system there that does not "
                                 "answer");
        else if (r >= 0 && copied.status != 0) {
                const char *last = strrchr(copied.errors, '\n');
                last = last ? last + 1 : copied.errors;
                a->why = xasprintf("cp -a /etc/. ends with %d%s%s; correct that, and ask again",
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
        { "enter a control group",       enter_groups  },
        { "make its mounts read-only",   close_mounts  },
        { "make a root of its own",      make_root     },
        { "copy /etc",                   copy_settings },
        { "enter a root of its own",     enter_root    },
        { "show control groups",         show_groups   },
        { "show settings of the kernel", show_kernel   },
        { "make places for the daemons", cover_places  },
        { "write the planned files",     write_planned },
        { "make the groups of kubelet",  name_groups   },
};

/* Why it cannot be made, or NULL; the caller's. */
static char *root_make(Ask *a) {
        for (size_t i = 0; i < ARRAY_SIZE(root_steps); i++) {
                int r = root_steps[i].step(a);
                if (r < 0)
                        return xasprintf("this machine does not let it %s: %s", root_steps[i].doing,
                                         a->why ?: strerror(-r));
        }
        return NULL;
}

/* ---- in the namespaces: the processes ---- */

static void start(char *const *argv, int out) {
        sigset_t none;
        if (fork() > 0)
                return;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (int n = 1; n < NSIG; n++)
                (void)!signal(n, SIG_DFL);
        int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(in, STDIN_FILENO);
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        execve(argv[0], argv, environ);
        _exit(127);
}

/* The first process of the namespace. A pipe without a writer tells that a daemon has ended. */
_noreturn_ static void first_process(Ask *a) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_fd(&a->again[1]);
        close_fd(&a->fault[0]);
        char *why = root_make(a);
        (void)!write(a->fault[1], why ?: ".", strlen(why ?: "."));
        if (why)
                _exit(1);
        close_fd(&a->fault[1]);
        loopback_up();
        unsetenv("NOTIFY_SOCKET");
        if (a->alpha)
                setenv("KUBELET_CONFIG_DROPIN_DIR_ALPHA", a->alpha, 1);
        start(a->containerd, a->told[0]);
        close_fd(&a->told[0]);
        start(a->kubelet, a->told[1]);
        close_fd(&a->told[1]);
        if (read(a->again[0], &byte, 1) == 1)
                start(a->kubelet, a->told[2]);
        close_fd(&a->told[2]);
        while (read(a->again[0], &byte, 1) > 0)
                ;
        _exit(0);
}

/* ---- what they say ---- */

typedef struct Daemon {
        int *fd;                        /* -1: it has ended */
        Text line;
        char *said;                     /* the last line that may say why it ends, or just the last */
        bool fatal, stands, refuses;
        uint64_t stands_usec;
} Daemon;

static void daemon_done(Daemon *d) {
        text_done(&d->line);
        free(d->said);
}

/* The letter and date of klog, or JSON; then the words of the main function of kubelet, or of its managers. */
static bool is_fatal(const char *line) {
        static const char *const begins[] = { "panic:", "fatal error:", "Error:", "containerd: " },
                                 *const words[] = { "\"command failed\"", "run.go:", "\"Failed to " };
        bool klog = line[0] && is_digit(line[1]) && is_digit(line[2]), json = *line == '{';
        for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
                if (startswith(line, begins[i]))
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if ((json || (klog && *line == 'E')) && strstr(line, words[i]))
                        return true;
        return (klog && *line == 'F') || (json && strstr(line, "\"level\":\"fatal\""));
}

static void line_take(Daemon *d, bool kubelet, const char *line) {
        bool plugin = !kubelet && !d->refuses && strstr(line, "failed to load plugin") &&
                      strstr(line, ".cri"),
             fatal = is_fatal(line) || plugin;
        if (strstr(line, kubelet ? "Starting Kubelet Plugin Manager" : "containerd successfully booted")) {
                d->stands = true;
                d->stands_usec = now_usec();
        }
        if (d->refuses || !*line || (d->fatal && !fatal))
                return;
        free(d->said);
        d->said = xstrdup(line);
        d->fatal = fatal;
        d->refuses |= plugin;
}

static void daemon_read(Daemon *d, bool kubelet) {
        char buffer[4096];
        ssize_t n = read(*d->fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
                return;
        if (n <= 0)
                close_fd(d->fd);
        for (ssize_t i = 0; i < n || (n <= 0 && d->line.size > 0);) {
                const char *end = n > 0 ? memchr(buffer + i, '\n', (size_t)(n - i)) : NULL;
                size_t size = n > 0 ? (size_t)((end ?: buffer + n) - (buffer + i)) : 0;
                if (d->line.size < 1 << 16)
                        text_add_bytes(&d->line, buffer + i, size);
                i += (ssize_t)size + (end != NULL);
                if (n > 0 && !end)
                        break;
                _cleanup_(freep) char *line = text_take(&d->line);
                line_take(d, kubelet, line);
        }
}

static bool waits_for_containerd(const Daemon *kubelet) {
        return kubelet->said && strstr(kubelet->said, "validate service connection");
}

/* Until both are known to stand or refuse. kubelet looks at its settings while containerd starts, and where
 * it ends for want of that, it starts once more. */
static void listen_to(Ask *a, Daemon *containerd, Daemon *kubelet) {
        uint64_t begin = now_usec();
        bool again = false;
        for (uint64_t now = begin; now < a->end_usec && !stop_signal(); now = now_usec()) {
                bool up = now > (containerd->stands ? containerd->stands_usec + BOOT_USEC
                                                    : begin + SILENT_USEC),
                     over = containerd->refuses || *containerd->fd < 0;
                containerd->refuses |= *containerd->fd < 0;
                containerd->stands |= kubelet->stands;
                if (kubelet->stands && (*kubelet->fd < 0 || now > kubelet->stands_usec + GRACE_USEC))
                        return;
                if (*kubelet->fd < 0 && (again || over || !waits_for_containerd(kubelet))) {
                        kubelet->refuses = true;
                        if (over || up)
                                return;
                } else if (*kubelet->fd < 0 && up) {
                        again = true;
                        kubelet->fd = &a->said[2];
                        kubelet->fatal = false;
                        (void)!write(a->again[1], "", 1);
                }
                struct pollfd fds[] = { { .fd = *containerd->fd, .events = POLLIN },
                                        { .fd = *kubelet->fd, .events = POLLIN } };
                if (poll(fds, ARRAY_SIZE(fds), 100) <= 0)
                        continue;
                if (fds[0].revents)
                        daemon_read(containerd, false);
                if (fds[1].revents)
                        daemon_read(kubelet, true);
        }
}

static void conclude(const Daemon *d, Asked *ret) {
        ret->verdict = d->refuses || (d->stands && *d->fd < 0) ? CHECK_FAILED
                       : d->stands                             ? CHECK_OK
                                                               : CHECK_UNKNOWN;
        ret->said = ret->verdict == CHECK_FAILED ? log_error(d->said ?: "it ends without a word")
                    : ret->verdict == CHECK_OK   ? NULL
                                                 : xasprintf("it neither stands nor ends within %d s; ask "
                                                             "again where less runs beside it",
                                                             (int)(LIMIT_USEC / USEC_PER_SEC));
}

/* ---- the whole ---- */

static int open_pipes(Ask *a) {
        int ends[2];
        for (size_t i = 0; i < ARRAY_SIZE(a->said); i++) {
                if (pipe2(ends, O_CLOEXEC) < 0)
                        return -errno;
                a->said[i] = ends[0];
                a->told[i] = ends[1];
        }
        return pipe2(a->again, O_CLOEXEC) < 0 || pipe2(a->fault, O_CLOEXEC) < 0 ? -errno : 0;
}

/* The caller's; NULL: there is none, and a->why says so. */
static char *find_daemon(Ask *a, const char *name) {
        _cleanup_(freep) char *odd = NULL, *path = program_find(a->image->root, name, &odd);
        if (!path && !a->why)
                a->why = odd ? xasprintf("%s cannot be executed; chmod 755 %s, or leave --ask out", odd, odd)
                             : xasprintf("this machine has no %s in the PATH of systemd (/usr/bin and so "
                                         "on); install it, or leave --ask out",
                                         name);
        return TAKE_PTR(path);
}

/* --v=2: with less it does not say that it has started. */
static int command_lines(Ask *a) {
        const Action *environment = plan_find(a->plan, "write-file:" KUBELET_ENVIRONMENT);
        const char *driver = json_get_text(a->config->kubelet.config, "cgroupDriver");
        _cleanup_(freep) char *kubelet = find_daemon(a, "kubelet"),
                              *containerd = find_daemon(a, "containerd");
        if (!environment && !a->why)
                a->why = xstrdup("the plan does not write " KUBELET_ENVIRONMENT ", which starts kubelet; "
                                 "correct the NodeConfig, or leave --ask out");
        if (a->why || !environment)
                return -ENOENT;
        _cleanup_(freep) char *line = assignment_in_environment(environment->file.content,
                                                                "NODEADM_KUBELET_ARGS");
        _cleanup_(strv_freep) char **words = assignment_split(line ?: "");
        a->alpha = assignment_in_environment(environment->file.content, "KUBELET_CONFIG_DROPIN_DIR_ALPHA");
        strv_push(&a->kubelet, TAKE_PTR(kubelet));
        strv_extend(&a->kubelet, words);
        strv_add(&a->kubelet, "--v=2");
        if (!*driver || streq(driver, "systemd"))
                strv_add(&a->kubelet, "--cgroup-driver=cgroupfs");
        strv_push(&a->containerd, TAKE_PTR(containerd));
        strv_add(&a->containerd, "--config");
        strv_add(&a->containerd, CONTAINERD_CONFIG);
        return 0;
}

/* The reason why its root cannot be made, else NULL; the caller's. */
static char *read_fault(Ask *a) {
        _cleanup_(text_done) Text why = {};
        char buffer[512];
        ssize_t n = 1;
        close_fd(&a->fault[1]);
        while (n > 0) {
                int r = stop_wait(a->fault[0], a->end_usec);
                if (r < 0 || (r == 0 && now_usec() >= a->end_usec))
                        return xstrdup("this machine has not made its root in time; ask again where less "
                                       "runs beside it");
                n = r > 0 ? read(a->fault[0], buffer, sizeof buffer) : 1;
                text_add_bytes(&why, buffer, r > 0 && n > 0 ? (size_t)n : 0);
        }
        if (why.data && streq(why.data, "."))
                return NULL;
        return why.data ? text_take(&why) : xstrdup("its first process was killed; look for want of memory");
}

static void ask(Ask *a, Asked ret[static 2]) {
        _cleanup_(daemon_done) Daemon containerd = { .fd = &a->said[0] }, kubelet = { .fd = &a->said[1] };
        a->end_usec = now_usec() + LIMIT_USEC;
        pid_t pid = (pid_t)syscall(SYS_clone,
                                   CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | SIGCHLD, NULL,
                                   NULL, NULL, NULL);
        if (pid == 0)
                first_process(a);
        for (size_t i = 0; i < ARRAY_SIZE(a->told); i++)
                close_fd(&a->told[i]);
        _cleanup_(freep) char *fault = pid < 0 ? xasprintf("this machine lets it have no namespaces: %s",
                                                           strerror(errno))
                                               : read_fault(a);
        if (!fault)
                listen_to(a, &containerd, &kubelet);
        if (pid > 0) {
                kill(pid, SIGKILL);
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        conclude(&containerd, &ret[0]);
        conclude(&kubelet, &ret[1]);
        bool blind = ret[0].verdict == CHECK_FAILED && waits_for_containerd(&kubelet);
        for (size_t i = 0; i < 2; i++)
                if (fault || (i == 1 && blind)) {
                        free(ret[i].said);
                        ret[i] = (Asked){ CHECK_UNKNOWN,
                                          xstrdup(fault ?: "it was not asked all, for want of containerd") };
                }
}

int daemons_ask(const Image *image, const Config *config, const Plan *plan, Asked ret[static 2], Diag *diag) {
        _cleanup_(ask_done) Ask a = { .config = config, .plan = plan, .image = image, .said = { -1, -1, -1 },
                                      .told = { -1, -1, -1 }, .again = { -1, -1 }, .fault = { -1, -1 } };
        int r = command_lines(&a);
        stop_catch();
        if (r >= 0)
                r = open_pipes(&a);
        if (r >= 0)
                r = groups_make(&a);
        if (r >= 0)
                ask(&a, ret);
        groups_remove(&a);
        if (r >= 0 && stop_signal())
                r = -EINTR;
        return r >= 0 ? 0
                      : diag_error(diag, r, r == -EINTR ? CAUSE_INTERRUPTED : CAUSE_IMAGE,
                                   "kubelet and containerd could not be asked: %s",
                                   r == -EINTR ? stop_name(stop_signal()) : a.why ?: strerror(-r));
}
