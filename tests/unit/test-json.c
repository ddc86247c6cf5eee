/* SPDX-License-Identifier: Apache-2.0
 * json_t → text as Go's encoding/json writes it: order, layout, escapes, numbers. Go 1.26 wrote the
 * wanted texts. */
#include "base/json.h"

#include "base/str.h"
#include "test.h"
#include <float.h>

TEST(numbers_have_their_shortest_form) {
        static const struct { double value; const char *plain, *json; } cases[] = {
                { 0,                    "0",                       "0" },
                { -0.0,                 "-0",                      "-0" },
                { 1,                    "1",                       "1" },
                { -2.5,                 "-2.5",                    "-2.5" },
                { 100,                  "100",                     "100" },
                { 0.1,                  "0.1",                     "0.1" },
                { 123456.789,           "123456.789",              "123456.789" },
                { 3.141592653589793,    "3.141592653589793",       "3.141592653589793" },
                { 1e-6,                 "0.000001",                "0.000001" },
                { 1e-7,                 "0.0000001",               "1e-7" },
                { -1.5e-9,              "-0.0000000015",           "-1.5e-9" },
                { 1e20,                 "100000000000000000000",   "100000000000000000000" },
                { 1e21,                 "1000000000000000000000",  "1e+21" },
                { 1.25e22,              "12500000000000000000000", "1.25e+22" },
                { 9007199254740993.0,   "9007199254740992",        "9007199254740992" },
                { 18446744073709551615.0, "18446744073709552000",  "18446744073709552000" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *plain = real_text(cases[i].value, false), *json = real_text(cases[i].value, true);
                ASSERT_STREQ(plain, cases[i].plain);
                ASSERT_STREQ(json, cases[i].json);
        }
        const double odd[] = { DBL_MAX, DBL_MIN, 5e-324, 1.0 / 3, 2.0 / 3, 1e300, 4.35, 0.3 + 0.6 };
        for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
                _free_ char *plain = real_text(odd[i], false), *json = real_text(-odd[i], true);
                ASSERT_TRUE(strtod(plain, NULL) == odd[i] && !strpbrk(plain, "eE"));
                ASSERT_TRUE(strtod(json, NULL) == -odd[i]);
        }
}

TEST(indentation_and_key_order_follow_the_options) {
        json_auto_t *json = json_loads("{\"b\":[1,{},[],{\"y\":null,\"x\":true}],\"a\":\"\",\"B\":false}", 0, NULL);
        _free_ char *kept = json_text(json, 2, false), *sorted = json_text(json, 4, true), *line = json_text(json, 0, true);
        ASSERT_STREQ(kept, "{\n  \"b\": [\n    1,\n    {},\n    [],\n    {\n      \"y\": null,\n      \"x\": true\n    }\n  ],\n"
                           "  \"a\": \"\",\n  \"B\": false\n}");
        ASSERT_STREQ(sorted, "{\n    \"B\": false,\n    \"a\": \"\",\n    \"b\": [\n        1,\n        {},\n        [],\n"
                             "        {\n            \"x\": true,\n            \"y\": null\n        }\n    ]\n}");
        ASSERT_STREQ(line, "{\"B\":false,\"a\":\"\",\"b\":[1,{},[],{\"x\":true,\"y\":null}]}");
        json_auto_t *empty = json_object();
        _free_ char *nothing = json_text(empty, 4, true);
        ASSERT_STREQ(nothing, "{}");
}

TEST(strings_are_escaped_for_html) {
        json_auto_t *json = json_stringn("<a&b>\"\\\b\f\n\r\t\x01\x7f\0/\u00e9\u2028\u2029\u202a", 27);
        ASSERT_TRUE(json != NULL);
        _free_ char *text = json_text(json, 4, true);
        ASSERT_STREQ(text, "\"\\u003ca\\u0026b\\u003e\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f\\u0000/\u00e9\\u2028\\u2029\u202a\"");
}

TEST_MAIN
