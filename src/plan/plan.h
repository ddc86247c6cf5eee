/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Config + Host → Plan, for its readers: apply, report, commands; planners have planner.h. Pure: no file,
 * clock, environment or bus; `make pure` checks the undefined symbols. */
#include "base/paths.h"
#include "base/time.h"
#include "config/config.h"
#include "plan/action.h"

typedef struct Plan {
        Action *actions; size_t n;      /* in an order that respects after and after_any */
        json_t *facts;
        json_t *node;                   /* the expected Node, or NULL; "approximate" and "unknown" say, by
                                         * resource, why */
        char *machine;                  /* the machine, in a few readable lines */
        Diag warnings;
        char id[72];                    /* "sha256:…" over action_canonical() of all actions */
        bool as_nodeadm;                /* PlanOptions */
        bool looked;                    /* Action.live is set */
        _Atomic unsigned more_refs;
} Plan;
/* Another reference, for a thread that may outlive the caller. A plan with more than one must not change. */
_must_check_ _nonnull_ Plan *plan_ref(const Plan *p);
/* Drops a reference. */
Plan *plan_free(Plan *p);
DEFINE_CLEANUP(Plan *, plan_free)

typedef enum CredentialPlugin { PLUGIN_AWS, PLUGIN_NODESTRAP, _PLUGIN_INVALID = -22 } CredentialPlugin;
DECLARE_STRING_TABLE(credential_plugin, CredentialPlugin);
typedef struct PlanOptions {
        CredentialPlugin plugin;        /* exec plugin of the kubeconfig */
        bool as_nodeadm;                /* called as nodeadm: its files, even if kubelet warns of them */
        bool foretell;                  /* keep certain failures as warnings, and show the plan */
        unsigned interfaces;            /* show the places of this many interfaces; 0: none */
        const char *efa;                /* show the GPUs near these network cards, "1,5-7"; or NULL */
} PlanOptions;

/* -EINVAL with diagnostics if configuration and machine contradict each other, or a boot certainly fails. */
_must_check_ _nonnull_ int plan_make(const Config *config, const Host *host, const PlanOptions *options,
                                     Plan **ret, Diag *diag);
/* Does this warning mean that something will not work? Others mean assumed, not known, or not optimal. */
_must_check_ _nonnull_ bool plan_warning_fails(const Diagnostic *warning);
/* Drops actions of skipped phases and of daemons not named (NULL: keeps all), and dependencies on them. The
 * id stays that of the whole plan, so that both halves of a boot name the reviewed one. */
_nonnull(1, 2) void plan_filter(Plan *plan, const bool skip[_PHASE_MAX], char *const *daemons);
const Action *plan_find(const Plan *plan, const char *id);
/* For many look-ups: each id → its place in the plan; a new reference. */
_must_check_ _nonnull_ json_t *plan_index(const Plan *plan);
_nonnull_ bool plan_has_phase(const Plan *plan, Phase phase);
/* The critical path to the start of kubelet, by the usual times. The new *ret has its places in the plan,
 * first to last; *ret_usec their sum. Returns their number; 0 if the plan does not start kubelet. */
_must_check_ _nonnull_ size_t plan_critical_path(const Plan *plan, size_t **ret, uint64_t *ret_usec);
/* A boolean of the planned KubeletConfiguration; otherwise: its value if it is not set. */
_nonnull_ bool plan_kubelet_switch(const Plan *plan, const char *name, bool otherwise);
/* Does it set the kernel setting with this path? */
_nonnull_ bool plan_sets(const Plan *plan, const char *path);
_must_check_ _nonnull_ size_t plan_count(const Plan *plan, Live live);
/* Compared with the machine, all is as planned and nothing is unknown. */
_must_check_ _nonnull_ bool plan_is_done(const Plan *plan);
/* Both new and without secret content. */
_malloc_ char *plan_to_text(const Plan *plan);
_malloc_ _nonnull_ char *plan_to_markdown(const Plan *plan, const char *type);
/* A heading, findings as a list, a table as it is, and a block of code; the last two may be empty. */
_malloc_ _nonnull_ char *plan_page(const char *title, const char *of, const Diag *findings,
                                   const char *table, const char *language, const char *block);
/* Version of the JSON (conf/plan.schema.json). New keys do not change it. */
#define PLAN_FORMAT 1
json_t *plan_to_json(const Plan *plan);

#define CLIQUE_KEY  "nvidia.com/gpu.clique"     /* label of NVIDIA/k8s-device-plugin, which takes it over */
#define POOL_CHECK  "warm-pool"                 /* target of check-pool */
#define TAINT_KEY   "nodestrap/unhealthy"       /* taint and label; the value is the word of the cause */

