/* SPDX-License-Identifier: Apache-2.0
 * Two texts and what differs between them, as diff -u has it. */
#include "base/str.h"
#include "test.h"

static char *diff(const char *old, const char *new) {
        Text t = {};
        lines_diff(&t, old, strlen(old), new, strlen(new), "");
        return text_take(&t);
}

#define EXPECT(old, new, want) do { \
        _free_ char *got_ = diff(old, new); \
        ASSERT_STREQ(got_, want); \
} while (0)

TEST(the_same_is_nothing) {
        EXPECT("", "", "");
        EXPECT("a\nb\n", "a\nb\n", "");
}

TEST(a_text_that_comes_or_goes) {
        EXPECT("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n");
        EXPECT("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n");
}

TEST(three_lines_stand_around_a_change) {
        EXPECT("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
               "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
}

TEST(changes_that_are_near_share_a_hunk) {
        EXPECT("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
               "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
        EXPECT("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
               "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

TEST(a_last_line_without_an_end_is_another_one) {
        EXPECT("a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
}

TEST(lines_that_moved_are_found_again) {
        EXPECT("a\nb\nc\nd\n", "b\nc\nd\na\n", "@@ -1,4 +1,4 @@\n-a\n b\n c\n d\n+a\n");
}

TEST(what_could_garble_a_terminal_is_shown) {
        EXPECT("", "\x1b[2Jx\ty\n", "@@ -0,0 +1,1 @@\n+\\x1b[2Jx\ty\n");
}

TEST(texts_without_end_take_no_table) {
        Text old = {}, new = {};
        for (int i = 0; i < 5000; i++) {
                text_add(&old, "old %d\n", i);
                text_add(&new, "new %d\n", i);
        }
        _free_ char *got = diff(old.data, new.data);
        ASSERT_TRUE(startswith(got, "@@ -1,5000 +1,5000 @@\n-old 0\n-old 1\n"));
        text_done(&old);
        text_done(&new);
}

TEST_MAIN
