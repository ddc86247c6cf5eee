/* SPDX-License-Identifier: Apache-2.0
 * The loop and its file actions, on ordinary files below a temporary root; units are tested with a real systemd in
 * tests/check/units.sh. */
#include "files.h"
#include "apply/apply.h"
#include "apply/file.h"

#include "base/hash.h"
#include "base/str.h"
#include "base/time.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each test has its own root, which is removed at the end. */
typedef struct Box { char path[32]; Root *root; Plan plan; Results results; Diag diag; } Box;

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

static void plan_clear(Plan *p) {
        for (size_t i = 0; i < p->n; i++) {
                free(p->actions[i].id);
                free(p->actions[i].target);
                if (action_is(&p->actions[i], ACTION_OF_FILES))
                        free(p->actions[i].file.content);
                strv_free(p->actions[i].after);
        }
        free(p->actions);
        *p = (Plan){};
}

static void box_done(Box *b) {
        results_done(&b->results);
        diag_done(&b->diag);
        plan_clear(&b->plan);
        root_free(b->root);
        nftw(b->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void box_init(Box *b) {
        *b = (Box){ .path = "/tmp/test-apply.XXXXXX" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new(b->path, &b->root));
}
#define BOX(name) _cleanup_(box_done) Box name; box_init(&name)

static Action *add(Box *b, ActionType type, const char *target, const char *content) {
        b->plan.actions = xrealloc(b->plan.actions, b->plan.n + 1, sizeof(Action));
        Action *a = &b->plan.actions[b->plan.n++];
        *a = (Action){ .id = xasprintf("%s:%s", action_type_to_string(type), target), .type = type, .target = xstrdup(target) };
        if (action_is(a, ACTION_OF_FILES)) {
                a->file.content = content ? xstrdup(content) : NULL;
                a->file.size = content ? strlen(content) : 0;
                a->file.mode = 0644;
        }
        return a;
}

static int apply(Box *b) {
        results_done(&b->results);
        diag_done(&b->diag);
        return apply_plan(b->root, &b->plan, &b->results, &b->diag);
}

static const char *outcome(const Box *b, size_t i) {
        return outcome_to_string(b->results.items[i].outcome);
}

static void put(const Box *b, const char *path, const char *content, mode_t mode) {
        ASSERT_OK(root_replace(b->root, path, content, strlen(content), mode));
}

static void assert_file(const Box *b, const char *path, const char *content) {
        _free_ char *data = NULL;
        int r = root_read(b->root, path, 1 << 20, &data, NULL);
        if (r < 0)
                FAIL("%s: %s", path, strerror(-r));
        ASSERT_STREQ(data, content);
}

static void assert_absent(const Box *b, const char *path) {
        if (root_exists(b->root, path) != 0)
                FAIL("%s is there", path);
}

/* No staged file may stay behind. */
static size_t leftovers;
static int count_temporary(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        leftovers += endswith(path, ".tmp");
        return 0;
}
static void assert_no_leftovers(const Box *b) {
        leftovers = 0;
        nftw(b->path, count_temporary, 16, FTW_PHYS);
        ASSERT_EQ(leftovers, 0);
}

TEST(writes_files_and_changes_nothing_the_second_time) {
        BOX(b);
        add(&b, ACTION_WRITE_FILE, "/etc/a/one", "1\n")->file.mode = 0600;
        add(&b, ACTION_WRITE_FILE, "/etc/a/two", "2\n");
        strv_add(&b.plan.actions[1].after, "write-file:/etc/a/one");
        ASSERT_OK(apply(&b));
        ASSERT_EQ(results_count(&b.results, OUTCOME_DONE), 2);
        assert_file(&b, "/etc/a/one", "1\n");
        assert_file(&b, "/etc/a/two", "2\n");
        ASSERT_TRUE(file_is(b.root, "/etc/a/one", "1\n", 2, 0600));
        ASSERT_TRUE(b.results.items[0].begin_usec <= b.results.items[0].end_usec && b.results.items[0].begin_usec > 0);
        ASSERT_OK(apply(&b));
        ASSERT_EQ(results_count(&b.results, OUTCOME_UNCHANGED), 2);
        assert_no_leftovers(&b);
}

TEST(more_files_than_one_batch) {
        BOX(b);
        for (int i = 0; i < 500; i++) {
                _free_ char *path = xasprintf("/etc/many/%d", i);
                add(&b, ACTION_WRITE_FILE, path, path);
        }
        ASSERT_OK(apply(&b));
        ASSERT_EQ(results_count(&b.results, OUTCOME_DONE), 500);
        assert_file(&b, "/etc/many/499", "/etc/many/499");
}

TEST(unchanged_files_take_no_place_in_a_batch) {
        BOX(b);
        put(&b, "/etc/old", "old", 0644);
        add(&b, ACTION_WRITE_FILE, "/etc/old", "new");
        for (int i = 0; i < 100; i++) {
                _free_ char *path = xasprintf("/etc/many/%d", i);
                put(&b, path, path, 0644);
                add(&b, ACTION_WRITE_FILE, path, path);
        }
        ASSERT_OK(root_make_dirs(b.root, "/etc/dir", 0755));
        add(&b, ACTION_WRITE_FILE, "/etc/dir", "a directory stands here");
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(outcome(&b, 0), "skipped");
        ASSERT_STREQ(outcome(&b, 100), "unchanged");
        ASSERT_STREQ(outcome(&b, 101), "failed");
        assert_file(&b, "/etc/old", "old");
}

/* The manifest was read for the first batch, and is not written after a failure. */
TEST(a_failure_before_the_last_batch_leaves_the_manifest) {
        BOX(b);
        ASSERT_OK(root_make_dirs(b.root, "/etc/dir", 0755));
        add(&b, ACTION_WRITE_FILE, "/etc/dir", "a directory stands here");
        for (int i = 0; i < 100; i++) {
                _free_ char *path = xasprintf("/etc/many/%d", i);
                add(&b, ACTION_WRITE_FILE, path, path)->phase = PHASE_RUN;
        }
        add(&b, ACTION_PRUNE_FILES, MANIFEST_FILE, NULL)->phase = PHASE_RUN;
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_EQ(results_count(&b.results, OUTCOME_DONE), 100);
        ASSERT_STREQ(outcome(&b, 101), "skipped");
        assert_no_leftovers(&b);
}

TEST(dependents_of_a_failure_are_skipped_and_the_rest_goes_on) {
        BOX(b);
        put(&b, "/etc/file", "not a directory", 0644);
        add(&b, ACTION_WRITE_FILE, "/etc/file/x", "x");
        strv_add(&add(&b, ACTION_WRITE_FILE, "/etc/after", "y")->after, "write-file:/etc/file/x");
        strv_add(&add(&b, ACTION_WRITE_FILE, "/etc/after2", "y")->after, "write-file:/etc/after");
        /* Files of the configuration would be written together or not at all. */
        add(&b, ACTION_WRITE_FILE, "/etc/other", "z")->phase = PHASE_RUN;
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(outcome(&b, 0), "failed");
        ASSERT_STREQ(outcome(&b, 1), "skipped");
        ASSERT_STREQ(outcome(&b, 2), "skipped");
        ASSERT_STREQ(outcome(&b, 3), "done");
        ASSERT_CONTAINS(b.results.items[1].text, "write-file:/etc/file/x");
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_FILE);
        ASSERT_EQ(cause_exit_code(diag_first_error(&b.diag)->cause), 40);
        ASSERT_STREQ(diag_first_error(&b.diag)->path, "write-file:/etc/file/x");
        ASSERT_CONTAINS(diag_first_error(&b.diag)->text, "not a directory");
        ASSERT_EQ(diag_count(&b.diag, false), 1);
        assert_absent(&b, "/etc/after");
        assert_no_leftovers(&b);
}

TEST(the_configuration_is_written_whole_or_not_at_all) {
        BOX(b);
        put(&b, "/etc/one", "old", 0644);
        ASSERT_OK(root_make_dirs(b.root, "/etc/two", 0755));
        add(&b, ACTION_WRITE_FILE, "/etc/one", "new");
        add(&b, ACTION_WRITE_FILE, "/etc/two", "a directory stands here");
        add(&b, ACTION_WRITE_FILE, "/etc/three", "new");
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(outcome(&b, 0), "skipped");
        ASSERT_CONTAINS(b.results.items[0].text, "write-file:/etc/two");
        assert_file(&b, "/etc/one", "old");
        assert_absent(&b, "/etc/three");
        assert_no_leftovers(&b);
}

TEST(a_failed_lenient_file_does_not_hold_back_others) {
        BOX(b);
        ASSERT_OK(root_make_dirs(b.root, "/etc/one", 0755));
        add(&b, ACTION_WRITE_FILE, "/etc/one", "a directory stands here")->lenient = true;
        strv_add(&add(&b, ACTION_WRITE_FILE, "/etc/two", "new")->after, "write-file:/etc/one");
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "unchanged");
        ASSERT_TRUE(b.results.items[0].missed);
        ASSERT_STREQ(b.diag.items[0].code, "write-file");
        ASSERT_STREQ(outcome(&b, 1), "done");
        assert_file(&b, "/etc/two", "new");
}

