/* SPDX-License-Identifier: Apache-2.0
 * check-machine: reports missing hardware before anything depends on it. check-efa: every EFA function has
 * its driver. await-devices: nodes below /dev that a driver makes after its load. */
#include "apply/device.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>

#define TELL_USEC (10 * USEC_PER_SEC)

int machine_work(Work *w) {
        const Shortfall *s = w->action->census.missing;
        size_t n = w->action->census.n;
        _free_ char *more =
                n > 1 ? xasprintf(" (and %zu more: nodestrap status --long)", n - 1) : xstrdup("");
        _cleanup_(text_done) Text t = {};
        w->found = json_pack("{si si sb}", "gpus", (int)w->action->census.gpus, "efa",
                             (int)w->action->census.efa, "expectDevices", w->action->census.expect);
        if (n == 0)
                return 0;
        text_add(&t, "%s%s", s[0].text, more);
        for (size_t i = 1; i < n; i++)
                text_add(&t, "\n%s", s[i].text);
        return work_fail(w, -ENODEV, s[0].cause, "%s", t.data);
}

/* Adds ", 0000:10:1b.0 (vfio-pci)" for another driver; 0 or a negative errno. */
static int add_unbound(Work *w, const char *address, const char *driver, Text *t, unsigned *bound) {
        _free_ char *path = xasprintf("/sys/bus/pci/devices/%s/driver", address), *name = NULL;
        int r = root_link_name(w->root, path, &name);
        if (r < 0 && r != -ENOENT)
                return work_fail(w, r, CAUSE_EFA, "the driver of %s cannot be read: %m", address);
        if (name && streq(name, driver))
                ++*bound;
        else
                text_add(t, "%s%s (%s)", t->size > 0 ? ", " : "", address, name ?: "no driver");
        return 0;
}

static int tell_efa(Work *w, unsigned bound, const char *unbound) {
        const Action *a = w->action;
        unsigned seen = (unsigned)strv_length(a->device.seen);
        if (*unbound)
                return work_miss(w, -ENODEV, CAUSE_EFA, "efa-missing",
                                 "%u of %u EFA devices have the efa driver; these do not: %s. Look for efa "
                                 "in dmesg, and update the driver if it does not support them",
                                 bound, seen, unbound);
        return work_miss(w, -ENODEV, CAUSE_EFA, "efa-missing",
                         "%u EFA devices exist, and the configuration wants %u; add network interfaces to "
                         "the launch template (InterfaceType efa or efa-only), or correct "
                         "spec.instance.network.efa",
                         seen, a->device.count);
}

int efa_work(Work *w) {
        const Action *a = w->action;
        unsigned bound = 0;
        _cleanup_(text_done) Text unbound = {};
        int r = 0;
        for (char **address = a->device.seen; r >= 0 && address && *address; address++)
                r = add_unbound(w, *address, "efa", &unbound, &bound);
        if (r >= 0 && (unbound.size > 0 || bound < a->device.count))
                r = tell_efa(w, bound, unbound.data ?: "");
        return r;
}

/* some: a subset may be enough; a later step decides. */
typedef struct Kind { const char *name; Cause cause; bool some; const char *what, *advice; } Kind;
static const Kind kinds[] = {
        { "umad", CAUSE_NVSWITCH, true,
          "fabric manager needs them to reach the NVLink switches; mlx5_ib and ib_umad make one for each "
          "bridge to the switches",
          "lsmod and dmesg (mlx5) show which module does not work" },
        { "neuron", CAUSE_NEURON, false,
          "the driver makes one for each device that it started",
          "dmesg (neuron) shows why a device did not start. Use a driver version that supports the device "
          "(inf1: aws-neuronx-dkms 2.21); if the device is broken, replace the instance" },
};

typedef struct Nodes { char *directory, *prefix; const Kind *kind; } Nodes;

/* Matches /dev/neuron0 and /dev/infiniband/rdma_cm, but not /dev/neuron_core1. */
static unsigned nodes_count(Work *w, const Nodes *n) {
        unsigned count = 0;
        _strv_ char **names = root_names(w->root, n->directory);
        for (char **name = names; name && *name; name++) {
                const char *which = startswith(*name, n->prefix) ? *name + strlen(n->prefix) : "";
                count += *which && !which[strspn(which, "0123456789abcdefghijklmnopqrstuvwxyz")];
        }
        return count;
}

