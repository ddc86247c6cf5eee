/* SPDX-License-Identifier: Apache-2.0
 * The lock that one init holds against another. */
#include "base/lock.h"

#include "test.h"
#include "base/paths.h"
#include "base/str.h"
#include "base/time.h"

#include <ftw.h>
#include <unistd.h>

typedef struct Box { char path[32]; Root *root; Diag diag; } Box;

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

static void box_done(Box *b) {
        diag_done(&b->diag);
        root_free(b->root);
        nftw(b->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void box_init(Box *b) {
        *b = (Box){ .path = "/tmp/test-lock.XXXXXX" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new(b->path, &b->root));
}
#define BOX(name) _cleanup_(box_done) Box name; box_init(&name)

TEST(one_takes_it_and_the_next_waits_no_longer_than_its_deadline) {
        BOX(b);
        int fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag));
        ASSERT_ERROR(lock_take(b.root, RUN_DIR "/lock", now_usec() + 100 * USEC_PER_MSEC, &b.diag), ETIMEDOUT);
        const Diagnostic *error = diag_first_error(&b.diag);
        ASSERT_EQ(error->cause, CAUSE_DEADLINE);
        ASSERT_TRUE(strstr(error->text, "another nodestrap holds " RUN_DIR "/lock"));
        close(fd);
        fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag));
        close(fd);
}

TEST(it_is_free_although_somebody_has_a_copy) {
        BOX(b);
        int fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag)), copy = ASSERT_OK(dup(fd));
        lock_release(&fd);
        ASSERT_EQ(fd, -1);
        fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag));
        close(copy);
        lock_release(&fd);
        lock_release(&fd);
}

TEST(a_place_of_somebody_else) {
        BOX(b);
        _cleanup_(freep) char *path = xasprintf("%s" RUN_DIR, b.path), *other = xasprintf("%s/other", b.path);
        if (geteuid() != 0)
                return;         /* who is not root can only be asked for a place of his own */
        int fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag));
        lock_release(&fd);
        ASSERT_EQ(chmod(path, 02755), 0);       /* units/nodestrap.tmpfiles */
        fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag));
        lock_release(&fd);
        ASSERT_EQ(chmod(path, 0775), 0);
        ASSERT_ERROR(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag), EPERM);
        ASSERT_CONTAINS(diag_first_error(&b.diag)->text, "(owner 0, mode 0775)");
        ASSERT_EQ(chmod(path, 0755), 0);
        ASSERT_EQ(chown(path, 1000, 1000), 0);
        ASSERT_ERROR(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag), EPERM);
        ASSERT_EQ(rename(path, other), 0);
        ASSERT_EQ(symlink("../other", path), 0);
        ASSERT_ERROR(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag), EPERM);
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_FILE);
}

TEST(a_place_where_it_cannot_be) {
        BOX(b);
        ASSERT_OK(root_replace(b.root, "/run", "", 0, 0644));
        ASSERT_ERROR(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag), ENOTDIR);
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_FILE);
}

TEST_MAIN
