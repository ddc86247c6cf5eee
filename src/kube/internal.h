/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of this folder: the state of a Node, requests, and messages about failures. */
#include "base/str.h"
#include "kube/kube.h"

#include <jansson.h>

/* ---- node.c ---- */
typedef enum KubeNodeState {
        KUBE_NODE_ABSENT,
        KUBE_NODE_STALE,                /* reported by another boot, or by another instance of this name */
        KUBE_NODE_REGISTERED,
        KUBE_NODE_READY,
} KubeNodeState;
typedef struct KubeNode {
        KubeNodeState state;
        char *reason, *message;         /* of a Ready condition that is not true; may be NULL */
        char *provider_id;              /* of a stale Node: its instance; may be NULL */
        int64_t created, ready_since;   /* seconds since 1970, by the clock of the cluster and by ours; 0:
                                         * not known */
        json_t *status;                 /* NULL: no Node of this boot */
} KubeNode;
void kube_node_done(KubeNode *n);
/* An event of a watch → its object, a new reference. -EREMOTEIO and *ret_why: an ERROR event; -EBADMSG: not
 * an event. */
_must_check_ _nonnull_ int kube_event_load(const char *line, size_t size, json_t **ret, bool *ret_deleted,
                                           char **ret_why);
/* Same, for a Node. */
_must_check_ _nonnull_ int kube_event_parse(const char *line, size_t size, const char *boot_id, KubeNode *ret,
                                            char **ret_why);
/* The message of a Status, which comes with errors; NULL: none. */
_nonnull_ char *kube_status_message(const Text *body);

/* ---- devices.c ---- */
/* Compares the numbers of JoinTask with the status of the Node and the specs of its ResourceSlices, by name.
 * Sets seen to numbers by resource. Returns a sentence about the first resource with a fault, or NULL. */
_must_check_ _nonnull(4) char *devices_judge(const json_t *expected, const json_t *status,
                                             const json_t *slices, json_t *seen);

/* ---- look.c ---- */
/* The body of a 200 (found) or 404 → there, provider_id and taint. -EBADMSG: not an answer about this
 * Node. */
_must_check_ _nonnull_ int node_look_parse(const Text *body, bool found, const char *name, const char *key,
                                           NodeLook *ret);

/* ---- api.c ---- */
typedef struct KubeReply {
        int curl;                       /* CURLcode; 0: an answer came, of any status */
        char *error;                    /* from libcurl, without proxy passwords */
        long status;                    /* 0: no answer */
        int64_t date;                   /* 0: not in the answer */
        unsigned retry_after;           /* seconds */
        Text body;                      /* of a watch: unless status is 200 */
        long verify, proxy_status, os_error;    /* X509_V_*, status of CONNECT, errno of connect() */
        bool resolved, connected;       /* progress */
        bool proxy_set, at_proxy;       /* the environment names a proxy; it failed or refused */
        bool cut_by_deadline, cut;      /* cut: a watch beside it ended */
        uint64_t usec;
} KubeReply;
void kube_reply_done(KubeReply *r);

typedef struct KubeApi KubeApi;
/* Fails without a usable libcurl. */
_must_check_ _nonnull_ int kube_api_new(const KubeAccess *access, KubeApi **ret, Diag *diag);
KubeApi *kube_api_free(KubeApi *a);
DEFINE_CLEANUP(KubeApi *, kube_api_free)
/* The server ends a watch after a minute: this finds dead connections. */
#define KUBE_WATCH "?watch=1&timeoutSeconds=60&fieldSelector="
typedef struct KubeWatch {
        const char *path;               /* "/api/v1/nodes" KUBE_WATCH "…" */
        bool (*on_line)(void *user, const char *line, size_t size);
        void *user;
        KubeReply *reply;
} KubeWatch;
/* One watch or two at once, until on_line of one returns false or the server ends one. on_line gets each
 * line as it comes, and an empty one about once a second. The reply fills as the answer comes, so on_line can
 * read its date. */
_nonnull_ void kube_api_watch(KubeApi *api, const KubeWatch *watches, size_t n, const char *token,
                              uint64_t deadline_usec);
typedef struct KubeRequest {
        const char *method;             /* "GET", "POST", "PATCH" */
        const char *path;               /* "/api/v1/nodes/NAME", encoded */
        const char *body, *type;        /* NULL: none */
        uint64_t answer_usec;           /* 0: ten seconds */
} KubeRequest;
/* One request; ret->body has up to a MiB of the answer, of any status. */
_nonnull_ void kube_api_request(KubeApi *api, const KubeRequest *request, const char *token,
                                uint64_t deadline_usec, KubeReply *ret);
/* The clock of the unverified server, in seconds since 1970; 0: not known. Sends nothing secret. */
_nonnull_ int64_t kube_api_clock(KubeApi *api, uint64_t deadline_usec);

/* The cause and text of the first error of diag, else of r; the caller frees it. */
_nonnull_ Cause kube_refusal(const Diag *diag, int r, char **ret_text);

/* ---- failure.c ---- */
typedef struct KubeMoment {
        const KubeAccess *access;
        const KubeReply *reply;
        int64_t now;                    /* our clock, seconds since 1970 */
        int64_t server;                 /* its clock; 0: not known */
} KubeMoment;
/* Does the clock of the server matter here? */
_nonnull_ bool kube_failure_wants_clock(const KubeReply *reply);
/* CAUSE_NONE: not a failure. Calls principal for a 401 only. */
_must_check_ _nonnull_ Cause kube_failure(const KubeMoment *moment, const KubeIdentity *identity,
                                          char **ret_text);
/* The same for a reply that has just come in. Asks the server for its clock if that matters. */
_must_check_ _nonnull_ Cause kube_explain(KubeApi *api, const KubeAccess *access, const KubeReply *reply,
                                          const KubeIdentity *identity, uint64_t deadline_usec,
                                          char **ret_text);

/* ---- kubelet.c ---- */
typedef struct Kubelet {
        char *state;                    /* "kubelet.service is active (running)"; NULL: not known */
        bool runs;
        bool said;                      /* kubelet has ended; state quotes its reason */
        bool lost;                      /* it ends again and again, or has failed */
} Kubelet;
void kubelet_done(Kubelet *k);
_nonnull_ void kubelet_look(const Root *root, Kubelet *ret);
