/* SPDX-License-Identifier: Apache-2.0
 * Files below a root: links that try to leave it, replacement that is atomic and skipped when nothing differs. */
#include "base/root.h"
#include "base/str.h"
#include "commands/run.h"
#include "files.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/test-root.XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

static void cleanup(void) {
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static Root *fixture(void) {
        static bool made;
        Root *r = NULL;
        if (!made) {
                if (!mkdtemp(dir))
                        FAIL("mkdtemp: %s", strerror(errno));
                atexit(cleanup);
                made = true;
        }
        ASSERT_OK(root_new(dir, &r));
        ASSERT_TRUE(!root_is_host(r));
        return r;
}

static size_t entries(const char *below) {
        _free_ char *path = xasprintf("%s%s", dir, below);
        size_t n = 0;
        DIR *d = opendir(path);
        while (d && readdir(d))
                n++;
        if (d)
                closedir(d);
        return n - 2;
}

TEST(absolute_links_and_dot_dot_stay_below_the_root) {
        _cleanup_(root_freep) Root *r = fixture();
        _free_ char *link = xasprintf("%s/etc/abs", dir), *up = xasprintf("%s/etc/up", dir), *line = NULL;
        ASSERT_OK(root_replace(r, "/etc/target", " inside \nsecond\n", 16, 0644));
        ASSERT_OK(symlink("/etc/target", link));
        ASSERT_OK(symlink("../../../../../../etc/target", up));
        ASSERT_OK(root_read_line(r, "/etc/abs", &line));
        ASSERT_STREQ(line, "inside");
        free(TAKE_PTR(line));
        ASSERT_OK(root_read_line(r, "/etc/up", &line));
        ASSERT_STREQ(line, "inside");
        _free_ char *name = NULL, *none = NULL;
        ASSERT_OK(root_link_name(r, "/etc/abs", &name));
        ASSERT_STREQ(name, "target");
        ASSERT_ERROR(root_link_name(r, "/etc/target", &none), EINVAL);
}

TEST(replace_writes_once_and_leaves_no_temporary_file) {
        _cleanup_(root_freep) Root *r = fixture();
        struct stat before, after;
        _free_ char *path = xasprintf("%s/a/b/c/file", dir);
        ASSERT_EQ(ASSERT_OK(root_replace(r, "/a/b/c/file", "one", 3, 0600)), 1);
        ASSERT_OK(stat(path, &before));
        ASSERT_EQ(before.st_mode & 07777, 0600);
        ASSERT_EQ(ASSERT_OK(root_replace(r, "/a/b/c/file", "one", 3, 0600)), 0);
        ASSERT_OK(stat(path, &after));
        ASSERT_EQ(before.st_ino, after.st_ino);
        ASSERT_EQ(ASSERT_OK(root_replace(r, "/a/b/c/file", "one", 3, 0644)), 1);        /* the mode alone differs */
        ASSERT_EQ(ASSERT_OK(root_replace(r, "/a/b/c/file", "two", 3, 0644)), 1);
        ASSERT_EQ(entries("/a/b/c"), 1);
}

TEST(a_link_at_the_target_is_replaced_not_followed) {
        _cleanup_(root_freep) Root *r = fixture();
        _free_ char *link = xasprintf("%s/lnk", dir), *victim = NULL;
        struct stat st;
        ASSERT_OK(root_replace(r, "/victim", "safe", 4, 0644));
        ASSERT_OK(symlink("victim", link));
        ASSERT_TRUE(!file_is(r, "/lnk", "safe", 4, 0644));
        ASSERT_EQ(ASSERT_OK(root_replace(r, "/lnk", "new", 3, 0644)), 1);
        ASSERT_OK(lstat(link, &st));
        ASSERT_TRUE(S_ISREG(st.st_mode));
        ASSERT_OK(root_read_line(r, "/victim", &victim));
        ASSERT_STREQ(victim, "safe");
}

TEST(compare_reports_how_a_file_differs) {
        _cleanup_(root_freep) Root *r = fixture();
        ASSERT_EQ(root_compare(r, "/c/file", "one", 3, 0644, ROOT_ANYBODY), ROOT_MISSING);
        ASSERT_OK(root_replace(r, "/c/file", "one", 3, 0644));
        ASSERT_EQ(root_compare(r, "/c/file", "one", 3, 0644, geteuid()), 0);
        ASSERT_EQ(root_compare(r, "/c/file", "two", 3, 0644, ROOT_ANYBODY), ROOT_CONTENT);
        ASSERT_EQ(root_compare(r, "/c/file", "three", 5, 0600, geteuid() + 1), ROOT_CONTENT | ROOT_MODE | ROOT_OWNER);
        ASSERT_OK(root_link(r, "/c/link", "file"));
        ASSERT_EQ(root_compare(r, "/c/link", "one", 3, 0644, ROOT_ANYBODY), ROOT_KIND);
        ASSERT_ERROR(root_compare(r, "/c", "one", 3, 0644, ROOT_ANYBODY), EISDIR);
        ASSERT_EQ(root_compare_link(r, "/c/link", "file"), 0);
        ASSERT_EQ(root_compare_link(r, "/c/link", "fil"), ROOT_CONTENT);
        ASSERT_EQ(root_compare_link(r, "/c/file", "file"), ROOT_KIND);
        ASSERT_EQ(root_compare_link(r, "/c/none", "file"), ROOT_MISSING);
}

TEST(a_staged_file_that_is_not_published_leaves_nothing) {
        _cleanup_(root_freep) Root *r = fixture();
        RootTmp t;
        ASSERT_EQ(ASSERT_OK(root_tmp_stage(r, "/s/file", "x", 1, 0644, ROOT_ANYBODY, &t)), 1);
        ASSERT_EQ(entries("/s"), 1);
        root_tmp_release(&t);
        ASSERT_EQ(entries("/s"), 0);
        ASSERT_EQ(ASSERT_OK(root_exists(r, "/s/file")), 0);
}

TEST(the_sweep_removes_only_the_staged_files_of_a_killed_run) {
        _cleanup_(root_freep) Root *r = fixture();
        static const char *const names[] = { "/w/.file.0123456789abcdef.tmp", "/w/.file.ffffffffffffffff.tmp", "/w/.file.0123456789abcde.tmp",
                                             "/w/.file.0123456789abcdefg.tmp", "/w/.other.0123456789abcdef.tmp", "/w/.file.swp", "/w/file" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                ASSERT_OK(root_replace(r, names[i], "secret", 6, 0600));
        ASSERT_EQ(ASSERT_OK(root_tmp_sweep(r, "/w/file")), 2);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                ASSERT_EQ(ASSERT_OK(root_exists(r, names[i])), i >= 2);
        ASSERT_EQ(ASSERT_OK(root_tmp_sweep(r, "/w/file")), 0);
        ASSERT_EQ(ASSERT_OK(root_tmp_sweep(r, "/no/such/file")), 0);
}

TEST(big_missing_and_blocked_files_are_errors) {
        _cleanup_(root_freep) Root *r = fixture();
        char *data = NULL;
        uint64_t n = 0;
        ASSERT_OK(root_replace(r, "/big", "0123456789", 10, 0644));
        ASSERT_ERROR(root_read(r, "/big", 9, &data, NULL), EFBIG);
        ASSERT_ERROR(root_read(r, "/nothing", 9, &data, NULL), ENOENT);
        ASSERT_TRUE(data == NULL);
        ASSERT_OK(root_read_u64(r, "/big", &n));
        ASSERT_EQ(n, 123456789);
        ASSERT_ERROR(root_replace(r, "/big/below", "x", 1, 0644), ENOTDIR);
        ASSERT_EQ(ASSERT_OK(root_make_dirs(r, "/d", 0755)), 1);
        ASSERT_TRUE(root_replace(r, "/d", "x", 1, 0644) < 0);
        ASSERT_EQ(ASSERT_OK(root_remove(r, "/big")), 1);
        ASSERT_EQ(ASSERT_OK(root_remove(r, "/big")), 0);
        ASSERT_EQ(ASSERT_OK(root_remove(r, "/no/such/dir/file")), 0);
}

TEST(lists_are_sorted_and_executables_are_recognized) {
        _cleanup_(root_freep) Root *r = fixture();
        _strv_ char **names = NULL;
        ASSERT_OK(root_replace(r, "/list/b", "", 0, 0644));
        ASSERT_OK(root_replace(r, "/list/a", "", 0, 0755));
        ASSERT_OK(root_list(r, "/list", &names));
        ASSERT_EQ(strv_length(names), 2);
        ASSERT_STREQ(names[0], "a");
        ASSERT_EQ(ASSERT_OK(root_executable(r, "/list/a")), 1);
        ASSERT_EQ(ASSERT_OK(root_executable(r, "/list/b")), 0);
        ASSERT_EQ(ASSERT_OK(root_executable(r, "/list")), 0);
        ASSERT_EQ(ASSERT_OK(root_executable(r, "/list/none")), 0);
}

/* A rename or mount anywhere makes openat2() give up on a path with ".." in it (EAGAIN): links of /sys have
 * some. */
TEST(renames_elsewhere_do_not_disturb_a_path_with_dot_dot) {
        _cleanup_(root_freep) Root *r = fixture();
        ASSERT_OK(root_replace(r, "/climb/a/b/file", "x", 1, 0644));
        _free_ char *one = xasprintf("%s/climb/1", dir), *two = xasprintf("%s/climb/2", dir);
        ASSERT_OK(root_make_dirs(r, "/climb/1", 0755));
        pid_t pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;) {
                        rename(one, two);
                        rename(two, one);
                }
        }
        for (int i = 0, failed = 0; i <= 20000 && failed >= 0; i++) {
                failed = root_exists(r, "/climb/a/b/../../a/b/../b/../../a/b/file");
                if (i < 20000 && failed >= 0)
                        continue;
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                ASSERT_OK(failed);
        }
}

