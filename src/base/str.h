/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Memory and strings. Nothing here returns NULL: a machine that has no memory left for this program at boot
 * cannot become a node, so exhaustion ends the process with one line on stderr (exit 1), and no caller needs
 * a path for it. */
#include "base/macro.h"
#include <stdarg.h>

_malloc_ void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t count, size_t size) __attribute__((returns_nonnull, warn_unused_result));
_malloc_ char *xstrdup(const char *s);
_must_check_ char *xstrdup_or_null(const char *s);              /* NULL for NULL */
_malloc_ char *xstrndup(const char *s, size_t n);
_malloc_ char *xmemdup(const void *data, size_t size);          /* with a NUL behind it */
_malloc_ char *xasprintf(const char *format, ...) _printf_(1, 2);
_malloc_ char *xvasprintf(const char *format, va_list ap) _printf_(1, 0);
/* free(3) of each of these pointers. */
#define FREE_ALL(...)                                                                          \
        ({ void *_all[] = { __VA_ARGS__ };                                                     \
           for (size_t _i = 0; _i < ARRAY_SIZE(_all); _i++)                                    \
                   free(_all[_i]); })
/* The place behind the last of n items, which n counts from now on; NULL is the empty array. Room for as
 * many more comes at every power of two: growth stays linear. */
#define APPEND(items, n)                                                                       \
        ({ if (((n) & ((n) + 1)) == 0)                                                         \
                   (items) = xrealloc((items), 2 * (n) + 1, sizeof(__typeof__(*(items))));      \
           &(items)[(n)++]; })
/* In a function that takes a format and what belongs to it: that text. */
#define FORMATTED(format) \
        ({ va_list _ap; va_start(_ap, format); char *_text = xvasprintf(format, _ap); va_end(_ap); _text; })

/* A string vector: NULL-terminated, NULL is the empty one. */
char **strv_free(char **v);
DEFINE_CLEANUP(char **, strv_free)
size_t strv_length(char *const *v);
void strv_push(char ***v, char *s);                             /* takes s */
/* the same where the length is known: n; for long vectors */
void strv_push_at(char ***v, size_t n, char *s);
void strv_add(char ***v, const char *s);                        /* copies s */
void strv_extend(char ***v, char *const *more);                 /* copies each of them */
bool strv_contains(char *const *v, const char *s);
void strv_sort(char **v);                                       /* by bytes */
_malloc_ char *strv_join(char *const *v, const char *separator);
char **strv_copy(char *const *v);
/* Each text of a vector: *s. */
#define STRV_FOREACH(s, v) for (char *const *s = (v); s && *s; s++)
/* Is s one of these texts? */
#define ONE_OF(s, ...) strv_contains((char *const *)(const char *const[]){ __VA_ARGS__, NULL }, (s))

/* Text that grows: Text t = {}; text_add(&t, "%s", …); t.data ends with NUL; NULL only while empty. */
typedef struct Text { char *data; size_t size, room; } Text;
void text_add(Text *t, const char *format, ...) _printf_(2, 3);
/* The same, and all of the text: a sentence that is made, where most are not. */
const char *text_say(Text *t, const char *format, ...) _printf_(2, 3);
void text_add_bytes(Text *t, const void *data, size_t size);
/* Lines for people: words of text on lines of at most so many columns (longer words stay whole), the first
 * behind lead, the others indented by so many; and a line end. */
_nonnull_ void text_fold(Text *t, const char *lead, size_t indent, const char *text, size_t columns);
#define TEXT_WIDTH 100
#define text_add_folded(t, lead, indent, text) text_fold(t, lead, indent, text, TEXT_WIDTH)
char *text_take(Text *t);                                       /* hands the string over, "" where empty */
void text_done(Text *t);

_malloc_ char *str_strip(const char *s);                        /* a copy without white space at both ends */
/* What stands at *at up to the first of these characters, new; *at is behind all of them that follow. */
_malloc_ char *str_cut(const char **at, const char *ends);
_malloc_ char *str_lower(const char *s);                        /* ASCII only: locales never matter here */
/* Decimal digits only, no sign, no blanks; -EINVAL or -ERANGE. */
_must_check_ int parse_u64(const char *s, uint64_t *ret);
/* As Go reads it (pkg.go.dev/strconv#ParseBool): 1 for 1, t, True …, 0 for 0, f, False …; else -EINVAL. */
_must_check_ int parse_bool(const char *s);
/* 2097152 → "2Mi": the largest unit of which it is a whole number. */
_malloc_ char *bytes_text(uint64_t bytes);
/* Erases a secret before it is freed; NULL is none. */
void forget_secret(char *secret);
static inline void forget_secretp(char **secret) {
        forget_secret(*secret);
}
/* All bytes but RFC 3986's unreserved characters become %2F and the like, as AWS wants it in queries and in
 * forms. */
_nonnull_ void text_add_encoded(Text *t, const char *s);
/* The other way round. Another percent sign, or an escape of a NUL, stays as it is. */
_malloc_ char *percent_decoded(const char *s);
/* "https://host:443/path" → "host", "https://[::1]:443" → "::1" */
_malloc_ char *url_host(const char *url);
/* An IPv4 or IPv6 address, as inet_pton(3) reads it. */
_nonnull_ bool address_is_valid(const char *text);
/* The one of names (NULL-terminated) that is nearest to text, by edit distance or by its first words, or NULL
 * when none is near. */
const char *nearest_name(const char *text, const char *const *names);
/* The same name by name: Nearest n = { .text = text }; nearest_try(&n, "…") … n.best. */
typedef struct Nearest { const char *text, *best; size_t least; } Nearest;
void nearest_try(Nearest *n, const char *name);

/* ---- characters ---- */
/* of the character at s in bytes, 1 to 4; 0 when it is no UTF-8 */
size_t utf8_length(const char *s, size_t room);
/* The first byte that is no part of one, or NULL. */
const char *utf8_fault(const char *s, size_t size);
/* What s begins with, where that looks like a blank and is none: "a no-break space (U+00A0)", or NULL. */
_nonnull_ const char *utf8_false_blank(const char *s, size_t room);
void utf8_add(Text *to, unsigned long c);               /* c is a character: at most 0x10ffff */
/* Does systemd take a line or a variable with this text? It has to be UTF-8 without a noncharacter, such as
 * U+FFFE. env-file.c and conf-parser.c ask unichar_is_valid() of systemd src/basic/utf8.c. */
_nonnull_ bool utf8_is_for_systemd(const char *s);
/* Adds what somebody else wrote (a key of the user's, the name of a file) to a message: what could garble a
 * terminal, forge a line of a log or is no UTF-8 becomes \x1b; where quote is not 0, a backslash stands
 * before it and before backslashes; … stands for what is longer than limit characters. */
_nonnull_ void text_add_shown(Text *to, const char *s, size_t size, size_t limit, char quote);
/* Is it one of the characters of set? A NUL never is. */
static inline bool is_char_of(char c, const char *set) {
        return c && strchr(set, c);
}
/* ASCII only, whatever the locale. */
static inline bool is_digit(int c) {
        return c >= '0' && c <= '9';
}
/* The value of a hexadecimal digit, -1 for anything else. */
static inline int hex_digit(int c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}
