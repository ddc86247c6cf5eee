/* SPDX-License-Identifier: Apache-2.0
 * A stream of YAML 1.1 (https://yaml.org/spec/1.1/) or one JSON text → documents of nodes. The events of
 * libyaml have exact lines and need no recursion. */
#include "doc/node.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <yaml.h>

/* Gives libyaml the text line by line, to know its state at the beginning of each line. Leading tabs of lines
 * become blanks where they cannot indent block structure, as libyaml refuses some (D5 of
 * tests/userdata/README.md). That is inside flow collections, and before a comment or nothing else, unless
 * that may be the text of a block scalar. */
typedef struct Feed {
        const char *next, *end;
        yaml_parser_t *parser;
        bool in_line;                   /* next is not the beginning of a line */
        bool in_block;                  /* a block scalar may be open */
        size_t block_indent;            /* of the line with its header */
} Feed;
static size_t line_length(const char *s, const char *end) {
        const char *newline = memchr(s, '\n', (size_t)(end - s));
        return (size_t)((newline ? newline + 1 : end) - s);
}

/* | or >, maybe with indicators. */
static bool ends_in_block_header(const char *s, size_t n) {
        while (n > 0 && isspace((unsigned char)s[n - 1]))
                n--;
        for (size_t i = 0;
             i < 2 && n > 0 && (s[n - 1] == '+' || s[n - 1] == '-' || is_digit(s[n - 1])); i++)
                n--;
        return n > 0 && (s[n - 1] == '|' || s[n - 1] == '>');
}

/* No false negatives. Any # after a blank may begin the comment after a header. */
static bool may_open_block(const char *s, size_t n) {
        for (size_t i = 1; i < n; i++)
                if (s[i] == '#' && isblank((unsigned char)s[i - 1]) && ends_in_block_header(s, i))
                        return true;
        return ends_in_block_header(s, n);
}

/* libyaml has read up to three characters ahead, whose brackets it has not counted yet. An opening one counts
 * only where flow is open already or a token begins; otherwise it may be text. */
static bool inside_flow(const yaml_parser_t *p) {
        const unsigned char *s = p->buffer.pointer;
        int level = p->flow_level;
        bool token = p->unread > 0 && (level > 0 || *s == '[' || *s == '{');
        for (; p->unread > 0 && s < p->buffer.last; s++)
                if (*s == ']' || *s == '}')
                        level--;
                else if (token && (*s == '[' || *s == '{'))
                        level++;
        return level > 0;
}

static bool tabs_are_harmless(Feed *f, const char *line, size_t n) {
        size_t blanks = 0, spaces = 0;
        while (spaces < n && line[spaces] == ' ')
                spaces++;
        for (blanks = spaces; blanks < n && isblank((unsigned char)line[blanks]);)
                blanks++;
        bool empty = blanks == n || line[blanks] == '\n' || line[blanks] == '\r';
        if (f->in_block && !empty && spaces <= f->block_indent)
                f->in_block = false;
        if (f->in_block)
                return false;
        if (inside_flow(f->parser))
                return true;
        if (may_open_block(line, n)) {
                f->in_block = true;
                f->block_indent = spaces;
        }
        return empty || line[blanks] == '#';
}

static int feed_read(void *userdata, unsigned char *buffer, size_t room, size_t *ret_size) {
        Feed *f = userdata;
        size_t n = line_length(f->next, f->end);
        bool replace = !f->in_line && n > 0 && tabs_are_harmless(f, f->next, n);
        f->in_line = n > room;
        n = MIN(n, room);
        if (n > 0)
                memcpy(buffer, f->next, n);
        for (size_t i = 0; replace && i < n && isblank((unsigned char)buffer[i]); i++)
                buffer[i] = ' ';
        f->next += n;
        *ret_size = n;
        return 1;
}

const char *blob_line(const Blob *blob, size_t line) {
        const char *s = blob->data, *end = blob->data + blob->size;
        for (; line > 0 && s < end; line--)
                s += line_length(s, end);
        return s;
}

static bool tab_indents(const Blob *blob, size_t line) {
        const char *s = blob_line(blob, line), *end = blob->data + blob->size;
        while (s < end && *s == ' ')
                s++;
        return s < end && *s == '\t';
}