TEST(a_late_failure_in_a_batch_holds_back_its_dependents) {
        BOX(b);
        ASSERT_OK(root_make_dirs(b.root, "/etc/dir", 0755));
        add(&b, ACTION_WRITE_FILE, "/etc/dir", "a directory stands here");
        strv_add(&add(&b, ACTION_WRITE_FILE, "/etc/after", "y")->after, "write-file:/etc/dir");
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(outcome(&b, 1), "skipped");
        ASSERT_CONTAINS(b.results.items[0].text, "directory");
        assert_absent(&b, "/etc/after");
        assert_no_leftovers(&b);
}

TEST(a_link_is_replaced_and_not_followed) {
        BOX(b);
        put(&b, "/etc/target", "somebody else's", 0644);
        _free_ char *link = xasprintf("%s/etc/link", b.path);
        ASSERT_EQ(symlink("target", link), 0);
        add(&b, ACTION_WRITE_FILE, "/etc/link", "ours");
        ASSERT_OK(apply(&b));
        assert_file(&b, "/etc/target", "somebody else's");
        ASSERT_TRUE(file_is(b.root, "/etc/link", "ours", 4, 0644));
}

TEST(files_links_and_folders_of_networkd_come_and_go) {
        BOX(b);
        char leads_to[] = "/usr/lib/n/x.conf";
        add(&b, ACTION_LINK_FILE, "/run/n/a.network.d/x.conf", NULL)->with = leads_to;
        add(&b, ACTION_WRITE_FILE, "/run/n/a.network", "[Match]\n");
        add(&b, ACTION_RELOAD_NETWORKD, "systemd-networkd", NULL)->after = strv_copy((char *[]){ b.plan.actions[0].id, b.plan.actions[1].id, NULL });
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "done");
        ASSERT_STREQ(outcome(&b, 2), "skipped");        /* not on the running system's root */
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "unchanged");
        plan_clear(&b.plan);
        put(&b, "/run/n/a.network.d/.x.conf.0123456789abcdef.tmp", "left by one that was killed", 0644);
        put(&b, "/run/n/b.network.d/theirs.conf", "", 0644);
        add(&b, ACTION_REMOVE_FILE, "/run/n/a.network", NULL);
        add(&b, ACTION_REMOVE_FILE, "/run/n/a.network.d/x.conf", NULL);
        add(&b, ACTION_REMOVE_FILE, "/run/n/a.network.d", NULL);
        add(&b, ACTION_REMOVE_FILE, "/run/n/b.network.d", NULL);
        add(&b, ACTION_REMOVE_FILE, "/run/never/was", NULL);
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "done");
        ASSERT_STREQ(outcome(&b, 2), "done");
        ASSERT_STREQ(outcome(&b, 3), "unchanged");
        ASSERT_STREQ(outcome(&b, 4), "unchanged");
        assert_absent(&b, "/run/n/a.network.d");
        assert_file(&b, "/run/n/b.network.d/theirs.conf", "");
        assert_no_leftovers(&b);
}

