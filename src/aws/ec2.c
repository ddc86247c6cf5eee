/* SPDX-License-Identifier: Apache-2.0
 * Three questions to EC2: private DNS name, network limits of a type, tags of an interface.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeNetworkInterfaces.html */
#include "aws/internal.h"

#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>
#include <limits.h>

#define CREDENTIALS_USEC (60 * USEC_PER_SEC)
#define BACKOFF_USEC     (100 * USEC_PER_MSEC)
#define BACKOFF_CAP      (20 * USEC_PER_SEC)    /* as in the AWS SDKs */

const QueryService ec2_api = {
        .service = AWS_EC2,
        .name = "EC2",
        .full_name = "the EC2 API",
        .id = "ec2",
        .version = "2016-11-15",
        .url_variable = "AWS_ENDPOINT_URL_EC2",
        .variable_place = "",
        .region_setting = "AWS_REGION",
        .code_path = "Response/Errors/Error/Code",
        .request_id_path = "Response/RequestID",
        .if_stopped = "; nothing was changed",
        .cause = CAUSE_EC2,
        .endpoint_cause = CAUSE_EC2,
        .strict = true,
};

/* Only time limits the attempts: of ten thousand nodes that boot within a minute, the last one needs most of
 * it (tests/bench/fleet.c). A throttled node asks at least twice within its patience. */
const RetryPolicy ec2_retry_policy = {
        .attempts = UINT_MAX,
        .elastic = true,
        .total_usec = 600 * USEC_PER_SEC,
        .base_usec = BACKOFF_USEC,
        .cap_usec = BACKOFF_CAP,
        .throttled_base_usec = 1500 * USEC_PER_MSEC,
        .throttled_cap_usec = 60 * USEC_PER_SEC,
        .patience_usec = 5 * USEC_PER_SEC,
};
/* kubelet waits for it: a second request only if the first did not reach EC2 or the clock was wrong. */
const RetryPolicy ec2_again_policy = {
        .attempts = 2,
        .brief = true,
        .total_usec = 3 * USEC_PER_SEC,
        .base_usec = BACKOFF_USEC,
        .cap_usec = USEC_PER_SEC,
        .throttled_base_usec = 3 * USEC_PER_SEC,
        .throttled_cap_usec = 3 * USEC_PER_SEC,
};
/* The number of pods has a default, and systemd restarts interface units: do not wait long. */
static const RetryPolicy short_retry_policy = {
        .attempts = 4,
        .total_usec = 20 * USEC_PER_SEC,
        .base_usec = BACKOFF_USEC,
        .cap_usec = BACKOFF_CAP,
};

static Credentials credentials;
static unsigned requests;

unsigned ec2_requests(void) {
        return requests;
}

int ec2_check_endpoints(const Ec2 *ec2, bool asks_ec2, Diag *diag) {
        _cleanup_(query_endpoint_done) QueryEndpoint e = {};
        const char *other = aws_region();
        if (query_lacks_fips(&sts_api, ec2->region))
                diag_warn(diag, "fips-endpoint",
                          "AWS_USE_FIPS_ENDPOINT is true, but STS has no known FIPS endpoint in %s. If "
                          "kubelet has the variable in its environment, the cluster may reject the node: "
                          "unset it, or set AWS_ENDPOINT_URL_STS",
                          ec2->region);
        if (!asks_ec2)
                return 0;
        int r = query_endpoint(&ec2_api, other ?: ec2->region, other ? NULL : ec2->domain, &e, diag);
        return r < 0 ? r : https_load(ec2_api.cause, ec2_api.other_bundle, diag);
}

static uint64_t left_of(const Ec2 *ec2, uint64_t span_usec) {
        uint64_t left = ec2->deadline_usec == 0 ? span_usec : usec_left(ec2->deadline_usec);
        return MIN(span_usec, left);
}

