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

/* 0: the lock was free. */
static int taken(Box *b) {
        int fd = ASSERT_OK(root_open(b->root, DEVICES_LOCK, O_RDWR));
        int r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
        close(fd);
        return r;
}

TEST(a_process_keeps_the_lock_to_its_end) {
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

/* Otherwise a thread that hangs in the kernel would keep the lock after the end of the run. */
TEST(the_end_of_the_run_releases_the_lock) {
        BOX(b);
        Results results = {};
        Run run = { .results = &results, .lock_fd = -1, .devices_fd = -1 };
        ASSERT_EQ(turn_work(&b.work), 0);
        results.turn_fd = b.work.turn_fd;
        ASSERT_ERROR(taken(&b), EWOULDBLOCK);
        run_release_locks(&run);
        ASSERT_OK(taken(&b));
}

TEST(a_second_process_waits_for_the_lock) {
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

TEST(a_cancelled_task_stops_waiting_for_the_lock) {
        BOX(b);
        ASSERT_OK(root_make_dirs(b.root, RUN_DIR, 0755));
        int fd = ASSERT_OK(root_open(b.root, DEVICES_LOCK, O_RDWR | O_CREAT));
        ASSERT_OK(flock(fd, LOCK_EX));
        ASSERT_EQ(write(b.cancel[1], "", 1), 1);
        ASSERT_ERROR(turn_work(&b.work), ECANCELED);
        close(fd);
}

TEST(the_process_of_the_devices_phase_does_not_take_the_lock) {
        BOX(b);
        b.work.early = true;
        ASSERT_EQ(turn_work(&b.work), 0);
        ASSERT_EQ(root_exists(b.root, DEVICES_LOCK), 0);
}

TEST(a_lock_that_cannot_be_created_is_an_error) {
        BOX(b);
        ASSERT_OK(root_replace(b.root, "/run", "", 0, 0644));
        ASSERT_ERROR(turn_work(&b.work), ENOTDIR);
        ASSERT_EQ(b.work.cause, CAUSE_FILE);
        ASSERT_TRUE(strstr(b.work.text, "/run must be a directory"));
}

TEST_MAIN
