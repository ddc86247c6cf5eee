/* SPDX-License-Identifier: Apache-2.0
 * How a request ended → its cause, and a message with what failed, where, why, and what to do. */
#include "kube/internal.h"

#include "base/paths.h"
#include "base/time.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <time.h>

#define SKEW_SEC 300            /* STS refuses a signature further ahead; an authenticator allows 15
                                 * minutes behind */
#define MESSAGE_MAX 300

/* Foreign text: one line, with a limit. */
static void add_message(Text *t, const char *message) {
        text_add_shown(t, message, strlen(message), MESSAGE_MAX, 0);
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
        return skew(m) >= SKEW_SEC || skew(m) <= -SKEW_SEC;
}

/* "the clock of this machine says …, that of the server …: this one is 2 h behind" */
static void add_clocks(Text *t, const KubeMoment *m) {
        _free_ char *ours = time_text(m->now), *theirs = time_text(m->server),
                    *span = span_text(llabs(skew(m)));
        text_add(t, "this machine's clock says %s", ours);
        if (m->server > 0)
                text_add(t, ", the server's %s: ours is %s %s", theirs, span,
                         skew(m) < 0 ? "behind" : "ahead");
        text_add(t, "; look at chronyc tracking: the time service of EC2 is at 169.254.169.123");
}

/* ---- no answer ---- */

static Cause explain_name(const KubeMoment *m, Text *t) {
        text_add(t, "the name of the API server, %s, does not resolve (", m->access->host);
        add_message(t, m->reply->error);
        text_add(t,
                 "); try resolvectl query %s: the VPC needs enableDnsSupport and enableDnsHostnames, a "
                 "private endpoint is known to the "
                 "VPC's own resolver alone, and spec.cluster.apiServerEndpoint must be the one of %s",
                 m->access->host, m->access->cluster);
        return CAUSE_API_NAME;
}

static Cause explain_route(const KubeMoment *m, Text *t) {
        const KubeReply *r = m->reply;
        const char *server = m->access->server;
        if (r->os_error == ECONNREFUSED)
                text_add(t,
                         "%s refuses the connection, nothing listens there: is "
                         "spec.cluster.apiServerEndpoint the one of %s?",
                         server, m->access->cluster);
        else if (r->os_error == ENETUNREACH || r->os_error == EHOSTUNREACH)
                text_add(t,
                         "there is no route to %s (%s): look at ip route, and at the route table of the "
                         "subnet, which needs a NAT gateway or the private endpoint of the cluster",
                         server, strerror((int)r->os_error));
        else if (r->curl == CURLE_OPERATION_TIMEDOUT)
                text_add(t,
                         "%s does not answer when a connection is opened, for %.1f s: the cluster's security "
                         "group must let this node in on its port, and the subnet needs a route there (a NAT "
                         "gateway, or the private endpoint of the cluster)%s",
                         server, (double)r->usec / USEC_PER_SEC,
                         r->proxy_set ? "; HTTPS_PROXY is set: is that proxy meant for it, or does NO_PROXY "
                                        "lack its name?"
                                      : "");
        else {
                text_add(t, "no connection to %s: ", server);
                add_message(t, r->error);
                text_add(t, "; look at the network of this node and at its security groups");
        }
        return CAUSE_API_ROUTE;
}

static Cause explain_proxy(const KubeMoment *m, Text *t) {
        text_add(t, "the proxy that HTTPS_PROXY names does not lead to %s: ", m->access->host);
        if (m->reply->proxy_status >= 300)
                text_add(t, "it answers HTTP %ld", m->reply->proxy_status);
        else
                add_message(t, m->reply->error);
        text_add(t, "; let it, or put %s into NO_PROXY if the endpoint can be reached without it",
                 m->access->host);
        return CAUSE_API_PROXY;
}

static bool is_about_time(long verify) {
        return verify == X509_V_ERR_CERT_NOT_YET_VALID || verify == X509_V_ERR_CERT_HAS_EXPIRED;
}

