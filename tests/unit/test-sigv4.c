/* SPDX-License-Identifier: Apache-2.0
 * The signatures were computed with Python's hmac and hashlib by tests/unit/sigv4-vectors.py, which knows nothing of this code. */
#include "aws/internal.h"
#include "test.h"

static const Credentials credentials = {
        .key_id = (char *)"AKIDNODESTRAP0001", .secret = (char *)"not/a+secret/but=long+enough/to/test0001", .token = (char *)"tok//en+==",
};

TEST(date) {
        char date[17];
        sigv4_date(1767323045, date);
        ASSERT_STREQ(date, "20260102T030405Z");
        sigv4_date(0, date);
        ASSERT_STREQ(date, "19700101T000000Z");
}

TEST(post_with_session_token) {
        const char *const headers[][2] = {
                { "content-type", "application/x-www-form-urlencoded; charset=utf-8" },
                { "host", "ec2.us-west-2.amazonaws.com" },
                { "x-amz-date", "20260102T030405Z" },
                { "x-amz-security-token", "tok//en+==" },
        };
        const char *body = "Action=DescribeInstances&InstanceId.1=i-0123456789abcdef0&Version=2016-11-15";
        SignedRequest q = {
                .method = "POST", .path = "/", .query = "", .headers = headers, .n_headers = 4, .body = body, .body_size = strlen(body),
                .region = "us-west-2", .service = "ec2", .date = "20260102T030405Z",
        };
        _cleanup_(freep) char *text = sigv4_authorization(&q, &credentials);
        ASSERT_STREQ(text, "AWS4-HMAC-SHA256 Credential=AKIDNODESTRAP0001/20260102/us-west-2/ec2/aws4_request, "
                           "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
                           "Signature=f086506d66c26012cb74677bdb8d0c4c0e7625683eb82e5128ee1523e12d0960");
}

TEST(get_with_query_and_blanks_in_a_header) {
        const char *const headers[][2] = {
                { "host", "sts.eu-central-1.amazonaws.com" },
                { "x-amz-date", "20281231T235959Z" },
                { "x-k8s-aws-id", "  a  cluster \t name " },
        };
        SignedRequest q = {
                .method = "GET", .path = "/", .query = "Action=GetCallerIdentity&Version=2011-06-15", .headers = headers, .n_headers = 3,
                .body = "", .body_size = 0, .region = "eu-central-1", .service = "sts", .date = "20281231T235959Z",
        };
        _cleanup_(freep) char *text = sigv4_authorization(&q, &credentials);
        ASSERT_STREQ(text, "AWS4-HMAC-SHA256 Credential=AKIDNODESTRAP0001/20281231/eu-central-1/sts/aws4_request, "
                           "SignedHeaders=host;x-amz-date;x-k8s-aws-id, "
                           "Signature=9b871019f5de193d27bcbc718fa051501365a1e449a28be3a274c343c96ed78b");
}

TEST(every_part_counts) {
        SignedRequest q = { .region = "us-west-2", .service = "ec2", .date = "20260102T030405Z" };
        SignedRequest other[] = { q, q, q };
        char base[65], changed[65];
        other[0].region = "us-west-1";
        other[1].service = "sts";
        other[2].date = "20260102T030406Z";
        sigv4_signature(&q, "secret", "canonical", base);
        ASSERT_EQ(strlen(base), 64);
        for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
                sigv4_signature(&other[i], "secret", "canonical", changed);
                ASSERT_TRUE(!streq(base, changed));
        }
        sigv4_signature(&q, "secreT", "canonical", changed);
        ASSERT_TRUE(!streq(base, changed));
        sigv4_signature(&q, "secret", "canonicaL", changed);
        ASSERT_TRUE(!streq(base, changed));
}

TEST_MAIN
