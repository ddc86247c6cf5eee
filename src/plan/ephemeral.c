/* SPDX-License-Identifier: Apache-2.0 */
/* The planned storage → the size of the file system below the kubelet directory: measured if mounted, else
 * computed. md takes some space at the start (md-raid-utilities/mdadm:super1.c), xfs its log (mkfs.xfs(8), -l
 * size), ext4 inode tables and a journal (mke2fs(8), mke2fs.conf(5)). */
#include "base/str.h"
#include "plan/storage.h"

#define KIBIBYTE (1ULL << 10)
#define MEBIBYTE (1ULL << 20)
#define GIBIBYTE (1ULL << 30)
#define TEBIBYTE (1ULL << 40)
#define CHUNK    (256 * KIBIBYTE)       /* of our arrays */
#define BLOCK    (4 * KIBIBYTE)

uint64_t member_bytes(uint64_t disk) {
        uint64_t headroom = 128 * MEBIBYTE;     /* for reshaping */
        while (headroom > disk / KIBIBYTE && headroom > 2 * CHUNK)
                headroom /= 2;
        uint64_t start = headroom + MEBIBYTE;   /* superblock and bitmap, in whole mebibytes */
        return disk > start ? (disk - start) / CHUNK * CHUNK : 0;
}

/* By size; small ones differ slightly. */
static uint64_t journal_bytes(uint64_t device) {
        uint64_t journal = GIBIBYTE, from = 128 * GIBIBYTE;
        for (; device < from && journal > 64 * MEBIBYTE; from /= 2)
                journal /= 2;
        return journal;
}

uint64_t filesystem_bytes(uint64_t device, Filesystem filesystem) {
        uint64_t taken;
        if (filesystem == FILESYSTEM_XFS)       /* 64 MiB to the limit of the format */
                taken = MIN(MAX(device / 2048, 64 * MEBIBYTE), 2038 * MEBIBYTE);
        else {
                uint64_t inode = device < 4 * TEBIBYTE ? 16384 : device < 16 * TEBIBYTE ? 32768 : 65536;
                /* 256 bytes an inode; bitmaps, group descriptors, superblock copies */
                taken = device / inode * 256 + journal_bytes(device) + device / 12000;
        }
        return device > taken ? (device - taken) / BLOCK * BLOCK : 0;
}

/* The bind of the kubelet directory or of a parent. */
static const Action *bind_of(const Plan *plan, const char *directory) {
        const Action *found = NULL;
        for (const Action *a = plan->actions; a < plan->actions + plan->n; a++) {
                if (a->type == ACTION_BIND && path_in(directory, a->target) &&
                    (!found || strlen(a->target) > strlen(found->target)))
                        found = a;
        }
        return found;
}

static uint64_t running_bytes(const Host *host, const char *name) {
        return name ? PICK(a, host->storage.arrays, host->storage.n_arrays, streq(a->name, name) && a->active,
                           a->bytes, 0)
                    : 0;
}

/* Of the array or the disk; missing disks count as the smallest found. 0: not known. */
static uint64_t device_bytes(const Plan *plan, const Config *config, const Host *host, const Action *mount) {
        const Action *raid = mount->storage.array ? plan_find(plan, "create-raid:" RAID_DEVICE) : NULL;
        size_t n = strv_length(mount->storage.disks);
        uint64_t sum = 0, least = UINT64_MAX;
        if (raid && running_bytes(host, raid->storage.running) > 0)
                return running_bytes(host, raid->storage.running);
        for (size_t i = 0; i < n; i++) {
                uint64_t bytes = PICK(d, host->disks, host->n_disks, streq(d->name, mount->storage.disks[i]),
                                      d->bytes, 0);
                least = MIN(least, bytes);
                sum += raid ? member_bytes(bytes) : bytes;
        }
        if (n == 0 && !mount->storage.volume && host->type)
                least = host->type->disk_gb * 1000000000ULL;
        if (least == 0 || least == UINT64_MAX)
                return 0;
        if (!raid)
                return n > 0 ? sum : least;
        size_t all = MAX(n, (size_t)host_expected_stores(config, host));
        return streq(raid->storage.level, "raid10") ? all * member_bytes(least) / 2
                                                    : sum + (all - n) * member_bytes(least);
}

uint64_t ephemeral_bytes(const Plan *plan, const Config *config, const Host *host, const char **ret_doubt) {
        _cleanup_(storage_places_done) StoragePlaces places =
                storage_binds_of(config, host->containerd_version);
        const StorageBind *kubelet = &places.all[PLACE_KUBELET];
        const Action *bind = bind_of(plan, kubelet->path);
        const Action *mount = bind ? FIND(a, plan->actions, plan->n,
                                          a->type == ACTION_MOUNT && path_in(bind->storage.source, a->target))
                                   : NULL;
        const Directory *place = mount ? storage_directory(&host->storage, mount->target) : NULL;
        *ret_doubt = NULL;
        if ((!bind || bind->storage.state == STEP_KEEP) && host->kubelet_bytes > 0)
                return host->kubelet_bytes;
        if (mount && (mount->storage.state == STEP_KEEP || mount->storage.state == STEP_REPAIR) && place &&
            place->size > 0)
                return place->size;
        *ret_doubt = kubelet->given ? "the user moved the kubelet directory"
                                     : "this plan cannot see the file system of " KUBELET_DIR;
        if (!mount)
                return 0;
        *ret_doubt = "this plan does not know the size of the disks";
        uint64_t device = device_bytes(plan, config, host, mount);
        if (device == 0)
                return 0;
        *ret_doubt = "an estimate: the file system is not mounted yet";
        return filesystem_bytes(device, streq(mount->storage.filesystem, "xfs") ? FILESYSTEM_XFS
                                                                                : FILESYSTEM_EXT4);
}
