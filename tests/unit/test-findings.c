/* SPDX-License-Identifier: Apache-2.0
 * Diagnostics as JSON and SARIF: all parts of a diagnostic, and valid with any bytes. */
#include "base/json.h"
#include "report/diag-json.h"
#include "test.h"

#include <errno.h>

static char *said(Diag *d) {
        json_t *findings = findings_to_json(d);
        char *text = json_dumps(findings, JSON_COMPACT);
        json_decref(findings);
        diag_done(d);
        return text;
}

TEST(each_part_of_a_diagnostic_is_a_field) {
        Diag d = {};
        const Position at = { .source = "user-data", .part = 2, .line = 14, .column = 3 };
        diag_warn_at(&d, "unknown-field", &at, "spec.kubelt", "is not known");
        diag_suggest(&d, "kub%s", "elet");
        diag_error_at(&d, -EBADMSG, CAUSE_SYNTAX, &at, NULL, "not YAML: x");
        diag_error(&d, -EIO, CAUSE_SOURCE, "cannot be read");
        ASSERT_STREQ(d.items[0].where, "user-data, part 2, line 14");
        ASSERT_STREQ(d.items[0].text, "is not known; did you mean kubelet?");
        ASSERT_STREQ(d.items[1].where, "user-data, part 2, line 14, column 3");
        _free_ char *text = said(&d);
        ASSERT_STREQ(text, "[{\"severity\":\"warning\",\"code\":\"unknown-field\",\"source\":\"user-data\",\"part\":2,\"line\":14,"
                           "\"column\":3,\"path\":\"spec.kubelt\",\"message\":\"is not known; did you mean kubelet?\","
                           "\"suggestion\":\"kubelet\"},"
                           "{\"severity\":\"error\",\"code\":\"ESYNTAX\",\"exit\":11,\"source\":\"user-data\",\"part\":2,\"line\":14,"
                           "\"column\":3,\"message\":\"not YAML: x\"},"
                           "{\"severity\":\"error\",\"code\":\"ESOURCE\",\"exit\":12,\"message\":\"cannot be read\"}]");
}

TEST(a_warning_that_counts_as_an_error_keeps_its_code) {
        Diag d = {};
        diag_warn(&d, "no-effect", "has none");
        d.items[0].warning = false;
        d.items[0].cause = CAUSE_STRICT;
        _free_ char *text = said(&d);
        ASSERT_STREQ(text, "[{\"severity\":\"error\",\"code\":\"no-effect\",\"exit\":11,\"message\":\"has none\"}]");
}

TEST(no_findings_are_an_empty_list) {
        Diag d = {};
        _free_ char *none = said(&d);
        ASSERT_STREQ(none, "[]");
}

/* Each byte but NUL, alone and behind others, in each of the texts. */
TEST(findings_with_any_bytes_are_json) {
        for (int c = 1; c < 256; c++) {
                const char bad[] = { 'a', (char)c, '"', '\\', (char)0xc3, (char)c, 0 };
                Diag d = {};
                diag_error_at(&d, -EINVAL, CAUSE_INVALID, &(Position){ .source = bad }, bad, "%s", bad);
                diag_suggest(&d, "%s", bad);
                diag_warn_at(&d, bad, NULL, bad, "\x1b[31m\xff\xfe%s", bad);
                _free_ char *text = said(&d);
                ASSERT_TRUE(text);
                json_t *back = json_loads(text, 0, NULL);
                ASSERT_EQ(json_array_size(back), 2);
                ASSERT_TRUE(*json_get_text(json_array_get(back, 0), "source"));
                for (const char *p = json_get_text(json_array_get(back, 1), "message"); *p; p++)
                        ASSERT_TRUE((unsigned char)*p >= 0x20 && *p != 0x7f);
                json_decref(back);
        }
}

static json_t *result_at(const json_t *log, size_t i) {
        return json_array_get(json_object_get(json_array_get(json_object_get(log, "runs"), 0), "results"), i);
}

