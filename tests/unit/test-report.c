/* SPDX-License-Identifier: Apache-2.0
 * status.json, metrics.prom and `nodestrap status` from results made by hand, below a temporary root. */
#include "files.h"
#include "report/report.h"
#include "report/status.h"

#include "test.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <expat.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOOT "/proc/sys/kernel/random/boot_id"

typedef struct Box { char path[32]; Root *root; Plan plan; Action actions[4]; Result items[4]; Results results; Diag diag; Report report; } Box;

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

static void box_done(Box *b) {
        diag_done(&b->diag);
        diag_done(&b->plan.warnings);
        root_free(b->root);
        nftw(b->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void box_init(Box *b) {
        static char one[] = "write-file:/etc/a", two[] = "start-unit:containerd.service", three[] = "start-unit:kubelet.service", four[] = "restart-unit:x\"y\\z";
        uint64_t now = now_usec();
        *b = (Box){ .path = "/tmp/test-report.XXXXXX", .plan.id = "sha256:0123" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new(b->path, &b->root));
        ASSERT_OK(root_replace(b->root, BOOT, "boot-one\n", 9, 0444));
        char *ids[] = { one, two, three, four };
        for (size_t i = 0; i < 4; i++) {
                b->actions[i].id = ids[i];
                b->items[i] = (Result){ .action = &b->actions[i], .outcome = OUTCOME_DONE, .begin_usec = now - 3000000 + i * 500000, .end_usec = now - 2500000 + i * 500000 };
        }
        b->results = (Results){ b->items, 4 };
        b->report = (Report){ .command = "init", .phases = "run", .begin_usec = now - 4000000, .plan = &b->plan, .results = &b->results, .diag = &b->diag,
                              .imds_requests = 7, .ec2_requests = 1 };
}
#define BOX(name) _cleanup_(box_done) Box name; box_init(&name)

/* Runs f() with stdout or stderr going to a file, and returns what it wrote. */
static char *captured(Box *b, int fd, int (*f)(Box *)) {
        char *text = NULL;
        fflush(stdout);
        int saved = dup(fd);
        _free_ char *path = xasprintf("%s/captured", b->path);
        int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        ASSERT_TRUE(saved >= 0 && file >= 0 && dup2(file, fd) == fd);
        int r = f(b);
        fflush(stdout);
        dup2(saved, fd);
        close(saved);
        close(file);
        ASSERT_OK(r);
        ASSERT_OK(root_read(b->root, "/captured", 1 << 20, &text, NULL));
        return text;
}

static ExitCode last_exit;
static int do_write(Box *b) {
        last_exit = report_write(b->root, &b->report);
        return 0;
}
static int with_status(Box *b, void (*f)(const Status *status)) {
        _cleanup_(status_done) Status status = {};
        int r = status_read(b->root, &status);
        if (r >= 0)
                f(&status);
        return r;
}
static void print_drawing(const Status *status) {
        _free_ char *drawing = status_draw(status);
        fputs(drawing, stdout);
}
static void print_json(const Status *status) {
        json_dumpf(status->json, stdout, JSON_INDENT(2));
}
static void print_metrics(const Status *status) {
        _free_ char *metrics = metrics_make(status, true);
        fputs(metrics, stdout);
}
static int do_show(Box *b) {
        _cleanup_(status_done) Status status = {};
        int r = status_read(b->root, &status);
        if (r >= 0)
                status_show(b->root, &status, true);
        return r;
}
static int do_draw(Box *b) {
        return with_status(b, print_drawing);
}
static int do_show_json(Box *b) {
        return with_status(b, print_json);
}
static int do_show_metrics(Box *b) {
        return with_status(b, print_metrics);
}

static char *file_text(const Box *b, const char *path) {
        char *text = NULL;
        ASSERT_OK(root_read(b->root, path, 1 << 20, &text, NULL));
        return text;
}

static json_t *status_of(const Box *b) {
        _free_ char *text = file_text(b, REPORT_STATUS);
        json_t *status = json_loads(text, 0, NULL);
        ASSERT_TRUE(status);
        return status;
}

static const char *word(json_t *object, const char *key) {
        return json_string_value(json_object_get(object, key));
}

TEST(a_successful_run_is_ok) {
        BOX(b);
        b.items[0].outcome = OUTCOME_UNCHANGED;
        b.report.phases = "config,devices,run";
        _free_ char *said = captured(&b, STDERR_FILENO, do_write);
        ASSERT_EQ(last_exit, 0);
        ASSERT_CONTAINS(said, "nodestrap: ok: 3 done, 1 unchanged (config,devices,run");
        json_t *status = status_of(&b), *run = json_object_get(json_object_get(status, "runs"), "config,devices,run");
        ASSERT_STREQ(word(status, "verdict"), "ok");
        ASSERT_STREQ(word(status, "code"), "OK");
        ASSERT_STREQ(word(status, "planId"), "sha256:0123");
        ASSERT_STREQ(word(status, "bootId"), "boot-one");
        ASSERT_TRUE(json_is_null(json_object_get(status, "step")));
        ASSERT_EQ(json_array_size(json_object_get(run, "actions")), 4);
        ASSERT_EQ(json_integer_value(json_object_get(json_object_get(run, "requests"), "imds")), 7);
        json_decref(status);
}

TEST(the_message_says_that_nothing_changed) {
        BOX(b);
        for (size_t i = 0; i < 4; i++)
                b.items[i].outcome = OUTCOME_UNCHANGED;
        _free_ char *said = captured(&b, STDERR_FILENO, do_write);
        ASSERT_CONTAINS(said, "nothing to change, 4 unchanged");
        b.results.n = 0;
        _free_ char *none = captured(&b, STDERR_FILENO, do_write);
        ASSERT_CONTAINS(none, "nothing to do (");
}

TEST(the_first_failure_in_time_is_the_root_cause) {
        BOX(b);
        static char early[] = "containerd.service did not stay up: status 1\nsaid this\nand that", later[] = "because of it";
        b.items[1] = (Result){ .action = &b.actions[1], .outcome = OUTCOME_FAILED, .cause = CAUSE_UNIT, .end_usec = 100, .text = early };
        b.items[0] = (Result){ .action = &b.actions[0], .outcome = OUTCOME_FAILED, .cause = CAUSE_FILE, .end_usec = 200, .text = later };
        (void)diag_error_at(&b.diag, -EIO, CAUSE_UNIT, NULL, b.actions[1].id, "%s", early);
        _free_ char *said = captured(&b, STDERR_FILENO, do_write);
        ASSERT_EQ(last_exit, 50);
        const char *last = strstr(said, "nodestrap: failed (50 EUNIT) at start-unit:containerd.service: containerd.service did not stay up: status 1\n");
        ASSERT_TRUE(last);
        ASSERT_EQ(strcspn(last, "\n") + 1, strlen(last));       /* the last line, alone */
        ASSERT_TRUE(!strstr(said, "said this"));
        json_t *status = status_of(&b);
        ASSERT_STREQ(word(status, "verdict"), "failed");
        ASSERT_STREQ(word(status, "step"), "start-unit:containerd.service");
        ASSERT_EQ(json_integer_value(json_object_get(status, "exit")), 50);
        json_decref(status);
}

TEST(an_error_before_the_plan_has_its_step_and_position) {
        BOX(b);
        b.report.plan = NULL;
        b.report.results = NULL;
        b.report.step = "validate";
        (void)diag_error_at(&b.diag, -EINVAL, CAUSE_INVALID, &(Position){ .source = "user-data", .part = 2, .line = 14 }, "spec.cluster.cidr", "is not a range");
        _free_ char *said = captured(&b, STDERR_FILENO, do_write);
        ASSERT_EQ(last_exit, 11);
        ASSERT_CONTAINS(said, "nodestrap: failed (11 EINVALID) at validate: user-data, part 2, line 14: spec.cluster.cidr: is not a range");
        _free_ char *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown, "failed (11 EINVALID) at validate in the run phase:");
}

TEST(status_keeps_both_phases_and_a_failure_of_the_first) {
        BOX(b);
        b.report.phases = "config";
        (void)diag_error(&b.diag, -EIO, CAUSE_IMDS, "no answer");
        free(captured(&b, STDERR_FILENO, do_write));
        diag_done(&b.diag);
        b.report.phases = "run";
        free(captured(&b, STDERR_FILENO, do_write));
        ASSERT_EQ(last_exit, 0);                                /* the exit status of this process */
        json_t *status = status_of(&b);
        ASSERT_EQ(json_object_size(json_object_get(status, "runs")), 2);
        ASSERT_STREQ(word(status, "verdict"), "failed");        /* the verdict of the boot */
        ASSERT_STREQ(word(status, "code"), "EIMDS");
        json_decref(status);
        b.report.phases = "config";
        free(captured(&b, STDERR_FILENO, do_write));
        status = status_of(&b);
        ASSERT_STREQ(word(status, "verdict"), "unfinished");    /* no run has done the devices */
        json_decref(status);
        b.report.phases = "config,devices,run";                 /* all phases at once, by hand: this run replaces both */
        free(captured(&b, STDERR_FILENO, do_write));
        status = status_of(&b);
        ASSERT_EQ(json_object_size(json_object_get(status, "runs")), 1);
        json_decref(status);
}

static void fail_phase(Box *b, size_t action, Phase phase) {
        static char why[] = "for a reason";
        b->actions[action].phase = phase;
        b->items[action] = (Result){ .action = &b->actions[action], .outcome = OUTCOME_FAILED, .cause = CAUSE_UNIT, .text = why, .end_usec = 1 };
}

static void write_phases(Box *b, const char *phases) {
        b->report.phases = phases;
        free(captured(b, STDERR_FILENO, do_write));
}

static void assert_boot(const Box *b, const char *runs, const char *verdict) {
        _cleanup_(json_decrefp) json_t *status = status_of(b);
        _strv_ char **keys = NULL;
        const char *key;
        json_t *run;
        json_object_foreach(json_object_get(status, "runs"), key, run) {
                strv_add(&keys, key);
        }
        _free_ char *all = strv_join(keys, " ");
        ASSERT_STREQ(all, runs);
        ASSERT_STREQ(word(status, "verdict"), verdict);
}

TEST(the_last_run_of_a_phase_decides_its_verdict) {
        BOX(b);
        write_phases(&b, "config");
        fail_phase(&b, 1, PHASE_DEVICES);
        write_phases(&b, "devices");
        assert_boot(&b, "config devices", "failed");
        b.items[1].outcome = OUTCOME_DONE;
        write_phases(&b, "devices,run");                        /* a user script has repaired it */
        assert_boot(&b, "config devices devices,run", "ok");
        fail_phase(&b, 2, PHASE_RUN);
        write_phases(&b, "devices,run");
        b.items[2].outcome = OUTCOME_DONE;
        write_phases(&b, "devices");                            /* one more run by hand does not change the run phase */
        assert_boot(&b, "config devices,run devices", "failed");
        write_phases(&b, "run");
        assert_boot(&b, "config devices,run devices run", "ok");
        b.report.results = NULL;                                /* the run failed before its first action */
        (void)diag_error(&b.diag, -EIO, CAUSE_IMDS, "no answer");
        write_phases(&b, "devices,run");
        assert_boot(&b, "config devices devices,run", "failed");
        diag_done(&b.diag);
        b.report.results = &b.results;
        write_phases(&b, "config,devices,run");
        assert_boot(&b, "config,devices,run", "ok");
}

TEST(disk_and_configuration_errors_belong_to_the_run_phase) {
        BOX(b);
        write_phases(&b, "devices");
        b.report.results = NULL;
        (void)diag_error(&b.diag, -EINVAL, CAUSE_DISKS, "a disk is missing");
        write_phases(&b, "devices,run");
        _free_ char *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown, "failed (30 EDISKS) at start in the run phase:\n");
        ASSERT_CONTAINS(shown, "\nphases: config not begun, devices ok ");
        diag_done(&b.diag);
        (void)diag_error(&b.diag, -EINVAL, CAUSE_INVALID, "as is what an edit has made of the configuration since");
        write_phases(&b, "devices,run");
        free(shown);
        shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown, "failed (11 EINVALID) at start in the run phase:\n");
        ASSERT_CONTAINS(shown, ", devices ok ");
        ASSERT_CONTAINS(shown, ", run failed");
        diag_done(&b.diag);
        (void)diag_error(&b.diag, -EINVAL, CAUSE_DISKS, "a disk is missing");
        write_phases(&b, "config,devices,run");
        free(shown);
        shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown, "\nphases: config held, devices held, run failed\n");
        diag_done(&b.diag);
}

