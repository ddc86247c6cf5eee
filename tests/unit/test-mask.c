/* SPDX-License-Identifier: Apache-2.0
 * mask_file(), mask_config(): what keys hide, what stays readable, and what is known as secret from then on. */
#include "redact/mask.h"
#include "test.h"

static char *masked(Secrets *s, MaskFormat format, const char *text) {
        char *out;
        size_t size;
        ASSERT_EQ(mask_file(s, format, text, strlen(text), &out, &size), 0);
        ASSERT_EQ(size, strlen(out));
        return out;
}

/* Both are compact JSON. */
static void assert_masked(Secrets *s, const char *text, const char *want) {
        _free_ char *out = masked(s, MASK_JSON, text);
        json_auto_t *json = json_loads(out, 0, NULL);
        _free_ char *compact = json_dumps(json, JSON_COMPACT);
        ASSERT_STREQ(compact, want);
}

static void assert_known(Secrets *s, const char *value, bool want) {
        size_t size;
        _free_ char *out = secrets_scrub(s, value, strlen(value), &size);
        ASSERT_STREQ(out, want ? HIDDEN : value);
}

/* Only variables of a process keep their names: "USER=word" behind "password" is a password. */
TEST(variables_keep_their_names) {
        _cleanup_(secrets_done) Secrets s = {};
        assert_masked(&s, "{\"env\":[\"A_B=secret-one\",\"PATH=/bin\",\"secret-two\"],\"password\":\"USER=secret-three\"}",
                      "{\"env\":[\"A_B=(hidden)\",\"PATH=/bin\",\"(hidden)\"],\"password\":\"(hidden)\"}");
        assert_known(&s, "secret-one", true);
        assert_known(&s, "secret-two", true);
        assert_known(&s, "USER=secret-three", true);
}

TEST(numbers_of_secret_keys_are_hidden) {
        _cleanup_(secrets_done) Secrets s = {};
        assert_masked(&s, "{\"password\":1234567890,\"tokens\":7654321}", "{\"password\":\"(hidden)\",\"tokens\":7654321}");
        assert_known(&s, "1234567890", true);
        assert_known(&s, "7654321", false);
}

/* Tables of a registry are named by its URL. */
TEST(keys_that_are_urls_hide_their_passwords) {
        _cleanup_(secrets_done) Secrets s = {};
        assert_masked(&s, "{\"https://me:secret@nine@r\":1,\"me:secret-ten@r:5000\":2,\"token-of-me\":3,\"x@y\":4}",
                      "{\"https://(hidden)@r\":1,\"(hidden)@r:5000\":2,\"token-of-me\":3,\"x@y\":4}");
        assert_known(&s, "secret@nine", true);
        assert_known(&s, "secret-ten", true);
}

TEST(values_of_unit_variables_are_hidden) {
        _cleanup_(secrets_done) Secrets s = {};
        _free_ char *out = masked(&s, MASK_UNIT, "[Service]\n Environment=A=secret-one\nEnvironment = \"B=secret two\"\nNice=1\n");
        ASSERT_STREQ(out, "[Service]\n Environment=A=(hidden)\nEnvironment = B=(hidden)\nNice=1\n");
        _free_ char *variables = masked(&s, MASK_VARIABLES, "A=\"secret-\\\"five\"\nPATH=\"/somewhere\"\n");
        ASSERT_STREQ(variables, "A=(hidden)\nPATH=(hidden)\n");
        ASSERT_TRUE(strv_contains(s.items, "secret-\"five") && !strv_contains(s.items, "/somewhere"));
        assert_known(&s, "secret-one", true);
        assert_known(&s, "secret two", true);
}

/* Values such as "adaptive" are common words, which other texts must keep. */
TEST(aws_settings_without_credentials_are_not_secrets) {
        static const char *const plain[] = { "AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS", "AWS_USE_FIPS_ENDPOINT", "AWS_CA_BUNDLE", "AWS_ENDPOINT_URL",
                                             "AWS_ENDPOINT_URL_STS", "PATH", "AWS_EC2_METADATA_DISABLED" },
                          *const secret[] = { "AWS_SECRET_ACCESS_KEY", "AWS_RETRY", "RETRY_MODE", "X", "" };
        for (size_t i = 0; i < ARRAY_SIZE(plain) + ARRAY_SIZE(secret); i++) {
                bool is_plain = i < ARRAY_SIZE(plain);
                _cleanup_(secrets_done) Secrets s = {};
                json_auto_t *document = json_pack("{s{s{s{s{ss}}}}}", "spec", "instance", "environment", "default",
                                                  is_plain ? plain[i] : secret[i - ARRAY_SIZE(plain)], "adaptive");
                json_auto_t *shown = mask_config(&s, document);
                _free_ char *text = json_dumps(shown, JSON_COMPACT);
                if (!strstr(text, "(hidden)") || strstr(text, "adaptive"))
                        FAIL("%s", text);
                assert_known(&s, "adaptive", !is_plain);
        }
}
TEST_MAIN
