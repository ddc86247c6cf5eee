/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The metadata service and container credentials (by plain HTTP), and EC2 and STS (by libcurl). */
#include "base/error.h"
#include "base/root.h"
#include <jansson.h>

/* A client of the instance metadata service, version 2 only: one connection, one session token, one time
 * budget. It uses no proxy and follows no redirect. The address: AWS_EC2_METADATA_SERVICE_ENDPOINT, else
 * http://169.254.169.254, with AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv6 http://[fd00:ec2::254];
 * AWS_EC2_METADATA_DISABLED=true switches it off. */
typedef struct Imds Imds;
/* The budget counts only during requests; 0: 60 s. */
Imds *imds_new(uint64_t budget_usec);
Imds *imds_free(Imds *i);
/* A new budget, as above; the session stays. */
_nonnull_ void imds_renew(Imds *i, uint64_t budget_usec);
/* A 403 is final from now on: the metadata options of the instance switch the service off. */
_nonnull_ void imds_take_refusal(Imds *i);
DEFINE_CLEANUP(Imds *, imds_free)
/* GET /latest/PATH. -ENOENT for 404, without a diagnostic; a 401 gets a new session token. All other failures
 * are retried with full jitter. At the end of the budget: -ETIMEDOUT (-EPERM after a last 403), with the last
 * failure in the diagnostic. The caller frees *ret, NUL-terminated; ret_size may be NULL. */
_must_check_ _nonnull(1, 2, 3, 5) int imds_get(Imds *i, const char *path, char **ret, size_t *ret_size,
                                               Diag *diag);
/* The same, with a budget for this question alone: each counts separately. */
_must_check_ _nonnull(1, 3, 4, 5) int imds_get_within(Imds *i, uint64_t budget_usec, const char *path,
                                                      char **ret, Diag *diag);
unsigned imds_requests(const Imds *i);          /* with retries */
/* The answers so far, minus credentials: path → base64, null for 404. An Imds does not repeat questions
 * that it recalls. imds_recall() takes a reference, imds_answers() lends one (NULL: no answer yet). */
_nonnull(1) void imds_recall(Imds *i, json_t *answers);
json_t *imds_answers(const Imds *i);
/* Asks again for this path. */
_nonnull_ void imds_forget(Imds *i, const char *path);
/* Sets the answer for this path. */
_nonnull_ void imds_know(Imds *i, const char *path, const void *data, size_t size);
/* Gets the instance identity document with its signature, which one of these PEM certificates must have made
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/verify-rsa2048.html). Their expiry does not count, as
 * the clock may be wrong. Later requests for the document get this one. The caller frees the texts.
 * -EKEYREJECTED with CAUSE_BINDING: no valid signature. */
_must_check_ _nonnull_ int imds_verify_identity(Imds *i, const char *certificates, char **ret_account,
                                                char **ret_region, Diag *diag);

/* The meaning of autoscaling/target-lifecycle-state for this boot. */
typedef enum PoolState {
        POOL_NONE,      /* no warm pool has the instance, or no Auto Scaling group: the node joins */
        POOL_PREPARES,  /* a warm pool prepares it: it stops, and joins in the boot after that */
        POOL_RESUMES,   /* the same, but no boot follows: it goes on running, or hibernates */
        POOL_UNKNOWN,   /* none, or an unknown word */
} PoolState;
#define IMDS_POOL_STATE "meta-data/autoscaling/target-lifecycle-state"
/* Within 3 s. *ret: the state, or why it is unknown; NULL: there is none. The caller frees it. The answer
 * stays for later processes if the instance joins as usual or a boot follows; others ask again. */
_must_check_ _nonnull_ PoolState imds_pool_state(Imds *imds, char **ret);

typedef enum AwsService { AWS_EC2, AWS_STS, _AWS_SERVICE_MAX } AwsService;

/* conf/partitions.csv */
typedef struct Partition {
        char prefix[9];                         /* of its region names: "cn-" */
        char name[11];                          /* "aws-cn" */
        char domain[18], dual_stack[29];        /* of host names; also with IPv6 */
        /* Region prefixes with FIPS endpoints: "us-|ca-"; "usual": all, under usual names; "": none. */
        char fips[_AWS_SERVICE_MAX][8];
} Partition;
/* Unknown region: that of "aws". */
_nonnull_ const Partition *partition_find(const char *region);
/* Is that certain? An unknown region may be of a partition that the table lacks. */
_nonnull_ bool region_tells_partition(const char *region);

typedef struct Credentials { char *key_id, *secret, *token; } Credentials;      /* token may be NULL */
void credentials_done(Credentials *c);          /* erases the secrets */
/* The first source in the order of the AWS CLI. 1. AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY and
 * AWS_SESSION_TOKEN. 2. The role AWS_ROLE_ARN by AWS_WEB_IDENTITY_TOKEN_FILE, from STS in that region. 3. The
 * endpoint of AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI. 4. The instance role by IMDS. A failed
 * source in the environment is final. CLI files are ignored. No request begins after the deadline
 * (now_usec()). */