TEST(a_step_that_ran_twice_is_counted_once) {
        BOX(b);
        write_phases(&b, "devices");
        for (size_t i = 0; i < 4; i++)
                b.items[i].outcome = OUTCOME_UNCHANGED;
        fail_phase(&b, 3, PHASE_RUN);
        write_phases(&b, "devices,run");
        _free_ char *shown = captured(&b, STDOUT_FILENO, do_show), *text = file_text(&b, REPORT_METRICS);
        ASSERT_CONTAINS(shown, "3 done, 0 unchanged, 0 skipped, 1 failed\n");
        ASSERT_CONTAINS(text, "nodestrap_actions{outcome=\"done\"} 3\n");
        _free_ char *all = captured(&b, STDOUT_FILENO, do_show_metrics);
        ASSERT_CONTAINS(all, "nodestrap_action_duration_seconds{phase=\"devices\",action=\"write-file:/etc/a\"}");
        ASSERT_CONTAINS(all, "nodestrap_action_duration_seconds{phase=\"devices,run\",action=\"write-file:/etc/a\"}");
}

/* If several processes write their parts at once, all parts are there. */
TEST(parallel_writers_lose_no_part_of_the_status) {
        static const char *const phases[] = { "config", "devices", "run" };
        BOX(b);
        pid_t children[ARRAY_SIZE(phases)];
        fflush(NULL);
        for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
                children[i] = fork();
                if (children[i] == 0) {
                        b.report.phases = phases[i];
                        _exit((int)report_write(b.root, &b.report));
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
                int status;
                ASSERT_EQ(waitpid(children[i], &status, 0), children[i]);
                ASSERT_EQ(status, 0);
        }
        _cleanup_(json_decrefp) json_t *status = status_of(&b);
        ASSERT_EQ(json_object_size(json_object_get(status, "runs")), ARRAY_SIZE(phases));
}

TEST(another_boot_starts_a_new_status) {
        BOX(b);
        b.report.phases = "config";
        free(captured(&b, STDERR_FILENO, do_write));
        ASSERT_OK(root_replace(b.root, BOOT, "boot-two\n", 9, 0444));
        b.report.phases = "run";
        free(captured(&b, STDERR_FILENO, do_write));
        json_t *status = status_of(&b);
        ASSERT_EQ(json_object_size(json_object_get(status, "runs")), 1);
        ASSERT_STREQ(word(status, "bootId"), "boot-two");
        json_decref(status);
}

