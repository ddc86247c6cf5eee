/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Config + Host → Plan; pure: no file, no clock, no environment, no bus. `make pure` looks at its undefined
 * symbols. */
#include "base/time.h"
#include "config/config.h"
#include "plan/action.h"

typedef struct Plan {
        Action *actions; size_t n;      /* in an order that respects after */
        json_t *facts;
        char *machine;                  /* the same in some lines for people */
        Diag warnings;                  /* of planning: decisions a person should know of */
        char id[72];                    /* "sha256:…" over actions and files alone */
        _Atomic unsigned more_refs;     /* beside that of whoever made it */
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
} PlanOptions;

/* Decides everything. -EINVAL with diagnostics when configuration and machine contradict each other. */
_must_check_ _nonnull_ int plan_make(const Config *config, const Host *host, const PlanOptions *options,
                                     Plan **ret, Diag *diag);
/* Leaves out actions of skipped phases and of daemons not named; what depended on them no longer does. NULL:
 * keep all. The id stays that of the whole plan, so that both halves of a boot name the one that was
 * reviewed. */
_nonnull(1) void plan_filter(Plan *plan, bool skip_config, bool skip_run, char *const *daemons);
const Action *plan_find(const Plan *plan, const char *id);
/* Text for people, JSON for machines (contract, section 6); both new, both without secrets. */
_malloc_ char *plan_to_text(const Plan *plan);
json_t *plan_to_json(const Plan *plan);

/* ---- for the planners in this folder ---- */
#define PLAN_FILE_TIMEOUT (10 * USEC_PER_SEC)
#define PLAN_UNIT_TIMEOUT (90 * USEC_PER_SEC)
#define PLAN_RELOAD_ID    "reload-manager:systemd"
#define PLAN_MANIFEST     "/var/lib/nodestrap/manifest.json"    /* of files that this tool owns; apply
                                                                 * keeps it, here it is only a name */
#define PLAN_PRUNE_ID     "prune-files:" PLAN_MANIFEST
#define KUBELET_TURN      "/run/nodestrap/kubelet-may-start"    /* units/kubelet.service.d: the same for
                                                                 * a kubelet that is enabled by itself */
/* the last file wins, and AMIs have theirs */
#define NVIDIA_OPTIONS    "/etc/modprobe.d/zz-nodestrap-nvidia.conf"
#define IMEX_CONFIG       "/etc/nvidia-imex/config.cfg"         /* says also where the daemon
                                                                 * listens for nvidia-imex-ctl */
#define MOUNTS_READY      "/run/nodestrap/mounts-ready" /* units/containerd.service.d: until it
                                                         * is there, containerd does not start */
#define RAID_NAME         "kubernetes"                  /* nodeadm's; also the label of file
                                                         * systems that are finished */
#define RAID_DEVICE       "/dev/md/" RAID_NAME
#define RAID_CHUNK_KIB    256           /* the largest that an XFS log stripe follows (facts: S24, S38) */
#define SANDBOX_ARCHIVE   "/etc/eks/pause.tar"          /* EKS's AMIs keep it (amazon-eks-ami:
                                                         * cache-pause-container) */
#define SANDBOX_IMAGE     "localhost/kubernetes/pause"  /* part of every EKS AMI, so nothing is pulled */
#define TAINT_FILE        "/run/nodestrap/kubelet-environment"  /* units/kubelet.service.d reads it
                                                                 * behind /etc/eks/kubelet/environment */
#define TAINT_KEY         "nodestrap/unhealthy"         /* of the taint and the label; their
                                                         * value is the cause's word */
#define FABRIC_TURN       "/run/nodestrap/fabric-may-start"     /* units/nvidia-fabricmanager.service.d */
#define SYSTEM_ENVIRONMENT "/etc/systemd/system.conf.d/environment.conf"

/* Appends an action with its type's deadline; the strings are copied. The caller fills what its type needs.
 * The pointer is valid until the next one is added. */
