/* SPDX-License-Identifier: Apache-2.0
 * Files → tar → gzip; only the compressed form stays in memory. A long name gets a pax header. */
#include "base/archive.h"

#include "base/str.h"

#include <assert.h>
#include <stdio.h>
#include <zlib.h>

#define BLOCK       512U
#define MEMBER_MAX  ((size_t)1 << 33)           /* eleven octal digits */

/* The POSIX header block; numbers are octal text. */
typedef struct Header {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6],
                version[2], user[32], group[32], major[8], minor[8], prefix[155], padding[12];
} Header;
static_assert(sizeof(Header) == BLOCK, "a header is one block");

struct Archive { z_stream z; Text out; int64_t mtime; };

static void *take_memory(_unused_ void *opaque, unsigned count, unsigned size) {
        return xcalloc(count, size);
}

static void give_memory(_unused_ void *opaque, void *p) {
        free(p);
}

Archive *archive_new(int64_t mtime) {
        Archive *a = xcalloc(1, sizeof *a);
        a->mtime = mtime;
        a->z = (z_stream){ .zalloc = take_memory, .zfree = give_memory };
        /* 15: window bits; 16: with a gzip header and trailer */
        int r = deflateInit2(&a->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
        assert(r == Z_OK);              /* allocators abort; args are valid */
        (void)r;
        return a;
}

Archive *archive_free(Archive *a) {
        if (!a)
                return NULL;
        deflateEnd(&a->z);
        text_done(&a->out);
        free(a);
        return NULL;
}

static void put(Archive *a, const void *data, size_t size, int flush) {
        const unsigned char *from = data;
        do {
                unsigned n = (unsigned)MIN(size, (size_t)1 << 30);
                a->z.next_in = (unsigned char *)from;
                a->z.avail_in = n;
                do {
                        char buffer[16384];
                        a->z.next_out = (unsigned char *)buffer;
                        a->z.avail_out = sizeof buffer;
                        (void)deflate(&a->z, n < size ? Z_NO_FLUSH : flush);
                        text_add_bytes(&a->out, buffer, sizeof buffer - a->z.avail_out);
                } while (a->z.avail_out == 0);
                from += n;
                size -= n;
        } while (size > 0);
}

static void put_entry(Archive *a, char type, const char *name, const void *data, size_t size) {
        Header h = { .mode = "0000600", .uid = "0000000", .gid = "0000000", .type = type,
                     .magic = "ustar", .version = { '0', '0' }, .user = "root", .group = "root" };
        unsigned sum = 0;
        assert(size < MEMBER_MAX);
        memcpy(h.name, name, MIN(strlen(name), sizeof h.name));
        (void)snprintf(h.size, sizeof h.size, "%011zo", size);
        (void)snprintf(h.mtime, sizeof h.mtime, "%011llo",
                       (unsigned long long)MAX(a->mtime, 0) & 077777777777ULL);
        memset(h.checksum, ' ', sizeof h.checksum);     /* which the checksum counts as blanks */
        for (size_t i = 0; i < sizeof h; i++)
                sum += ((const unsigned char *)&h)[i];
        (void)snprintf(h.checksum, sizeof h.checksum, "%06o", sum);
        put(a, &h, sizeof h, Z_NO_FLUSH);
        put(a, data, size, Z_NO_FLUSH);
        if (size % BLOCK > 0)
                put(a, (const char[BLOCK]){}, BLOCK - size % BLOCK, Z_NO_FLUSH);
}

/* "26 path=a/rather/long/name\n"; the length counts itself. */
static char *pax_record(const char *name) {
        size_t rest = strlen(" path=\n") + strlen(name), digits = 1;
        while ((size_t)snprintf(NULL, 0, "%zu", rest + digits) > digits)
                digits++;
        return xasprintf("%zu path=%s\n", rest + digits, name);
}

void archive_add(Archive *a, const char *name, const void *data, size_t size) {
        if (strlen(name) > sizeof ((Header *)NULL)->name) {
                _free_ char *record = pax_record(name);
                put_entry(a, 'x', "pax", record, strlen(record));
        }
        put_entry(a, '0', name, data, size);
}

char *archive_end(Archive *a, size_t *ret_size) {
        static const char end[2 * BLOCK] = "";
        put(a, end, sizeof end, Z_FINISH);
        *ret_size = a->out.size;
        return text_take(&a->out);
}