static Cause explain_certificate(const KubeMoment *m, Text *t) {
        const KubeReply *r = m->reply;
        const KubeAccess *a = m->access;
        if (is_about_time(r->verify) && (clock_is_wrong(m) || m->server == 0)) {
                text_add(t,
                         "the certificate of %s %s at the time that this machine believes it is: ", a->host,
                         r->verify == X509_V_ERR_CERT_HAS_EXPIRED ? "has expired" : "is not valid yet");
                add_clocks(t, m);
                return CAUSE_CLOCK;
        }
        if (is_about_time(r->verify))
                text_add(t,
                         "the certificate of %s %s, and the clocks agree about the time: look at the cluster "
                         "in EKS's console, and at what else may answer in its place",
                         a->host,
                         r->verify == X509_V_ERR_CERT_HAS_EXPIRED ? "has expired" : "is not valid yet");
        else if (strstr(r->error, "subject name")) {
                text_add(t, "%s shows a certificate for other names than its own (", a->host);
                add_message(t, r->error);
                text_add(t, "): is spec.cluster.apiServerEndpoint spelled as EKS gives it?");
        } else {
                text_add(t, "%s shows a certificate that the cluster's CA in %s has not signed (", a->host,
                         a->ca_path);
                add_message(t, X509_verify_cert_error_string(r->verify));
                text_add(t, "): spec.cluster.certificateAuthority or apiServerEndpoint is another cluster's, "
                            "or a proxy that opens TLS answers in its place");
        }
        return CAUSE_API_CERT;
}

static Cause explain_break(const KubeMoment *m, Text *t) {
        text_add(t, "the connection to %s broke (", m->access->server);
        add_message(t, m->reply->error);
        text_add(t, "): %s",
                 m->reply->curl == CURLE_UNSUPPORTED_PROTOCOL || m->reply->curl == CURLE_WEIRD_SERVER_REPLY
                         ? "what answers there is no API server"
                         : "the API server restarts, or something on the way cuts connections off");
        return CAUSE_API_ERROR;
}

/* Behind a load balancer, a stopped API server closes the connection at once. */
static Cause explain_handshake(const KubeMoment *m, Text *t) {
        static const char *const ends[] = { "reset by peer", "SSL_ERROR_SYSCALL", "unexpected eof" };
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                if (strstr(m->reply->error, ends[i]))
                        return explain_break(m, t);
        text_add(t, "no TLS 1.2 or later with %s (", m->access->server);
        add_message(t, m->reply->error);
        text_add(t, "): what answers there is no API server, or something on the way breaks TLS");
        return CAUSE_API_CERT;
}

static Cause explain_silence(const KubeMoment *m, Text *t) {
        text_add(t,
                 "%s is reached and does not answer, for %.1f s: the API server is overloaded or itself "
                 "waits, for etcd or for who tells it whose token this is (look at the cluster's health in "
                 "EKS's console), or something on the way swallows what is sent (an MTU that is too large "
                 "does that)",
                 m->access->server, (double)m->reply->usec / USEC_PER_SEC);
        return CAUSE_API_SILENT;
}

static Cause explain_timeout(const KubeMoment *m, Text *t) {
        const KubeReply *r = m->reply;
        return !r->resolved    ? explain_name(m, t)
               : !r->connected ? explain_route(m, t)
                               : explain_silence(m, t);
}

static Cause explain_curl(const KubeMoment *m, Text *t) {
        if (m->reply->at_proxy)
                return explain_proxy(m, t);
        switch (m->reply->curl) {
        case CURLE_COULDNT_RESOLVE_HOST:        return explain_name(m, t);
        case CURLE_COULDNT_CONNECT:             return explain_route(m, t);
        case CURLE_PEER_FAILED_VERIFICATION:    return explain_certificate(m, t);
        case CURLE_SSL_CONNECT_ERROR:           return explain_handshake(m, t);
        case CURLE_OPERATION_TIMEDOUT:          return explain_timeout(m, t);
        case CURLE_SSL_CACERT_BADFILE:
                text_add(
                        t,
                        "%s holds no certificate that can be read: look at spec.cluster.certificateAuthority",
                        m->access->ca_path);
                return CAUSE_API_CERT;
        default:                                return explain_break(m, t);
        }
}

