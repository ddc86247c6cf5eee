/* SPDX-License-Identifier: Apache-2.0
 * Expressions: values and errors as CEL and cel-go have them, case by case. */
#include "base/str.h"
#include "doc/doc.h"
#include "test.h"

static const ExprVariable variables[] = {
        { "default_enis", 3 }, { "ips_per_eni", 6 }, { "max_pods", 17 }, { "vcpus", 2 }, { "physical_memory_mib", 65536 },
        { "lowest", INT64_MIN }, { "highest", INT64_MAX },
};

static void check(const char *text, int64_t want) {
        _free_ char *why = NULL;
        int64_t got = 0;
        if (expr_evaluate(text, variables, ARRAY_SIZE(variables), &got, &why) < 0)
                FAIL("%s: %s", text, why);
        if (got != want)
                FAIL("%s: is %lld, want %lld", text, (long long)got, (long long)want);
}

static void check_refused(const char *text, const char *want) {
        _free_ char *why = NULL;
        int64_t got = 4711;
        if (expr_evaluate(text, variables, ARRAY_SIZE(variables), &got, &why) != -EINVAL)
                FAIL("%s: is %lld", text, (long long)got);
        if (!streq(why, want))
                FAIL("%s: %s; want %s", text, why, want);
        ASSERT_EQ(got, 4711);
}

typedef struct Case { const char *text; int64_t value; } Case;
static void check_all(const Case *cases, size_t n) {
        for (size_t i = 0; i < n; i++)
                check(cases[i].text, cases[i].value);
}

TEST(expressions_as_users_write_them) {
        static const Case cases[] = {
                { "417", 417 }, { "max_pods", 17 }, { "(default_enis * (ips_per_eni - 1)) + 2", 17 },
                { "(default_enis * ((ips_per_eni - 1) * 16)) + 2", 242 },
                { "((default_enis - 1) * (ips_per_eni - 1)) + 2", 12 },
                { "max_pods < 30 ? max_pods : 30", 17 }, { "max_pods < 10 ? max_pods : 10", 10 },
                { "vcpus * 10 < max_pods ? vcpus * 10 : max_pods", 17 },
                { "physical_memory_mib / 1024 > 32 ? 110 : max_pods", 110 },
                { "vcpus <= 2 ? 20 : vcpus <= 4 ? 40 : 80", 20 }, { "vcpus > 2 ? 20 : vcpus > 4 ? 40 : 80", 80 },
                { "int(double(max_pods) * 0.8)", 13 }, { "// a comment\nmax_pods // another\n + 1\r\n", 18 },
                { "max_pods - 18", -1 }, { "default_enis == 3 && ips_per_eni in [4, 6, 8] ? 1 : 2", 1 },
        };
        check_all(cases, ARRAY_SIZE(cases));
}

TEST(integers) {
        static const Case cases[] = {
                { "0x1F", 31 }, { "0xff", 255 }, { "010", 10 }, { "-5", -5 }, { "- 5", -5 }, { "--5", 5 }, { "---5", -5 },
                { "3 - -2", 5 }, { "3--2", 5 }, { "3-2", 1 },
                { "9223372036854775807", INT64_MAX }, { "-9223372036854775808", INT64_MIN },
                { "-0x8000000000000000", INT64_MIN },
                { "7 / 2", 3 }, { "-7 / 2", -3 }, { "7 % -2", 1 }, { "-7 % 2", -1 }, { "1 + 2 * 3", 7 },
                { "(1 + 2) * 3", 9 }, { "10 - 3 - 2", 5 }, { "100 / 10 / 5", 2 },
                { "2 * 3 % 4", 2 }, { "-vcpus", -2 }, { "-(2)", -2 }, { "- vcpus * 3", -6 }, { "highest + 0", INT64_MAX },
                { "lowest % 2", 0 },
                { "int(7u - 2u)", 5 }, { "int(7u / 2u + 7u % 4u * 2u)", 9 },
                { "18446744073709551615u == 0xffffffffffffffffU ? 1 : 0", 1 },
        };
        check_all(cases, ARRAY_SIZE(cases));
}

