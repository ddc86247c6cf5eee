/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cluster as this node sees it: access to the API server, the Node, and failures. Knows nothing of AWS:
 * a function gives the tokens. */
#include "base/error.h"
#include "base/root.h"

#include <jansson.h>

/* From the files that kubelet reads, since people patch them. */
typedef struct KubeAccess {
        char *server;                   /* "https://….eks.amazonaws.com" */
        char *host;                     /* of server */
        char *ca; size_t ca_size;       /* PEM; the only CA for the server */
        char *ca_path;                  /* its file */
        char *cluster;                  /* of the token: the name of a cluster, or the id of a local one */
        char *region, *role;            /* from the exec plugin arguments; NULL: not given */
        char *node;                     /* the name that kubelet registers */
        char *boot_id;                  /* as kubelet reports it */
} KubeAccess;
void kube_access_done(KubeAccess *a);
/* From kubeconfig and environment file of kubelet. A negative errno, and in diag what to do, if they do not
 * name the server and this node. */
_must_check_ _nonnull_ int kube_access_read(const Root *root, KubeAccess *ret, Diag *diag);
/* The same from {server, certificate-authority-data, args, node}, the first three as in a kubeconfig: for
 * failures before that exists. */
_must_check_ _nonnull_ int kube_access_take(const Root *root, const json_t *given, KubeAccess *ret,
                                            Diag *diag);

/* Called again for each attempt. */
typedef struct KubeIdentity {
        void *user;
        int (*token)(void *user, char **ret, Diag *diag);       /* a bearer token; the caller frees it */
        char *(*principal)(void *user);                         /* the ARN of its role; NULL: not known */
} KubeIdentity;

/* The Node with the name of this machine. */
typedef struct NodeLook {
        bool there;                     /* false: the rest is not set */
        char *provider_id;              /* "aws:///us-west-2a/i-…", of the instance that created it; NULL:
                                         * none */
        char *taint;                    /* the value of the taint that keeps pods away, "": empty; NULL:
                                         * no taint */
        Cause cause;                    /* CAUSE_NONE: success; else the request failed, */
        char *text;                     /* and the reason */
        unsigned retry_after;           /* in seconds; of the server */
} NodeLook;
void node_look_done(NodeLook *l);
/* One request for a Node and its taint with this key, until the deadline (now_usec()). */
_nonnull_ void kube_node_look(const KubeAccess *access, const KubeIdentity *identity, const char *taint_key,
                              uint64_t deadline_usec, NodeLook *ret);

typedef enum JoinGoal {
        JOIN_REGISTERED, JOIN_READY,
        JOIN_DEVICES,                   /* Ready, and all devices are in the cluster */
        _JOIN_GOAL_MAX, _JOIN_GOAL_INVALID = -22
} JoinGoal;
DECLARE_STRING_TABLE(join_goal, JoinGoal);
/* Completes "the Node is …". */
const char *join_goal_text(JoinGoal goal);

typedef struct JoinOutcome {
        Cause cause;                    /* CAUSE_NONE: goal reached; with a text: kubelet is to stay down */
        char *text;                     /* else a message */
        uint64_t registered_usec, ready_usec;   /* CLOCK_MONOTONIC; 0: not known */
        json_t *expected, *seen;        /* of JOIN_DEVICES: numbers by resource; NULL: not known */
        unsigned requests;
} JoinOutcome;
void join_outcome_done(JoinOutcome *o);
typedef struct JoinTask {
        const Root *root;
        const KubeAccess *access;
        const KubeIdentity *identity;
        JoinGoal goal;
        uint64_t deadline_usec;         /* now_usec() */
        /* Called about once a second until kubelet reports. true: it never will; cause and text of ret have
         * the reason, and it frees the old text. */
        bool (*is_lost)(const Root *root, JoinOutcome *ret);
        void (*registered)(const Root *root);   /* called once, when kubelet of this boot reports; or NULL */
        /* Of JOIN_DEVICES: numbers by resource, {"nvidia.com/gpu": 8}; "nvidia.com/mig-*" where GPUs are
         * divided. Called again while it returns NULL: not known yet. */
        json_t *(*expected)(const Root *root);
} JoinTask;
/* Until the goal, the deadline, a lost kubelet or a signal. One request watches the Node, without polling,
 * and for JOIN_DEVICES another its ResourceSlices. Each change is a line in the log. */
_nonnull_ void join_wait(const JoinTask *task, JoinOutcome *ret);

/* An Event (core/v1) about the Node of this machine, which need not exist. */
typedef struct KubeEvent {
        char name[65];                  /* by kube_event_name(): equal for the same event, to count repeats */
        bool warning;
        const char *reason;             /* "NodestrapFailed" */
        const char *message;
        const char *first, *last;       /* "2026-01-02T03:04:05Z" */
        int64_t count;
} KubeEvent;
/* key distinguishes Events of one reason. */
_nonnull_ void kube_event_name(const KubeAccess *access, const char *reason, const char *key,
                               char ret[static 65]);
typedef struct KubeSent {
        Cause cause;                    /* CAUSE_NONE: success */
        char *text;                     /* else a message; the caller frees it */
        bool refused;                   /* a retry fails, too */
        bool away;                      /* others would fail now, too */
        unsigned retry_after;           /* in seconds; of the server */
        const char *repair;             /* the status that KUBE_REPAIR gets, or NULL; cause is for it */
        char *owner;                    /* KUBE_REPAIR stays: this manager owns it; the caller frees it */
} KubeSent;
/* One attempt, 40 s at most without the token. Creates the Event, or sets count, time and message of an
 * existing one. May be repeated. */
_nonnull_ void kube_event_send(const KubeAccess *access, const KubeIdentity *identity, const KubeEvent *event,
                               KubeSent *ret);

/* EKS and Karpenter repair a node for this. The EKS node monitoring agent owns it where it runs. */
#define KUBE_REPAIR "AcceleratedHardwareReady"

/* A condition in the status of the Node of this machine. lastTransitionTime changes with the status alone
 * (kubernetes/community:contributors/devel/sig-architecture/api-conventions.md). */
typedef struct KubeCondition {
        const char *type;               /* "NodestrapReady" */
        const char *status;             /* "True", "False", "Unknown" */
        const char *reason, *message;
        const char *instance;           /* "i-…", that the Node must match; "": not known */
        const char *repair_reason, *repair_message; /* also KUBE_REPAIR=False; "": no. Status True makes one
                                         * of ours True again */
} KubeCondition;
/* One attempt, as kube_event_send(). CAUSE_NOT_REGISTERED: the Node does not exist yet, or belongs to another
 * instance. A condition that says the same already is not written again. */
_nonnull_ void kube_condition_send(const KubeAccess *access, const KubeIdentity *identity,
                                   const KubeCondition *condition, KubeSent *ret);
