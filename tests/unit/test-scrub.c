/* SPDX-License-Identifier: Apache-2.0
 * secrets_scrub(): known secrets in every form, texts that look like secrets, and texts that must stay. */
#include "doc/doc.h"
#include "redact/scrub.h"
#include "test.h"

static char *scrubbed(Secrets *s, const char *text) {
        size_t size;
        char *out = secrets_scrub(s, text, strlen(text), &size);
        ASSERT_EQ(size, strlen(out));
        return out;
}

static void assert_scrubbed(Secrets *s, const char *text, const char *want) {
        _free_ char *out = scrubbed(s, text);
        ASSERT_STREQ(out, want);
}

#define ASSERT_PLAIN(text, want) ({ _cleanup_(secrets_done) Secrets none = {}; assert_scrubbed(&none, text, want); })
#define ASSERT_STAYS(text) ASSERT_PLAIN(text, text)

TEST(a_known_value_is_hidden_anywhere) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "correct horse");
        assert_scrubbed(&s, "a correct horse, correct horses", "a (hidden), (hidden)s");
        assert_scrubbed(&s, "correct horse", "(hidden)");
        assert_scrubbed(&s, "correct hors", "correct hors");
        assert_scrubbed(&s, "", "");
}

/* Otherwise the shorter value would leave the rest of the longer one readable. */
TEST(longer_values_are_hidden_first) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "abcdef");
        secrets_add(&s, "abcdefghij");
        secrets_add(&s, "abcdefgh");
        assert_scrubbed(&s, "abcdefghij abcdefgh abcdefg", "(hidden) (hidden) (hidden)g");
}

TEST(a_value_added_later_is_hidden) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "first-one");
        assert_scrubbed(&s, "first-one later-one", "(hidden) later-one");
        secrets_add(&s, "later-one");
        secrets_add(&s, "later-one");
        assert_scrubbed(&s, "first-one later-one", "(hidden) (hidden)");
}

TEST(short_values_are_not_hidden) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "true");
        secrets_add(&s, "");
        secrets_add(&s, "info\n");
        assert_scrubbed(&s, "true info", "true info");
}

TEST(a_value_is_hidden_in_every_form) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "p\"a\\s<s 100%&$x");
        static const char *const forms[] = {
                "p\"a\\s<s 100%&$x",
                "{\"v\": \"p\\\"a\\\\s<s 100%&$x\"}",           /* JSON */
                "{\"v\":\"p\\\"a\\\\s\\u003cs 100%\\u0026$x\"}",/* JSON of Go */
                "\"{\\\"v\\\": \\\"p\\\\\\\"a\\\\\\\\s<s 100%&$x\\\"}\"",       /* JSON in JSON */
                "x=\"p\\\"a\\\\s<s 100%%&$x\"",                 /* a unit */
                "p%22a%5Cs%3Cs%20100%25%26%24x",                /* a URL */
        };
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                _free_ char *out = scrubbed(&s, forms[i]);
                ASSERT_CONTAINS(out, HIDDEN);
                if (strstr(out, "100"))
                        FAIL("%s became %s", forms[i], out);
        }
}

TEST(a_value_is_hidden_in_base64_at_any_offset) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "a-registry-password");
        for (size_t n = 0; n < 7; n++) {
                /* only the characters that hold bits of neighbours stay */
                size_t begin = (n * 8 + 5) / 6, end = (n + strlen("a-registry-password")) * 8 / 6;
                _free_ char *plain = xasprintf("%.*sa-registry-password; more of it", (int)n, "user:x:"),
                            *coded = base64_encode(plain, strlen(plain)),
                            *want = xasprintf("%.*s" HIDDEN "%s", (int)begin, coded, coded + end);
                assert_scrubbed(&s, coded, want);
        }
}

TEST(each_line_of_a_value_is_hidden) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "first secret line\n  second secret line\r\nend\n");
        assert_scrubbed(&s, "12:00 second secret line\n12:01 first secret line\n12:02 end",
                        "12:00 (hidden)\n12:01 (hidden)\n12:02 end");
}

TEST(the_password_of_a_known_url_is_hidden) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "http://me:se%63ret-p@proxy:3128");
        assert_scrubbed(&s, "proxy user me, secret-p; se%63ret-p", "proxy user me, (hidden); (hidden)");
}

