/* SPDX-License-Identifier: Apache-2.0
 * doc_unpack() and base64: rules E1, E3, E4, L3. */
#include "base/str.h"
#include "doc/doc.h"
#include "test.h"

#include <zlib.h>

static char *gzip(const void *data, size_t size, size_t *ret_size) {
        z_stream z = { .next_in = (unsigned char *)data, .avail_in = (unsigned)size };
        size_t room = size + size / 100 + 100;
        char *out = xcalloc(room, 1);

        z.next_out = (unsigned char *)out;
        z.avail_out = (unsigned)room;
        ASSERT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
        *ret_size = room - z.avail_out;
        deflateEnd(&z);
        return out;
}

static Blob blob_new(const void *data, size_t size) {
        return (Blob){ .at = { "user-data", 0, 1 }, .data = xmemdup(data, size), .size = size };
}

static void blob_done(Blob *b) {
        free(b->data);
}

static void assert_unpacks(const void *data, size_t size, const char *want) {
        _cleanup_(blob_done) Blob b = blob_new(data, size);
        _cleanup_(diag_done) Diag diag = {};
        ASSERT_OK(doc_unpack(&b, &diag));
        ASSERT_EQ(b.size, strlen(want));
        ASSERT_STREQ(b.data, want);
        ASSERT_EQ(diag.n, 0);
}

static void assert_refused(const void *data, size_t size, int error, const char *part_of_message) {
        _cleanup_(blob_done) Blob b = blob_new(data, size);
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *message = NULL;
        ASSERT_EQ(doc_unpack(&b, &diag), -error);
        message = diagnostic_format(diag_first_error(&diag));
        ASSERT_CONTAINS(message, part_of_message);
}

TEST(e1_plain_text_stays) {
        assert_unpacks("", 0, "");
        assert_unpacks("kind: x\n", 8, "kind: x\n");
        assert_unpacks("YTog Yg==", 9, "YTog Yg==");    /* a blank is not a line end */
        assert_unpacks("YTogYg", 6, "YTogYg");          /* no padding */
        assert_unpacks("YTog-_==", 8, "YTog-_==");      /* another alphabet */
        assert_unpacks("\x1f", 1, "\x1f");
}

TEST(e1_base64_is_decoded) {
        assert_unpacks("YTogYg==", 8, "a: b");
        assert_unpacks("YTo\ngY\r\ng==\n\n", 13, "a: b");
        assert_unpacks("YTogYmM=", 8, "a: bc");
}

TEST(e1_gzip_is_decompressed) {
        size_t size;
        _free_ char *data = gzip("a: b\n", 5, &size);
        assert_unpacks(data, size, "a: b\n");
}

TEST(e1_base64_around_gzip_is_unpacked) {
        size_t size;
        _free_ char *data = gzip("a: b\n", 5, &size), *text = base64_encode(data, size);
        assert_unpacks(text, strlen(text), "a: b\n");
}

TEST(e1_base64_inside_gzip_stays) {
        size_t size;
        _free_ char *data = gzip("YTogYg==", 8, &size);
        assert_unpacks(data, size, "YTogYg==");
}

TEST(e3_gzip_members_are_joined) {
        size_t n, m;
        _free_ char *one = gzip("a: ", 3, &n), *two = gzip("b\n", 2, &m), *both = xcalloc(n + m, 1);
        memcpy(both, one, n);
        memcpy(both + n, two, m);
        assert_unpacks(both, n + m, "a: b\n");
}

TEST(e3_truncated_gzip_is_refused) {
        size_t size;
        _free_ char *data = gzip("a: b\n", 5, &size);
        for (size_t n = 2; n < size; n++)
                assert_refused(data, n, EBADMSG, "gzip");
}

TEST(e3_bytes_after_gzip_are_refused) {
        size_t size;
        _free_ char *data = gzip("a: b\n", 5, &size), *longer = xcalloc(size + 2, 1);
        memcpy(longer, data, size);
        longer[size] = '\n';
        assert_refused(longer, size + 1, EBADMSG, "gzip");
        longer[size] = '\x1f';          /* half of a member's magic */
        assert_refused(longer, size + 1, EBADMSG, "gzip");
        longer[size + 1] = '\x8b';      /* a member that ends at once */
        assert_refused(longer, size + 2, EBADMSG, "gzip");
}

TEST(e3_damaged_gzip_is_refused) {
        size_t size;
        _free_ char *data = gzip("a: b\n", 5, &size);
        data[size - 6] ^= 1;            /* in the checksum */
        assert_refused(data, size, EBADMSG, "gzip");
        assert_refused("\x1f\x8b garbage", 10, EBADMSG, "gzip");
}

