/* SPDX-License-Identifier: Apache-2.0
 * A MIME message (RFC 2045, 2046) → the bodies of its parts of one type. Reads all that cloud-init reads
 * (email of Python) and some more. People and templates write user data, and a missing blank line must not
 * keep a node from booting. M1 is a rule of tests/userdata/README.md. */
#include "doc/doc.h"

#include "base/str.h"

#include <errno.h>
#include <strings.h>

#define WARNINGS_SHOWN 10U

typedef struct Line { const char *text; size_t size; } Line;            /* without its line end */
typedef struct Cursor { const char *next, *end; unsigned line; } Cursor;
/* values, unfolded; NULL where absent */
typedef struct Headers { char *type, *encoding; } Headers;

typedef struct Splitter {
        const char *wanted;             /* the content type */
        Position at;                    /* source; part counts leaves so far */
        Blobs *parts;
        Diag *diag;
        bool warned_epilogue;
        unsigned warnings;              /* it shows WARNINGS_SHOWN of them */
        int r;                          /* the first failure */
} Splitter;
static void headers_done(Headers *h) {
        FREE_ALL(h->type, h->encoding);
}

static bool line_peek(const Cursor *c, Line *ret) {
        if (c->next >= c->end)
                return false;
        const char *newline = memchr(c->next, '\n', (size_t)(c->end - c->next));
        *ret = (Line){ c->next, (size_t)((newline ?: c->end) - c->next) };
        if (ret->size > 0 && ret->text[ret->size - 1] == '\r')
                ret->size--;
        return true;
}

static void line_skip(Cursor *c) {
        const char *newline = memchr(c->next, '\n', (size_t)(c->end - c->next));
        c->next = newline ? newline + 1 : c->end;
        c->line++;
}

static size_t blanks(const char *s, size_t size) {
        size_t n = 0;
        while (n < size && (s[n] == ' ' || s[n] == '\t'))
                n++;
        return n;
}

static bool line_is_blank(Line l) {
        return blanks(l.text, l.size) == l.size;
}

static bool line_starts_with(Line l, const char *prefix) {
        return l.size >= strlen(prefix) && memcmp(l.text, prefix, strlen(prefix)) == 0;
}

/* Length of the name in "name:", or 0. */
static size_t name_of(Line l) {
        size_t n = 0;
        while (n < l.size && l.text[n] > ' ' && l.text[n] < 0x7f && l.text[n] != ':')
                n++;
        return n < l.size && l.text[n] == ':' ? n : 0;
}

/* Length of a header name, or 0 (M3): for NodeConfig keys, JSON, or a delimiter. */
static size_t header_name(Line l) {
        static const char keys[][12] = { "apiVersion", "kind", "metadata", "spec" };
        size_t n = name_of(l), quotes = n > 2 && strchr("\"'", l.text[0]) && l.text[n - 1] == l.text[0];
        _free_ char *key = xstrndup(l.text + quotes, n - 2 * quotes);
        return n == 0 || strchr("{[", l.text[0]) || line_starts_with(l, "--") ||
                               ANY(k, keys, ARRAY_SIZE(keys), streq(*k, key)) ? 0 : n;
}

static bool word_is(const char *s, size_t n, const char *word) {
        return n == strlen(word) && strncasecmp(s, word, n) == 0;
}

static char *header_unfold(Cursor *c, size_t name) {
        Text value = {};
        Line l = {};
        if (line_peek(c, &l))
                text_add_bytes(&value, l.text + name + 1, l.size - name - 1);
        for (line_skip(c); line_peek(c, &l) && !line_is_blank(l) && blanks(l.text, l.size) > 0; line_skip(c))
                text_add_bytes(&value, l.text, l.size);
        return text_take(&value);
}