TEST(an_unknown_dependency_is_refused_before_any_change) {
        BOX(b);
        add(&b, ACTION_WRITE_FILE, "/etc/a", "a");
        strv_add(&add(&b, ACTION_WRITE_FILE, "/etc/b", "b")->after, "write-file:/etc/c");
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_INTERNAL);
        assert_absent(&b, "/etc/a");
}

TEST(units_are_skipped_below_another_root_and_files_after_them_written) {
        BOX(b);
        add(&b, ACTION_RELOAD_MANAGER, "systemd", NULL);
        add(&b, ACTION_START_UNIT, "kubelet.service", NULL);
        add(&b, ACTION_RESTART_UNIT, "systemd-resolved.service", NULL);
        strv_add(&add(&b, ACTION_WRITE_FILE, "/etc/a", "a")->after, "start-unit:kubelet.service");
        ASSERT_OK(apply(&b));
        ASSERT_EQ(results_count(&b.results, OUTCOME_SKIPPED), 3);
        ASSERT_CONTAINS(b.results.items[1].text, "--root");
        assert_file(&b, "/etc/a", "a");
}

TEST(an_empty_plan_is_a_success) {
        BOX(b);
        ASSERT_OK(apply(&b));
        ASSERT_EQ(b.results.n, 0);
}

/* ---- blocks ---- */

static void assert_merge(const char *old, const char *content, const char *want) {
        size_t size = 0;
        _free_ char *got = block_merge(old, strlen(old), content, &size);
        ASSERT_STREQ(got, want);
        ASSERT_EQ(size, strlen(want));
        _free_ char *again = block_merge(got, size, content, &size);
        ASSERT_STREQ(again, want);
}

#define BEGIN "# nodestrap begin\n"
#define END   "# nodestrap end\n"

TEST(block_edits) {
        assert_merge("", "x", BEGIN "x\n" END);
        assert_merge("a\nb\n", "x\ny\n", "a\nb\n" BEGIN "x\ny\n" END);
        assert_merge("a", "x\n", "a\n" BEGIN "x\n" END);                        /* no newline at the end */
        assert_merge("a\n" BEGIN "old\n" END "b\n", "new", "a\n" BEGIN "new\n" END "b\n");
        assert_merge("a\n" BEGIN "old\n" END "b\n", "", "a\nb\n");
        assert_merge("a\r\n\tb", "", "a\r\n\tb");
        assert_merge(BEGIN "1\n" END "m\n" BEGIN "2\n" END, "x", BEGIN "x\n" END "m\n");        /* two become one */
        assert_merge(BEGIN "kept\n", "x", BEGIN "x\n" END "kept\n");            /* the end is missing: lose nothing */
        assert_merge(BEGIN "kept\n" BEGIN "gone\n" END, "", "kept\n");
        assert_merge("# nodestrap beginning\n", "", "# nodestrap beginning\n");
}

TEST(a_block_keeps_mode_and_owner) {
        BOX(b);
        struct stat st;
        _free_ char *path = xasprintf("%s/etc/hosts", b.path);
        put(&b, "/etc/hosts", "127.0.0.1 localhost\n", 0640);
        if (geteuid() == 0)
                ASSERT_EQ(chown(path, 7, 8), 0);
        add(&b, ACTION_WRITE_BLOCK, "/etc/hosts", "10.0.0.1 api\n");
        ASSERT_OK(apply(&b));
        assert_file(&b, "/etc/hosts", "127.0.0.1 localhost\n" BEGIN "10.0.0.1 api\n" END);
        ASSERT_EQ(stat(path, &st), 0);
        ASSERT_EQ(st.st_mode & 07777, 0640);
        ASSERT_EQ(st.st_uid, geteuid() == 0 ? 7 : geteuid());
        ASSERT_EQ(st.st_gid, geteuid() == 0 ? 8 : getegid());
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "unchanged");
        b.plan.actions[0].file.content[0] = 0;
        b.plan.actions[0].file.size = 0;
        ASSERT_OK(apply(&b));
        assert_file(&b, "/etc/hosts", "127.0.0.1 localhost\n");
}

