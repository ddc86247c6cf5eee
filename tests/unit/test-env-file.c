/* SPDX-License-Identifier: Apache-2.0
 * KEY=value as systemd and shells read it. tests/check/environment.sh proves the quoting against the
 * parsers of systemd; these tests check its form. */
#include "base/str.h"
#include "doc/env-file.h"
#include "test.h"

/* ---- EnvironmentFile= ---- */

TEST(the_value_of_an_environment_file) {
        static const struct { const char *text, *value; } cases[] = {
                { "A=b",                                "b" },
                { "B=1\n A = b c \t\n",                 "b c" },
                { "A=1\nA=2\nAB=3",                     "2" },
                { "A=",                                 "" },
                { "A=1\nA=\n",                          "" },
                { "B=A=1",                              NULL },
                { "# A=1\n;A=2\n",                      NULL },
                { "# \\\nA=1\nB=2",                     NULL },                 /* a comment goes on behind a backslash */
                { "export A=1",                         NULL },
                { "A\nB=2",                             NULL },
                { "A='b \\ \"'c",                       "b \\ \"c" },
                { "A=\"b\\\"\\$\\q\\\nc\"  d  ",         "b\"$\\qcd" },
                { "A=\"b\nB=c\"",                       "b\nB=c" },
                { "A=b\"c'",                            "b\"c'" },
                { "A=b\\ \\\\ \\\nc\\ ",               "b \\ c " },
                { "A=\"open",                           "open" },
                { "A=\\",                               "" },
                { "",                                   NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *got = assignment_in_environment(cases[i].text, "A");
                if (cases[i].value)
                        ASSERT_STREQ(got, cases[i].value);
                else
                        ASSERT_TRUE(!got);
        }
}

TEST(the_words_of_a_value) {
        static const struct { const char *value, *words; } cases[] = {
                { " a  b\tc\n",          "a|b|c" },
                { "a\\ b 'c d'\"e f\"g",  "a b|c de fg" },
                { "'a\\'b' \"\"",         "a'b|" },
                { "\"a 'b\" it\\'s",      "a 'b|it's" },
                { "'open c",             "open c" },
                { "a\\",                 "a" },
                { " ",                   "" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _strv_ char **w = assignment_split(cases[i].value);
                _free_ char *got = strv_join(w, "|");
                ASSERT_STREQ(got, cases[i].words);
        }
}

TEST(words_for_the_environment_file) {
        static const struct { const char *words[4], *text; } cases[] = {
                { { "--a=b", "--c=%d$e" },      "--a=b --c=%d$e" },
                { { "--a=b c" },                "\"--a=b\\\\ c\"" },
                { { "--a=\"b" },                "\"--a=\\\\\\\"b\"" },
                { { "--a=b\\" },                "\"--a=b\\\\\\\\\"" },
                { { "--a=`b", "c d" },          "\"--a=\\`b c\\\\ d\"" },
                { { "--a=b\nc", "--d" },        "\"--a=b\\\\\nc --d\"" },
                { { "" },                       "\"\\\"\\\"\"" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = assignment_join((char *const *)cases[i].words);
                ASSERT_STREQ(text, cases[i].text);
        }
}

/* ---- units ---- */

TEST(the_settings_of_a_unit) {
        static const struct { const char *text, *value; } cases[] = {
                { "[S]\nA=1\n", "1" }, { "[S]\n A =\t1 2 \r\n", "1 2" }, { "[S]\nA=1\nA=2", "2" },
                { "[S]\nA=1\nA=\n", "" }, { "[S]\nA=\"1\" #2\n", "\"1\" #2" },
                { "A=1", NULL }, { "[T]\nA=1\n[S]\nB=2\n[T]\nA=3", NULL }, { "[T]\nA=1\n[S]\nA=2\n[T]\nA=3", "2" },
                { "[S]\n#A=1\n;A=2\n", NULL }, { "[S]\nB=1 \\\n A=2\n", NULL }, { "[S]\n# \\\nA=1\n", "1" },
                { "[S]\nA=1\\\n  2\\\n# why\n  3\n", "1 2 3" }, { "[S]\nA=1\\\\\nB=2", "1\\\\" },
                { "[S]\nA=1 \\\n\nB=2", "1" }, { "[S]\nB=\\\n[T]\nA=1", "1" }, { "[S]\nA\n=1", NULL }, { "", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *got = assignment_in_unit(cases[i].text, "S", "A");
                if (cases[i].value ? !got || !streq(got, cases[i].value) : got != NULL)
                        FAIL("case %zu: \"%s\"", i, got ?: "(none)");
        }
}

TEST(all_settings_of_a_unit) {
        static const char text[] = "[S]\nA=1\n B = \\\n  2\n; C=3 \\\nA=\n[T]\nA=4\n[S]\nno\nD=5=6";
        static const char *const want[] = { "A", "1", "B", "2", "A", "", "D", "5=6" };
        _strv_ char **all = assignments_in_unit(text, "S");
        ASSERT_EQ(strv_length(all), ARRAY_SIZE(want));
        for (size_t i = 0; i < ARRAY_SIZE(want); i++)
                ASSERT_STREQ(all[i], want[i]);
        ASSERT_TRUE(!assignments_in_unit(text, "U"));
}

TEST(assignments_for_units) {
        _free_ char *plain = assignment_quote("A", "b c"), *nasty = assignment_quote("A", "\"%n\\$x'");
        ASSERT_STREQ(plain, "\"A=b c\"");
        ASSERT_STREQ(nasty, "\"A=\\\"%%n\\\\$x'\"");
        _free_ char *hidden = assignment_quote("A", "\t\a\x1b\x7f\u00a0\u00e9\u200b\U000e0001\xff\u4e2d");
        ASSERT_STREQ(hidden, "\"A=\\t\\a\\x1b\\x7f\\u00a0\u00e9\\u200b\\U000e0001\\xff\u4e2d\"");
}

/* The reader above reads these lines back. systemd itself reads them in the container of
 * tests/boot/canary.sh. */
TEST(lines_of_an_environment_file) {
        static const struct { const char *value, *line; } cases[] = {
                { "", "A=\"\"\n" }, { "b c", "A=\"b c\"\n" }, { "$HOME ${X} `id` $", "A=\"\\$HOME \\${X} \\`id\\` \\$\"\n" },
                { "\\", "A=\"\\\\\"\n" }, { "a\\nb\\", "A=\"a\\\\nb\\\\\"\n" }, { "\"", "A=\"\\\"\"\n" }, { "'x' \"y\"", "A=\"'x' \\\"y\\\"\"\n" },
                { "#no", "A=\"#no\"\n" }, { ";no", "A=\";no\"\n" }, { " \t x \t ", "A=\" \t x \t \"\n" }, { "100%n%%", "A=\"100%n%%\"\n" },
                { "a=b", "A=\"a=b\"\n" }, { "!\x01\x7f\u00a0\u4e2d", "A=\"!\x01\x7f\u00a0\u4e2d\"\n" }, { "1\n2", "A=\"1\n2\"\n" },
        };
        _cleanup_(text_done) Text all = {};
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *line = assignment_line("A", cases[i].value), *back = assignment_in_environment(line, "A"),
                            *name = xasprintf("N%zu", i), *named = assignment_line(name, cases[i].value);
                ASSERT_STREQ(line, cases[i].line);
                ASSERT_STREQ(back, cases[i].value);
                text_add(&all, "%s", named);
        }
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *name = xasprintf("N%zu", i), *back = assignment_in_environment(all.data, name);
                ASSERT_STREQ(back, cases[i].value);
        }
}

/* ---- /etc/default ---- */

TEST(assignments_in_a_shell_file) {
        static const struct { const char *text, *value; } cases[] = {
                { "", NULL }, { "B=1", NULL }, { "AA=1\nA B=2\n", NULL }, { "#A=1\n # A=2\n", NULL }, { "A=\nB=1", NULL }, { "A=''", NULL },
                { "A=1", "1" }, { "A=1\n", "1" }, { "A=1\r\n", "1" }, { " \tA=1 \t# why\n", "1" }, { "A=1\nA=2\n", "2" },
                { "A=1\nA=\n", NULL }, { "export A=1", "1" }, { "export\t A=1", "1" }, { "exportA=1", NULL },
                { "A='1 2'", "1 2" }, { "A=\"1,2\"", "1,2" }, { "A=1'2'\"3\"4", "1234" }, { "A='$x`\\'", "$x`\\" }, { "A=1#2", "1#2" },
                { "A=19,19,14+me\n", "19,19,14+me" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *value = NULL;
                if (assignment_in_shell(cases[i].text, "A", &value) < 0)
                        FAIL("\"%s\" is refused", cases[i].text);
                if (cases[i].value)
                        ASSERT_STREQ(value, cases[i].value);
                else
                        ASSERT_TRUE(!value);
        }
}

TEST(assignments_that_only_a_shell_understands) {
        static const char *const cases[] = { "A=$B", "A=\"$B\"", "A=`x`", "A=$(x)", "A=1 2", "A=1; B=2", "A='1", "A=\"1\n2\"", "A=1\\\n2", "A=1 && x",
                                             "A=(1 2)", "A=1>x" };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *value = NULL;
                ASSERT_ERROR(assignment_in_shell(cases[i], "A", &value), EINVAL);
                ASSERT_TRUE(!value);
        }
}

TEST_MAIN