TEST(a_broken_status_is_replaced) {
        static const char *const broken[] = { "", "[]", "{\"bootId\": 1, \"runs\": []}", "{\"bootId\": \"boot-one\", \"runs\": {\"config\": 3}}" };
        for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
                BOX(b);
                ASSERT_OK(root_replace(b.root, REPORT_STATUS, broken[i], strlen(broken[i]), 0644));
                free(captured(&b, STDERR_FILENO, do_write));
                ASSERT_EQ(last_exit, 0);
                free(captured(&b, STDOUT_FILENO, do_show));
        }
}

/* A downgrade to this version between two phases of a boot: the rule of status.h. */
TEST(a_status_of_a_newer_version_keeps_its_members) {
        static const char newer[] = "{\"version\": 99, \"bootId\": \"boot-one\", \"weather\": \"fine\", \"runs\": {\"config\": {\"verdict\": \"failed\", "
                                    "\"code\": \"EMOON\", \"exit\": 99, \"phase\": \"config\", \"moon\": {\"full\": true}, \"actions\": [{\"id\": \"x\", \"outcome\": \"eclipsed\"}]}}}";
        BOX(b);
        ASSERT_OK(root_replace(b.root, REPORT_STATUS, newer, strlen(newer), 0644));
        free(captured(&b, STDOUT_FILENO, do_show));
        free(captured(&b, STDERR_FILENO, do_write));
        _cleanup_(json_decrefp) json_t *status = status_of(&b);
        json_t *config = json_object_get(json_object_get(status, "runs"), "config");
        ASSERT_TRUE(json_is_true(json_object_get(json_object_get(config, "moon"), "full")));
        ASSERT_STREQ(word(status, "code"), "EMOON");            /* its failure is not lost */
        ASSERT_STREQ(word(status, "version"), status_version);    /* the last writer is known */
        free(captured(&b, STDOUT_FILENO, do_show));
}

TEST(metrics_have_the_figures_of_the_boot) {
        BOX(b);
        b.items[1].outcome = OUTCOME_SKIPPED;
        write_phases(&b, "config,devices");
        b.report.tries = 2;
        write_phases(&b, "run");
        _free_ char *text = file_text(&b, REPORT_METRICS);
        ASSERT_CONTAINS(text, "nodestrap_tries{phase=\"config,devices\"} 1\nnodestrap_tries{phase=\"run\"} 2\n");
        ASSERT_CONTAINS(text, "nodestrap_verdict{verdict=\"ok\",code=\"OK\",step=\"\"} 1\n");
        ASSERT_CONTAINS(text, "nodestrap_phase_duration_seconds{phase=\"run\"} 4.0");
        ASSERT_TRUE(!strstr(text, "action="));                  /* a hundred series for each node */
        _free_ char *all = captured(&b, STDOUT_FILENO, do_show_metrics);
        ASSERT_CONTAINS(all, "nodestrap_action_duration_seconds{phase=\"run\",action=\"write-file:/etc/a\"} 0.500000\n");
        ASSERT_CONTAINS(all, ",action=\"restart-unit:x\\\"y\\\\z\"}");
        ASSERT_CONTAINS(text, "nodestrap_phase_verdict{phase=\"config\",verdict=\"ok\"} 1\nnodestrap_phase_verdict{phase=\"devices\",verdict=\"ok\"} 1\n");
        ASSERT_CONTAINS(text, "\nnodestrap_last_run_timestamp_seconds 1");
        ASSERT_CONTAINS(text, "\nnodestrap_boot_timestamp_seconds 1");
        ASSERT_CONTAINS(text, "\nnodestrap_critical_path_seconds{part=\"config\"} 0.500000\n");
        ASSERT_CONTAINS(text, "\nnodestrap_kubelet_started_seconds ");
        ASSERT_CONTAINS(text, "nodestrap_actions{outcome=\"done\"} 3\n");
        ASSERT_CONTAINS(text, "nodestrap_actions{outcome=\"skipped\"} 1\n");
        ASSERT_CONTAINS(text, "nodestrap_requests{phase=\"run\",service=\"imds\"} 7\n");
        ASSERT_TRUE(file_is(b.root, REPORT_METRICS, text, strlen(text), 0644));
}

TEST(equal_warnings_of_plan_and_run_are_kept_once) {
        BOX(b);
        diag_warn(&b.plan.warnings, "unused", "a disk");
        diag_warn(&b.diag, "unused", "a disk");
        diag_warn_at(&b.diag, "other", NULL, "spec.x", "text");
        free(captured(&b, STDERR_FILENO, do_write));
        json_t *status = status_of(&b), *run = json_object_get(json_object_get(status, "runs"), "run");
        ASSERT_EQ(json_array_size(json_object_get(run, "warnings")), 2);
        json_decref(status);
}

TEST(status_prints_text_and_json) {
        BOX(b);
        static char why[] = "containerd.service did not stay up\nsaid this";
        b.items[1].outcome = OUTCOME_FAILED;
        b.items[1].cause = CAUSE_UNIT;
        b.items[1].text = why;
        free(captured(&b, STDERR_FILENO, do_write));
        _free_ char *shown = captured(&b, STDOUT_FILENO, do_show), *json = captured(&b, STDOUT_FILENO, do_show_json);
        ASSERT_CONTAINS(shown, "failed (50 EUNIT) at start-unit:containerd.service in the config phase:\n  containerd.service did not stay up\n  said this\n");
        ASSERT_CONTAINS(shown, "3 done, 0 unchanged, 0 skipped, 1 failed");
        ASSERT_CONTAINS(shown, "1.00 s   500.0 ms  done       |     ====");
        ASSERT_CONTAINS(json, "\"verdict\": \"failed\"");
}

/* The fabric did not come, and mark-node has told kubelet. */
static void box_taint(Box *b) {
        static char why[] = "GPU 3 of 8 still In Progress after 300 s", fabric[] = "await-fabric:fabric", taint[] = "mark-node:x", file[] = TAINT_FILE,
                    kubelet[] = "kubelet.service", other[] = "else", *after[] = { fabric, NULL };
        b->actions[0] = (Action){ .id = fabric, .type = ACTION_AWAIT_FABRIC, .target = other };
        b->actions[1] = (Action){ .id = taint, .type = ACTION_MARK_NODE, .target = file, .after_any = after };
        b->actions[2] = (Action){ .id = b->actions[2].id, .type = ACTION_START_UNIT, .target = kubelet };
        b->actions[3] = (Action){ .id = b->actions[3].id, .type = ACTION_RESTART_UNIT, .target = other };
        b->items[0].outcome = OUTCOME_FAILED;
        b->items[0].cause = CAUSE_FABRIC;
        b->items[0].text = why;
        b->items[1].found = json_pack("{s:s}", "taint", "EFABRIC");
        (void)diag_error_at(&b->diag, -EIO, CAUSE_FABRIC, NULL, fabric, "%s", why);
}

