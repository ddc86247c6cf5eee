/* SPDX-License-Identifier: Apache-2.0
 * The signatures were computed with Python's hmac and hashlib by tests/unit/sigv4-vectors.py, which shares
 * no code with it. */
#include "aws/internal.h"
#include "test.h"

static const Credentials credentials = {
        .key_id = (char *)"AKIDNODESTRAP0001",
        .secret = (char *)"not/a+secret/but=long+enough/to/test0001",
        .token = (char *)"tok//en+==",
};

TEST(dates_have_the_form_of_sigv4) {
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
                .method = "POST",
                .path = "/",
                .query = "",
                .headers = headers,
                .n_headers = 4,
                .body = body,
                .region = "us-west-2",
                .service = "ec2",
                .date = "20260102T030405Z",
        };
        _free_ char *text = sigv4_authorization(&q, &credentials);
        ASSERT_STREQ(text,
                     "AWS4-HMAC-SHA256 Credential=AKIDNODESTRAP0001/20260102/us-west-2/ec2/aws4_request, "
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
                .method = "GET",
                .path = "/",
                .query = "Action=GetCallerIdentity&Version=2011-06-15",
                .headers = headers,
                .n_headers = 3,
                .body = "",
                .region = "eu-central-1",
                .service = "sts",
                .date = "20281231T235959Z",
        };
        _free_ char *text = sigv4_authorization(&q, &credentials);
        ASSERT_STREQ(text,
                     "AWS4-HMAC-SHA256 Credential=AKIDNODESTRAP0001/20281231/eu-central-1/sts/aws4_request, "
                     "SignedHeaders=host;x-amz-date;x-k8s-aws-id, "
                     "Signature=9b871019f5de193d27bcbc718fa051501365a1e449a28be3a274c343c96ed78b");
}

static char *presign(const char *query, const char *const (*headers)[2], size_t n, const char *path,
                     const char *region, const char *date, char *token, unsigned expires) {
        SignedRequest q = {
                .method = "GET",
                .path = path,
                .query = query,
                .headers = headers,
                .n_headers = n,
                .body = "",
                .region = region,
                .service = "sts",
                .date = date,
        };
        Credentials c = credentials;
        c.token = token;
        return sigv4_presigned_query(&q, &c, expires);
}

TEST(presigned_query) {
        const char *const headers[][2] = { { "host", "sts.us-west-2.amazonaws.com" },
                                           { "x-k8s-aws-id", "demo" } };
        _free_ char *query = presign("Action=GetCallerIdentity&Version=2011-06-15", headers, 2, "/",
                                     "us-west-2", "20260102T030405Z", NULL, 60);
        ASSERT_STREQ(query, "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-"
                            "Amz-Credential=AKIDNODESTRAP0001%2F"
                            "20260102%2Fus-west-2%2Fsts%2Faws4_request&X-Amz-Date=20260102T030405Z&X-Amz-"
                            "Expires=60&X-Amz-SignedHeaders=host%3B"
                            "x-k8s-aws-id&X-Amz-Signature="
                            "100edbc2e50198e82d2b44ebd5689562b02a9c8fc78d6d7ddaa7a6e6e709f2a7");
}

TEST(presigned_query_with_session_token_and_blanks_in_a_header) {
        const char *const headers[][2] = { { "host", "sts.cn-north-1.amazonaws.com.cn" },
                                           { "x-k8s-aws-id", " a  cluster \t name " } };
        _free_ char *query = presign("Action=GetCallerIdentity&Version=2011-06-15", headers, 2, "/",
                                     "cn-north-1", "20240229T235959Z", (char *)"tok//en+==", 60);
        ASSERT_STREQ(query, "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-"
                            "Amz-Credential=AKIDNODESTRAP0001%2F"
                            "20240229%2Fcn-north-1%2Fsts%2Faws4_request&X-Amz-Date=20240229T235959Z&X-Amz-"
                            "Expires=60&X-Amz-SignedHeaders=host%3B"
                            "x-k8s-aws-id&X-Amz-Security-Token=tok%2F%2Fen%2B%3D%3D&X-Amz-Signature="
                            "1258319e93811f7f0936ee965214e62b4157489f1f033d3dd0d03d17bc3512de");
}

TEST(presigned_query_of_a_path_without_a_query) {
        const char *const headers[][2] = { { "host", "localhost:8443" } };
        _free_ char *query =
                presign("", headers, 1, "/base", "us-west-2", "20260102T030405Z", NULL, 604800);
        ASSERT_STREQ(
                query,
                "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDNODESTRAP0001%2F20260102%2Fus-west-2%"
                "2Fsts%2Faws4_request"
                "&X-Amz-Date=20260102T030405Z&X-Amz-Expires=604800&X-Amz-SignedHeaders=host&X-Amz-Signature="
                "483bbb232b9e96e88e108ae9cb65f89659ee2fad0a71e66ce51ba18c1be772e0");
}

TEST(a_presigned_query_is_signed_in_the_order_of_names) {
        const char *const headers[][2] = { { "host", "h" } };
        _free_ char *query = presign("Zone=a%20b&a=~%C3%A9", headers, 1, "/", "us-west-2",
                                     "20260102T030405Z", (char *)"t", 60);
        ASSERT_TRUE(strstr(
                query, "&X-Amz-Signature=f309de75f1d5dcf26990153e0410fe3f21ab10ea7337168fd80643094ddb2534"));
        ASSERT_TRUE(startswith(query, "Zone=a%20b&a=~%C3%A9&X-Amz-Algorithm="));
}

TEST(only_unreserved_characters_of_rfc_3986_are_not_encoded) {
        Text t = {};
        char all[256];
        for (int i = 0; i < 255; i++)
                all[i] = (char)(i + 1);
        all[255] = 0;
        text_add_encoded(&t, all);
        _free_ char *text = text_take(&t);
        ASSERT_EQ(strlen(text), 66 + 3 * (255 - 66));
        ASSERT_TRUE(strstr(text, "%2C-.%2F0123456789%3A%3B%3C%3D%3E%3F%40ABCDEFGHIJKLMNOPQRSTUVWXYZ%5B%5C%5D%"
                                 "5E_%60abcdefghijklmnopqrstuvwxyz%7B%7C%7D~%7F%80"));
        ASSERT_TRUE(startswith(text, "%01") && endswith(text, "%FF"));
}

TEST(the_signature_depends_on_region_service_date_key_and_request) {
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
