/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The services that say who and what an instance is: the instance metadata service and a container's
 * credential endpoint (plain HTTP, a small client of our own), the APIs of EC2 and STS (libcurl). */
#include "base/error.h"
#include "base/root.h"
#include <jansson.h>

/* A client of the instance metadata service, version 2 only: one connection, one session token and one budget
 * of time for all that is asked through it. Never through a proxy, never following a redirect. The service is
 * at AWS_EC2_METADATA_SERVICE_ENDPOINT, else at http://169.254.169.254, or with
 * AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv6 at http://[fd00:ec2::254]; nowhere with
 * AWS_EC2_METADATA_DISABLED=true. */
typedef struct Imds Imds;
/* The budget counts while an answer is waited for; 0: the default of 60 s. Sends nothing yet. */
Imds *imds_new(uint64_t budget_usec);
Imds *imds_free(Imds *i);
/* From now on there is this budget, as above, whatever has been spent; its session is kept. */
_nonnull_ void imds_renew(Imds *i, uint64_t budget_usec);
/* From now on a 403 is final: the metadata options of this instance switch the service off. */
_nonnull_ void imds_take_refusal(Imds *i);
DEFINE_CLEANUP(Imds *, imds_free)
/* GET /latest/PATH. -ENOENT for 404, which is final and no diagnostic. After a 401 a new session token is
 * asked for. All else (refused, timed out, cut off, 5xx, 429) is tried again with full jitter until the
 * budget is spent. Then -ETIMEDOUT (-EPERM where a 403 came last) and a diagnostic that tells what was
 * seen last. *ret, the caller's, has a NUL behind its bytes; ret_size may be NULL. */
_must_check_ _nonnull(1, 2, 3, 5) int imds_get(Imds *i, const char *path, char **ret, size_t *ret_size,
                                               Diag *diag);
unsigned imds_requests(const Imds *i);          /* sent so far, retries counted */
/* What has been answered so far, credentials left out: path → base64, null for 404. An Imds that recalls
 * the answers of another one does not ask for them again. imds_recall() takes a reference; what
 * imds_answers() gives belongs to i, and is NULL before any answer. */
_nonnull(1) void imds_recall(Imds *i, json_t *answers);
json_t *imds_answers(const Imds *i);
/* What this path was answered, and that there was nothing there, is asked for again. */
_nonnull_ void imds_forget(Imds *i, const char *path);
/* What this path is answered is known already, from another one. */
_nonnull_ void imds_know(Imds *i, const char *path, const void *data, size_t size);
/* The instance identity document, asked for with its signature around it, which one of these certificates
 * (PEM) must have made
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/verify-rsa2048.html); whether they have expired is
 * not asked, as the clock may be wrong. Whoever asks for the document itself later gets this one. What is in
 * it belongs to the caller. -EKEYREJECTED with CAUSE_BINDING where nobody vouches for it. */
_must_check_ _nonnull_ int imds_verify_identity(Imds *i, const char *certificates, char **ret_account,
                                                char **ret_region, Diag *diag);

typedef enum AwsService { AWS_EC2, AWS_STS, _AWS_SERVICE_MAX } AwsService;

/* What a region belongs to, from conf/partitions.csv. */
typedef struct Partition {
        const char *prefix;                     /* of the names of its regions: "cn-" */
        const char *name;                       /* "aws-cn" */
        const char *domain, *dual_stack;        /* of host names; of those with IPv6, too */
        /* "us-|ca-": its regions with such a beginning have FIPS endpoints; "usual": all have, under the
         * names of the others; NULL: none has */
        const char *fips[_AWS_SERVICE_MAX];
} Partition;
/* The partition of a region by its name; of one that is not known, that of "aws". Never NULL. */
_nonnull_ const Partition *partition_find(const char *region);

typedef struct Credentials { char *key_id, *secret, *token; } Credentials;      /* token may be NULL */
void credentials_done(Credentials *c);          /* erases the secrets, too */
/* The first of these that there is, in the order of the AWS CLI: AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY
 * and AWS_SESSION_TOKEN; the role AWS_ROLE_ARN by AWS_WEB_IDENTITY_TOKEN_FILE, from STS in that region; the
 * endpoint of AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI; the instance's role by IMDS. Where the
 * environment asks for one of them and that does not work, it is a failure, and no other is tried. Nothing is
 * begun after the deadline (now_usec()). Files of the CLI (~/.aws) are not read. */
_must_check_ _nonnull_ int credentials_get(Imds *imds, const char *region, uint64_t deadline_usec,
                                           Credentials *ret, Diag *diag);

