/* SPDX-License-Identifier: Apache-2.0
 * Watches the Node until it is registered, or Ready, or has all devices. The outcome has the last obstacle.
 * Each new obstacle goes to the log at once, since the deadline may be minutes away. */
#include "kube/internal.h"

#include "base/json.h"
#include "base/log.h"
#include "base/time.h"

#include <errno.h>
#include <strings.h>
#include <time.h>

#define BACKOFF_USEC   (1 * USEC_PER_SEC)
#define BACKOFF_CAP    (5 * USEC_PER_SEC)
#define RETRY_CAP      (30 * USEC_PER_SEC)      /* limit of Retry-After */
#define TOKEN_USEC     (300 * USEC_PER_SEC)     /* a token is valid for 14 minutes */
#define CONDITION_MAX  400                      /* characters of a condition */
#define SHORT_USEC     (2 * USEC_PER_SEC)       /* a shorter watch counts as a failure */
#define LOOK_USEC      (5 * USEC_PER_SEC)       /* systemd restarts kubelet this often on EKS */

/* Since Kubernetes 1.34, and since 1.32; "": the cluster has no DRA, or it does not count. */
static const char dra_versions[][8] = { "v1", "v1beta1", "" };

DEFINE_STRING_TABLE(join_goal, JoinGoal, "registered", "ready", "devices")

const char *join_goal_text(JoinGoal goal) {
        return goal == JOIN_DEVICES ? "ready with all devices" : join_goal_to_string(goal);
}

typedef struct Watch {
        const JoinTask *task;
        const KubeAccess *access;
        JoinOutcome *outcome;
        bool lost;                      /* outcome has the reason */
        uint64_t look_usec;             /* of the next look at kubelet */
        KubeApi *api;
        char *token;
        uint64_t token_usec;
        KubeNode node;
        bool seen;                      /* this watch has had an event */
        bool all;                       /* all devices are in the cluster */
        unsigned version;               /* in dra_versions */
        json_t *slices;                 /* {name: spec} */
        bool slices_listed;
        const KubeReply *reply;         /* of the current watch */
        char *event_error;              /* of an ERROR event, or of a malformed one */
} Watch;

void join_outcome_done(JoinOutcome *o) {
        free(o->text);
        json_decref(o->expected);
        json_decref(o->seen);
        *o = (JoinOutcome){};
}

static void watch_done(Watch *w) {
        forget_secret(w->token);
        kube_node_done(&w->node);
        kube_api_free(w->api);
        free(w->event_error);
        json_decref(w->slices);
}

/* ---- obstacles ---- */

/* Takes text. */
static void obstacle(Watch *w, Cause cause, char *text) {
        JoinOutcome *o = w->outcome;
        bool tell = !o->text || o->cause != cause || (cause == CAUSE_DEVICES && !streq(o->text, text));
        o->cause = cause;
        RENEW(o->text, text);
        if (tell)
                log_info("Not yet (%s): %s", cause_word(cause), text);
}

/* NULL adds nothing. */
static void add_words(Text *t, const char *words, const char *before, const char *behind) {
        if (!words)
                return;
        text_add(t, "%s", before);
        text_add_shown(t, words, strlen(words) - endswith(words, "."), CONDITION_MAX, 0);
        text_add(t, "%s", behind);
}

/* kubelet registers only when it starts (kubernetes: pkg/kubelet/kubelet_node_status.go,
 * registerWithAPIServer()). */
static void obstacle_node(Watch *w) {
        const KubeNode *n = &w->node;
        const char *node = w->access->node, *cluster = w->access->cluster;
        Text t = {};
        if (n->state == KUBE_NODE_ABSENT && w->outcome->registered_usec > 0)
                text_add(&t,
                         "Node %s of cluster %s was registered and then deleted: kubelet registers a Node "
                         "only at startup; run systemctl restart kubelet",
                         node, cluster);
        else if (n->state == KUBE_NODE_ABSENT)
                text_add(&t, "cluster %s has no Node %s: kubelet has not registered it", cluster, node);
        else if (n->state == KUBE_NODE_STALE) {
                text_add(&t,
                         "Node %s of cluster %s is from an earlier boot, or from another instance with "
                         "this name",
                         node, cluster);
                add_words(&t, n->provider_id, " (", ")");
                text_add(&t, ": kubelet has not reported since this machine started");
        } else {
                text_add(&t, "Node %s is registered with cluster %s, but not Ready", node, cluster);
                add_words(&t, n->reason, ": ", "");
                add_words(&t, n->message, ": ", "");
        }
        obstacle(w, n->state == KUBE_NODE_REGISTERED ? CAUSE_NOT_READY : CAUSE_NOT_REGISTERED, text_take(&t));
}

