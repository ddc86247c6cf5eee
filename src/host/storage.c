/* SPDX-License-Identifier: Apache-2.0
 * The inputs of storage plans → Host.storage and contents of disks, read again at each boot. */
#include "host/detect.h"

#include "base/paths.h"
#include "base/str.h"
#include "base/time.h"
#include "config/containerd.h"
#include "config/kubelet.h"

#include <errno.h>

/* The kernel finds a lost answer after 30 s (nvme_core.io_timeout, drivers/nvme/host/core.c). */
#define ANSWER_TIMEOUT (40 * USEC_PER_SEC)

/* awslabs/amazon-eks-ami, templates/al2023/runtime/bin/setup-local-disks */
const StorageBind storage_binds[4] = {
        { KUBELET_DIR,     "kubelet",               "kubelet.service",          "Kubelet",    NULL },
        { CONTAINERD_DIR,  "containerd",            "containerd.service",       "Containerd", NULL },
        { "/var/log/pods", "pods",                  "kubelet.service",          "PodLogs",    NULL },
        { SOCI_DIR,        "soci-snapshotter-grpc", "soci-snapshotter.service", "SOCI",       NULL },
};

#define TOML "spec.containerd.config"

static void place_set(StoragePlaces *p, StorageBind *bind, const char *path, const char *given) {
        if (!*path || (bind->path && path_same(path, bind->path)))
                return;
        bool inside = *path == '/' && path[strspn(path, "/.")];
        strv_push(&p->owned, inside ? path_normalise(path) : xstrdup(path));
        bind->path = p->owned[strv_length(p->owned) - 1];
        bind->given = given;
}

static void place_add(StoragePlaces *p, const char *path, const char *name, const char *given) {
        StorageBind bind = { .name = name, .unit = "containerd.service", .word = "Containerd" };
        place_set(p, &bind, path, given);
        if (bind.path)
                p->all[p->n++] = bind;
}

/* containerd 1.7.24 and 2.4.2: root_path of Config in plugins/snapshots/NAME/plugin/plugin.go (1.x:
 * snapshots/…). btrfs and zfs need their own file system there, devmapper only metadata. The content store
 * has no path of its own (plugins/content/local/plugin/plugin.go). State in /run is not on a disk. */
StoragePlaces storage_binds_of(const Config *config, const char *containerd) {
        static const char snapshotters[][12] = { "overlayfs", "native", "erofs", "blockfile" };
        _cleanup_(json_decrefp) json_t *flags = json_object();
        _strv_ char **words = kubelet_words(config->kubelet.flags);
        const json_t *toml = containerd_settings(config, containerd),
                     *plugins = json_object_get(toml, "plugins");
        const char *state = json_get_text(toml, "state");
        _free_ char *normal = path_normalise(state);
        StoragePlaces p = { .n = ARRAY_SIZE(storage_binds) };
        memcpy(p.all, storage_binds, sizeof storage_binds);
        kubelet_flags_merge(flags, words);
        place_set(&p, &p.all[PLACE_KUBELET], json_get_text(flags, "rootDirectory"), "spec.kubelet.flags");
        place_set(&p, &p.all[PLACE_CONTAINERD], json_get_text(toml, "root"), TOML ".root");
        place_set(&p, &p.all[PLACE_POD_LOGS], json_get_text(config->kubelet.config, "podLogsDir"),
                  "spec.kubelet.config.podLogsDir");
        if (!startswith(normal, "/run/") && !startswith(normal, "/var/run/"))
                place_add(&p, state, "containerd-state", TOML ".state");
        for (size_t i = 0; i < ARRAY_SIZE(snapshotters); i++) {
                _free_ char *plugin = xasprintf("io.containerd.snapshotter.v1.%s", snapshotters[i]);
                place_add(&p, json_get_text(json_object_get(plugins, plugin), "root_path"), snapshotters[i],
                          TOML);
        }
        return p;
}

void storage_places_done(StoragePlaces *p) {
        strv_free(p->owned);
}