TEST(a_tolerated_failure_has_the_verdict_tainted) {
        BOX(b);
        box_taint(&b);
        _free_ char *said = captured(&b, STDERR_FILENO, do_write), *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_EQ(last_exit, 0);
        ASSERT_CONTAINS(said, "nodestrap: tainted (33 EFABRIC) at await-fabric:fabric: GPU 3 of 8 still In Progress after 300 s\n");
        ASSERT_CONTAINS(shown, "tainted (33 EFABRIC) at await-fabric:fabric in the config phase:\n");
        _cleanup_(json_decrefp) json_t *status = status_of(&b);
        ASSERT_STREQ(word(status, "verdict"), "tainted");
        ASSERT_STREQ(word(status, "code"), "EFABRIC");
        ASSERT_EQ(json_integer_value(json_object_get(status, "exit")), 33);
        _free_ char *metrics = file_text(&b, REPORT_METRICS);
        ASSERT_CONTAINS(metrics, "nodestrap_tainted 1\n");
        ASSERT_CONTAINS(metrics, "nodestrap_verdict{verdict=\"tainted\",code=\"EFABRIC\",step=\"await-fabric:fabric\"} 1\n");
        json_decref(b.items[1].found);
}

TEST(a_failure_that_the_taint_does_not_cover_stays_a_failure) {
        for (int i = 0; i < 4; i++) {
                BOX(b);
                box_taint(&b);
                json_t *found = b.items[1].found;
                if (i == 0)
                        b.items[1].found = NULL;                /* hold: nothing was written */
                else if (i == 1)
                        b.items[2].outcome = OUTCOME_SKIPPED;   /* kubelet was not started */
                else if (i == 2)
                        b.items[2].action = &b.actions[3];      /* kubelet is not in the plan */
                else {
                        b.items[3].outcome = OUTCOME_FAILED;    /* mark-node did not look at this step */
                        b.items[3].cause = CAUSE_UNIT;
                        b.items[3].text = b.items[0].text;
                }
                free(captured(&b, STDERR_FILENO, do_write));
                ASSERT_EQ(last_exit, 33);
                json_decref(found);
        }
}

TEST(a_failed_join_with_a_taint_is_explained) {
        static char why[] = "GPU 3 is not well\nits words", node[] = "Node n exists without the taint", key[] = TAINT_KEY;
        BOX(b);
        box_taint(&b);
        json_decref(b.items[1].found);
        b.items[0].text = why;
        b.items[1] = (Result){ .action = b.items[1].action, .outcome = OUTCOME_SKIPPED };
        b.items[2].outcome = OUTCOME_SKIPPED;
        b.actions[3] = (Action){ .id = b.actions[3].id, .type = ACTION_CHECK_NODE, .target = key };
        b.items[3].outcome = OUTCOME_FAILED;
        b.items[3].cause = CAUSE_NOT_REGISTERED;
        b.items[3].text = node;
        b.items[3].end_usec = b.items[0].end_usec + 1;
        _free_ char *said = captured(&b, STDERR_FILENO, do_write);
        ASSERT_EQ(last_exit, 33);
        ASSERT_CONTAINS(said, "nodestrap: failed (33 EFABRIC) at await-fabric:fabric: GPU 3 is not well; and the node cannot join with a taint: "
                              "Node n exists without the taint");
        ASSERT_TRUE(!strstr(said, "its words"));
        _free_ char *status = file_text(&b, REPORT_STATUS);
        ASSERT_CONTAINS(status, "\\nits words");
        ASSERT_TRUE(file_is(b.root, REPORT_STATUS, status, strlen(status), 0640));
}

TEST(a_failed_phase_weighs_more_than_a_tainted_one) {
        BOX(b);
        b.report.phases = "config";
        box_taint(&b);
        free(captured(&b, STDERR_FILENO, do_write));
        b.report.phases = "run";
        b.actions[2].phase = PHASE_RUN;
        b.items[2].outcome = OUTCOME_FAILED;
        b.items[2].cause = CAUSE_UNIT;
        b.items[2].text = b.items[0].text;
        b.items[2].end_usec = 1;
        free(captured(&b, STDERR_FILENO, do_write));
        _cleanup_(json_decrefp) json_t *status = status_of(&b);
        ASSERT_STREQ(word(status, "code"), "EUNIT");
        json_decref(b.items[1].found);
}

TEST(facts_of_all_steps_are_shown_together) {
        static const ActionType types[] = { ACTION_CHECK_DRIVER, ACTION_LIST_GPUS, ACTION_AWAIT_FABRIC, ACTION_RESERVE_PAGES };
        static char ids[][24] = { "check-driver:nvidia", "list-gpus:nvidia-smi", "await-fabric:fabric", "reserve-pages:2Mi" };
        static const char *const found[] = {
                "{\"version\": \"580.82.07\"}", "{\"gpus\": 2, \"migDevices\": 0}",
                "{\"clusterUuid\": \"7b968a6d\", \"cliqueId\": 1, \"seconds\": 28.5, \"gpus\": [{\"index\": 1, \"state\": \"In Progress\"}, {\"index\": 0, \"state\": \"Completed\"}]}",
                "{\"requested\": 5128, \"got\": 5000, \"size\": 2097152, \"node\": 1}",
        };
        BOX(b);
        for (size_t i = 0; i < 4; i++) {
                b.actions[i] = (Action){ .id = ids[i], .type = types[i], .target = ids[i] };
                b.items[i].found = json_loads(found[i], 0, NULL);
        }
        write_phases(&b, "devices");
        write_phases(&b, "devices,run");                        /* found again */
        _free_ char *metrics = file_text(&b, REPORT_METRICS), *shown = captured(&b, STDOUT_FILENO, do_show), *status = file_text(&b, REPORT_STATUS);
        ASSERT_CONTAINS(metrics, "nodestrap_fabric_info{cluster_uuid=\"7b968a6d\",clique_id=\"1\"} 1\n");
        ASSERT_CONTAINS(metrics, "nodestrap_gpus{state=\"Completed\"} 1\n");
        ASSERT_CONTAINS(metrics, "nodestrap_gpus{state=\"In Progress\"} 1\n");
        ASSERT_CONTAINS(metrics, "nodestrap_gpus_listed 2\n");
        ASSERT_CONTAINS(metrics, "nodestrap_hugepages{size=\"2Mi\",node=\"1\",kind=\"got\"} 5000\n");
        ASSERT_CONTAINS(metrics, "nodestrap_tainted 0\n");
        ASSERT_CONTAINS(shown, "\nGPUs: 2 listed, driver 580.82.07, 1 in fabric state In Progress, 1 in fabric state Completed, clique 7b968a6d.1\n");
        ASSERT_CONTAINS(shown, "\nhuge pages: 5000 of 5128 (2Mi on node 1)\n");
        ASSERT_CONTAINS(status, "\"found\": {");
        ASSERT_CONTAINS(status, "\"driver\": \"580.82.07\"");
        for (size_t i = 0; i < 4; i++)
                json_decref(b.items[i].found);
}

TEST(gpus_without_an_answer_are_not_counted) {
        static char fabric[] = "await-fabric:fabric", driver[] = "check-driver:nvidia";
        BOX(b);
        b.actions[0] = (Action){ .id = fabric, .type = ACTION_AWAIT_FABRIC, .target = fabric };
        b.items[0].found = json_loads("{\"clusterUuid\": null, \"cliqueId\": null, \"seconds\": 0.1, \"gpus\": []}", 0, NULL);
        free(captured(&b, STDERR_FILENO, do_write));
        _free_ char *nothing = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_TRUE(!strstr(nothing, "GPUs"));
        b.actions[1] = (Action){ .id = driver, .type = ACTION_CHECK_DRIVER, .target = driver };
        b.items[1].found = json_loads("{\"version\": \"580.82.07\"}", 0, NULL);
        free(captured(&b, STDERR_FILENO, do_write));
        _free_ char *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown, "\nGPUs: driver 580.82.07\n");
        json_decref(b.items[0].found);
        json_decref(b.items[1].found);
}

