/* SPDX-License-Identifier: Apache-2.0
 * Trees of ordinary files; those with mounts and device nodes are in test-move.c. */
#include "apply/tree.h"

#include "base/root.h"
#include "base/str.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Pair { char path[32]; Root *root; int a, b; char *where; } Pair;        /* two directories, a and b */

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
        return remove(path);
}

static void pair_init(Pair *p) {
        *p = (Pair){ .path = "/tmp/test-tree.XXXXXX" };
        ASSERT_TRUE(mkdtemp(p->path));
        ASSERT_OK(root_new(p->path, &p->root));
        ASSERT_OK(root_make_dirs(p->root, "/a", 0755));
        ASSERT_OK(root_make_dirs(p->root, "/b", 0755));
        p->a = ASSERT_OK(root_open(p->root, "/a", O_RDONLY | O_DIRECTORY));
        p->b = ASSERT_OK(root_open(p->root, "/b", O_RDONLY | O_DIRECTORY));
}

static void pair_done(Pair *p) {
        close(p->a);
        close(p->b);
        free(p->where);
        root_free(p->root);
        nftw(p->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
#define PAIR(name) _cleanup_(pair_done) Pair name; pair_init(&name)

static void put(const Pair *p, const char *path, const char *content) {
        ASSERT_OK(root_replace_volatile(p->root, path, content, strlen(content), 0644));
}

static void put_link(const Pair *p, const char *path, const char *target) {
        _free_ char *full = xasprintf("%s%s", p->path, path);
        ASSERT_EQ(symlink(target, full), 0);
}

static void assert_file(const Pair *p, const char *path, const char *content) {
        _free_ char *data = NULL;
        ASSERT_OK(root_read(p->root, path, 1 << 20, &data, NULL));
        ASSERT_STREQ(data, content);
}

static void assert_entries(const Pair *p, const char *path, const char *names) {
        _strv_ char **list = NULL;
        ASSERT_OK(root_list(p->root, path, &list));
        _free_ char *joined = strv_join(list, " ");
        ASSERT_STREQ(joined, names);
}

/* Gives the file in b the times of the one in a. */
static void same_times(const Pair *p, const char *name) {
        struct stat st;
        ASSERT_EQ(fstatat(p->a, name, &st, AT_SYMLINK_NOFOLLOW), 0);
        ASSERT_EQ(utimensat(p->b, name, (struct timespec[]){ st.st_atim, st.st_mtim }, AT_SYMLINK_NOFOLLOW), 0);
}

TEST(list_is_sorted_and_leaves_the_descriptor_as_it_was) {
        PAIR(p);
        put(&p, "/a/two", "");
        put(&p, "/a/.one", "");
        for (int i = 0; i < 2; i++) {
                _strv_ char **names = NULL;
                ASSERT_OK(tree_list(p.a, &names));
                ASSERT_EQ(strv_length(names), 2);
                ASSERT_STREQ(names[0], ".one");
        }
}

TEST(remove_deletes_a_tree_and_follows_no_link) {
        PAIR(p);
        put(&p, "/b/kept", "x");
        put(&p, "/a/tree/deep/deeper/file", "x");
        put_link(&p, "/a/tree/deep/link", "../../../b");
        put_link(&p, "/a/link", "../b");
        ASSERT_OK(tree_remove(p.a, "tree", &p.where));
        ASSERT_OK(tree_remove(p.a, "link", &p.where));
        ASSERT_OK(tree_remove(p.a, "nothing", &p.where));
        assert_entries(&p, "/a", "");
        assert_file(&p, "/b/kept", "x");
        ASSERT_TRUE(!p.where);
}

TEST(merge_moves_a_tree_to_a_free_name) {
        PAIR(p);
        put(&p, "/a/x/tree/file", "new");
        ASSERT_OK(tree_merge(p.a, "x/tree", p.b, "other", &p.where));
        assert_file(&p, "/b/other/file", "new");
        assert_entries(&p, "/a/x", "");
}

TEST(merge_replaces_old_files_and_keeps_the_rest_of_the_old_tree) {
        PAIR(p);
        put(&p, "/b/tree/old", "old");
        put(&p, "/b/tree/both", "old");
        put(&p, "/b/tree/in/old", "old");
        put_link(&p, "/b/tree/link", "old");
        put(&p, "/a/tree/both", "new");
        put(&p, "/a/tree/in/new", "new");
        put(&p, "/a/tree/link", "no link");
        ASSERT_EQ(fchmodat(p.b, "tree", 0700, 0), 0);
        ASSERT_OK(tree_merge(p.a, "tree", p.b, "tree", &p.where));
        assert_entries(&p, "/a", "");
        assert_entries(&p, "/b", "tree");
        assert_entries(&p, "/b/tree", "both in link old");
        assert_entries(&p, "/b/tree/in", "new old");
        assert_file(&p, "/b/tree/old", "old");
        assert_file(&p, "/b/tree/both", "new");
        assert_file(&p, "/b/tree/link", "no link");
        struct stat st;
        ASSERT_EQ(fstatat(p.b, "tree", &st, 0), 0);
        ASSERT_EQ(st.st_mode & 07777, 0700);
}

TEST(merge_renames_an_old_entry_of_another_type) {
        PAIR(p);
        for (int i = 0; i < 2; i++) {
                put(&p, "/b/one/content", "precious");
                put(&p, "/a/one", "file");
                ASSERT_OK(tree_merge(p.a, "one", p.b, "one", &p.where));
                assert_file(&p, "/b/one", "file");
                ASSERT_EQ(unlinkat(p.b, "one", 0), 0);
        }
        assert_file(&p, "/b/one.nodestrap-old/content", "precious");
        assert_file(&p, "/b/one.nodestrap-old.2/content", "precious");
        put(&p, "/b/two", "precious");
        put(&p, "/a/two/content", "tree");
        ASSERT_OK(tree_merge(p.a, "two", p.b, "two", &p.where));
        assert_file(&p, "/b/two/content", "tree");
        assert_file(&p, "/b/two.nodestrap-old", "precious");
}

TEST(a_failure_names_the_entry) {
        PAIR(p);
        ASSERT_ERROR(tree_merge(p.a, "absent", p.b, "there", &p.where), ENOENT);
        ASSERT_STREQ(p.where, "there");
}

TEST(entries_that_were_copied_are_removed) {
        PAIR(p);
        put(&p, "/a/in/file", "same");
        put(&p, "/b/in/file", "same");
        put(&p, "/b/more", "of a later boot");
        put_link(&p, "/a/link", "x");
        put_link(&p, "/b/link", "x");
        same_times(&p, "in/file");
        ASSERT_OK(tree_remove_copied(p.a, p.b, &p.where));
        assert_entries(&p, "/a", "");
        assert_entries(&p, "/b", "in link more");
        assert_file(&p, "/b/in/file", "same");
}

TEST(a_copy_with_a_missing_or_different_entry_is_an_error) {
        PAIR(p);
        ASSERT_OK(tree_check_copied(p.a, p.b, &p.where));
        put(&p, "/a/in/file", "same");
        put(&p, "/b/in/file", "same");
        put_link(&p, "/a/link", "x");
        put_link(&p, "/b/link", "x");
        put(&p, "/b/more", "");
        same_times(&p, "in/file");
        ASSERT_OK(tree_check_copied(p.a, p.b, &p.where));
        ASSERT_ERROR(tree_check_copied(p.b, p.a, &p.where), ESTALE);
        ASSERT_STREQ(p.where, "more");
        free(TAKE_PTR(p.where));
        ASSERT_EQ(root_remove(p.root, "/b/link"), 1);
        put_link(&p, "/b/link", "elsewhere");
        ASSERT_ERROR(tree_check_copied(p.a, p.b, &p.where), ESTALE);
        free(TAKE_PTR(p.where));
        ASSERT_EQ(root_remove(p.root, "/b/link"), 1);
        put(&p, "/b/link", "no link");
        ASSERT_ERROR(tree_check_copied(p.a, p.b, &p.where), ESTALE);
        ASSERT_STREQ(p.where, "link");
        assert_file(&p, "/a/in/file", "same");
}

static void assert_kept(Pair *p, const char *path, const char *where) {
        ASSERT_ERROR(tree_remove_copied(p->a, p->b, &p->where), ESTALE);
        ASSERT_STREQ(p->where, where);
        ASSERT_EQ(root_exists(p->root, path), 1);
}

TEST(a_file_that_the_copy_lacks_is_kept) {
        PAIR(p);
        put(&p, "/a/in/file", "same");
        ASSERT_OK(root_make_dirs(p.root, "/b/in", 0755));
        assert_kept(&p, "/a/in/file", "in/file");
}

TEST(a_file_longer_than_its_copy_is_kept) {
        PAIR(p);
        put(&p, "/a/file", "longer");
        put(&p, "/b/file", "long");
        same_times(&p, "file");
        assert_kept(&p, "/a/file", "file");
}

TEST(a_file_written_after_the_copy_is_kept) {
        PAIR(p);
        put(&p, "/a/file", "one");
        put(&p, "/b/file", "two");
        same_times(&p, "file");
        ASSERT_EQ(utimensat(p.a, "file", (struct timespec[]){ { .tv_sec = 1000 }, { .tv_sec = 2000, .tv_nsec = 1 } }, 0), 0);
        assert_kept(&p, "/a/file", "file");
}

TEST(an_entry_of_another_type_in_the_copy_is_kept) {
        PAIR(p);
        put(&p, "/a/dir/file", "x");
        put(&p, "/b/dir", "");
        assert_kept(&p, "/a/dir/file", "dir");
}

/* ext4 with small inodes has only whole seconds, and xfs without bigtime ends in 2038. */
TEST(times_that_the_other_file_system_cannot_hold_are_equal) {
        PAIR(p);
        put(&p, "/a/coarse", "x");
        put(&p, "/b/coarse", "x");
        put(&p, "/a/late", "x");
        put(&p, "/b/late", "x");
        ASSERT_EQ(utimensat(p.a, "coarse", (struct timespec[]){ {}, { .tv_sec = 2000, .tv_nsec = 5 } }, 0), 0);
        ASSERT_EQ(utimensat(p.b, "coarse", (struct timespec[]){ {}, { .tv_sec = 2000 } }, 0), 0);
        ASSERT_EQ(utimensat(p.a, "late", (struct timespec[]){ {}, { .tv_sec = 3000000000 } }, 0), 0);
        ASSERT_OK(tree_remove_copied(p.a, p.b, &p.where));
        assert_entries(&p, "/a", "");
}

TEST_MAIN