/* policy: one that grants the permission. */
static int ask_ec2(const Ec2 *ec2, Query *q, const char *policy, Diag *diag) {
        _free_ char *unauthorized =
                xasprintf("the instance role lacks the permission ec2:%s (%s grants it), or a service "
                          "control "
                          "policy or VPC endpoint policy denies it",
                          q->action, policy);
        q->service = &ec2_api;
        q->imds = ec2->imds;
        q->credentials = &credentials;
        q->unauthorized = unauthorized;
        q->expired = "even the newly fetched credentials have expired";
        q->requests = &requests;
        q->turns = ec2->turns;
        if (!credentials.key_id) {
                /* shows a configuration error before any wait */
                _cleanup_(query_endpoint_done) QueryEndpoint e = {};
                int r = query_endpoint(q->service, q->region, q->domain, &e, diag);
                if (r >= 0)
                        r = credentials_get(ec2->imds, q->region, now_usec() + left_of(ec2, CREDENTIALS_USEC),
                                            &credentials, diag);
                if (r < 0)
                        return r;
        }
        q->retry.total_usec = left_of(ec2, q->retry.total_usec);
        return query_ask(q, diag);
}

/* Needs no encoding in a form. */
static bool is_form_word(const char *s) {
        return *s && !s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")];
}

#define PRIVATE_NAME "DescribeInstancesResponse/reservationSet/item/instancesSet/item/privateDnsName"

static int accept_name(const Query *q, const Text *body) {
        _strv_ char **names = NULL;
        int r = xml_texts(body->data, body->size, PRIVATE_NAME, &names);
        if (r < 0 || !names || !is_form_word(names[0]))     /* it becomes a kubelet flag */
                return MIN(r, 0);
        *(char **)q->ret = xstrdup(names[0]);
        return 1;
}

int ec2_private_dns_name(const Ec2 *ec2, const char *instance_id, char **ret, Diag *diag) {
        _free_ char *fields = xasprintf("&InstanceId.1=%s", instance_id);
        const char *other = aws_region();       /* like the nodeadm SDK */
        Query q = {
                .region = other ?: ec2->region,
                .domain = other ? NULL : ec2->domain,
                .action = "DescribeInstances",
                .fields = fields,
                .retry = ec2->wish.again ? ec2_again_policy : ec2_retry_policy,
                .accept = accept_name,
                .ret = ret,
                .settle = ec2->wish.settle,
                .user = ec2->wish.user,
                .missing = "the instance has no private DNS name (yet)",
                .missing_advice = "Set enableDnsHostnames and enableDnsSupport of the VPC to true",
                .instead = "spec.featureGates.InstanceIdNodeName: true",
        };
        if (!is_form_word(instance_id))
                return diag_error(diag, -EINVAL, CAUSE_FACTS, "the instance id has invalid characters");
        return ask_ec2(ec2, &q, "AmazonEKSWorkerNodePolicy", diag);
}

#define NETWORK_INFO "DescribeInstanceTypesResponse/instanceTypeSet/item/networkInfo/"

static int numbers_at(const Text *body, const char *path, uint64_t **ret, size_t *ret_n) {
        _strv_ char **found = NULL;
        int r = xml_texts(body->data, body->size, path, &found);
        if (r < 0)
                return r;
        *ret_n = strv_length(found);
        *ret = xcalloc(*ret_n, sizeof **ret);
        for (size_t i = 0; i < *ret_n; i++)
                (void)!parse_u64(found[i], &(*ret)[i]);         /* 0: not a number */
        return 0;
}