TEST(a_block_creates_a_missing_file_unless_it_is_empty) {
        BOX(b);
        add(&b, ACTION_WRITE_BLOCK, "/etc/hosts", "");
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "unchanged");
        assert_absent(&b, "/etc/hosts");
        plan_clear(&b.plan);
        add(&b, ACTION_WRITE_BLOCK, "/etc/hosts", "x");
        ASSERT_OK(apply(&b));
        ASSERT_TRUE(file_is(b.root, "/etc/hosts", BEGIN "x\n" END, strlen(BEGIN "x\n" END), 0644));
}

TEST(a_block_is_not_written_through_a_link) {
        BOX(b);
        put(&b, "/etc/real", "r\n", 0644);
        _free_ char *link = xasprintf("%s/etc/hosts", b.path);
        ASSERT_EQ(symlink("real", link), 0);
        add(&b, ACTION_WRITE_BLOCK, "/etc/hosts", "x");
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "symbolic link");
        assert_file(&b, "/etc/real", "r\n");
}

TEST(the_message_names_a_directory_that_is_a_dangling_link) {
        BOX(b);
        _free_ char *link = xasprintf("%s/kubelet", b.path);
        ASSERT_EQ(symlink("/gone", link), 0);
        add(&b, ACTION_WRITE_FILE, "/kubelet/kubeconfig", "x");
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "/kubelet is a link to /gone, which does not exist; make that directory");
}

/* ---- the manifest ---- */

static void plan_pruned(Box *b, const char *const *paths, Phase phase) {
        plan_clear(&b->plan);
        for (; *paths; paths++)
                add(b, ACTION_WRITE_FILE, *paths, "content\n")->phase = phase;
        add(b, ACTION_PRUNE_FILES, MANIFEST_FILE, NULL)->phase = phase;
}
#define PLAN_PRUNED(b, phase, ...) plan_pruned(b, (const char *const[]){ __VA_ARGS__ }, phase)

TEST(prune_removes_files_that_the_plan_no_longer_has) {
        BOX(b);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", "/etc/systemd/system/x.service.d/environment.conf", "/etc/dir/b", NULL);
        ASSERT_OK(apply(&b));
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", NULL);
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "unchanged");
        ASSERT_STREQ(outcome(&b, 1), "done");
        assert_absent(&b, "/etc/systemd/system/x.service.d");
        assert_absent(&b, "/etc/dir/b");
        ASSERT_EQ(root_exists(b.root, "/etc/dir"), 1);          /* only drop-in directories are ours to remove */
        ASSERT_EQ(root_exists(b.root, "/etc/systemd/system"), 1);
        ASSERT_OK(apply(&b));
        ASSERT_EQ(results_count(&b.results, OUTCOME_UNCHANGED), 2);
        assert_no_leftovers(&b);
}

TEST(prune_removes_the_directory_that_a_killed_run_left_empty) {
        BOX(b);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/systemd/system/x.service.d/environment.conf", NULL);
        ASSERT_OK(apply(&b));
        ASSERT_OK(root_remove(b.root, "/etc/systemd/system/x.service.d/environment.conf"));
        PLAN_PRUNED(&b, PHASE_CONFIG, NULL);
        ASSERT_OK(apply(&b));
        assert_absent(&b, "/etc/systemd/system/x.service.d");
}

TEST(prune_leaves_a_file_in_the_place_of_a_dropin_directory) {
        BOX(b);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/systemd/system/x.service.d/environment.conf", NULL);
        ASSERT_OK(apply(&b));
        ASSERT_OK(root_remove(b.root, "/etc/systemd/system/x.service.d/environment.conf"));
        ASSERT_OK(root_remove_dir(b.root, "/etc/systemd/system/x.service.d"));
        put(&b, "/etc/systemd/system/x.service.d", "a file", 0644);
        PLAN_PRUNED(&b, PHASE_CONFIG, NULL);
        ASSERT_OK(apply(&b));
        assert_file(&b, "/etc/systemd/system/x.service.d", "a file");
}

TEST(prune_keeps_a_dropin_directory_that_others_use) {
        BOX(b);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/systemd/system/x.service.d/environment.conf", NULL);
        ASSERT_OK(apply(&b));
        put(&b, "/etc/systemd/system/x.service.d/theirs.conf", "t", 0644);
        PLAN_PRUNED(&b, PHASE_CONFIG, NULL);
        ASSERT_OK(apply(&b));
        assert_absent(&b, "/etc/systemd/system/x.service.d/environment.conf");
        assert_file(&b, "/etc/systemd/system/x.service.d/theirs.conf", "t");
}

TEST(prune_leaves_the_other_phase_alone) {
        BOX(b);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/config", NULL);
        ASSERT_OK(apply(&b));
        PLAN_PRUNED(&b, PHASE_RUN, "/etc/run", NULL);                 /* the second process of the same boot */
        ASSERT_OK(apply(&b));
        assert_file(&b, "/etc/config", "content\n");
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/config", NULL);           /* the next boot */
        ASSERT_OK(apply(&b));
        ASSERT_EQ(results_count(&b.results, OUTCOME_UNCHANGED), 2);
        PLAN_PRUNED(&b, PHASE_RUN, NULL);
        ASSERT_OK(apply(&b));
        assert_absent(&b, "/etc/run");
        assert_file(&b, "/etc/config", "content\n");
}