/* Past the empty line; false: to the first line that is not a header. The first of duplicates counts. */
static bool headers_read(Cursor *c, Headers *ret) {
        Line l;
        while (line_peek(c, &l)) {
                size_t name = header_name(l);
                if (line_is_blank(l)) {
                        line_skip(c);
                        return true;
                }
                if (name == 0)
                        return false;
                _free_ char *value = header_unfold(c, name);
                if (!ret->type && word_is(l.text, name, "Content-Type"))
                        ret->type = str_strip(value);
                if (!ret->encoding && word_is(l.text, name, "Content-Transfer-Encoding"))
                        ret->encoding = str_strip(value);
        }
        return true;
}

/* Is the value this word, apart from its parameters? */
static bool value_is(const char *value, const char *word) {
        return value && word_is(value, strcspn(value, "; \t"), word);
}

static bool is_multipart(const Headers *h) {
        return h->type && strncasecmp(h->type, "multipart/", strlen("multipart/")) == 0;
}

/* From after an opening quote, without backslashes; NULL: nothing closes it. */
static char *quoted_value(const char **p) {
        Text t = {};
        for (const char *s = *p; *s; s++) {
                if (*s == '"') {
                        *p = s + 1;
                        return text_take(&t);
                }
                if (*s == '\\' && s[1])
                        s++;
                text_add_bytes(&t, s, 1);
        }
        text_done(&t);
        return NULL;
}

