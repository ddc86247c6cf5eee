/* SPDX-License-Identifier: Apache-2.0
 * create-raid: mdadm(8). The plan chose disks and data loss; here each disk is locked and checked again
 * before it is written. Arrays are identified by members, never by name (md127 is fine).
 *
 * Locks are held until the array runs, and longer on written disks: udev assembles disks after a stop, a wipe
 * or a close. mdadm waits only for the array node, which no lock blocks. */
#include "apply/storage.h"

#include "base/str.h"
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define CHUNK_KIB 256U  /* the largest XFS log stripe unit (mkfs.xfs(8), -l su) */

#define WIPED_AT_START (1U << 20)       /* superblocks of file systems lie here */
#define ZEROS           (64U << 10)     /* written at a time */
#define SUPERBLOCK_SIZE 4096U           /* of md, version 1 (linux/raid/md_p.h) */

typedef struct LockedDisk { const char *name, *serial; int fd; Content content; } LockedDisk;
typedef struct LockedDisks { LockedDisk *items; size_t n; } LockedDisks;

static void disks_unlock(LockedDisks *all) {
        for (size_t i = 0; i < all->n; i++) {
                content_done(&all->items[i].content);
                if (all->items[i].fd >= 0)
                        close(all->items[i].fd);
        }
        free(all->items);
}

static int disks_lock(Work *w, LockedDisks *all) {
        char **disks = w->action->storage.disks, **serials = w->action->storage.serials;
        int r = 0;
        all->items = xcalloc(strv_length(disks), sizeof *all->items);
        for (; disks[all->n] && r >= 0; all->n++) {
                LockedDisk *d = &all->items[all->n];
                *d = (LockedDisk){ .name = disks[all->n], .serial = serials[all->n], .fd = -1 };
                /* before it is opened for writing, which an owner would notice */
                r = disk_same(w, d->name, d->serial);
                if (r < 0)
                        continue;
                work_at(w, "waiting for udev to release %s (%s)", d->name, d->serial);
                d->fd = disk_lock(w->root, d->name, O_RDWR);
                if (d->fd < 0)
                        r = work_fail(w, d->fd, CAUSE_DISK_ERROR,
                                      "%s (%s) cannot be opened for writing: %m; dmesg shows whether the "
                                      "disk failed", d->name, d->serial);
        }
        return r;
}

