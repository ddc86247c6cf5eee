/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The NodeConfig of the user. config_load() walks decode → merge → validate → bind, all by one table
 * (fields.c), which also makes the JSON Schema. */
#include "base/root.h"
#include "doc/doc.h"

#define CONFIG_API_VERSION "node.eks.aws/v1alpha1"
#define CONFIG_KIND        "NodeConfig"

typedef enum StorageStrategy {
        STORAGE_NONE, STORAGE_RAID0, STORAGE_RAID10, STORAGE_MOUNT, _STORAGE_INVALID = -22
} StorageStrategy;
typedef enum Filesystem { FILESYSTEM_XFS, FILESYSTEM_EXT4, _FILESYSTEM_INVALID = -22 } Filesystem;
typedef enum HugePagesMode {
        HUGEPAGES_KEEP, HUGEPAGES_OFF, HUGEPAGES_AUTO, HUGEPAGES_EXPLICIT, _HUGEPAGES_INVALID = -22
} HugePagesMode;
/* onShortfall */
typedef enum Policy { POLICY_FAIL, POLICY_WARN, _POLICY_INVALID = -22 } Policy;
typedef enum EfaMode { EFA_AUTO, EFA_REQUIRE, EFA_OFF, _EFA_INVALID = -22 } EfaMode;
typedef enum TuningMode { TUNING_AUDIT, TUNING_GPU, TUNING_OFF, _TUNING_INVALID = -22 } TuningMode;
typedef enum NvidiaMode { NVIDIA_AUTO, NVIDIA_OFF, _NVIDIA_INVALID = -22 } NvidiaMode;
typedef enum FabricManager {
        FABRIC_MANAGER_AUTO, FABRIC_MANAGER_ON, FABRIC_MANAGER_OFF, _FABRIC_MANAGER_INVALID = -22
} FabricManager;
typedef enum FabricGate {
        FABRIC_GATE_REQUIRE, FABRIC_GATE_WARN, FABRIC_GATE_OFF, _FABRIC_GATE_INVALID = -22
} FabricGate;
typedef enum ImexMode { IMEX_AUTO, IMEX_OFF, IMEX_DRA, IMEX_HOST, _IMEX_INVALID = -22 } ImexMode;
/* "driver": CDMM */
typedef enum MemoryMode { MEMORY_AUTO, MEMORY_DRIVER, MEMORY_NUMA, _MEMORY_INVALID = -22 } MemoryMode;
typedef enum Clocks { CLOCKS_AUTO, CLOCKS_MAX, CLOCKS_DEFAULT, _CLOCKS_INVALID = -22 } Clocks;
typedef enum GpuDirect {
        GPU_DIRECT_AUTO, GPU_DIRECT_ON, GPU_DIRECT_OFF, _GPU_DIRECT_INVALID = -22
} GpuDirect;
typedef enum HealthPolicy { HEALTH_WARN, HEALTH_REQUIRE, HEALTH_OFF, _HEALTH_INVALID = -22 } HealthPolicy;
typedef enum ProveMode { PROVE_OFF, PROVE_QUICK, _PROVE_INVALID = -22 } ProveMode;
typedef enum FailurePolicy {
        FAILURE_HOLD, FAILURE_JOIN_TAINTED, FAILURE_REBOOT, FAILURE_POWER_OFF, _FAILURE_INVALID = -22
} FailurePolicy;

int storage_strategy_from_string(const char *text);     /* ignores case, like nodeadm; -EINVAL */
DECLARE_STRING_TABLE(filesystem, Filesystem);
DECLARE_STRING_TABLE(imex_mode, ImexMode);
DECLARE_STRING_TABLE(memory_mode, MemoryMode);
DECLARE_STRING_TABLE(failure_policy, FailurePolicy);

typedef struct Cluster {
        char *name;
        char *endpoint;                 /* https://… */
        char *certificate_authority;    /* PEM, base64 undone */
        size_t certificate_authority_size;
        char *cidr;                     /* service range, as written */
        bool outpost;
        char *id;                       /* of a cluster on an Outpost, or NULL */
        bool expect_devices;            /* nodestrap-joined waits for all devices */
        bool repair_condition;          /* set AcceleratedHardwareReady, on which EKS repairs nodes */
} Cluster;

typedef struct KubeletOptions {
        json_t *config;                 /* free-form KubeletConfiguration, or NULL */
        char **flags;
        char *max_pods_expression;      /* CEL, or NULL */
} KubeletOptions;

typedef struct ContainerdOptions {
        json_t *config;                 /* the merged TOML as JSON, or NULL */
        json_t *as_one;                 /* as containerd 1 reads it; NULL: the same */
        json_t *base_runtime_spec;      /* free-form OCI spec, or NULL */
        char **pre_pull;                /* images */
} ContainerdOptions;

typedef struct LocalStorage {
        StorageStrategy strategy;       /* STORAGE_NONE: leave the disks alone */
        char *mount_path;
        bool no_containerd, no_pod_logs, no_soci, no_kubelet;   /* disabledMounts */
        Filesystem filesystem;
        unsigned expected_disks;        /* 0: what the instance-type table promises */
} LocalStorage;

/* An EBS volume. */
typedef struct Volume {
        char *device;                   /* as written: "/dev/xvdb", "vol-0123…", "/dev/nvme1n1" */
        char *key;                      /* short and unique: "xvdb"; its mount point has this name */
        char **targets;
        char **folders;                 /* of each target, on the volume; "": the whole volume */
        json_t *index;                  /* target → its number, or NULL */
        bool whole;                     /* mountTarget instead of a list */
        Filesystem filesystem;
} Volume;

