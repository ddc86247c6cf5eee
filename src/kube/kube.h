/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cluster, as this node finds it: how the API server is reached, what it says about the Node, and why not
 * where it does not. Knows nothing of AWS: tokens come from a function. */
#include "base/error.h"
#include "base/root.h"

#include <jansson.h>

/* What kubelet was told: read from the files that it reads, since people patch them. */
typedef struct KubeAccess {
        char *server;                   /* "https://….eks.amazonaws.com" */
        char *host;                     /* of it */
        char *ca; size_t ca_size;       /* PEM: the CA that alone may vouch for it */
        char *ca_path;                  /* where that stands */
        char *cluster;                  /* what the token is made for: the name of
                                         * a cluster, or the id of a local one */
        char *region, *role;            /* of the exec plugin's arguments; NULL where they do not name one */
        char *node;                     /* the name that kubelet registers with */
        char *boot_id;                  /* of this boot, as kubelet reports it */
} KubeAccess;
void kube_access_done(KubeAccess *a);
/* From kubelet's kubeconfig and its environment file. A negative errno, and in diag what to do about it,
 * where they do not say how the cluster is reached or what this node is called. */
_must_check_ _nonnull_ int kube_access_read(const Root *root, KubeAccess *ret, Diag *diag);
/* The same from {server, certificate-authority-data, args, node}, as a kubeconfig has the first three: for
 * what is to be told before there is one. */
_must_check_ _nonnull_ int kube_access_take(const Root *root, const json_t *given, KubeAccess *ret,
                                            Diag *diag);

/* Whose tokens these are. Both functions are called again where an attempt failed. */
typedef struct KubeIdentity {
        void *user;
        int (*token)(void *user, char **ret, Diag *diag);       /* a bearer token, the caller's */
        char *(*principal)(void *user);                         /* the ARN of the role behind it,
                                                                 * for a message; NULL: not known */
} KubeIdentity;

/* What the cluster has under this machine's name. */
typedef struct NodeLook {
        bool there;                     /* a Node; else nothing of it is set */
        char *provider_id;              /* "aws:///us-west-2a/i-…", for good that of the instance that has
                                         * made it; NULL: none */
        char *taint;                    /* the value of the taint that keeps pods away; "": it has none;
                                         * NULL: no such taint */
        Cause cause;                    /* CAUSE_NONE: this is so; else nobody could be asked, */
        char *text;                     /* and why */
        unsigned retry_after;           /* seconds that the server asks for */
} NodeLook;
void node_look_done(NodeLook *l);
/* One request for the Node, and for its taint of this key, until the deadline (now_usec()) at most. */
_nonnull_ void kube_node_look(const KubeAccess *access, const KubeIdentity *identity, const char *taint_key,
                              uint64_t deadline_usec, NodeLook *ret);

typedef enum JoinGoal { JOIN_REGISTERED, JOIN_READY, _JOIN_GOAL_MAX, _JOIN_GOAL_INVALID = -22 } JoinGoal;
DECLARE_STRING_TABLE(join_goal, JoinGoal);

typedef struct JoinOutcome {
        Cause cause;                    /* CAUSE_NONE: the goal is reached */
        char *text;                     /* else one sentence: what, where, why, what next */
        uint64_t registered_usec, ready_usec;   /* since the kernel started (CLOCK_MONOTONIC); 0: not known */
        unsigned requests;
} JoinOutcome;
void join_outcome_done(JoinOutcome *o);
typedef struct JoinTask {
        const Root *root;
        const KubeAccess *access;
        const KubeIdentity *identity;
        JoinGoal goal;
        uint64_t deadline_usec;         /* now_usec() */
        /* Asked about once a second while kubelet of this boot has not reported yet: will it never do so?
         * Then cause and text of ret say why; what it was is its to free. */
        bool (*is_lost)(const Root *root, JoinOutcome *ret);
} JoinTask;
/* Until the goal is reached, the deadline passes, all is lost, or a signal asks to stop. The API server is
 * not polled: one request watches the Node. Progress goes to the log, one line whenever something changed. */
_nonnull_ void join_wait(const JoinTask *task, JoinOutcome *ret);

/* What happened to this node, for those who look at the cluster: an Event (core/v1) about its Node, whether
 * that one exists or not. */
typedef struct KubeEvent {
        char name[65];                  /* by kube_event_name(): the same for what is the same,
                                         * so that it counts */
        bool warning;
        const char *reason;             /* "NodestrapFailed" */
        const char *message;
        const char *first, *last;       /* when, "2026-01-02T03:04:05Z" */
        int64_t count;
} KubeEvent;
/* Of an Event about this node; key tells those of a reason apart. */
_nonnull_ void kube_event_name(const KubeAccess *access, const char *reason, const char *key,
                               char ret[static 65]);
typedef struct KubeSent {
        Cause cause;                    /* CAUSE_NONE: the cluster has it */
        char *text;                     /* else one sentence; the caller's */
        bool refused;                   /* it will not be taken another time either */
        bool away;                      /* nor would any other one be taken now */
        unsigned retry_after;           /* seconds that the server asks to wait for */
} KubeSent;
/* One attempt, of 40 s at most beside those of the token: made, or where the Event is there already, its
 * count, its time and its message are set. May be repeated. */
_nonnull_ void kube_event_send(const KubeAccess *access, const KubeIdentity *identity, const KubeEvent *event,
                               KubeSent *ret);
