/* SPDX-License-Identifier: Apache-2.0
 * Threads of tasks under the real loop. This file defines raid_work() itself, so create-raid does here what a test wants, with
 * the deadlines, signals and ends of apply.c. */
#include "apply/apply.h"
#include "apply/storage.h"

#include "base/str.h"
#include "base/time.h"
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*Function)(Work *w);
static Function functions[4];           /* for the actions "0" to "3" */

int raid_work(Work *w) {
        return functions[w->action->target[0] - '0'](w);
}

typedef struct Box { char path[32]; Root *root; Plan *plan; Results results; Diag diag; } Box;

static void box_done(Box *b) {
        results_done(&b->results);
        diag_done(&b->diag);
        plan_free(b->plan);
        root_free(b->root);
        for (const char *name = "ab"; *name; name++) {
                _free_ char *path = xasprintf("%s/%c", b->path, *name);
                (void)unlink(path);
        }
        rmdir(b->path);
}

static void add(Box *b, Function function) {
        size_t i = b->plan->n++;
        functions[i] = function;
        b->plan->actions = xrealloc(b->plan->actions, b->plan->n, sizeof(Action));
        b->plan->actions[i] = (Action){ .id = xasprintf("create-raid:%zu", i), .type = ACTION_CREATE_RAID, .target = xasprintf("%zu", i),
                                       .storage.state = STEP_MAKE };
}

/* The root is that of the host, because programs can run only there; the tests write nothing to it. */
static void box_init(Box *b, Function function) {
        *b = (Box){ .path = "/tmp/test-work.XXXXXX", .plan = xcalloc(1, sizeof(Plan)) };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new("/", &b->root));
        add(b, function);
        alarm(120);                     /* ends a test that hangs */
}
#define BOX(name, function) _cleanup_(box_done) Box name; box_init(&name, function)

static int apply(Box *b) {
        results_done(&b->results);
        diag_done(&b->diag);
        return apply_plan(b->root, b->plan, &b->results, &b->diag);
}

static const char *outcome(const Box *b, size_t i) {
        return outcome_to_string(b->results.items[i].outcome);
}

static char pipes[2][64];               /* names of two FIFOs, for the programs */
static void pipes_make(const Box *b) {
        for (int i = 0; i < 2; i++) {
                snprintf(pipes[i], sizeof pipes[i], "%s/%c", b->path, 'a' + i);
                ASSERT_OK(mkfifo(pipes[i], 0600));
        }
}

static int shell(Work *w, const char *script) {
        char sh[] = "sh", c[] = "-c";
        _free_ char *text = xstrdup(script);
        char *argv[] = { sh, c, text, sh, pipes[0], pipes[1], NULL };
        return work_run(w, CAUSE_ARRAY, "no array", argv);
}

/* ---- how it ends ---- */

static int changes(_unused_ Work *w) {
        return 1;
}

static int changes_nothing(_unused_ Work *w) {
        return 0;
}

static int fails(Work *w) {
        return work_fail(w, -ENODEV, CAUSE_DISK_ERROR, "%s has no disk", w->action->target);
}

TEST(a_step_is_done_or_unchanged) {
        BOX(b, changes);
        add(&b, changes_nothing);
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "done");
        ASSERT_STREQ(outcome(&b, 1), "unchanged");
}

/* ---- kept descriptors ---- */

static int kept[2];                     /* a pipe: its reader sees when the other end has no holder any more */
static bool is_kept(void) {
        struct pollfd p = { .fd = kept[0] };
        ASSERT_TRUE(poll(&p, 1, 0) >= 0);
        return !(p.revents & POLLHUP);
}

static int keeps(Work *w) {
        work_keep(w, kept[1]);
        return 1;
}

static int is_after_keeping(_unused_ Work *w) {
        ASSERT_TRUE(is_kept());
        return 1;
}

static int fails_after_keeping(Work *w) {
        ASSERT_TRUE(is_kept());
        return work_fail(w, -ENODEV, CAUSE_DISK_ERROR, "no disk");
}

static void check_keeping(Function next, const char *after) {
        BOX(b, keeps);
        add(&b, next);
        strv_add(&b.plan->actions[1].after, "create-raid:0");
        ASSERT_OK(pipe(kept));
        ASSERT_TRUE(is_kept());
        ASSERT_EQ(apply(&b) < 0, next == fails_after_keeping);
        ASSERT_STREQ(outcome(&b, 1), after);
        ASSERT_TRUE(!is_kept());
        close(kept[0]);
}

TEST(a_kept_descriptor_is_open_until_the_last_step) {
        check_keeping(is_after_keeping, "done");
}

