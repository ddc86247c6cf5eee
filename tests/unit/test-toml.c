/* SPDX-License-Identifier: Apache-2.0
 * TOML in and out, and the deep merge, on literal cases; tests/oracles/toml.py compares many more with tomllib. */
#include "base/str.h"
#include "doc/doc.h"
#include "test.h"

static void check(const char *toml, const char *json) {
        json_auto_t *value = NULL;
        const char *why = "";
        unsigned line = 0;
        int r = toml_parse(toml, strlen(toml), &value, &line, &why);
        if (r < 0)
                FAIL("%s: line %u: %s", toml, line, why);
        _free_ char *got = json_dumps(value, JSON_COMPACT);
        if (!streq(got, json))
                FAIL("%s: is %s, want %s", toml, got, json);
}

static void check_refused(const char *toml, unsigned line, const char *why) {
        json_t *value = (json_t *)1;
        const char *got = "";
        unsigned at = 0;
        if (toml_parse(toml, strlen(toml), &value, &at, &got) != -EINVAL)
                FAIL("%s: was taken", toml);
        if (at != line || !strstr(got, why))
                FAIL("%s: line %u: %s; want line %u and '%s'", toml, at, got, line, why);
        ASSERT_TRUE(value == (json_t *)1);
}

TEST(each_kind_of_value_is_parsed) {
        static const struct { const char *toml, *json; } cases[] = {
                { "", "{}" },
                { "a = 1 # one\nb = -0x0", NULL },
                { "a=0x1F\nb=0o17\nc=0b11\nd=1_000\ne=+7\nf=-0", "{\"a\":31,\"b\":15,\"c\":3,\"d\":1000,\"e\":7,\"f\":0}" },
                { "a=9223372036854775807\nb=-9223372036854775808", "{\"a\":9223372036854775807,\"b\":-9223372036854775808}" },
                { "a=1.5\nb=1e3\nc=-0.0\nd=1_0.2_5", "{\"a\":1.5,\"b\":1000.0,\"c\":-0.0,\"d\":10.25}" },
                { "a=true\nb=false", "{\"a\":true,\"b\":false}" },
                { "a=\"\\t\\\"\\u00e9\\U0001F600\"", "{\"a\":\"\\t\\\"\u00e9\U0001f600\"}" },
                { "a='C:\\x'\nb=\"\"", "{\"a\":\"C:\\\\x\",\"b\":\"\"}" },
                { "a=\"\"\"\nx\r\ny \\\n   z\"\"\"\"\"", "{\"a\":\"x\\ny z\\\"\\\"\"}" },
                { "a='''\nx'y\n'''", "{\"a\":\"x'y\\n\"}" },
                { "a=[ # c\n1,\n'x', [],]\nb={c=1, d.e=2}", "{\"a\":[1,\"x\",[]],\"b\":{\"c\":1,\"d\":{\"e\":2}}}" },
                { "a.\"b.c\" . 'd' = 1\na.e=2", "{\"a\":{\"b.c\":{\"d\":1},\"e\":2}}" },
                { "x=1\n[b.c]\ny=2\n[b]\nz=3\n[b.c.d]", "{\"x\":1,\"b\":{\"c\":{\"y\":2,\"d\":{}},\"z\":3}}" },
                { "[[a]]\nb=1\n[a.c]\nd=2\n[[a]]\n[[a.e]]\n[[a.e]]", "{\"a\":[{\"b\":1,\"c\":{\"d\":2}},{\"e\":[{},{}]}]}" },
                { "a.b=1\n[a.c]\nd=2", "{\"a\":{\"b\":1,\"c\":{\"d\":2}}}" },
                { "# only\r\n\r\n\t", "{}" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (cases[i].json)
                        check(cases[i].toml, cases[i].json);
                else
                        check_refused(cases[i].toml, 2, "not well formed");
}

TEST(invalid_toml_is_refused_with_line_and_reason) {
        static const struct { const char *toml; unsigned line; const char *why; } cases[] = {
                { "\na=nan", 2, "NaN and infinity" }, { "a=-inf", 1, "NaN and infinity" },
                { "a=1979-05-27", 1, "dates and times" }, { "a=07:32:00", 1, "dates and times" },
                { "a=9223372036854775808", 1, "64 bits" }, { "a=-9223372036854775809", 1, "64 bits" },
                { "a=0x8000000000000000", 1, "64 bits" }, { "a=0xfffffffffffffffff", 1, "64 bits" },
                { "a=1e400", 1, "too large" },
                { "a=01", 1, "well formed" }, { "a=1.", 1, "well formed" }, { "a=0b12", 1, "its base" },
                { "a=1__0", 1, "underscore" },
                { "a=yes", 1, "strings need quotes" }, { "a=", 1, "value is missing" }, { "a=+", 1, "value is missing" },
                { "a=1\na=2", 2, "key that is already" }, { "[a]\n[a]", 2, "already defined" },
                { "[[a]]\n\n[a]", 3, "already defined" },
                { "[a]\n[[a]]", 2, "array of tables under" }, { "a={}\n[a.b]", 2, "cannot grow" },
                { "a=[{}]\n[[a]]", 2, "array of tables under" },
                { "a={b={c=1},b.d=2}", 1, "cannot grow" }, { "a=1\na.b=2", 2, "below a plain value" },
                { "[a.b]\n[a]\nb.c=1", 3, "header of its own" },
                { "a.b=1\n[a]", 2, "already defined" }, { "a", 1, "no = after" }, { "=1", 1, "key is missing" },
                { "a b=1", 1, "no = after" },
                { "a={b=1,}", 1, "key is missing" }, { "a={b=1\n}", 1, "on its line" }, { "a=[1 2]", 1, "neither" },
                { "a=[\n1,\n\n", 1, "array that is not closed" }, { "a='x\n'", 1, "on its line" },
                { "\n\na=\"\"\"x\n\n", 3, "not closed" },
                { "a=\"\\x41\"", 1, "escape" }, { "a=\"\\ud800\"", 1, "not a Unicode" }, { "a=\"\\u12\"", 1, "four" },
                { "a=\"\\U0011\"", 1, "eight" },
                { "a=\"\x01\"", 1, "control" }, { "# \x7f", 1, "control" }, { "a=1 b=2", 1, "line should end" },
                { "a=1\rb=2", 1, "line should end" },
                { "\"\"\"a\"\"\"=1", 1, "cannot be a key" }, { "[a", 1, "end in ]" }, { "[[a]\n", 1, "end in ]]" },
                { "a=1\nb='\xff'", 2, "UTF-8" }, { "a=1\n\"b\\u0000\"=2", 2, "zero byte" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_refused(cases[i].toml, cases[i].line, cases[i].why);
}

static char *repeated(const char *before, const char *middle, size_t n, const char *after) {
        Text t = {};
        text_add(&t, "%s", before);
        for (size_t i = 0; i < n; i++)
                text_add(&t, "%s", middle);
        text_add(&t, "%s", after);
        return text_take(&t);
}

/* Each form of nesting ends at the limit, and no depth overflows the stack. */
TEST(nesting_deeper_than_100_is_refused) {
        static const struct { const char *before, *middle; size_t most; const char *after; } forms[] = {
                { "a=", "[", 99, "" }, { "a=", "{a=", 99, "" }, { "", "a.", 99, "a=1" }, { "[", "a.", 98, "a]" },
                { "[[", "a.", 97, "a]]" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                json_t *value;
                const char *why;
                unsigned line;
                _free_ char *over = repeated(forms[i].before, forms[i].middle, forms[i].most + 1, forms[i].after);
                check_refused(over, 1, "more than 100 deep");
                _free_ char *far = repeated(forms[i].before, forms[i].middle, 300000, forms[i].after);
                check_refused(far, 1, "more than 100 deep");
                _free_ char *most = repeated(forms[i].before, forms[i].middle, forms[i].most, forms[i].after);
                if (toml_parse(most, strlen(most), &value, &line, &why) >= 0)
                        json_decref(value);
                else if (strstr(why, "deep"))
                        FAIL("%zu times %s: %s", forms[i].most, forms[i].middle, why);
        }
}

/* The parser reads no byte after the size, and a NUL does not end the text. */
TEST(only_bytes_within_the_size_are_parsed) {
        json_auto_t *value = NULL;
        const char *why;
        unsigned line;
        ASSERT_OK(toml_parse("a=12345", 4, &value, &line, &why));
        ASSERT_EQ(json_integer_value(json_object_get(value, "a")), 12);
        json_t *none;
        ASSERT_ERROR(toml_parse("a=1\0", 4, &none, &line, &why), EINVAL);
}

static void check_written(const char *json, const char *toml) {
        json_auto_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        _free_ char *got = NULL;
        ASSERT_TRUE(value);
        int r = toml_format(value, &got);
        if (!toml && r != -EINVAL)
                FAIL("%s was written", json);
        if (toml && (r < 0 || !streq(got, toml)))
                FAIL("%s: is\n%s\nwant\n%s", json, got ?: "(error)", toml);
}

/* As go-toml v2 writes maps. */
TEST(values_are_written_as_go_toml_writes_them) {
        check_written("{}", "");
        check_written("{\"t\":{\"x\":1},\"s\":2,\"u\":{}}", "s = 2\n\n[t]\nx = 1\n\n[u]\n");
        check_written("{\"b\":1,\"a\":2,\"a-\":3,\"B\":4,\"a b\":5}", "B = 4\na = 2\n'a b' = 5\na- = 3\nb = 1\n");
        check_written("{\"a\":{\"b\":{\"c\":true}}}", "[a]\n[a.b]\nc = true\n");
        check_written("{\"a\":{\"x\":{\"c\":1},\"b\":{}},\"c\":{}}", "[a]\n[a.b]\n[a.x]\nc = 1\n\n[c]\n");
        check_written("{\"io.x\":{\"\":{\"a b\":1,\"\\u00e9\":2}}}", "['io.x']\n['io.x'.'']\n'a b' = 1\n'\u00e9' = 2\n");
        check_written("{\"it's\":{\"\\t\":1}}", "[\"it's\"]\n\"\\t\" = 1\n");
        check_written("{\"a\":[{\"b\":1,\"c\":{\"d\":2}},{}],\"e\":[]}", "e = []\n\n[[a]]\nb = 1\n\n[a.c]\nd = 2\n\n[[a]]\n");
        check_written("{\"a\":[1,{\"c\":[{}],\"b\":\"x\"},[false]]}", "a = [1, {b = 'x', c = [{}]}, [false]]\n");
        check_written("{\"a\":\"\\\"\\\\\\n\\u0000\\u007f\"}", "a = \"\\\"\\\\\\n\\u0000\\u007F\"\n");
        check_written("{\"a\":\"\\\"C:\\\\\"}", "a = '\"C:\\'\n");
        check_written("{\"a\":\"it's\",\"b\":\"\"}", "a = \"it's\"\nb = ''\n");
        check_written("{\"a\":1.0,\"b\":1e22,\"c\":0.1,\"d\":-0.0,\"e\":100.0,\"f\":3.141592653589793,\"g\":1e-7,\"h\":-12.5}",
                      "a = 1.0\nb = 10000000000000000000000.0\nc = 0.1\nd = -0.0\ne = 100.0\nf = 3.141592653589793\n"
                      "g = 0.0000001\nh = -12.5\n");
        check_written("{\"a\":null}", NULL);
        check_written("{\"a\":{\"b\":[{\"c\":[null]}]}}", NULL);
        check_written("[]", NULL);
}

TEST(a_value_deeper_than_the_limit_is_not_written) {
        json_auto_t *fits = json_integer(1), *over;
        for (unsigned i = 0; i < DOC_MAX_DEPTH; i++)
                fits = json_pack("{s:o}", "a", fits);
        over = json_pack("{s:O}", "a", fits);
        _free_ char *text = NULL;
        ASSERT_OK(toml_format(fits, &text));
        json_auto_t *again = NULL;
        unsigned line;
        const char *why;
        ASSERT_OK(toml_parse(text, strlen(text), &again, &line, &why));
        ASSERT_TRUE(json_equal(fits, again));
        char *none;
        ASSERT_ERROR(toml_format(over, &none), EINVAL);
}

TEST(a_deep_merge_joins_maps_and_replaces_other_values) {
        json_auto_t *into = json_loads("{\"a\":{\"x\":1,\"y\":[1,2]},\"b\":{\"z\":1},\"c\":3}", 0, NULL);
        json_auto_t *from = json_loads("{\"a\":{\"y\":[3],\"n\":{\"m\":1}},\"b\":false,\"c\":{\"d\":0},\"e\":null}", 0, NULL);
        json_auto_t *want = json_loads("{\"a\":{\"x\":1,\"y\":[3],\"n\":{\"m\":1}},\"b\":false,\"c\":{\"d\":0},\"e\":null}", 0, NULL);
        json_auto_t *before = json_deep_copy(from), *later = json_loads("{\"a\":{\"n\":{\"m\":2}}}", 0, NULL);
        json_merge_deep(into, from);
        ASSERT_TRUE(json_equal(into, want));
        json_merge_deep(into, later);
        ASSERT_TRUE(json_equal(from, before));
        ASSERT_EQ(json_integer_value(json_object_get(json_object_get(json_object_get(into, "a"), "n"), "m")), 2);
}

TEST(many_tables_below_a_long_name_have_a_limit) {
        json_auto_t *root = json_object();
        json_t *table = json_object();
        char *none = NULL;
        _cleanup_(text_done) Text name = {};
        for (size_t i = 0; i < 100000; i++)
                text_add(&name, "k");
        json_object_set_new(root, name.data, table);
        for (size_t i = 0; i < 10000; i++) {
                _free_ char *key = xasprintf("a%zu", i);
                json_object_set_new(table, key, json_pack("{s:i}", "x", 1));
        }
        ASSERT_ERROR(toml_format(root, &none), E2BIG);
        ASSERT_TRUE(none == NULL);
}

TEST_MAIN
