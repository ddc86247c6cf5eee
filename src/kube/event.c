/* SPDX-License-Identifier: Apache-2.0
 * Creates one Event, or increases its count, and sets a condition of the Node. As with Events of kubelet, the
 * uid of its Node is the name (kubernetes: pkg/kubelet/kubelet.go, nodeRef): kubectl describe node shows it,
 * even without a Node. A node may create and patch Events but not read them, get its Node, and patch the
 * status of it (kubernetes: plugin/pkg/auth/authorizer/rbac/bootstrappolicy, NodeRules()). So this creates an
 * Event first and patches what exists. The API server forgets them after an hour (--event-ttl). */
#include "kube/internal.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/time.h"

#include <time.h>

#define EVENTS      "/api/v1/namespaces/default/events"
/* A webhook may take 30 s; a shorter wait would lose its work. */
#define ANSWER_USEC (35 * USEC_PER_SEC)

void kube_event_name(const KubeAccess *access, const char *reason, const char *key, char ret[static 65]) {
        _free_ char *all = xasprintf("%s\n%s\n%s", access->node, reason, key);
        char hash[65];
        sha256_hex(all, strlen(all), hash);
        (void)snprintf(ret, 65, "nodestrap-%.24s", hash);
}

/* The parts that change with each repeat. */
static json_t *make_patch(const KubeEvent *e) {
        return json_pack("{sI ss ss ss}", "count", (json_int_t)e->count, "firstTimestamp", e->first,
                         "lastTimestamp", e->last, "message", e->message);
}

static json_t *make_event(const KubeAccess *a, const KubeEvent *e) {
        json_t *event = json_pack("{ss ss s{ss ss} s{ss ss ss ss} ss s{ss ss} ss ss ss}",
                                  "apiVersion", "v1", "kind", "Event",
                                  "metadata", "name", e->name, "namespace", "default",
                                  "involvedObject", "apiVersion", "v1", "kind", "Node", "name", a->node,
                                  "uid", a->node,
                                  "reason", e->reason,
                                  "source", "component", "nodestrap", "host", a->node,
                                  "reportingComponent", "nodestrap", "reportingInstance", a->node,
                                  "type", e->warning ? "Warning" : "Normal");
        _cleanup_(json_decrefp) json_t *rest = make_patch(e);
        json_object_update(event, rest);
        return event;
}

typedef struct Sender {
        KubeApi *api;
        const KubeAccess *access;
        const KubeIdentity *identity;
        const char *token;
        uint64_t deadline_usec;         /* of all requests */
        const char *work;               /* "create Events", for the message of a 403 */
        KubeSent *sent;
} Sender;

static Cause explain(const Sender *s, const KubeReply *reply, char **ret) {
        if (reply->curl == 0 && reply->status == 403) {
                _free_ char *message = kube_status_message(&reply->body);
                Text t = {};
                text_add(&t,
                         "the API server knows the role of this node, but does not let it %s: "
                         "403 Forbidden; ", s->work);
                text_add_shown(&t, message ?: "", strlen(message ?: ""), 300, 0);
                *ret = text_take(&t);
                return CAUSE_FORBIDDEN;
        }
        return kube_explain(s->api, s->access, reply, s->identity, s->deadline_usec, ret);
}

static void judge(const Sender *s, const KubeReply *reply) {
        KubeSent *sent = s->sent;
        bool answered = reply->curl == 0;
        sent->away = !answered || reply->status == 429 || reply->status >= 500;
        if (stop_signal())
                sent->cause = CAUSE_INTERRUPTED;
        else if (!answered || reply->status < 200 || reply->status >= 300)
                sent->cause = explain(s, reply, &sent->text);
        /* a retry sends the same and fails again */
        sent->refused = answered && (reply->status == 400 || reply->status == 413 || reply->status == 422);
        sent->retry_after = reply->retry_after;
}

/* Returns the status, 0 without an answer. expected: a status other than success that is not a failure. */
static long ask(const Sender *s, const char *method, const char *path, const char *type, const json_t *json,
                long expected) {
        _free_ char *body = json_dumps(json, JSON_COMPACT);
        KubeRequest request = {
                .method = method, .path = path, .body = body, .type = type, .answer_usec = ANSWER_USEC
        };
        KubeReply reply = {};
        kube_api_request(s->api, &request, s->token, s->deadline_usec, &reply);
        long status = reply.curl == 0 ? reply.status : 0;
        if (status != expected)
                judge(s, &reply);
        kube_reply_done(&reply);
        return status;
}

/* The Event may appear and expire in between. */
static void make_or_count(const Sender *s, const KubeEvent *e) {
        _cleanup_(json_decrefp) json_t *event = make_event(s->access, e), *patch = make_patch(e);
        _free_ char *path = xasprintf(EVENTS "/%s", e->name);
        for (int i = 0; i < 2; i++)
                if (ask(s, "POST", EVENTS, "application/json", event, 409) != 409 ||
                    ask(s, "PATCH", path, "application/merge-patch+json", patch, 404) != 404)
                        return;
        s->sent->cause = CAUSE_API_ERROR;
        s->sent->text = xasprintf("%s says that Event %s exists, and then that it does not",
                                  s->access->server, e->name);
}

/* ---- the condition ---- */

static const json_t *find_condition(const json_t *node, const char *type) {
        const json_t *condition;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(node, "status"), "conditions"), i, condition)
                if (streq(json_get_text(condition, "type"), type))
                        return condition;
        return NULL;
}

/* "aws:///us-west-2a/i-…": EC2 reuses private names, so a Node of this name may be of another instance. */
static bool is_of(const json_t *node, const char *instance) {
        const char *id = json_get_text(json_object_get(node, "spec"), "providerID");
        const char *last = strrchr(id, '/');
        return !*id || !*instance || streq(last ? last + 1 : id, instance);
}