/* A character that looks like a blank, where YAML wants one. *ret_offset: in the blob. */
static const char *false_blank_in(const Blob *blob, size_t line, size_t *ret_offset) {
        const char *s = blob_line(blob, line);
        size_t n = line_length(s, blob->data + blob->size);
        size_t front = line == 0 && n >= 3 && startswith(s, "\xef\xbb\xbf") ? 3 : 0;   /* a byte order mark */
        for (size_t i = front; i < n; i++) {
                const char *name = utf8_false_blank(s + i, n - i);
                if (name && (i == front || strchr(" \t:-", s[i - 1]))) {
                        *ret_offset = (size_t)(s - blob->data) + i;
                        return name;
                }
        }
        return NULL;
}

/* The parser often finds an error only on the next line. */
static const char *false_blank_near(const Blob *blob, size_t line, size_t context, size_t *ret_offset) {
        const size_t lines[] = { line, context, line > 0 ? line - 1 : 0 };
        const char *name = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(lines) && !name; i++)
                name = false_blank_in(blob, lines[i], ret_offset);
        return name;
}

/* From 0. */
static size_t line_at_offset(const Blob *blob, size_t offset) {
        size_t line = 0;
        for (size_t i = 0; i < MIN(offset, blob->size); i++)
                line += blob->data[i] == '\n';
        return line;
}

/* libyaml counts one more line at the end of the text; users look for the last one with text. */
static size_t last_text_line(const Blob *blob) {
        size_t n = blob->size;
        while (n > 0 && isspace((unsigned char)blob->data[n - 1]))
                n--;
        return line_at_offset(blob, n);
}

static unsigned source_line(const Blob *blob, size_t line) {
        return MAX(blob->at.line, 1u) + (unsigned)line;
}

/* From 1. */
static unsigned column_at_offset(const Blob *blob, size_t offset) {
        unsigned column = 1;
        for (offset = MIN(offset, blob->size); offset > 0 && blob->data[offset - 1] != '\n'; offset--)
                column += ((unsigned char)blob->data[offset - 1] & 0xc0) != 0x80;
        return column;
}

/* The messages of libyaml are fixed texts and show nothing of the input. Where a construct is not closed it
 * stops past the end: then the message has the last line and no column. */
static int syntax_error(const yaml_parser_t *p, const Blob *blob, size_t start, Diag *diag) {
        Position at = blob->at;
        const char *problem = p->problem ?: "unknown problem";
        size_t last = last_text_line(blob), line = MIN(p->problem_mark.line, last),
               context = MIN(p->context_mark.line, last), other = 0;
        at.column = p->problem_mark.line <= last ? (unsigned)p->problem_mark.column + 1 : 0;
        if (p->error == YAML_READER_ERROR) {
                line = line_at_offset(blob, start + p->problem_offset);
                at.column = column_at_offset(blob, start + p->problem_offset);
        }
        const char *blank = false_blank_near(blob, line, p->context ? context : line, &other);
        if (blank) {
                line = line_at_offset(blob, other);
                at.column = column_at_offset(blob, other);
        }
        at.column += at.column > 0 ? blob->at.column : 0;
        at.line = source_line(blob, line);
        bool tab = !blank && (strstr(problem, "tab character") ||
                              (streq(problem, "found character that cannot start any token") &&
                               tab_indents(blob, line)));
        _free_ char *slip = blank || tab || p->error == YAML_READER_ERROR
                                    ? NULL
                                    : yaml_slip(blob, problem, line, p->problem_mark.column,
                                                context, p->context_mark.column);
        _cleanup_(text_done) Text why = {};
        if (blank)
                text_add(&why, "%s looks like a space, but YAML accepts only spaces here; write "
                               "spaces", blank);
        else if (tab)
                text_add(&why, "a tab indents this line, but YAML accepts only spaces; use spaces");
        else if (slip)
                text_add(&why, "%s (%s)", slip, problem);
        else if (p->error == YAML_READER_ERROR || !p->context || context == line)
                text_add(&why, "%s", problem);
        else
                text_add(&why, "%s (%s that begins on line %u)", problem, p->context,
                         source_line(blob, context));
        return diag_error_at(diag, -EBADMSG, CAUSE_SYNTAX, &at, NULL, "not YAML: %s", why.data);
}

