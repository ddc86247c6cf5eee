/* SPDX-License-Identifier: Apache-2.0
 * One JSON text (RFC 8259) → a document of nodes. libyaml refuses some JSON: surrogate pairs, keys over
 * 1024 bytes, a line end before the colon. Numbers keep their text, which jansson would lose. */
#include "doc/node.h"

#include "base/str.h"

#include <errno.h>

typedef struct Reader {
        const char *next, *end;
        const char *counted;            /* at is the mark of this place */
        Mark at;
        Builder *builder;
        Text text;                      /* the string being read */
} Reader;
static int read_value(Reader *r);
static void skip_whitespace(Reader *r) {
        while (r->next < r->end && strchr(" \t\r\n", *r->next) && *r->next)
                r->next++;
}

static Mark reader_mark(Reader *r) {
        for (; r->counted < r->next; r->counted++)
                if (*r->counted == '\n')
                        r->at = (Mark){ r->at.line + 1, 1 + r->builder->at.column };
                else    /* characters, not continuation bytes */
                        r->at.column += ((unsigned char)*r->counted & 0xc0) != 0x80;
        return r->at;
}

static bool take_char(Reader *r, char c) {
        if (r->next >= r->end || *r->next != c)
                return false;
        r->next++;
        return true;
}

/* The four hex digits after \u. */
static bool take_hex(Reader *r, uint32_t *ret) {
        uint32_t value = 0;
        if (r->end - r->next < 4)
                return false;
        for (int i = 0; i < 4; i++) {
                int digit = hex_digit(r->next[i]);
                if (digit < 0)
                        return false;
                value = value << 4 | (uint32_t)digit;
        }
        r->next += 4;
        *ret = value;
        return true;
}

/* After \u. Half a surrogate pair becomes U+FFFD, as in encoding/json of Go. */
static bool read_unicode(Reader *r) {
        uint32_t high, low;
        if (!take_hex(r, &high))
                return false;
        if (high >= 0xd800 && high < 0xdc00 && r->end - r->next >= 6 && r->next[0] == '\\' &&
            r->next[1] == 'u') {
                const char *back = r->next;
                r->next += 2;
                if (!take_hex(r, &low))
                        return false;
                if (low >= 0xdc00 && low < 0xe000) {
                        utf8_add(&r->text, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                        return true;
                }
                r->next = back;
        }
        utf8_add(&r->text, high >= 0xd800 && high < 0xe000 ? 0xfffd : high);
        return true;
}

static bool read_escape(Reader *r) {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        if (take_char(r, 'u'))
                return read_unicode(r);
        const char *e = r->next < r->end ? memchr(from, *r->next, sizeof from - 1) : NULL;
        if (!e)
                return false;
        text_add_bytes(&r->text, &to[e - from], 1);
        r->next++;
        return true;
}

/* A string after its opening quote. */
static bool read_string(Reader *r) {
        r->text.size = 0;
        while (r->next < r->end) {
                if (take_char(r, '"'))
                        return true;
                if (take_char(r, '\\')) {
                        if (!read_escape(r))
                                return false;
                        continue;
                }
                size_t n = utf8_length(r->next, (size_t)(r->end - r->next));
                if (n == 0 || (unsigned char)*r->next < 0x20)
                        return false;
                text_add_bytes(&r->text, r->next, n);
                r->next += n;
        }
        return false;
}

static int read_string_node(Reader *r) {
        Mark at = reader_mark(r);
        if (!take_char(r, '"') || !read_string(r))
                return -EBADMSG;
        return builder_scalar(r->builder, at, false, 0, r->text.data ?: "", r->text.size, NULL);
}

static size_t digits(const char *s, const char *end) {
        size_t n = 0;
        while (s + n < end && is_digit(s[n]))
                n++;
        return n;
}

/* 0: not a number. */
static size_t number_length(const char *s, const char *end) {
        const char *p = s + (s < end && *s == '-');
        size_t n = digits(p, end);
        if (n == 0 || (n > 1 && *p == '0'))
                return 0;
        p += n;
        if (p < end && *p == '.') {
                n = digits(p + 1, end);
                if (n == 0)
                        return 0;
                p += n + 1;
        }
        if (p < end && (*p == 'e' || *p == 'E')) {
                p++;
                p += p < end && (*p == '+' || *p == '-');
                n = digits(p, end);
                if (n == 0)
                        return 0;
                p += n;
        }
        return (size_t)(p - s);
}

static int read_bare(Reader *r) {
        static const char words[][8] = { "true", "false", "null" };
        size_t n = number_length(r->next, r->end);
        if (n == 0)
                n = PICK(w, words, ARRAY_SIZE(words), (size_t)(r->end - r->next) >= strlen(*w) &&
                         memcmp(r->next, *w, strlen(*w)) == 0, strlen(*w), 0);
        if (n == 0)
                return -EBADMSG;
        Mark at = reader_mark(r);
        r->next += n;
        return builder_scalar(r->builder, at, true, 0, r->next - n, n, NULL);
}

/* Behind the opening bracket. */
static int read_members(Reader *r, bool object) {
        char close = object ? '}' : ']';
        skip_whitespace(r);
        if (take_char(r, close))
                return builder_close(r->builder);
        for (;;) {
                int k = 0;
                skip_whitespace(r);
                if (object) {
                        k = read_string_node(r);
                        if (k < 0)
                                return k;
                        skip_whitespace(r);
                        if (!take_char(r, ':'))
                                return -EBADMSG;
                }
                k = read_value(r);
                if (k < 0)
                        return k;
                skip_whitespace(r);
                if (take_char(r, close))
                        return builder_close(r->builder);
                if (!take_char(r, ','))
                        return -EBADMSG;
        }
}

/* The depth limit of builder_open() bounds the recursion. */
static int read_value(Reader *r) {
        skip_whitespace(r);
        if (r->next >= r->end)
                return -EBADMSG;
        if (*r->next == '"')
                return read_string_node(r);
        if (*r->next != '{' && *r->next != '[')
                return read_bare(r);
        bool object = *r->next == '{';
        int k = builder_open(r->builder, object ? NODE_MAP : NODE_LIST, reader_mark(r), NULL);
        if (k < 0)
                return k;
        r->next++;
        return read_members(r, object);
}

int json_text_parse(const Blob *blob, size_t start, Document *ret, Diag *diag) {
        Diag found = {};
        _cleanup_(builder_done) Builder builder = { .at = blob->at, .diag = &found,
                                                    .max_nodes = blob->max_nodes };
        Reader reader = { .next = blob->data + start, .end = blob->data + blob->size, .builder = &builder,
                          .counted = blob->data + start,
                          .at = { MAX(blob->at.line, 1u), 1 + blob->at.column } };
        int r = read_value(&reader);
        text_done(&reader.text);
        skip_whitespace(&reader);
        if (r >= 0 && reader.next < reader.end)
                r = -EBADMSG;
        /* a key with a NUL is valid JSON: YAML would only report it again */
        if (r == -EBADMSG)
                diag_done(&found);
        else
                diag_move(diag, &found);
        if (r < 0)
                return r;
        *ret = builder_take(&builder);
        return 0;
}