TEST(doubles) {
        static const Case cases[] = {
                { "int(1.5e3)", 1500 }, { "int(.5e1)", 5 }, { "int(-1.9)", -1 }, { "int(1e0 + 2.0 * 3.0 - 1.0)", 6 },
                { "int(7.0 / 2.0)", 3 }, { "int(-(1.5))", -1 },
                { "1.0 / 0.0 > 1e308 ? 1 : 0", 1 }, { "0.0 / 0.0 == 0.0 / 0.0 ? 1 : 0", 0 },
                { "0.0 / 0.0 != 1.0 ? 1 : 0", 1 }, { "1e308 * 10.0 == 1.0 / 0.0 ? 1 : 0", 1 },
                { "-0.0 == 0.0 ? 1 : 0", 1 }, { "int(9223372036854774784.0)", INT64_C(9223372036854774784) },
        };
        check_all(cases, ARRAY_SIZE(cases));
}

TEST(arithmetic_errors) {
        static const char range[] = "the result does not fit into 64 bits";
        static const char range_u[] = "the result does not fit into an unsigned 64-bit number";
        static const struct { const char *text; unsigned column; const char *why; } cases[] = {
                { "highest + 1", 9, range }, { "lowest - 1", 8, range }, { "highest * 2", 9, range },
                { "lowest / -1", 8, range }, { "lowest % -1", 8, range },
                { "-lowest", 1, range }, { "1 / 0", 3, "division by zero" }, { "1 % 0", 3, "division by zero" },
                { "1u / 0u", 4, "division by zero" },
                { "1u % 0u", 4, "division by zero" }, { "0u - 1u", 4, range_u },
                { "18446744073709551615u + 1u", 23, range_u }, { "0x8000000000000000u * 2u", 21, range_u },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *want = xasprintf("column %u: %s", cases[i].column, cases[i].why);
                check_refused(cases[i].text, want);
        }
}