static void health_is(Box *b, const char *phases, const char *found) {
        static char health[] = "check-health:gpus";
        b->report.phases = phases;
        b->actions[0] = (Action){ .id = health, .type = ACTION_CHECK_HEALTH, .target = health };
        b->items[0].found = found ? json_loads(found, 0, NULL) : NULL;
        ASSERT_EQ(!found, !b->items[0].found);
        free(captured(b, STDERR_FILENO, do_write));
        json_decref(TAKE_PTR(b->items[0].found));
}
#define LOOKS "\"looks\": [\"recovery\", \"nvlink\"], "
#define WELL(gpu, address) "{\"index\": " gpu ", \"address\": \"" address "\", \"health\": []}"

TEST(gpu_health_is_in_status_and_metrics) {
        BOX(b);
        health_is(&b, "devices", "{" LOOKS "\"complete\": true, \"findings\": ["
                  "{\"word\": \"nvlink-down\", \"address\": \"0000:86:00.0\", \"gpu\": 1, \"unusable\": false, \"text\": \"GPU 1 (0000:86:00.0): two are down\"},"
                  "{\"word\": \"nvlink-down\", \"address\": \"0000:86:00.0\", \"gpu\": 1, \"unusable\": false, \"text\": \"GPU 1 (0000:86:00.0): and two more\"},"
                  "{\"word\": \"efa-port\", \"address\": \"0000:4f:00.0\", \"unusable\": false, \"text\": \"0000:4f:00.0: not active\"}],"
                  "\"gpudirect\": \"no, nvidia_peermem is not loaded\", \"gpus\": [" WELL("0", "0000:53:00.0") ","
                  "{\"index\": 1, \"address\": \"0000:86:00.0\", \"health\": [\"nvlink-down\"]}]}");
        _free_ char *metrics = file_text(&b, REPORT_METRICS), *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown, "\nHealth: 3 findings\n  nvlink-down: GPU 1 (0000:86:00.0): two are down\n  nvlink-down: GPU 1 (0000:86:00.0): and two more\n"
                               "  efa-port: 0000:4f:00.0: not active\nGPUDirect: no, nvidia_peermem is not loaded\n");
        ASSERT_CONTAINS(metrics, "# TYPE nodestrap_gpu_health gauge\n"
                                 "nodestrap_gpu_health{gpu=\"1\",address=\"0000:86:00.0\",word=\"nvlink-down\"} 1\n"
                                 "nodestrap_gpu_health{gpu=\"\",address=\"0000:4f:00.0\",word=\"efa-port\"} 1\n#");
        ASSERT_CONTAINS(metrics, "\nnodestrap_gpu_healthy{gpu=\"0\",address=\"0000:53:00.0\"} 1\n"
                                 "nodestrap_gpu_healthy{gpu=\"1\",address=\"0000:86:00.0\"} 0\n");
        ASSERT_CONTAINS(metrics, "\nnodestrap_gpudirect 0\n");
        _cleanup_(json_decrefp) json_t *status = status_of(&b);
        const json_t *health = json_object_get(json_object_get(status, "accelerator"), "health");
        ASSERT_EQ(json_array_size(json_object_get(health, "findings")), 3);

        health_is(&b, "run", "{" LOOKS "\"complete\": true, \"findings\": [], \"gpudirect\": \"yes, by dma-buf\", \"gpus\": [" WELL("0", "0000:53:00.0") "," WELL("1", "0000:86:00.0") "]}");
        _free_ char *later = file_text(&b, REPORT_METRICS), *shown_later = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown_later, "\nHealth: good, checked recovery, nvlink\nGPUDirect: yes, by dma-buf\n");
        ASSERT_CONTAINS(later, "nodestrap_gpu_healthy{gpu=\"1\",address=\"0000:86:00.0\"} 1\n");
        ASSERT_CONTAINS(later, "\nnodestrap_gpudirect 1\n");
        ASSERT_TRUE(!strstr(later, "nodestrap_gpu_health{"));
}

#define TESTED(n, address, memory) "{\"index\": " n ", \"address\": \"" address "\", \"prove\": {\"bytesTested\": 85899345920, \"memoryBytesPerSecond\": " memory ", \"linkBytesPerSecond\": 390000000000}}"

TEST(gpu_test_results_are_in_status_and_metrics) {
        static char prove[] = "prove-gpus:gpus";
        BOX(b);
        b.actions[0] = (Action){ .id = prove, .type = ACTION_PROVE_GPUS, .target = prove };
        b.items[0].found = json_loads("{\"gpus\": [" TESTED("0", "0000:53:00.0", "3000000000000") "," TESTED("1", "0000:86:00.0", "2500000000000") "],"
                  "\"prove\": {\"complete\": true, \"links\": [], \"findings\": [{\"word\": \"slow-memory\", \"address\": \"0000:86:00.0\", \"gpu\": 1, \"text\": \"GPU 1: slow\"}]}}", 0, NULL);
        ASSERT_TRUE(b.items[0].found);
        free(captured(&b, STDERR_FILENO, do_write));
        json_decref(TAKE_PTR(b.items[0].found));
        _free_ char *metrics = file_text(&b, REPORT_METRICS), *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown, "\nTest: with findings\n  slow-memory: GPU 1: slow\n  160.0 GiB of GPU memory, memory 2500 to 3000 GB/s, link 390 to 390 GB/s\n");
        ASSERT_CONTAINS(metrics, "\nnodestrap_gpu_prove{gpu=\"1\",address=\"0000:86:00.0\",word=\"slow-memory\"} 1\n");
        ASSERT_CONTAINS(metrics, "\nnodestrap_gpu_prove_tested_bytes{gpu=\"0\",address=\"0000:53:00.0\"} 85899345920\n");
        ASSERT_CONTAINS(metrics, "\nnodestrap_gpu_prove_bytes_per_second{gpu=\"1\",address=\"0000:86:00.0\",kind=\"memory\"} 2500000000000\n");
}

/* The devices phase found all GPUs good. Since then one is lost, and NVML lists none. */
TEST(earlier_good_health_is_dropped_after_a_failure) {
        static char health[] = "check-health:gpus", silent[] = "it did not answer";
        BOX(b);
        health_is(&b, "devices", "{" LOOKS "\"complete\": true, \"findings\": [], \"gpus\": [" WELL("0", "0000:53:00.0") "," WELL("1", "0000:86:00.0") "]}");
        _free_ char *before = file_text(&b, REPORT_METRICS);
        ASSERT_CONTAINS(before, "nodestrap_gpu_healthy{gpu=\"1\",address=\"0000:86:00.0\"} 1\n");
        health_is(&b, "run", "{" LOOKS "\"complete\": false, \"findings\": [{\"word\": \"off-the-bus\", \"address\": \"\", \"unusable\": true, \"text\": \"one is lost\"}], \"gpus\": []}");
        _free_ char *lost = file_text(&b, REPORT_METRICS);
        ASSERT_CONTAINS(lost, "nodestrap_gpu_health{gpu=\"\",address=\"\",word=\"off-the-bus\"} 1\n");
        ASSERT_TRUE(!strstr(lost, "nodestrap_gpu_healthy{"));

        health_is(&b, "devices", "{" LOOKS "\"complete\": true, \"findings\": [], \"gpus\": [" WELL("0", "0000:53:00.0") "]}");
        b.report.phases = "run";
        b.actions[0] = (Action){ .id = health, .type = ACTION_CHECK_HEALTH, .target = health };
        b.items[0].outcome = OUTCOME_FAILED;            /* the library never answered */
        b.items[0].cause = CAUSE_NVML;
        b.items[0].text = silent;
        free(captured(&b, STDERR_FILENO, do_write));
        _free_ char *hung = file_text(&b, REPORT_METRICS), *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_TRUE(!strstr(hung, "nodestrap_gpu_healthy{"));
        ASSERT_CONTAINS(shown, "\nHealth: not known, the GPUs did not answer\n");
}

