/* SPDX-License-Identifier: Apache-2.0
 * Only the end of udev's queue is watched: /run/udev/queue is there as long as udev has events in hand
 * (libudev's udev_queue_get_fd() looks at the same file). Whatever is waited for, a namespace, a controller
 * that gives up, an array that udev puts together, comes with an event and is done when the queue ends; and
 * an inotify watch on a file loses nothing, as a socket of events does when it is full. */
#include "host/wait.h"

#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"
#include "host/detect.h"

#include <errno.h>
#include <sys/inotify.h>
#include <systemd/sd-device.h>
#include <unistd.h>

#define UDEV_DIR     "/run/udev"
#define UDEV_CONTROL UDEV_DIR "/control"
#define UDEV_QUEUE   UDEV_DIR "/queue"
#define TELL_FIRST_USEC (1 * USEC_PER_SEC)      /* a machine with all its disks shall
                                                 * boot without a word about them */
#define TELL_AGAIN_USEC (10 * USEC_PER_SEC)

typedef struct Look {
        char **stores;          /* kernel names of the instance stores that are there */
        size_t wanted;          /* how many there should be: what was promised,
                                 * or what the controllers will bring */
        char **missing;         /* volumes, as the configuration calls them */
        bool udev_busy;         /* with one of them, with an array over them,
                                 * or with anything that may become one */
} Look;

typedef struct Wanted {
        const Config *config;
        unsigned stores;        /* how many instance stores were promised; 0: nobody did */
        bool udev;              /* is it there to be asked? */
} Wanted;

static void look_done(Look *l) {
        strv_free(l->stores);
        strv_free(l->missing);
        *l = (Look){};
}

/* Will the controller bring an instance store that is not there yet? The model of one that is being set up is
 * not known; the kernel prints nothing for it, or the null pointer that stands for it. */
static bool is_pending(const Root *root, const char *controller) {
        _free_ char *path = xasprintf("/sys/class/nvme/%s", controller),
                    *model_path = xasprintf("%s/model", path);
        _strv_ char **entries = NULL;
        _free_ char *model = NULL;

        if (root_read_line(root, model_path, &model) < 0 || root_list(root, path, &entries) < 0)
                return false;           /* gone again */
        STRV_FOREACH(e, entries)
                if (startswith(*e, "nvme"))     /* nvme0n1, or nvme0c1n1 of a namespace with several paths */
                        return false;
        return !*model || streq(model, "(null)") || disk_kind(model) == DISK_INSTANCE_STORE;
}

static int count_pending(const Root *root, size_t *count, Diag *diag) {
        _strv_ char **controllers = NULL;
        int r = root_list(root, "/sys/class/nvme", &controllers);
        if (r < 0 && r != -ENOENT)
                return fact_error(diag, r, "/sys/class/nvme", "which disks will come is not known");
        STRV_FOREACH(c, controllers)
                *count += is_pending(root, *c);
        return 0;
}

/* Has udev gone through its rules for it once? */
static bool udev_knows(const char *name) {
        sd_device *device = NULL;
        bool knows = sd_device_new_from_subsystem_sysname(&device, "block", name) >= 0 &&
                     sd_device_get_is_initialized(device) > 0;
        sd_device_unref(device);
        return knows;
}

/* The rules of mdadm put arrays together as the disks come, so an array is waited for, too. That the queue
 * has ended says nothing of an event that udev has not read yet; that a device is known does not say that the
 * programs of its rules have ended. */
static bool udev_knows_all(const Root *root, const Disk *d) {
        STRV_FOREACH(holder, d->holders)
                if (!udev_knows(*holder))
                        return false;
        return udev_knows(d->name) && root_exists(root, UDEV_QUEUE) == 0;
}

static int look_for_stores(const Root *root, const Wanted *w, const Host *h, Look *l, Diag *diag) {
        size_t there = 0, pending = 0;
        int r = count_pending(root, &pending, diag);
        for (size_t i = 0; r >= 0 && i < h->n_disks; i++)
                if (h->disks[i].kind == DISK_INSTANCE_STORE) {
                        strv_push_at(&l->stores, there++, xstrdup(h->disks[i].name));
                        l->udev_busy |= w->udev && !udev_knows_all(root, &h->disks[i]);
                }
        l->wanted = MAX(w->stores, there + pending);
        return r;
}

