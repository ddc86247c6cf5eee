/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For planners, also those of nic/plan. devices.h and storage.h add to it. */
#include "base/json.h"
#include "base/str.h"
#include "plan/plan.h"

/* The kernel limit for NAME=VALUE (torvalds/linux fs/exec.c: MAX_ARG_STRLEN, with pages of 4 KiB). */
#define VARIABLE_MAX    (128u << 10)
#define PLAN_RELOAD_ID  "reload-manager:systemd"
#define SOCI_UNIT       "soci-snapshotter.service"
#define PLAN_PRUNE_ID   "prune-files:" MANIFEST_FILE

/* Appends an action; copies the strings. The pointer is valid until the next plan_add(). */
_nonnull(1, 4, 5, 6) Action *plan_add(Plan *plan, ActionType type, Phase phase, const char *group,
                                      const char *target, const char *why);
/* A write-file with text content. */
_nonnull(1, 3, 4, 5, 6) Action *plan_file(Plan *plan, Phase phase, const char *group, const char *path,
                                          const char *why, const char *content, mode_t mode);
/* The same in the config phase. users: it has free-form data of the user, so it is hidden and only for root.
 * Under the name nodeadm its mode is 0644, unless told: its keys suggest a secret. */
_nonnull_ Action *plan_users_file(Plan *plan, const char *group, const char *path, const char *why,
                                  const char *content, bool users, bool told);
/* Orders the actions by their dependencies and computes the id. Comes last. */
_must_check_ _nonnull_ int plan_finish(Plan *plan, Diag *diag);
void action_after(Action *a, const char *id);
void action_after_any(Action *a, const char *id);
/* replaces the content, with any bytes */
void action_content(Action *a, const void *data, size_t size);
/* Sets unit.reads, unit.inputs and after of a start-unit, from the planned files that the unit reads. */
_nonnull_ void action_reads(const Plan *plan, Action *start,
                            bool (*is_read)(const Action *file, const char *unit));