TEST(e4_second_layers_stay) {
        size_t n, m;
        _free_ char *data = gzip("a: b\n", 5, &n), *twice = gzip(data, n, &m);
        _cleanup_(blob_done) Blob b = blob_new(twice, m);
        _cleanup_(diag_done) Diag diag = {};
        assert_unpacks("WVRvZ1lnPT0=", 12, "YTogYg==");
        ASSERT_OK(doc_unpack(&b, &diag));
        ASSERT_EQ(b.size, n);
        ASSERT_EQ(memcmp(b.data, data, n), 0);
}

TEST(l3_data_over_1_mib_is_refused) {
        _free_ char *data = xcalloc(DOC_MAX_BYTES + 1, 1), *most = NULL, *more = NULL;
        _cleanup_(diag_done) Diag diag = {};
        size_t n, m;

        memset(data, 'x', DOC_MAX_BYTES + 1);
        most = gzip(data, DOC_MAX_BYTES, &n);
        more = gzip(data, DOC_MAX_BYTES + 1, &m);
        _cleanup_(blob_done) Blob b = blob_new(most, n);
        ASSERT_OK(doc_unpack(&b, &diag));
        ASSERT_EQ(b.size, DOC_MAX_BYTES);
        assert_refused(more, m, E2BIG, "limit of 1048576 bytes");
        data[0] = ' ';                  /* else it might be base64 */
        assert_refused(data, DOC_MAX_BYTES + 1, E2BIG, "limit");
}

TEST(l3_a_gzip_bomb_is_refused) {
        size_t size = 64 << 20, n, m;
        _free_ char *zeros = xcalloc(size, 1), *bomb = gzip(zeros, size, &n), *small = gzip("a: b\n", 5, &m);
        _free_ char *members = xcalloc(n + m, 1);
        assert_refused(bomb, n, E2BIG, "limit");
        memcpy(members, small, m);
        memcpy(members + m, bomb, n);
        assert_refused(members, n + m, E2BIG, "limit");
}

TEST(the_message_names_the_part_of_user_data) {
        _cleanup_(blob_done) Blob b = blob_new("\x1f\x8b", 2);
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *message = NULL;
        b.at.part = 3;
        b.at.line = 20;
        ASSERT_ERROR(doc_unpack(&b, &diag), EBADMSG);
        message = diagnostic_format(diag_first_error(&diag));
        ASSERT_CONTAINS(message, "user-data, part 3, line 20: the gzip data");
        ASSERT_EQ(diag_first_error(&diag)->cause, CAUSE_SYNTAX);
}

TEST(base64_is_decoded_to_the_same_bytes) {
        unsigned char bytes[256];
        for (size_t i = 0; i < sizeof bytes; i++)
                bytes[i] = (unsigned char)(i * 7);
        for (size_t n = 0; n <= sizeof bytes; n++) {
                _free_ char *text = base64_encode(bytes, n), *back = NULL;
                size_t size = 999;
                ASSERT_EQ(strlen(text), (n + 2) / 3 * 4);
                ASSERT_OK(base64_decode(text, strlen(text), false, &back, &size));
                ASSERT_EQ(size, n);
                ASSERT_EQ(memcmp(back, bytes, n), 0);
                ASSERT_EQ(back[n], 0);
        }
}

TEST(base64_of_known_texts_is_right) {
        _free_ char *a = base64_encode("f", 1), *b = base64_encode("fo", 2), *c = base64_encode("foobar", 6);
        ASSERT_STREQ(a, "Zg==");
        ASSERT_STREQ(b, "Zm8=");
        ASSERT_STREQ(c, "Zm9vYmFy");
}

TEST(invalid_base64_is_refused) {
        static const char *const bad[] = { "Z", "Zg", "Zg=", "Zg===", "=Zg=", "Z===", "====", "Zg==Zg==", "Z g=", "Zm8=Z", "Zm-_", "Zg==\n", "Zg=\n=" };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                char *out = NULL;
                size_t size;
                ASSERT_ERROR(base64_decode(bad[i], strlen(bad[i]), false, &out, &size), EINVAL);
                ASSERT_TRUE(out == NULL);
        }
}

TEST(base64_may_have_line_ends_where_they_are_allowed) {
        _free_ char *out = NULL;
        size_t size;
        ASSERT_OK(base64_decode("Zm9v\r\nYmFy\n", 11, true, &out, &size));
        ASSERT_STREQ(out, "foobar");
}

TEST_MAIN
