/* SPDX-License-Identifier: Apache-2.0
 * take-turn between processes: each of them has its own descriptor of the lock until it ends. */
#include "apply/apply.h"
#include "apply/device.h"

#include "base/paths.h"
#include "commands/run.h"
#include "base/str.h"
#include "base/time.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Box { char path[32]; Root *root; Work work; int cancel[2]; } Box;

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

static void box_done(Box *b) {
        root_free(b->root);
        free(b->work.text);
        diag_done(&b->work.warnings);
        close(b->cancel[0]);
        close(b->cancel[1]);
        nftw(b->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void box_init(Box *b) {
        static const Action action = { .type = ACTION_TAKE_TURN };
        *b = (Box){ .path = "/tmp/test-devices-lock.XXXXXX" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new(b->path, &b->root));
        ASSERT_OK(pipe2(b->cancel, O_CLOEXEC));
        b->work = (Work){ .root = b->root, .action = &action, .cancel_fd = b->cancel[0] };
        alarm(60);
}
#define BOX(name) _cleanup_(box_done) Box name; box_init(&name)

static int status_of(pid_t child) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* 0: it was free. */
static int taken(Box *b) {
        int fd = ASSERT_OK(root_open(b->root, DEVICES_LOCK, O_RDWR));
        int r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
        close(fd);
        return r;
}

TEST(it_is_kept_to_the_end_of_the_process) {
        BOX(b);
        int told[2], end[2];
        ASSERT_OK(pipe2(told, O_CLOEXEC));
        ASSERT_OK(pipe2(end, O_CLOEXEC));
        pid_t child = fork();
        if (child == 0) {
                char c = (char)turn_work(&b.work);
                close(end[1]);
                _exit(write(told[1], &c, 1) == 1 && read(end[0], &c, 1) == 0 ? c : 99);
        }
        char c = 1;
        ASSERT_EQ(read(told[0], &c, 1), 1);
        ASSERT_EQ(c, 0);                /* nothing was changed */
        ASSERT_ERROR(taken(&b), EWOULDBLOCK);
        close(end[1]);
        ASSERT_EQ(status_of(child), 0);
        ASSERT_OK(taken(&b));
        close(told[0]), close(told[1]), close(end[0]);
}

/* A thread that the kernel keeps would keep it after the end, too. */
TEST(the_run_lets_go_of_it) {
        BOX(b);
        Results results = {};
        Run run = { .results = &results, .lock_fd = -1, .devices_fd = -1 };
        ASSERT_EQ(turn_work(&b.work), 0);
        results.turn_fd = b.work.turn_fd;
        ASSERT_ERROR(taken(&b), EWOULDBLOCK);
        run_release_locks(&run);
        ASSERT_OK(taken(&b));
}

TEST(another_that_holds_it_is_waited_for) {
        BOX(b);
        ASSERT_OK(root_make_dirs(b.root, RUN_DIR, 0755));
        int fd = ASSERT_OK(root_open(b.root, DEVICES_LOCK, O_RDWR | O_CREAT));
        ASSERT_OK(flock(fd, LOCK_EX));
        pid_t child = fork();
        if (child == 0) {
                close(fd);
                _exit(turn_work(&b.work) == 0 ? 7 : 1);
        }
        ASSERT_EQ(waitpid(child, &(int){ 0 }, WNOHANG), 0);
        close(fd);
        ASSERT_EQ(status_of(child), 7);
}

TEST(until_the_task_is_given_up) {
        BOX(b);
        ASSERT_OK(root_make_dirs(b.root, RUN_DIR, 0755));
        int fd = ASSERT_OK(root_open(b.root, DEVICES_LOCK, O_RDWR | O_CREAT));
        ASSERT_OK(flock(fd, LOCK_EX));
        ASSERT_EQ(write(b.cancel[1], "", 1), 1);
        ASSERT_ERROR(turn_work(&b.work), ECANCELED);
        close(fd);
}

TEST(the_process_of_the_devices_phase_has_it_already) {
        BOX(b);
        b.work.early = true;
        ASSERT_EQ(turn_work(&b.work), 0);
        ASSERT_EQ(root_exists(b.root, DEVICES_LOCK), 0);
}

TEST(a_place_where_it_cannot_be) {
        BOX(b);
        ASSERT_OK(root_replace(b.root, "/run", "", 0, 0644));
        ASSERT_ERROR(turn_work(&b.work), ENOTDIR);
        ASSERT_EQ(b.work.cause, CAUSE_FILE);
        ASSERT_TRUE(strstr(b.work.text, "/run must be a directory"));
}

TEST_MAIN
