/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Config + Host → Plan, for those who read one: apply, report, the commands. What the planners share stands
 * in planner.h. Pure: no file, no clock, no environment, no bus; `make pure` looks at its undefined
 * symbols. */
#include "base/paths.h"
#include "base/time.h"
#include "config/config.h"
#include "plan/action.h"

typedef struct Plan {
        Action *actions; size_t n;      /* in an order that respects after */
        json_t *facts;
        json_t *node;                   /* the Node that kubelet will register, or NULL: "name", "providerID",
                                         * "labels", "taints", "capacity" and "allocatable" as the Node has
                                         * them, and why one may be another on the machine ("approximate")
                                         * or is not known ("unknown"), by resource */
        char *machine;                  /* the same in some lines for people */
        Diag warnings;                  /* of planning: decisions a person should know of */
        char id[72];                    /* "sha256:…" over actions and files alone */
        bool as_nodeadm;                /* PlanOptions */
        bool looked;                    /* the actions' live is what the machine says */
        _Atomic unsigned more_refs;     /* references beyond the first */
} Plan;
/* Another reference, for a thread that may outlive the one who made the plan. Nobody changes a plan that has
 * more than one. */
_must_check_ _nonnull_ Plan *plan_ref(const Plan *p);
/* Drops a reference, and frees the plan with the last one. */
Plan *plan_free(Plan *p);
DEFINE_CLEANUP(Plan *, plan_free)

typedef enum CredentialPlugin { PLUGIN_AWS, PLUGIN_NODESTRAP, _PLUGIN_INVALID = -22 } CredentialPlugin;
DECLARE_STRING_TABLE(credential_plugin, CredentialPlugin);
typedef struct PlanOptions {
        CredentialPlugin plugin;        /* of the kubeconfig's exec plugin */
        bool as_nodeadm;                /* called by its name: its files, also where kubelet warns of them */
        bool foretell;                  /* what certainly fails stays a warning that has its cause, for who
                                         * wants the rest of the plan, too */
        unsigned interfaces;            /* of how many network interfaces to tell where they go; 0: of none */
} PlanOptions;

/* Decides everything. -EINVAL with diagnostics when configuration and machine contradict each other,
 * or when it is certain that a boot fails. */
_must_check_ _nonnull_ int plan_make(const Config *config, const Host *host, const PlanOptions *options,
                                     Plan **ret, Diag *diag);
/* Does a warning of planning tell of something that will not work? Others tell of what was assumed, is not
 * known, or is only worse than it could be. */
_must_check_ _nonnull_ bool plan_warning_fails(const Diagnostic *warning);
/* Leaves out actions of skipped phases and of daemons not named; what depended on them no longer does. NULL:
 * keep all. The id stays that of the whole plan, so that both halves of a boot name the one that was
 * reviewed. */
_nonnull(1, 2) void plan_filter(Plan *plan, const bool skip[_PHASE_MAX], char *const *daemons);
const Action *plan_find(const Plan *plan, const char *id);
/* For who looks for many of them: each id → its place in the plan; a new reference. */
_must_check_ _nonnull_ json_t *plan_index(const Plan *plan);
/* Is any of its actions of this phase (after plan_filter())? */
_nonnull_ bool plan_has_phase(const Plan *plan, Phase phase);
/* The chain of actions that kubelet's start waits for longest, if each takes as long as it usually does:
 * their places in the plan, first to last, in a new *ret, and all of it together in *ret_usec. How many they
 * are: 0 where the plan starts no kubelet. */
_must_check_ _nonnull_ size_t plan_critical_path(const Plan *plan, size_t **ret, uint64_t *ret_usec);
/* A switch of kubelet's, by its name in KubeletConfiguration, as its files and command line in the plan come
 * to; otherwise: what it is where they do not say. */
_nonnull_ bool plan_kubelet_switch(const Plan *plan, const char *name, bool otherwise);
/* Does it make the kernel setting with this path, whatever the value? */
_nonnull_ bool plan_sets(const Plan *plan, const char *path);
/* How many actions have that state. */
_must_check_ _nonnull_ size_t plan_count(const Plan *plan, Live live);
/* It was looked at, and nothing of what was seen is to be changed, nor is there anything that could not be
 * seen. */
_must_check_ _nonnull_ bool plan_is_done(const Plan *plan);
/* Text for people, JSON for machines; both new, both without what is in the actions that are secret. */
_malloc_ char *plan_to_text(const Plan *plan);
/* Of the JSON (conf/plan.schema.json): a reader of an older one must be told. Keys may be added without. */
#define PLAN_FORMAT 1
json_t *plan_to_json(const Plan *plan);

/* Names by which what was done is found again. */
#define CLIQUE_KEY  "nvidia.com/gpu.clique"     /* label: NVIDIA/k8s-device-plugin, which owns it later */
#define TAINT_KEY   "nodestrap/unhealthy"       /* of the taint and the label; their
                                                 * value is the cause's word */

