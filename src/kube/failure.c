/* SPDX-License-Identifier: Apache-2.0
 * How a request ended → its cause, and a message with what failed, where, why, and what to do. */
#include "kube/internal.h"

#include "base/paths.h"
#include "base/time.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <time.h>

#define SKEW_SEC    300         /* STS refuses a signature further ahead; an authenticator allows 15 minutes
                                 * behind */
#define MESSAGE_MAX 300

/* Untrusted text: one line, limited. */
static char *shown(const char *message) {
        Text t = {};
        text_add_shown(&t, message, strlen(message), MESSAGE_MAX, 0);
        return text_take(&t);
}

static char *span_text(int64_t seconds) {
        if (seconds < 7200)
                return xasprintf("%lld s", (long long)seconds);
        return seconds < 48 * 3600LL ? xasprintf("%lld h", (long long)seconds / 3600)
                                     : xasprintf("%lld days", (long long)seconds / 86400);
}

static int64_t skew(const KubeMoment *m) {
        return m->server > 0 ? m->now - m->server : 0;
}

static bool clock_is_wrong(const KubeMoment *m) {
        return llabs(skew(m)) >= SKEW_SEC;
}

/* "the clock of this machine says …, that of the server …: ours is 2 h behind" */
static void add_clocks(Text *t, const KubeMoment *m) {
        _free_ char *ours = time_text(m->now), *theirs = time_text(m->server),
                    *span = span_text(llabs(skew(m)));
        text_add(t, "the clock of this machine says %s", ours);
        if (m->server > 0)
                text_add(t, ", that of the server %s: ours is %s %s", theirs, span,
                         skew(m) < 0 ? "behind" : "ahead");
        text_add(t, "; check chronyc tracking: the time service of EC2 is at 169.254.169.123");
}

static Cause explain_name(const KubeMoment *m, const char *error, Text *t) {
        text_add(t,
                 "the name of the API server, %s, does not resolve (%s); try resolvectl query %s. The VPC "
                 "needs enableDnsSupport and enableDnsHostnames, a private endpoint may need the VPC "
                 "resolver, and spec.cluster.apiServerEndpoint must be that of %s",
                 m->access->host, error, m->access->host, m->access->cluster);
        return CAUSE_API_NAME;
}

static Cause explain_route(const KubeMoment *m, const char *error, Text *t) {
        const KubeReply *r = m->reply;
        const char *server = m->access->server;
        if (r->os_error == ECONNREFUSED)
                text_add(t, "%s refuses the connection: nothing listens there; is "
                            "spec.cluster.apiServerEndpoint that of %s?", server, m->access->cluster);
        else if (r->os_error == ENETUNREACH || r->os_error == EHOSTUNREACH)
                text_add(t,
                         "no route to %s (%s); check `ip route` and the route table of the subnet. The "
                         "subnet needs the private endpoint of the cluster, a NAT gateway, or an "
                         "internet gateway and public addresses",
                         server, strerror((int)r->os_error));
        else if (r->curl == CURLE_OPERATION_TIMEDOUT)
                text_add(t,
                         "%s did not accept a connection within %.1f s: the security group of the cluster "
                         "must let this node in. The subnet needs a route there (a NAT gateway, "
                         "or the private endpoint of the cluster)%s",
                         server, (double)r->usec / USEC_PER_SEC,
                         r->proxy_set ? "; HTTPS_PROXY is set: is that proxy right, or does NO_PROXY lack "
                                        "the name?"
                                      : "");
        else
                text_add(t, "no connection to %s: %s; check the network of this node and its security groups",
                         server, error);
        return CAUSE_API_ROUTE;
}

static Cause explain_proxy(const KubeMoment *m, const char *error, Text *t) {
        text_add(t, "the proxy in HTTPS_PROXY cannot reach %s: ", m->access->host);
        if (m->reply->proxy_status >= 300)
                text_add(t, "it answers HTTP %ld", m->reply->proxy_status);
        else
                text_add(t, "%s", error);
        text_add(t, "; allow that host there, or add %s to NO_PROXY if this node reaches the endpoint "
                    "directly",
                 m->access->host);
        return CAUSE_API_PROXY;
}

static bool is_about_time(long verify) {
        return verify == X509_V_ERR_CERT_NOT_YET_VALID || verify == X509_V_ERR_CERT_HAS_EXPIRED;
}

