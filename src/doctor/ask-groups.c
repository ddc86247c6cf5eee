/* SPDX-License-Identifier: Apache-2.0
 * The control groups of the daemons that doctor starts. */
#include "doctor/ask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <jansson.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP "nodestrap-ask."

static int put_value(const char *path, const char *value) {
        _cleanup_(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd >= 0 && write(fd, value, strlen(value)) >= 0 ? 0 : -errno;
}

static const char *kind_name(const char *kind) {
        return startswith(kind, "name=") ? kind + strlen("name=") : kind;
}

/* A new group of cgroup v1 has neither CPUs nor memory. */
static void copy_cpuset(const char *from, const char *to) {
        static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _free_ char *source = xasprintf("%s/%s", from, files[i]),
                            *target = xasprintf("%s/%s", to, files[i]), *value = NULL;
                _cleanup_(close_fd) int fd = open(source, O_RDONLY | O_CLOEXEC);
                if (fd >= 0 && fd_read(fd, 4096, &value, NULL) >= 0)
                        (void)!put_value(target, value);
        }
}

static bool group_remove(const char *path) {
        FTS *tree = fts_open((char *[]){ (char *)path, NULL }, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
        for (FTSENT *e = tree ? fts_read(tree) : NULL; e; e = fts_read(tree))
                if (e->fts_info == FTS_DP)
                        (void)!rmdir(e->fts_accpath);
        if (tree)
                fts_close(tree);
        return access(path, F_OK) < 0;
}

/* Groups of a killed doctor. Found by lock, as a process number means something else in another namespace. */
static void stale_remove(const Root *root, const char *base) {
        _strv_ char **names = NULL;
        int r = root_list(root, base, &names);
        for (char **name = names; r >= 0 && name && *name; name++) {
                _free_ char *path = xasprintf("%s/%s", base, *name);
                _cleanup_(close_fd) int fd =
                        startswith(*name, GROUP) ? root_open(root, path, O_RDONLY | O_DIRECTORY) : -1;
                if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
                        (void)group_remove(path);
        }
}

/* v1: below our own group, which a container may confine us to. v2: only the root may have both processes
 * and groups with controllers. */
static int group_make(Ask *a, const char *kind, const char *path) {
        const Root *root = a->image->root;
        bool two = !*kind, pure = root_exists(root, CGROUPS "/cgroup.controllers") > 0;
        _free_ char *top = xasprintf(CGROUPS "%s%s", pure && two ? "" : "/",
                                     two ? (pure ? "" : "unified") : kind_name(kind)),
                    *base = xasprintf("%s%s", top, two ? "" : path);
        if (root_exists(root, top) <= 0 || a->n_groups == ARRAY_SIZE(a->groups))
                return 0;
        if (root_exists(root, base) <= 0)
                RENEW(base, xstrdup(top));
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

int ask_groups_make(Ask *a) {
        static const char help[] = "give this container writable control groups, or use --ask outside a "
                                   "container";
        _free_ char *text = NULL;
        int r = root_read(a->image->root, "/proc/self/cgroup", 1 << 16, &text, NULL);
        char *rest = text;
        for (char *path = strsep(&rest, "\n"); r >= 0 && path && *path; path = strsep(&rest, "\n")) {
                (void)strsep(&path, ":");
                const char *kind = strsep(&path, ":");
                if (path)
                        r = group_make(a, kind, streq(path, "/") ? "" : path);
        }
        if (r < 0 && a->n_groups > 0)
                a->why = xasprintf("the control group %s cannot be created: %s; %s",
                                   a->groups[a->n_groups - 1].own, strerror(-r), help);
        else if (r >= 0 && a->n_groups == 0)
                a->why = xasprintf(CGROUPS " has none of the control groups of this process; %s", help);
        return a->why && r >= 0 ? -ENOENT : r;
}

void ask_groups_remove(const Ask *a) {
        uint64_t end = now_usec() + ASK_CLEAN_USEC;
        for (size_t i = 0; i < a->n_groups; i++)
                while (!group_remove(a->groups[i].own) && now_usec() < end)
                        usleep(10 * USEC_PER_MSEC);
}

/* The new cgroup namespace has these groups as its roots. */
int ask_groups_enter(Ask *a) {
        for (size_t i = 0; i < a->n_groups; i++) {
                _free_ char *procs = xasprintf("%s/cgroup.procs", a->groups[i].own);
                int r = put_value(procs, "0");
                if (r < 0)
                        return r;
        }
        return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

static bool groups_are_pure(const Ask *a) {
        return a->n_groups == 1 && !*a->groups[0].kind;
}

static char *group_top(const Ask *a, const Group *g) {
        bool pure = groups_are_pure(a);
        return xasprintf(CGROUPS "%s%s", pure ? "" : "/",
                         pure ? "" : *g->kind ? kind_name(g->kind) : "unified");
}

int ask_groups_show(Ask *a) {
        if (!groups_are_pure(a) && mount("nodestrap", CGROUPS, "tmpfs", 0, "mode=0755") < 0)
                return -errno;
        for (size_t i = 0; i < a->n_groups; i++) {
                const char *kind = a->groups[i].kind;
                _free_ char *top = group_top(a, &a->groups[i]),
                            *data = xasprintf("%s%s", startswith(kind, "name=") ? "none," : "", kind);
                (void)!mkdir(top, 0755);
                if (mount("nodestrap", top, *kind ? "cgroup" : "cgroup2", 0, *kind ? data : NULL) < 0)
                        return -errno;
                /* in v2 a group that delegates controllers may not have processes */
                _free_ char *daemons = xasprintf("%s/daemons", top),
                            *procs = xasprintf("%s/cgroup.procs", daemons);
                if (!*kind && (mkdir(daemons, 0755) < 0 || put_value(procs, "0") < 0))
                        return -errno;
        }
        return 0;
}

/* In v2 a child has only the controllers that its parent delegates. */
static void give_controllers(const char *group) {
        _free_ char *from = xasprintf("%s/cgroup.controllers", group), *text = NULL,
                    *to = xasprintf("%s/cgroup.subtree_control", group);
        _cleanup_(close_fd) int fd = open(from, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fd_read(fd, 4096, &text, NULL) < 0)
                return;
        for (char *rest = text, *word = strsep(&rest, " \n"); word; word = strsep(&rest, " \n")) {
                _free_ char *more = xasprintf("+%s", word);
                if (*word)
                        (void)!put_value(to, more);
        }
}

/* kubelet reports a group that is missing. */
static void group_name(const Ask *a, const char *name) {
        name += strspn(name, "/");
        for (size_t i = 0; *name && !strstr(name, "..") && i < a->n_groups; i++) {
                char *parent = group_top(a, &a->groups[i]);
                _free_ char *words = xstrdup(name);
                for (char *rest = words, *word = strsep(&rest, "/"); word; word = strsep(&rest, "/")) {
                        char *path = xasprintf("%s/%s", parent, word);
                        give_controllers(parent);
                        if (mkdir(path, 0755) == 0)
                                copy_cpuset(parent, path);
                        RENEW(parent, path);
                }
                free(parent);
        }
}

/* systemd makes these on a node; kubelet exits if one is missing (kubernetes:
 * pkg/kubelet/cm/container_manager_linux.go and node_container_manager_linux.go). */
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

static const char *flag_value(char *const *words, const char *flag) {
        const char *value = "";
        for (char *const *w = words; *w; w++)
                if (startswith(*w, flag) && (*w)[strlen(flag)] == '=')
                        value = *w + strlen(flag) + 1;
                else if (streq(*w, flag) && w[1])
                        value = w[1];
        return value;
}

/* With drop-ins of the image, as kubelet reads them. */
int ask_groups_name(Ask *a) {
        const char *dir = flag_value(a->kubelet, "--config-dir");
        DIR *all = *dir ? opendir(dir) : NULL;
        name_in_file(a, flag_value(a->kubelet, "--config"));
        for (const struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
                _free_ char *path = xasprintf("%s/%s", dir, e->d_name);
                if (endswith(path, ".conf"))
                        name_in_file(a, path);
        }
        if (all)
                closedir(all);
        for (size_t i = 0; i < ARRAY_SIZE(named_groups); i++)
                group_name(a, flag_value(a->kubelet, named_groups[i][1]));
        return 0;
}