TEST(a_kept_descriptor_is_closed_after_a_failure) {
        check_keeping(fails_after_keeping, "failed");
}

static int keeps_and_fails(Work *w) {
        work_keep(w, kept[1]);
        return work_fail(w, -ENODEV, CAUSE_DISK_ERROR, "no disk");
}

TEST(a_kept_descriptor_is_closed_if_the_rest_is_skipped) {
        BOX(b, keeps_and_fails);
        add(&b, changes);
        strv_add(&b.plan->actions[1].after, "create-raid:0");
        ASSERT_OK(pipe(kept));
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(outcome(&b, 1), "skipped");
        ASSERT_TRUE(!is_kept());
        close(kept[0]);
}

TEST(a_failed_step_skips_the_steps_after_it) {
        BOX(b, fails);
        add(&b, changes);
        strv_add(&b.plan->actions[1].after, "create-raid:0");
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(outcome(&b, 0), "failed");
        ASSERT_STREQ(b.results.items[0].text, "0 has no disk");
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_DISK_ERROR);
        ASSERT_STREQ(outcome(&b, 1), "skipped");
}

TEST(a_lenient_step_that_fails_is_a_warning) {
        BOX(b, fails);
        add(&b, changes);
        b.plan->actions[0].lenient = true;
        strv_add(&b.plan->actions[1].after, "create-raid:0");
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "unchanged");
        ASSERT_STREQ(outcome(&b, 1), "done");
        ASSERT_TRUE(!diag_first_error(&b.diag) && diag_count(&b.diag, true) == 1);
        ASSERT_STREQ(b.diag.items[0].code, "create-raid");
        ASSERT_STREQ(b.diag.items[0].text, "0 has no disk");
}

static int knows_its_step(Work *w) {
        const Action *a = w->action;
        ASSERT_TRUE(a->storage.array && a->storage.state == STEP_REPAIR && a->storage.n_moves == 1);
        ASSERT_STREQ(a->id, "create-raid:0");
        ASSERT_STREQ(a->with, "with");
        ASSERT_STREQ(a->storage.disks[1], "d1");
        ASSERT_STREQ(a->storage.serials[0], "s0");
        ASSERT_STREQ(a->storage.blank[0], "d1");
        const char *texts[] = { a->storage.running, a->storage.array_uuid, a->storage.level, a->storage.filesystem, a->storage.uuid, a->storage.source,
                                a->storage.moves[0].from, a->storage.moves[0].name };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                ASSERT_EQ(texts[i][0], 'a' + i);
        ASSERT_TRUE(w->deadline_usec > now_usec());
        return 1;
}

TEST(a_thread_sees_the_whole_step) {
        BOX(b, knows_its_step);
        Action *a = b.plan->actions;
        char **texts[] = { &a->storage.running, &a->storage.array_uuid, &a->storage.level, &a->storage.filesystem, &a->storage.uuid, &a->storage.source };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                *texts[i] = xasprintf("%c", 'a' + (int)i);
        a->with = xstrdup("with");
        a->storage.array = true;
        a->storage.state = STEP_REPAIR;
        strv_add(&a->storage.disks, "d0");
        strv_add(&a->storage.disks, "d1");
        strv_add(&a->storage.serials, "s0");
        strv_add(&a->storage.serials, "s1");
        strv_add(&a->storage.blank, "d1");
        a->storage.moves = xcalloc(1, sizeof(Move));
        a->storage.moves[a->storage.n_moves++] = (Move){ .from = xstrdup("g"), .name = xstrdup("h") };
        ASSERT_OK(apply(&b));
}

TEST(a_kept_or_unknown_step_starts_no_thread) {
        BOX(b, fails);
        b.plan->actions[0].storage.state = STEP_KEEP;
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "unchanged");
        const char *why = "the disks were not read: nobody may";
        b.plan->actions[0].storage.state = STEP_UNKNOWN;
        b.plan->actions[0].why = xstrdup(why);
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(b.results.items[0].text, why);
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_DISKS);
}

TEST(a_disk_without_a_serial_is_not_touched) {
        BOX(b, changes);
        strv_add(&b.plan->actions[0].storage.disks, "nvme1n1");
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "serial");
}

/* ---- programs ---- */

static int runs_well(Work *w) {
        return shell(w, "exit 0") < 0 ? -1 : 1;
}

static int runs_badly(Work *w) {
        return shell(w, "echo first >&2; printf 'the \\033[1mlast\\n' >&2; exit 3");
}

static int dies(Work *w) {
        return shell(w, "kill -SEGV $$");
}

static int is_killed(Work *w) {
        return shell(w, "echo making it >&2; kill -KILL $$");
}