static Cause explain_certificate(const KubeMoment *m, const char *error, Text *t) {
        const KubeReply *r = m->reply;
        const KubeAccess *a = m->access;
        const char *fault = r->verify == X509_V_ERR_CERT_HAS_EXPIRED ? "has expired" : "is not valid yet";
        if (is_about_time(r->verify) && (clock_is_wrong(m) || m->server == 0)) {
                text_add(t, "the certificate of %s %s by the clock of this machine: ", a->host, fault);
                add_clocks(t, m);
                return CAUSE_CLOCK;
        }
        _free_ char *why = shown(X509_verify_cert_error_string(r->verify));
        if (is_about_time(r->verify))
                text_add(t,
                         "the certificate of %s %s, and the clocks agree: check the cluster in the EKS "
                         "console, and whether a proxy answers in its place",
                         a->host, fault);
        else if (r->error && strstr(r->error, "subject name"))
                text_add(t,
                         "%s presents a certificate for other names (%s): is spec.cluster.apiServerEndpoint "
                         "spelled as in EKS?",
                         a->host, error);
        else
                text_add(t,
                         "%s presents a certificate that the cluster CA in %s has not signed (%s). "
                         "Either spec.cluster.certificateAuthority or apiServerEndpoint is from another "
                         "cluster, or a TLS proxy answers in its place",
                         a->host, a->ca_path, why);
        return CAUSE_API_CERT;
}

static Cause explain_break(const KubeMoment *m, const char *error, Text *t) {
        text_add(t, "the connection to %s broke (%s): %s", m->access->server, error,
                 m->reply->curl == CURLE_UNSUPPORTED_PROTOCOL || m->reply->curl == CURLE_WEIRD_SERVER_REPLY
                         ? "the server there is not an API server"
                         : "the API server is restarting, or something in between cuts connections");
        return CAUSE_API_ERROR;
}

static Cause explain_handshake(const KubeMoment *m, const char *error, Text *t) {
        static const char *const ends[] = { "reset by peer", "SSL_ERROR_SYSCALL", "unexpected eof" };
        /* Behind a load balancer, a stopped API server closes the connection at once. */
        if (m->reply->error && ANY(end, ends, ARRAY_SIZE(ends), strstr(m->reply->error, *end)))
                return explain_break(m, error, t);
        text_add(t,
                 "no TLS 1.2 or later with %s (%s): the server there is not an API server, or something in "
                 "between breaks TLS",
                 m->access->server, error);
        return CAUSE_API_CERT;
}

static Cause explain_silence(const KubeMoment *m, Text *t) {
        text_add(t,
                 "%s accepts a connection but does not answer within %.1f s: the API server is overloaded, "
                 "or is waiting for etcd or the authenticator. Or the network drops large packets; check the "
                 "cluster health in the EKS console, then the MTU",
                 m->access->server, (double)m->reply->usec / USEC_PER_SEC);
        return CAUSE_API_SILENT;
}

static Cause explain_curl(const KubeMoment *m, Text *t) {
        const KubeReply *r = m->reply;
        _free_ char *error = shown(r->error ?: "");
        if (r->at_proxy)
                return explain_proxy(m, error, t);
        switch (r->curl) {
        case CURLE_COULDNT_RESOLVE_HOST:        return explain_name(m, error, t);
        case CURLE_COULDNT_CONNECT:             return explain_route(m, error, t);
        case CURLE_PEER_FAILED_VERIFICATION:    return explain_certificate(m, error, t);
        case CURLE_SSL_CONNECT_ERROR:           return explain_handshake(m, error, t);
        case CURLE_OPERATION_TIMEDOUT:
                return !r->resolved    ? explain_name(m, error, t)
                       : !r->connected ? explain_route(m, error, t)
                                       : explain_silence(m, t);
        case CURLE_SSL_CACERT_BADFILE:
                text_add(t, "%s has no readable certificate: check spec.cluster.certificateAuthority",
                         m->access->ca_path);
                return CAUSE_API_CERT;
        default:                                return explain_break(m, error, t);
        }
}

