/* SPDX-License-Identifier: Apache-2.0
 * TOML 1.0 (https://toml.io/en/v1.0.0) → JSON, by recursive descent in one pass. It refuses dates, NaN and
 * infinity, which JSON cannot hold. tests/oracles/toml.py compares it with tomllib of Python, also where the
 * specification is open: a line end in a string is "\n". */
#include "base/str.h"
#include "doc/doc.h"

#include <errno.h>

/* How a table began decides what may add to it. Inline tables, inline arrays and scalars are closed. */
typedef enum TableKind {
        KIND_CLOSED,
        KIND_IMPLIED,           /* a of [a.b] */
        KIND_HEADER,            /* [a], or an element of [[a]] */
        KIND_DOTTED,            /* a.b = 1 */
        KIND_ARRAY,             /* [[a]] */
} TableKind;
typedef struct Known { const json_t *value; TableKind kind; } Known;
typedef struct TomlParser {
        const char *start, *at, *end;
        const char *bad, *why;          /* the place and text of the error */
        Known *known;                   /* hashed by address; room is a power of two */
        size_t n_known, room;
        TomlLines *lines;               /* or NULL */
        const char *counted;            /* line is the number of this place */
        unsigned line;
} TomlParser;
/* depth: of its content, in tables and arrays. */
typedef struct TomlTable { json_t *table; unsigned depth; } TomlTable;
static int toml_fail(TomlParser *p, const char *at, const char *why) {
        p->bad = at;
        p->why = why;
        return -EINVAL;
}

/* ---- which tables may still grow ---- */

