/* SPDX-License-Identifier: Apache-2.0
 * The outer layers of user data and of parts: base64 (RFC 4648), then gzip (RFC 1952). It recognises them by
 * content, since launch templates, terraform and consoles encode more or less often than their users know. */
#include "doc/doc.h"

#include "base/str.h"

#include <errno.h>
#include <zlib.h>

void blobs_add(Blobs *b, Position at, char *data, size_t size) {
        *APPEND(b->items, b->n) = (Blob){ .at = at, .data = data, .size = size };
}

void blobs_done(Blobs *b) {
        for (size_t i = 0; i < b->n; i++)
                free(b->items[i].data);
        free(b->items);
        *b = (Blobs){};
}

static const char base64_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* 0 to 63, or -1 */
static int base64_value(char c) {
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_decode(const char *text, size_t size, bool skip_line_ends, char **ret, size_t *ret_size) {
        _free_ char *out = xcalloc(size / 4 * 3 + 4, 1);
        size_t n = 0, digits = 0, padding = 0;
        uint32_t bits = 0;
        for (size_t i = 0; i < size; i++) {
                int value = base64_value(text[i]);
                if (skip_line_ends && (text[i] == '\n' || text[i] == '\r'))
                        continue;
                if (text[i] == '=')
                        padding++;
                else if (value < 0 || padding > 0)
                        return -EINVAL;
                bits = bits << 6 | (value > 0 ? (uint32_t)value : 0);
                if (++digits % 4 == 0)
                        for (int shift = 16; shift >= 0; shift -= 8)
                                out[n++] = (char)(bits >> shift);
        }
        if (digits % 4 != 0 || padding > 2)
                return -EINVAL;
        n -= padding;
        out[n] = '\0';
        *ret = TAKE_PTR(out);
        *ret_size = n;
        return 0;
}

char *base64_encode(const void *data, size_t size) {
        const unsigned char *in = data;
        char *out = xcalloc((size + 2) / 3 * 4 + 1, 1), *p = out;
        for (size_t i = 0; i < size; i += 3) {
                uint32_t bits = (uint32_t)in[i] << 16 | (i + 1 < size ? (uint32_t)in[i + 1] << 8 : 0) |
                                (i + 2 < size ? in[i + 2] : 0);
                *p++ = base64_alphabet[bits >> 18];
                *p++ = base64_alphabet[bits >> 12 & 63];
                *p++ = i + 1 < size ? base64_alphabet[bits >> 6 & 63] : '=';
                *p++ = i + 2 < size ? base64_alphabet[bits & 63] : '=';
        }
        return out;
}

static bool is_gzip(const unsigned char *data, size_t size) {
        return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

/* NULL: the stream is whole. */
static const char *gzip_problem(const z_stream *z, int r) {
        if (r == Z_STREAM_END)
                return z->avail_in > 0 ? "bytes follow its last member" : NULL;
        return r == Z_OK || r == Z_BUF_ERROR ? "it ends too early" : "it is damaged";
}

/* All members; stops one byte past the limit. */
static int inflate_members(z_stream *z, Text *out) {
        int r;
        do {
                char buffer[16384];
                z->next_out = (unsigned char *)buffer;
                z->avail_out = (unsigned)MIN(sizeof buffer, DOC_MAX_BYTES + 1 - out->size);
                r = inflate(z, Z_NO_FLUSH);
                text_add_bytes(out, buffer, (size_t)((char *)z->next_out - buffer));
                if (r == Z_STREAM_END && is_gzip(z->next_in, z->avail_in))
                        r = inflateReset(z);
        } while (r == Z_OK && out->size <= DOC_MAX_BYTES);
        return r;
}

static int gunzip(Blob *blob, const Position *at, Diag *diag) {
        _cleanup_(text_done) Text out = {};
        z_stream z = { .next_in = (unsigned char *)blob->data, .avail_in = (unsigned)blob->size };
        if (blob->size > UINT32_MAX || inflateInit2(&z, 15 + 16) != Z_OK)
                return diag_error_at(diag, -ENOMEM, CAUSE_INTERNAL, at, NULL, "gzip: zlib cannot be used");
        int r = inflate_members(&z, &out);
        const char *problem = out.size <= DOC_MAX_BYTES ? gzip_problem(&z, r) : NULL;
        inflateEnd(&z);
        if (problem)
                return diag_error_at(diag, -EBADMSG, CAUSE_SYNTAX, at, NULL,
                                     "the gzip data cannot be trusted: %s; compress it again", problem);
        free(blob->data);
        blob->size = out.size;
        blob->data = text_take(&out);
        return 0;
}

int doc_unpack(Blob *blob, Diag *diag) {
        /* a line inside an encoded layer does not help: name that of the part, or none */
        Position at = { .source = blob->at.source, .part = blob->at.part,
                        .line = blob->at.part > 0 ? blob->at.line : 0 };
        char *plain;
        size_t size;
        int r = 0;
        if (blob->unpacked)
                return 0;
        blob->unpacked = true;
        if (blob->size > 0 && base64_decode(blob->data, blob->size, true, &plain, &size) >= 0) {
                free(blob->data);
                blob->data = plain;
                blob->size = size;
                blob->at.line = 1;
                blob->at.column = 0;
        }
        if (is_gzip((const unsigned char *)blob->data, blob->size)) {
                r = gunzip(blob, &at, diag);
                blob->at.line = 1;
                blob->at.column = 0;
        }
        if (r >= 0 && blob->size > DOC_MAX_BYTES)
                r = diag_error_at(diag, -E2BIG, CAUSE_LIMIT, &at, NULL,
                                  "unpacked, this is larger than the limit of %u bytes", DOC_MAX_BYTES);
        return r;
}
