/* SPDX-License-Identifier: Apache-2.0
 * Memory, string vectors, growing text, and parsers of numbers. */
#include "base/str.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static _noreturn_ void out_of_memory(void) {
        static const char text[] = "nodestrap: failed (1 EINTERNAL): out of memory\n";
        if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
                _exit(1);
        _exit(1);
}

void *xcalloc(size_t count, size_t size) {
        void *p = calloc(count ?: 1, size ?: 1);
        if (!p)
                out_of_memory();
        return p;
}

void *xrealloc(void *p, size_t count, size_t size) {
        void *q = reallocarray(p, count ?: 1, size ?: 1);
        if (!q)
                out_of_memory();
        return q;
}

char *xmemdup(const void *data, size_t size) {
        char *p = xcalloc(size + 1, 1);
        if (size > 0)
                memcpy(p, data, size);
        return p;
}

char *xstrdup(const char *s) {
        return xmemdup(s, strlen(s));
}

char *xstrdup_or_null(const char *s) {
        return s ? xstrdup(s) : NULL;
}

char *xstrndup(const char *s, size_t n) {
        return xmemdup(s, strnlen(s, n));
}

char *xvasprintf(const char *format, va_list ap) {
        char *s = NULL;
        if (vasprintf(&s, format, ap) < 0)
                out_of_memory();
        return s;
}

char *xasprintf(const char *format, ...) {
        return FORMATTED(format);
}

char **strv_free(char **v) {
        STRV_FOREACH(s, v)
                free(*s);
        free(v);
        return NULL;
}

size_t strv_length(char *const *v) {
        size_t n = 0;
        while (v && v[n])
                n++;
        return n;
}

void strv_push_at(char ***v, size_t n, char *s) {
        /* Doubles at powers of two: O(n) for n items. */
        if ((n & (n + 1)) == 0)
                *v = xrealloc(*v, 2 * n + 2, sizeof(char *));
        (*v)[n] = s;
        (*v)[n + 1] = NULL;
}

void strv_push(char ***v, char *s) {
        strv_push_at(v, strv_length(*v), s);
}

void strv_add(char ***v, const char *s) {
        strv_push(v, xstrdup(s));
}

void strv_extend(char ***v, char *const *more) {
        for (size_t n = strv_length(*v); more && *more; more++)
                strv_push_at(v, n++, xstrdup(*more));
}

bool strv_contains(char *const *v, const char *s) {
        for (; v && *v; v++)
                if (streq(*v, s))
                        return true;
        return false;
}

