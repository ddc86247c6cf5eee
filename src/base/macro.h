/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ownership, attributes, and enum <-> string tables. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f)    __attribute__((cleanup(f)))
#define _free_          _cleanup_(freep)
#define _strv_          _cleanup_(strv_freep)
#define _must_check_    __attribute__((warn_unused_result))
#define _nonnull_       __attribute__((nonnull))
#define _nonnull(...)   __attribute__((nonnull(__VA_ARGS__)))
#define _printf_(a, b)  __attribute__((format(printf, a, b)))
#define _noreturn_      __attribute__((noreturn))
#define _unused_        __attribute__((unused))
#define _malloc_        __attribute__((malloc, returns_nonnull, warn_unused_result))

/* 1 in the static program for laptops (make portable). It asks no daemon and no service, and loads no
 * library. The compiler drops code that PORTABLE rules out, and the linker drops its dependencies. */
#ifndef PORTABLE
#define PORTABLE 0
#endif

#define ARRAY_SIZE(a)   (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)       ((a) < (b) ? (a) : (b))
#define MAX(a, b)       ((a) > (b) ? (a) : (b))

/* The first of n items that fits, or NULL; the condition sees each one as item. */
#define FIND(item, items, n, condition)                                                        \
        ({ size_t item##_at = 0, item##_n = (n);                                               \
           for (; item##_at < item##_n; item##_at++) {                                         \
                   __auto_type item = &(items)[item##_at];                                     \
                   if (condition)                                                              \
                           break;                                                              \
           }                                                                                   \
           item##_at < item##_n ? &(items)[item##_at] : NULL; })
#define ANY(item, items, n, condition) (FIND(item, items, n, condition) != NULL)
/* The value for that item, or otherwise. */
#define PICK(item, items, n, condition, value, otherwise)                                      \
        ({ __auto_type item##_it = FIND(item, items, n, condition);                            \
           __auto_type item = item##_it;                                                       \
           item ? (value) : (otherwise); })

/* Returns the pointer and sets the variable to NULL, so that its cleanup does nothing. */
#define TAKE_PTR(p) ({ __typeof__(p) *_p = &(p), _taken = *_p; *_p = NULL; _taken; })
/* Frees the old value after the new one is made. */
#define RENEW(p, value) ({ __auto_type _new = (value); free(p); (p) = _new; })
#define TAKE_FD(fd) ({ int *_p = &(fd), _taken = *_p; *_p = -1; _taken; })

/* The next step, unless an earlier one failed. */
#define THEN(r, step) ((r) = (r) < 0 ? (r) : (step))

/* DEFINE_CLEANUP(Foo *, foo_free) makes foo_freep for _cleanup_(foo_freep). */
#define DEFINE_CLEANUP(type, function)                                                         \
        static inline void function##p(type *p) {                                              \
                if (*p)                                                                        \
                        function(*p);                                                          \
        }

/* Of a name in a table: an array, as each start would relocate a pointer. */
#define NAME_SIZE 24
/* STRING_TABLE(foo, Foo, "one", "two") makes foo_to_string() (NULL: no such value) and foo_from_string()
 * (-EINVAL: no such name); the order is that of the enum. */
#define DECLARE_STRING_TABLE(name, type)                                                       \
        const char *name##_to_string(type value);                                              \
        int name##_from_string(const char *text)
#define DEFINE_STRING_TABLE(name, type, ...)                                                   \
        static const char name##_table[][NAME_SIZE] = { __VA_ARGS__ };                         \
        const char *name##_to_string(type value) {                                             \
                return (size_t)value < ARRAY_SIZE(name##_table) ? name##_table[value] : NULL;  \
        }                                                                                      \
        int name##_from_string(const char *text) {                                             \
                for (size_t i = 0; i < ARRAY_SIZE(name##_table); i++)                          \
                        if (strcmp(name##_table[i], text) == 0)                                \
                                return (int)i;                                                 \
                return -22; /* -EINVAL */                                                      \
        }

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}
static inline bool startswith(const char *s, const char *prefix) {
        return strncmp(s, prefix, strlen(prefix)) == 0;
}
static inline bool endswith(const char *s, const char *suffix) {
        size_t n = strlen(s), m = strlen(suffix);
        return n >= m && memcmp(s + n - m, suffix, m) == 0;
}
static inline const char *path_last(const char *path) {
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}
static inline void close_fd(int *fd) {
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
}
/* Always inline: a call needs the address of the variable, and then gcc guards the stack of each function. */
__attribute__((always_inline)) static inline void freep(void *p) {
        free(*(void **)p);
}