/* The planners, in the order of plan_make(). A negative errno, and errors in diag, on failure. */
_must_check_ _nonnull_ int plan_system(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_containerd(Plan *plan, const Config *config, const Host *host, Diag *diag);
_nonnull_ const char *plan_containerd_socket(const Config *config, const Host *host, bool as_nodeadm);
_must_check_ _nonnull_ int plan_kubelet(Plan *plan, const Config *config, const Host *host,
                                        const PlanOptions *options, Diag *diag);
_must_check_ _nonnull_ int plan_storage(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_devices(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_nvidia(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* Checks an expected number of devices against the table of types, before the user pays for an instance; on a
 * machine, devices decide. has: by the table, negative: not known. joins: the node joins anyway. */
typedef struct Promise { Cause cause; const char *path; unsigned said; int has; bool joins; } Promise;
_must_check_ _nonnull_ int plan_promise(Plan *plan, const Host *host, const Promise *p, Diag *diag);
/* Warns of versions that do not suit the GPUs or features; in a model some are errors. */
_nonnull_ void plan_requirements(Plan *plan, const Config *config, const Host *host);
/* The lock, before all device steps. */
_nonnull_ void plan_take_turn(Plan *plan);
/* Reload, markers, taint, units. Comes last, since it searches the actions of the others. */
_nonnull_ void plan_units(Plan *plan, const Config *config, const Host *host);

_nonnull_ const char *plan_state(Plan *plan, const Config *config, const Host *host);   /* its id */

/* The expected Node; warns where kubelet would not start, or pods get no memory. */
_nonnull_ void plan_node(Plan *plan, const Config *config, const Host *host);

/* Lines for people: machine, instance, software. */
_malloc_ char *plan_describe_host(const Config *config, const Host *host);
/* Adds the places of n network interfaces to facts and machine. -EINVAL if they do not fit. */
_must_check_ _nonnull_ int plan_placement(Plan *plan, const Host *host, unsigned n, Diag *diag);
/* The same for EFA devices on these cards ("1,5-7"), and GPUs near them; warns of a GPU without. -EINVAL for
 * a card that takes none, or a type whose cards are not known. */
_must_check_ _nonnull_ int plan_efa_cards(Plan *plan, const Host *host, const char *cards, Diag *diag);
/* The same for the interfaces of this machine. far: GPUs, by PCI, with no device nearby, or NULL; the warning
 * names them. Did it warn of GPUs? */
_nonnull(1, 2) bool plan_cards_here(Plan *plan, const Host *host, char *const *far);
/* Numbers of route table, rules and metric (amazonlinux/amazon-ec2-net-utils:lib/lib.sh). */
#define INTERFACE_METRIC(card, device) (512 + 100 * (card) + (device))
#define INTERFACE_TABLE(card, device)  (10000 + 100 * (card) + (device))
/* The OCI runtime spec: defaults merged with user (or NULL). memlock: containers may lock all memory. */
_nonnull(1) void plan_runtime_spec(Plan *plan, const json_t *user, bool memlock);
/* In bytes, without NUMA nodes that have no CPUs: theirs becomes GPU memory when the driver loads. */
_nonnull_ uint64_t memory_of_cpus(const Host *host);
/* Can the CPU own GPU memory? If so, memoryMode decides between the CPU and the driver. */
_nonnull_ bool gpus_are_coherent(const Host *host);
/* Will the driver bring GPU memory online as NUMA nodes? A first boot cannot see them yet. */
_nonnull_ bool gpus_share_memory(const Config *config, const Host *host);
_nonnull_ size_t kubelet_numa_nodes(const Config *config, const Host *host);
/* Are there EFA devices, or must there be? */
_nonnull_ bool plan_uses_efa(const Config *config, const Host *host);
/* A step to which failurePolicy applies: kernel settings, huge pages, network, accelerators. */
_nonnull_ bool plan_is_device_step(const Action *a);
/* FastImagePull: is SOCI used? If the gate is on but it is not, *ret_reason says why (static), else NULL. */
_nonnull_ bool plan_uses_soci(const Config *config, const Host *host, const char **ret_reason);
/* Does the TOML of the user name another sandbox image? */
_nonnull_ bool plan_sandbox_is_users(const Config *config, const Host *host);
/* ---- kubelet ---- */

/* source: the reason, static. */
typedef struct MaxPods { unsigned pods; const char *source; } MaxPods;
_nonnull_ MaxPods max_pods_choose(const Config *config, const Host *host, Diag *warnings);
/* Reserved for kubelet and containerd. */
unsigned cpu_reserved_millicores(unsigned cpus);
/* The tenth address of a service range, canonical; -EINVAL if cidr is not a range or is too small. */
_must_check_ _nonnull_ int cluster_dns(const char *cidr, char **ret_address, bool *ret_is_ipv6);
/* The taints in the flags or settings of the user: "key=value:NoSchedule"; a new vector, or NULL. */
_nonnull_ char **kubelet_taints(const Config *config);
/* The file with the kubelet command line: flags, then those of the user. */
_nonnull(1, 2, 3) void kubelet_arguments(Plan *plan, const Config *config, const Host *host,
                                         char *const *flags);
/* Kubeconfig, certificate authority and credential provider; adds the flags that name them. */
_nonnull_ void kubelet_access(Plan *plan, const Config *config, const Host *host, const PlanOptions *options,
                              char ***flags);
/* ---- the expected Node ---- */

/* The planned kubelet settings, merged as kubelet does, under the names of KubeletConfiguration or as
 * nodeLabels, hostnameOverride, rootDirectory, ignoreEviction. A new reference. */
_nonnull_ json_t *node_settings(const Plan *plan, const Host *host);
/* A number or a text with one; else 0. */
_nonnull_ uint64_t node_setting_number(const json_t *settings, const char *name);
/* -1: not set */
_nonnull_ int node_setting_flag(const json_t *settings, const char *name);
/* The CPUs in a list such as "0-3,8"; 0 if it is not a list. */
_nonnull_ unsigned cpu_list_count(const char *list);

/* plan->facts gets the NUMA nodes with GPUs; warns if there are too many. settings: node_settings(). */
_nonnull_ void plan_numa(Plan *plan, const Config *config, const Host *host, const json_t *settings);

/* Bytes of the kubelet file system; 0: not known. *ret_doubt: why it may differ, static; NULL: exact. */
_nonnull_ uint64_t ephemeral_bytes(const Plan *plan, const Config *config, const Host *host,
                                   const char **ret_doubt);
/* Bytes for files, as statfs(2) says, in a new file system on a device of that size. */
uint64_t filesystem_bytes(uint64_t device, Filesystem filesystem);
/* Bytes that md leaves for data on a member. */
uint64_t member_bytes(uint64_t disk);