/* ---- an answer ---- */

static Cause explain_unauthorized(const KubeMoment *m, const KubeIdentity *identity, Text *t) {
        const KubeAccess *a = m->access;
        if (clock_is_wrong(m)) {
                text_add(t, "the API server does not take this node's token (401): ");
                add_clocks(t, m);
                return CAUSE_CLOCK;
        }
        _free_ char *principal = identity->principal(identity->user);
        text_add(t,
                 "the API server does not know the IAM role of this node (401 Unauthorized; it never says "
                 "why): %s has no access entry and no line in aws-auth for %s; "
                 "create one: aws eks create-access-entry --cluster-name %s%s%s --type EC2_LINUX "
                 "--principal-arn %s; if it has one, %s is not the cluster's name, which the token is made "
                 "for (spec.cluster.name), or not that of the cluster at %s; or its authenticator does not "
                 "reach STS: its log in CloudWatch (authenticator) names the reason. The path of a role "
                 "belongs in the ARN of its entry, and not in aws-auth (aws iam get-role tells it)",
                 a->cluster, principal ?: "that role", a->cluster, a->region ? " --region " : "",
                 a->region ?: "", principal ?: "ARN-OF-THE-ROLE", a->cluster, a->server);
        return CAUSE_NOT_MAPPED;
}

static void add_status_message(Text *t, const Text *body) {
        _free_ char *message = kube_status_message(body);
        text_add(t, message ? " (" : "");
        add_message(t, message ?: "");
        text_add(t, message ? ")" : "");
}

/* 'User "system:node:NAME" cannot watch …' → NAME; NULL: another kind of user. */
static char *node_that_asks(const Text *body) {
        static const char prefix[] = "User \"system:node:";
        _free_ char *message = kube_status_message(body);
        const char *at = message ? strstr(message, prefix) : NULL;
        return at ? xstrndup(at + strlen(prefix), strcspn(at + strlen(prefix), "\"")) : NULL;
}

/* The Node authorizer shows a node only its own Node, and only members of the group are nodes (kubernetes:
 * plugin/pkg/auth/authorizer/node, pkg/auth/nodeidentifier). */
static Cause explain_forbidden(const KubeMoment *m, Text *t) {
        const char *node = m->access->node;
        _free_ char *asks = node_that_asks(&m->reply->body);
        text_add(t, "the API server knows this node's role and does not let it see Node %s: 403 Forbidden",
                 node);
        add_status_message(t, &m->reply->body);
        if (asks && !streq(asks, node)) {
                text_add(t, "; the cluster takes this node for ");
                add_message(t, asks);
                text_add(t,
                         ": the name that kubelet registers with (--hostname-override, in %s) must be that "
                         "one, the private DNS name that EC2 has of this instance; or the role is mapped to "
                         "the name of another node instead of {{EC2PrivateDNSName}}",
                         KUBELET_ENVIRONMENT);
        } else
                text_add(t,
                         "; the role must be mapped to user system:node:%s%s and group system:nodes, as an "
                         "access entry of type EC2_LINUX does",
                         node, asks ? ", which it is," : "");
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
                            ? ": the API server is overloaded or not whole; look at the cluster's health in "
                              "EKS's console"
                            : ", as no API server does: is spec.cluster.apiServerEndpoint right?");
        return CAUSE_API_ERROR;
}

bool kube_failure_wants_clock(const KubeReply *r) {
        return r->curl == CURLE_PEER_FAILED_VERIFICATION && is_about_time(r->verify);
}

Cause kube_failure(const KubeMoment *m, const KubeIdentity *identity, char **ret_text) {
        Text t = {};
        Cause cause = CAUSE_NONE;
        if (m->reply->curl != 0)
                cause = explain_curl(m, &t);
        else if (m->reply->status != 200)
                cause = explain_status(m, identity, &t);
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
