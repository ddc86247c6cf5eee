/* SPDX-License-Identifier: Apache-2.0
 * Lines of KEY=value → the value of a key, and back, as systemd 252 (Amazon Linux 2023) reads them. From
 * 254 on a comment ends with its line. EnvironmentFile=:
 * systemd:src/basic/env-file.c:parse_env_file_internal(). Units:
 * systemd:src/shared/conf-parser.c:config_parse(). $NAME: systemd:src/basic/extract-word.c. Files of
 * /etc/default: as a POSIX shell. */
#include "doc/env-file.h"

#include "base/str.h"

#include <errno.h>

#define BLANKS   " \t"
#define NEWLINES "\n\r"
#define SPACE    BLANKS NEWLINES

typedef struct Syntax {
        const char *comments;           /* each begins a comment where a name may begin */
        const char *continues;          /* lets a comment continue on the next line */
        const char *before_equals;      /* may stand between name and "=" */
        const char *prefix;             /* may stand before the name, or NULL */
        /* from after the "=" to the end of the value; NULL: refused */
        const char *(*read)(const char *p, Text *value);
} Syntax;
/* Past the closing quote. In double quotes a backslash escapes " \ ` $ and newlines. */
static const char *quoted_read(const char *p, char quote, Text *value) {
        for (; *p && *p != quote; p++) {
                bool escaped = quote == '"' && *p == '\\' && p[1];
                p += escaped;
                if (escaped && !is_char_of(*p, "\"\\`$\n"))
                        text_add(value, "\\");
                text_add_bytes(value, p, escaped && *p == '\n' ? 0 : 1);
        }
        return *p ? p + 1 : p;
}

/* To the end of the line; quotes are data. A backslash escapes the next character, or continues the line.
 * Blanks at the end do not count, unless escaped. */
static const char *bare_read(const char *p, Text *value) {
        size_t keep = value->size;
        for (; *p && !is_char_of(*p, NEWLINES); p++) {
                bool escaped = *p == '\\';
                p += escaped;
                if (!*p)
                        break;
                if (!escaped || !is_char_of(*p, NEWLINES))
                        text_add_bytes(value, p, 1);
                if (escaped || !is_char_of(*p, BLANKS))
                        keep = value->size;
        }
        value->size = keep;
        if (value->data)
                value->data[keep] = 0;
        return p;
}

/* EnvironmentFile=: quoted parts, or the rest of the line without quotes, "#" too. */
static const char *environment_read(const char *p, Text *value) {
        for (;;) {
                p += strspn(p, BLANKS);
                if (!is_char_of(*p, "'\""))
                        return bare_read(p, value);
                p = quoted_read(p + 1, *p, value);
        }
}

/* Would a shell expand it, or end the command? */
static bool is_for_shells(char c, char quote) {
        return is_char_of(c, !quote ? "$`\\;&|<>()" : quote == '"' ? "$`\\\n" : "\n");
}

/* Up to an unquoted blank; plain: or to what needs a shell. ret_quote: the quote still open. */
static const char *word_read(const char *p, bool plain, Text *word, char *ret_quote) {
        char quote = 0;
        for (; *p && (quote || !is_char_of(*p, SPACE)) && !(plain && is_for_shells(*p, quote)); p++)
                if (!plain && *p == '\\') {
                        if (p[1])
                                text_add_bytes(word, ++p, 1);
                } else if (quote ? *p == quote : is_char_of(*p, "'\""))
                        quote = quote ? 0 : *p;
                else
                        text_add_bytes(word, p, 1);
        *ret_quote = quote;
        return p;
}

/* A shell: one word, then at most a comment. */
static const char *shell_read(const char *p, Text *value) {
        char quote;
        p = word_read(p, true, value, &quote);
        p += strspn(p, BLANKS "\r");
        return quote || (*p && !is_char_of(*p, "#\n")) ? NULL : p;
}

