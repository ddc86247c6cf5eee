/* SPDX-License-Identifier: Apache-2.0 */
/* The way back from quote.c: what systemd makes of a file that EnvironmentFile= names and of $NAME on a
 * command line, by the rules of its version 252 (Amazon Linux 2023; systemd.exec(5), systemd.service(5)).
 * People patch such files by hand, so nothing is refused. */
#include "plan/plan.h"
#include "base/str.h"

#define BLANKS   " \t"
#define NEWLINES "\n\r"

static bool is_one_of(char c, const char *set) {
        return c && strchr(set, c);
}

/* From behind the quote to behind its partner, over lines; in double quotes a backslash takes the shell's
 * four and line ends. */
static const char *quoted_read(const char *p, char quote, Text *value) {
        for (; *p && *p != quote; p++)
                if (quote == '"' && *p == '\\' && p[1]) {
                        p++;
                        if (!is_one_of(*p, "\"\\`$\n"))
                                text_add(value, "\\");
                        if (*p != '\n')
                                text_add_bytes(value, p, 1);
                } else
                        text_add_bytes(value, p, 1);
        return *p ? p + 1 : p;
}

/* To the end of the line; quotes in it are data. A backslash takes the next character, or goes on behind the
 * line's end. Blanks at the end do not count, unless escaped. */
static const char *bare_read(const char *p, Text *value) {
        size_t keep = value->size;
        for (; *p && !is_one_of(*p, NEWLINES); p++) {
                bool escaped = *p == '\\';
                if (escaped && !*++p)
                        break;
                if (!escaped || !is_one_of(*p, NEWLINES))
                        text_add_bytes(value, p, 1);
                if (escaped || !is_one_of(*p, BLANKS))
                        keep = value->size;
        }
        if (value->data)
                value->data[value->size = keep] = 0;
        return p;
}

/* From behind the "=" to the line's end. Quoted parts may follow each other; what is not quoted takes all
 * that is left. */
static const char *value_read(const char *p, Text *value) {
        for (;;) {
                p += strspn(p, BLANKS);
                if (!is_one_of(*p, "'\""))
                        return bare_read(p, value);
                p = quoted_read(p + 1, *p, value);
        }
}

static const char *comment_skip(const char *p) {
        for (; *p && !is_one_of(*p, NEWLINES); p++)
                if (*p == '\\' && p[1])
                        p++;
        return p;
}

static bool name_is(const char *line, size_t n, const char *name) {
        while (n > 0 && is_one_of(line[n - 1], BLANKS))
                n--;
        return n == strlen(name) && strncmp(line, name, n) == 0;
}

char *systemd_environment_value(const char *text, const char *name) {
        char *found = NULL;
        for (const char *p = text + strspn(text, BLANKS NEWLINES); *p; p += strspn(p, BLANKS NEWLINES)) {
                size_t n = strcspn(p, "=" NEWLINES);
                if (is_one_of(*p, "#;")) {
                        p = comment_skip(p);
                        continue;
                }
                if (p[n] != '=') {
                        p += n;
                        continue;
                }
                _cleanup_(text_done) Text value = {};
                const char *end = value_read(p + n + 1, &value);
                if (name_is(p, n, name)) {
                        free(found);
                        found = text_take(&value);
                }
                p = end;
        }
        return found;
}

/* Up to the next blank outside of quotes. */
static const char *word_read(const char *p, Text *word) {
        char quote = 0;
        for (; *p && (quote || !is_one_of(*p, BLANKS NEWLINES)); p++)
                if (*p == '\\') {
                        if (p[1])
                                text_add_bytes(word, ++p, 1);
                } else if (quote ? *p == quote : is_one_of(*p, "'\""))
                        quote = quote ? 0 : *p;
                else
                        text_add_bytes(word, p, 1);
        return p;
}

char **systemd_split_words(const char *value) {
        char **words = NULL;
        for (const char *p = value + strspn(value, BLANKS NEWLINES); *p; p += strspn(p, BLANKS NEWLINES)) {
                Text word = {};
                p = word_read(p, &word);
                strv_push(&words, text_take(&word));
        }
        return words;
}