TEST(prune_removes_a_changed_file_with_a_warning) {
        BOX(b);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", NULL);
        ASSERT_OK(apply(&b));
        put(&b, "/etc/a", "patched by hand\n", 0644);
        PLAN_PRUNED(&b, PHASE_CONFIG, NULL);
        ASSERT_OK(apply(&b));
        assert_absent(&b, "/etc/a");
        ASSERT_EQ(diag_count(&b.diag, true), 1);
        ASSERT_STREQ(b.diag.items[0].code, "file-changed");
}

TEST(prune_keeps_a_path_that_is_no_longer_a_file) {
        BOX(b);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", "/etc/b", NULL);
        ASSERT_OK(apply(&b));
        _free_ char *link = xasprintf("%s/etc/a", b.path);
        ASSERT_OK(root_remove(b.root, "/etc/a"));
        ASSERT_OK(root_remove(b.root, "/etc/b"));
        ASSERT_EQ(symlink("elsewhere", link), 0);
        ASSERT_OK(root_make_dirs(b.root, "/etc/b", 0755));
        PLAN_PRUNED(&b, PHASE_CONFIG, NULL);
        ASSERT_OK(apply(&b));
        ASSERT_EQ(diag_count(&b.diag, true), 2);
        ASSERT_EQ(root_exists(b.root, "/etc/b"), 1);
        ASSERT_EQ(unlink(link), 0);
}

TEST(prune_removes_blocks) {
        BOX(b);
        put(&b, "/etc/hosts", "a\n", 0644);
        add(&b, ACTION_WRITE_BLOCK, "/etc/hosts", "x");
        add(&b, ACTION_PRUNE_FILES, MANIFEST_FILE, NULL);
        ASSERT_OK(apply(&b));
        assert_file(&b, "/etc/hosts", "a\n" BEGIN "x\n" END);
        PLAN_PRUNED(&b, PHASE_CONFIG, NULL);
        ASSERT_OK(apply(&b));
        assert_file(&b, "/etc/hosts", "a\n");
}

TEST(a_manifest_cannot_lead_elsewhere) {
        static const char *const bad[] = { "../etc/victim", "/etc/../etc/victim", "etc/victim", "/etc//victim", "/etc/./victim", "/", "", "/etc/victim/" };
        char digest[65];
        sha256_hex("v", 1, digest);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                BOX(b);
                _free_ char *manifest = xasprintf("{\"version\":1,\"files\":[{\"path\":\"%s\",\"sha256\":\"%s\",\"phase\":\"config\"}]}", bad[i], digest);
                put(&b, "/etc/victim", "v", 0644);
                put(&b, MANIFEST_FILE, manifest, 0600);
                PLAN_PRUNED(&b, PHASE_CONFIG, NULL);
                ASSERT_OK(apply(&b));
                assert_file(&b, "/etc/victim", "v");
                ASSERT_STREQ(b.diag.items[0].code, "manifest-path");
        }
}

TEST(a_broken_manifest_is_a_warning_and_is_repaired) {
        static const char *const bad[] = { "", "{", "[]", "{\"files\": 3}", "{\"files\": [1, null, {}]}" };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                BOX(b);
                put(&b, MANIFEST_FILE, bad[i], 0600);
                PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", NULL);
                ASSERT_OK(apply(&b));
                ASSERT_TRUE(diag_count(&b.diag, true) > 0);
                ASSERT_OK(apply(&b));
                ASSERT_EQ(results_count(&b.results, OUTCOME_UNCHANGED), 2);
                ASSERT_EQ(diag_count(&b.diag, true), 0);
        }
}

/* After a downgrade between two phases of a boot the manifest is of the newer version. */
TEST(a_manifest_of_another_version_is_left_alone) {
        static const char *const versions[] = { "2", "99", "0", "-1", "1.0", "\"1\"", "null", "[1]" };
        char digest[65];
        sha256_hex("v", 1, digest);
        for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
                BOX(b);
                _free_ char *manifest = xasprintf("{\"version\":%s,\"files\":[{\"path\":\"/etc/theirs\",\"sha256\":\"%s\",\"phase\":\"config\"}]}", versions[i], digest);
                put(&b, "/etc/theirs", "v", 0644);
                put(&b, MANIFEST_FILE, manifest, 0600);
                PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", NULL);
                ASSERT_OK(apply(&b));
                assert_file(&b, "/etc/a", "content\n");
                assert_file(&b, "/etc/theirs", "v");
                assert_file(&b, MANIFEST_FILE, manifest);
                ASSERT_EQ(diag_count(&b.diag, true), 1);
                ASSERT_STREQ(b.diag.items[0].code, "manifest-newer");
                ASSERT_OK(apply(&b));
                ASSERT_EQ(results_count(&b.results, OUTCOME_UNCHANGED), 2);
                assert_no_leftovers(&b);
        }
}

TEST(after_a_failed_write_the_old_manifest_stays) {
        BOX(b);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", NULL);
        ASSERT_OK(apply(&b));
        put(&b, "/etc/file", "f", 0644);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/file/b", NULL);
        ASSERT_TRUE(apply(&b) < 0);
        assert_file(&b, "/etc/a", "content\n");
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/b", NULL);
        ASSERT_OK(apply(&b));
        assert_absent(&b, "/etc/a");
}

