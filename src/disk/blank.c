/* SPDX-License-Identifier: Apache-2.0
 * Is a device without a signature blank? Checked are both ends, where superblocks and partition tables lie,
 * and blocks in between. Those are evenly spread and at powers of two, where superblock copies and data of
 * arrays and LUKS begin (md(4); btrfs, Documentation/dev/On-disk-format; cryptsetup,
 * docs/on-disk-format-luks2.pdf). At most 1100 reads, announced to the kernel so that they overlap. */
#include "disk/disk.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define BLOCK       4096U
#define END         (1U << 20)
#define PART        (4ULL << 30) /* one look in each part; limits: */
#define PARTS_MOST  1024U
#define PARTS_LEAST 256U
#define SMALL       (16ULL << 30) /* smaller than any instance store */
#define PARTS_SMALL 64U
#define MARKS       16U /* mkfs overwrites few of them */

/* While this is on the disk, power may fail at any moment. A later version must know it: never change it. */
static const char mark[] =
        "nodestrap has begun to set up this disk, and its present contents are not needed.\n";

char *disk_read(int fd, void *data, size_t size, uint64_t offset) {
        for (size_t done = 0; done < size;) {
                ssize_t n = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return xasprintf("reading at byte %ju: %s", (uintmax_t)offset + done,
                                         n < 0 ? strerror(errno) : "nothing is there");
                done += (size_t)n;
        }
        return NULL;
}

static size_t parts(uint64_t size) {
        return size < SMALL ? PARTS_SMALL : (size_t)MAX(PARTS_LEAST, MIN(PARTS_MOST, size / PART));
}

/* The i-th place between the ends; size after the last. */
static uint64_t place(uint64_t size, size_t i) {
        if (i < parts(size))
                return size / parts(size) / BLOCK * BLOCK * i;
        size_t k = i - parts(size);
        /* 4, 5, 8, 9, 16, 17 MiB …: data of an array begins here or 1 MiB later */
        return MIN(((4ULL << k / 2) + (k & 1)) << 20, size);
}

typedef struct Look {
        int fd;
        uint64_t size, first; /* of the first non-zero byte; or size */
        char *data;
        bool marked;
        char *error;
} Look;

static void look_at(Look *l, uint64_t offset, size_t size) {
        size = (size_t)MIN(size, l->size - offset);
        if (l->error || size == 0)
                return;
        l->error = disk_read(l->fd, l->data, size, offset);
        if (l->error)
                return;
        l->marked = l->marked || (size >= sizeof mark && memcmp(l->data, mark, sizeof mark) == 0);
        size_t i = l->data[0] == 0 && memcmp(l->data, l->data + 1, size - 1) == 0 ? size : 0;
        while (i < size && l->data[i] == 0)
                i++;
        if (i < size)
                l->first = MIN(l->first, offset + i);
}

char *blank_look(int fd, uint64_t size, uint64_t *ret_first, bool *ret_marked) {
        _free_ char *data = xcalloc(END, 1);
        Look l = { .fd = fd, .size = size, .first = size, .data = data };
        bool whole = size <= 2ULL * END;
        for (size_t i = 1; !whole && place(size, i) < size; i++)
                (void)posix_fadvise(fd, (off_t)place(size, i), BLOCK, POSIX_FADV_WILLNEED);
        look_at(&l, 0, END);
        look_at(&l, size - MIN(size, END), END);
        for (size_t i = 1; !whole && place(size, i) < size; i++)
                look_at(&l, place(size, i), BLOCK);
        *ret_first = l.first;
        *ret_marked = l.marked;
        return l.error;
}

/* A member has one mark at its start, which metadata 1.2 leaves unused. */
int disk_mark(int fd, bool member, bool set) {
        off_t size = lseek(fd, 0, SEEK_END);
        _free_ char *data = xcalloc(BLOCK, 1);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);     /* an array writes below the page cache */
        for (size_t i = 0; size > 0 && i < (member ? 1 : MARKS); i++) {
                size_t step = parts((uint64_t)size) / MARKS;
                uint64_t at = member ? 0 : place((uint64_t)size, step * i + step / 2);
                ssize_t n = set ? BLOCK : pread(fd, data, BLOCK, (off_t)at);
                if (n == BLOCK && !set && memcmp(data, mark, sizeof mark) != 0)
                        continue;
                memset(data, 0, BLOCK);
                if (set)
                        memcpy(data, mark, sizeof mark);
                if (n == BLOCK)
                        n = pwrite(fd, data, BLOCK, (off_t)at);
                if (n != BLOCK)
                        return n < 0 ? -errno : -EIO;
        }
        return size < 0 || fsync(fd) < 0 ? -errno : 0;
}

bool disk_is_marked(const Root *root, const char *name) {
        _free_ char *path = xasprintf("/dev/%s", name), *data = xcalloc(BLOCK, 1);
        _cleanup_(close_fd) int fd = root_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return false;
        (void)posix_fadvise(fd, 0, BLOCK, POSIX_FADV_DONTNEED);
        return pread(fd, data, BLOCK, 0) == BLOCK && memcmp(data, mark, sizeof mark) == 0;
}