static int disks_look(Work *w, LockedDisks *all) {
        for (size_t i = 0; i < all->n; i++) {
                content_done(&all->items[i].content);
                all->items[i].content = (Content){};
                work_at(w, "reading %s (%s)", all->items[i].name, all->items[i].serial);
                int r = device_content(w, all->items[i].name, &all->items[i].content);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool is_free(const Content *c) {
        return c->kind == CONTENT_BLANK || c->kind == CONTENT_REMAINS;
}

static bool is_remains(const Content *c) {
        return c->kind == CONTENT_RAID_MEMBER && raid_is_ours(&c->raid);
}

static bool is_of_array(const Content *c, const char *uuid) {
        return c->kind == CONTENT_RAID_MEMBER && c->raid.uuid && uuid && streq(c->raid.uuid, uuid);
}

/* mdadm needs free disks. An array that does not run has no user; one that runs is newer than the plan. */
static int may_stop(Work *w, const char *array) {
        _free_ char *path = xasprintf("/sys/block/%s/slaves", array);
        _strv_ char **members = NULL;
        int r = root_list(w->root, path, &members);
        if (r < 0)
                return work_fail(w, r, CAUSE_ARRAY, "the members of %s cannot be read: %s: %m", array, path);
        for (char **d = members; d && *d; d++)
                if (!strv_contains(w->action->storage.disks, *d))
                        return work_fail(w, -EBUSY, CAUSE_DISK_USED,
                                         "the array %s holds %s, which the plan does not name; nothing was "
                                         "written; run nodestrap init again for a new plan",
                                         array, *d);
        if (array_runs(w->root, array))
                return work_fail(w, -EBUSY, CAUSE_DISK_USED,
                                 "something else started the array %s on disks that this plan uses; nothing "
                                 "was written; run nodestrap init again for a new plan",
                                 array);
        return 0;
}

static int arrays_stop(Work *w, const LockedDisks *all, const char *except) {
        _strv_ char **arrays = NULL;
        int r = 0;
        for (size_t i = 0; i < all->n && r >= 0; i++) {
                _free_ char *holder = NULL;
                r = disk_holder(w, all->items[i].name, &holder);
                THEN(r, disk_still(w, all->items[i].name, all->items[i].serial, holder));
                if (r < 0 || !holder || (except && streq(holder, except)) || strv_contains(arrays, holder))
                        continue;
                r = may_stop(w, holder);
                strv_push(&arrays, TAKE_PTR(holder));
        }
        _free_ char *disks = disks_shown(w);
        for (char **a = arrays; a && *a && r >= 0; a++) {
                _free_ char *device = xasprintf("/dev/%s", *a);
                _free_ char *what = xasprintf(
                        "the inactive array %s, which holds some of %s, cannot be stopped", *a, disks);
                _strv_ char **argv = command("mdadm", "--stop", device, NULL);
                r = work_run(w, CAUSE_ARRAY, what, argv);
        }
        return r;
}

static int zero(int fd, uint64_t offset, size_t size) {
        _free_ char *zeros = xcalloc(ZEROS, 1);
        for (size_t done = 0; done < size;) {
                ssize_t n = pwrite(fd, zeros, MIN(ZEROS, size - done), (off_t)(offset + done));
                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t)n : 0;
        }
        return fsync(fd) < 0 ? -errno : 0;
}

static int fail_to_write(Work *w, int r, const char *name) {
        _free_ char *shown = disk_shown(w, name);
        return work_fail(w, r, CAUSE_DISK_ERROR,
                         "%s cannot be written: %m; dmesg shows more; if the disk is broken, replace the "
                         "instance",
                         shown);
}

/* Written to all disks of a new array before anything else. */
static int set_mark(Work *w, LockedDisk *d, bool set) {
        int r = disk_mark(d->fd, true, set);
        return r < 0 ? fail_to_write(w, r, d->name) : 0;
}

/* Mark, start of the data, md superblock, each synced. So a power cut leaves known remains, and a re-added
 * disk never shows an old file system. */
static int wipe(Work *w, LockedDisk *d) {
        int r = disk_still(w, d->name, d->serial, NULL);
        if (r < 0 || is_free(&d->content))
                return r;
        work_at(w, "wiping %s (%s)", d->name, d->serial);
        r = set_mark(w, d, true);
        if (r < 0)
                return r;
        r = zero(d->fd, d->content.raid.data_offset, WIPED_AT_START);
        THEN(r, zero(d->fd, d->content.raid.super_offset, SUPERBLOCK_SIZE));
        if (r < 0)
                return fail_to_write(w, r, d->name);
        content_done(&d->content);
        d->content = (Content){};
        r = device_content(w, d->name, &d->content);
        if (r < 0 || is_free(&d->content))
                return r;
        _free_ char *what = content_describe(&d->content);
        return work_fail(w, -EEXIST, CAUSE_DISK_USED,
                         "%s (%s) still carries %s after nodestrap wiped the old array; if you do not need "
                         "that data, run wipefs -a /dev/%s",
                         d->name, d->serial, what, d->name);
}

static int both_ends(Work *w, const char *array) {
        int fd = disk_lock(w->root, array, O_RDWR), r;
        if (fd < 0)
                return fail_to_write(w, fd, array);
        off_t size = lseek(fd, 0, SEEK_END);
        r = size < 0 ? -errno : zero(fd, 0, MIN((size_t)size, WIPED_AT_START));
        if (r >= 0 && size > WIPED_AT_START)
                r = zero(fd, (uint64_t)size - WIPED_AT_START, WIPED_AT_START);
        close(fd);
        return r < 0 ? fail_to_write(w, r, array) : 0;
}

/* A new array should be blank. If an old superblock was removed by hand, it may show old content. */
static int clean(Work *w, const char *array) {
        _cleanup_(content_done) Content c = {}, left = {};
        int r = device_content(w, array, &c);
        if (r < 0 || is_free(&c))
                return r;
        r = both_ends(w, array);
        THEN(r, device_content(w, array, &left));
        if (r < 0 || is_free(&left))
                return r;
        _free_ char *what = content_describe(&left);
        return work_fail(w, -EEXIST, CAUSE_ARRAY,
                         "the new array %s shows %s from an earlier use; run `mdadm --stop /dev/%s`, and "
                         "`blkdiscard --force` for each member", array, what, array);
}

/* The members are checked: the success of mdadm is not enough. */
static int array_is_up(Work *w) {
        _free_ char *array = NULL;
        int r = step_device(w, &array);
        return r < 0 ? r : 1;
}

static int mdadm(Work *w, const char *verb, char ***options, char *const *disks) {
        _free_ char *shown = disks_shown(w),
                    *what = xasprintf("%s of %s cannot be %s", w->action->target, shown, verb);
        for (char *const *d = disks; d && *d; d++)
                strv_push(options, xasprintf("/dev/%s", *d));
        return work_run(w, CAUSE_ARRAY, what, *options);
}

/* --homehost=any makes the array local to any host (mdadm(8)), so udev uses its name after the host was
 * renamed. --run answers mdadm prompts. */
static int array_create(Work *w) {
        const Action *a = w->action;
        const char *device = a->storage.device ?: a->target;
        _free_ char *array = NULL;
        _strv_ char **argv = command("mdadm", "--create", device, "--run", "--force", "--homehost=any",
                                     a->storage.device ? "--name=" RAID_OTHER_NAME : "--name=" RAID_NAME,
                                     "--metadata=1.2", NULL);
        strv_push(&argv, xasprintf("--level=%s", a->storage.level));
        strv_push(&argv, xasprintf("--chunk=%u", CHUNK_KIB));
        strv_push(&argv, xasprintf("--raid-devices=%zu", strv_length(a->storage.disks)));
        if (!streq(a->storage.level, "raid0")) { /* raid0 has no bitmap, and mdadm says so */
                /* No initial sync of RAID10, which takes hours. Blank disks are equal; different bytes of
                 * wiped members are never read before they are written (an md "check" counts them). After a
                 * power cut md compares only regions of the bitmap (md(4)); large regions slow few writes. */
                strv_add(&argv, "--assume-clean");
                strv_add(&argv, "--bitmap=internal");
                strv_add(&argv, "--bitmap-chunk=512M");
        }
        int r = mdadm(w, "created", &argv, a->storage.disks);
        THEN(r, step_device(w, &array));
        THEN(r, clean(w, array));
        return r < 0 ? r : 1;
}

static int array_assemble(Work *w, char *const *disks) {
        const Action *a = w->action;
        _strv_ char **argv = command("mdadm", "--assemble", "--run", "--homehost=any",
                                     a->storage.device ?: a->target, NULL);
        strv_push(&argv, xasprintf("--uuid=%s", a->storage.array_uuid));
        return mdadm(w, "assembled", &argv, disks);
}

/* Marked as not needed, until a file system is there. */
static int create(Work *w, LockedDisks *all) {
        int r = 0;
        for (size_t i = 0; i < all->n && r >= 0; i++)
                r = set_mark(w, &all->items[i], true);
        return r < 0 ? r : array_create(w);
}

static int make(Work *w, LockedDisks *all) {
        for (size_t i = 0; i < all->n; i++) {
                int r = disk_still(w, all->items[i].name, all->items[i].serial, NULL);
                if (r < 0)
                        return r;
                if (!is_free(&all->items[i].content))
                        return device_refuse(w, all->items[i].name, &all->items[i].content);
        }
        return create(w, all);
}

/* A whole array is not lost. mdadm rejects a member that is more than one event behind. */
static bool is_whole(const LockedDisks *all, const RaidMember *raid) {
        uint64_t latest = 0;
        size_t n = 0;
        for (size_t i = 0; i < all->n; i++)
                if (is_of_array(&all->items[i].content, raid->uuid))
                        latest = MAX(latest, all->items[i].content.raid.events);
        for (size_t i = 0; i < all->n; i++) {
                const RaidMember *m = &all->items[i].content.raid;
                n += is_of_array(&all->items[i].content, raid->uuid) && m->role >= 0 &&
                     m->events + 1 >= latest;
        }
        return n >= raid->disks;
}

static int remake(Work *w, LockedDisks *all) {
        int r = 0;
        for (size_t i = 0; i < all->n; i++) {
                const Content *c = &all->items[i].content;
                if (!is_free(c) && !is_remains(c))
                        return device_refuse(w, all->items[i].name, c);
                if (!is_free(c) && is_whole(all, &c->raid))
                        return work_fail(w, -EEXIST, CAUSE_DISK_USED,
                                         "all members of the array of %s (%s) are back; nothing was "
                                         "written; run nodestrap init again for a new plan",
                                         all->items[i].name, all->items[i].serial);
        }
        r = arrays_stop(w, all, NULL);
        for (size_t i = 0; i < all->n && r >= 0; i++)
                r = wipe(w, &all->items[i]);
        return r < 0 ? r : create(w, all);
}

static int assemble(Work *w, LockedDisks *all) {
        for (size_t i = 0; i < all->n; i++)
                if (!is_of_array(&all->items[i].content, w->action->storage.array_uuid))
                        return device_refuse(w, all->items[i].name, &all->items[i].content);
        _free_ char *array = NULL;
        if (disk_holder(w, all->items[0].name, &array) >= 0 && array && array_runs(w->root, array))
                return array_is_up(w) < 0 ? -ENODEV : 0;
        int r = arrays_stop(w, all, NULL);
        THEN(r, array_assemble(w, w->action->storage.disks));
        return r < 0 ? r : array_is_up(w);
}

static bool joins(const Work *w, const LockedDisk *d) {
        return strv_contains(w->action->storage.blank, d->name);
}

static char **names(const Work *w, const LockedDisks *all, bool joining) {
        char **v = NULL;
        for (size_t i = 0; i < all->n; i++)
                if (joins(w, &all->items[i]) == joining)
                        strv_add(&v, all->items[i].name);
        return v;
}

/* RAID10 works with one member of each pair. */
static int start_degraded(Work *w, const LockedDisks *all, char *const *left, char **ret) {
        _free_ char *array = NULL, *now = NULL;
        int r = disk_holder(w, left[0], &array);
        if (r < 0)
                return r;
        bool runs = array && array_runs(w->root, array);
        r = arrays_stop(w, all, runs ? array : NULL);
        if (r >= 0 && !runs)
                r = array_assemble(w, left);
        THEN(r, disk_holder(w, left[0], &now));
        if (r >= 0 && (!now || !array_runs(w->root, now)))
                r = work_fail(w, -ENODEV, CAUSE_ARRAY,
                              "%s is not running after mdadm assembled it; cat /proc/mdstat and dmesg show "
                              "why",
                              w->action->target);
        if (r >= 0)
                *ret = TAKE_PTR(now);
        return r;
}

static int repair(Work *w, LockedDisks *all) {
        _strv_ char **left = names(w, all, false), **joining = names(w, all, true);
        _free_ char *array = NULL;
        for (size_t i = 0; i < all->n; i++) {
                const Content *c = &all->items[i].content;
                bool expected = joins(w, &all->items[i]) ? is_free(c) || is_remains(c)
                                                         : is_of_array(c, w->action->storage.array_uuid);
                if (!expected)
                        return device_refuse(w, all->items[i].name, c);
        }
        int r = left ? start_degraded(w, all, left, &array)
                         : work_fail(w, -EINVAL, CAUSE_INTERNAL,
                                     "none of the planned disks belongs to the array; run nodestrap init "
                                     "again for a new plan");
        for (size_t i = 0; i < all->n && r >= 0; i++)
                if (joins(w, &all->items[i]))
                        r = wipe(w, &all->items[i]);
        if (r >= 0 && joining) {
                _free_ char *device = xasprintf("/dev/%s", array);
                _strv_ char **argv = command("mdadm", "--manage", device, "--add", NULL);
                r = mdadm(w, "completed", &argv, joining);
        }
        for (size_t i = 0; i < all->n && r >= 0; i++)
                if (joins(w, &all->items[i]))
                        r = set_mark(w, &all->items[i], false);
        return r < 0 ? r : array_is_up(w);
}

int raid_work(Work *w) {
        static int (*const steps[_STEP_MAX])(Work *, LockedDisks *) = {
                [STEP_MAKE] = make,
                [STEP_REMAKE] = remake,
                [STEP_ASSEMBLE] = assemble,
                [STEP_REPAIR] = repair,
        };
        _cleanup_(disks_unlock) LockedDisks all = {};
        int (*step)(Work *, LockedDisks *) = steps[w->action->storage.state];
        if (!step || !w->action->storage.level || !w->action->storage.disks)
                return work_fail(w, -EINVAL, CAUSE_INTERNAL,
                                 "the plan does not name the level or the disks of the array; run "
                                 "nodestrap init again for a new plan");
        int r = disks_lock(w, &all);
        THEN(r, disks_look(w, &all));
        THEN(r, step(w, &all));
        /* After the release, udev runs mdadm on each written member, which takes seconds of CPU. That waits
         * until storage is done. */
        for (size_t i = 0; r >= 0 && i < all.n; i++)
                work_keep(w, TAKE_FD(all.items[i].fd));
        return r;
}