/* A model does not fix the number of stores. */
static unsigned expected(const Config *config, const Host *host, const char **ret_by) {
        unsigned configured = config->instance.storage.expected_disks,
                 table = host->type && host->type->disks > 0 ? (unsigned)host->type->disks : 0,
                 controllers = host->modelled ? 0 : count_devices(host, pci_is_store);
        *ret_by = configured > 0        ? "expectedDisks"
                  : controllers > table ? "the PCI bus"
                                        : "the table of instance types";
        return configured > 0 ? configured : MAX(table, controllers);
}

unsigned host_expected_stores(const Config *config, const Host *host) {
        const char *by;
        return expected(config, host, &by);
}

const char *host_expected_by(const Config *config, const Host *host) {
        const char *by;
        (void)expected(config, host, &by);
        return by;
}

/* /sys/bus/pci/devices/0000:00:1f.0/nvme/nvme1/nvme1n1, or nvme1c1n1 with several paths. */
static bool is_idle(const Root *root, const char *address) {
        _free_ char *path = xasprintf("/sys/bus/pci/devices/%s/nvme", address);
        _strv_ char **controllers = NULL, **entries = NULL;
        if (root_list(root, path, &controllers) < 0 || !controllers)
                return true;
        _free_ char *controller = xasprintf("%s/%s", path, controllers[0]);
        (void)!root_list(root, controller, &entries);
        return !ANY(e, entries, strv_length(entries), startswith(*e, "nvme"));
}

size_t host_instance_stores(const Host *host) {
        size_t n = 0;
        for (size_t i = 0; i < host->n_disks; i++)
                n += host->disks[i].kind == DISK_INSTANCE_STORE;
        return n;
}

/* A volume may have thousands of targets, hence the index, which only tests leave out. */
const Directory *storage_directory(const Storage *s, const char *path) {
        _free_ char *normal = path_normalise(path);
        const json_t *at = json_object_get(s->index, normal);
        if (s->index)
                return at ? &s->directories[json_integer_value(at)] : NULL;
        return FIND(d, s->directories, s->n_directories, path_same(d->path, path));
}

bool storage_wanted(const Config *config, const HostOptions *options) {
        return options->storage &&
               (config->instance.storage.strategy != STORAGE_NONE || config->instance.n_volumes > 0);
}

/* Not an error: any user can read a plan. */
static int cannot_look(Storage *s, int r, const char *path) {
        if (r == -ENOENT)
                s->not_looked = xasprintf("%s does not exist", path);
        else if (startswith(path, "/dev/"))
                s->not_looked = xstrdup("only root can read disks");
        else
                s->not_looked = xasprintf("only root can read %s", path);
        return r;
}

static bool holds_store(const Host *h, const Array *a) {
        return ANY(d, h->disks, h->n_disks,
                   d->kind == DISK_INSTANCE_STORE &&
                           ANY(m, a->members, strv_length(a->members),
                               streq(*m, d->name) || strv_contains(d->partitions, *m)));
}

static bool is_configured(const Config *config, const Host *h, const Disk *d) {
        const InstanceOptions *o = &config->instance;
        const Disk *second = NULL;
        return disk_is_volume(d) && ANY(v, o->volumes, o->n_volumes,
                                        host_volume(h, v->device, &second) == d && !second);
}

/* An instance store with a strategy, or a configured volume. */
static bool is_used(const Config *config, const Host *h, const Disk *d) {
        return (d->kind == DISK_INSTANCE_STORE && config->instance.storage.strategy != STORAGE_NONE) ||
               is_configured(config, h, d);
}

static size_t devices_of(const Config *config, Host *h, Probed *all, Content **contents) {
        size_t n = 0;
        for (Disk *d = h->disks; d < h->disks + h->n_disks; d++)
                if (is_used(config, h, d)) {
                        contents[n] = &d->content;
                        all[n++].path = xasprintf("/dev/%s", d->name);
                }
        for (Array *a = h->storage.arrays; a < h->storage.arrays + h->storage.n_arrays; a++)
                if (a->active && holds_store(h, a)) {
                        contents[n] = &a->content;
                        all[n++].path = xasprintf("/dev/%s", a->name);
                }
        return n;
}