TEST(directories_may_end_with_a_slash) {
        _cleanup_(root_freep) Root *r = fixture();
        ASSERT_EQ(ASSERT_OK(root_make_dirs(r, "/slash/a//b/", 0755)), 1);
        ASSERT_EQ(ASSERT_OK(root_make_dirs(r, "/slash/a/b//", 0755)), 0);
        ASSERT_EQ(ASSERT_OK(root_make_dirs(r, "/", 0755)), 0);
        ASSERT_EQ(entries("/slash/a/b"), 0);
        ASSERT_ERROR(root_replace(r, "/slash/a/b/", "x", 1, 0644), EINVAL);
}

TEST(the_target_of_a_link_is_read) {
        _cleanup_(root_freep) Root *r = fixture();
        _free_ char *target = NULL, *name = NULL, *none = NULL;
        ASSERT_OK(root_link(r, "/links/a", "/etc/b.d/c"));
        ASSERT_OK(root_replace(r, "/links/file", "", 0, 0644));
        ASSERT_OK(root_read_link(r, "/links/a", &target));
        ASSERT_STREQ(target, "/etc/b.d/c");
        ASSERT_OK(root_link_name(r, "/links/a", &name));
        ASSERT_STREQ(name, "c");
        ASSERT_ERROR(root_read_link(r, "/links/file", &none), EINVAL);
        ASSERT_ERROR(root_read_link(r, "/links/none", &none), ENOENT);
}

