/* SPDX-License-Identifier: Apache-2.0
 * grow-filesystem: the kernel grows a mounted file system to its enlarged volume, without xfsprogs or
 * e2fsprogs. It uses transactions: a power cut leaves the old size or the new one. */
#include "apply/storage.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

/* From xfs_fs.h of xfsprogs; <linux/> lacks it. A stable interface. */
typedef struct XfsGeometry {
        uint32_t blocksize, rtextsize, agblocks, agcount, logblocks, sectsize, inodesize, imaxpct;
        uint64_t datablocks, rtblocks, rtextents, logstart;
        unsigned char uuid[16];
        uint32_t sunit, swidth;
        int32_t version;
        uint32_t flags, logsectsize, rtsectsize, dirblocksize;
} XfsGeometry;
typedef struct XfsGrow { uint64_t newblocks; uint32_t imaxpct; } XfsGrow;
#define XFS_GEOMETRY _IOR('X', 100, XfsGeometry)
#define XFS_GROW     _IOW('X', 110, XfsGrow)
#define EXT4_RESIZE  _IOW('f', 16, uint64_t) /* linux/fs/ext4/ext4.h, EXT4_IOC_RESIZE_FS */

/* XFS silently ignores a remainder too small for an allocation group (linux, fs/xfs/xfs_fsops.c,
 * xfs_growfs_data_private()). */
static int grow_xfs(int fd, uint64_t bytes) {
        XfsGeometry g = {};
        if (ioctl(fd, XFS_GEOMETRY, &g) < 0)
                return -errno;
        if (g.blocksize == 0 || bytes / g.blocksize <= g.datablocks)
                return 0;
        XfsGrow grow = { bytes / g.blocksize, g.imaxpct };
        uint64_t before = g.datablocks;
        if (ioctl(fd, XFS_GROW, &grow) < 0 || ioctl(fd, XFS_GEOMETRY, &g) < 0)
                return -errno;
        return g.datablocks > before;
}

static uint32_t le32(const unsigned char *p) {
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ext4 may skip a small remainder, so the same size is fine. s_blocks_count_lo, s_log_block_size,
 * s_blocks_count_hi: linux, Documentation/filesystems/ext4/super.rst. */
static int grow_ext4(int fd, int device, uint64_t bytes) {
        unsigned char super[1024];
        struct statfs before, after;
        if (pread(device, super, sizeof super, 1024) != (ssize_t)sizeof super || fstatfs(fd, &before) < 0)
                return -errno ?: -EIO;
        uint64_t blocks = le32(super + 4) | (uint64_t)le32(super + 0x150) << 32,
                 wanted = bytes >> (10 + (le32(super + 24) & 15));
        if (wanted <= blocks)
                return 0;
        if (ioctl(fd, EXT4_RESIZE, &wanted) < 0 || fstatfs(fd, &after) < 0)
                return -errno;
        return after.f_blocks > before.f_blocks;
}

int grow_work(Work *w) {
        const char *target = w->action->storage.source;
        _free_ char *name = NULL, *disks = disks_shown(w);
        struct statfs fs;
        uint64_t bytes = 0;
        int r = disks_same(w);
        THEN(r, step_device(w, &name));
        if (r < 0)
                return r;
        _free_ char *path = xasprintf("/dev/%s", name);
        _cleanup_(close_fd) int fd = root_open(w->root, target, O_RDONLY | O_DIRECTORY),
                                device = root_open(w->root, path, O_RDONLY | O_NOFOLLOW);
        r = fd < 0 ? fd : device < 0 ? device : 0;
        THEN(r, device_is_mounted(w, path, fd));
        if (r == 0)
                r = -ESTALE;
        if (r >= 0 && (fstatfs(fd, &fs) < 0 || ioctl(device, BLKGETSIZE64, &bytes) < 0))
                r = -errno;
        work_at(w, "growing the file system of %s", disks);
        if (r >= 0)
                r = fs.f_type == XFS_SUPER_MAGIC    ? grow_xfs(fd, bytes)
                    : fs.f_type == EXT4_SUPER_MAGIC ? grow_ext4(fd, device, bytes)
                                                    : 0;
        return r < 0 ? work_fail(w, r, CAUSE_FILESYSTEM,
                                 "the file system of %s, at %s, cannot grow to the size of its volume: %m; "
                                 "it keeps its size; dmesg may show why",
                                 disks, target)
                     : r;
}
