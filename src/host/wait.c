/* SPDX-License-Identifier: Apache-2.0
 * Watches the end of the udev queue: /run/udev/queue exists while udev has events (libudev
 * udev_queue_get_fd() uses the same file). Each awaited change (namespace, failing controller, array) comes
 * with an event. An inotify watch loses nothing, unlike a full event socket. */

#include "base/log.h"
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
#define TELL_FIRST_USEC (1 * USEC_PER_SEC)      /* a complete machine boots silently */
#define TELL_AGAIN_USEC (10 * USEC_PER_SEC)

typedef struct Look {
        char **stores;          /* kernel names of present instance stores */
        size_t wanted;          /* promised, or announced by controllers */
        char **missing;         /* volumes, by configured names */
        bool udev_busy;         /* with a disk or an array on it */
} Look;

typedef struct Wanted {
        const Config *config;
        unsigned stores;        /* promised instance stores; 0: unknown */
        bool udev;              /* udev is here */
} Wanted;

static void look_done(Look *l) {
        strv_free(l->stores);
        strv_free(l->missing);
        *l = (Look){};
}

/* Will it get an instance store? During setup the kernel prints no model, or a null pointer. */
static bool is_pending(const Root *root, const char *controller) {
        _free_ char *path = xasprintf("/sys/class/nvme/%s", controller),
                    *model_path = xasprintf("%s/model", path);
        _strv_ char **entries = NULL;
        _free_ char *model = NULL;

        if (root_read_line(root, model_path, &model) < 0 || root_list(root, path, &entries) < 0)
                return false;           /* gone again */
        STRV_FOREACH(e, entries)
                if (startswith(*e, "nvme"))     /* nvme0n1, or nvme0c1n1 with several paths */
                        return false;
        return !*model || streq(model, "(null)") || disk_kind(model) == DISK_INSTANCE_STORE;
}

/* Has udev run its rules? */
static bool udev_knows(const char *name) {
        sd_device *device = NULL;
        bool knows = sd_device_new_from_subsystem_sysname(&device, "block", name) >= 0 &&
                     sd_device_get_is_initialized(device) > 0;
        sd_device_unref(device);
        return knows;
}

/* mdadm rules assemble arrays. An empty queue may lack the next event; a known device may have running
 * rules. */
static bool udev_knows_all(const Root *root, const Disk *d) {
        if (PORTABLE)                   /* it never waits */
                return true;
        STRV_FOREACH(holder, d->holders)
                if (!udev_knows(*holder))
                        return false;
        return udev_knows(d->name) && root_exists(root, UDEV_QUEUE) == 0;
}

static int look_for_stores(const Root *root, const Wanted *w, const Host *h, Look *l, Diag *diag) {
        _strv_ char **controllers = NULL;
        size_t there = 0, pending = 0;
        int r = list_optional(root, "/sys/class/nvme", &controllers,
                              "instance stores cannot be listed", diag);
        STRV_FOREACH(c, controllers)
                pending += is_pending(root, *c);
        for (const Disk *d = h->disks; r >= 0 && d < h->disks + h->n_disks; d++)
                if (d->kind == DISK_INSTANCE_STORE) {
                        strv_push_at(&l->stores, there++, xstrdup(d->name));
                        l->udev_busy |= w->udev && !udev_knows_all(root, d);
                }
        l->wanted = MAX(w->stores, there + pending);
        return r;
}

/* The planner reports a name that is not of a volume. */
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
        THEN(r, w->config->instance.storage.strategy != STORAGE_NONE
                        ? look_for_stores(root, w, h, ret, diag)
                        : 0);
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
                log_info("Waiting for instance stores: found %zu of %zu%s%s%s; giving up in %llu s",
                         there, l->wanted, open, names, close, seconds);
        else if (l->missing)
                log_info("Waiting for EBS volumes that are not attached yet: %s; giving up in %llu s",
                         missing, seconds);
        else
                log_info("Waiting for udev, which is still examining the disks%s%s%s; giving up in %llu s",
                         open, names, close, seconds);
}

/* 0 at an event or the instant, or a negative errno. */
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
                                  "stopped by %s while waiting for disks; nothing was changed",
                                  stop_name(stop_signal()));
        return fact_error(diag, r, UDEV_DIR,
                          "cannot watch udev, and disks are not ready; is fs.inotify.max_user_instances "
                          "used up?");
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