TEST(the_next_run_prunes_files_of_a_failed_run) {
        BOX(b);         /* of the run phase: files of the configuration are written together or not at all */
        _free_ char *manifest = NULL;
        put(&b, "/etc/file", "f", 0644);
        put(&b, "/etc/theirs", "t", 0644);
        PLAN_PRUNED(&b, PHASE_RUN, "/etc/new", "/etc/file/b", "/etc/theirs", NULL);
        strv_add(&b.plan.actions[2].after, "write-file:/etc/file/b");
        ASSERT_TRUE(apply(&b) < 0);
        assert_file(&b, "/etc/new", "content\n");
        assert_file(&b, "/etc/theirs", "t");
        PLAN_PRUNED(&b, PHASE_RUN, "/etc/a", NULL);          /* the plan has another file now */
        ASSERT_OK(apply(&b));
        assert_absent(&b, "/etc/new");
        assert_file(&b, "/etc/theirs", "t");                    /* nodestrap never wrote it */
        ASSERT_EQ(diag_count(&b.diag, true), 0);
        ASSERT_OK(root_read(b.root, MANIFEST_FILE, 1 << 20, &manifest, NULL));
        ASSERT_TRUE(!strstr(manifest, "intended") && !strstr(manifest, "theirs"));
        assert_no_leftovers(&b);
}

/* Checks the order in which files come into /etc and beside the manifest. second: the file is in a second
 * batch, and the first batch writes nothing. */
static void assert_order(bool second, const char *want) {
        BOX(b);
        _free_ char *etc = xasprintf("%s/etc", b.path), *var = xasprintf("%s/var/lib/nodestrap", b.path);
        char events[4096] __attribute__((aligned(__alignof__(struct inotify_event)))), same[] = "write-file:/etc/same";
        char *after_any[] = { same, NULL };
        Text order = {};
        put(&b, MANIFEST_FILE, "{\"version\": 1, \"files\": []}", 0600);
        put(&b, "/etc/same", "content\n", 0644);
        int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        ASSERT_TRUE(fd >= 0 && inotify_add_watch(fd, etc, IN_MOVED_TO) == 1 && inotify_add_watch(fd, var, IN_MOVED_TO) == 2);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/same", "/etc/a", NULL);
        if (second)
                b.plan.actions[1].after_any = after_any;
        ASSERT_OK(apply(&b));
        ssize_t n = read(fd, events, sizeof events);
        for (char *p = events; p < events + n; p += sizeof(struct inotify_event) + ((struct inotify_event *)(void *)p)->len)
                text_add(&order, "%s ", ((struct inotify_event *)(void *)p)->name);
        close(fd);
        _free_ char *names = text_take(&order);
        ASSERT_STREQ(names, want);
}

TEST(the_manifest_names_files_before_they_are_written) {
        assert_order(false, "manifest.json a manifest.json ");
        assert_order(true, "manifest.json a manifest.json ");
}

/* ---- disks that refuse ---- */

TEST(a_full_disk_leaves_the_old_file) {
        BOX(b);
        _free_ char *mount_point = xasprintf("%s/etc", b.path);
        _free_ char *big = xcalloc(300001, 1);
        memset(big, 'x', 300000);
        ASSERT_EQ(mkdir(mount_point, 0755), 0);
        if (mount("tmpfs", mount_point, "tmpfs", 0, "size=64k") < 0)
                { printf("# not tried: mounting needs root\n"); return; }
        put(&b, "/etc/a", "old", 0644);
        add(&b, ACTION_WRITE_FILE, "/etc/a", big);
        int r = apply(&b);
        assert_file(&b, "/etc/a", "old");
        assert_no_leftovers(&b);
        ASSERT_EQ(umount(mount_point), 0);
        ASSERT_TRUE(r < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "free some space");
        _free_ char *told = diagnostic_format(diag_first_error(&b.diag));
        ASSERT_CONTAINS(told, "/etc/a");
}

TEST(temporary_files_of_a_killed_run_are_removed) {
        BOX(b);
        put(&b, "/etc/.a.0123456789abcdef.tmp", "an old secret", 0600);
        put(&b, "/etc/a", "same", 0644);
        add(&b, ACTION_WRITE_FILE, "/etc/a", "same");
        ASSERT_OK(apply(&b));
        ASSERT_STREQ(outcome(&b, 0), "unchanged");
        assert_absent(&b, "/etc/.a.0123456789abcdef.tmp");
        assert_no_leftovers(&b);
}

TEST(the_message_names_a_read_only_file_system) {
        BOX(b);
        _free_ char *mount_point = xasprintf("%s/etc", b.path);
        ASSERT_EQ(mkdir(mount_point, 0755), 0);
        if (mount("tmpfs", mount_point, "tmpfs", MS_RDONLY, NULL) < 0)
                return;
        add(&b, ACTION_WRITE_FILE, "/etc/a", "a");
        int r = apply(&b);
        ASSERT_EQ(umount(mount_point), 0);
        ASSERT_TRUE(r < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "Read-only");
}

/* ---- disks that hang ---- */

static size_t count_threads(void) {
        _cleanup_(root_freep) Root *host = NULL;
        _strv_ char **names = NULL;
        ASSERT_OK(root_new("/", &host));
        ASSERT_OK(root_list(host, "/proc/self/task", &names));
        return strv_length(names) - (TRANSLATED_BY("qemu-user") ? 1 : 0);      /* it has one of its own */
}

