/* SPDX-License-Identifier: Apache-2.0
 * Settings of the user that make their file readable for root only: keys, ends of names, passwords in
 * URLs. */
#include "redact/secret.h"

#include "base/str.h"
#include "test.h"

static bool json_holds(const char *text) {
        json_auto_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
        ASSERT_TRUE(json);
        return json_holds_secret(json);
}

static bool words_hold(const char *a, const char *b) {
        char *words[] = { (char *)a, (char *)b, NULL };
        return words_hold_secret(words);
}

TEST(secret_keys_of_json_are_found) {
        ASSERT_TRUE(json_holds("{\"registry\": {\"configs\": {\"r\": {\"auth\": {\"username\": \"u\"}}}}}"));
        ASSERT_TRUE(json_holds("[{\"a\": [{\"Password\": \"x\"}]}]"));
        ASSERT_TRUE(json_holds("{\"staticPodURLHeader\": {}}"));
        ASSERT_TRUE(json_holds("{\"registry_token\": \"x\"}"));
        ASSERT_TRUE(json_holds("{\"authorization\": \"Basic x\"}"));
        ASSERT_TRUE(!json_holds("{\"authorization\": {\"mode\": \"Webhook\"}, \"authentication\": {\"x509\": {}}}"));
        ASSERT_TRUE(!json_holds("{\"tokenFile\": \"/x\", \"maxPods\": 1}"));
        ASSERT_TRUE(!json_holds_secret(NULL));
        ASSERT_TRUE(json_holds("{\"configs\": {\"https://u:p@r\": {}}}") && json_holds("{\"u:p@r:5000\": 1}"));
        ASSERT_TRUE(!json_holds("{\"image@sha256\": 1, \"https://r:5000\": 1}"));
}

TEST(names_that_end_like_secrets_are_secret) {
        static const char *const names[] = { "secret_key", "s3SecretKey", "secret-key", "db_pass", "DB_PWD", "credentials", "api_tokens", "secrets" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!name_is_secret(names[i], strlen(names[i]), "") || !name_is_secret(names[i], strlen(names[i]), "3x"))
                        FAIL("%s", names[i]);
        ASSERT_TRUE(name_is_secret("pass", 4, "3"));
        ASSERT_TRUE(name_is_secret("token", 5, "3"));
        ASSERT_TRUE(!name_is_secret("tokens", 6, "3, x"));
        ASSERT_TRUE(!json_holds("{\"tokens\": 3}"));
        ASSERT_TRUE(json_holds("{\"tokens\": [\"x\"]}"));
        ASSERT_TRUE(words_hold("--tokens=abc", NULL));
        ASSERT_TRUE(!words_hold("--tokens=3", NULL));
        ASSERT_TRUE(!words_hold("--tokens", "3"));
}

TEST(passwords_in_urls_are_found) {
        ASSERT_TRUE(json_holds("{\"endpoint\": [\"https://u:p@mirror.example/v2\"]}"));
        ASSERT_TRUE(json_holds("\"https://token@mirror.example\""));
        ASSERT_TRUE(json_holds("\"a://b c://d@e\""));
        ASSERT_TRUE(!json_holds("{\"endpoint\": [\"https://mirror.example/v2/a@sha256:0\"], \"mail\": \"a@b\"}"));
        ASSERT_TRUE(!json_holds("\"https://h?x=a@b\""));
        ASSERT_TRUE(!json_holds("\"://\""));
}

TEST(secret_command_line_options_are_found) {
        ASSERT_TRUE(words_hold("--bootstrap-token=abc", NULL));
        ASSERT_TRUE(words_hold("--bootstrap-token", "abc"));
        ASSERT_TRUE(words_hold("--v=2", "--manifest-url=http://u:p@h/x"));
        ASSERT_TRUE(!words_hold("--bootstrap-token", "--v=2"));
        ASSERT_TRUE(!words_hold("--bootstrap-token", NULL));
        ASSERT_TRUE(!words_hold("--token-file=/x", "--authentication-token-webhook=true"));
        ASSERT_TRUE(!words_hold("--sync-secret=false", "--node-labels=a/b=c,token=x"));
        ASSERT_TRUE(!words_hold_secret(NULL));
}
TEST_MAIN
