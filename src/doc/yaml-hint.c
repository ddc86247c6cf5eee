/* SPDX-License-Identifier: Apache-2.0
 * YAML that libyaml refuses → the likely mistake of its author. libyaml names its own rule, often a line
 * late: without a blank behind its colon a key is a text, which the next line continues. */
#include "doc/node.h"

#include "base/str.h"

#include <ctype.h>

typedef struct Line { const char *s; size_t n, indent; } Line;  /* without blanks at its end */

static Line line_at(const char *s, const char *end) {
        Line l = { .s = s, .n = (size_t)(end - s) };
        while (l.n > 0 && isspace((unsigned char)l.s[l.n - 1]))
                l.n--;
        while (l.indent < l.n && l.s[l.indent] == ' ')
                l.indent++;
        return l;
}

static Line line_of(const Blob *blob, size_t number) {
        const char *s = blob_line(blob, number), *end = blob->data + blob->size;
        const char *newline = memchr(s, '\n', (size_t)(end - s));
        return line_at(s, newline ?: end);
}

/* The nearest line above s that is neither empty nor a comment; there may be a million of those. */
static bool line_above(const Blob *blob, const char *s, size_t *number, Line *ret) {
        for (; *number > 0 && s > blob->data; s = ret->s) {
                const char *end = s - 1, *newline = memrchr(blob->data, '\n', (size_t)(end - blob->data));
                *ret = line_at(newline ? newline + 1 : blob->data, end);
                --*number;
                if (ret->n > 0 && ret->s[ret->indent] != '#')
                        return true;
        }
        return false;
}

/* Where the colon after the key of the line is; n: it has no key. */
static size_t key_end(const Line *l) {
        size_t i = l->indent;
        while (i < l->n && (isalnum((unsigned char)l->s[i]) || is_char_of(l->s[i], "_.-/\"")))
                i++;
        return i > l->indent && i < l->n && l->s[i] == ':' ? i : l->n;
}

static bool lacks_blank(const Line *l) {
        size_t colon = key_end(l);
        return colon + 1 < l->n && !isspace((unsigned char)l->s[colon + 1]) && l->s[colon + 1] != '/';
}

/* "name: a: b". Colons in quotes, brackets or a comment do not count. */
static bool has_two_keys(const Line *l) {
        for (size_t i = key_end(l) + 1; i + 1 < l->n && !is_char_of(l->s[i], "\"'[{#"); i++)
                if (l->s[i] == ':' && isspace((unsigned char)l->s[i + 1]))
                        return true;
        return false;
}

static char *misplaced(const Line *l, size_t column, unsigned other) {
        return xasprintf("%zu space%s before the key, but %zu on line %u: the keys of a map must begin in "
                         "the same column",
                         l->indent, l->indent == 1 ? " is" : "s are", column, other);
}

static char *slip_of_value(const Blob *blob, size_t line, unsigned first) {
        Line here = line_of(blob, line), above = {};
        size_t number = line;
        if (has_two_keys(&here))
                return xstrdup("two keys are on one line; write each on a line of its own, or put braces "
                               "around the second");
        if (!line_above(blob, here.s, &number, &above))
                return NULL;
        if (lacks_blank(&above))
                return xasprintf("a space is missing after the colon on line %u", first + (unsigned)number);
        return here.indent > above.indent && key_end(&above) + 1 < above.n
                       ? misplaced(&here, above.indent, first + (unsigned)number)
                       : NULL;
}

/* "[debug]" or "level = 1" below "config:": "config:" line + 1; 0: something else. */
static size_t toml_without_mark(const Blob *blob, size_t number) {
        Line l = line_of(blob, number);
        bool toml = false;
        while (key_end(&l) == l.n) {
                toml |= l.n > l.indent && (l.s[l.indent] == '[' || memmem(l.s, l.n, " = ", 3));
                if (!line_above(blob, l.s, &number, &l))
                        return 0;
        }
        size_t n = key_end(&l), value = n + 1;
        while (value < l.n && l.s[value] == ' ')
                value++;
        bool bare = value >= l.n || l.s[value] == '[';
        return toml && bare && n == l.indent + 6 && memcmp(l.s + l.indent, "config", 6) == 0 ? number + 1 : 0;
}

/* First words of a Helm, Jinja, ERB, Terraform or envsubst placeholder on this line or the one above. Text in
 * it may be a secret, so the quotation ends there. */
static char *open_placeholder(const Blob *blob, size_t line, unsigned first) {
        static const char marks[][3] = { "{{", "{%", "<%", "${" };
        for (size_t up = 0; up < 2 && up <= line; up++) {
                Line l = line_of(blob, line - up);
                for (size_t i = 0; i + 2 < l.n; i++) {
                        size_t n = i + 2;
                        if (!ANY(m, marks, ARRAY_SIZE(marks), memcmp(l.s + i, *m, 2) == 0))
                                continue;
                        while (n < l.n && n < i + 40 &&
                               (isalnum((unsigned char)l.s[n]) || is_char_of(l.s[n], " _.-$%}>")))
                                n++;
                        while (l.s[n - 1] == ' ')
                                n--;
                        return xasprintf("%.*s on line %u is an unfilled placeholder; render the file first",
                                         (int)(n - i), l.s + i, first + (unsigned)(line - up));
                }
        }
        return NULL;
}

char *yaml_slip(const Blob *blob, const char *problem, size_t line, size_t column, size_t context,
                size_t context_column) {
        unsigned first = MAX(blob->at.line, 1u);
        size_t toml = toml_without_mark(blob, line);
        Line here = line_of(blob, line);
        char *open = open_placeholder(blob, line, first);
        if (open)
                return open;
        if (toml > 0)
                return xasprintf("the TOML after config: on line %u must be a block of text; write config: |",
                                 first + (unsigned)toml - 1);
        if (streq(problem, "mapping values are not allowed in this context"))
                return slip_of_value(blob, line, first);
        Line begin = line_of(blob, context);
        if (streq(problem, "could not find expected ':'") && lacks_blank(&begin))
                return xasprintf("a space is missing after the colon on line %u", first + (unsigned)context);
        if (startswith(problem, "did not find expected") && context < line && here.n > 0 &&
            here.indent != context_column)
                return misplaced(&here, context_column, first + (unsigned)context);
        if (streq(problem, "found character that cannot start any token") && column < here.n &&
            is_char_of(here.s[column], "@`%"))
                return xasprintf("a string that begins with %c needs quotes", here.s[column]);
        return NULL;
}