static const Syntax environment_syntax = {
        .comments = "#;", .continues = "\\", .before_equals = BLANKS, .read = environment_read
};
static const Syntax shell_syntax = {
        .comments = "#", .before_equals = "", .prefix = "export", .read = shell_read
};

static const char *comment_skip(const char *p, const Syntax *s) {
        for (; *p && !is_char_of(*p, NEWLINES); p++)
                if (s->continues && is_char_of(*p, s->continues) && p[1])
                        p++;
        return p;
}

static const char *prefix_skip(const char *p, const char *prefix) {
        size_t n = prefix && startswith(p, prefix) ? strlen(prefix) : 0;
        size_t blanks = strspn(p + n, BLANKS);
        return n > 0 && blanks > 0 ? p + n + blanks : p;
}

static bool name_is(const Syntax *s, const char *line, size_t n, const char *name) {
        while (n > 0 && is_char_of(line[n - 1], s->before_equals))
                n--;
        return n == strlen(name) && strncmp(line, name, n) == 0;
}

/* -EINVAL: the syntax refuses the value of this name. */
static int assignment_find(const char *text, const Syntax *s, const char *name, char **ret) {
        _free_ char *found = NULL;
        for (const char *p = text + strspn(text, SPACE); *p; p += strspn(p, SPACE)) {
                if (is_char_of(*p, s->comments)) {
                        p = comment_skip(p, s);
                        continue;
                }
                p = prefix_skip(p, s->prefix);
                size_t n = strcspn(p, "=" NEWLINES);
                if (p[n] != '=') {
                        p += n;
                        continue;
                }
                _cleanup_(text_done) Text value = {};
                const char *end = s->read(p + n + 1, &value);
                if (name_is(s, p, n, name)) {
                        if (!end)
                                return -EINVAL;
                        free(found);
                        found = text_take(&value);
                }
                p = end ?: p + strcspn(p, NEWLINES);
        }
        *ret = TAKE_PTR(found);
        return 0;
}

char *assignment_in_environment(const char *text, const char *name) {
        char *value = NULL;
        (void)!assignment_find(text, &environment_syntax, name, &value);
        return value;
}

/* Does the line end in an unescaped backslash? */
static bool goes_on(const char *line, size_t n) {
        size_t backslashes = 0;
        while (backslashes < n && line[n - 1 - backslashes] == '\\')
                backslashes++;
        return backslashes % 2 == 1;
}

/* The lines of one section without comments; a blank replaces a continuation. */
static char *section_read(const char *text, const char *section) {
        _free_ char *header = xasprintf("[%s]", section);
        Text lines = {};
        bool inside = false, continued = false;
        for (const char *p = text; *p; p += strspn(p, "\r") + (p[strspn(p, "\r")] == '\n')) {
                p += strspn(p, BLANKS);
                size_t n = strcspn(p, NEWLINES);
                if (!is_char_of(*p, "#;")) {
                        if (*p == '[' && !continued)
                                inside = startswith(p, header);
                        continued = goes_on(p, n);
                        if (inside) {
                                text_add_bytes(&lines, p, n - continued);
                                text_add(&lines, continued ? " " : "\n");
                        }
                }
                p += n;
        }
        return text_take(&lines);
}

char **assignments_in_unit(const char *text, const char *section) {
        _free_ char *lines = section_read(text, section);
        char **all = NULL, *rest = lines;
        size_t n = 0;
        for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
                char *equals = strchr(line, '=');
                if (!equals)
                        continue;
                *equals = 0;
                strv_push_at(&all, n++, str_strip(line));
                strv_push_at(&all, n++, str_strip(equals + 1));
        }
        return all;
}

char *assignment_in_unit(const char *text, const char *section, const char *name) {
        _strv_ char **all = assignments_in_unit(text, section);
        const char *value = NULL;
        for (char **item = all; item && *item; item += 2)
                if (streq(*item, name))
                        value = item[1];
        return xstrdup_or_null(value);
}