/* ---- events ---- */

static bool is_reached(const Watch *w) {
        KubeNodeState goal = w->task->goal == JOIN_REGISTERED ? KUBE_NODE_REGISTERED : KUBE_NODE_READY;
        return w->seen && w->node.state >= goal && (w->task->goal != JOIN_DEVICES || w->all);
}

/* The beginning of a state that the first event shows, by its age on the clock that wrote it. A time before
 * the boot means nothing, so now counts. */
static uint64_t since_usec(int64_t then, int64_t clock) {
        uint64_t now = now_usec();
        if (then <= 0 || clock < then)
                return now;
        uint64_t age = (uint64_t)(clock - then) * USEC_PER_SEC;
        return age < now ? now - age : now;
}

static void note_times(Watch *w, bool first) {
        JoinOutcome *o = w->outcome;
        const KubeNode *n = &w->node;
        if (n->state >= KUBE_NODE_REGISTERED && o->registered_usec == 0) {
                if (w->task->registered)
                        w->task->registered(w->task->root);
                o->registered_usec = first ? since_usec(n->created, w->reply->date) : now_usec();
                log_info("Node %s is registered, %.1f s after the kernel started.", w->access->node,
                         (double)o->registered_usec / USEC_PER_SEC);
        }
        if (n->state == KUBE_NODE_READY && o->ready_usec == 0) {
                o->ready_usec = MAX(first ? since_usec(n->ready_since, (int64_t)time(NULL)) : now_usec(),
                                    o->registered_usec);
                log_info("Node %s is Ready, %.1f s after the kernel started.", w->access->node,
                         (double)o->ready_usec / USEC_PER_SEC);
        }
}

/* Until all slices are known, neither is a second publisher of the same devices. */
static void look_at_devices(Watch *w) {
        JoinOutcome *o = w->outcome;
        if (w->task->goal != JOIN_DEVICES || !w->seen || w->node.state < KUBE_NODE_READY ||
            !(w->slices_listed || !*dra_versions[w->version]))
                return;
        o->expected = o->expected ?: w->task->expected(w->task->root);
        json_decref(o->seen);
        o->seen = json_object();
        _free_ char *text = devices_judge(o->expected, w->node.status, w->slices, o->seen);
        w->all = o->expected && !text;
        if (!w->all)
                obstacle(w, CAUSE_DEVICES,
                         xasprintf("Node %s of cluster %s is Ready, but %s", w->access->node,
                                   w->access->cluster,
                                   text ?: "init left no readable report of how many devices the node has; "
                                           "run wait with sudo, or nodestrap init"));
}

/* A watch begins with an event for an existing Node: no event means no Node. */
static void no_node(Watch *w) {
        kube_node_done(&w->node);
        obstacle_node(w);
}

static bool kubelet_is_lost(Watch *w) {
        _cleanup_(kubelet_done) Kubelet k = {};
        uint64_t now = now_usec();
        if (now < w->look_usec)
                return false;
        w->look_usec = now + LOOK_USEC;
        kubelet_look(w->task->root, &k);
        if (k.lost) {
                w->outcome->cause = CAUSE_KUBELET;
                RENEW(w->outcome->text, xasprintf("%s; see journalctl -u kubelet", k.state));
        }
        return k.lost;
}

/* kubelet has not reported, and nothing starts it or it keeps exiting. */
static bool is_lost(Watch *w) {
        bool reports = w->seen && w->node.state >= KUBE_NODE_REGISTERED;
        w->lost = !reports && (w->task->is_lost(w->task->root, w->outcome) || kubelet_is_lost(w));
        return w->lost;
}

static bool on_line(void *user, const char *line, size_t size) {
        Watch *w = user;
        KubeNode node = {};
        char *why = NULL;
        if (size == 0) {
                if (!w->seen)
                        no_node(w);
                if (!w->outcome->expected)      /* init may end now */
                        look_at_devices(w);
                return !is_reached(w) && !is_lost(w);
        }
        int r = kube_event_parse(line, size, w->access->boot_id, &node, &why);
        if (r < 0) {
                RENEW(w->event_error, why ?: xstrdup("it sent a line that is not an event"));
                return false;
        }
        bool first = !w->seen;
        kube_node_done(&w->node);
        w->node = node;
        w->seen = true;
        note_times(w, first);
        look_at_devices(w);
        if (is_reached(w))
                return false;
        if (w->task->goal != JOIN_DEVICES || w->node.state < KUBE_NODE_READY)
                obstacle_node(w);
        return true;
}

