/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Memory and strings. Never NULL: a machine without memory cannot be a node, so the process exits with 1. */
#include "base/macro.h"
#include <stdarg.h>

_malloc_ void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t count, size_t size) __attribute__((returns_nonnull, warn_unused_result));
_malloc_ char *xstrdup(const char *s);
_must_check_ char *xstrdup_or_null(const char *s);              /* NULL for NULL */
_malloc_ char *xstrndup(const char *s, size_t n);
_malloc_ char *xmemdup(const void *data, size_t size);          /* NUL-terminated */
_malloc_ char *xasprintf(const char *format, ...) _printf_(1, 2);
_malloc_ char *xvasprintf(const char *format, va_list ap) _printf_(1, 0);
#define FREE_ALL(...)                                                                          \
        ({ void *_all[] = { __VA_ARGS__ };                                                     \
           for (size_t _i = 0; _i < ARRAY_SIZE(_all); _i++)                                    \
                   free(_all[_i]); })
/* A pointer to a new last item; NULL is the empty array. The room doubles, so n appends cost O(n). */
#define APPEND(items, n)                                                                       \
        ({ if (((n) & ((n) + 1)) == 0)                                                         \
                   (items) = xrealloc((items), 2 * (n) + 1, sizeof(__typeof__(*(items))));      \
           &(items)[(n)++]; })
/* The text of a variadic function with this format. */
#define FORMATTED(format) \
        ({ va_list _ap; va_start(_ap, format); char *_text = xvasprintf(format, _ap); va_end(_ap); _text; })

/* A string vector ends with NULL; NULL is the empty one. */
char **strv_free(char **v);
DEFINE_CLEANUP(char **, strv_free)
size_t strv_length(char *const *v);
void strv_push(char ***v, char *s);                             /* takes s */
/* the same for a known length, for long vectors */
void strv_push_at(char ***v, size_t n, char *s);
void strv_add(char ***v, const char *s);                        /* copies s */
void strv_extend(char ***v, char *const *more);                 /* copies each of them */
bool strv_contains(char *const *v, const char *s);
void strv_sort(char **v);                                       /* by bytes */
_malloc_ char *strv_join(char *const *v, const char *separator);
char **strv_copy(char *const *v);
#define STRV_FOREACH(s, v) for (char *const *s = (v); s && *s; s++)
#define ONE_OF(s, ...) strv_contains((char *const *)(const char *const[]){ __VA_ARGS__, NULL }, (s))

/* Text t = {}; text_add(&t, "%s", …); t.data is NUL-terminated, and NULL only while empty. */
typedef struct Text { char *data; size_t size, room; } Text;
void text_add(Text *t, const char *format, ...) _printf_(2, 3);
/* The same, and returns the whole text. */
const char *text_say(Text *t, const char *format, ...) _printf_(2, 3);
void text_add_bytes(Text *t, const void *data, size_t size);
/* Lines of at most columns (longer words stay whole): the first after lead, the others indented. */
_nonnull_ void text_fold(Text *t, const char *lead, size_t indent, const char *text, size_t columns);
#define TEXT_WIDTH 100
#define text_add_folded(t, lead, indent, text) text_fold(t, lead, indent, text, TEXT_WIDTH)
char *text_take(Text *t);                                       /* the caller frees it; "" if empty */
void text_done(Text *t);

