/* SPDX-License-Identifier: Apache-2.0
 * The run phase repeats the waits that failed in the devices phase of the same boot, with less time. The
 * tests apply no plan, but make the results themselves. */
#include "apply/engine.h"

#include "base/paths.h"
#include "base/str.h"
#include "base/time.h"
#include "test.h"

#include <ftw.h>
#include <unistd.h>

#define BOOT "/proc/sys/kernel/random/boot_id"
#define FILE_OF_IT RUN_DIR "/devices.json"

/* fabric waits for driver. The first two actions are the devices phase, and kubelet is in the run phase. */
typedef struct Box { char path[32]; Root *root; Plan plan; Action actions[3]; Results results; Apply apply; Diag diag; } Box;

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

static void results_clear(Box *b) {
        tasks_done(&b->apply);
        json_decref(b->apply.waited);
        b->apply = (Apply){};
        results_done(&b->results);
}

static void box_done(Box *b) {
        results_clear(b);
        diag_done(&b->diag);
        for (size_t i = 0; i < 3; i++)
                b->actions[i].after = strv_free(b->actions[i].after);
        root_free(b->root);
        nftw(b->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void box_init(Box *b) {
        *b = (Box){ .path = "/tmp/test-wait-budget.XXXXXX" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new(b->path, &b->root));
        ASSERT_OK(root_replace(b->root, BOOT, "boot-one\n", 9, 0444));
        b->actions[0] = (Action){ .id = (char *)"check-driver:nvidia", .type = ACTION_CHECK_DRIVER, .phase = PHASE_DEVICES,
                                  .deadline_usec = 60 * USEC_PER_SEC };
        b->actions[1] = (Action){ .id = (char *)"await-fabric:fabric", .type = ACTION_AWAIT_FABRIC, .phase = PHASE_DEVICES,
                                  .deadline_usec = 300 * USEC_PER_SEC };
        b->actions[2] = (Action){ .id = (char *)"start-unit:kubelet.service", .type = ACTION_START_UNIT, .phase = PHASE_RUN,
                                  .deadline_usec = 90 * USEC_PER_SEC };
        strv_add(&b->actions[1].after, "check-driver:nvidia");
        b->plan.actions = b->actions;
}
#define BOX(name) _cleanup_(box_done) Box name; box_init(&name)

static void run(Box *b, size_t actions) {
        results_clear(b);
        b->plan.n = actions;
        b->apply = (Apply){ .executors = executors, .root = b->root, .plan = &b->plan, .diag = &b->diag };
        ASSERT_OK(tasks_make(&b->apply, &b->results));
}

/* A devices phase in which the step of the fabric had this outcome after so many seconds. */
static void devices_phase(Box *b, Outcome outcome, bool missed, uint64_t seconds) {
        run(b, 2);
        b->results.items[0].outcome = OUTCOME_DONE;
        b->results.items[0].begin_usec = b->results.items[0].end_usec = 1;
        b->results.items[1] = (Result){ .action = &b->actions[1], .outcome = outcome, .missed = missed, .begin_usec = 5 * USEC_PER_SEC,
                                        .end_usec = (5 + seconds) * USEC_PER_SEC };
        waited_write(b->root, &b->plan, &b->results);
}

/* The seconds that the run phase waits for the fabric if the step of the driver had this outcome. */
static uint64_t run_phase(Box *b, Outcome driver) {
        run(b, 3);
        waited_take(&b->apply);
        ASSERT_EQ(root_exists(b->root, FILE_OF_IT), 0);
        b->results.items[0].outcome = driver;
        waited_grant(&b->apply.tasks[1]);
        return task_limit(&b->apply.tasks[1]) / USEC_PER_SEC;
}

TEST(a_wait_that_used_all_its_time_gets_10_s_more) {
        BOX(b);
        devices_phase(&b, OUTCOME_FAILED, false, 300);
        ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 10);
        ASSERT_EQ(b.apply.tasks[1].waited_usec, 300 * USEC_PER_SEC);
        ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 300);       /* the record is gone, as after a repair */
}

TEST(a_wait_that_ended_with_a_warning_gets_10_s_more) {
        BOX(b);
        devices_phase(&b, OUTCOME_UNCHANGED, true, 298);
        ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 10);
}

TEST(a_wait_that_failed_early_gets_the_rest_of_its_time) {
        BOX(b);
        devices_phase(&b, OUTCOME_FAILED, false, 20);
        ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 280);
}

TEST(a_wait_after_a_change_gets_all_its_time) {
        BOX(b);
        devices_phase(&b, OUTCOME_FAILED, false, 300);
        ASSERT_EQ(run_phase(&b, OUTCOME_DONE), 300);
        ASSERT_EQ(b.apply.tasks[1].waited_usec, 0);
}

TEST(actions_that_do_work_get_all_their_time) {
        static const ActionType types[] = { ACTION_START_UNIT, ACTION_LOAD_MODULE, ACTION_SET_MIG_MODE, ACTION_PARTITION_GPUS,
                                            ACTION_GENERATE_CDI };
        BOX(b);
        for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
                b.actions[1].type = types[i];
                devices_phase(&b, OUTCOME_FAILED, false, 300);
                ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 300);
        }
}

TEST(a_wait_that_succeeds_leaves_no_record) {
        BOX(b);
        devices_phase(&b, OUTCOME_FAILED, false, 300);
        devices_phase(&b, OUTCOME_DONE, false, 30);
        ASSERT_EQ(root_exists(b.root, FILE_OF_IT), 0);
        ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 300);
}

TEST(a_record_of_another_action_another_boot_or_bad_json_is_ignored) {
        static const char *const others[] = { "", "[]", "{\"bootId\": 1, \"steps\": 2}", "{\"bootId\": \"boot-one\", \"steps\": [3, {\"id\": \"await-fabric:fabric\"}]}" };
        BOX(b);
        devices_phase(&b, OUTCOME_FAILED, false, 300);
        b.actions[1].deadline_usec++;
        ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 300);
        devices_phase(&b, OUTCOME_FAILED, false, 300);
        ASSERT_OK(root_replace(b.root, BOOT, "boot-two\n", 9, 0444));
        ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 300);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                ASSERT_OK(root_replace(b.root, FILE_OF_IT, others[i], strlen(others[i]), 0644));
                ASSERT_EQ(run_phase(&b, OUTCOME_UNCHANGED), 300);
        }
}

TEST(the_devices_phase_keeps_the_record_and_a_full_run_removes_it) {
        BOX(b);
        devices_phase(&b, OUTCOME_FAILED, false, 300);
        run(&b, 2);
        waited_take(&b.apply);
        ASSERT_EQ(root_exists(b.root, FILE_OF_IT), 1);
        run(&b, 3);
        b.results.items[1].outcome = OUTCOME_FAILED;
        b.results.items[1].begin_usec = b.results.items[1].end_usec = 1;
        waited_write(b.root, &b.plan, &b.results);
        ASSERT_EQ(root_exists(b.root, FILE_OF_IT), 0);
}

TEST_MAIN
