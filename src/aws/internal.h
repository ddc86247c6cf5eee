/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the clients of this folder: HTTP, queries to EC2 and STS, signatures, refusals. */
#include "aws/aws.h"
#include "base/time.h"
#include "base/str.h"

#define HTTP_MAX_BODY (4u << 20)        /* user data has 16 KiB at most, EC2 sends a few KiB */
#define HTTP_MAX_HEAD (64u << 10)
#define RETRY_AFTER_MAX (60 * USEC_PER_SEC)

/* "http://[fd00:ec2::254]:80/base" in parts. */
typedef struct Url {
        bool https;
        char *authority;                /* as written: the Host header */
        char *host, *port;              /* without brackets; default "80" or "443" */
        char *path;                     /* without a slash at the end */
} Url;
/* The default scheme is http://. -EINVAL: has a user, query or fragment, or is not a URL. */
_must_check_ _nonnull_ int url_parse(const char *text, Url *ret);
void url_done(Url *u);

typedef enum HttpState {
        HTTP_STATUS, HTTP_HEADER, HTTP_BODY, HTTP_CHUNK_SIZE, HTTP_CHUNK, HTTP_CHUNK_END, HTTP_TRAILER,
        HTTP_UNTIL_CLOSE, HTTP_DONE,
} HttpState;
/* An HTTP/1.x response as it arrives; zero at first. */
typedef struct HttpResponse {
        HttpState state;
        unsigned status;
        bool keep_alive, chunked, has_length;
        uint64_t left;                  /* bytes to come of the body or chunk */
        size_t head;                    /* bytes of lines after the last body bytes */
        Text line, body;
} HttpResponse;
/* 1: complete, 0: more must come; -EBADMSG: not HTTP, or too long, -EFBIG: above HTTP_MAX_BODY. */
_must_check_ _nonnull_ int http_feed(HttpResponse *p, const char *data, size_t size);
/* At the end of the connection: 1: complete, else -ECONNRESET. */
_must_check_ _nonnull_ int http_feed_end(HttpResponse *p);
void http_response_done(HttpResponse *p);

/* Sends a request and reads the response. *fd is the connection (-1: none), which stays open if the peer
 * allows it. -ETIMEDOUT past the deadline (now_usec()), or an error of connect() or http_feed(). */
_must_check_ _nonnull_ int http_exchange(const Url *url, int *fd, const Text *request, uint64_t deadline_usec,
                                         HttpResponse *ret);

/* Loads libcurl for https_post(), and AWS_CA_BUNDLE or else other_bundle (NULL: none). cause: of failures. */
_must_check_ _nonnull(3) int https_load(Cause cause, const char *other_bundle, Diag *diag);
typedef struct HttpsReply {
        long status;
        Text body;
        int64_t date;                   /* the Date header, in seconds since 1970, or 0 */
        uint64_t wait_usec;             /* Retry-After, at most RETRY_AFTER_MAX, or 0 */
} HttpsReply;
/* Sends a form. Any status is a success; else the caller frees *ret_why. -EADDRNOTAVAIL: the host name does
 * not resolve, here or at the proxy, -EKEYREJECTED: trusted certificates are unreadable, -EIO. */
_must_check_ _nonnull_ int https_post(const Url *url, const char *const (*headers)[2], size_t n_headers,
                                      const char *form, uint64_t limit_usec, HttpsReply *ret, char **ret_why);

/* ---- requests to a Query API ---- */
/* A service that takes a form and answers in XML. */
typedef struct QueryService {
        AwsService service;
        const char *name;               /* "EC2" */
        const char *full_name;          /* "the EC2 API" */
        const char *id;                 /* "ec2", in host names and signatures */
        const char *version;
        const char *url_variable;
        const char *variable_place;     /* after it in messages, or "" */
        const char *region_setting;     /* "AWS_REGION" */
        const char *code_path, *request_id_path;        /* in XML errors */
        const char *if_stopped;         /* after "stopped by SIGTERM while asking …" */
        const char *other_bundle;       /* a variable beside AWS_CA_BUNDLE, or NULL */
        Cause cause, endpoint_cause;    /* of failures; of an invalid region or endpoint */
        /* nodeadm (AWS SDK for Go) refuses a setting that is neither true nor false; to the AWS CLI it is
         * false. It also refuses FIPS where no such endpoint is known. */
        bool strict;
} QueryService;
extern const QueryService sts_api, ec2_api;

typedef struct QueryEndpoint {
        Url url;
        char *host;                     /* the Host header */
        const char *path;               /* "/" at least */
        const char *kind;               /* "FIPS", "dual-stack": some regions lack it; or NULL */
} QueryEndpoint;
/* The endpoint of AWS_ENDPOINT_URL_x, AWS_ENDPOINT_URL, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS,
 * AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT, else of region and domain (NULL: that of its
 * partition). -EINVAL: not a URL, or the region lacks such an endpoint. */
_must_check_ _nonnull(1, 2, 4, 5) int query_endpoint(const QueryService *service, const char *region,
                                                     const char *domain, QueryEndpoint *ret, Diag *diag);
void query_endpoint_done(QueryEndpoint *e);
/* A sentence and a trailing blank for a host that does not exist: the settings that made it. */
_malloc_ _nonnull_ char *query_endpoint_advice(const QueryService *service, const QueryEndpoint *e,
                                               const char *region);
/* AWS_USE_FIPS_ENDPOINT is set, but the region is not known to have that endpoint. */
_nonnull_ bool query_lacks_fips(const QueryService *service, const char *region);

