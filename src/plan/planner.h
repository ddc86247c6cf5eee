/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For planners alone: what those of src/plan share, and nic/plan. Those of devices have devices.h beside it,
 * those of instance stores storage.h. */
#include "base/json.h"
#include "base/version.h"
#include "plan/plan.h"

/* The kernel hands no longer variable to a program: NAME=VALUE and the NUL behind it (torvalds/linux
 * fs/exec.c: MAX_ARG_STRLEN, with pages of 4 KiB). */
#define VARIABLE_MAX    (128u << 10)
#define PLAN_RELOAD_ID  "reload-manager:systemd"
#define SOCI_UNIT       "soci-snapshotter.service"
#define PLAN_PRUNE_ID   "prune-files:" MANIFEST_FILE

/* Appends an action with its type's deadline; the strings are copied. The caller fills what its type needs.
 * The pointer is valid until the next one is added. */
_nonnull(1, 4, 5, 6) Action *plan_add(Plan *plan, ActionType type, Phase phase, const char *group,
                                      const char *target, const char *why);
/* A file with text content. Returns its action. */
_nonnull(1, 3, 4, 5, 6) Action *plan_file(Plan *plan, Phase phase, const char *group, const char *path,
                                          const char *why, const char *content, mode_t mode);
/* The same in the config phase; users: with free-form data of the user's in it, which may hold a secret
 * anywhere. Such a file is for root alone and its content is not shown; under nodeadm's name it has nodeadm's
 * mode, 0644, save where its keys tell of a secret. */
_nonnull_ Action *plan_users_file(Plan *plan, const char *group, const char *path, const char *why,
                                  const char *content, bool users, bool told);
/* Puts the actions into an order that respects what each comes after, and names the plan. Comes last. */
_must_check_ _nonnull_ int plan_finish(Plan *plan, Diag *diag);
void action_after(Action *a, const char *id);
void action_after_any(Action *a, const char *id);
/* replaces the content: for bytes that are no text */
void action_content(Action *a, const void *data, size_t size);
/* start-unit: unit.reads, unit.inputs and after, from those files of the plan that the unit reads when it
 * starts. */
_nonnull_ void action_reads(const Plan *plan, Action *start,
                            bool (*is_read)(const Action *file, const char *unit));

/* The planners, in the order in which plan_make() calls them. Each adds its actions and its warnings to the
 * plan; a negative errno where the plan cannot be made, and errors in diag that say why. */
/* Variables of the environment, name servers, /etc/hosts. */
_must_check_ _nonnull_ int plan_system(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* containerd's files and SOCI's. */
_must_check_ _nonnull_ int plan_containerd(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* Where containerd listens: the user's path, or ours. */
_nonnull_ const char *plan_containerd_socket(const Config *config, const Host *host, bool as_nodeadm);
/* kubelet's files. */
_must_check_ _nonnull_ int plan_kubelet(Plan *plan, const Config *config, const Host *host,
                                        const PlanOptions *options, Diag *diag);
/* Instance stores: from the disks to what is bound to them. */
_must_check_ _nonnull_ int plan_storage(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* Kernel settings, huge pages, EFA, and what a machine of this type must have. */
_must_check_ _nonnull_ int plan_devices(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* NVIDIA's GPUs, from the driver to IMEX. */
_must_check_ _nonnull_ int plan_nvidia(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* One process at a time works on the devices: the first of all their steps, where there are any. */
_nonnull_ void plan_take_turn(Plan *plan);
/* What is done with all of that: reload, markers, taint, the daemons' units. Comes last: it looks for what
 * the others have planned. */
_nonnull_ void plan_units(Plan *plan, const Config *config, const Host *host);

/* Removes the state files of an earlier boot that kubelet refuses. */
_nonnull_ const char *plan_state(Plan *plan, const Config *config, const Host *host);   /* its id */

/* The Node that all of that will make; warns where kubelet would not start, or pods get no memory. */
_nonnull_ void plan_node(Plan *plan, const Config *config, const Host *host);

/* Some lines for people: the machine, the instance, the software. */
_malloc_ char *plan_describe_host(const Config *config, const Host *host);
/* Where n network interfaces of this instance type go, for the reader: adds it to facts and machine, and
 * warns of what is not known. -EINVAL where the type has no room for them. */
_must_check_ _nonnull_ int plan_placement(Plan *plan, const Host *host, unsigned n, Diag *diag);
/* Where the route table, the rules and the metric of an interface have their numbers from
 * (amazonlinux/amazon-ec2-net-utils:lib/lib.sh). */
#define INTERFACE_METRIC(card, device) (512 + 100 * (card) + (device))
#define INTERFACE_TABLE(card, device)  (10000 + 100 * (card) + (device))
/* The OCI runtime spec: containerd's own with user (or NULL) merged over it. memlock: containers may lock all
 * memory. */
_nonnull(1) void plan_runtime_spec(Plan *plan, const json_t *user, bool memlock);
/* In bytes, without that of nodes that have no CPUs: it is GPUs', from when their driver is loaded. */
_nonnull_ uint64_t memory_of_cpus(const Host *host);
/* Will the driver bring the GPUs' memory online as nodes of its own? The config phase of a first boot sees
 * none of them yet. */
_nonnull_ bool gpus_share_memory(const Config *config, const Host *host);
_nonnull_ size_t kubelet_numa_nodes(const Config *config, const Host *host);
/* Does something here use EFA: are there devices, or must there be? */
_nonnull_ bool plan_uses_efa(const Config *config, const Host *host);
/* A step that kubelet waits for as failurePolicy says: kernel settings, huge pages, network, accelerators. */
_nonnull_ bool plan_is_device_step(const Action *a);
/* FastImagePull: is SOCI used on this machine? Where the gate is on and it is not, *ret_reason says why not
 * (static text), else NULL. */
_nonnull_ bool plan_uses_soci(const Config *config, const Host *host, const char **ret_reason);
/* Does the user's TOML name another sandbox image than the AMI's? */
_nonnull_ bool plan_sandbox_is_users(const Config *config);
/* ---- kubelet ---- */

/* How many pods, and why: source is one clause for the reader, static. */
typedef struct MaxPods { unsigned pods; const char *source; } MaxPods;
_nonnull_ MaxPods max_pods_choose(const Config *config, const Host *host, Diag *warnings);
/* Thousandths of a CPU that kubelet and containerd keep for themselves. */
unsigned cpu_reserved_millicores(unsigned cpus);
/* The tenth address of a service range, canonical; -EINVAL if it is no range or has no tenth address. */
_must_check_ _nonnull_ int cluster_dns(const char *cidr, char **ret_address, bool *ret_is_ipv6);
/* The taints that the user's flags or settings register the node with: "key=value:NoSchedule". A new vector,
 * or NULL. */
_nonnull_ char **kubelet_taints(const Config *config);
/* The file with kubelet's command line: flags are this program's, the user's come behind them. */
_nonnull(1, 2, 3) void kubelet_arguments(Plan *plan, const Config *config, const Host *host,
                                         char *const *flags);
/* How kubelet finds its cluster and proves itself to registries: kubeconfig, certificate authority,
 * credential provider. Adds the flags that name them. */
_nonnull_ void kubelet_access(Plan *plan, const Config *config, const Host *host, const PlanOptions *options,
                              char ***flags);