TEST(a_dead_link_is_not_a_directory) {
        _cleanup_(root_freep) Root *r = fixture();
        _free_ char *link = xasprintf("%s/nowhere", dir);
        ASSERT_EQ(symlink("missing", link), 0);
        ASSERT_TRUE(root_make_dirs(r, "/nowhere", 0755) < 0);
        ASSERT_TRUE(root_replace(r, "/nowhere/file", "x", 1, 0644) < 0);
        _free_ char *said = root_dead_link(r, "/nowhere/a/file"), *itself = root_dead_link(r, "/nowhere");
        ASSERT_STREQ(said, "/nowhere is a link to missing, which does not exist");
        ASSERT_STREQ(itself, said);
        ASSERT_TRUE(!root_dead_link(r, "/not/there") && !root_dead_link(r, "/"));
        ASSERT_OK(root_make_dirs(r, "/missing", 0755));
        ASSERT_TRUE(!root_dead_link(r, "/nowhere/a/file"));
}

TEST(links_are_made_once_and_replace_files) {
        _cleanup_(root_freep) Root *r = fixture();
        _free_ char *name = NULL, *other = NULL;
        ASSERT_EQ(ASSERT_OK(root_link(r, "/links/deep/a", "/etc/somewhere/one")), 1);
        ASSERT_EQ(ASSERT_OK(root_link(r, "/links/deep/a", "/etc/somewhere/one")), 0);
        ASSERT_OK(root_link_name(r, "/links/deep/a", &name));
        ASSERT_STREQ(name, "one");
        ASSERT_EQ(ASSERT_OK(root_link(r, "/links/deep/a", "/etc/somewhere/one-more")), 1);
        ASSERT_OK(root_replace(r, "/links/deep/file", "x", 1, 0644));
        ASSERT_EQ(ASSERT_OK(root_link(r, "/links/deep/file", "two")), 1);
        ASSERT_OK(root_link_name(r, "/links/deep/file", &other));
        ASSERT_STREQ(other, "two");
        ASSERT_ERROR(root_link(r, "/links/deep", "two"), EISDIR);
        ASSERT_EQ(entries("/links/deep"), 2);
}