static void is_given_up(Box *b, const char *path) {
        uint64_t begin = now_usec();
        ASSERT_TRUE(apply(b) < 0);
        ASSERT_TRUE(now_usec() - begin < 60 * USEC_PER_SEC);
        ASSERT_EQ(b->results.threads_left, 1);
        ASSERT_STREQ(outcome(b, 0), "failed");
        ASSERT_CONTAINS(b->results.items[0].text, "not done after 2 s; looking for files of an earlier run beside it; dmesg");
        ASSERT_EQ(b->results.items[0].cause, CAUSE_STALLED);
        ASSERT_TRUE(b->results.items[0].end_usec - b->results.items[0].begin_usec >= 2 * USEC_PER_SEC);
        ASSERT_STREQ(diag_first_error(&b->diag)->path, b->plan.actions[0].id);
        ASSERT_EQ(diag_count(&b->diag, false), 1);
        ASSERT_STREQ(outcome(b, 1), "skipped");         /* of the same batch */
        ASSERT_CONTAINS(b->results.items[1].text, "nodestrap stopped at write-file:");
        ASSERT_CONTAINS(b->results.items[1].text, path);
        ASSERT_STREQ(outcome(b, 2), "skipped");         /* comes after it */
        ASSERT_STREQ(outcome(b, 3), "done");            /* of another batch, on a disk that answers */
        assert_absent(b, "/etc/same-batch");
        assert_file(b, "/etc/later", "l");
}

/* A thread that has ended may still be listed for a moment. */
static void await_threads(size_t n) {
        for (int i = 0; i < 1000 && count_threads() != n; i++)
                usleep(10000);
        ASSERT_EQ(count_threads(), n);
}

/* On a busy machine the thread may not have begun at its deadline. */
TEST(a_thread_may_miss_its_deadline_before_it_begins) {
        cpu_set_t all, one;
        ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        for (int i = 0; i < 50; i++) {
                BOX(b);
                add(&b, ACTION_WRITE_FILE, "/etc/a", "a")->deadline_usec = 1;
                add(&b, ACTION_WRITE_FILE, "/etc/b", "b");
                if (apply(&b) < 0) {
                        bool first = streq(outcome(&b, 0), "failed");
                        ASSERT_CONTAINS(b.results.items[!first].text, "not done after 1e-06 s; ");
                        ASSERT_CONTAINS(b.results.items[first].text, "may or may not have its new content");
                        ASSERT_CONTAINS(b.results.items[first].text, first ? "nodestrap stopped at write-file:/etc/a" : "nodestrap stopped at write-file:/etc/b");
                }
                await_threads(1);
        }
        ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

/* The server of this file system never answers: each access hangs until the server is gone. */
TEST(a_disk_that_hangs_does_not_hold_up_the_run) {
        BOX(b);
        _free_ char *mount_point = xasprintf("%s/hung", b.path);
        int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        _free_ char *options = xasprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
        ASSERT_EQ(mkdir(mount_point, 0755), 0);
        if (fd < 0 || mount("test", mount_point, "fuse", 0, options) < 0) {
                printf("# not tried: a FUSE of one's own needs root\n");
                return;
        }
        /* long enough for the thread to get there also on a busy machine */
        add(&b, ACTION_WRITE_FILE, "/hung/a", "a")->deadline_usec = 2 * USEC_PER_SEC;
        add(&b, ACTION_WRITE_FILE, "/etc/same-batch", "s");
        strv_add(&add(&b, ACTION_WRITE_FILE, "/etc/after", "y")->after, "write-file:/hung/a");
        add(&b, ACTION_WRITE_FILE, "/etc/later", "l");
        strv_add(&b.plan.actions[3].after_any, "write-file:/hung/a");
        for (size_t i = 1; i < 4; i++)
                b.plan.actions[i].phase = PHASE_RUN;    /* those of the configuration are written together or not at all */
        is_given_up(&b, "/hung/a");
        await_threads(2);
        close(fd);                      /* the thread comes back, and writes nothing any more */
        await_threads(1);               /* before that the plan must stay */
        ASSERT_EQ(umount2(mount_point, MNT_DETACH), 0);
        strv_free(b.plan.actions[3].after_any);
        assert_absent(&b, "/etc/same-batch");
        assert_no_leftovers(&b);
}

/* Mounts such a file system at path, until the descriptor is closed; < 0 if this user may not. */
static int mount_hung(const Box *b, const char *path) {
        _free_ char *mount_point = xasprintf("%s%s", b->path, path);
        int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        _free_ char *options = xasprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
        ASSERT_OK(root_make_dirs(b->root, path, 0755));
        if (fd >= 0 && mount("test", mount_point, "fuse", 0, options) == 0)
                return fd;
        printf("# not tried: a FUSE of one's own needs root\n");
        return -1;
}

static void umount_hung(const Box *b, const char *path, int fd) {
        _free_ char *mount_point = xasprintf("%s%s", b->path, path);
        close(fd);
        await_threads(1);
        ASSERT_EQ(umount2(mount_point, MNT_DETACH), 0);
}

TEST(a_manifest_on_a_disk_that_hangs_does_not_hold_up_later_files) {
        BOX(b);
        char manifest[] = "prune-files:" MANIFEST_FILE;
        char *after_any[] = { manifest, NULL };
        int fd = mount_hung(&b, "/var/lib/nodestrap");
        if (fd < 0)
                return;
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", NULL);
        b.plan.actions[0].deadline_usec = 2 * USEC_PER_SEC;
        Action *later = add(&b, ACTION_WRITE_FILE, "/etc/later", "l");
        later->after_any = after_any;
        later->phase = PHASE_RUN;       /* those of the configuration are written together or not at all */
        later->deadline_usec = 2 * USEC_PER_SEC;
        ASSERT_TRUE(apply(&b) < 0);
        umount_hung(&b, "/var/lib/nodestrap", fd);
        ASSERT_EQ(b.results.threads_left, 1);
        ASSERT_STREQ(outcome(&b, 0), "skipped");
        ASSERT_STREQ(outcome(&b, 1), "failed");
        ASSERT_STREQ(outcome(&b, 2), "done");
}

/* Answers the next request: success for the mount, ENOENT for others. */
static void answer_hung(int fd) {
        static char question[FUSE_MIN_READ_BUFFER];
        const struct fuse_in_header *in = (const void *)question;
        struct { struct fuse_out_header header; struct fuse_init_out init; } out = {};
        ASSERT_TRUE(read(fd, question, sizeof question) >= (ssize_t)sizeof *in);
        bool init = in->opcode == FUSE_INIT;
        out.init = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
                                           .max_write = 4096 };
        out.header.unique = in->unique;
        out.header.error = init ? 0 : -ENOENT;
        out.header.len = init ? sizeof out : sizeof out.header;
        ASSERT_EQ(write(fd, &out, out.header.len), out.header.len);
}