static int compare_strings(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void strv_sort(char **v) {
        size_t n = strv_length(v);
        if (n > 1)
                qsort(v, n, sizeof *v, compare_strings);
}

char *strv_join(char *const *v, const char *separator) {
        Text t = {};
        STRV_FOREACH(s, v)
                text_add(&t, "%s%s", s == v ? "" : separator, *s);
        return text_take(&t);
}

char **strv_copy(char *const *v) {
        char **copy = NULL;
        strv_extend(&copy, v);
        return copy;
}

static void text_room(Text *t, size_t more) {
        if (t->size + more + 1 <= t->room)
                return;
        t->room = MAX(t->size + more + 1, 2 * t->room);
        t->data = xrealloc(t->data, t->room, 1);
}

void text_add_bytes(Text *t, const void *data, size_t size) {
        text_room(t, size);
        if (size > 0)
                memcpy(t->data + t->size, data, size);
        t->size += size;
        t->data[t->size] = 0;
}

void text_add(Text *t, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        int n = vsnprintf(NULL, 0, format, ap);
        va_end(ap);
        if (n < 0)
                out_of_memory();
        text_room(t, (size_t)n);
        va_start(ap, format);
        vsnprintf(t->data + t->size, (size_t)n + 1, format, ap);
        va_end(ap);
        t->size += (size_t)n;
}

const char *text_say(Text *t, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        text_add(t, "%s", text);
        return t->data;
}

void text_fold(Text *t, const char *lead, size_t indent, const char *text, size_t columns) {
        size_t column = strlen(lead), begin = column;
        text_add(t, "%s", lead);
        for (const char *word = text; *word;) {
                size_t n = strcspn(word, " ");
                if (column > begin && column + 1 + n > columns) {
                        text_add(t, "\n%*s", (int)indent, "");
                        begin = column = indent;
                }
                text_add(t, "%s%.*s", column > begin ? " " : "", (int)n, word);
                column += n + (column > begin);
                word += n + strspn(word + n, " ");
        }
        text_add(t, "\n");
}

char *text_take(Text *t) {
        char *s = t->data ?: xstrdup("");
        *t = (Text){};
        return s;
}

void text_done(Text *t) {
        free(t->data);
        *t = (Text){};
}

static bool is_space(char c) {
        return c == ' ' || (c >= '\t' && c <= '\r');
}

char *str_strip(const char *s) {
        while (is_space(*s))
                s++;
        size_t n = strlen(s);
        while (n > 0 && is_space(s[n - 1]))
                n--;
        return xmemdup(s, n);
}

char *str_cut(const char **at, const char *ends) {
        size_t n = strcspn(*at, ends);
        char *part = xstrndup(*at, n);
        *at += n + strspn(*at + n, ends);
        return part;
}

char *str_lower(const char *s) {
        char *copy = xstrdup(s);
        for (char *p = copy; *p; p++)
                if (*p >= 'A' && *p <= 'Z')
                        *p = (char)(*p + ('a' - 'A'));
        return copy;
}

char *bytes_text(uint64_t bytes) {
        static const char units[][4] = { "", "Ki", "Mi", "Gi", "Ti" };
        size_t i = 0;
        for (; i + 1 < ARRAY_SIZE(units) && bytes >= 1024 && bytes % 1024 == 0; i++)
                bytes /= 1024;
        return xasprintf("%llu%s", (unsigned long long)bytes, units[i]);
}

void forget_secret(char *secret) {
        if (secret)
                explicit_bzero(secret, strlen(secret));
        free(secret);
}

void text_add_encoded(Text *t, const char *s) {
        for (; *s; s++)
                if (isalnum((unsigned char)*s) || strchr("-._~", *s))
                        text_add_bytes(t, s, 1);
                else
                        text_add(t, "%%%02X", (unsigned char)*s);
}

char *percent_decoded(const char *s) {
        char *text = xstrdup(s), *out = text;
        for (const char *p = s; *p; p++) {
                int high = *p == '%' ? hex_digit(p[1]) : -1, low = high >= 0 ? hex_digit(p[2]) : -1;
                bool escape = low >= 0 && (high | low) > 0;
                *out++ = escape ? (char)(high << 4 | low) : *p;
                p += escape ? 2 : 0;
        }
        *out = 0;
        return text;
}

char *url_host(const char *url) {
        const char *host = strstr(url, "://");
        host = host ? host + 3 : url;
        return *host == '[' ? xstrndup(host + 1, strcspn(host + 1, "]/"))
                            : xstrndup(host, strcspn(host, ":/?#"));
}

const char *name_user(const char *name, size_t *ret_size) {
        const char *scheme = strstr(name, "://"), *user = scheme ? scheme + 3 : name,
                   *at = strrchr(user, '@');
        *ret_size = at ? (size_t)(at - user) : 0;
        return user;
}

int parse_u64(const char *s, uint64_t *ret) {
        uint64_t value = 0;
        if (!*s)
                return -EINVAL;
        for (; *s; s++) {
                if (*s < '0' || *s > '9')
                        return -EINVAL;
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
                        return -ERANGE;
        }
        *ret = value;
        return 0;
}

int parse_bool(const char *s) {
        if (ONE_OF(s, "1", "t", "T", "true", "TRUE", "True"))
                return 1;
        return ONE_OF(s, "0", "f", "F", "false", "FALSE", "False") ? 0 : -EINVAL;
}

/* Letters that differ only in case are near: "Name" for "name" is the commonest slip in user data. */
static size_t edit_distance(const char *a, const char *b) {
        size_t n = strlen(b), row[64];
        if (n >= ARRAY_SIZE(row))
                return SIZE_MAX;
        for (size_t j = 0; j <= n; j++)
                row[j] = j;
        for (size_t i = 1; a[i - 1]; i++) {
                size_t corner = row[0];
                row[0] = i;
                for (size_t j = 1; j <= n; j++) {
                        size_t swap = corner + ((a[i - 1] | 0x20) != (b[j - 1] | 0x20));
                        corner = row[j];
                        row[j] = MIN(swap, MIN(row[j], row[j - 1]) + 1);
                }
        }
        return row[n];
}

/* The length of the common first words in camel case: 5 for mountPoint and mountTarget. */
static size_t shared_words(const char *text, const char *name) {
        size_t n = 0;
        while (text[n] && (text[n] | 0x20) == (name[n] | 0x20))
                n++;
        while (n > 0 && name[n] && !isupper((unsigned char)name[n]))
                n--;
        return n;
}

bool address_is_valid(const char *text) {
        unsigned char address[16];
        return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* Near in its letters, or in first words that are two fifths of both names. */
void nearest_try(Nearest *n, const char *name) {
        size_t length = strlen(n->text), d = length < 64 ? edit_distance(n->text, name) : SIZE_MAX,
               limit = MIN(length / 3 + 2, length);         /* "a" is not near "v" */
        if (d >= limit && 5 * shared_words(n->text, name) >= 2 * MAX(length, strlen(name)))
                d = limit - 1;
        if (d < (n->best ? n->least : limit)) {
                n->least = d;
                n->best = name;
        }
}

const char *nearest_name(const char *text, const char *const *names) {
        Nearest near = { .text = text };
        for (; *names; names++)
                nearest_try(&near, *names);
        return near.best;
}