/* For STS and EC2 alike: AWS_ENDPOINT_URL(_STS, _EC2), AWS_IGNORE_CONFIGURED_ENDPOINT_URLS,
 * AWS_USE_FIPS_ENDPOINT, AWS_USE_DUALSTACK_ENDPOINT, AWS_CA_BUNDLE, AWS_MAX_ATTEMPTS and AWS_RETRY_MODE mean
 * what they mean to the AWS SDKs, endpoints are always regional, and HTTPS_PROXY and NO_PROXY are
 * honoured. */
/* The credentials of a role: assumed with those of credentials_get(), or with the token of an identity
 * provider. */
_must_check_ _nonnull_ int sts_assume_role(Imds *imds, const char *region, const char *role_arn,
                                           uint64_t deadline_usec, Credentials *ret, Diag *diag);
_must_check_ _nonnull_ int sts_assume_role_with_web_identity(const char *region, const char *role_arn,
                                                             const char *session, const char *token,
                                                             uint64_t deadline_usec, Credentials *ret,
                                                             Diag *diag);
/* A URL that anybody can GET within the next minutes to learn whose credentials these are, if they send the
 * header x-k8s-aws-id with that value (https://github.com/kubernetes-sigs/aws-iam-authenticator): byte for
 * byte what `aws eks get-token` presigns at that second. Sends nothing. It is a secret: whoever has it can
 * act as their owner in the cluster of that id. */
_must_check_ _nonnull_ int sts_presign_identity(const char *region, const char *cluster,
                                                const Credentials *with, int64_t seconds, char **ret_url,
                                                Diag *diag);

typedef struct TokenRequest {
        const char *cluster;            /* its name, or the id of a local one */
        const char *region;             /* NULL: as the environment or the metadata service say */
        const char *role_arn;           /* to be assumed, or NULL */
        uint64_t deadline_usec;         /* now_usec() */
} TokenRequest;
/* A bearer token for the API server of an EKS cluster, a secret of the caller's, and the second since 1970
 * from which its 15 minutes count. */
_must_check_ _nonnull_ int token_make(const TokenRequest *request, char **ret, int64_t *ret_seconds,
                                      Diag *diag);

/* How much who asks for the name needs it. */
typedef struct NameWish {
        bool again;                     /* there is one already: a request or two, within 3 s */
        /* Called with user, once, when EC2 has not answered for 5 s (more: it would be asked on), or is not
         * asked any more; why says what it did instead. True: there is another way to the name. NULL: there
         * is none. Not where EC2 has answered that there is no name (yet). */
        bool (*settle)(void *user, const char *why, bool more);
        void *user;
} NameWish;
typedef struct Ec2 {
        const char *region, *domain;    /* of the instance: "us-west-2", "amazonaws.com" */
        Imds *imds;                     /* for credentials */
        uint64_t deadline_usec;         /* now_usec(): asked until then at most; 0: as long as each question
                                         * takes */
        NameWish wish;                  /* of ec2_private_dns_name() */
} Ec2;
/* Before the first request: can there be endpoints as the environment wants them, in this region? Where EC2
 * will be asked, -EINVAL with a diagnostic if it has none; of STS, which is asked for who kubelet is, a
 * warning. What carries requests is loaded, too, which changes the environment for a moment: nothing else may
 * run beside it. */
_must_check_ _nonnull_ int ec2_check_endpoints(const Ec2 *ec2, bool asks_ec2, Diag *diag);
/* DescribeInstances → PrivateDnsName of the instance, from where AWS_REGION or AWS_DEFAULT_REGION say, else
 * from its own region. Attempts of 5 s each, one after the other, for 10 minutes at most, or as long as
 * AWS_MAX_ATTEMPTS takes where that is longer: after a failure with full jitter, after a throttle with
 * decorrelated jitter, or what Retry-After says. An empty name counts as "not yet". -ECANCELED without a
 * diagnostic where ec2->wish was settled otherwise. */
_must_check_ _nonnull_ int ec2_private_dns_name(const Ec2 *ec2, const char *instance_id, char **ret,
                                                Diag *diag);
/* DescribeInstanceTypes → the network interfaces that the default network card can have, and the IPv4
 * addresses of each; four attempts within 20 s, or what AWS_MAX_ATTEMPTS says. */
_must_check_ _nonnull_ int ec2_eni_limits(const Ec2 *ec2, const char *instance_type, unsigned *ret_enis,
                                          unsigned *ret_addresses, Diag *diag);
/* Is the interface tagged node.k8s.amazonaws.com/no_manage=true, so that the CNI leaves it alone? By
 * DescribeNetworkInterfaces. -EACCES where the instance may not ask or has no credentials to ask with,
 * -EHOSTUNREACH where nothing answers, -EKEYREJECTED where certificates cannot be read. Each failure has a
 * diagnostic. */
_must_check_ _nonnull_ int ec2_interface_is_tagged(const Ec2 *ec2, const char *instance_id, const char *mac,
                                                   bool *ret, Diag *diag);
unsigned ec2_requests(void);                    /* sent so far by this process */