/* Repeats if the next directory appeared before the watch. */
static int watch_nearest(Work *w, int inotify, const char *directory) {
        _free_ char *watched = NULL;
        for (;;) {
                _free_ char *path = xstrdup(directory);
                _cleanup_(close_fd) int fd = root_open(w->root, path, O_PATH | O_DIRECTORY);
                while (fd == -ENOENT && *path) {
                        *strrchr(path, '/') = 0;
                        fd = root_open(w->root, *path ? path : "/", O_PATH | O_DIRECTORY);
                }
                if (fd < 0 || (watched && streq(watched, path)))
                        return fd < 0 ? fd : 0;
                _free_ char *opened = xasprintf("/proc/self/fd/%d", fd);
                if (inotify_add_watch(inotify, opened, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
                        return -errno;
                RENEW(watched, TAKE_PTR(path));
        }
}

static char *without_driver(Work *w) {
        Text t = {};
        for (char **address = w->action->device.seen; address && *address; address++) {
                _free_ char *path = xasprintf("/sys/bus/pci/devices/%s/driver", *address), *name = NULL;
                if (root_link_name(w->root, path, &name) == -ENOENT)
                        text_add(&t, "%s%s", t.size > 0 ? ", " : "; no driver is bound to ", *address);
        }
        return t.data ? text_take(&t) : xstrdup("");
}

static int missing_devices(Work *w, const Kind *kind, unsigned count, unsigned want) {
        _free_ char *without = without_driver(w),
                    *why = xasprintf("%u of %u %s exist%s; %s: %s", count, want, w->action->target,
                                     without, kind->what, kind->advice);
        if (count == 0 || !kind->some)
                return work_miss(w, -ENODEV, kind->cause, "devices-missing", "%s", why);
        diag_warn_at(&w->warnings, "devices-missing", NULL, w->action->id, "%s", why);
        return 0;
}

/* Until an event, a cancellation or the next progress message. */
static int wait_for_news(Work *w, int inotify, uint64_t patience) {
        char events[4096] __attribute__((aligned(8)));
        struct pollfd fds[] = { { .fd = inotify, .events = POLLIN },
                                { .fd = w->cancel_fd, .events = POLLIN } };
        uint64_t now = now_usec(), left = patience > now ? patience - now : 0;
        int n = poll(fds, ARRAY_SIZE(fds), (int)((MIN(left, TELL_USEC) + 999) / 1000));
        if (n < 0 && errno != EINTR)
                return -errno;
        if (n > 0 && fds[1].revents)
                return -ECANCELED;
        while (n > 0 && read(inotify, events, sizeof events) > 0)
                ;
        return 0;
}

static int await(Work *w, int inotify, const Nodes *nodes, unsigned want) {
        uint64_t patience = work_patience(w);
        unsigned before = nodes_count(w, nodes);
        if (before >= want)
                return 0;
        for (;;) {
                /* watch before counting, or an event could be missed */
                int r = watch_nearest(w, inotify, nodes->directory);
                unsigned count = nodes_count(w, nodes);
                if (r >= 0 && count >= want)
                        return 1;
                if (r >= 0 && now_usec() >= patience)
                        return missing_devices(w, nodes->kind, count, want);
                work_progress(w, "waiting for %s: %u of %u exist", w->action->target, count, want);
                THEN(r, wait_for_news(w, inotify, patience));
                if (r < 0)
                        return work_fail(w, r, nodes->kind->cause, "cannot wait for %s: %m",
                                         w->action->target);
        }
}

int devices_work(Work *w) {
        const char *target = w->action->target, *slash = strrchr(target, '/');
        _free_ char *directory = xstrndup(target, (size_t)(slash - target)),
                    *prefix = xstrndup(slash + 1, strcspn(slash + 1, "*"));
        Nodes nodes = { directory, prefix, &kinds[0] };
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (streq(kinds[i].name, nodes.prefix))
                        nodes.kind = &kinds[i];
        _cleanup_(close_fd) int inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (inotify < 0)
                return work_fail(w, -errno, CAUSE_INTERNAL, "devices cannot be watched: %m");
        return await(w, inotify, &nodes, MAX(w->action->device.count, 1U));
}