/* size in bytes; numa_node -1: over all */
typedef struct PageRequest { uint64_t size; unsigned count; int numa_node; } PageRequest;
typedef struct HugePages {
        HugePagesMode mode;
        PageRequest *pages; size_t n_pages;
        Policy on_shortfall;
} HugePages;

typedef struct Variable { char *name, *value; } Variable;
/* "default": the whole machine */
typedef struct ServiceEnvironment { char *service; Variable *variables; size_t n; } ServiceEnvironment;

typedef struct InstanceOptions {
        LocalStorage storage;
        Volume *volumes; size_t n_volumes;
        HugePages hugepages;
        ServiceEnvironment *environment; size_t n_environment;  /* services and names sorted */
        char **nameservers, **domains;
        EfaMode efa; unsigned expected_efa;                     /* 0: not set */
        unsigned mtu;                                           /* 0: as the network has it */
        TuningMode tuning;
        bool strict_node_name;          /* only the name that EC2 gives */
        Variable *sysctl; size_t n_sysctl;                      /* sorted */
} InstanceOptions;

/* n_gpus 0: all; n_profiles 0: MIG mode off */
typedef struct MigRequest {
        unsigned *gpus; size_t n_gpus;
        Variable *profiles; size_t n_profiles;
} MigRequest;
typedef struct Nvidia {
        NvidiaMode mode;
        FabricManager fabric_manager; FabricGate fabric_gate; uint64_t fabric_timeout_usec;
        ImexMode imex; char **imex_nodes; unsigned imex_channels; bool imex_channel0;
        MigRequest *mig; size_t n_mig;  /* "off" is one request without profiles */
        bool imex_label;                /* register the node with the clique as a label */
        MemoryMode memory; Clocks clocks; HealthPolicy health;
        GpuDirect gpu_direct;           /* over EFA */
        ProveMode prove; uint64_t prove_timeout_usec;
} Nvidia;
static inline bool nvidia_mig_is_off(const Nvidia *n) {
        return n->n_mig == 1 && n->mig->n_profiles == 0;
}

typedef struct FeatureGates {
        bool instance_id_node_name, fast_image_pull;
        bool no_manage_enis;            /* networkd gets the interfaces that the CNI must not manage */
} FeatureGates;

typedef struct Config {
        Cluster cluster;
        KubeletOptions kubelet;
        ContainerdOptions containerd;
        InstanceOptions instance;
        Nvidia nvidia;
        FeatureGates gates;
        FailurePolicy failure_policy;
        json_t *document;               /* merged: {"apiVersion", "kind", "spec"}, for `config dump` */
        struct Origins *origins;        /* for config_position(), or NULL */
} Config;
Config *config_free(Config *c);
DEFINE_CLEANUP(Config *, config_free)
/* The position of "spec.kubelet.flags[1]" or of its parent, or NULL. The documents own its source. */
_nonnull_ const Position *config_position(const Config *c, const char *path);
/* Does the user set "spec.accelerator.nvidia.health", so that it is not a default? */
_nonnull_ bool config_says(const Config *c, const char *path);

/* Documents → one merged, valid Config. Reports all errors. -ENODATA, CAUSE_NO_CONFIG: none is ours. */
_must_check_ _nonnull_ int config_load(const Documents *documents, Config **ret, Diag *diag);
/* The same of a drop-in: other documents may bring what it lacks, such as the cluster. Not for a plan. */
_must_check_ _nonnull_ int config_load_partial(const Documents *documents, Config **ret, Diag *diag);
/* The same to show a document: errors of validation become warnings, and *ret has only the document. */
_must_check_ _nonnull_ int config_load_unchecked(const Documents *documents, Config **ret, Diag *diag);
/* The same from a document that config_load() made (.spec of the cache). */
_must_check_ _nonnull_ int config_from_json(json_t *document, const char *source, Config **ret, Diag *diag);
/* Warns of each key that nodeadm does not have: eksctl reads the NodeConfig as nodeadm does, and drops it
 * (eksctl-io/eksctl, pkg/nodebootstrap/al2023.go). */
_nonnull_ void config_warn_dropped(const Documents *documents, Diag *diag);
/* A NodeConfig with an invented cluster of this name, without warnings; a new reference. */
_nonnull_ json_t *config_sample(const char *name);
/* Does systemd accept it as the name of a variable? */
_nonnull_ bool variable_name_is_valid(const char *name);
/* The common form of names of a device: without /dev/, "xvdb" for "sdb", "vol-0123" for "vol0123". */
_malloc_ _nonnull_ char *volume_canonical(const char *device);
/* "/mnt//disks/./" → "/mnt/disks", as the kernel lists mounts; a new string. */
_malloc_ _nonnull_ char *path_normalise(const char *path);
/* Why no machine can mount anything there, as a new string; or NULL. */
_must_check_ _nonnull_ char *mount_target_fault(const char *target);
/* Warns of a kubelet.maxPodsExpression that fails for all kinds of instance types. A node boots with it
 * anyway, so only --strict refuses it. Returns 0. */
_must_check_ _nonnull_ int config_check_expression(const Config *config, Diag *diag);
/* JSON Schema, draft 2020-12; a new reference. strict: of a whole NodeConfig, for editors (schema.c). */
json_t *config_schema(bool strict);

/* --config-cache FILE: {"spec", "status"} as in nodeadm, mode 0600. -ENOENT: no file. */
_must_check_ _nonnull_ int config_cache_read(const Root *root, const char *path, json_t **ret_spec,
                                             json_t **ret_status, Diag *diag);
/* Do two specs mean the same? nodeadm writes its empty keys, omits our empty ones, folds base64. */
bool config_cache_matches(const json_t *spec, const json_t *cached);
_must_check_ _nonnull(1, 2, 3, 5) int config_cache_write(const Root *root, const char *path,
                                                         const Config *config, json_t *status, Diag *diag);
