/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests of executors that run programs which no test machine has: NVIDIA's. They are shell scripts in a
 * box, first in the path. */
#include "mounts.h"

static inline void box_program(const Box *b, const char *name, const char *script) {
        _free_ char *path = xasprintf("/usr/bin/%s", name),
                    *text = xasprintf("#!/bin/sh\n%s\n", script);
        _free_ char *folders = xasprintf("%s/usr/bin:/usr/bin:/bin", b->path);
        ASSERT_OK(root_replace_volatile(b->root, path, text, strlen(text), 0755));
        ASSERT_EQ(setenv("PATH", folders, 1), 0);
}

static inline char *path_hide(void) {
        char *before = xstrdup(getenv("PATH"));
        ASSERT_EQ(setenv("PATH", "/nowhere", 1), 0);
        return before;
}

static inline void path_show(char **before) {
        setenv("PATH", *before, 1);
        free(*before);
}

/* From here to the end of a test no program is there. */
#define NO_PROGRAMS()                           \
        SKIP_IF_VFORK_FORKS();                  \
        _unused_ _cleanup_(path_show) char *_path = path_hide()

static inline void box_link(const Box *b, const char *path, const char *target) {
        _free_ char *full = box_path(b, path),
                    *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
        ASSERT_OK(root_make_dirs(b->root, parent, 0755));
        ASSERT_EQ(symlink(target, full), 0);
}

/* The function's value, and that a failure has a cause and words. */
static inline void assert_fails(Box *b, int (*function)(Work *w), Cause cause, const char *words) {
        json_decref(TAKE_PTR(b->work.found));
        ASSERT_TRUE(function(&b->work) < 0);
        ASSERT_EQ(b->work.cause, cause);
        ASSERT_CONTAINS(b->work.text, words);
}

static inline void assert_works(Box *b, int (*function)(Work *w), int want) {
        json_decref(TAKE_PTR(b->work.found));
        int r = function(&b->work);
        if (r != want)
                FAIL("it is %d, want %d: %s", r, want, b->work.text ?: "");
}

static inline void assert_warns(const Box *b, const char *code, const char *words) {
        ASSERT_EQ(b->work.warnings.n, 1);
        ASSERT_STREQ(b->work.warnings.items[0].code, code);
        ASSERT_CONTAINS(b->work.warnings.items[0].text, words);
}
