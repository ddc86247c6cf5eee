/* SPDX-License-Identifier: Apache-2.0
 * Lines of a watch, each a JSON object (https://kubernetes.io/docs/reference/using-api/api-concepts/) → the
 * state of the Node.
 *
 * A Node outlives its machine: after a reboot it may say Ready for most of a minute, and EC2 reuses
 * private names. Only kubelet of this boot reports the id of this boot. */
#include "kube/internal.h"

#include "base/json.h"

#include <errno.h>
#include <time.h>

void kube_node_done(KubeNode *n) {
        FREE_ALL(n->reason, n->message, n->provider_id);
        json_decref(n->status);
        *n = (KubeNode){};
}

/* "2026-01-02T03:04:05Z" → seconds since 1970; 0: malformed. */
static int64_t parse_time(const char *text) {
        struct tm tm = {};
        const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
        return end && !*end ? (int64_t)timegm(&tm) : 0;
}

static void take_ready(const json_t *conditions, KubeNode *n) {
        const json_t *condition;
        size_t i;
        json_array_foreach(conditions, i, condition) {
                if (!streq(json_get_text(condition, "type"), "Ready"))
                        continue;
                if (streq(json_get_text(condition, "status"), "True")) {
                        n->state = KUBE_NODE_READY;
                        n->ready_since = parse_time(json_get_text(condition, "lastTransitionTime"));
                } else {
                        n->reason = json_copy_text(condition, "reason");
                        n->message = json_copy_text(condition, "message");
                }
                return;
        }
}

static void take_node(const json_t *object, const char *boot_id, KubeNode *n) {
        const json_t *status = json_object_get(object, "status");
        const char *its_boot = json_get_text(json_object_get(status, "nodeInfo"), "bootID");
        n->created = parse_time(json_get_text(json_object_get(object, "metadata"), "creationTimestamp"));
        n->state = KUBE_NODE_REGISTERED;
        if (*its_boot && *boot_id && !streq(its_boot, boot_id)) {
                n->state = KUBE_NODE_STALE;
                n->provider_id = json_copy_text(json_object_get(object, "spec"), "providerID");
        } else {
                take_ready(json_object_get(status, "conditions"), n);
                n->status = json_incref((json_t *)status);
        }
}

int kube_event_load(const char *line, size_t size, json_t **ret, bool *ret_deleted, char **ret_why) {
        _cleanup_(json_decrefp) json_t *event = json_loadb(line, size, 0, NULL);
        const char *type = json_get_text(event, "type");
        json_t *object = json_object_get(event, "object");
        if (streq(type, "ERROR")) {
                *ret_why = json_copy_text(object, "message") ?: xstrdup("an error without a message");
                return -EREMOTEIO;
        }
        if (!json_is_object(object) || !ONE_OF(type, "ADDED", "MODIFIED", "DELETED"))
                return -EBADMSG;
        *ret_deleted = streq(type, "DELETED");
        *ret = json_incref(object);
        return 0;
}

int kube_event_parse(const char *line, size_t size, const char *boot_id, KubeNode *ret, char **ret_why) {
        _cleanup_(json_decrefp) json_t *object = NULL;
        bool deleted = false;
        KubeNode n = {};
        int r = kube_event_load(line, size, &object, &deleted, ret_why);
        if (r < 0)
                return r;
        if (!deleted)
                take_node(object, boot_id, &n);
        *ret = n;
        return 0;
}

char *kube_status_message(const Text *body) {
        _cleanup_(json_decrefp) json_t *status = json_loadb(body->data ?: "", body->size, 0, NULL);
        return json_copy_text(status, "message");
}