_malloc_ char *str_strip(const char *s);                        /* a copy */
/* A copy of *at up to the first of these characters; moves *at past any that follow. */
_malloc_ char *str_cut(const char **at, const char *ends);
_malloc_ char *str_lower(const char *s);                        /* ASCII only */
/* Decimal digits only; -EINVAL or -ERANGE. */
_must_check_ int parse_u64(const char *s, uint64_t *ret);
/* Like Go (pkg.go.dev/strconv#ParseBool): 1 for 1, t, True …, 0 for 0, f, False …; else -EINVAL. */
_must_check_ int parse_bool(const char *s);
/* 2097152 → "2Mi": the largest unit without a fraction. */
_malloc_ char *bytes_text(uint64_t bytes);
/* Erases a secret and frees it; NULL: nothing. */
void forget_secret(char *secret);
static inline void forget_secretp(char **secret) {
        forget_secret(*secret);
}
/* Encodes all bytes but RFC 3986 unreserved characters ("%2F"), as AWS wants them in queries and forms. */
_nonnull_ void text_add_encoded(Text *t, const char *s);
/* The reverse; an invalid escape, or one of a NUL, stays as it is. */
_malloc_ char *percent_decoded(const char *s);
/* "https://host:443/path" → "host", "https://[::1]:443" → "::1" */
_malloc_ char *url_host(const char *url);
/* "https://user:password@host", with or without the scheme → the user; ret_size 0: no user. An unencoded
 * "@" or "/" may be part of the password. */
_nonnull_ const char *name_user(const char *name, size_t *ret_size);
/* An IPv4 or IPv6 address (inet_pton(3))? */
_nonnull_ bool address_is_valid(const char *text);
/* The nearest of names (NULL-terminated) by edit distance or first words; NULL: none is near. */
const char *nearest_name(const char *text, const char *const *names);
/* The same in steps: Nearest n = { .text = text }; nearest_try(&n, "…") … n.best. */
typedef struct Nearest { const char *text, *best; size_t least; } Nearest;
void nearest_try(Nearest *n, const char *name);

/* ---- characters ---- */
/* the bytes of the character at s, 1 to 4; 0: not UTF-8 */
size_t utf8_length(const char *s, size_t room);
/* The first byte that is not UTF-8, or NULL. */
const char *utf8_fault(const char *s, size_t size);
/* The name of a character at s that only looks like a blank: "a no-break space (U+00A0)"; or NULL. */
_nonnull_ const char *utf8_false_blank(const char *s, size_t room);
void utf8_add(Text *to, unsigned long c);               /* at most 0x10ffff */
/* Does systemd accept this text? It must be UTF-8 without noncharacters such as U+FFFE (systemd
 * src/basic/utf8.c, unichar_is_valid(); callers: env-file.c, conf-parser.c). */
_nonnull_ bool utf8_is_for_systemd(const char *s);
/* Adds foreign text (a user key, a file name) to a message. Control characters and invalid UTF-8 become \x1b,
 * so that it cannot garble a terminal or forge a log line. A backslash escapes quote (0: none) and
 * backslashes; … replaces the text after limit characters. */
_nonnull_ void text_add_shown(Text *to, const char *s, size_t size, size_t limit, char quote);
/* false for a NUL. */
static inline bool is_char_of(char c, const char *set) {
        return c && strchr(set, c);
}
/* ASCII only, whatever the locale. */
static inline bool is_digit(int c) {
        return c >= '0' && c <= '9';
}
/* -1: not a hexadecimal digit. */
static inline int hex_digit(int c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* Is "1.33.4", "6.12.46-66.121.amzn2023.x86_64" this version or later? false for NULL. */
bool version_at_least(const char *version, unsigned major, unsigned minor);
/* 33 of "1.33.4"; 0: not a version */
unsigned version_minor(const char *version);
/* By their numbers, as rpmvercmp and kernels do: < 0, 0, > 0. */
_nonnull_ int version_compare(const char *a, const char *b);

/* Kubernetes quantities ("90m", "1Gi", "1.5e3") in thousandths of a CPU, byte or pod: as fine as kubelet
 * counts CPUs, up to nine petabytes. Syntax:
 * kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity. */
/* Rounds away from zero, caps at INT64_MAX, as kubelet does; -EINVAL: not a quantity. */
_must_check_ _nonnull_ int quantity_parse(const char *text, int64_t *ret_thousandths);
/* The canonical form: "191570m", "128k"; binary: with Ki, Mi … for a multiple of 1024. Not negative. */
_malloc_ char *quantity_text(int64_t thousandths, bool binary);

/* Adds a unified diff (diff(1), -u) without file names, with `indent` before each line. */
_nonnull_ void lines_diff(Text *to, const char *old, size_t old_size, const char *new, size_t new_size,
                          const char *indent);