TEST(unknown_health_is_shown_as_not_known) {
        BOX(b);
        free(captured(&b, STDERR_FILENO, do_write));
        _free_ char *metrics = file_text(&b, REPORT_METRICS), *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_TRUE(!strstr(metrics, "gpu_health") && !strstr(metrics, "gpudirect") && !strstr(shown, "Health") && !strstr(shown, "GPUDirect"));
        health_is(&b, "run", "{" LOOKS "\"complete\": false, \"findings\": [], \"gpus\": []}");
        _free_ char *none = file_text(&b, REPORT_METRICS), *shown_none = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown_none, "\nHealth: not known, the GPUs did not answer\n");
        ASSERT_TRUE(!strstr(none, "nodestrap_gpu_healthy{") && !strstr(shown_none, "GPUs:"));
}

/* ---- phase by phase ---- */

#define RUN_OF(verdict, rest) "{'verdict': '" verdict "', 'beginUsec': 1000000, 'endUsec': 3000000" rest "}"
#define STEP(phase, outcome) "{'id': '" phase "', 'phase': '" phase "', 'outcome': '" outcome "', 'beginUsec': 1500000, 'endUsec': 2500000}"

/* with ' for " */
static json_t *parsed(const char *text) {
        _free_ char *copy = xstrdup(text);
        for (char *p = copy; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        json_t *json = json_loads(copy, 0, NULL);
        ASSERT_TRUE(json);
        return json;
}

/* "ok: config=ok devices=ok run=held", and what to look at */
static void assert_phases(const char *text, const Ongoing *ongoing, const char *phases, const char *next) {
        _cleanup_(status_done) Status status = {};
        Text t = {};
        json_t *entry;
        size_t i;
        status_take(&status, parsed(text));
        phases_put(&status, ongoing);
        next_put(&status);
        text_add(&t, "%s:", word(status.json, "verdict"));
        json_array_foreach(json_object_get(status.json, "phases"), i, entry)
                text_add(&t, " %s=%s", word(entry, "phase"), word(entry, "verdict"));
        ASSERT_STREQ(t.data, phases);
        ASSERT_STREQ(word(status.json, "next") ?: "", next);
        ASSERT_STREQ(status.next, next);
        text_done(&t);
}

TEST(a_boot_is_ok_when_all_its_phases_are_ok) {
        assert_phases("{}", NULL, "unfinished: config=not begun devices=not begun run=not begun", "systemctl status nodestrap-config.service");
        assert_phases("{'verdict': 'ok', 'runs': {'config': " RUN_OF("ok", "") "}}", NULL, "unfinished: config=ok devices=not begun run=not begun",
                      "systemctl status nodestrap-devices.service");
        assert_phases("{'verdict': 'ok', 'runs': {'config': " RUN_OF("ok", "") ", 'devices,run': " RUN_OF("ok", "") "}}", NULL, "ok: config=ok devices=ok run=ok", "");
        assert_phases("{'verdict': 'ok', 'runs': {'config,devices,run': " RUN_OF("ok", "") "}, 'joined': {'verdict': 'failed', 'code': 'ENOTREADY', 'step': 'join'}}", NULL,
                      "ok: config=ok devices=ok run=ok join=failed", "nodestrap wait --timeout 10s");
}

TEST(a_phase_blocked_by_a_failure_is_held) {
        assert_phases("{'verdict': 'failed', 'code': 'EINVALID', 'step': 'validate', 'runs': {'config': " RUN_OF("failed", ", 'phase': 'config'") "}}", NULL,
                      "failed: config=failed devices=held run=held", "nodestrap explain EINVALID");
        assert_phases("{'verdict': 'failed', 'code': 'EUNIT', 'step': 'start-unit:containerd.service', 'runs': {'config,devices,run': "
                      RUN_OF("failed", ", 'phase': 'run', 'actions': [" STEP("config", "done") "," STEP("devices", "unchanged") "," STEP("run", "failed") "]") "}}", NULL,
                      "failed: config=ok devices=ok run=failed", "journalctl -b -u containerd.service");
        assert_phases("{'verdict': 'failed', 'code': 'EFABRIC', 'step': 'await-fabric:fabric', 'runs': {'config': " RUN_OF("ok", "") ", 'devices,run': "
                      RUN_OF("failed", ", 'phase': 'devices', 'actions': [" STEP("devices", "failed") "," STEP("run", "done") "," STEP("run", "skipped") "]") "}}", NULL,
                      "failed: config=ok devices=failed run=held", "nodestrap explain EFABRIC");
        assert_phases("{'verdict': 'tainted', 'code': 'EFABRIC', 'step': 'await-fabric:fabric', 'runs': {'config': " RUN_OF("ok", "") ", 'devices,run': "
                      RUN_OF("tainted", ", 'phase': 'devices', 'actions': [" STEP("devices", "failed") "," STEP("run", "done") "]") "}}", NULL,
                      "tainted: config=ok devices=tainted run=ok", "nodestrap explain EFABRIC");
}

TEST(running_phases_override_earlier_results) {
        Ongoing ongoing = { .units = { [ONGOING_RUN] = UNIT_WAITS, [ONGOING_JOIN] = UNIT_WAITS } };
        assert_phases("{'verdict': 'ok', 'runs': {'config': " RUN_OF("ok", "") "}}", &ongoing, "waiting: config=ok devices=waiting run=waiting join=waiting", "systemctl list-jobs");
        ongoing.units[ONGOING_RUN] = UNIT_WORKS;
        ongoing.processes = parsed("[{'pid': 7, 'phases': 'devices,run', 'beginUsec': 5000000, 'steps': [{'id': 'await-fabric:fabric', 'beginUsec': 6000000}]}]");
        assert_phases("{'verdict': 'ok', 'runs': {'config': " RUN_OF("ok", "") ", 'devices': " RUN_OF("ok", "") "}}", &ongoing,
                      "running: config=ok devices=ok run=running join=waiting", "nodestrap status --follow");
        assert_phases("{'verdict': 'failed', 'code': 'EFABRIC', 'exit': 33, 'runs': {'config': " RUN_OF("ok", "") ", 'devices': " RUN_OF("failed", ", 'phase': 'devices'") "}}", &ongoing,
                      "running: config=ok devices=running run=running join=waiting", "nodestrap status --follow");
        json_decref(ongoing.processes);
        ongoing = (Ongoing){ .units = { [ONGOING_JOIN] = UNIT_WORKS } };
        assert_phases("{'verdict': 'ok', 'runs': {'config,devices,run': " RUN_OF("ok", "") "}}", &ongoing, "ok: config=ok devices=ok run=ok join=running", "");
}

TEST(progress_lists_running_processes_and_their_steps) {
        static const char lines[] = "5\t71\tstart\tconfig\n6\t71\tbegin\ta:b c\n6\t71\tbegin\td\n7\t71\tdone\td\n7\t71\tdone\tnever begun\n"
                                    "8\t72\tstart\trun\n9\t72\tend\tok\n1\t73\tstart\trun\n1\t74\tstart\trun\nx\t71\tstart\trun\n1\t71\tdone\n\n9\t71\tstart";
        BOX(b);
        ASSERT_OK(root_replace(b.root, "/run/nodestrap/progress", lines, sizeof lines - 1, 0640));
        ASSERT_OK(root_replace(b.root, "/proc/71/comm", "nodestrap\n", 10, 0444));
        ASSERT_OK(root_replace(b.root, "/proc/72/comm", "nodestrap\n", 10, 0444));
        ASSERT_OK(root_replace(b.root, "/proc/74/comm", "sleep\n", 6, 0444));
        json_t *all = progress_read(b.root);
        _free_ char *text = json_dumps(all, JSON_COMPACT);
        ASSERT_STREQ(text, "[{\"pid\":71,\"phases\":\"config\",\"beginUsec\":5,\"steps\":[{\"id\":\"a:b c\",\"beginUsec\":6}]}]");
        json_decref(all);
}

TEST(phases_are_shown_with_their_times) {
        BOX(b);
        b.report.region = "us-west-2";
        b.report.instance_id = "i-0123456789abcdef0";
        b.report.instance_type = "p5.48xlarge";
        b.report.begin_usec = b.items[0].begin_usec;
        write_phases(&b, "config,devices");
        write_phases(&b, "run");
        _free_ char *shown = captured(&b, STDOUT_FILENO, do_show), *json = file_text(&b, REPORT_STATUS);
        ASSERT_CONTAINS(shown, "ok: 4 done, 0 unchanged, 0 skipped, 0 failed\ninstance i-0123456789abcdef0 (p5.48xlarge, us-west-2)\nphases: config ok 2.00 s, devices ok, run ok 3.0");
        ASSERT_CONTAINS(shown, "\nlongest: 500.0 ms write-file:/etc/a, 500.0 ms start-unit:containerd.service, ");
        ASSERT_TRUE(!strstr(shown, "next:"));
        ASSERT_CONTAINS(json, "\"bootedAt\": \"20");
}

/* ---- the drawing ---- */

typedef struct Drawn { unsigned rows, bars, bad; double first, last; Text classes, titles; bool in_title; } Drawn;

static const char *attribute(const char **attributes, const char *name) {
        for (; *attributes; attributes += 2)
                if (streq(attributes[0], name))
                        return attributes[1];
        return "";
}

static void on_begin(void *data, const char *element, const char **attributes) {
        Drawn *d = data;
        d->in_title = streq(element, "title");
        if (streq(element, "g")) {
                d->rows++;
                text_add(&d->classes, "%s|", attribute(attributes, "class"));
        }
        if (streq(element, "rect") && !streq(attribute(attributes, "width"), "100%") && !*attribute(attributes, "class")) {
                double x = atof(attribute(attributes, "x"));
                d->first = d->bars++ ? d->first : x;
                d->bad += x < d->first || atof(attribute(attributes, "width")) < 1;
                d->last = MAX(d->last, x + atof(attribute(attributes, "width")));
        }
}

static void on_text(void *data, const char *text, int size) {
        Drawn *d = data;
        if (d->in_title)
                text_add_bytes(&d->titles, text, (size_t)size);
}

static void draw(Box *b, Drawn *ret) {
        _free_ char *svg = captured(b, STDOUT_FILENO, do_draw);
        XML_Parser parser = XML_ParserCreate(NULL);
        *ret = (Drawn){};
        XML_SetUserData(parser, ret);
        XML_SetElementHandler(parser, on_begin, NULL);
        XML_SetCharacterDataHandler(parser, on_text);
        enum XML_Status status = XML_Parse(parser, svg, (int)strlen(svg), 1);
        ASSERT_STREQ(status == XML_STATUS_OK ? "" : XML_ErrorString(XML_GetErrorCode(parser)), "");
        XML_ParserFree(parser);
}

static void drawn_done(Drawn *d) {
        text_done(&d->classes);
        text_done(&d->titles);
}

TEST(a_boot_can_be_drawn) {
        static char wait[] = "await-fabric:<fabric>";
        BOX(b);
        _cleanup_(drawn_done) Drawn d = {};
        b.actions[1].id = wait;
        b.items[1].outcome = OUTCOME_FAILED;
        b.items[1].cause = CAUSE_FABRIC;
        b.items[1].text = (char *)"GPU 3 & \x1b[31m\nmore";
        b.items[3] = (Result){ .action = &b.actions[3], .outcome = OUTCOME_SKIPPED };
        free(captured(&b, STDERR_FILENO, do_write));
        draw(&b, &d);
        ASSERT_STREQ(d.classes.data, "phase failed|done|failed wait|critical done|skipped|");
        ASSERT_EQ(d.bars, 4);                   /* a skipped step has no bar */
        ASSERT_EQ(d.bad, 0);
        ASSERT_TRUE(d.last - d.first < 900.5);  /* within the chart */
        ASSERT_CONTAINS(d.titles.data, "await-fabric:<fabric>: failed, began at ");
        ASSERT_CONTAINS(d.titles.data, "took 500.0 ms: GPU 3 & \\x1b[31m");
        ASSERT_TRUE(!strstr(d.titles.data, "more"));
}

TEST(any_status_can_be_drawn) {
        static const char *const any[] = {
                "{}", "{\"runs\": 3, \"joined\": []}", "{\"runs\": {\"run\": {}}, \"verdict\": \"<\", \"code\": 7}",
                "{\"runs\": {\"run\": {\"beginUsec\": -5, \"endUsec\": 9223372036854775807, \"actions\": [1, {}, {\"id\": \"x\", \"beginUsec\": 9223372036854775807}]}}}",
                "{\"verdict\": \"failed\\ufffe\\uffff\", \"code\": \"\\ufffd\"}",
        };
        static const unsigned rows[] = { 0, 1, 1, 4, 0 };
        for (size_t i = 0; i < ARRAY_SIZE(any); i++) {
                BOX(b);
                _cleanup_(drawn_done) Drawn d = {};
                ASSERT_OK(root_replace(b.root, REPORT_STATUS, any[i], strlen(any[i]), 0644));
                draw(&b, &d);
                ASSERT_EQ(d.bad, 0);
                ASSERT_EQ(d.rows, rows[i]);
        }
}

/* ---- the critical path ---- */

#define CONFIG_RUN "'config': {'beginUsec': 4000000, 'endUsec': 5000000, 'actions': [{'id': 'write-file:a', 'beginUsec': 4100000, 'endUsec': 4900000}]}"
/* runs with ' for " */
static void critical_of(const char *runs, Status *ret) {
        _cleanup_(status_done) Status parts = {};
        _free_ char *text = xasprintf("{'runs': {%s}}", runs);
        json_t *status = json_object();
        status_take(&parts, parsed(text));
        critical_put(status, &parts);
        json_object_set(status, "runs", json_object_get(parts.json, "runs"));
        status_take(ret, status);
}
/* Each step of the path is marked in its run, except the wait for cloud-init. No other step is marked. */
static char *critical_words(const Status *status) {
        size_t steps = 0, marked = 0;
        Text t = {};
        for (const StatusStep *step = status->path; step && step->id; step++) {
                text_add(&t, "%s%s/%s", t.size > 0 ? " " : "", step->run, step->id);
                steps += !streq(step->id, "cloud-init");
        }
        for (const StatusRun *run = status->runs; run && run->phases; run++)
                for (const StatusAction *a = run->actions; a && a->id; a++)
                        marked += a->critical;
        ASSERT_EQ(marked, steps);
        return t.data ? text_take(&t) : xstrdup("");
}
#define ASSERT_PATH(runs, path, line) ({                                                                \
        _cleanup_(status_done) Status _status = {};                                                     \
        critical_of(runs, &_status);                                                                    \
        _free_ char *_words = critical_words(&_status), *_line = critical_text(&_status);     \
        ASSERT_STREQ(_words, path);                                                                     \
        ASSERT_STREQ(_line, line); })

