/* SPDX-License-Identifier: Apache-2.0
 * Differences between two texts, in the format of diff -u. */
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

TEST(equal_texts_have_no_diff) {
        EXPECT("", "", "");
        EXPECT("a\nb\n", "a\nb\n", "");
}

TEST(an_added_or_removed_text_is_one_hunk) {
        EXPECT("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n");
        EXPECT("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n");
}

TEST(a_change_has_three_lines_of_context) {
        EXPECT("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
               "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
}

TEST(near_changes_share_a_hunk) {
        EXPECT("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
               "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
        EXPECT("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
               "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

TEST(a_missing_final_newline_is_a_difference) {
        EXPECT("a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
}

TEST(only_the_moved_line_differs) {
        EXPECT("a\nb\nc\nd\n", "b\nc\nd\na\n", "@@ -1,4 +1,4 @@\n-a\n b\n c\n d\n+a\n");
}

TEST(control_characters_are_escaped) {
        EXPECT("", "\x1b[2Jx\ty\n", "@@ -0,0 +1,1 @@\n+\\x1b[2Jx\ty\n");
}

TEST(long_texts_without_equal_lines_are_one_hunk) {
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