static int runs_nothing(Work *w) {
        char name[] = "mkfs.xfs", *argv[] = { name, NULL }, *path = xstrdup(getenv("PATH"));
        setenv("PATH", "/nonexistent", 1);
        int r = work_run(w, CAUSE_FILESYSTEM, "no file system", argv);
        setenv("PATH", path, 1);
        free(path);
        return r;
}

TEST(a_program_with_exit_status_0_is_a_success) {
        BOX(b, runs_well);
        ASSERT_OK(apply(&b));
}

TEST(a_program_that_fails_is_quoted) {
        BOX(b, runs_badly);
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "no array: sh exited with status 3, last said \"the \\x1b[1mlast\"; dmesg ");
        ASSERT_CONTAINS(b.results.items[0].text, "\nfirst\n");
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_ARRAY);
        ASSERT_TRUE(!strchr(diag_first_error(&b.diag)->text, '\n'));
}

/* As nvidia-smi does. */
static int complains_on_stdout(Work *w) {
        return shell(w, "printf 'GPU 00000000:53:00.0\\nis in use\\n'; printf ' \\n' >&2; exit 2");
}

TEST(an_error_that_a_program_prints_on_stdout_is_quoted) {
        BOX(b, complains_on_stdout);
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "sh exited with status 2, last said \"is in use\"; dmesg ");
        ASSERT_CONTAINS(b.results.items[0].text, "\nGPU 00000000:53:00.0\n");
}

static int floods_stdout(Work *w) {
        return shell(w, "i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i + 1)); done; exit 2");
}

TEST(only_a_part_of_a_long_output_is_kept) {
        BOX(b, floods_stdout);
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "0123456789");
        ASSERT_TRUE(strlen(b.results.items[0].text) < 4096);
}

TEST(the_signal_that_killed_a_program_is_named) {
        BOX(b, dies);
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "sh was killed by signal 11; dmesg");
        BOX(killed, is_killed);
        ASSERT_TRUE(apply(&killed) < 0);
        ASSERT_CONTAINS(killed.results.items[0].text,
                        "sh was killed by signal 9 (from a user, or from the kernel when memory ran out: see journalctl "
                        "-k -g 'oom|out of memory'), last said \"making it\"; dmesg");
}

TEST(a_missing_program_is_an_error_that_names_its_package) {
        BOX(b, runs_nothing);
        SKIP_IF_VFORK_FORKS();
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "no file system: mkfs.xfs is missing; the image needs xfsprogs");
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_STORAGE_TOOL);
}

/* ---- in parallel ---- */

/* Each waits for the other: to open a FIFO waits for its other end. */
static int says_a(Work *w) {
        return shell(w, "echo a >$1; read -r x <$2; [ $x = b ]") < 0 ? -1 : 1;
}

static int says_b(Work *w) {
        return shell(w, "read -r x <$1; [ $x = a ] && echo b >$2") < 0 ? -1 : 1;
}

TEST(two_tasks_run_in_parallel) {
        BOX(b, says_a);
        pipes_make(&b);
        add(&b, says_b);
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "done");
        ASSERT_STREQ(outcome(&b, 1), "done");
}

/* ---- deadlines and signals ---- */

/* Writes that it runs, then holds the FIFO open for as long as it and its child live. */
static int never_ends(Work *w) {
        return shell(w, "exec 3>$1; echo x >&3; sleep 1000 & wait");
}

static bool seen(int fd) {
        char c;
        return read(fd, &c, 1) == 1;
}