/* Can it mean anything but its text? To go-yaml a scalar with an unknown tag is text. */
static bool is_plain(const yaml_event_t *e) {
        const char *tag = (const char *)e->data.scalar.tag;
        return tag ? ONE_OF(tag, YAML_NULL_TAG, YAML_BOOL_TAG, YAML_INT_TAG, YAML_FLOAT_TAG,
                            "tag:yaml.org,2002:merge")
                   : e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static char block_of(const yaml_event_t *e) {
        return e->data.scalar.style == YAML_LITERAL_SCALAR_STYLE  ? '|'
               : e->data.scalar.style == YAML_FOLDED_SCALAR_STYLE ? '>'
               : e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                               e->start_mark.line != e->end_mark.line
                       ? ' '
                       : 0;
}

bool node_is_null(const Node *n) {
        return n->type == NODE_SCALAR && n->plain && strlen(n->text) == n->n &&
               ONE_OF(n->text, "", "~", "null", "Null", "NULL");
}

static void finish_document(Builder *b, Documents *documents) {
        _cleanup_(documents_done) Documents ignored = {};
        bool empty = !b->root || node_is_null(b->root);
        documents_add(empty ? &ignored : documents, builder_take(b));
}

static int handle_event(Builder *b, const Blob *blob, const yaml_event_t *e, Documents *documents) {
        Mark at = { source_line(blob, e->start_mark.line),
                    (unsigned)e->start_mark.column + 1 + blob->at.column };
        switch (e->type) {
        case YAML_SCALAR_EVENT:
                return builder_scalar(b, at, is_plain(e), block_of(e), (const char *)e->data.scalar.value,
                                      e->data.scalar.length, (const char *)e->data.scalar.anchor);
        case YAML_SEQUENCE_START_EVENT:
                return builder_open(b, NODE_LIST, at, (const char *)e->data.sequence_start.anchor);
        case YAML_MAPPING_START_EVENT:
                return builder_open(b, NODE_MAP, at, (const char *)e->data.mapping_start.anchor);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                return builder_close(b);
        case YAML_ALIAS_EVENT:
                return builder_alias(b, at, (const char *)e->data.alias.anchor);
        case YAML_DOCUMENT_END_EVENT:
                finish_document(b, documents);
                return 0;
        default:
                return 0;
        }
}

static int parse_events(yaml_parser_t *parser, const Blob *blob, size_t start, Documents *documents,
                        Diag *diag) {
        _cleanup_(builder_done) Builder b = { .at = blob->at, .diag = diag, .max_nodes = blob->max_nodes };
        for (;;) {
                yaml_event_t e;
                if (!yaml_parser_parse(parser, &e))
                        return syntax_error(parser, blob, start, diag);
                bool last = e.type == YAML_STREAM_END_EVENT;
                int r = handle_event(&b, blob, &e, documents);
                yaml_event_delete(&e);
                if (r < 0 || last)
                        return r;
        }
}

static int yaml_text_parse(const Blob *blob, size_t start, Documents *documents, Diag *diag) {
        yaml_parser_t parser;
        Feed feed = { .next = blob->data + start, .end = blob->data + blob->size, .parser = &parser };
        bool utf16 = blob->size >= 2 &&
                     (memcmp(blob->data, "\xff\xfe", 2) == 0 || memcmp(blob->data, "\xfe\xff", 2) == 0);
        if (!yaml_parser_initialize(&parser))
                return diag_error_at(diag, -ENOMEM, CAUSE_INTERNAL, &blob->at, NULL,
                                     "no memory for the YAML parser");
        if (utf16)
                yaml_parser_set_input_string(&parser, (const unsigned char *)blob->data, blob->size);
        else {
                yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
                yaml_parser_set_input(&parser, feed_read, &feed);
        }
        int r = parse_events(&parser, blob, start, documents, diag);
        yaml_parser_delete(&parser);
        return r;
}

static bool looks_like_json(const char *s, const char *end) {
        while (s < end && (isblank((unsigned char)*s) || *s == '\r' || *s == '\n'))
                s++;
        return s < end && (*s == '{' || *s == '[');
}

int yaml_parse(const Blob *blob, Documents *ret, Diag *diag) {
        _cleanup_(documents_done) Documents documents = {};
        size_t start = blob->size >= 3 && memcmp(blob->data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        int r = -EBADMSG;
        if (looks_like_json(blob->data + start, blob->data + blob->size)) {
                Document d;
                r = json_text_parse(blob, start, &d, diag);
                if (r >= 0)
                        documents_add(&documents, d);
        }
        if (r == -EBADMSG)
                r = yaml_text_parse(blob, start, &documents, diag);
        if (r < 0)
                return r;
        *ret = documents;
        documents = (Documents){};
        return 0;
}