static int accept_limits(const Query *q, const Text *body) {
        _free_ uint64_t *addresses = NULL, *card = NULL, *indexes = NULL, *enis = NULL;
        size_t n_addresses, n_cards, n_indexes, n_enis;
        if (numbers_at(body, NETWORK_INFO "ipv4AddressesPerInterface", &addresses, &n_addresses) < 0 ||
            numbers_at(body, NETWORK_INFO "defaultNetworkCardIndex", &card, &n_cards) < 0 ||
            numbers_at(body, NETWORK_INFO "networkCards/item/networkCardIndex", &indexes, &n_indexes) < 0 ||
            numbers_at(body, NETWORK_INFO "networkCards/item/maximumNetworkInterfaces", &enis, &n_enis) < 0)
                return -EBADMSG;
        size_t i = 0;
        while (i < n_indexes && indexes[i] != (n_cards > 0 ? card[0] : 0))
                i++;
        uint64_t limits[] = { i < MIN(n_indexes, n_enis) ? enis[i] : 0, n_addresses > 0 ? addresses[0] : 0 };
        for (size_t k = 0; k < ARRAY_SIZE(limits); k++)
                if (limits[k] < 1 || limits[k] > 1000)
                        return 0;
        memcpy(q->ret, limits, sizeof limits);
        return 1;
}

int ec2_eni_limits(const Ec2 *ec2, const char *instance_type, unsigned *ret_enis, unsigned *ret_addresses,
                   Diag *diag) {
        _free_ char *fields = xasprintf("&InstanceType.1=%s", instance_type);
        uint64_t limits[2] = {};
        Query q = {
                .region = ec2->region,
                .domain = ec2->domain,
                .action = "DescribeInstanceTypes",
                .fields = fields,
                .retry = short_retry_policy,
                .accept = accept_limits,
                .ret = limits,
                .missing = "an answer without network interface limits",
                .missing_advice = "Check the server that answers there",
                .instead = "spec.kubelet.config.maxPods",
        };
        if (!is_form_word(instance_type))
                return diag_error(diag, -EINVAL, CAUSE_FACTS,
                                  "the instance type has invalid characters");
        int r = ask_ec2(ec2, &q, "AmazonEKSWorkerNodePolicy", diag);
        if (r < 0)
                return r;
        *ret_enis = (unsigned)limits[0];
        *ret_addresses = (unsigned)limits[1];
        return 0;
}

#define INTERFACES "DescribeNetworkInterfacesResponse/networkInterfaceSet/item/"
#define NO_MANAGE  "node.k8s.amazonaws.com/no_manage"

static int accept_tags(const Query *q, const Text *body) {
        _strv_ char **ids = NULL, **keys = NULL, **values = NULL;
        if (xml_texts(body->data, body->size, INTERFACES "networkInterfaceId", &ids) < 0 ||
            xml_texts(body->data, body->size, INTERFACES "tagSet/item/key", &keys) < 0 ||
            xml_texts(body->data, body->size, INTERFACES "tagSet/item/value", &values) < 0 ||
            strv_length(keys) != strv_length(values))
                return -EBADMSG;
        if (!ids)
                return 0;
        bool tagged = false;
        /* as in the CNI (aws/amazon-vpc-cni-k8s:pkg/ipamd/ipamd.go) */
        for (size_t i = 0; keys && keys[i]; i++)
                tagged = tagged || (streq(keys[i], NO_MANAGE) && streq(values[i], "true"));
        *(bool *)q->ret = tagged;
        return 1;
}

int ec2_interface_is_tagged(const Ec2 *ec2, const char *instance_id, const char *mac, bool *ret, Diag *diag) {
        _cleanup_(text_done) Text fields = {};
        Query q = {
                .region = ec2->region,
                .domain = ec2->domain,
                .action = "DescribeNetworkInterfaces",
                .retry = short_retry_policy,
                .accept = accept_tags,
                .ret = ret,
                .missing = "the instance has no interface with this MAC address (yet)",
                .missing_advice = "Check that it is still attached",
        };
        text_add(&fields, "&Filter.1.Name=attachment.instance-id&Filter.1.Value.1=");
        text_add_encoded(&fields, instance_id);
        text_add(&fields, "&Filter.2.Name=mac-address&Filter.2.Value.1=");
        text_add_encoded(&fields, mac);
        q.fields = fields.data;
        int r = ask_ec2(ec2, &q, "AmazonEKS_CNI_Policy", diag);
        const Diagnostic *error = r < 0 ? diag_first_error(diag) : NULL;
        return error && error->cause == CAUSE_CREDENTIALS ? -EACCES : r;
}
