/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the clients in this folder share: HTTP, questions to the APIs of EC2 and STS, signatures, refusals. */
#include "aws/aws.h"
#include "base/backoff.h"
#include "base/str.h"

#define HTTP_MAX_BODY (4u << 20)        /* user data is 16 KiB at most, an answer of EC2 some KiB */
#define HTTP_MAX_HEAD (64u << 10)
#define RETRY_AFTER_MAX (60 * USEC_PER_SEC)     /* what a service may ask of us */

/* "http://[fd00:ec2::254]:80/base" in its pieces. */
typedef struct Url {
        bool https;
        char *authority;                /* as written, for the Host header */
        char *host, *port;              /* without brackets; "80" or "443" where none is written */
        char *path;                     /* "" or "/base", never with a slash at its end */
} Url;
/* A text without a scheme is taken as http://; -EINVAL for a user, a query, a fragment, or no URL at all. */
_must_check_ _nonnull_ int url_parse(const char *text, Url *ret);
void url_done(Url *u);

/* Where the reading of a response stands. */
typedef enum HttpState {
        HTTP_STATUS,
        HTTP_HEADER,
        HTTP_BODY,
        HTTP_CHUNK_SIZE,
        HTTP_CHUNK,
        HTTP_CHUNK_END,
        HTTP_TRAILER,
        HTTP_UNTIL_CLOSE,
        HTTP_DONE,
} HttpState;
/* An HTTP/1.x response while its bytes come in. All zero at first. */
typedef struct HttpResponse {
        HttpState state;
        unsigned status;
        bool keep_alive, chunked, has_length;
        uint64_t left;                  /* bytes that are still to come of the body or chunk */
        size_t head;                    /* bytes of lines since the last bytes of a body */
        Text line, body;
} HttpResponse;
/* Reads the next bytes: 1 when the response is complete, 0 when more must come; -EBADMSG for what is not
 * HTTP, and for bytes behind the end of the response, -EFBIG past HTTP_MAX_BODY. */
_must_check_ _nonnull_ int http_feed(HttpResponse *p, const char *data, size_t size);
/* The peer closed the connection: 1 if that was the end of the body, else -ECONNRESET. */
_must_check_ _nonnull_ int http_feed_end(HttpResponse *p);
void http_response_done(HttpResponse *p);

/* Sends a request to where url points and reads the response. *fd is the connection, kept open from call to
 * call as far as the peer allows; -1 for none. A negative errno: -ETIMEDOUT past the deadline (now_usec()),
 * what connect() says, or http_feed(). */
_must_check_ _nonnull_ int http_exchange(const Url *url, int *fd, const Text *request, uint64_t deadline_usec,
                                         HttpResponse *ret);

/* Loads libcurl, once, and reads what AWS_CA_BUNDLE names, or else the variable other_bundle (NULL: there is
 * none): before https_post(). cause is that of a failure. */
_must_check_ _nonnull(3) int https_load(Cause cause, const char *other_bundle, Diag *diag);
typedef struct HttpsReply {
        long status;
        Text body;
        int64_t date;                   /* of the Date header, in seconds since 1970; 0 where there is none */
        uint64_t wait_usec;             /* of the Retry-After header, at most RETRY_AFTER_MAX; 0: none */
} HttpsReply;
/* Sends a form, by http:// where the URL says so. A response of any status is a success; else *ret_why, the
 * caller's, says what happened: -EADDRNOTAVAIL where the name of the host did not resolve, here or at the
 * proxy, -EKEYREJECTED where certificates that are trusted cannot be read, -EIO. */
_must_check_ _nonnull_ int https_post(const Url *url, const char *const (*headers)[2], size_t n_headers,
                                      const char *form, uint64_t limit_usec, HttpsReply *ret, char **ret_why);