/* AWS_MAX_ATTEMPTS lowers attempts; where elastic, it replaces them, and total_usec grows to the longest
 * pause for each. brief: ends when the next pause would be longer than the time left. */
typedef struct RetryPolicy {
        unsigned attempts;
        bool elastic, brief;
        uint64_t total_usec;
        uint64_t base_usec, cap_usec;           /* for backoff_usec(), after a failure */
        /* For backoff_apart_usec(), after a throttle; 0: as after a failure. */
        uint64_t throttled_base_usec, throttled_cap_usec;
        uint64_t patience_usec;         /* the first call of Query.settle; 0: at the end */
} RetryPolicy;
/* For DescribeInstances, shared with `make bench`: until there is a name, and to check an assumed one. */
extern const RetryPolicy ec2_retry_policy, ec2_again_policy;
/* The pause after failure n (from 0); *last_usec is the previous one. wait_usec: the service demands it. */
_nonnull_ uint64_t retry_pause(const RetryPolicy *policy, unsigned n, bool throttled, uint64_t wait_usec,
                               uint64_t *last_usec);
/* The time for an attempt that begins now; the last one, at until, gets a second. */
uint64_t retry_attempt_usec(uint64_t now, uint64_t until);

typedef struct Query Query;
struct Query {
        const QueryService *service;
        const char *region, *domain;    /* for query_endpoint() */
        const char *action;
        const char *fields;             /* encoded, each after '&': "&InstanceId.1=i-…" */
        /* sign the request; renewed once if expired. NULL: unsigned, the form has the identity */
        Credentials *credentials;
        Imds *imds;                     /* their source */
        RetryPolicy retry;
        /* Reads ret from an answer: 1: found, 0: not there (yet), -EBADMSG: not such an answer. */
        int (*accept)(const Query *q, const Text *body);
        void *ret;
        const char *missing;            /* the message if accept finds nothing; */
        const char *missing_advice;     /* NULL: another server must have answered */
        const char *unauthorized, *expired;     /* advice */
        const char *instead;            /* a setting that avoids the question, or NULL */
        unsigned *requests;             /* a counter of requests, or NULL */
        const Root *turns;              /* each request holds EC2_LOCK there; NULL: none */
        /* The caller may go on without an answer. Called once, after patience_usec (more: the question goes
         * on) or at the end; never after a refusal or a "nothing (yet)". NULL: it cannot go on. */
        bool (*settle)(void *user, const char *why, bool more);
        void *user;
};
/* Asks until q->accept takes an answer. -EACCES: a missing permission, -EPERM: another refusal, -ECANCELED:
 * by q->settle, -ETIMEDOUT, -EHOSTUNREACH: no answer at all. The last attempt may take a second more. */
_must_check_ _nonnull_ int query_ask(const Query *q, Diag *diag);
/* These seconds since 1970 by the clock of AWS, if a refusal has shown that the clock here is wrong. */
int64_t query_clock(int64_t seconds);

/* ---- AWS Signature Version 4 ---- */
typedef struct SignedRequest {
        const char *method, *path, *query;      /* both canonical */
        const char *const (*headers)[2];        /* {lower-case name, value}, sorted, with host */
        size_t n_headers;
        const char *body;
        const char *region, *service, *date;    /* date: "20260102T030405Z" */
} SignedRequest;
/* The value of the Authorization header. */
_malloc_ _nonnull_ char *sigv4_authorization(const SignedRequest *request, const Credentials *credentials);
/* The query of a presigned URL, in the order of the AWS CLI. No query name may be a prefix of another. */
_malloc_ _nonnull_ char *sigv4_presigned_query(const SignedRequest *request, const Credentials *credentials,
                                               unsigned expires);
/* In hexadecimal digits. */
_nonnull_ void sigv4_signature(const SignedRequest *request, const char *secret, const char *canonical,
                               char ret[static 65]);
/* "20260102T030405Z" of seconds since 1970 */
_nonnull_ void sigv4_date(int64_t seconds, char ret[static 17]);

/* ---- refusals ---- */
/* An error message may repeat the request with the session token: show its code only. */
typedef enum RefusalKind {
        REFUSAL_FINAL,
        REFUSAL_TEMPORARY,
        REFUSAL_THROTTLED,              /* temporary: too many requests */
        REFUSAL_SIGNATURE,
        REFUSAL_EXPIRED,
        REFUSAL_UNAUTHORIZED
} RefusalKind;
_nonnull_ RefusalKind refusal_kind(const char *code);
/* A word of an XML answer, safe for a message; the caller frees it. NULL: none. */
_nonnull_ char *refusal_word(const Text *body, const char *path);
/* "the clock here is 12 s behind EC2", by the date of an answer (0: none). */
_malloc_ _nonnull_ char *refusal_clock(const char *service, int64_t date);

/* NULL: not set, or empty. */
static inline const char *environment_value(const char *name) {
        const char *value = getenv(name);
        return value && *value ? value : NULL;
}

static inline const char *aws_region(void) {
        return environment_value("AWS_REGION") ?: environment_value("AWS_DEFAULT_REGION");
}
/* A file at a user-given path. */
_must_check_ _nonnull_ int environment_read(const char *path, size_t limit, char **ret);

/* Safe in a header and a signature: no blanks, no control characters. */
_nonnull_ bool credentials_text_is_valid(const char *s);

/* conf/partitions.csv; the last one fits every region */
extern const Partition partitions[];
extern const size_t n_partitions;
/* May it be a part of a host name? */
_nonnull_ bool region_is_valid(const char *region);