static json_t *make_condition(const KubeCondition *c, const json_t *before) {
        _free_ char *now = time_text(time(NULL));
        const char *since = json_get_text(before, "lastTransitionTime");
        bool same = streq(json_get_text(before, "status"), c->status);
        if (same && streq(json_get_text(before, "reason"), c->reason) &&
            streq(json_get_text(before, "message"), c->message))
                return NULL;
        return json_pack("{s{s[{ss ss ss ss ss ss}]}}", "status", "conditions", "type", c->type, "status",
                         c->status, "reason", c->reason, "message", c->message, "lastHeartbeatTime", now,
                         "lastTransitionTime", same && *since ? since : now);
}

/* Returns whether the Node is gone. */
static bool write_condition(const Sender *s, const json_t *node, const KubeCondition *c) {
        _free_ char *path = xasprintf("/api/v1/nodes/%s/status", s->access->node);
        _cleanup_(json_decrefp) json_t *patch = make_condition(c, find_condition(node, c->type));
        return patch && ask(s, "PATCH", path, "application/strategic-merge-patch+json", patch, 404) == 404;
}

/* A manager of it other than this program, "" without any; NULL: it is ours alone. The API server takes the
 * name from the User-Agent (kubernetes.io/docs/reference/using-api/server-side-apply/, Field management). */
static const char *find_owner(const json_t *node, const char *type) {
        _free_ char *key = xasprintf("k:{\"type\":\"%s\"}", type);
        const char *owner = "";
        const json_t *entry;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(node, "metadata"), "managedFields"), i, entry) {
                const json_t *status = json_object_get(json_object_get(entry, "fieldsV1"), "f:status");
                if (!json_object_get(json_object_get(status, "f:conditions"), key))
                        continue;
                owner = json_get_text(entry, "manager");
                if (!streq(owner, "nodestrap"))
                        return owner;
        }
        return *owner ? NULL : owner;
}

static bool set_repair(const Sender *s, const json_t *node, const KubeCondition *c) {
        const json_t *before = find_condition(node, KUBE_REPAIR);
        KubeCondition repair = { .type = KUBE_REPAIR, .status = c->status, .reason = c->reason,
                                 .message = c->message };
        if (*c->repair_reason) {
                repair.status = "False";
                repair.reason = c->repair_reason;
                repair.message = c->repair_message;
        } else if (!before || !streq(c->status, "True") || streq(json_get_text(before, "status"), "True"))
                return false;
        const char *owner = before ? find_owner(node, KUBE_REPAIR) : NULL;
        if (owner) {
                s->sent->owner = *c->repair_reason ? xstrdup(owner) : NULL;
                return false;
        }
        s->sent->repair = repair.status;
        return write_condition(s, node, &repair);
}

static void set_condition(const Sender *s, const KubeCondition *c) {
        _free_ char *path = xasprintf("/api/v1/nodes/%s", s->access->node);
        KubeRequest request = { .method = "GET", .path = path, .answer_usec = ANSWER_USEC };
        KubeReply reply = {};
        kube_api_request(s->api, &request, s->token, s->deadline_usec, &reply);
        _cleanup_(json_decrefp) json_t *node =
                json_loadb(reply.body.data ?: "", reply.body.size, 0, NULL);
        bool theirs = reply.status == 200 && !is_of(node, c->instance);
        bool absent = reply.curl == 0 && (reply.status == 404 || theirs);
        if (!absent)
                judge(s, &reply);
        kube_reply_done(&reply);
        if (!absent && s->sent->cause == CAUSE_NONE)
                absent = write_condition(s, node, c);
        /* separate, so that a refusal of one does not cost the other */
        if (!absent && s->sent->cause == CAUSE_NONE)
                absent = set_repair(s, node, c);
        s->sent->refused |= s->sent->cause == CAUSE_FORBIDDEN;  /* also of an admission webhook */
        if (absent) {
                s->sent->cause = CAUSE_NOT_REGISTERED;
                s->sent->text = xasprintf("cluster %s has no Node %s for this instance yet",
                                          s->access->cluster, s->access->node);
        }
}

/* ---- both ---- */

static int sender_open(Sender *s, KubeApi **api, char **token) {
        _cleanup_(diag_done) Diag diag = {};
        int r = s->identity->token(s->identity->user, token, &diag);
        s->sent->away = r < 0;
        THEN(r, kube_api_new(s->access, api, &diag));
        s->api = *api;
        s->token = *token;
        s->deadline_usec = now_usec() + ANSWER_USEC;
        if (r < 0)
                s->sent->cause = kube_refusal(&diag, r, &s->sent->text);
        return r;
}

/* One of both. */
static void send(const KubeAccess *access, const KubeIdentity *identity, const KubeEvent *event,
                 const KubeCondition *condition, KubeSent *ret) {
        _cleanup_(kube_api_freep) KubeApi *api = NULL;
        _cleanup_(forget_secretp) char *token = NULL;
        Sender s = { .access = access, .identity = identity, .sent = ret,
                     .work = event ? "create Events" : "set a condition on its Node" };
        *ret = (KubeSent){};
        if (sender_open(&s, &api, &token) < 0)
                return;
        if (event)
                make_or_count(&s, event);
        else
                set_condition(&s, condition);
}

void kube_event_send(const KubeAccess *access, const KubeIdentity *identity, const KubeEvent *event,
                     KubeSent *ret) {
        send(access, identity, event, NULL, ret);
}

void kube_condition_send(const KubeAccess *access, const KubeIdentity *identity,
                         const KubeCondition *condition, KubeSent *ret) {
        send(access, identity, NULL, condition, ret);
}