TEST(passwords_in_urls_are_hidden) {
        ASSERT_PLAIN("via http://me:pw@proxy:3128/x?y", "via http://(hidden)@proxy:3128/x?y");
        ASSERT_PLAIN("https://t0k@host", "https://(hidden)@host");
        ASSERT_PLAIN("https://a:b@c@host", "https://(hidden)@host");
        ASSERT_STAYS("https://host/a@b");
        ASSERT_STAYS("https://host:443 mail@host");
        ASSERT_STAYS("unix:///run/containerd/containerd.sock");
}

TEST(values_of_secret_names_are_hidden) {
        ASSERT_PLAIN("--token=abc --v=2", "--token=(hidden) --v=2");
        ASSERT_PLAIN("--bootstrap-token abc --v=2", "--bootstrap-token (hidden) --v=2");
        ASSERT_STAYS("--bootstrap-token --v=2");
        ASSERT_STAYS("the token abc");
        ASSERT_PLAIN("password: hunter2", "password: (hidden)");
        ASSERT_PLAIN("Password = \"a \\\" b\" # c", "Password = \"(hidden)\" # c");
        ASSERT_PLAIN("{\"auth\":\"dXNlcg==\",\"a\":1}", "{\"auth\":\"(hidden)\",\"a\":1}");
        ASSERT_PLAIN("\"{\\\"token\\\": \\\"abc\\\", \\\"a\\\": 1}\"", "\"{\\\"token\\\": \\\"(hidden)\\\", \\\"a\\\": 1}\"");
        ASSERT_PLAIN("AWS_SECRET_ACCESS_KEY='a b'", "AWS_SECRET_ACCESS_KEY='(hidden)'");
        ASSERT_PLAIN("x-aws-ec2-metadata-token: AQAE", "x-aws-ec2-metadata-token: (hidden)");
        ASSERT_PLAIN("?X-Amz-Security-Token=a%2Fb&X=1", "?X-Amz-Security-Token=(hidden)&X=1");
        ASSERT_PLAIN("X-Meta-Token = [ \"a\", \"b]\" ]", "X-Meta-Token = [\"(hidden)\"]");
        ASSERT_PLAIN("token: [\n  'a]',\n  'b' ] c", "token: [\"(hidden)\"] c");
        ASSERT_PLAIN("\"{\\\"tokens\\\": [\\\"a]\\\", \\\"b\\\"], 1}\"", "\"{\\\"tokens\\\": [\\\"(hidden)\\\"], 1}\"");
        ASSERT_PLAIN("token: [\"a, b\nnext", "token: [\"(hidden)\"]\nnext");
        ASSERT_PLAIN("\"text\": \"password=a\\\"b c\"", "\"text\": \"password=(hidden) c\"");
        ASSERT_PLAIN("password==x", "password==(hidden)");
        ASSERT_PLAIN("password=", "password=");
        ASSERT_PLAIN("=", "=");
        ASSERT_PLAIN("token:\n  next: 1", "token:\n  next: 1");
        ASSERT_STAYS("\"token\": null, \"secret\": false,");
        ASSERT_STAYS("\"authorization\": {\n \"mode\": \"Webhook\"");
        ASSERT_STAYS("--authentication-token-webhook=true --token-file=/x");
        ASSERT_STAYS("secret=(hidden)");
        ASSERT_STAYS("tokens=3 secrets: 4, \"tokens\": 5}");
        ASSERT_PLAIN("tokens=3abc secret_key=4", "tokens=(hidden) secret_key=(hidden)");
        ASSERT_PLAIN("token=\"abc\nnext\n\"", "token=\"(hidden)\nnext\n\"");
        ASSERT_PLAIN("  password: correct \"horse\" x\nnext", "  password: (hidden)\nnext");
        ASSERT_PLAIN("at 12: password: correct horse", "at 12: password: (hidden) horse");
}

TEST(authorization_headers_are_hidden) {
        ASSERT_PLAIN("Authorization: Basic dXNlcjpw\r\nHost: x", "Authorization: (hidden)\r\nHost: x");
        ASSERT_PLAIN("> authorization: Token a b c\n", "> authorization: (hidden)\n");
        ASSERT_PLAIN("curl -H 'Bearer abc123456' x", "curl -H 'Bearer (hidden)' x");
        ASSERT_STAYS("Basic information of bearer tokens");
}