/* A watch begins with all slices: after a second without one, they are there. */
static bool on_slice(void *user, const char *line, size_t size) {
        Watch *w = user;
        char *why = NULL;
        bool listed = w->slices_listed;
        _cleanup_(json_decrefp) json_t *slice = NULL;
        bool deleted = false;
        if (size > 0 && kube_event_load(line, size, &slice, &deleted, &why) < 0) {
                RENEW(w->event_error, why ?: xstrdup("it sent a line that is not an event"));
                return false;
        }
        const char *name = json_get_text(json_object_get(slice, "metadata"), "name");
        if (deleted)
                json_object_del(w->slices, name);
        else
                json_object_set(w->slices, name, json_object_get(slice, "spec"));
        w->slices_listed = listed || size == 0;
        if (size > 0 || !listed)
                look_at_devices(w);
        return !is_reached(w);
}

/* ---- attempts ---- */

static int make_token(Watch *w) {
        _cleanup_(diag_done) Diag diag = {};
        if (w->token && now_usec() < w->token_usec + TOKEN_USEC)
                return 0;
        forget_secret(TAKE_PTR(w->token));
        int r = w->task->identity->token(w->task->identity->user, &w->token, &diag);
        w->token_usec = now_usec();
        if (r < 0) {
                char *why;
                Cause cause = kube_refusal(&diag, r, &why);
                obstacle(w, cause, why);
        }
        return r;
}

static void judge(Watch *w, const KubeReply *reply) {
        if (stop_signal())
                return;
        char *text = NULL;
        Cause cause = kube_explain(w->api, w->access, reply, w->task->identity, w->task->deadline_usec,
                                   &text);
        /* The deadline cut this request off, so the older reason stays. */
        if (cause == CAUSE_NONE || (reply->cut_by_deadline && w->outcome->text))
                free(text);
        else
                obstacle(w, cause, text);
        if (reply->status == 401)
                forget_secret(TAKE_PTR(w->token));      /* its keys may have expired */
}

/* true: a failure that may pass. Without DRA, or the right to see its slices, the Node alone counts. */
static bool judge_slices(Watch *w, const KubeReply *reply) {
        w->version += reply->status == 404;
        if (reply->status == 403) {
                w->version = ARRAY_SIZE(dra_versions) - 1;
                log_warning("The API server does not let this node see its ResourceSlices (403 Forbidden), "
                            "so devices of a DRA driver do not count.");
        }
        return reply->curl != 0 || (reply->status == 200 && reply->usec < SHORT_USEC) || reply->status > 404;
}

/* 0: retry at once, 1: after a pause. */
static int watch_once(Watch *w, unsigned *ret_retry_after) {
        KubeReply reply = {}, slices = {};
        if (make_token(w) < 0)
                return 1;
        const char *version = dra_versions[w->version];
        _free_ char *path = xasprintf("/api/v1/nodes" KUBE_WATCH "metadata.name%%3D%s", w->access->node),
                    *more = xasprintf("/apis/resource.k8s.io/%s/resourceslices" KUBE_WATCH
                                      "spec.nodeName%%3D%s",
                                      version, w->access->node);
        const KubeWatch watches[] = { { path, on_line, w, &reply }, { more, on_slice, w, &slices } };
        w->seen = w->slices_listed = false;
        json_decref(w->slices);
        w->slices = json_object();
        free(TAKE_PTR(w->event_error));
        w->reply = &reply;
        w->outcome->requests += 1 + !!*version;
        kube_api_watch(w->api, watches, 1 + !!*version, w->token, w->task->deadline_usec);
        w->reply = NULL;
        bool slices_failed = *version && judge_slices(w, &slices);
        kube_reply_done(&slices);
        if (!w->lost && !reply.cut)
                judge(w, &reply);
        if (w->event_error)
                obstacle(w, CAUSE_API_ERROR,
                         xasprintf("%s broke the watch of Node %s: %s", w->access->server, w->access->node,
                                   w->event_error));
        else if (reply.curl == 0 && reply.status == 200 && !reply.cut && !w->seen && !w->lost &&
                 (!reply.cut_by_deadline || !w->outcome->text))
                no_node(w);
        *ret_retry_after = reply.retry_after;
        int r = w->event_error || (reply.cut ? slices_failed
                                             : reply.curl != 0 || reply.status != 200 ||
                                                       reply.usec < SHORT_USEC);
        kube_reply_done(&reply);
        return r;
}

