/* SPDX-License-Identifier: Apache-2.0
 * One look at the Node of this machine: does it exist, who made it, and does a taint keep pods away? A
 * node may get its own Node by name, even before it exists (kubernetes: plugin/pkg/auth/authorizer/node,
 * authorizeNode()). */
#include "kube/internal.h"

#include "base/json.h"

#include <errno.h>

void node_look_done(NodeLook *l) {
        FREE_ALL(l->provider_id, l->taint, l->text);
        *l = (NodeLook){};
}

/* PreferNoSchedule does not keep pods away. */
static char *find_taint(const json_t *taints, const char *key) {
        const json_t *taint;
        size_t i;
        json_array_foreach(taints, i, taint) {
                const char *effect = json_get_text(taint, "effect");
                if (streq(json_get_text(taint, "key"), key) &&
                    (streq(effect, "NoSchedule") || streq(effect, "NoExecute")))
                        return xstrdup(json_get_text(taint, "value"));
        }
        return NULL;
}

int node_look_parse(const Text *body, bool found, const char *name, const char *key, NodeLook *ret) {
        _cleanup_(json_decrefp) json_t *object = json_loadb(body->data ?: "", body->size, 0, NULL);
        const char *kind = json_get_text(object, "kind");
        const json_t *spec = json_object_get(object, "spec");
        NodeLook l = { .there = found };
        if (!found && streq(kind, "Status") && streq(json_get_text(object, "reason"), "NotFound")) {
                *ret = l;
                return 0;
        }
        if (!found || !streq(kind, "Node") ||
            !streq(json_get_text(json_object_get(object, "metadata"), "name"), name))
                return -EBADMSG;
        l.provider_id = json_copy_text(spec, "providerID");
        l.taint = find_taint(json_object_get(spec, "taints"), key);
        *ret = l;
        return 0;
}

static void take_reply(KubeApi *api, const KubeAccess *access, const KubeIdentity *identity,
                       const KubeReply *reply, const char *key, uint64_t deadline_usec, NodeLook *ret) {
        bool answered = reply->curl == 0 && (reply->status == 200 || reply->status == 404);
        ret->retry_after = reply->retry_after;
        if (answered && node_look_parse(&reply->body, reply->status == 200, access->node, key, ret) >= 0)
                return;
        ret->cause = kube_explain(api, access, reply, identity, deadline_usec, &ret->text);
        if (ret->cause != CAUSE_NONE)
                return;
        free(ret->text);
        ret->cause = CAUSE_API_ERROR;
        ret->text = xasprintf("the answer from %s is not Node %s", access->server, access->node);
}

Cause kube_refusal(const Diag *diag, int r, char **ret_text) {
        const Diagnostic *error = diag_first_error(diag);
        *ret_text = error ? diagnostic_format(error) : xstrdup(strerror(-r));
        return error ? error->cause : CAUSE_INTERNAL;
}

void kube_node_look(const KubeAccess *access, const KubeIdentity *identity, const char *taint_key,
                    uint64_t deadline_usec, NodeLook *ret) {
        _cleanup_(kube_api_freep) KubeApi *api = NULL;
        _cleanup_(forget_secretp) char *token = NULL;
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *path = xasprintf("/api/v1/nodes/%s", access->node);
        KubeRequest request = { .method = "GET", .path = path };
        KubeReply reply = {};
        *ret = (NodeLook){};
        int r = kube_api_new(access, &api, &diag);
        THEN(r, identity->token(identity->user, &token, &diag));
        if (r >= 0) {
                kube_api_request(api, &request, token, deadline_usec, &reply);
                take_reply(api, access, identity, &reply, taint_key, deadline_usec, ret);
        } else
                ret->cause = kube_refusal(&diag, r, &ret->text);
        kube_reply_done(&reply);
}