TEST(a_disk_that_answers_late_removes_no_more_files) {
        BOX(b);
        int fd = mount_hung(&b, "/hung");
        if (fd < 0)
                return;
        answer_hung(fd);
        char digest[65];
        sha256_hex("v", 1, digest);
        _free_ char *manifest =
                xasprintf("{\"version\": 1, \"files\": [{\"path\": \"/hung/x\", \"sha256\": \"%s\", "
                          "\"phase\": \"config\"}, {\"path\": \"/etc/victim\", \"sha256\": \"%s\", "
                          "\"phase\": \"config\"}]}", digest, digest);
        put(&b, "/etc/victim", "v", 0644);
        put(&b, MANIFEST_FILE, manifest, 0600);
        PLAN_PRUNED(&b, PHASE_CONFIG, "/etc/a", NULL);
        b.plan.actions[0].deadline_usec = 2 * USEC_PER_SEC;
        ASSERT_TRUE(apply(&b) < 0);
        ASSERT_STREQ(outcome(&b, 1), "failed");
        ASSERT_CONTAINS(b.results.items[1].text, "not done after 2 s; removing a file that the plan does not list; dmesg");
        answer_hung(fd);                /* nothing is there: it goes on */
        umount_hung(&b, "/hung", fd);
        assert_file(&b, "/etc/victim", "v");
        _free_ char *now = NULL;
        ASSERT_OK(root_read(b.root, MANIFEST_FILE, 1 << 20, &now, NULL));
        ASSERT_CONTAINS(now, "/etc/victim");
}

static void *stop_when_asked(void *userdata) {
        static char question[FUSE_MIN_READ_BUFFER];
        if (read(*(int *)userdata, question, sizeof question) > 0)
                kill(getpid(), SIGTERM);
        return NULL;
}

/* The signal comes before the first line about waiting, and long before the deadline. */
TEST(a_signal_stops_files_that_wait_for_a_disk) {
        BOX(b);
        sigset_t set, old;
        pthread_t disk;
        int fd = mount_hung(&b, "/hung");
        if (fd < 0)
                return;
        answer_hung(fd);
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        ASSERT_EQ(sigprocmask(SIG_BLOCK, &set, &old), 0);
        add(&b, ACTION_WRITE_FILE, "/hung/a", "a")->deadline_usec = 9 * USEC_PER_SEC;
        ASSERT_EQ(pthread_create(&disk, NULL, stop_when_asked, &fd), 0);
        int r = apply(&b);
        pthread_join(disk, NULL);
        umount_hung(&b, "/hung", fd);   /* first of all: until then this process cannot end */
        (void)sigtimedwait(&set, NULL, &(struct timespec){});   /* it came too late */
        ASSERT_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
        ASSERT_TRUE(r < 0);
        ASSERT_CONTAINS(b.results.items[0].text, "stopped by SIGTERM; looking for files of an earlier run beside it");
        ASSERT_EQ(b.results.items[0].cause, CAUSE_INTERRUPTED);
        ASSERT_EQ(b.results.threads_left, 1);
}

TEST(a_signal_before_the_first_action_stops_the_run) {
        BOX(b);
        sigset_t set, old;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        ASSERT_EQ(sigprocmask(SIG_BLOCK, &set, &old), 0);
        raise(SIGTERM);
        add(&b, ACTION_WRITE_FILE, "/etc/a", "a");
        ASSERT_ERROR(apply(&b), EINTR);
        ASSERT_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);     /* it was taken: this does not end us */
        ASSERT_EQ(diag_first_error(&b.diag)->cause, CAUSE_INTERRUPTED);
        assert_absent(&b, "/etc/a");
        ASSERT_OK(apply(&b));
}

TEST_MAIN