_must_check_ _nonnull_ int credentials_get(Imds *imds, const char *region, uint64_t deadline_usec,
                                           Credentials *ret, Diag *diag);

/* Both STS and EC2 honour AWS_ENDPOINT_URL(_STS, _EC2), AWS_IGNORE_CONFIGURED_ENDPOINT_URLS,
 * AWS_USE_FIPS_ENDPOINT, AWS_USE_DUALSTACK_ENDPOINT, AWS_CA_BUNDLE, AWS_MAX_ATTEMPTS and AWS_RETRY_MODE like
 * the AWS SDKs, and HTTPS_PROXY and NO_PROXY. Endpoints are always regional. */
/* The credentials of a role, by credentials_get() or by the token of an identity provider. */
_must_check_ _nonnull_ int sts_assume_role(Imds *imds, const char *region, const char *role_arn,
                                           uint64_t deadline_usec, Credentials *ret, Diag *diag);
_must_check_ _nonnull_ int sts_assume_role_with_web_identity(const char *region, const char *role_arn,
                                                             const char *session, const char *token,
                                                             uint64_t deadline_usec, Credentials *ret,
                                                             Diag *diag);
/* A secret URL, byte for byte that of `aws eks get-token`. A GET within minutes, with the header
 * x-k8s-aws-id: CLUSTER, shows the owner of the credentials. It lets the sender act as that owner in the
 * cluster (https://github.com/kubernetes-sigs/aws-iam-authenticator). Sends nothing. */
_must_check_ _nonnull_ int sts_presign_identity(const char *region, const char *cluster,
                                                const Credentials *with, int64_t seconds, char **ret_url,
                                                Diag *diag);

typedef struct TokenRequest {
        const char *cluster;            /* its name; the id of a local one */
        const char *region;             /* NULL: of the environment or the metadata service */
        const char *role_arn;           /* to assume, or NULL */
        uint64_t deadline_usec;         /* now_usec() */
} TokenRequest;
/* A secret bearer token for the API server; its 15 minutes begin at *ret_seconds since 1970. */
_must_check_ _nonnull_ int token_make(const TokenRequest *request, char **ret, int64_t *ret_seconds,
                                      Diag *diag);

/* How urgent the name is. */
typedef struct NameWish {
        bool again;                     /* a name is there: a request or two, within 3 s */
        /* Called once, after 5 s without an EC2 answer (more: the question goes on) or at the end; why: the
         * last failure. True: the caller has a name. Never after an answer without a name. NULL: no other
         * way. */
        bool (*settle)(void *user, const char *why, bool more);
        void *user;
} NameWish;
typedef struct Ec2 {
        const char *region, *domain;    /* of the instance */
        Imds *imds;                     /* for credentials */
        const Root *turns;              /* requests hold EC2_LOCK there; NULL: a plan, which locks nothing */
        uint64_t deadline_usec;         /* now_usec(); 0: the usual time of each question */
        NameWish wish;                  /* for ec2_private_dns_name() */
} Ec2;
/* Checks the endpoint settings of this region: -EINVAL for EC2 if asks_ec2; a warning for STS, which kubelet
 * asks. Loads libcurl, which changes the environment for a moment: call it without other threads. */
_must_check_ _nonnull_ int ec2_check_endpoints(const Ec2 *ec2, bool asks_ec2, Diag *diag);
/* DescribeInstances → PrivateDnsName, in AWS_REGION, AWS_DEFAULT_REGION or the region of the instance.
 * Attempts of 5 s for 10 minutes, or for AWS_MAX_ATTEMPTS; with full jitter, after a throttle with
 * decorrelated jitter or Retry-After. An empty name means "not yet". -ECANCELED: ec2->wish has another
 * name. */
_must_check_ _nonnull_ int ec2_private_dns_name(const Ec2 *ec2, const char *instance_id, char **ret,
                                                Diag *diag);
/* DescribeInstanceTypes → the interfaces of the default network card, and IPv4 addresses of each. Four
 * attempts within 20 s, or fewer by AWS_MAX_ATTEMPTS. */
_must_check_ _nonnull_ int ec2_eni_limits(const Ec2 *ec2, const char *instance_type, unsigned *ret_enis,
                                          unsigned *ret_addresses, Diag *diag);
/* DescribeNetworkInterfaces → the tag node.k8s.amazonaws.com/no_manage=true, by which the CNI ignores an
 * interface. -EACCES: not allowed, -EHOSTUNREACH: no answer, -EKEYREJECTED: unreadable certificates. */
_must_check_ _nonnull_ int ec2_interface_is_tagged(const Ec2 *ec2, const char *instance_id, const char *mac,
                                                   bool *ret, Diag *diag);
unsigned ec2_requests(void);                    /* by this process */