TEST(the_deadline_kills_the_program) {
        BOX(b, never_ends);
        pipes_make(&b);
        int fd = ASSERT_OK(open(pipes[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        bool begun = false;
        for (uint64_t limit = 100 * USEC_PER_MSEC; !begun; limit *= 2) {        /* until it starts in time */
                b.plan->actions[0].deadline_usec = limit;
                ASSERT_TRUE(apply(&b) < 0);
                ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_DEADLINE);
                begun = seen(fd);
        }
        ASSERT_CONTAINS(b.results.items[0].text, "was running; dmesg");
        fcntl(fd, F_SETFL, 0);
        while (seen(fd))
                ;
        close(fd);                      /* the end of file: no writer is left */
}

static int is_interrupted(Work *w) {
        return shell(w, "exec 3>$1; echo x >&3; kill -TERM $PPID; sleep 1000 & wait");
}

TEST(a_signal_kills_the_program) {
        BOX(b, is_interrupted);
        sigset_t before;
        pipes_make(&b);
        add(&b, changes);
        strv_add(&b.plan->actions[1].after, "create-raid:0");
        int fd = ASSERT_OK(open(pipes[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        sigprocmask(SIG_BLOCK, NULL, &before);
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(b.results.items[0].text, "stopped by SIGTERM");
        ASSERT_STREQ(outcome(&b, 1), "skipped");
        ASSERT_TRUE(seen(fd));
        fcntl(fd, F_SETFL, 0);
        while (seen(fd))
                ;
        close(fd);
        sigprocmask(SIG_SETMASK, &before, NULL);
}

static int takes_turn(Work *w) {
        w->turn_fd = dup(STDERR_FILENO);
        return 0;
}

TEST(the_caller_gets_the_descriptor_of_the_turn) {
        BOX(b, takes_turn);
        ASSERT_OK(apply(&b));
        ASSERT_TRUE(b.results.turn_fd > STDERR_FILENO);
        close(b.results.turn_fd);
}

/* ---- a thread that hangs ---- */

static int stuck[2], woken[2];          /* what it waits for, what it says then */

static int is_stuck(Work *w) {
        char c;
        work_at(w, "mounting %s", w->action->target);
        ssize_t n = read(stuck[0], &c, 1);
        _free_ char *target = xstrdup(w->action->target);
        int r = work_fail(w, -EIO, CAUSE_MOUNT, "%zd %s %s", n, target, root_path(w->root));
        (void)!write(woken[1], w->text, strlen(w->text));
        return r;
}

TEST(the_run_does_not_wait_for_a_thread_that_hangs) {
        char text[32] = "";
        ASSERT_OK(pipe2(stuck, O_CLOEXEC));
        ASSERT_OK(pipe2(woken, O_CLOEXEC));
        {
                BOX(b, is_stuck);
                b.plan->actions[0].deadline_usec = USEC_PER_SEC;
                ASSERT_TRUE(apply(&b) < 0);
                ASSERT_CONTAINS(b.results.items[0].text, "not done after 1 s; mounting 0; dmesg");
                ASSERT_EQ(b.results.threads_left, 1);
        }
        /* Only this thread has the plan now, and still uses it. */
        ASSERT_EQ(write(stuck[1], "x", 1), 1);
        ASSERT_TRUE(read(woken[0], text, sizeof text - 1) > 0);
        ASSERT_STREQ(text, "1 0 /");
}

/* A disk that hangs stops the loop for longer than the deadline of the other steps, which ended at once. */
TEST(steps_done_in_time_are_done_although_a_disk_stops_the_loop) {
        BOX(b, changes);
        _free_ char *hung = xasprintf("%s/hung", b.path);
        int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        _free_ char *options = xasprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
        ASSERT_EQ(mkdir(hung, 0755), 0);
        if (fd < 0 || mount("test", hung, "fuse", 0, options) < 0) {
                rmdir(hung);
                SKIP("a FUSE of one's own needs root");
        }
        for (int i = 1; i < 4; i++)
                add(&b, changes);
        for (int i = 0; i < 4; i++)
                b.plan->actions[i].deadline_usec = USEC_PER_SEC;
        b.plan->actions = xrealloc(b.plan->actions, b.plan->n + 1, sizeof(Action));
        b.plan->actions[b.plan->n++] = (Action){ .id = xstrdup("write-file:a"), .type = ACTION_WRITE_FILE, .target = xasprintf("%s/a", hung),
                                                .file = { .content = xstrdup("a"), .size = 1, .mode = 0644 }, .deadline_usec = 2 * USEC_PER_SEC };
        ASSERT_TRUE(apply(&b) < 0);
        for (size_t i = 0; i < 4; i++)
                ASSERT_STREQ(outcome(&b, i), "done");
        ASSERT_STREQ(outcome(&b, 4), "failed");
        ASSERT_EQ(diag_count(&b.diag, false), 1);
        close(fd);
        ASSERT_EQ(umount2(hung, MNT_DETACH), 0);
        ASSERT_EQ(rmdir(hung), 0);
}

static pid_t copy_holder;

/* Any thread may fork at any time. A child that executes no program keeps its copies of descriptors. */
static int forks(_unused_ Work *w) {
        copy_holder = fork();
        while (copy_holder == 0)
                pause();
        return copy_holder > 0;
}

static int ends_the_child(_unused_ Work *w) {
        return kill(copy_holder, SIGKILL) == 0 && waitpid(copy_holder, NULL, 0) == copy_holder;
}

TEST(a_child_with_a_copy_of_the_descriptor_does_not_delay_the_end) {
        BOX(b, forks);
        add(&b, ends_the_child);
        strv_add(&b.plan->actions[1].after, b.plan->actions[0].id);
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 1), "done");
        ASSERT_EQ(b.results.threads_left, 0);
}

TEST_MAIN
