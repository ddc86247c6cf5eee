/* SPDX-License-Identifier: Apache-2.0
 * A request → its AWS Signature Version 4, in a header or a query. libcurl can neither sign by another
 * clock nor presign URLs.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html */
#include "aws/internal.h"

#include "base/hash.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

void sigv4_date(int64_t seconds, char ret[static 17]) {
        struct tm tm = {};
        time_t t = seconds;
        gmtime_r(&t, &tm);
        if (strftime(ret, 17, "%Y%m%dT%H%M%SZ", &tm) != 16)
                memcpy(ret, "19700101T000000Z", 17);
}

static char *make_scope(const SignedRequest *q) {
        return xasprintf("%.8s/%s/%s/aws4_request", q->date, q->region, q->service);
}

void sigv4_signature(const SignedRequest *q, const char *secret, const char *canonical, char ret[static 65]) {
        _free_ char *scope = make_scope(q), *first = xasprintf("AWS4%s", secret),
                    *day = xstrndup(q->date, 8);
        const char *parts[] = { day, q->region, q->service, "aws4_request" };
        unsigned char key[32], next[32];
        char digest[65];

        /* The key is good for one date, region and service. */
        hmac_sha256(first, strlen(first), parts[0], strlen(parts[0]), key);
        for (size_t i = 1; i < ARRAY_SIZE(parts); i++) {
                hmac_sha256(key, sizeof key, parts[i], strlen(parts[i]), next);
                memcpy(key, next, sizeof key);
        }
        sha256_hex(canonical, strlen(canonical), digest);
        _free_ char *text = xasprintf("AWS4-HMAC-SHA256\n%s\n%s\n%s", q->date, scope, digest);
        hmac_sha256(key, sizeof key, text, strlen(text), next);
        for (size_t i = 0; i < sizeof next; i++)
                snprintf(ret + 2 * i, 3, "%02x", next[i]);
        explicit_bzero(first, strlen(first));
        explicit_bzero(key, sizeof key);
}

/* Strips the value, and collapses inner blanks. */
static void add_header_value(Text *t, const char *value) {
        const char *word = value + strspn(value, " \t");
        for (const char *separator = ""; *word; separator = " ") {
                size_t n = strcspn(word, " \t");
                text_add(t, "%s%.*s", separator, (int)n, word);
                word += n + strspn(word + n, " \t");
        }
}

static char *make_names(const SignedRequest *q) {
        Text t = {};
        for (size_t i = 0; i < q->n_headers; i++) {
                assert(i == 0 || strcmp(q->headers[i - 1][0], q->headers[i][0]) < 0);
                text_add(&t, "%s%s", i > 0 ? ";" : "", q->headers[i][0]);
        }
        return text_take(&t);
}

static char *make_canonical(const SignedRequest *q, const char *names) {
        Text t = {};
        char digest[65];
        sha256_hex(q->body, strlen(q->body), digest);
        text_add(&t, "%s\n%s\n%s\n", q->method, q->path, q->query);
        for (size_t i = 0; i < q->n_headers; i++) {
                text_add(&t, "%s:", q->headers[i][0]);
                add_header_value(&t, q->headers[i][1]);
                text_add(&t, "\n");
        }
        text_add(&t, "\n%s\n%s", names, digest);
        return text_take(&t);
}

static void push_parameter(char ***v, const char *name, const char *value) {
        Text t = {};
        text_add(&t, "%s=", name);
        text_add_encoded(&t, value);
        strv_push(v, text_take(&t));
}

/* Sorted by name. Whole texts sort alike if no name is the prefix of another. */
static char *sort_query(const char *query) {
        _strv_ char **all = NULL;
        while (*query)
                strv_push(&all, str_cut(&query, "&"));
        strv_sort(all);
        char *sorted = strv_join(all, "&");
        STRV_FOREACH(s, all)
                explicit_bzero(*s, strlen(*s));         /* the session token */
        return sorted;
}

char *sigv4_presigned_query(const SignedRequest *q, const Credentials *c, unsigned expires) {
        _free_ char *scope = make_scope(q), *names = make_names(q),
                    *who = xasprintf("%s/%s", c->key_id, scope);
        _free_ char *seconds = xasprintf("%u", expires);
        _strv_ char **all = NULL;
        char signature[65];

        if (*q->query)
                strv_add(&all, q->query);
        push_parameter(&all, "X-Amz-Algorithm", "AWS4-HMAC-SHA256");
        push_parameter(&all, "X-Amz-Credential", who);
        push_parameter(&all, "X-Amz-Date", q->date);
        push_parameter(&all, "X-Amz-Expires", seconds);
        push_parameter(&all, "X-Amz-SignedHeaders", names);
        if (c->token)
                push_parameter(&all, "X-Amz-Security-Token", c->token);
        _free_ char *query = strv_join(all, "&"), *sorted = sort_query(query);
        SignedRequest presigned = *q;
        presigned.query = sorted;
        _free_ char *canonical = make_canonical(&presigned, names);
        sigv4_signature(&presigned, c->secret, canonical, signature);
        return xasprintf("%s&X-Amz-Signature=%s", query, signature);
}

char *sigv4_authorization(const SignedRequest *q, const Credentials *credentials) {
        _free_ char *scope = make_scope(q), *names = make_names(q),
                    *canonical = make_canonical(q, names);
        char signature[65];
        sigv4_signature(q, credentials->secret, canonical, signature);
        explicit_bzero(canonical, strlen(canonical));   /* a header has the session token */
        return xasprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                         credentials->key_id, scope, names, signature);
}