TEST(the_critical_path_has_the_wait_for_cloud_init) {
        ASSERT_PATH(CONFIG_RUN ", 'run': {'beginUsec': 25000000, 'endUsec': 34000000, 'actions': ["
                    "{'id': 'write-file:m', 'beginUsec': 25100000, 'endUsec': 25200000},"
                    "{'id': 'start-unit:containerd.service', 'after': ['write-file:m', 'write-file:gone'], 'beginUsec': 25200000, 'endUsec': 33200000},"
                    "{'id': 'check-efa:efa', 'beginUsec': 25100000, 'endUsec': 26000000},"
                    "{'id': 'start-unit:kubelet.service', 'after': ['check-efa:efa', 'start-unit:containerd.service'], 'beginUsec': 33200000, 'endUsec': 33900000}]}",
                    "config/write-file:a run/cloud-init run/write-file:m run/start-unit:containerd.service run/start-unit:kubelet.service",
                    "critical path (>): kubelet started 33.9 s after the kernel; 20.1 s of cloud-init, 8.00 s of start-unit:containerd.service, 800.0 ms of write-file:a\n");
}

TEST(the_critical_path_has_the_steps_of_the_devices_phase) {
        ASSERT_PATH(CONFIG_RUN ", 'devices': {'beginUsec': 5100000, 'endUsec': 65200000, 'actions': ["
                    "{'id': 'take-turn:devices', 'beginUsec': 5200000, 'endUsec': 5200000},"
                    "{'id': 'load-module:nvidia', 'after': ['take-turn:devices'], 'beginUsec': 5200000, 'endUsec': 17200000},"
                    "{'id': 'await-fabric:fabric', 'after': ['load-module:nvidia'], 'beginUsec': 17200000, 'endUsec': 65100000},"
                    "{'id': 'check-efa:efa', 'after': ['take-turn:devices'], 'beginUsec': 5200000, 'endUsec': 5300000}]}, "
                    "'run': {'beginUsec': 25000000, 'endUsec': 67000000, 'actions': ["
                    "{'id': 'start-unit:containerd.service', 'beginUsec': 25100000, 'endUsec': 33000000},"
                    "{'id': 'take-turn:devices', 'beginUsec': 25100000, 'endUsec': 65300000},"
                    "{'id': 'await-fabric:fabric', 'after': ['take-turn:devices'], 'beginUsec': 65300000, 'endUsec': 65400000},"
                    "{'id': 'start-unit:kubelet.service', 'after': ['start-unit:containerd.service', 'await-fabric:fabric'], 'beginUsec': 65400000, 'endUsec': 66000000}]}",
                    "config/write-file:a devices/take-turn:devices devices/load-module:nvidia devices/await-fabric:fabric "
                    "run/take-turn:devices run/await-fabric:fabric run/start-unit:kubelet.service",
                    "critical path (>): kubelet started 66.0 s after the kernel; 47.9 s of await-fabric:fabric, 12.0 s of load-module:nvidia, 800.0 ms of write-file:a\n");
}