TEST(tokens_are_recognized_by_their_form) {
        ASSERT_PLAIN("key AKIAIOSFODNN7EXAMPLE used", "key (hidden) used");
        ASSERT_PLAIN("ASIAIOSFODNN7EXAMPLE", "(hidden)");
        ASSERT_STAYS("ASIAN AKIA");
        ASSERT_PLAIN("\"k8s-aws-v1.aHR0cHM6Ly9\"", "\"(hidden)\"");
        ASSERT_PLAIN("jwt eyJhbGciOi.eyJpc3MiOiJ.c2ln.", "jwt (hidden)");
        ASSERT_STAYS("eyJunior");
        ASSERT_PLAIN("eyJunior eyJhbGciOi.eyJpc3MiOiJ.c2ln.", "eyJunior (hidden)");
}

TEST(private_keys_are_hidden) {
        ASSERT_PLAIN("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\nb",
                     "a\n-----BEGIN RSA PRIVATE KEY-----(hidden)-----END RSA PRIVATE KEY-----\nb");
        ASSERT_PLAIN("-----BEGIN PRIVATE KEY-----\\nMIIB", "-----BEGIN PRIVATE KEY-----(hidden)");
        ASSERT_PLAIN("private_key='-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----'",
                     "private_key='-----BEGIN PRIVATE KEY-----(hidden)-----END PRIVATE KEY-----'");
        ASSERT_PLAIN("key-data: -----BEGIN PRIVATE KEY-----\nMIIB", "key-data: -----BEGIN PRIVATE KEY-----(hidden)");
        ASSERT_STAYS("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
}

TEST(environment_lines_of_units_are_hidden) {
        ASSERT_PLAIN("[Service]\nEnvironment=A=b \"C=d e\"\nExecStart=/x\n", "[Service]\nEnvironment=(hidden)\nExecStart=/x\n");
        ASSERT_PLAIN("DefaultEnvironment=A=b \\\n  C=d\n[X]", "DefaultEnvironment=(hidden)\n[X]");
        ASSERT_PLAIN("Environment=A=b", "Environment=(hidden)");
        ASSERT_PLAIN("a\n \tEnvironment=A=b\nDefaultEnvironment = \"B=c\"\n", "a\n \tEnvironment=(hidden)\nDefaultEnvironment = (hidden)\n");
        ASSERT_STAYS(" Environment = A=(hidden)\nan Environment=A\n");
        ASSERT_STAYS("EnvironmentFile=/etc/eks/kubelet/environment\nUnsetEnvironment=A\nEnvironment=\n");
}

/* "no token: HTTP 403" is a sentence of ours. Texts of others are quoted, or have lines of their own. */
TEST(our_messages_stay_and_quoted_texts_are_scrubbed) {
        _cleanup_(secrets_done) Secrets s = {};
        secrets_add(&s, "the-secret");
        _free_ char *own = secrets_hide(&s, "no token: HTTP 403 the-secret"),
                    *quoted = secrets_hide(&s, "no token: x; last said \"token=abc the-secret\"\npassword: xyz"),
                    *none = secrets_hide(&s, "");
        ASSERT_STREQ(own, "no token: HTTP 403 (hidden)");
        ASSERT_STREQ(quoted, "no token: x; last said \"token=(hidden) (hidden)\"\npassword: (hidden)");
        ASSERT_STREQ(none, "");
}

TEST(file_names_with_secret_words_stay_readable) {
        ASSERT_STAYS("open /etc/passwd: no such file");
        ASSERT_STAYS("\"/var/lib/kubelet/token: it is gone\"");
        ASSERT_PLAIN("example.com/password: abc", "example.com/password: (hidden)");
        ASSERT_PLAIN("/etc/password=abcdef", "/etc/password=(hidden)");
}

TEST(binary_data_is_scrubbed) {
        _cleanup_(secrets_done) Secrets s = {};
        size_t size;
        secrets_add(&s, "the-secret");
        _free_ char *out = secrets_scrub(&s, "\0=the-secret\0token=\0\xff=:", 24, &size);
        ASSERT_EQ(size, 22);
        ASSERT_TRUE(memcmp(out, "\0=(hidden)\0token=\0\xff=:", 22) == 0);
}
TEST_MAIN