/* ---- questions to a Query API ---- */
/* A service that takes a form and answers in XML, and the words for it. */
typedef struct QueryService {
        AwsService service;
        const char *name;               /* "EC2", as messages have it */
        const char *full_name;          /* "the EC2 API", to which the network may not lead */
        const char *id;                 /* "ec2", in host names and signatures */
        const char *version;            /* of the API */
        const char *url_variable;       /* "AWS_ENDPOINT_URL_EC2" */
        const char *variable_place;     /* what follows its name in a message, or "" */
        const char *region_setting;     /* what gives it the region: "AWS_REGION" */
        const char *code_path, *request_id_path;        /* in the XML of an error */
        const char *if_stopped;         /* what follows "stopped by SIGTERM while asking …" */
        const char *other_bundle;       /* what names certificates beside AWS_CA_BUNDLE, or NULL */
        Cause cause, endpoint_cause;    /* of a failure; of a region or an endpoint that is none */
        /* Whose rules: nodeadm's (the AWS SDK for Go), which refuse a setting that is neither true nor false,
         * or those of the AWS CLI, to which that is false? It tries FIPS endpoints anywhere, too. */
        bool strict;
} QueryService;
/* sts.c's and ec2.c's */
extern const QueryService sts_api, ec2_api;

typedef struct QueryEndpoint {
        Url url;
        char *host;                     /* as the Host header has it */
        const char *path;               /* as a request has it: "/" where the URL has none */
        const char *kind;               /* "FIPS", "dual-stack": not every region has one; NULL: the usual */
} QueryEndpoint;
/* Where the service is: as AWS_ENDPOINT_URL_x, AWS_ENDPOINT_URL, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS,
 * AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT have it, else made of the region and the domain (NULL:
 * that of the region's partition). -EINVAL where that is not the URL of any place, or the region is known to
 * have no such endpoint. */
_must_check_ _nonnull(1, 2, 4, 5) int query_endpoint(const QueryService *service, const char *region,
                                                     const char *domain, QueryEndpoint *ret, Diag *diag);
void query_endpoint_done(QueryEndpoint *e);
/* A sentence, with a blank behind it, for where the host of this endpoint does not exist: which settings made
 * it. */
_malloc_ _nonnull_ char *query_endpoint_advice(const QueryService *service, const QueryEndpoint *e,
                                               const char *region);
/* Is FIPS wanted of a service that has no such endpoint in this region, as far as is known? */
_nonnull_ bool query_lacks_fips(const QueryService *service, const char *region);

/* How long and how often one question is asked. With AWS_MAX_ATTEMPTS that often; where elastic, for as long
 * as that takes at the longest pause each, if that is longer. Where brief, it ends as soon as the time that
 * is left is shorter than the next pause. */
typedef struct RetryPolicy {
        unsigned attempts;
        bool elastic, brief;
        uint64_t total_usec;
        uint64_t base_usec, cap_usec;           /* of backoff_usec(), after a failure */
        /* Of backoff_apart_usec(), after an answer that says that too many ask; 0: as after a failure. */
        uint64_t throttled_base_usec, throttled_cap_usec;
        uint64_t patience_usec;         /* when Query.settle is called first; 0: at the end */
} RetryPolicy;
/* Those of DescribeInstances, which `make bench` gives to a fleet: for as long as it takes, and for another
 * look at a name that is assumed. */
extern const RetryPolicy ec2_retry_policy, ec2_again_policy;
/* When to ask again after one more failure, the n-th from 0: *last_usec is the pause before, and becomes this
 * one. wait_usec: what the service itself has asked for, or 0. */
_nonnull_ uint64_t retry_pause(const RetryPolicy *policy, unsigned n, bool throttled, uint64_t wait_usec,
                               uint64_t *last_usec);
/* How long an attempt that begins now may take, where the time ends at until: the last one, which begins then
 * or a little later, gets a second, too. */
uint64_t retry_attempt_usec(uint64_t now, uint64_t until);