/* The devices phase was done before, so the boot waited for cloud-init. A step that never began stands for
 * the steps before it. */
TEST(the_critical_path_ignores_devices_that_were_done_before) {
        ASSERT_PATH(CONFIG_RUN ", 'devices': {'beginUsec': 5100000, 'endUsec': 9000000, 'actions': [{'id': 'check-efa:efa', 'beginUsec': 5200000, 'endUsec': 8900000}]}, "
                    "'run': {'beginUsec': 25000000, 'endUsec': 27000000, 'actions': ["
                    "{'id': 'take-turn:devices', 'beginUsec': 25100000, 'endUsec': 25200000},"
                    "{'id': 'reserve-pages:2Mi', 'after': ['take-turn:devices'], 'outcome': 'skipped', 'beginUsec': 0, 'endUsec': 0},"
                    "{'id': 'start-unit:kubelet.service', 'after': ['reserve-pages:2Mi'], 'beginUsec': 25200000, 'endUsec': 26000000}]}",
                    "config/write-file:a run/cloud-init run/take-turn:devices run/start-unit:kubelet.service",
                    "critical path (>): kubelet started 26.0 s after the kernel; 20.1 s of cloud-init, 800.0 ms of write-file:a, 800.0 ms of start-unit:kubelet.service\n");
}

TEST(steps_on_the_critical_path_are_marked) {
        BOX(b);
        _cleanup_(drawn_done) Drawn d = {};
        char *first[] = { b.actions[0].id, NULL }, *second[] = { b.actions[1].id, NULL };
        b.actions[2].after = first;
        b.actions[2].after_any = second;
        free(captured(&b, STDERR_FILENO, do_write));
        json_t *status = status_of(&b), *actions = json_object_get(json_object_get(json_object_get(status, "runs"), "run"), "actions");
        ASSERT_EQ(json_array_size(json_object_get(json_array_get(actions, 2), "after")), 2);
        ASSERT_EQ(json_array_size(json_object_get(json_array_get(actions, 0), "after")), 0);
        json_decref(status);
        _free_ char *shown = captured(&b, STDOUT_FILENO, do_show);
        ASSERT_CONTAINS(shown, "|> start-unit:containerd.service\n");
        ASSERT_CONTAINS(shown, "|> start-unit:kubelet.service\n");
        ASSERT_CONTAINS(shown, "|  write-file:/etc/a\n");
        ASSERT_CONTAINS(shown, "\ncritical path (>): kubelet started ");
        draw(&b, &d);
        ASSERT_STREQ(d.classes.data, "phase|done|critical done|critical done|done|");
}

TEST(a_boot_without_kubelet_has_no_critical_path) {
        ASSERT_PATH("", "", "");
        ASSERT_PATH(CONFIG_RUN, "", "");
        ASSERT_PATH("'run': {'actions': [{'id': 'start-unit:kubelet.service', 'after': ['await-fabric:fabric'], 'outcome': 'skipped', 'beginUsec': 0, 'endUsec': 0},"
                    "{'id': 'await-fabric:fabric', 'outcome': 'failed', 'beginUsec': 1, 'endUsec': 2}]}", "", "");
        /* a cycle, which no run writes, must end */
        ASSERT_PATH("'run': {'beginUsec': -9223372036854775807, 'actions': [3, {'id': 'start-unit:kubelet.service', 'after': ['x', 7], 'beginUsec': 9223372036854775807, 'endUsec': 2},"
                    "{'id': 'x', 'after': ['start-unit:kubelet.service'], 'endUsec': 2}]}", "run/x run/start-unit:kubelet.service",
                    "critical path (>): kubelet started 0.0 ms after the kernel; 0.0 ms of x, 0.0 ms of start-unit:kubelet.service\n");
}

TEST(a_missing_or_invalid_status_is_an_error) {
        BOX(b);
        _cleanup_(status_done) Status status = {};
        ASSERT_ERROR(status_read(b.root, &status), ENOENT);
        ASSERT_OK(root_replace(b.root, REPORT_STATUS, "x", 1, 0644));
        ASSERT_ERROR(status_read(b.root, &status), EBADMSG);
        ASSERT_TRUE(!status.json && !*status.verdict && !status.runs && !status.joined);        /* the same as without a file */
}

TEST_MAIN