static void try_until(Watch *w) {
        for (unsigned failures = 0; !is_lost(w);) {
                unsigned retry_after = 0;
                int again = watch_once(w, &retry_after);
                if (is_reached(w) || w->lost || stop_signal() || now_usec() >= w->task->deadline_usec)
                        return;
                if (again == 0)
                        failures = 0;
                else {
                        uint64_t pause = backoff_usec(failures++, BACKOFF_USEC, BACKOFF_CAP),
                                 left = usec_left(w->task->deadline_usec);
                        pause = MAX(pause, MIN(retry_after * USEC_PER_SEC, RETRY_CAP));
                        sleep_usec(MIN(pause, left));
                }
                if (stop_signal() || now_usec() >= w->task->deadline_usec)
                        return;
        }
}

static void add_kubelet(Watch *w, Text *t) {
        _cleanup_(kubelet_done) Kubelet k = {};
        kubelet_look(w->task->root, &k);
        if (k.state)
                text_add(t, "; %s", k.state);
        if (k.said)
                w->outcome->cause = CAUSE_KUBELET;
        text_add(t, "; see journalctl -u kubelet%s",
                 k.state && !k.runs ? " and systemctl status kubelet" : "");
}

static void add_advice(Watch *w, Text *t) {
        const KubeNode *n = &w->node;
        bool network =
                n->message && (strcasestr(n->message, "cni") || strcasestr(n->message, "network plugin") ||
                               strcasestr(n->message, "NetworkReady=false"));
        if (w->outcome->cause == CAUSE_NOT_READY && network)
                text_add(t,
                         "; the network plugin, which the pod aws-node installs, is not up: kubectl -n "
                         "kube-system get pods -o wide --field-selector spec.nodeName=%s",
                         w->access->node);
        else if (w->outcome->cause == CAUSE_NOT_REGISTERED || w->outcome->cause == CAUSE_NOT_READY)
                add_kubelet(w, t);
        else if (w->outcome->cause == CAUSE_DEVICES)
                text_add(t, "; kubectl get pods -A -o wide --field-selector spec.nodeName=%s",
                         w->access->node);
}

static void outcome_finish(Watch *w, uint64_t begin_usec) {
        JoinOutcome *o = w->outcome;
        double seconds = (double)(now_usec() - begin_usec) / USEC_PER_SEC;
        Text t = {};
        if (is_reached(w)) {
                RENEW(o->text, NULL);
                o->cause = CAUSE_NONE;
                return;
        }
        if (!o->text)
                o->cause = CAUSE_API_SILENT;
        text_add(&t, "%s", o->text ?: "no answer about this node yet");
        if (stop_signal()) {
                text_add(&t, "; %s ended the wait after %.1f s", stop_name(stop_signal()), seconds);
                o->cause = CAUSE_INTERRUPTED;
        } else {
                add_advice(w, &t);
                text_add(&t, " (%u request%s in %.1f s)", o->requests, o->requests == 1 ? "" : "s", seconds);
        }
        RENEW(o->text, text_take(&t));
}

void join_wait(const JoinTask *task, JoinOutcome *ret) {
        JoinOutcome outcome = {};
        _cleanup_(watch_done) Watch w = { .task = task, .access = task->access, .outcome = &outcome };
        _cleanup_(diag_done) Diag diag = {};
        uint64_t begin_usec = now_usec();
        w.version = task->goal == JOIN_DEVICES ? 0 : ARRAY_SIZE(dra_versions) - 1;
        log_info("Waiting until Node %s of cluster %s is %s (API server: %s).", task->access->node,
                 task->access->cluster, join_goal_text(task->goal), task->access->server);
        int r = kube_api_new(task->access, &w.api, &diag);
        if (r >= 0) {
                try_until(&w);
                outcome_finish(&w, begin_usec);
        } else
                outcome.cause = kube_refusal(&diag, r, &outcome.text);
        *ret = outcome;
}