TEST(only_empty_directories_are_removed) {
        _cleanup_(root_freep) Root *r = fixture();
        ASSERT_OK(root_replace(r, "/empty/a/file", "x", 1, 0644));
        ASSERT_EQ(ASSERT_OK(root_remove_dir(r, "/empty/a")), 0);
        ASSERT_ERROR(root_remove(r, "/empty/a"), EISDIR);
        ASSERT_EQ(ASSERT_OK(root_remove(r, "/empty/a/file")), 1);
        ASSERT_EQ(ASSERT_OK(root_remove_dir(r, "/empty/a")), 1);
        ASSERT_EQ(ASSERT_OK(root_remove_dir(r, "/empty/a")), 0);
        ASSERT_EQ(ASSERT_OK(root_remove_dir(r, "/nowhere/a")), 0);
        ASSERT_OK(root_replace(r, "/empty/file", "x", 1, 0644));
        ASSERT_ERROR(root_remove_dir(r, "/empty/file"), ENOTDIR);
}

TEST(a_pipe_without_a_writer_is_empty) {
        _cleanup_(root_freep) Root *r = fixture();
        _free_ char *path = xasprintf("%s/pipe", dir), *data = NULL;
        size_t size = 1;
        ASSERT_EQ(mkfifo(path, 0600), 0);
        alarm(30);                      /* instead of a test that never ends */
        ASSERT_OK(root_read(r, "/pipe", 9, &data, &size));
        alarm(0);
        ASSERT_EQ(size, 0);
}

/* From here on, openat2(2) fails with this error in the child. */
static bool keep_from_openat2(unsigned error) {
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { ARRAY_SIZE(filter), filter };
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Emulators lack the call. Sandboxes of older container runtimes answer EPERM to calls that they do not
 * know. */
TEST(a_kernel_without_openat2_is_an_error_that_names_the_call) {
        static const unsigned errors[] = { ENOSYS, EPERM };
        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                int status = 0;
                pid_t pid = fork();
                if (pid == 0) {
                        Run run = { .options.root = "/", .lock_fd = -1, .devices_fd = -1 };
                        if (!keep_from_openat2(errors[i]))
                                _exit(77);
                        int r = run_open_root(&run);
                        const Diagnostic *d = diag_first_error(&run.diag);
                        _exit(r == -ENOSYS && !run.root && d && d->cause == CAUSE_FACTS && strstr(d->text, "openat2(2)") ? 0 : 1);
                }
                ASSERT_EQ(waitpid(pid, &status, 0), pid);
                if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                        SKIP("no seccomp here");
                ASSERT_EQ(status, 0);
        }
}

TEST(program_names_give_their_search_paths) {
        _strv_ char **paths = program_paths("cp"), **one = program_paths("/opt/x");
        ASSERT_STREQ(paths[0], "/usr/local/sbin/cp");
        ASSERT_STREQ(paths[3], "/usr/bin/cp");
        ASSERT_EQ(strv_length(paths), 6);
        ASSERT_STREQ(one[0], "/opt/x");
        ASSERT_TRUE(!one[1]);
}

TEST_MAIN