/* The boundary (M4), without blanks at its end, which RFC 2046, 5.1.1 forbids. NULL: none, or empty. */
static char *boundary_of(const char *type) {
        const char *p = type + strcspn(type, "; \t");
        for (p += strspn(p, "; \t"); *p; p += strspn(p, "; \t")) {
                const char *name = p, *rest;
                size_t n = strcspn(p, "=; \t");
                p += n;
                p += strspn(p, " \t");
                if (*p != '=')
                        continue;
                p++;
                p += strspn(p, " \t");
                rest = p + 1;
                _free_ char *value = *p == '"' ? quoted_value(&rest) : NULL;
                if (value)
                        p = rest;
                else {
                        value = xstrndup(p, strcspn(p, "; \t"));
                        p += strlen(value);
                }
                if (!word_is(name, n, "boundary"))
                        continue;
                for (n = strlen(value); n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'); n--)
                        value[n - 1] = '\0';
                return *value ? TAKE_PTR(value) : NULL;
        }
        return NULL;
}

typedef enum Delimiter { DELIMITER_NONE, DELIMITER_OPEN, DELIMITER_CLOSE } Delimiter;

static Delimiter delimiter_of(Line l, const char *boundary, size_t n) {
        if (l.size < n + 2 || l.text[0] != '-' || l.text[1] != '-' || memcmp(l.text + 2, boundary, n) != 0)
                return DELIMITER_NONE;
        l.text += n + 2;
        l.size -= n + 2;
        return line_starts_with(l, "--") ? DELIMITER_CLOSE
               : line_is_blank(l)        ? DELIMITER_OPEN
                                         : DELIMITER_NONE;
}

/* A line. True: the next one continues it. Malformed text stays as it is (RFC 2045, 6.7). */
static bool add_quoted_printable(Text *out, const char *s, size_t n) {
        while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
                n--;
        for (size_t i = 0; i < n; i++) {
                int high = i + 2 < n ? hex_digit(s[i + 1]) : -1, low = i + 2 < n ? hex_digit(s[i + 2]) : -1;
                char byte;
                if (s[i] != '=' || (i + 1 < n && (high < 0 || low < 0))) {
                        text_add_bytes(out, &s[i], 1);
                        continue;
                }
                if (i + 1 == n)
                        return true;
                byte = (char)(high << 4 | low);
                text_add_bytes(out, &byte, 1);
                i += 2;
        }
        return false;
}

static void undo_quoted_printable(Blob *part) {
        Cursor c = { part->data, part->data + part->size, 1 };
        Text out = {};
        Line l;
        while (line_peek(&c, &l)) {
                bool goes_on = add_quoted_printable(&out, l.text, l.size);
                line_skip(&c);
                if (!goes_on)
                        text_add_bytes(&out, l.text + l.size, (size_t)(c.next - l.text) - l.size);
        }
        free(part->data);
        part->size = out.size;
        part->data = text_take(&out);
        part->at.line = 1;
}

/* A part of type base64 may have blanks in it. */
static void strip_base64_blanks(Blob *part) {
        _free_ char *text = xcalloc(part->size + 1, 1), *ignored = NULL;
        size_t n = 0, size;
        for (size_t i = 0; i < part->size; i++)
                if (part->data[i] != ' ' && part->data[i] != '\t')
                        text[n++] = part->data[i];
        if (base64_decode(text, n, true, &ignored, &size) < 0)
                return;
        free(part->data);
        part->data = TAKE_PTR(text);
        part->size = n;
}

static void add_part(Splitter *s, const Cursor *body, const Headers *h) {
        Position at = { s->at.source, s->at.part, body->line, s->at.column };
        size_t size = (size_t)(body->end - body->next);
        blobs_add(s->parts, at, xmemdup(body->next, size), size);
        Blob *part = &s->parts->items[s->parts->n - 1];
        if (value_is(h->encoding, "quoted-printable"))
                undo_quoted_printable(part);
        else if (value_is(h->encoding, "base64"))
                strip_base64_blanks(part);
        int r = doc_unpack(part, s->diag);
        s->r = s->r < 0 ? s->r : r;
}

/* false: too many warnings, as a MiB can hold 100,000 parts. part: of this part, else the message. */
static bool part_warn(Splitter *s, bool part, unsigned line, const char *code, const char *text) {
        Position at = { .source = s->at.source, .part = part ? s->at.part : 0, .line = line,
                        .column = s->at.column + 1 };
        if (s->warnings++ >= WARNINGS_SHOWN)
                return false;
        diag_warn_at(s->diag, code, &at, NULL, "%s", text);
        return true;
}

/* To Python email, which cloud-init uses, any key is a header (M3; headerRE of email/feedparser.py). */
static void warn_no_blank(Splitter *s, bool part, Cursor c) {
        Line l = {};
        (void)line_peek(&c, &l);
        (void)part_warn(s, part, c.line, "missing-blank-line",
                        name_of(l) > 0 ? "a blank line is missing above this line: cloud-init takes this "
                                         "line for a header and drops it; add a blank line"
                                       : "a blank line is missing above this line: cloud-init accepts such "
                                         "a MIME message, but nodeadm refuses it; add a blank line");
}

/* Nothing reads text after the closing delimiter: warns of a NodeConfig there (M11). */
static void check_epilogue(Splitter *s, Cursor c) {
        Line l;
        for (; !s->warned_epilogue && line_peek(&c, &l); line_skip(&c)) {
                if (line_starts_with(l, "apiVersion: node.eks.aws/"))
                        s->warned_epilogue = true;
                else if (word_is(l.text, header_name(l), "Content-Type")) {
                        size_t n = strlen("Content-Type:"), m = strlen(s->wanted);
                        n += blanks(l.text + n, l.size - n);
                        s->warned_epilogue = l.size - n >= m && strncasecmp(l.text + n, s->wanted, m) == 0;
                }
                if (s->warned_epilogue)
                        (void)part_warn(s, false, c.line, "config-after-closing-boundary",
                                        "this looks like a NodeConfig, but it follows the closing "
                                        "delimiter, where nothing is read; move it before that line");
        }
}

static void walk_entity(Splitter *s, Cursor c, unsigned depth);

static void walk_parts(Splitter *s, Cursor c, const char *boundary, unsigned depth) {
        Cursor part = {};               /* line 0: no part is open */
        size_t n = strlen(boundary);
        unsigned first = c.line;
        bool any = false;
        Line l;
        while (line_peek(&c, &l)) {
                Delimiter kind = delimiter_of(l, boundary, n);
                const char *begin = c.next;
                line_skip(&c);
                if (kind == DELIMITER_NONE)
                        continue;
                if (part.line > 0) {
                        /* the newline before a delimiter belongs to it (M5) */
                        part.end = begin > part.next ? begin - 1 : begin;
                        if (part.end > part.next && part.end[-1] == '\r')
                                part.end--;
                        walk_entity(s, part, depth);
                }
                any = any || kind == DELIMITER_OPEN;
                part = (Cursor){ c.next, c.end, kind == DELIMITER_OPEN ? c.line : 0 };
                if (kind == DELIMITER_CLOSE) {
                        check_epilogue(s, c);
                        break;
                }
        }
        if (part.line > 0)
                walk_entity(s, part, depth);
        if (!any)
                (void)part_warn(s, false, first, "no-parts",
                                "the boundary that this multipart message declares never appears, so it has "
                                "no parts; each part begins with a line: -- followed by the boundary");
}

static void walk_multipart(Splitter *s, Cursor body, const char *type, unsigned depth, unsigned line) {
        Position at = { .source = s->at.source, .line = line };
        _free_ char *boundary = boundary_of(type);
        if (depth > DOC_MAX_MIME) {
                int r = diag_error_at(s->diag, -E2BIG, CAUSE_LIMIT, &at, NULL,
                                      "multipart messages are nested deeper here than the limit of %u",
                                      DOC_MAX_MIME);
                s->r = s->r < 0 ? s->r : r;
        } else if (boundary)
                walk_parts(s, body, boundary, depth + 1);
        else
                (void)part_warn(s, false, line, "no-parts",
                                "this multipart message declares no boundary, so it has no parts; its "
                                "Content-Type needs boundary=\"...\"");
}

/* Does its first line, apart from comments, begin a NodeConfig? A script may hold one further below. */
static bool begins_as_ours(Cursor c) {
        Line l;
        for (; line_peek(&c, &l) && !line_starts_with(l, "#!"); line_skip(&c))
                if (!line_is_blank(l) && *l.text != '#' && *l.text != '-')
                        return line_starts_with(l, "apiVersion:") || line_starts_with(l, "kind:");
        return false;
}

/* A type that looks like that of a NodeConfig; or a general type for text that looks like one. */
static bool is_near(const Cursor *body, const char *type) {
        static const char *const names[] = { "eks", "nodeconfig", "node-config" },
                                 *const any[] = { "yaml", "json", "text/plain", "octet-stream" };
        size_t size = (size_t)(body->end - body->next);
        if (type && ANY(name, names, ARRAY_SIZE(names), strcasestr(type, *name)))
                return true;
        bool is = !type || begins_as_ours(*body) || ANY(a, any, ARRAY_SIZE(any), strcasestr(type, *a));
        return is && memmem(body->next, size, "node.eks.aws/", strlen("node.eks.aws/")) &&
               memmem(body->next, size, "NodeConfig", strlen("NodeConfig"));
}

static void warn_near(Splitter *s, const char *type, unsigned line) {
        _cleanup_(text_done) Text t = {};
        text_add(&t, "this part %s", type ? "is of type \"" : "has no Content-Type");
        text_add_shown(&t, type ?: "", strcspn(type ?: "", "; \t"), 60, '"');
        text_add(&t, "%s, so it is not read as a NodeConfig", type ? "\"" : "");
        if (part_warn(s, true, line, MIME_NEAR, t.data))
                diag_suggest(s->diag, "%s", s->wanted);
}

/* Headers and a body. depth counts multiparts, from 1. */
static void walk_entity(Splitter *s, Cursor c, unsigned depth) {
        _cleanup_(headers_done) Headers h = {};
        unsigned line = c.line;
        bool apart = headers_read(&c, &h), whole = is_multipart(&h);
        s->at.part += !whole;
        if (!apart)
                warn_no_blank(s, !whole, c);
        if (whole) {
                walk_multipart(s, c, h.type, depth, line);
                return;
        }
        if (value_is(h.type, s->wanted))
                add_part(s, &c, &h);
        else if (is_near(&c, h.type))
                warn_near(s, h.type, line);
}

/* Blanks and tabs that all lines with text start with, as a heredoc leaves them (M2). */
static size_t common_indent(Cursor c) {
        const char *first = NULL;
        size_t n = 0;
        Line l;
        for (; line_peek(&c, &l); line_skip(&c)) {
                size_t same = 0;
                if (line_is_blank(l))
                        continue;
                if (!first) {
                        first = l.text;
                        n = blanks(l.text, l.size);
                }
                while (same < n && same < l.size && l.text[same] == first[same])
                        same++;
                n = same;
                if (n == 0)
                        break;
        }
        return n;
}

/* Without the first n bytes of each line; a blank line may be shorter. */
static char *without_indent(Cursor c, size_t n, size_t *ret_size) {
        Text out = {};
        Line l;
        while (line_peek(&c, &l)) {
                size_t skip = MIN(n, l.size);
                line_skip(&c);
                text_add_bytes(&out, l.text + skip, (size_t)(c.next - l.text) - skip);
        }
        *ret_size = out.size;
        return text_take(&out);
}

/* Moves to the first header: over blank lines, blanks and a mailbox line. */
static void skip_to_headers(Cursor *c) {
        Line l;
        for (; line_peek(c, &l); line_skip(c)) {
                size_t n = blanks(l.text, l.size);
                if (n < l.size && !(l.size - n >= 5 && memcmp(l.text + n, "From ", 5) == 0)) {
                        c->next += n;
                        return;
                }
        }
}

int mime_split(const Blob *message, const char *content_type, Blobs *ret, bool *ret_is_mime, Diag *diag) {
        static const char mark[] = "\xef\xbb\xbf";
        Cursor c = { message->data, message->data + message->size, MAX(message->at.line, 1u) }, header;
        _free_ char *dedented = NULL;
        _cleanup_(headers_done) Headers h = {};
        Blobs parts = {};
        Splitter s = { .wanted = content_type, .at = { message->at.source, 0, 0, message->at.column },
                       .parts = &parts, .diag = diag };
        if (message->size >= 3 && memcmp(c.next, mark, 3) == 0)
                c.next += 3;
        size_t indent = common_indent(c), size;
        if (indent > 0) {
                dedented = without_indent(c, indent, &size);
                c.next = dedented;
                c.end = dedented + size;
        }
        skip_to_headers(&c);
        header = c;
        (void)headers_read(&header, &h);
        *ret_is_mime = is_multipart(&h) || value_is(h.type, content_type);
        if (!*ret_is_mime) {
                blobs_add(ret, message->at, xmemdup(message->data, message->size), message->size);
                return 0;
        }
        walk_entity(&s, c, 1);
        if (s.warnings > WARNINGS_SHOWN)
                diag_warn_at(diag, "more-warnings", &message->at, NULL,
                             "further parts like those above are not shown: %u",
                             s.warnings - WARNINGS_SHOWN);
        if (s.r < 0) {
                blobs_done(&parts);
                return s.r;
        }
        *ret = parts;
        return 0;
}

int mime_find_end(const Blob *message, size_t *ret_at, char **ret_boundary) {
        Cursor c = { message->data, message->data + message->size, 1 };
        _cleanup_(headers_done) Headers h = {};
        bool open = false;
        Line l;
        (void)headers_read(&c, &h);
        if (!is_multipart(&h))
                return 0;
        _free_ char *boundary = boundary_of(h.type);
        size_t n = boundary ? strlen(boundary) : 0;
        for (; n > 0 && line_peek(&c, &l); line_skip(&c)) {
                Delimiter kind = delimiter_of(l, boundary, n);
                open = open || kind == DELIMITER_OPEN;
                if (kind != DELIMITER_CLOSE || !open)
                        continue;
                *ret_at = (size_t)(c.next - message->data);
                for (line_skip(&c); line_peek(&c, &l); line_skip(&c))
                        if (!line_is_blank(l))
                                return -EINVAL;
                *ret_boundary = TAKE_PTR(boundary);
                return 1;
        }
        return -EINVAL;
}