static Cause explain_unauthorized(const KubeMoment *m, const KubeIdentity *identity, Text *t) {
        const KubeAccess *a = m->access;
        if (clock_is_wrong(m)) {
                text_add(t, "the API server refuses the token of this node (401): ");
                add_clocks(t, m);
                return CAUSE_CLOCK;
        }
        _free_ char *principal = identity->principal(identity->user);
        text_add(t,
                 "the API server does not know the IAM role of this node (401 Unauthorized). Cluster %s "
                 "probably lacks an access entry or aws-auth line for %s: create one (aws eks "
                 "create-access-entry --cluster-name %s%s%s --type EC2_LINUX --principal-arn %s). If it "
                 "has one, the token may be for another cluster: %s must be the name (spec.cluster.name) "
                 "of the cluster at %s. Or its authenticator cannot reach STS: its log in CloudWatch "
                 "(authenticator) has the reason. An access entry needs the ARN with the path of the role, "
                 "aws-auth the ARN without (aws iam get-role shows it)",
                 a->cluster, principal ?: "that role", a->cluster, a->region ? " --region " : "",
                 a->region ?: "", principal ?: "ARN-OF-THE-ROLE", a->cluster, a->server);
        return CAUSE_NOT_MAPPED;
}

static void add_status_message(Text *t, const Text *body) {
        _free_ char *message = kube_status_message(body), *words = shown(message ?: "");
        if (message)
                text_add(t, " (%s)", words);
}

/* The Node authorizer shows a node only its own Node, and only system:nodes members are nodes (kubernetes:
 * plugin/pkg/auth/authorizer/node, pkg/auth/nodeidentifier). */
static Cause explain_forbidden(const KubeMoment *m, Text *t) {
        static const char prefix[] = "User \"system:node:";     /* … NAME" cannot watch … */
        const char *node = m->access->node;
        _free_ char *message = kube_status_message(&m->reply->body), *other = NULL;
        const char *at = message ? strstr(message, prefix) : NULL;
        _free_ char *asks = at ? xstrndup(at + strlen(prefix), strcspn(at + strlen(prefix), "\"")) : NULL;
        text_add(t, "the API server knows the role of this node, but does not let it see Node %s: 403 "
                    "Forbidden",
                 node);
        add_status_message(t, &m->reply->body);
        if (asks && !streq(asks, node) && startswith(node, "i-")) {
                other = shown(asks);
                text_add(t,
                         "; the cluster knows this node as %s: with InstanceIdNodeName, aws-auth must map "
                         "the role to system:node:{{SessionName}}, not {{EC2PrivateDNSName}}", other);
        } else if (asks && !streq(asks, node)) {
                other = shown(asks);
                text_add(t,
                         "; the cluster knows this node as %s: kubelet must register with that name, the "
                         "private DNS name of this instance in EC2 (--hostname-override, in %s). Or the "
                         "role is mapped to another node instead of {{EC2PrivateDNSName}}",
                         other, KUBELET_ENVIRONMENT);
        } else
                text_add(t,
                         "; the role must be mapped to user system:node:%s%s and group system:nodes, as an "
                         "access entry of type EC2_LINUX does",
                         node, asks ? " (it already is)" : "");
        return CAUSE_FORBIDDEN;
}

static Cause explain_status(const KubeMoment *m, const KubeIdentity *identity, Text *t) {
        if (m->reply->status == 401)
                return explain_unauthorized(m, identity, t);
        if (m->reply->status == 403)
                return explain_forbidden(m, t);
        text_add(t, "%s answers HTTP %ld", m->access->server, m->reply->status);
        add_status_message(t, &m->reply->body);
        text_add(t, m->reply->status >= 500 || m->reply->status == 429
                            ? ": the API server is overloaded or unhealthy; check the cluster health in the "
                              "EKS console"
                            : ", unlike an API server: is spec.cluster.apiServerEndpoint right?");
        return CAUSE_API_ERROR;
}

bool kube_failure_wants_clock(const KubeReply *r) {
        return r->curl == CURLE_PEER_FAILED_VERIFICATION && is_about_time(r->verify);
}

Cause kube_failure(const KubeMoment *m, const KubeIdentity *identity, char **ret_text) {
        Text t = {};
        Cause cause = m->reply->curl != 0        ? explain_curl(m, &t)
                      : m->reply->status != 200 ? explain_status(m, identity, &t)
                                                : CAUSE_NONE;
        *ret_text = text_take(&t);
        return cause;
}

Cause kube_explain(KubeApi *api, const KubeAccess *access, const KubeReply *reply,
                   const KubeIdentity *identity, uint64_t deadline_usec, char **ret_text) {
        KubeMoment moment = {
                .access = access, .reply = reply, .now = (int64_t)time(NULL), .server = reply->date
        };
        if (kube_failure_wants_clock(reply))
                moment.server = kube_api_clock(api, deadline_usec);
        return kube_failure(&moment, identity, ret_text);
}