typedef struct Query Query;
struct Query {
        const QueryService *service;
        const char *region, *domain;    /* as for query_endpoint() */
        const char *action;             /* "DescribeInstances" */
        const char *fields;             /* of the form, encoded, each after a '&': "&InstanceId.1=i-…" */
        Credentials *credentials;       /* that sign the request, replaced once where they have expired; NULL:
                                         * it is not signed, the form itself says who asks */
        Imds *imds;                     /* where they come from */
        RetryPolicy retry;
        /* Reads ret out of an answer: 1, 0 where what was asked for is not there (yet), -EBADMSG if it is not
         * an answer to this question at all. */
        int (*accept)(const Query *q, const Text *body);
        void *ret;
        const char *missing;            /* what is said when accept finds nothing, and what to do about it; */
        const char *missing_advice;     /* NULL: something else than the service must have answered */
        const char *unauthorized, *expired;     /* what to do about these refusals */
        const char *instead;            /* the setting that makes the question needless, or NULL */
        unsigned *requests;             /* is incremented for each that is sent; or NULL */
        /* Can who asks do without an answer, of which it is said why there is none? Called with user once,
         * when there is no answer for patience_usec (more: it would be asked on), or there will be none;
         * never where the service has answered that there is nothing (yet), or refuses. NULL: they cannot. */
        bool (*settle)(void *user, const char *why, bool more);
        void *user;
};
/* Asks until there is an answer that q->accept takes, a refusal (-EACCES where who asks lacks a permission,
 * -EPERM for another reason), q->settle says that it can do without (-ECANCELED, without a diagnostic) or no
 * time is left (-ETIMEDOUT, -EHOSTUNREACH where there was no answer at all); the last attempt begins at the
 * end of the time at the latest and may take another second. */
_must_check_ _nonnull_ int query_ask(const Query *q, Diag *diag);
/* These seconds since 1970 by AWS's clock, as far as refusals of earlier questions have shown that this
 * machine's is wrong. */
int64_t query_clock(int64_t seconds);

/* ---- AWS Signature Version 4 ---- */
typedef struct SignedRequest {
        const char *method, *path, *query;      /* path and query already in canonical form */
        const char *const (*headers)[2];        /* {lower-case name, value}, sorted, host among them */
        size_t n_headers;
        const char *body;
        size_t body_size;
        const char *region, *service, *date;    /* date: "20260102T030405Z" */
} SignedRequest;
/* The value of the Authorization header. */
_malloc_ _nonnull_ char *sigv4_authorization(const SignedRequest *request, const Credentials *credentials);
/* The query of a presigned URL: the request's own, the parameters of the signature in the order in which the
 * AWS CLI writes them, and the signature. No name in the request's own query may begin with another one's. */
_malloc_ _nonnull_ char *sigv4_presigned_query(const SignedRequest *request, const Credentials *credentials,
                                               unsigned expires);
/* The signature of a canonical request, in hexadecimal digits. */
_nonnull_ void sigv4_signature(const SignedRequest *request, const char *secret, const char *canonical,
                               char ret[static 65]);
/* "20260102T030405Z" of seconds since 1970. */
_nonnull_ void sigv4_date(int64_t seconds, char ret[static 17]);

/* ---- refusals ---- */
/* What an error answer means. Its message may repeat the request, session token included, so only its code is
 * ever shown. */
typedef enum RefusalKind {
        REFUSAL_FINAL,
        REFUSAL_TEMPORARY,
        REFUSAL_THROTTLED,              /* temporary, because too many ask */
        REFUSAL_SIGNATURE,
        REFUSAL_EXPIRED,
        REFUSAL_UNAUTHORIZED
} RefusalKind;
_nonnull_ RefusalKind refusal_kind(const char *code);
/* A word from the XML of an answer, fit for a message, the caller's; NULL where there is none. */
_nonnull_ char *refusal_word(const Text *body, const char *path);
/* A clause that compares the clock here with the date of a service's answer (0: it has none): "the clock here
 * is 12 s behind EC2's". */
_malloc_ _nonnull_ char *refusal_clock(const char *service, int64_t date);

/* A variable of the environment; NULL where it is not set or empty. */
static inline const char *environment_value(const char *name) {
        const char *value = getenv(name);
        return value && *value ? value : NULL;
}

/* Of this environment, or NULL. */
static inline const char *aws_region(void) {
        return environment_value("AWS_REGION") ?: environment_value("AWS_DEFAULT_REGION");
}
/* A file of the environment, by a path as a user gives it. */
_must_check_ _nonnull_ int environment_read(const char *path, size_t limit, char **ret);

/* Has it only what may stand in a header and in a signature: no blank, no control character? */
_nonnull_ bool credentials_text_is_valid(const char *s);

/* conf/partitions.csv; the last one fits every region */
extern const Partition partitions[];
extern const size_t n_partitions;
/* "us-west-2": may it become a part of a host name? */
_nonnull_ bool region_is_valid(const char *region);