_nonnull(1, 4, 5, 6) Action *plan_add(Plan *plan, ActionType type, Phase phase, const char *group,
                                      const char *target, const char *why);
/* A file with text content; mode 0644, or 0600 where a secret may be inside (its content is never shown).
 * Returns its action. */
_nonnull(1, 3, 4, 5, 6) Action *plan_file(Plan *plan, Phase phase, const char *group, const char *path,
                                          const char *why, const char *content, mode_t mode);
void action_after(Action *a, const char *id);
void action_after_any(Action *a, const char *id);
/* replaces the content: for bytes that are no text */
void action_content(Action *a, const void *data, size_t size);
/* start-unit: unit.reads, unit.inputs and after, from those files of the plan that the unit reads when it
 * starts. */
_nonnull_ void action_reads(const Plan *plan, Action *start,
                            bool (*is_read)(const Action *file, const char *unit));

/* The planners, in the order plan_make() calls them. */
/* environment, resolver, hosts */
_must_check_ _nonnull_ int plan_system(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_containerd(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_kubelet(Plan *plan, const Config *config, const Host *host,
                                        const PlanOptions *options, Diag *diag);
/* instance stores */
_must_check_ _nonnull_ int plan_storage(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* sysctl, huge pages, EFA */
_must_check_ _nonnull_ int plan_devices(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* driver to IMEX */
_must_check_ _nonnull_ int plan_nvidia(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* marker, taint, units */
_must_check_ _nonnull_ int plan_run(Plan *plan, const Config *config, const Host *host, Diag *diag);

_malloc_ char *plan_describe_host(const Host *host);
/* memlock: containers may lock all memory */
_nonnull(1) void plan_runtime_spec(Plan *plan, const json_t *user, bool memlock);
/* Does something here use EFA: are there devices, or must there be? */
_nonnull_ bool plan_uses_efa(const Config *config, const Host *host);
/* A step of the run phase that kubelet waits for as failurePolicy says: kernel settings, huge pages, network,
 * accelerators. */
_nonnull_ bool plan_is_device_step(const Action *a);
/* FastImagePull: is SOCI used on this machine? Where the gate is on and it is not, *ret_reason says why not
 * (static text). */
bool plan_uses_soci(const Config *config, const Host *host, const char **ret_reason);
/* "1.33.4" ≥ 1.33; false for NULL */
bool version_at_least(const char *version, unsigned major, unsigned minor);

/* kubelet */
/* source: one clause for the reader */
typedef struct MaxPods { unsigned pods; const char *source; } MaxPods;
_nonnull_ MaxPods max_pods_choose(const Config *config, const Host *host, Diag *warnings);
unsigned cpu_reserved_millicores(unsigned cpus);
/* The tenth address of a service range, canonical; -EINVAL if it is no range or has no tenth address. */
_must_check_ _nonnull_ int cluster_dns(const char *cidr, char **ret_address, bool *ret_is_ipv6);
json_t *kubelet_settings(const Config *config, const Host *host, const MaxPods *pods, const char *dns,
                         Diag *warnings);
/* The taints that the user's flags or settings register the node with: "key=value:NoSchedule". */
_nonnull_ char **kubelet_taints(const Config *config);
/* What a list of flags written for nodeadm means as an argument vector (environment.c says how). */
char **kubelet_words(char *const *flags);
_must_check_ _nonnull(1, 2, 3, 5) int kubelet_environment(Plan *plan, const Config *config, const Host *host,
                                                          char *const *flags, Diag *diag);
_nonnull_ void kubelet_files(Plan *plan, const Config *config, const Host *host, const PlanOptions *options,
                             char ***flags);

/* text */
/* indented, a line end behind it; the shortest numbers that are exact */
_malloc_ char *json_text(const json_t *json);
/* Sets what stands at a path like "authentication/webhook/enabled"; makes the objects between. Takes the
 * value. */
_nonnull_ void json_put(json_t *object, const char *path, json_t *value);
/* is there a key that usually has a secret behind it? */
bool json_holds_secret(const json_t *json);
