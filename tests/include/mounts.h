/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests that mount: a mount namespace for this process, with a root on a tmpfs that goes with it. */
#include "apply/work.h"

#include "base/str.h"
#include "base/time.h"
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Box { char path[32]; Root *root; Action action; Work work; } Box;

/* Before any test: without mounts of its own there is nothing to test. */
__attribute__((constructor)) static void own_mounts(void) {
        const char *required = getenv("NODESTRAP_TEST_REQUIRE");
        if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
            mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0)
                return;
        if (required && streq(required, "1")) {
                puts("1..1\nnot ok 1 - mounts of its own need root");
                exit(1);
        }
        puts("1..0 # SKIP mounts of its own need root");
        exit(0);
}

/* The path outside of the box; the caller frees it. */
static inline char *box_path(const Box *b, const char *path) {
        return xasprintf("%s%s", b->path, path);
}

static inline void box_mkdir(const Box *b, const char *path, mode_t mode) {
        _free_ char *full = box_path(b, path);
        ASSERT_OK(root_make_dirs(b->root, path, 0755));
        ASSERT_EQ(chmod(full, mode), 0);
}

static inline void box_tmpfs(const Box *b, const char *path, const char *options) {
        _free_ char *full = box_path(b, path);
        ASSERT_OK(root_make_dirs(b->root, path, 0755));
        ASSERT_EQ(mount("test", full, "tmpfs", 0, options), 0);
}

static inline void box_init(Box *b) {
        *b = (Box){ .path = "/tmp/test-mounts.XXXXXX" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_EQ(mount("test", b->path, "tmpfs", 0, "mode=0755"), 0);
        ASSERT_OK(root_new(b->path, &b->root));
        b->work = (Work){ .root = b->root,
                          .action = &b->action,
                          .deadline_usec = now_usec() + 120 * USEC_PER_SEC,
                          .cancel_fd = -1 };
}

static inline void box_done(Box *b) {
        root_free(b->root);
        free(b->work.text);
        json_decref(b->work.found);
        diag_done(&b->work.warnings);
        umount2(b->path, MNT_DETACH);
        rmdir(b->path);
}
#define BOX(name) _cleanup_(box_done) Box name; box_init(&name)

static inline void put(const Box *b, const char *path, const char *content) {
        ASSERT_OK(root_replace_volatile(b->root, path, content, strlen(content), 0644));
}

static inline void assert_file(const Box *b, const char *path, const char *content) {
        _free_ char *data = NULL;
        int r = root_read(b->root, path, 1 << 20, &data, NULL);
        if (r < 0)
                FAIL("%s: %s", path, strerror(-r));
        ASSERT_STREQ(data, content);
}

/* Without following a link at its end. */
static inline bool is_there(const Box *b, const char *path) {
        struct stat st;
        _free_ char *full = box_path(b, path);
        return lstat(full, &st) == 0;
}

static inline struct stat look_at(const Box *b, const char *path) {
        struct stat st;
        _free_ char *full = box_path(b, path);
        if (lstat(full, &st) < 0)
                FAIL("%s: %s", path, strerror(errno));
        return st;
}

static inline void assert_entries(const Box *b, const char *path, const char *names) {
        _strv_ char **list = NULL;
        ASSERT_OK(root_list(b->root, path, &list));
        _free_ char *joined = strv_join(list, " ");
        ASSERT_STREQ(joined, names);
}

/* Does mountinfo have a mount of the box's path that is shared (or not)? */
static inline bool is_shared(const Box *b, const char *path) {
        _free_ char *full = xasprintf(" %s%s ", b->path, path), *line = NULL;
        FILE *f = fopen("/proc/self/mountinfo", "re");
        bool shared = false;
        size_t room = 0;
        ASSERT_TRUE(f);
        while (getline(&line, &room, f) > 0)
                if (strstr(line, full))
                        shared = strstr(line, " shared:");
        fclose(f);
        return shared;
}
