/* SPDX-License-Identifier: Apache-2.0
 * Names, credentials and messages of nodestrap-pre-pull. */
#include "pull/pull.h"
#include "test.h"

#include <errno.h>

TEST(image_names_give_full_repositories) {
        static const char *const names[][2] = {
                { "nginx", "docker.io/library/nginx" },
                { "nginx:1.27", "docker.io/library/nginx" },
                { "team/nginx@sha256:0123", "docker.io/team/nginx" },
                { "localhost/a:1", "localhost/a" },
                { "host:5000/a/b:1", "host:5000/a/b" },
                { "host:5000/a/b:1@sha256:0123", "host:5000/a/b" },
                { "host:5000/a", "host:5000/a" },
                { "public.ecr.aws/docker/library/busybox:1.36", "public.ecr.aws/docker/library/busybox" },
                { "123.dkr.ecr.us-west-2.amazonaws.com/a", "123.dkr.ecr.us-west-2.amazonaws.com/a" },
                { "", "docker.io/library/" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _free_ char *repository = image_repository(names[i][0]);
                ASSERT_STREQ(repository, names[i][1]);
        }
}

/* Cases of kubelet (pkg/credentialprovider/keyring_test.go) are among them: a part matches a part. */
TEST(patterns_match_as_in_kubelet) {
        static const struct { const char *pattern, *repository; bool good; } rows[] = {
                { "*.dkr.ecr.*.amazonaws.com", "123.dkr.ecr.us-west-2.amazonaws.com/a/b", true },
                { "*.dkr.ecr.*.amazonaws.com", "123.dkr.ecr.cn-north-1.amazonaws.com.cn/a", false },
                { "*.dkr.ecr.*.amazonaws.com", "dkr.ecr.us-west-2.amazonaws.com/a", false },
                { "*.dkr.ecr.*.amazonaws.com", "evil.io/123.dkr.ecr.us-west-2.amazonaws.com", false },
                { "public.ecr.aws", "public.ecr.aws/docker/library/busybox", true },
                { "public.ecr.aws", "docker.io/library/public.ecr.aws", false },
                { "*.io", "docker.io/library/nginx", true },
                { "*", "docker.io/library/nginx", false },
                { "host:5000", "host:5000/a", true },
                { "host:5000", "host/a", false },
                { "host", "host:5000/a", false },
                { "docker.io/library", "docker.io/library/nginx", true },
                { "docker.io/team", "docker.io/library/nginx", false },
                { "https://docker.io", "docker.io/library/nginx", true },
                { "d?cker.io", "docker.io/a", true },
                { "", "docker.io/a", false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                ASSERT_TRUE(image_matches(rows[i].pattern, rows[i].repository) == rows[i].good);
}

#define V1 "credentialprovider.kubelet.k8s.io/v1"
#define ANSWER(auth) "{\"kind\": \"CredentialProviderResponse\", \"apiVersion\": \"" V1 "\", \"auth\": " auth "}"

TEST(logins_are_read_from_provider_answers) {
        static const struct { const char *answer; int r; const char *password; } rows[] = {
                { ANSWER("{\"*.dkr.ecr.*.amazonaws.com\": {\"username\": \"AWS\", \"password\": \"one\"}}"), 1, "one" },
                { ANSWER("{\"*.dkr.ecr.*.amazonaws.com\": {\"username\": \"AWS\", \"password\": \"one\"}, "
                         "\"1.dkr.ecr.us-west-2.amazonaws.com\": {\"username\": \"AWS\", \"password\": \"two\"}}"), 1, "two" },
                { ANSWER("{\"1.dkr.ecr.us-west-2.amazonaws.com/b\": {\"username\": \"AWS\", \"password\": \"b\"}, "
                         "\"1.dkr.ecr.us-west-2.amazonaws.com/a\": {\"username\": \"AWS\", \"password\": \"a\"}}"), 1, "a" },
                { ANSWER("{\"public.ecr.aws\": {\"username\": \"AWS\", \"password\": \"one\"}}"), 0, NULL },
                { ANSWER("{\"*.dkr.ecr.*.amazonaws.com\": 5}"), 0, NULL },
                { ANSWER("{}"), 0, NULL },
                { ANSWER("null"), 0, NULL },
                { "{\"kind\": \"CredentialProviderResponse\", \"apiVersion\": \"v0\"}", -EBADMSG, NULL },
                { "{\"kind\": \"Pod\", \"apiVersion\": \"" V1 "\"}", -EBADMSG, NULL },
                { "rubbish", -EBADMSG, NULL }, { "", -EBADMSG, NULL }, { "[]", -EBADMSG, NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(login_done) Login login = {};
                _free_ char *why = NULL;
                ASSERT_TRUE(login_parse(rows[i].answer, V1, "1.dkr.ecr.us-west-2.amazonaws.com/a", &login, &why) == rows[i].r);
                ASSERT_TRUE((rows[i].r < 0) == (why != NULL));
                if (rows[i].password)
                        ASSERT_STREQ(login.password, rows[i].password);
        }
}

TEST(cri_requests_are_encoded) {
        _cleanup_(text_done) Text status = {}, pull = {}, login = {};
        cri_ask_status(&status, "a:1");
        ASSERT_TRUE(status.size == 12 && memcmp(status.data, "\0\0\0\0\7\12\5\12\3a:1", 12) == 0);
        cri_ask_pull(&pull, "a:1", NULL);
        ASSERT_TRUE(pull.size == 12 && memcmp(pull.data, status.data, 12) == 0);
        cri_ask_pull(&login, "a:1", &(Login){ (char *)"AWS", (char *)"pw" });
        ASSERT_TRUE(login.size == 23 && memcmp(login.data, "\0\0\0\0\22\12\5\12\3a:1\22\11\12\3AWS\22\2pw", 23) == 0);
        /* lengths of two bytes */
        _free_ char *name = xcalloc(301, 1);
        _cleanup_(text_done) Text longer = {};
        memset(name, 'a', 300);
        cri_ask_status(&longer, name);
        ASSERT_TRUE(longer.size == 5 + 3 + 3 + 300 && memcmp(longer.data, "\0\0\0\1\62\12\257\2\12\254\2a", 12) == 0);
}

static int look(const void *frame, size_t size, uint64_t *ret) {
        return cri_image_status(frame, size, ret);
}

TEST(cri_image_status_is_decoded) {
        uint64_t bytes = 7;
        ASSERT_TRUE(look("\0\0\0\0\0", 5, &bytes) == 0);
        ASSERT_TRUE(look("\0\0\0\0\2\12\0", 7, &bytes) == 1 && bytes == 0);
        ASSERT_TRUE(look("\0\0\0\0\12\12\10\12\1x\40\200\200\200\1", 15, &bytes) == 1 && bytes == 1 << 21);
        /* fields of other types, and an unknown one behind them */
        ASSERT_TRUE(look("\0\0\0\0\26\12\4\12\0\40\5\20\1\31........\55....", 27, &bytes) == 1 && bytes == 5);
        ASSERT_TRUE(look("\1\0\0\0\2\12\0", 7, &bytes) == -EBADMSG);         /* compressed */
        ASSERT_TRUE(look("\0\0\0\0\3\12\0", 7, &bytes) == -EBADMSG);         /* longer than the frame */
        ASSERT_TRUE(look("\0\0\0\0\2\12\5", 7, &bytes) == -EBADMSG);
        ASSERT_TRUE(look("\0\0\0\0\2\13\0", 7, &bytes) == -EBADMSG);         /* an invalid type */
        ASSERT_TRUE(look("\0\0\0\0\1\12", 6, &bytes) == -EBADMSG);
        ASSERT_TRUE(look("", 0, &bytes) == -EBADMSG && bytes == 5);
}

TEST(grpc_trailers_are_read) {
        static const char *const lines[] = { "grpc-status: 2\r\n", "grpc-message: no space%0aleft%20\r\n", "content-type: x\r\n", "\r\n" };
        _cleanup_(cri_reply_done) CriReply r = { .status = -1 };
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                cri_take_header(&r, lines[i], strlen(lines[i]));
        ASSERT_TRUE(r.status == 2);
        ASSERT_STREQ(r.message, "no space\nleft ");
        cri_take_header(&r, "Grpc-Status:x", 13);
        ASSERT_TRUE(r.status == -1);
}

TEST(secrets_are_hidden_in_messages) {
        Login login = { (char *)"AWS", (char *)"eyJwYXlsb2FkIjoi" };
        _free_ char *text = told("Get \"https://x.s3.amazonaws.com/a?X-Amz-Security-Token=abcdefghijklmnop&X-Amz-Signature=0123\"\nwith eyJwYXlsb2FkIjoi", &login);
        ASSERT_TRUE(!strstr(text, "abcdefghijklmnop") && !strstr(text, "eyJwYXlsb2FkIjoi") && !strchr(text, '\n'));
        ASSERT_TRUE(strstr(text, "x.s3.amazonaws.com"));
}

TEST_MAIN