int assignment_in_shell(const char *text, const char *name, char **ret) {
        _free_ char *value = NULL;
        int r = assignment_find(text, &shell_syntax, name, &value);
        if (r >= 0)
                *ret = value && *value ? TAKE_PTR(value) : NULL;
        return r;
}

char **assignment_split(const char *value) {
        char **words = NULL, quote;
        size_t n = 0;
        for (const char *p = value + strspn(value, SPACE); *p; p += strspn(p, SPACE)) {
                Text word = {};
                p = word_read(p, false, &word, &quote);
                strv_push_at(&words, n++, text_take(&word));
        }
        return words;
}

static void add_escaped(Text *t, const char *text, const char *escaped) {
        for (const char *p = text; *p; p++) {
                if (strchr(escaped, *p))
                        text_add(t, "\\");
                text_add_bytes(t, p, 1);
        }
}

/* Plain where possible, since people grep and patch this line; otherwise in double quotes. */
char *assignment_join(char *const *words) {
        _cleanup_(text_done) Text plain = {};
        STRV_FOREACH(w, words) {
                text_add(&plain, "%s%s", w == words ? "" : " ", **w ? "" : "\"\"");
                add_escaped(&plain, *w, SPACE "\"'\\");
        }
        const char *value = plain.data ?: "";
        if (!strpbrk(value, "\\\"'"))
                return xstrdup(value);
        Text quoted = {};
        text_add(&quoted, "\"");
        add_escaped(&quoted, value, "\"\\`$");
        text_add(&quoted, "\"");
        return text_take(&quoted);
}

/* In double quotes only " \ ` $ need a backslash (systemd:src/basic/env-file.c). */
char *assignment_line(const char *name, const char *value) {
        Text line = {};
        text_add(&line, "%s=\"", name);
        add_escaped(&line, value, "\"\\`$");
        text_add(&line, "\"\n");
        return text_take(&line);
}

/* As strconv.Quote of Go. */
static bool is_invisible(uint32_t c) {
        static const struct { uint32_t first, last; } hidden[] = {
                { 0x7f, 0xa0 },     { 0xad, 0xad },     { 0x61c, 0x61c },   { 0x1680, 0x1680 },
                { 0x180e, 0x180e }, { 0x2000, 0x200f }, { 0x2028, 0x202f }, { 0x205f, 0x206f },
                { 0x3000, 0x3000 }, { 0xe000, 0xf8ff }, { 0xfeff, 0xfeff }, { 0xfff0, 0xfffb },
                { 0xfffe, 0xffff }, { 0xe0000, 0xe00ff }, { 0xe01f0, UINT32_MAX },
        };
        return c < 0x20 || ANY(h, hidden, ARRAY_SIZE(hidden), c >= h->first && c <= h->last);
}

static uint32_t character(const char *s, size_t n) {
        uint32_t c = (unsigned char)*s & (n == 1 ? 0x7f : 0x7f >> n);
        for (size_t i = 1; i < n; i++)
                c = c << 6 | ((unsigned char)s[i] & 0x3f);
        return c;
}

/* C escapes and %-specifiers (systemd.unit(5)), in the spelling of nodeadm. */
char *assignment_quote(const char *name, const char *value) {
        static const char names[] = "abtnvfr\"\\%", values[] = "\a\b\t\n\v\f\r\"\\%";
        Text t = {};
        text_add(&t, "\"%s=", name);
        for (const char *p = value, *end = value + strlen(value); *p;) {
                size_t whole = utf8_length(p, (size_t)(end - p)), n = MAX(whole, (size_t)1);
                uint32_t c = whole > 0 ? character(p, n) : (unsigned char)*p;
                const char *escape = strchr(values, *p);
                if (escape)
                        text_add(&t, "%c%c", *p == '%' ? '%' : '\\', names[escape - values]);
                else if (whole == 0 || is_invisible(c))
                        text_add(&t, whole < 2 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
                else
                        text_add_bytes(&t, p, n);
                p += n;
        }
        text_add(&t, "\"");
        return text_take(&t);
}
