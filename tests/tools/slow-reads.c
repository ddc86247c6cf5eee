/* SPDX-License-Identifier: Apache-2.0
 * Preloaded (ld.so(8)) into QEMU by tests/bench/cluster.py: each read of the root disk of vmboot.sh takes $SLOW_READS_USEC longer. QEMU
 * reads in up to 64 threads. So reads that a guest has under way at once also wait at once, as on a volume behind a network. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE         /* lint passes it as the Makefile does */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static useconds_t usec;

__attribute__((constructor)) static void begin(void) {
        const char *text = getenv("SLOW_READS_USEC");
        if (text && strncmp(program_invocation_short_name, "qemu-", 5) == 0)
                usec = (useconds_t)strtoul(text, NULL, 10);
}

/* The disk is the file "root" over "root.img". */
static void wait_if_root(int fd) {
        char link[32], path[4096];
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return;
        path[n] = 0;
        const char *name = strrchr(path, '/');
        if (name && (strcmp(name, "/root") == 0 || strcmp(name, "/root.img") == 0))
                usleep(usec);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): stand-ins for the C library */
ssize_t pread64(int fd, void *data, size_t size, off64_t offset) {
        static ssize_t (*next)(int, void *, size_t, off64_t);
        if (!next)
                *(void **)&next = dlsym(RTLD_NEXT, "pread64");
        if (usec > 0)
                wait_if_root(fd);
        return next(fd, data, size, offset);
}

ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset) {
        static ssize_t (*next)(int, const struct iovec *, int, off64_t);
        if (!next)
                *(void **)&next = dlsym(RTLD_NEXT, "preadv64");
        if (usec > 0)
                wait_if_root(fd);
        return next(fd, parts, count, offset);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