static Known *known_slot(Known *table, size_t room, const json_t *value) {
        size_t i = (size_t)(((uintptr_t)value >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
        while (table[i & (room - 1)].value && table[i & (room - 1)].value != value)
                i++;
        return &table[i & (room - 1)];
}

static void kind_set(TomlParser *p, const json_t *value, TableKind kind) {
        if (p->n_known * 2 >= p->room) {
                size_t room = MAX(p->room * 2, 16u);
                Known *bigger = xcalloc(room, sizeof *bigger);
                for (size_t i = 0; i < p->room; i++)
                        if (p->known[i].value)
                                *known_slot(bigger, room, p->known[i].value) = p->known[i];
                free(p->known);
                p->known = bigger;
                p->room = room;
        }
        Known *slot = known_slot(p->known, p->room, value);
        p->n_known += slot->value == NULL;
        *slot = (Known){ value, kind };
}

static TableKind kind_of(const TomlParser *p, const json_t *value) {
        return p->room > 0 ? known_slot(p->known, p->room, value)->kind : KIND_CLOSED;
}

/* ---- characters ---- */

static int peek(const TomlParser *p) {
        return p->at < p->end ? (unsigned char)*p->at : -1;
}

static bool accept_char(TomlParser *p, int c) {
        bool yes = peek(p) == c;
        p->at += yes;
        return yes;
}

static bool accept_newline(TomlParser *p) {
        if (peek(p) == '\r' && p->end - p->at > 1 && p->at[1] == '\n')
                p->at++;
        return accept_char(p, '\n');
}

static bool is_bare(int c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

static bool is_control_char(char c) {
        return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static void skip_in_line(TomlParser *p) {
        while (peek(p) == ' ' || peek(p) == '\t')
                p->at++;
}

static int skip_comment(TomlParser *p) {
        if (!accept_char(p, '#'))
                return 0;
        while (p->at < p->end && !is_control_char(*p->at))
                p->at++;
        return p->at == p->end || *p->at == '\n' || *p->at == '\r'
                       ? 0 : toml_fail(p, p->at, "a control character in a comment");
}

/* Blanks, comments and line ends between items of an array. */
static int skip_lines(TomlParser *p) {
        do {
                skip_in_line(p);
                int r = skip_comment(p);
                if (r < 0)
                        return r;
        } while (accept_newline(p));
        return 0;
}

static int line_end(TomlParser *p) {
        skip_in_line(p);
        int r = skip_comment(p);
        return r < 0 || p->at == p->end || accept_newline(p)
                       ? r : toml_fail(p, p->at, "more text where the line should end");
}

/* ---- strings and keys ---- */

static int parse_unicode(TomlParser *p, unsigned digits, Text *ret) {
        const char *from = p->at;
        unsigned long c = 0;
        for (unsigned i = 0; i < digits; i++) {
                int value = hex_digit(peek(p));
                if (value < 0)
                        return toml_fail(p, from, digits == 4 ? "\\u needs four hexadecimal digits"
                                                              : "\\U needs eight hexadecimal digits");
                c = c << 4 | (unsigned long)value;
                p->at++;
        }
        if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return toml_fail(p, from, "an escape that is not a Unicode character");
        utf8_add(ret, c);
        return 0;
}

/* Behind a backslash. */
static int parse_escape(TomlParser *p, bool multi, Text *ret) {
        static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
        const char *from = p->at;
        int c = peek(p);
        const char *name = c > 0 ? strchr(names, c) : NULL;
        if (name) {
                p->at++;
                text_add_bytes(ret, values + (name - names), 1);
                return 0;
        }
        if (accept_char(p, 'u'))
                return parse_unicode(p, 4, ret);
        if (accept_char(p, 'U'))
                return parse_unicode(p, 8, ret);
        skip_in_line(p);
        if (!multi || !accept_newline(p))
                return toml_fail(p, from, "an unknown escape in a string");
        do
                skip_in_line(p);
        while (accept_newline(p));
        return 0;
}

/* Quotes inside a string; true: they end it. Two more may precede the three that end a multi-line one. */
static bool parse_quotes(TomlParser *p, char quote, bool multi, Text *ret) {
        size_t n = 0, last = multi ? 5 : 1, needed = multi ? 3 : 1;
        while (n < last && accept_char(p, quote))
                n++;
        for (size_t i = n < needed ? 0 : needed; i < n; i++)
                text_add_bytes(ret, &quote, 1);
        return n >= needed;
}

/* "…", '…', """…""", '''…''' */
static int parse_string(TomlParser *p, bool multi_allowed, Text *ret) {
        const char *from = p->at, quote = *p->at++;
        bool multi = p->end - p->at >= 2 && p->at[0] == quote && p->at[1] == quote;
        if (multi && !multi_allowed)
                return toml_fail(p, from, "a multi-line string cannot be a key");
        if (multi) {
                p->at += 2;
                accept_newline(p);
        }
        for (;;) {
                const char *run = p->at;
                while (p->at < p->end && *p->at != quote && !(*p->at == '\\' && quote == '"') &&
                       !is_control_char(*p->at))
                        p->at++;
                text_add_bytes(ret, run, (size_t)(p->at - run));
                if (p->at == p->end)
                        return toml_fail(p, from, "a string that is not closed");
                if (*p->at == quote) {
                        if (parse_quotes(p, quote, multi, ret))
                                return 0;
                } else if (*p->at == '\\') {
                        p->at++;
                        int r = parse_escape(p, multi, ret);
                        if (r < 0)
                                return r;
                } else if (multi && accept_newline(p))
                        text_add_bytes(ret, "\n", 1);
                else if (*p->at == '\n')
                        return toml_fail(p, from, "a string that is not closed on its line");
                else
                        return toml_fail(p, p->at, "a control character in a string");
        }
}

static int parse_key(TomlParser *p, Text *ret) {
        const char *from = p->at;
        ret->size = 0;
        if (peek(p) == '"' || peek(p) == '\'') {
                int r = parse_string(p, false, ret);
                /* valid TOML, but neither our documents nor containerd can hold it */
                return r >= 0 && ret->size > 0 && memchr(ret->data, 0, ret->size)
                               ? toml_fail(p, from, "a key with a zero byte in it")
                               : r;
        }
        while (is_bare(peek(p)))
                p->at++;
        if (p->at == from)
                return toml_fail(p, from, "a key is missing, or has characters that need quotes");
        text_add_bytes(ret, from, (size_t)(p->at - from));
        return 0;
}

/* ---- lines ---- */

/* at only grows from call to call. */
static unsigned line_of(TomlParser *p, const char *at) {
        for (; p->counted < at; p->counted++)
                p->line += *p->counted == '\n';
        return p->line;
}

static int compare_lines(const void *a, const void *b) {
        const TomlLine *x = a, *y = b;
        return x->key < y->key ? -1 : x->key > y->key;
}

unsigned toml_line(const TomlLines *lines, const char *key) {
        const TomlLine wanted = { key, 0 },
                       *found = lines->n > 0 ? bsearch(&wanted, lines->items, lines->n, sizeof wanted,
                                                       compare_lines) : NULL;
        return found ? found->line : 0;
}

void toml_lines_done(TomlLines *lines) {
        free(lines->items);
        *lines = (TomlLines){};
}

/* ---- tables ---- */

static json_t *child_get(const json_t *table, const Text *key) {
        return json_object_getn(table, key->data ?: "", key->size);
}

static void child_set(TomlParser *p, json_t *table, const Text *key, json_t *value, unsigned line) {
        TomlLines *lines = p->lines;
        json_object_setn_new_nocheck(table, key->data ?: "", key->size, value);
        if (!lines)
                return;
        const char *own = json_object_iter_key(json_object_iter_at(table, key->data ?: ""));
        *APPEND(lines->items, lines->n) = (TomlLine){ own, line };
}

/* Adds a new table or array. */
static json_t *child_make(TomlParser *p, TomlTable *c, const Text *key, json_t *value, TableKind kind) {
        child_set(p, c->table, key, value, line_of(p, p->at));
        kind_set(p, value, kind);
        return value;
}

static int deeper(TomlParser *p, unsigned *depth) {
        if (*depth >= DOC_MAX_DEPTH)
                return toml_fail(p, p->at, "tables and arrays nested more than 100 deep");
        ++*depth;
        return 0;
}

/* Moves into the table of a key, or makes it. way: KIND_IMPLIED in a header, else KIND_DOTTED. */
static int descend(TomlParser *p, TomlTable *c, const Text *key, TableKind way) {
        json_t *next = child_get(c->table, key);
        int r = deeper(p, &c->depth);
        if (r < 0)
                return r;
        if (!next)
                next = child_make(p, c, key, json_object(), way);
        TableKind kind = kind_of(p, next);
        if (kind == KIND_ARRAY && way == KIND_IMPLIED) {
                next = json_array_get(next, json_array_size(next) - 1);
                r = deeper(p, &c->depth);
                if (r < 0)
                        return r;
        } else if (kind == KIND_CLOSED)
                return toml_fail(p, p->at,
                                 "a key below a plain value, an inline table or an array, which cannot "
                                 "grow");
        else if (way == KIND_DOTTED && (kind == KIND_HEADER || kind == KIND_ARRAY))
                return toml_fail(p, p->at, "a dotted key into a table that has a header of its own");
        else if (way == KIND_DOTTED)
                kind_set(p, next, KIND_DOTTED);
        c->table = next;
        return 0;
}

/* a.b.c: moves to a.b and returns c. */
static int parse_path(TomlParser *p, TomlTable *c, TableKind way, Text *ret) {
        for (;;) {
                skip_in_line(p);
                int r = parse_key(p, ret);
                skip_in_line(p);
                if (r < 0 || !accept_char(p, '.'))
                        return r;
                r = descend(p, c, ret, way);
                if (r < 0)
                        return r;
        }
}

static int open_table(TomlParser *p, TomlTable *c, const Text *key) {
        json_t *old = child_get(c->table, key);
        int r = deeper(p, &c->depth);
        if (r < 0)
                return r;
        if (old && kind_of(p, old) != KIND_IMPLIED)
                return toml_fail(p, p->at, "a table or key that is already defined");
        if (!old)
                old = child_make(p, c, key, json_object(), KIND_HEADER);
        kind_set(p, old, KIND_HEADER);
        c->table = old;
        return 0;
}

static int open_array_element(TomlParser *p, TomlTable *c, const Text *key) {
        json_t *array = child_get(c->table, key);
        int r = deeper(p, &c->depth) ?: deeper(p, &c->depth);
        if (r < 0)
                return r;
        if (array && kind_of(p, array) != KIND_ARRAY)
                return toml_fail(p, p->at, "an array of tables under a name that is already defined");
        if (!array)
                array = child_make(p, c, key, json_array(), KIND_ARRAY);
        json_t *element = json_object();
        json_array_append_new(array, element);
        kind_set(p, element, KIND_HEADER);
        c->table = element;
        return 0;
}

/* [a.b] or [[a.b]] */
static int parse_header(TomlParser *p, json_t *root, TomlTable *ret) {
        _cleanup_(text_done) Text key = {};
        TomlTable c = { root, 1 };
        p->at++;
        bool array = accept_char(p, '[');
        int r = parse_path(p, &c, KIND_IMPLIED, &key);
        if (r < 0)
                return r;
        if (!accept_char(p, ']') || (array && !accept_char(p, ']')))
                return toml_fail(p, p->at, array ? "a header that does not end in ]]"
                                                 : "a header that does not end in ]");
        r = array ? open_array_element(p, &c, &key) : open_table(p, &c, &key);
        if (r >= 0)
                *ret = c;
        return r;
}

/* ---- values ---- */

static int parse_value(TomlParser *p, unsigned depth, json_t **ret);

/* Anything without quotes. */
static int parse_plain(TomlParser *p, json_t **ret) {
        const char *from = p->at;
        while (is_bare(peek(p)) || peek(p) == '+' || peek(p) == '.' || peek(p) == ':')
                p->at++;
        _free_ char *word = xmemdup(from, (size_t)(p->at - from));
        const char *why;
        return toml_parse_word(word, ret, &why) < 0 ? toml_fail(p, from, why) : 0;
}

static int parse_key_value(TomlParser *p, TomlTable c) {
        _cleanup_(text_done) Text key = {};
        json_t *value;
        const char *from = p->at;
        int r = parse_path(p, &c, KIND_DOTTED, &key);
        if (r < 0)
                return r;
        if (child_get(c.table, &key))
                return toml_fail(p, from, "a key that is already defined");
        if (!accept_char(p, '='))
                return toml_fail(p, p->at, "no = after a key");
        unsigned line = line_of(p, p->at);
        skip_in_line(p);
        r = parse_value(p, c.depth, &value);
        if (r >= 0)
                child_set(p, c.table, &key, value, line);
        return r;
}

static int parse_array(TomlParser *p, unsigned depth, json_t *array) {
        const char *from = p->at++;
        for (;;) {
                json_t *value;
                int r = skip_lines(p);
                if (r < 0 || accept_char(p, ']'))
                        return r;
                if (p->at == p->end)
                        return toml_fail(p, from, "an array that is not closed");
                r = parse_value(p, depth, &value);
                if (r < 0)
                        return r;
                json_array_append_new(array, value);
                r = skip_lines(p);
                if (r < 0)
                        return r;
                if (!accept_char(p, ',') && peek(p) != ']' && p->at < p->end)
                        return toml_fail(p, p->at, "neither , nor ] after an item of an array");
        }
}

static int parse_inline_table(TomlParser *p, unsigned depth, json_t *table) {
        p->at++;
        skip_in_line(p);
        if (accept_char(p, '}'))
                return 0;
        do {
                skip_in_line(p);
                int r = parse_key_value(p, (TomlTable){ table, depth });
                if (r < 0)
                        return r;
                skip_in_line(p);
        } while (accept_char(p, ','));
        return accept_char(p, '}')
                       ? 0 : toml_fail(p, p->at, "an inline table that is not closed with } on its line");
}

static int parse_value(TomlParser *p, unsigned depth, json_t **ret) {
        int r, c = peek(p);
        if (c == '"' || c == '\'') {
                _cleanup_(text_done) Text text = {};
                r = parse_string(p, true, &text);
                if (r >= 0)
                        *ret = json_stringn_nocheck(text.data ?: "", text.size);
                return r;
        }
        if (c != '[' && c != '{')
                return parse_plain(p, ret);
        r = deeper(p, &depth);
        if (r < 0)
                return r;
        json_auto_t *value = c == '[' ? json_array() : json_object();
        r = c == '[' ? parse_array(p, depth, value) : parse_inline_table(p, depth, value);
        if (r >= 0)
                *ret = TAKE_PTR(value);
        return r;
}

static int parse_document(TomlParser *p, json_t *root) {
        TomlTable section = { root, 1 };
        const char *bad = utf8_fault(p->start, (size_t)(p->end - p->start));
        int r = bad ? toml_fail(p, bad, "not UTF-8") : 0;
        while (r >= 0 && p->at < p->end) {
                skip_in_line(p);
                int c = peek(p);
                if (c == '[')
                        r = parse_header(p, root, &section);
                else if (c >= 0 && !strchr("#\r\n", c))
                        r = parse_key_value(p, section);
                if (r >= 0)
                        r = line_end(p);
        }
        return r;
}

int toml_parse_lines(const char *text, size_t size, json_t **ret, TomlLines *lines, unsigned *ret_line,
                     const char **ret_why) {
        TomlParser p = { .start = text, .at = text, .end = text + size, .lines = lines, .counted = text,
                         .line = 1 };
        json_auto_t *root = json_object();
        int r = parse_document(&p, root);
        free(p.known);
        if (r < 0) {
                *ret_line = 1;
                for (const char *s = text; s < p.bad; s++)
                        *ret_line += *s == '\n';
                *ret_why = p.why;
                return r;
        }
        if (lines && lines->n > 0)
                qsort(lines->items, lines->n, sizeof *lines->items, compare_lines);
        *ret = TAKE_PTR(root);
        return 0;
}

int toml_parse(const char *text, size_t size, json_t **ret, unsigned *ret_line, const char **ret_why) {
        return toml_parse_lines(text, size, ret, NULL, ret_line, ret_why);
}
