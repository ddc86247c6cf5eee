/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder share: a Node's state, one request, and the words for what went wrong. */
#include "base/str.h"
#include "kube/kube.h"

#include <jansson.h>

/* ---- node.c: what the API server says ---- */
typedef enum KubeNodeState {
        KUBE_NODE_ABSENT,
        KUBE_NODE_STALE,                /* reported by another boot: this machine's last
                                         * one, or an instance that had the name before */
        KUBE_NODE_REGISTERED,
        KUBE_NODE_READY,
} KubeNodeState;
typedef struct KubeNode {
        KubeNodeState state;
        bool silent;                    /* kubelet has stopped reporting: the Ready condition is Unknown */
        char *reason, *message;         /* of the Ready condition where it is not true; may be NULL */
        char *provider_id;              /* of the instance that made it, where it is stale; may be NULL */
        int64_t created, ready_since;   /* seconds since 1970, 0: not known. By the
                                         * cluster's clock, and by this machine's */
} KubeNode;
void kube_node_done(KubeNode *n);
/* One event of a watch → the Node's state. -EREMOTEIO and *ret_why for an event that is an error, -EBADMSG
 * for what is none. */
_must_check_ _nonnull_ int kube_event_parse(const char *line, size_t size, const char *boot_id, KubeNode *ret,
                                            char **ret_why);
/* The message of a Status, which the API server sends with an error; NULL where there is none. */
_nonnull_ char *kube_status_message(const Text *body);

/* ---- look.c: the same, where it is asked for once ---- */
/* The body of a 200 (found) or a 404 → there, provider_id and taint. -EBADMSG for what no API server says
 * of a Node of that name. */
_must_check_ _nonnull_ int node_look_parse(const Text *body, bool found, const char *name, const char *key,
                                           NodeLook *ret);

/* ---- api.c: one request ---- */
typedef struct KubeReply {
        int curl;                       /* CURLcode; 0 where an answer came, whatever its status */
        char *error;                    /* what libcurl says of it, never with a proxy's password */
        long status;                    /* 0: none came */
        int64_t date;                   /* of the answer, 0: not said */
        unsigned retry_after;           /* seconds */
        Text body;                      /* of an answer; of a watch, where that is not 200 */
        long verify, proxy_status, os_error;    /* X509_V_*, of the proxy's answer
                                                 * to CONNECT, errno of connect() */
        bool resolved, connected;       /* how far it came */
        bool proxy_set, at_proxy;       /* the environment names a proxy; that one failed, or said no */
        bool cut_by_deadline;
        uint64_t usec;                  /* how long it took */
} KubeReply;
void kube_reply_done(KubeReply *r);

typedef struct KubeApi KubeApi;
/* -ELIBACC and *ret_why where libcurl cannot be loaded. */
_must_check_ _nonnull_ int kube_api_new(const KubeAccess *access, KubeApi **ret, char **ret_why);
KubeApi *kube_api_free(KubeApi *a);
DEFINE_CLEANUP(KubeApi *, kube_api_free)
/* Watches the Node: each line of the answer goes to on_line as it comes, and from its first second on an
 * empty one about once a second; false ends the watch. The server ends it after a while. ret is filled as the
 * answer comes in, so on_line can read its date. */
_nonnull_ void kube_api_watch(KubeApi *api, const char *token, uint64_t deadline_usec,
                              bool (*on_line)(void *user, const char *line, size_t size), void *user,
                              KubeReply *ret);
typedef struct KubeRequest {
        const char *method;             /* "GET", "POST", "PATCH" */
        const char *path;               /* "/api/v1/nodes/NAME", encoded */
        const char *body, *type;        /* what is sent, and its media type; NULL: nothing */
        uint64_t answer_usec;           /* how long the answer may take; 0: ten seconds */
} KubeRequest;
/* One request and its whole answer: ret->body has it, whatever its status, up to a MiB. */
_nonnull_ void kube_api_request(KubeApi *api, const KubeRequest *request, const char *token,
                                uint64_t deadline_usec, KubeReply *ret);
/* The clock of whoever answers, in seconds since 1970, without asking for any proof of who it is; 0: not
 * known. Nothing secret is sent. */
_nonnull_ int64_t kube_api_clock(KubeApi *api, uint64_t deadline_usec);

/* The first error of diag, r at least: its cause and a sentence, the caller's. */
_nonnull_ Cause kube_refusal(const Diag *diag, int r, char **ret_text);

/* ---- failure.c: what a person should read ---- */
typedef struct KubeMoment {
        const KubeAccess *access;
        const KubeReply *reply;
        int64_t now;                    /* this machine's clock, seconds since 1970 */
        int64_t server;                 /* the other one's, 0: not known */
} KubeMoment;
/* Is it worth asking the server for its clock? */
_nonnull_ bool kube_failure_wants_clock(const KubeReply *reply);
/* CAUSE_NONE where the reply is none. principal is called for a 401 alone. */
_must_check_ _nonnull_ Cause kube_failure(const KubeMoment *moment, const KubeIdentity *identity,
                                          char **ret_text);
/* The same of what has just come in, with the clocks as they are now; the server is asked for its own until
 * the deadline where that matters. */
_must_check_ _nonnull_ Cause kube_explain(KubeApi *api, const KubeAccess *access, const KubeReply *reply,
                                          const KubeIdentity *identity, uint64_t deadline_usec,
                                          char **ret_text);

/* ---- kubelet.c: the other side of it ---- */
typedef struct Kubelet {
        char *state;                    /* "kubelet.service is active (running)";
                                         * NULL: systemd does not say */
        bool runs;
        bool said;                      /* it has ended, and state quotes why */
        bool lost;                      /* the same, again and again, or for good */
} Kubelet;
void kubelet_done(Kubelet *k);
_nonnull_ void kubelet_look(const Root *root, Kubelet *ret);
