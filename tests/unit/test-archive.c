/* SPDX-License-Identifier: Apache-2.0
 * archive_…(): the output is tar in gzip, with the names, sizes and bytes of the input.
 * tests/check/bundle.sh reads such a file with Python's tarfile. */
#include "base/archive.h"
#include "base/str.h"
#include "test.h"

#include <zlib.h>

static char *unpack(const char *packed, size_t size, size_t *ret_size) {
        z_stream z = { .next_in = (unsigned char *)packed, .avail_in = (unsigned)size };
        size_t room = 64 << 20;
        char *out = xcalloc(room, 1);
        z.next_out = (unsigned char *)out;
        z.avail_out = (unsigned)room;
        ASSERT_EQ(inflateInit2(&z, 15 + 16), Z_OK);
        ASSERT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
        ASSERT_EQ(z.avail_in, 0);
        *ret_size = z.total_out;
        inflateEnd(&z);
        return out;
}

/* Checks the header at p; returns the bytes behind it. */
static const char *assert_header(const char *p, char type, const char *name, size_t size) {
        _free_ char *its_name = xstrndup(p, 100);
        unsigned sum = 0;
        ASSERT_STREQ(its_name, name);
        ASSERT_STREQ(p + 100, "0000600");
        ASSERT_EQ(strtoull(p + 124, NULL, 8), size);
        ASSERT_EQ(strtoull(p + 136, NULL, 8), 1700000000);
        ASSERT_EQ(p[156], type);
        ASSERT_TRUE(memcmp(p + 257, "ustar\00000", 8) == 0);
        for (int i = 0; i < 512; i++)
                sum += i >= 148 && i < 156 ? ' ' : (unsigned char)p[i];
        ASSERT_EQ(strtoull(p + 148, NULL, 8), sum);
        return p + 512;
}

static const char *assert_zeros(const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                ASSERT_EQ(p[i], 0);
        return p + n;
}

static void assert_one(const char *name, const char *data, size_t size) {
        Archive *a = archive_new(1700000000);
        size_t packed_size, all_size;
        archive_add(a, name, data, size);
        _free_ char *packed = archive_end(a, &packed_size);
        _free_ char *all = unpack(packed, packed_size, &all_size);
        const char *p = all;
        archive_free(a);
        ASSERT_EQ(all_size % 512, 0);
        if (strlen(name) > 100) {
                size_t length = strtoull(p + 512, NULL, 10);
                _free_ char *record = xasprintf("%zu path=%s\n", length, name);
                ASSERT_EQ(length, strlen(record));
                p = assert_header(p, 'x', "pax", length);
                ASSERT_TRUE(memcmp(p, record, length) == 0);
                p = assert_zeros(p + length, 511 - (length + 511) % 512);
        }
        _free_ char *cut = xstrndup(name, 100);
        p = assert_header(p, '0', cut, size);
        ASSERT_TRUE(memcmp(p, data, size) == 0);
        p = assert_zeros(p + size, 511 - (size + 511) % 512);
        p = assert_zeros(p, 1024);
        ASSERT_EQ(p - all, all_size);
}

TEST(sizes_around_a_block) {
        static const size_t sizes[] = { 0, 1, 511, 512, 513, 1024, 16384, 100000 };
        _free_ char *data = xcalloc(100000, 1);
        for (size_t i = 0; i < 100000; i++)
                data[i] = (char)(i * 7 + i / 256);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                assert_one("nodestrap/status.json", data, sizes[i]);
}

/* 100 bytes fit into a header; the length of a record changes its digits where it counts itself */
TEST(names_of_every_length) {
        for (size_t n = 1; n < 1200; n += n > 85 && n < 110 ? 1 : n > 980 && n < 1000 ? 1 : 17) {
                _free_ char *name = xcalloc(n + 1, 1);
                memset(name, 'n', n);
                assert_one(name, "x", 1);
        }
}

TEST(large_member_compresses) {
        size_t size = 20 << 20, packed_size;
        _free_ char *data = xcalloc(size, 1);
        Archive *a = archive_new(0);
        archive_add(a, "zeros", data, size);
        _free_ char *packed = archive_end(a, &packed_size);
        archive_free(a);
        ASSERT_TRUE(packed);
        ASSERT_TRUE(packed_size < size / 500);
}

TEST(an_empty_archive_has_two_blocks_of_zeros) {
        size_t packed_size, size;
        Archive *a = archive_new(1);
        _free_ char *packed = archive_end(a, &packed_size), *all = unpack(packed, packed_size, &size);
        archive_free(a);
        ASSERT_EQ(size, 1024);
        assert_zeros(all, size);
}

TEST(an_archive_can_be_freed_before_its_end) {
        Archive *a = archive_new(1);
        archive_add(a, "a", "b", 1);
        ASSERT_TRUE(!archive_free(a));
        ASSERT_TRUE(!archive_free(NULL));
}
TEST_MAIN