static const char *uri_of(const char *source) {
        static char uri[200];
        Diag d = {};
        diag_error_at(&d, -EINVAL, CAUSE_INVALID, &(Position){ .source = source }, NULL, "x");
        json_t *log = findings_to_sarif(&d, EXIT_CONFIG_INVALID, ""), *location = json_array_get(json_object_get(result_at(log, 0), "locations"), 0);
        snprintf(uri, sizeof uri, "%s",
                 json_get_text(json_object_get(json_object_get(location, "physicalLocation"), "artifactLocation"), "uri"));
        json_decref(log);
        diag_done(&d);
        return uri;
}

TEST(sarif_names_files_as_uris) {
        ASSERT_STREQ(uri_of("user-data"), "user-data");
        ASSERT_STREQ(uri_of("a/b.yaml"), "a/b.yaml");
        ASSERT_STREQ(uri_of(".//./a.yaml"), "a.yaml");
        ASSERT_STREQ(uri_of("../a b"), "../a%20b");
        ASSERT_STREQ(uri_of("/etc/\xff%#?"), "file:///etc/%FF%25%23%3F");
        ASSERT_STREQ(uri_of("c:/\n\xc3\xa9"), "c%3A/%0A%C3%A9");
        ASSERT_STREQ(uri_of("./"), ".");
}

TEST(sarif_with_any_bytes_is_json_and_has_each_rule_once) {
        Diag d = {};
        for (int c = 1; c < 256; c++) {
                const char bad[] = { 'a', (char)c, '"', '\\', (char)0xc3, (char)c, 0 };
                diag_error_at(&d, -EINVAL, CAUSE_INVALID, &(Position){ .source = bad, .line = 2, .column = 3 }, bad, "%s", bad);
                diag_suggest(&d, "%s", bad);
        }
        diag_warn(&d, "no-effect", "has none");
        json_t *log = findings_to_sarif(&d, EXIT_CONFIG_INVALID, "");
        _free_ char *text = json_dumps(log, 0);
        ASSERT_TRUE(text);
        json_t *driver = json_object_get(json_object_get(json_array_get(json_object_get(log, "runs"), 0), "tool"), "driver");
        ASSERT_EQ(json_array_size(json_object_get(driver, "rules")), 2);
        ASSERT_EQ(json_integer_value(json_object_get(result_at(log, 254), "ruleIndex")), 0);
        ASSERT_EQ(json_integer_value(json_object_get(result_at(log, 255), "ruleIndex")), 1);
        ASSERT_STREQ(json_get_text(result_at(log, 255), "level"), "warning");
        json_decref(log);
        diag_done(&d);
}

static json_t *rule_at(const json_t *log, size_t i) {
        json_t *driver = json_object_get(json_object_get(json_array_get(json_object_get(log, "runs"), 0), "tool"), "driver");
        return json_array_get(json_object_get(driver, "rules"), i);
}

static const char *text_of(const json_t *rule, const char *key) {
        return json_get_text(json_object_get(rule, key), "text");
}

TEST(sarif_has_the_manual_on_each_rule) {
        static const struct { const char *manual, *first, *all; } cases[] = {
                { "EOTHER (1)\nX.\n\nEINVALID (11)\nA value.\nDo: y.\n\n", "A value.", "A value.\nDo: y.\n" }, { "EINVALID (11)\nA value.", "A value.", "A value." },
        };
        static const char *const none[] = { "", "EOTHER (1)\nX.\n", "\n\n\n", "EINVALID (11)\nA \xff.\n" };
        for (size_t i = 0; i < ARRAY_SIZE(cases) + ARRAY_SIZE(none); i++) {
                bool known = i < ARRAY_SIZE(cases);
                Diag d = {};
                diag_error(&d, -EINVAL, CAUSE_INVALID, "x");
                json_t *log = findings_to_sarif(&d, EXIT_CONFIG_INVALID, known ? cases[i].manual : none[i - ARRAY_SIZE(cases)]), *rule = rule_at(log, 0);
                ASSERT_STREQ(json_get_text(rule, "id"), "EINVALID");
                ASSERT_STREQ(text_of(rule, "shortDescription"), known ? cases[i].first : "EINVALID: see nodestrap-codes(7).");
                ASSERT_STREQ(text_of(rule, "help"), known ? cases[i].all : text_of(rule, "shortDescription"));
                ASSERT_STREQ(text_of(rule, "fullDescription"), text_of(rule, "help"));
                json_decref(log);
                diag_done(&d);
        }
}

TEST_MAIN
