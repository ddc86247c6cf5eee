/* SPDX-License-Identifier: Apache-2.0
 * Messages of runtime.v1.ImageService (kubernetes/cri-api:pkg/apis/runtime/v1/api.proto), as protobuf in
 * frames of gRPC (grpc/grpc:doc/PROTOCOL-HTTP2.md). Numbers of fields: PullImageRequest.image 1, .auth 2;
 * ImageStatusRequest.image 1; ImageSpec.image 1; AuthConfig.username 1, .password 2;
 * ImageStatusResponse.image 1; Image.size 4. */
#include "pull/pull.h"

#include <errno.h>
#include <strings.h>

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 };
enum { FRAME_HEAD = 5, MESSAGE_MAX = 4096 };

void login_done(Login *l) {
        forget_secret(l->username);
        forget_secret(l->password);
        *l = (Login){};
}

void cri_reply_done(CriReply *r) {
        text_done(&r->body);
        free(r->message);
        *r = (CriReply){};
}

/* ---- requests ---- */

static void add_varint(Text *t, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                text_add(t, "%c", (int)(value | 0x80) & 0xff);
        text_add(t, "%c", (int)value);
}

static void add_bytes(Text *t, unsigned number, const void *data, size_t size) {
        add_varint(t, number << 3 | BYTES);
        add_varint(t, size);
        text_add_bytes(t, data, size);
}

static void add_image(Text *t, const char *image) {
        _cleanup_(text_done) Text spec = {};
        add_bytes(&spec, 1, image, strlen(image));
        add_bytes(t, 1, spec.data, spec.size);
}

static void erase(Text *t) {
        if (t->data)
                explicit_bzero(t->data, t->size);
        text_done(t);
}

/* Uncompressed, and with its length in network order. */
static void add_frame(Text *to, const Text *message) {
        char head[FRAME_HEAD] = {};
        for (size_t i = 1; i < FRAME_HEAD; i++)
                head[i] = (char)(message->size >> 8 * (FRAME_HEAD - 1 - i));
        text_add_bytes(to, head, FRAME_HEAD);
        text_add_bytes(to, message->data, message->size);
}

void cri_ask_status(Text *to, const char *image) {
        _cleanup_(text_done) Text message = {};
        add_image(&message, image);
        add_frame(to, &message);
}

void cri_ask_pull(Text *to, const char *image, const Login *login) {
        _cleanup_(erase) Text message = {}, auth = {};
        add_image(&message, image);
        if (login) {
                add_bytes(&auth, 1, login->username, strlen(login->username));
                add_bytes(&auth, 2, login->password, strlen(login->password));
                add_bytes(&message, 2, auth.data, auth.size);
        }
        add_frame(to, &message);
}

/* ---- answers ---- */

typedef struct Span { const unsigned char *data; size_t size; } Span;

static bool take_varint(Span *s, uint64_t *ret) {
        uint64_t value = 0;
        for (unsigned shift = 0; s->size > 0 && shift < 64; shift += 7) {
                unsigned char c = *s->data++;
                s->size--;
                value |= (uint64_t)(c & 0x7f) << shift;
                if (c < 0x80) {
                        *ret = value;
                        return true;
                }
        }
        return false;
}

static bool take_bytes(Span *s, uint64_t size, Span *ret) {
        if (size > s->size)
                return false;
        *ret = (Span){ s->data, (size_t)size };
        s->data += size;
        s->size -= (size_t)size;
        return true;
}

/* The last field with this number: as VARINT in *ret_value, as BYTES in *ret. 0: there is none. */
static int message_find(Span s, uint64_t number, int type, uint64_t *ret_value, Span *ret) {
        int found = 0;
        while (s.size > 0) {
                uint64_t tag, value = 0;
                Span bytes = {};
                if (!take_varint(&s, &tag))
                        return -EBADMSG;
                int kind = tag & 7;
                bool well = kind == FIXED_64   ? take_bytes(&s, 8, &bytes)
                            : kind == FIXED_32 ? take_bytes(&s, 4, &bytes)
                            : kind == VARINT   ? take_varint(&s, &value)
                                               : kind == BYTES && take_varint(&s, &value) &&
                                                         take_bytes(&s, value, &bytes);
                if (!well)
                        return -EBADMSG;
                if (tag >> 3 != number || kind != type)
                        continue;
                *ret_value = value;
                *ret = bytes;
                found = 1;
        }
        return found;
}

int cri_image_status(const void *frame, size_t size, uint64_t *ret_bytes) {
        const unsigned char *p = frame;
        uint64_t bytes = 0, length = 0;
        Span image = {}, none = {};
        if (size < FRAME_HEAD || *p != 0)
                return -EBADMSG;
        for (size_t i = 1; i < FRAME_HEAD; i++)
                length = length << 8 | p[i];
        if (length != size - FRAME_HEAD)
                return -EBADMSG;
        int r = message_find((Span){ p + FRAME_HEAD, size - FRAME_HEAD }, 1, BYTES, &length, &image);
        if (r <= 0)
                return r;
        r = message_find(image, 4, VARINT, &bytes, &none);
        if (r < 0)
                return r;
        *ret_bytes = bytes;
        return 1;
}

void cri_take_header(CriReply *r, const char *line, size_t size) {
        static const char status[] = "grpc-status:", message[] = "grpc-message:";
        _free_ char *text = xstrndup(line, MIN(size, (size_t)MESSAGE_MAX));
        uint64_t number = 0;
        if (strncasecmp(text, status, strlen(status)) == 0) {
                _free_ char *value = str_strip(text + strlen(status));
                r->status = parse_u64(value, &number) >= 0 && number <= INT32_MAX ? (int)number : -1;
        } else if (strncasecmp(text, message, strlen(message)) == 0) {
                _free_ char *value = str_strip(text + strlen(message));
                RENEW(r->message, percent_decoded(value));
        }
}