static int look_failed(Storage *s, int r, const char *path, Diag *diag) {
        if (r == -EINTR)
                return diag_error(diag, r, CAUSE_INTERRUPTED,
                                  "stopped by %s while reading %s; nothing was changed",
                                  stop_name(stop_signal()), path);
        if (r == -EACCES || r == -EPERM || r == -ENOENT)
                return cannot_look(s, r, path);
        return fact_error(diag, r, path, "the content of this disk is not known");
}

/* Reads all disks in parallel with one deadline: a dead disk hides none. Reads mounts meanwhile. */
static int look_at_contents(const Root *root, const Config *config, const HostOptions *options,
                            Prober *prober, Host *h, Diag *diag) {
        size_t room = h->n_disks + h->storage.n_arrays + 1;
        _free_ Probed *all = xcalloc(room, sizeof *all);
        _free_ Content **contents = xcalloc(room, sizeof(Content *));
        size_t n = devices_of(config, h, all, contents);

        int result = n > 0 && prober->child == 0 ? prober_start(root, prober, diag) : 0;
        if (result >= 0 && n > 0)
                prober_ask(prober, all, n, options->answer_timeout_usec ?: ANSWER_TIMEOUT);
        THEN(result, detect_mounts(root, &h->storage, diag));
        THEN(result, n > 0 ? prober_take(prober, all, n, diag) : 0);
        for (size_t i = 0; i < n; i++) {
                if (all[i].result < 0 && result == 0)
                        result = look_failed(&h->storage, all[i].result, all[i].path, diag);
                *contents[i] = all[i].content;
                free(all[i].path);
        }
        return result;
}

/* Smaller directories fit on any disk. UINT64_MAX (do not count) if no disks. */
static uint64_t smallest_disk(const Config *config, const Host *h) {
        uint64_t smallest = UINT64_MAX;
        for (const Disk *d = h->disks; d < h->disks + h->n_disks; d++)
                if (is_used(config, h, d))
                        smallest = MIN(smallest, d->bytes);
        return smallest;
}

static void store_targets(const Config *config, const Host *h, char ***paths) {
        _cleanup_(storage_places_done) StoragePlaces places = storage_binds_of(config, h->containerd_version);
        const LocalStorage *o = &config->instance.storage;
        unsigned stores = 0;
        strv_add(paths, o->mount_path);
        if (o->strategy == STORAGE_MOUNT)
                for (size_t i = 0; i < h->n_disks; i++)
                        if (h->disks[i].kind == DISK_INSTANCE_STORE)
                                strv_push(paths, xasprintf("%s/%u", o->mount_path, ++stores));
        if (o->strategy != STORAGE_MOUNT)
                strv_push(paths, xasprintf("%s/0", o->mount_path));
        for (size_t i = 0; i < places.n; i++)
                if (!strv_contains(*paths, places.all[i].path))
                        strv_add(paths, places.all[i].path);
}

/* Targets are unique among volumes, but may repeat others. */
static char **targets(const Config *config, const Host *h) {
        char **paths = NULL;
        if (config->instance.storage.strategy != STORAGE_NONE)
                store_targets(config, h, &paths);
        _strv_ char **before = strv_copy(paths);
        size_t n = strv_length(paths);
        for (size_t i = 0; i < config->instance.n_volumes; i++) {
                const Volume *v = &config->instance.volumes[i];
                strv_push_at(&paths, n++, xasprintf(VOLUMES_PLACE "/%s", v->key));
                STRV_FOREACH(target, v->targets)
                        if (!strv_contains(before, *target))
                                strv_push_at(&paths, n++, xstrdup(*target));
        }
        return paths;
}

static int look_at_directories(const Root *root, const Config *config, Host *h, Diag *diag) {
        _strv_ char **paths = targets(config, h);
        Storage *s = &h->storage;

        s->directories = xcalloc(strv_length(paths), sizeof *s->directories);
        s->index = json_object();
        for (char **path = paths; *path; path++) {
                int r = detect_directory(root, *path, s, smallest_disk(config, h),
                                         &s->directories[s->n_directories], diag);
                if (r == -EACCES || r == -EPERM)
                        return cannot_look(s, r, *path);
                if (r < 0)
                        return r;
                _free_ char *normal = path_normalise(*path);
                json_object_set_new_nocheck(s->index, normal, json_integer((json_int_t)s->n_directories++));
        }
        return 0;
}