TEST(types_do_not_mix) {
        static const struct { const char *text, *why; } cases[] = {
                { "1 + 1.0", "column 3: no such overload: int + double" },
                { "1 + 1u", "column 3: no such overload: int + uint" },
                { "1.5 % 1.0", "column 5: no such overload: double % double" },
                { "1 + 'a'", "column 3: no such overload: int + string" },
                { "-1u", "column 1: no such overload: -uint" }, { "!1", "column 1: no such overload: !int" },
                { "-'a'", "column 1: no such overload: -string" },
                { "-true", "column 1: no such overload: -bool" },
                { "'a' < 1 ? 1 : 2", "column 5: no such overload: string < int" },
                { "1 == 'a' ? 1 : 2", "column 3: no such overload: int == string" },
                { "null == 1 ? 1 : 2", "column 6: no such overload: null_type == int" },
                { "1 < 2 < 3 ? 1 : 2", "column 7: no such overload: bool < int" },
                { "[1] < [2] ? 1 : 2", "column 5: no such overload: list < list" },
                { "1 in 2 ? 1 : 2", "column 3: no such overload: int in int" },
                { "1[0]", "column 2: no such overload: int[int]" },
                { "[1][true]", "column 4: no such overload: list[bool]" },
                { "size(1)", "column 1: no such overload: size(int)" },
                { "1.size()", "column 3: no such overload: int.size()" },
                { "'a'.contains(1) ? 1 : 2", "column 5: no such overload: string.contains(int)" },
                { "int(true)", "column 1: no such overload: int(bool)" },
                { "int()", "column 1: int() does not take 0 arguments" },
                { "int(1, 2)", "column 1: no such overload: int(int, int)" },
                { "size(1, 2, 3)", "column 1: size() does not take 3 arguments" },
                { "'a'.startsWith('a', 'b')", "column 5: startsWith() does not take 2 arguments" },
                { "1 ? 2 : 3", "column 1: a condition must be a bool, not int" },
                { "true && 1 ? 2 : 3", "column 9: a condition must be a bool, not int" },
                { "dyn(1) ? 2 : 3", "column 1: a condition must be a bool, not int" },
                { "true ? 1 : 2.0", "column 6: both sides of the : must have the same type, not int and double" },
                { "dyn(1) + dyn(1.0)", "column 8: no such overload: int + double" },
                /* found though never evaluated */
                { "true ? 1 : 1 + 1.0", "column 14: no such overload: int + double" },
                { "true || 1 + 1u == 2 ? 1 : 2", "column 11: no such overload: int + uint" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_refused(cases[i].text, cases[i].why);
        check("true ? 1 : dyn(2.0)", 1);
        check("int(dyn(1) + dyn(2))", 3);
        check("[1, 2.0, 'x'][0] + 1", 2);
}

TEST(comparison) {
        static const char *const truths[] = {
                "1 < 2", "2 <= 2", "3 > 2", "2 >= 2", "1 != 2", "1u < 2u", "1.5 < 2.5", "'a' < 'b'", "'a' < 'aa'",
                "'' < 'a'", "false < true", "'Z' < 'a'", "'e' < 'é'",
                "dyn(1) < 1.5", "1 < dyn(2u)", "dyn(-1) < 0u", "2u > dyn(1.5)", "dyn(1) == 1.0", "dyn(1u) == 1", "dyn(-1) != 18446744073709551615u",
                "dyn(9223372036854775807) < 9223372036854775808u", "[1, 2.5][1] > 2",
                "9223372036854775807 == dyn(9223372036854775808.0)", "9223372036854775807 != dyn(9223372036854775808u)",
                "dyn(1) != dyn('1')", "dyn(1) == dyn(1u)",
                "[1, 2] == [1, 2]", "[1, 2] != [2, 1]", "[1] != [1, 1]", "[1, [2]] == [1.0, [2u]]", "[] == []",
                "null == null", "1 in [3, 2, 1]", "!(4 in [3, 2, 1])", "dyn(1) in [1.0]", "1 in [1.0, 2]", "!(1 in [])",
                "'a' in ['b', 'a']", "type(1) == int", "type('') != type(1)", "type(int) == type", "type(null) == null_type",
                "type([]) == list", "type(1.0) == double && type(1u) == uint && type(true) == bool && type('') == string",
                "1 + 1 == 2 && 2 * 2 == 4", "1 < 2 == true", "true != false",
        };
        for (size_t i = 0; i < ARRAY_SIZE(truths); i++) {
                _free_ char *text = xasprintf("(%s) ? 1 : 0", truths[i]);
                check(text, 1);
        }
        check_refused("1.0 < 0.0 / 0.0 ? 1 : 2", "column 5: NaN cannot be compared");
        /* as the checker of cel-go without CrossTypeNumericComparisons, which nodeadm does not set */
        check_refused("1 == 1.0 ? 1 : 2", "column 3: no such overload: int == double");
        check_refused("true ? 1 : (1u < 2 ? 1 : 2)", "column 16: no such overload: uint < int");
        check_refused("2.5 >= size('a') ? 1 : 2", "column 5: no such overload: double >= int");
        check_refused("1 in [1.0] ? 1 : 2", "column 3: no such overload: int in list");
}

TEST(logic) {
        static const Case cases[] = {
                { "true && true ? 1 : 0", 1 }, { "true && false ? 1 : 0", 0 }, { "false || true ? 1 : 0", 1 },
                { "false || false ? 1 : 0", 0 }, { "!true ? 1 : 0", 0 }, { "!!true ? 1 : 0", 1 },
                { "true || false && false ? 1 : 0", 1 }, { "(true || false) && false ? 1 : 0", 0 },
                /* one side decides, the other may fail */
                { "false && 1 / 0 == 1 ? 1 : 0", 0 }, { "1 / 0 == 1 && false ? 1 : 0", 0 },
                { "true || 1 / 0 == 1 ? 1 : 0", 1 }, { "1 / 0 == 1 || true ? 1 : 0", 1 },
                { "1 / 0 == 1 && 1 / 0 == 1 && false ? 1 : 0", 0 }, { "(1 / 0 == 1 || false) && false ? 1 : 0", 0 },
                { "(1 / 0 == 1 && false) || (1 / 0 == 1 || true) ? 1 : 0", 1 },
                { "dyn(1) && false ? 1 : 0", 0 }, { "dyn(1) || true ? 1 : 0", 1 },
                /* only the branch that is taken */
                { "true ? 1 : 1 / 0", 1 }, { "false ? 1 / 0 : 2", 2 },
        };
        check_all(cases, ARRAY_SIZE(cases));
        check_refused("true ? false ? 1 : 2 : 3", "column 14: : is expected here");    /* the grammar of CEL wants brackets */
        check("true ? (false ? 1 : 2) : 3", 2);
        check_refused("1 / 0 == 1 && true ? 1 : 0", "column 3: division by zero");
        check_refused("true && 1 % 0 == 1 ? 1 : 0", "column 11: division by zero");
        check_refused("1 / 0 == 1 || lowest - 1 == 0 ? 1 : 0", "column 3: division by zero");
        check_refused("1 / 0 == 1 ? 1 : 0", "column 3: division by zero");
        check_refused("dyn(1) && true ? 1 : 0", "column 1: a condition must be a bool, not int");
}

TEST(strings_and_lists) {
        static const Case cases[] = {
                { "size('abc')", 3 }, { "'aé€😀'.size()", 4 }, { "size([1, 2, 3])", 3 }, { "[].size()", 0 },
                { "[1, 2,].size()", 2 }, { "size('a' + \"b\" + '')", 2 }, { "size([1] + [2, 3])", 3 },
                { "[10, 20, 30][1]", 20 }, { "[[1, 2], [3, 4]][1][0]", 3 }, { "([1] + [2])[1]", 2 },
                { "'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b') && !'abc'.contains('x') ? 1 : 0", 1 },
                { "'ab'.startsWith('abc') || 'a'.endsWith('b') ? 1 : 0", 0 }, { "''.contains('') ? 1 : 0", 1 },
                { "size('\\a\\b\\f\\n\\r\\t\\v\\\\\\'\\\"\\`\\?')", 12 },
                { "'\\x41\\X42\\u0043\\U00000044\\105' == 'ABCDE' ? 1 : 0", 1 }, { "'\\u00e9\\377' == 'éÿ' ? 1 : 0", 1 },
                { "size('\\000')", 1 },
                { "r'\\n'.size()", 2 }, { "R\"\\\".size()", 1 }, { "'''a'b''c'''.size()", 6 },
                { "\"\"\"a\nb\"\"\".size()", 3 }, { "'''a\r\nb''' == 'a\\nb' ? 1 : 0", 1 }, { "r'''\\'''.size()", 1 },
                { "''''''.size()", 0 },
        };
        check_all(cases, ARRAY_SIZE(cases));
        check_refused("[1][1]", "column 4: the index is out of range");
        check_refused("[1][-1]", "column 4: the index is out of range");
        check_refused("[][0]", "column 3: the index is out of range");
}

TEST(conversion) {
        static const char range[] = "a number outside the range of the target type";
        static const char *const truths[] = {
                "int(5) == 5", "int(5u) == 5", "int(-1.9) == -1", "int('-12') == -12", "int('+7') == 7", "int('007') == 7",
                "uint(5) == 5u", "uint(2.9) == 2u", "uint('18446744073709551615') == 18446744073709551615u",
                "double(3) == 3.0", "double(3u) == 3.0", "double('1.5e2') == 150.0", "double('-inf') < 0.0",
                "double('NaN') != double('NaN')", "string(-5) == '-5'", "string(5u) == '5'", "string(true) == 'true'",
                "string('x') == 'x'",
                "string(1.0) == '1'", "string(1.5) == '1.5'", "string(0.1) == '0.1'", "string(100000.0) == '100000'",
                "string(1000000.0) == '1e+06'", "string(123456789.5) == '1.234567895e+08'", "string(0.0001) == '0.0001'",
                "string(0.00001) == '1e-05'",
                "string(1.0 / 0.0) == '+Inf'", "string(-1.0 / 0.0) == '-Inf'", "string(0.0 / 0.0) == 'NaN'",
                "string(-0.0) == '-0'", "bool('true') && bool('T') && bool('1') && !bool('False') && bool(true)",
                "size(string(int(string(12)))) == 2",
        };
        static const struct { const char *text, *why; } failures[] = {
                { "int(9223372036854775808u)", "a number outside the range of the target type" },
                { "int(9223372036854775807.0)", "a number outside the range of the target type" },
                { "int(-9223372036854775808.0)", "a number outside the range of the target type" },
                { "int(0.0 / 0.0)", "a number outside the range of the target type" }, { "int(uint(-1))", NULL },
                { "int(uint(-0.5))", NULL }, { "int(uint(1e20))", NULL },
                { "int('')", "a string that is not a number of the target type" },
                { "int('1.5')", "a string that is not a number of the target type" },
                { "int(' 1')", "a string that is not a number of the target type" },
                { "int('9223372036854775808')", "a number outside the range of the target type" },
                { "int('1\\000')", "a string that is not a number of the target type" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(truths); i++) {
                _free_ char *text = xasprintf("(%s) ? 1 : 0", truths[i]);
                check(text, 1);
        }
        for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
                _free_ char *want = xasprintf("column %u: %s", failures[i].why ? 1 : 5, failures[i].why ?: range);
                check_refused(failures[i].text, want);
        }
        check_refused("int(uint('-1'))", "column 5: a string that is not a number of the target type");
        check_refused("int(double('0x1p3'))", "column 5: a string that is not a number of the target type");
        check_refused("int(double('1e400'))", "column 5: a number outside the range of the target type");
        check_refused("bool('yes') ? 1 : 0", "column 1: a string that is neither true nor false");
}

/* nodeadm turns the result into an int if CEL can. */
TEST(results_become_integers) {
        check("5u", 5);
        check("13.9", 13);
        check("'110'", 110);
        check_refused("true", "column 1: the result is of type bool and not a number");
        check_refused("[1]", "column 1: the result is of type list and not a number");
        check_refused("null", "column 1: the result is of type null_type and not a number");
        check_refused("'many'", "column 1: the result is a string that is not a number of the target type");
        check_refused("1.0 / 0.0", "column 1: the result is a number outside the range of the target type");
}

TEST(syntax_errors) {
        static const char *const known = "default_enis, ips_per_eni, max_pods, vcpus, physical_memory_mib, lowest, highest";
        static const struct { const char *text, *why; } cases[] = {
                { "", "column 1: a value is expected here, where the expression ends" },
                { "  ", "column 3: a value is expected here, where the expression ends" },
                { "1 +", "column 4: a value is expected here, where the expression ends" },
                { "* 2", "column 1: a value is expected here" },
                { "(1", "column 3: ) is expected here, where the expression ends" },
                { "1)", "column 2: the expression should end here, or an operator should follow" },
                { "1 2", "column 3: the expression should end here, or an operator should follow" },
                { "true ? 1", "column 9: : is expected here, where the expression ends" },
                { "[1 2]", "column 4: ] is expected here" },
                { "int(1,)", "column 7: a value is expected here" }, { "!-x", "column 2: a value is expected here" },
                { "-!true", "column 2: a value is expected here" },
                { "1 = 2", "column 3: a character that means nothing here" },
                { "1 & 2", "column 3: a character that means nothing here" },
                { "\\", "column 1: a character that means nothing here" },
                { "é + 1", "column 1: a character that means nothing here" },
                { "'é' + $", "column 7: a character that means nothing here" },
                { "1\n+\n  $", "line 3, column 3: a character that means nothing here" },
                { "'a", "column 1: a string that is not closed" }, { "'a\n'", "column 1: a string that is not closed" },
                { "'''a'", "column 1: a string that is not closed" },
                { "1 + 'a\\", "column 5: an unknown escape in a string" },
                { "'\\q'", "column 1: an unknown escape in a string" },
                { "'\\x4'", "column 1: an escape with too few digits in a string" },
                { "'\\u12'", "column 1: an escape with too few digits in a string" },
                { "'\\ud800'", "column 1: a string escape that is not a character" },
                { "'\\U00110000'", "column 1: a string escape that is not a character" },
                { "'\\400'", "column 1: a string escape that is not a character" },
                { "'\\08'", "column 1: an escape with too few digits in a string" },
                { "b'x'", "column 1: bytes are not supported here" }, { "rb'x'", "column 1: bytes are not supported here" },
                { "{1: 2}", "column 1: maps are not supported here" },
                { "vcpus{}", "column 6: messages are not supported here" },
                { "vcpus.x", "column 7: values here have no fields" },
                { "vcpus.1", "column 6: the expression should end here, or an operator should follow" },
                { "vcpus.(1)", "column 7: a name must follow the dot" },
                { "12abc", "column 1: letters right after a number" }, { "0x", "column 1: letters right after a number" },
                { "1.5u", "column 1: letters right after a number" },
                { "1.", "column 3: a name must follow the dot" },
                { "9223372036854775808", "column 1: an integer that does not fit into 64 bits" },
                { "-9223372036854775809", "column 2: an integer that does not fit into 64 bits" },
                { "18446744073709551616u", "column 1: an integer that does not fit into 64 bits" },
                { "0x10000000000000000", "column 1: an integer that does not fit into 64 bits" },
                { "1e400", "column 1: a number that is too large for a double" },
                { "for + 1", "column 1: a word that CEL reserves" }, { "in", "column 1: a value is expected here" },
                { "min(1, 2)", "column 1: no such function: choose from int, uint, double, string, bool, dyn, type and size" },
                { "[1].map(x, x)", "column 5: no such method: choose from size, startsWith, endsWith and contains" },
                { "contains('a')", "column 1: no such function: choose from int, uint, double, string, bool, dyn, type and size" },
                { "1.int()", "column 3: no such method: choose from size, startsWith, endsWith and contains" },
                { "'\xff'", "column 2: not UTF-8" }, { "false && secret ? 1 : 2", NULL },
                { ".", "column 2: a value is expected here, where the expression ends" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *unknown = xasprintf("column 10: no such variable; the variables are %s", known);
                const char *want = cases[i].why ?: unknown;
                check_refused(cases[i].text, want);
        }
        check(".vcpus + .int(1)", 3);
        char *why = NULL;
        int64_t none;
        ASSERT_ERROR(expr_evaluate("vcpus", variables, 0, &none, &why), EINVAL);
        ASSERT_STREQ(why, "column 1: no such variable; the variables are none");
        free(why);
}

static char *repeated(const char *before, const char *middle, size_t n, const char *after, size_t m) {
        Text t = {};
        text_add(&t, "%s", before);
        for (size_t i = 0; i < n; i++)
                text_add(&t, "%s", middle);
        text_add(&t, "1");
        for (size_t i = 0; i < m; i++)
                text_add(&t, "%s", after);
        return text_take(&t);
}

TEST(limits) {
        static const struct { const char *open, *close; size_t most; const char *why; } forms[] = {
                { "(", ")", 100, "nested more than 100 deep" }, { "[", "][0]", 100, "nested more than 100 deep" },
                { "int(", ")", 100, "nested more than 100 deep" },
                { "- ", "", 249, "more than 250 operators" }, { "1 + ", "", 249, "more than 250 operators" },
                { "false ? 2 : ", "", 249, "more than 250 operators" }, { "", ".size()", 0, "no such overload" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                _free_ char *fits = repeated("", forms[i].open, forms[i].most, forms[i].close, forms[i].most), *why = NULL;
                int64_t value;
                if (expr_evaluate(fits, variables, ARRAY_SIZE(variables), &value, &why) < 0)
                        FAIL("%zu times %s: %s", forms[i].most, forms[i].open, why);
                size_t sizes[] = { forms[i].most + 2, 3000 };
                for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
                        _free_ char *over = repeated("", forms[i].open, sizes[k], forms[i].close, sizes[k]), *reason = NULL;
                        ASSERT_ERROR(expr_evaluate(over, variables, ARRAY_SIZE(variables), &value, &reason), EINVAL);
                        if (k == 0 || i < 6)
                                ASSERT_CONTAINS(reason, forms[i].why);
                }
        }
        _free_ char *longest = repeated("", " ", (64 << 10) - 1, "", 0), *longer = repeated("", " ", 64 << 10, "", 0);
        check(longest, 1);
        check_refused(longer, "column 1: more than 64 KiB of text");
}

TEST_MAIN