/* A name that leads to something else than a volume is there, too: the planner says what is wrong with it. */
static void look_for_volumes(const Root *root, const Wanted *w, Host *h, Look *l) {
        detect_volume_names(root, w->config, h);
        for (size_t i = 0; i < w->config->instance.n_volumes; i++) {
                const char *device = w->config->instance.volumes[i].device;
                const Disk *second, *d = host_volume(h, device, &second);
                if (!d)
                        strv_add(&l->missing, device);
                else
                        l->udev_busy |= w->udev && !udev_knows_all(root, d);
        }
}

static int look(const Root *root, const Wanted *w, Look *ret, Diag *diag) {
        _cleanup_(host_freep) Host *h = xcalloc(1, sizeof *h);
        look_done(ret);
        int r = detect_disks(root, h, diag);
        if (r >= 0 && w->config->instance.storage.strategy != STORAGE_NONE)
                r = look_for_stores(root, w, h, ret, diag);
        if (r < 0)
                return r;
        if (w->config->instance.n_volumes > 0)
                look_for_volumes(root, w, h, ret);
        return strv_length(ret->stores) == ret->wanted && !ret->missing && !ret->udev_busy;
}

static void tell(const Look *l, uint64_t left_usec) {
        _free_ char *names = strv_join(l->stores, ", "), *missing = strv_join(l->missing, ", ");
        const char *open = *names ? " (" : "", *close = *names ? ")" : "";
        unsigned long long seconds = (left_usec + USEC_PER_SEC / 2) / USEC_PER_SEC;
        size_t there = strv_length(l->stores);

        if (there < l->wanted)
                log_info("Waiting for instance stores: %zu of %zu are there%s%s%s; giving up in %llu s",
                         there, l->wanted, open, names, close, seconds);
        else if (l->missing)
                log_info("Waiting for EBS volumes that are not attached yet: %s; giving up in %llu s",
                         missing, seconds);
        else
                log_info("Waiting for udev, which is not done with the disks yet%s%s%s; giving up in %llu s",
                         open, names, close, seconds);
}

/* Until something happens, an instant, or a signal: 0 or a negative errno. */
static int sleep_until(int fd, uint64_t until) {
        char events[4096];
        int r = stop_wait(fd, until);
        while (read(fd, events, sizeof events) > 0)
                continue;
        return MIN(r, 0);
}

static int wait_failed(Diag *diag, int r) {
        if (r == -EINTR)
                return diag_error(diag, r, CAUSE_INTERRUPTED,
                                  "stopped by %s while it waited for disks; nothing was changed",
                                  stop_name(stop_signal()));
        return fact_error(diag, r, UDEV_DIR,
                          "udev's work cannot be watched, and disks are missing; is "
                          "fs.inotify.max_user_instances used up?");
}

uint64_t wait_deadline(uint64_t begin, uint64_t seen, bool missing, const HostOptions *options) {
        return missing ? begin + options->volumes_timeout_usec : seen + options->disks_timeout_usec;
}

static int wait_on(const Root *root, int fd, const Wanted *w, const HostOptions *options, Look *l,
                   Diag *diag) {
        uint64_t begin = now_usec(), seen = begin, next = begin + TELL_FIRST_USEC;
        for (;;) {
                int r = look(root, w, l, diag);
                uint64_t now = now_usec();
                seen = l->missing ? now : seen;
                uint64_t deadline = wait_deadline(begin, seen, l->missing != NULL, options);
                if (r != 0 || now >= deadline)
                        return r;
                log_debug("instance stores: %zu of %zu%s%s", strv_length(l->stores), l->wanted,
                          l->missing ? ", volumes are missing" : "", l->udev_busy ? ", udev is at work" : "");
                if (now >= next) {
                        tell(l, deadline - now);
                        next += TELL_AGAIN_USEC;
                }
                r = sleep_until(fd, MIN(next, deadline));
                if (r < 0)
                        return wait_failed(diag, r);
        }
}

int wait_for_disks(const Root *root, const Config *config, unsigned expected, const HostOptions *options,
                   Diag *diag) {
        _cleanup_(look_done) Look l = {};
        const Wanted w = { config, expected, root_is_host(root) && root_exists(root, UDEV_CONTROL) > 0 };
        int r = look(root, &w, &l, diag);

        if (r != 0 || !w.udev || options->disks_timeout_usec == 0)
                return r;
        int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (fd < 0)
                return wait_failed(diag, -errno);
        r = inotify_add_watch(fd, UDEV_DIR, IN_DELETE) < 0 ? wait_failed(diag, -errno)
                                                          : wait_on(root, fd, &w, options, &l, diag);
        close(fd);
        return r;
}