static int find_programs(const Root *root, Storage *s, Diag *diag) {
        static const char programs[][12] = { "cp", "mdadm", "mkfs.ext4", "mkfs.xfs" };

        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                int r = root_program(root, programs[i]);
                if (r < 0)
                        return fact_error(diag, r, programs[i], "cannot tell if this program exists");
                if (r > 0)
                        strv_add(&s->programs, programs[i]);
        }
        return 0;
}

/* By number, or by the source of the mount if the kernel shows no device (btrfs, overlayfs). */
static void find_root_disk(const Root *root, Host *h) {
        const Mount *m = storage_mount_at(&h->storage, "/");
        for (Disk *d = h->disks; m && d < h->disks + h->n_disks; d++) {
                _free_ char *node = xasprintf("/dev/%s", d->name);
                d->root = (d->number && streq(d->number, m->number)) || streq(m->source, node);
                for (char **p = d->partitions; p && *p && !d->root; p++) {
                        _free_ char *path = xasprintf("/sys/block/%s/%s/dev", d->name, *p),
                                    *part = xasprintf("/dev/%s", *p), *number = NULL;
                        bool same = root_read_line(root, path, &number) >= 0 && streq(number, m->number);
                        d->root = same || streq(m->source, part);
                }
        }
}

static int read_storage(const Root *root, const Config *config, const HostOptions *options, Prober *prober,
                        Host *h, Diag *diag) {
        if (config->instance.n_volumes > 0)
                detect_volume_names(root, config, h);
        for (size_t i = 0; i < h->n_pci; i++)
                if (pci_is_store(&h->pci[i]) && is_idle(root, h->pci[i].address))
                        strv_add(&h->storage.idle, h->pci[i].address);
        (void)!root_link_name(root, RAID_DEVICE, &h->storage.named);
        int r = disks_look_closer(root, h, diag) ?: detect_arrays(root, &h->storage, diag) ?:
                look_at_contents(root, config, options, prober, h, diag);
        if (r < 0)
                return r;
        if (config->instance.n_volumes > 0)
                find_root_disk(root, h);
        detect_mount_units(root, &h->storage);
        return look_at_directories(root, config, h, diag) ?: find_programs(root, &h->storage, diag);
}

int detect_storage(const Root *root, const Config *config, const HostOptions *options, Prober *prober,
                   Host *h, Diag *diag) {
        if (!storage_wanted(config, options))
                return 0;
        int r = 0;
        if (options->disks_timeout_usec > 0) {
                r = wait_for_disks(root, config, host_expected_stores(config, h), options, diag);
                disks_clear(h);
                THEN(r, detect_disks(root, h, diag));
        }
        THEN(r, read_storage(root, config, options, prober, h, diag));
        (void)!root_read_line(root, "/proc/sys/kernel/random/uuid", &h->storage.chance);
        char *why = TAKE_PTR(h->storage.not_looked);
        if (why) {
                storage_clear(&h->storage);
                for (size_t i = 0; i < h->n_disks; i++)
                        content_done(&h->disks[i].content);
                h->storage.not_looked = why;
                return 0;
        }
        h->storage.looked = r >= 0;
        return r;
}

void storage_clear(Storage *s) {
        for (Array *a = s->arrays; a < s->arrays + s->n_arrays; a++) {
                FREE_ALL(a->name, a->number, a->level);
                strv_free(a->members);
                strv_free(a->holders);
                strv_free(a->partitions);
                content_done(&a->content);
        }
        for (Mount *m = s->mounts; m < s->mounts + s->n_mounts; m++)
                FREE_ALL(m->target, m->source, m->number, m->root, m->type);
        json_decref(s->seen);
        mount_units_clear(s);
        for (Directory *d = s->directories; d < s->directories + s->n_directories; d++)
                FREE_ALL(d->path, d->real, d->on, d->dead, d->foreign);
        json_decref(s->index);
        strv_free(s->programs);
        strv_free(s->idle);
        FREE_ALL(s->arrays, s->mounts, s->directories, s->named, s->not_looked, s->chance);
        *s = (Storage){};
}
