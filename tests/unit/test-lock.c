/* SPDX-License-Identifier: Apache-2.0
 * The lock that one init holds against another. */
#include "base/lock.h"

#include "test.h"
#include "base/paths.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/time.h"
#include "report/event.h"

#include <fcntl.h>
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

TEST(a_second_taker_waits_until_its_deadline_only) {
        BOX(b);
        int fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag));
        ASSERT_ERROR(lock_take(b.root, RUN_DIR "/lock", now_usec() + 100 * USEC_PER_MSEC, &b.diag), ETIMEDOUT);
        const Diagnostic *error = diag_first_error(&b.diag);
        ASSERT_EQ(error->cause, CAUSE_DEADLINE);
        ASSERT_TRUE(strstr(error->text, RUN_DIR "/lock cannot be locked: another nodestrap process holds it"));
        close(fd);
        fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag));
        close(fd);
}

TEST(a_released_lock_is_free_although_a_copy_of_the_fd_is_open) {
        BOX(b);
        int fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag)), copy = ASSERT_OK(dup(fd));
        lock_release(&fd);
        ASSERT_EQ(fd, -1);
        fd = ASSERT_OK(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag));
        close(copy);
        lock_release(&fd);
        lock_release(&fd);
}

TEST(a_lock_directory_of_another_user_is_refused) {
        BOX(b);
        _free_ char *path = xasprintf("%s" RUN_DIR, b.path), *other = xasprintf("%s/other", b.path);
        if (geteuid() != 0)
                return;         /* only root can make a directory of another user */
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

static void assert_untouched(const Box *b, const char *victim) {
        _strv_ char **names = NULL;
        ASSERT_OK(root_list(b->root, victim, &names));
        ASSERT_EQ(strv_length(names), EVENTS_MAX);
}

/* The owner has made links in the place of a directory and of a file that root writes. */
TEST(root_changes_nothing_in_a_directory_of_another_user) {
        BOX(b);
        if (geteuid() != 0)
                return;
        for (int i = 0; i < EVENTS_MAX; i++) {
                _free_ char *path = xasprintf("/victim/%02d", i);
                ASSERT_OK(root_replace(b.root, path, "x", 1, 0644));
        }
        ASSERT_OK(root_link(b.root, RUN_DIR "/events", "/victim"));
        ASSERT_OK(root_link(b.root, RUN_DIR "/status.json", "/victim/00"));
        _free_ char *path = xasprintf("%s" RUN_DIR, b.path);
        ASSERT_EQ(chown(path, 1000, 1000), 0);
        progress_note(b.root, "start", "run");
        event_of_join(b.root, &(Verdict){ .word = "failed", .code = cause_word(CAUSE_NOT_REGISTERED), .exit_code = EXIT_NOT_JOINED,
                                          .step = "join", .text = (char *)"none" });
        assert_untouched(&b, "/victim");
        ASSERT_ERROR(root_remove(b.root, RUN_DIR "/events/00"), EPERM);
        ASSERT_ERROR(root_remove_dir(b.root, RUN_DIR "/events"), EPERM);
        ASSERT_ERROR(root_replace_volatile(b.root, RUN_DIR "/joined.json", "", 0, 0644), EPERM);
        ASSERT_ERROR(root_link(b.root, RUN_DIR "/link", "/victim"), EPERM);
        ASSERT_ERROR(root_make_dirs(b.root, RUN_DIR "/events/sub", 0755), EPERM);
        ASSERT_ERROR(root_open(b.root, RUN_DIR "/status.json", O_WRONLY), EPERM);
        ASSERT_ERROR(root_write_value(b.root, RUN_DIR "/status.json", ""), EPERM);
        assert_untouched(&b, "/victim");
        ASSERT_EQ(root_exists(b.root, PROGRESS_FILE), 0);
        _free_ char *text = NULL;
        ASSERT_OK(root_read(b.root, RUN_DIR "/status.json", 16, &text, NULL));  /* reading is allowed */
}

TEST(a_lock_directory_below_a_file_is_an_error) {
        BOX(b);
        ASSERT_OK(root_replace(b.root, "/run", "", 0, 0644));
        ASSERT_ERROR(lock_take(b.root, RUN_DIR "/lock", now_usec(), &b.diag), ENOTDIR);
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_FILE);
}

TEST_MAIN
