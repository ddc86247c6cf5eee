/* SPDX-License-Identifier: Apache-2.0
 * The one table of NodeConfig: every key, its type, its names, its default, its place in struct Config, and
 * one line of documentation. nodeadm's keys are those of its API (awslabs/amazon-eks-ami,
 * nodeadm/api/v1alpha1/nodeconfig_types.go, July 2026); the rest are this program's own and are ignored by
 * nodeadm. */
#include "config/fields.h"

#include "base/str.h"

#include <errno.h>
#include <strings.h>

DEFINE_STRING_TABLE(filesystem, Filesystem, "xfs", "ext4")
DEFINE_STRING_TABLE(hugepages_mode, HugePagesMode, "keep", "off", "auto", "explicit")
DEFINE_STRING_TABLE(policy, Policy, "fail", "warn")
DEFINE_STRING_TABLE(efa_mode, EfaMode, "auto", "require", "off")
DEFINE_STRING_TABLE(nvidia_mode, NvidiaMode, "auto", "off")
DEFINE_STRING_TABLE(fabric_manager, FabricManager, "auto", "on", "off")
DEFINE_STRING_TABLE(fabric_gate, FabricGate, "require", "warn", "off")
DEFINE_STRING_TABLE(imex_mode, ImexMode, "auto", "off", "dra", "host")
DEFINE_STRING_TABLE(memory_mode, MemoryMode, "auto", "driver", "numa")
DEFINE_STRING_TABLE(clocks, Clocks, "auto", "max", "default")
DEFINE_STRING_TABLE(failure_policy, FailurePolicy, "hold", "join-tainted")

static const char *const storage_strategy_table[] = { NULL, "RAID0", "RAID10", "Mount" };
static const char *const disabled_mount_table[] = { NULL, "Containerd", "PodLogs", "SOCI", "Kubelet" };
static const char *const api_version_table[] = { NULL, CONFIG_API_VERSION };
static const char *const kind_table[] = { NULL, CONFIG_KIND };

const char *storage_strategy_to_string(StorageStrategy value) {
        return (size_t)value < ARRAY_SIZE(storage_strategy_table) ? storage_strategy_table[value] : NULL;
}

int storage_strategy_from_string(const char *text) {
        for (size_t i = 1; i < ARRAY_SIZE(storage_strategy_table); i++)
                if (strcasecmp(storage_strategy_table[i], text) == 0)
                        return (int)i;
        return -EINVAL;
}

#define AT(member)    .offset = offsetof(Config, member)
#define NAMES(table)  .names = table, .n_names = ARRAY_SIZE(table)
#define CHECK_PLAIN_HOST "^https://[A-Za-z0-9._-]+(:[0-9]+)?(/.*)?$|^https://\\[[0-9A-Fa-f:.]+\\](:[0-9]+)?(/.*)?$|^$"

static const Field string_item[] = { { NULL, FIELD_STRING }, {} };

static const Field cluster_fields[] = {
        { "name", FIELD_STRING, "Name of the EKS cluster; needed.", AT(cluster.name) },
        { "apiServerEndpoint", FIELD_STRING, "URL of the cluster's API server, https://…; needed.", FIELD_NO_NUMBER,
          .pattern = CHECK_PLAIN_HOST, AT(cluster.endpoint) },
        { "certificateAuthority", FIELD_STRING, "The cluster's CA certificates, base64 of PEM; needed.",
          .pattern = "^[A-Za-z0-9+/=\\r\\n]*$", AT(cluster), .bind = bind_authority },
        { "cidr", FIELD_STRING, "The cluster's service range, 10.100.0.0/16 or an IPv6 one; needed.", FIELD_NO_NUMBER,
          .pattern = "^[0-9A-Fa-f:.]+/[0-9]{1,3}$|^$", AT(cluster.cidr) },
        { "enableOutpost", FIELD_BOOL, "Does this node stand on an AWS Outpost?", AT(cluster.outpost) },
        { "id", FIELD_STRING, "Id of a cluster on an Outpost; needed there.", AT(cluster.id) },
        {}
};

static const Field kubelet_fields[] = {
        { "config", FIELD_FREE, "A KubeletConfiguration, or some of it; merged over what the node needs.", AT(kubelet.config) },
        { "flags", FIELD_LIST, "Arguments for kubelet, put behind its own ones.", FIELD_APPEND, string_item, AT(kubelet.flags) },
        { "maxPodsExpression", FIELD_STRING, "CEL for the number of pods, from default_enis, ips_per_eni and max_pods; config.maxPods wins.",
          AT(kubelet.max_pods_expression) },
        {}
};

static const Field containerd_fields[] = {
        { "config", FIELD_STRING, "containerd's configuration as TOML; merged over what the node needs.", FIELD_TOML },
        { "baseRuntimeSpec", FIELD_FREE, "An OCI runtime spec, or some of it, that all containers begin with.", AT(containerd.base_runtime_spec) },
        {}
};

static const Field disabled_mount_item[] = { { NULL, FIELD_ENUM, NAMES(disabled_mount_table) }, {} };

static const Field local_storage_fields[] = {
        { "strategy", FIELD_ENUM, "What becomes of the instance store disks: one array, or each mounted alone.", FIELD_ANY_CASE,
          NAMES(storage_strategy_table), AT(instance.storage.strategy) },
        { "mountPath", FIELD_STRING, "Folder that they are mounted in.", FIELD_NO_NUMBER, .pattern = "^/|^$",
          .fallback = "/mnt/k8s-disks", AT(instance.storage.mount_path), .bind = bind_mount_path },
        { "disabledMounts", FIELD_LIST, "State that stays on the root disk.", 0, disabled_mount_item,
          AT(instance.storage), .bind = bind_disabled_mounts },
        { "filesystem", FIELD_ENUM, "File system that they are given.", 0, NAMES(filesystem_table), AT(instance.storage.filesystem) },
        { "expectedDisks", FIELD_INTEGER, "How many there must be; 0: as many as the instance type promises.", 0,
          .max = 1024, AT(instance.storage.expected_disks) },
        {}
};

static const Field page_fields[] = {
        { "size", FIELD_STRING, "Size of one page: 2Mi, 1Gi.", FIELD_NO_NUMBER, .pattern = "^[1-9][0-9]*(Ki|Mi|Gi)$" },
        { "count", FIELD_INTEGER, "How many pages.", .max = INT32_MAX },
        { "numaNode", FIELD_INTEGER, "NUMA node to take them from; absent: over all nodes.", .max = 1023 },
        {}
};
static const Field page_item[] = { { NULL, FIELD_MAP, .fields = page_fields }, {} };

static const Field huge_pages_fields[] = {
        { "mode", FIELD_ENUM, "keep what is reserved, none at all, what the devices need, or what pages says.",
          NAMES(hugepages_mode_table), AT(instance.hugepages.mode) },
        { "pages", FIELD_LIST, "For mode explicit.", 0, page_item, AT(instance.hugepages), .bind = bind_pages },
        { "onShortfall", FIELD_ENUM, "What it means when the kernel cannot give them all.", NAMES(policy_table), AT(instance.hugepages.on_shortfall) },
        {}
};

static const Field efa_fields[] = {
        { "mode", FIELD_ENUM, "Use EFA where it is, fail without it, or leave it alone.", NAMES(efa_mode_table), AT(instance.efa) },
        { "expectedDevices", FIELD_INTEGER, "How many EFA devices there must be; 0: not said.", 0, .max = 1024, AT(instance.expected_efa) },
        {}
};

static const Field network_fields[] = {
        { "nameservers", FIELD_LIST, "DNS servers of the node.", 0, string_item, AT(instance.nameservers) },
        { "domains", FIELD_LIST, "DNS search domains of the node.", 0, string_item, AT(instance.domains) },
        { "efa", FIELD_MAP, "Elastic Fabric Adapters.", 0, efa_fields },
        {}
};

static const Field environment_item[] = { { NULL, FIELD_DICT,
                                            "Variables of one service, or of the machine below \"default\".",
                                            .fields = string_item },
                                          {} };

static const Field instance_fields[] = {
        { "localStorage", FIELD_MAP, "Instance store disks.", 0, local_storage_fields },
        { "hugePages", FIELD_MAP, "Huge pages, reserved before kubelet counts them.", 0, huge_pages_fields },
        { "environment", FIELD_DICT, "Environment variables by service.", 0, environment_item, AT(instance), .bind = bind_environment },
        { "network", FIELD_MAP, "Name resolution and network devices.", 0, network_fields },
        { "sysctl", FIELD_DICT, "Kernel settings by name.", 0, string_item, AT(instance), .bind = bind_sysctl },
        {}
};

static const Field fabric_fields[] = {
        { "manager", FIELD_ENUM, "Run NVIDIA's fabric manager?", NAMES(fabric_manager_table), AT(nvidia.fabric_manager) },
        { "gate", FIELD_ENUM, "Must the fabric be ready before kubelet starts?", NAMES(fabric_gate_table), AT(nvidia.fabric_gate) },
        { "timeout", FIELD_STRING, "How long that may take: 90, 90s, 5m, 1h30m.", 0, .fallback = "5m",
          .pattern = "^([0-9]+(ms|s|m|h)?)+$|^$", AT(nvidia.fabric_timeout_usec), .bind = bind_timespan },
        {}
};

static const Field imex_fields[] = {
        { "mode", FIELD_ENUM, "Who shares memory between nodes: nobody, the DRA driver, or a service of this host.",
          NAMES(imex_mode_table), AT(nvidia.imex) },
        { "nodes", FIELD_LIST, "For mode host: addresses of all nodes of the domain.", 0, string_item, AT(nvidia.imex_nodes) },
        { "channels", FIELD_INTEGER, "How many IMEX channels; equal on all nodes of the domain.", 0, .max = 1 << 20, .fallback = "2048",
          AT(nvidia.imex_channels) },
        { "createChannel0", FIELD_BOOL, "Make the device of channel 0?", AT(nvidia.imex_channel0) },
        {}
};

static const Field gpu_index_item[] = { { NULL, FIELD_INTEGER, .max = 63 }, {} };
static const Field profile_item[] = { { NULL, FIELD_INTEGER, .min = 1, .max = 64 }, {} };
static const Field mig_fields[] = {
        { "devices", FIELD_LIST, "Indexes of GPUs, or all.", FIELD_OR_TEXT | FIELD_NO_NUMBER, gpu_index_item, .pattern = "^(all)?$" },
        { "profiles", FIELD_DICT, "How many instances of which profile: 1g.5gb: 7.", 0, profile_item },
        {}
};
static const Field mig_item[] = { { NULL, FIELD_MAP, .fields = mig_fields }, {} };

static const Field nvidia_fields[] = {
        { "mode", FIELD_ENUM, "Set up NVIDIA GPUs where there are any?", NAMES(nvidia_mode_table), AT(nvidia.mode) },
        { "fabric", FIELD_MAP, "NVSwitch and NVLink fabric.", 0, fabric_fields },
        { "imex", FIELD_MAP, "Memory exchange between nodes of one NVLink domain.", 0, imex_fields },
        { "mig", FIELD_LIST, "Partitions of GPUs; absent: left as they are. Short form for all GPUs: \"19,19,19\".", FIELD_OR_TEXT,
          mig_item, .pattern = "^[0-9a-z.+-]+( *, *[0-9a-z.+-]+)*$|^$", AT(nvidia), .bind = bind_mig },
        { "memoryMode", FIELD_ENUM, "Coherent GPU memory: driver (CDMM), or NUMA nodes.", NAMES(memory_mode_table), AT(nvidia.memory) },
        { "clocks", FIELD_ENUM, "GPU clocks.", NAMES(clocks_table), AT(nvidia.clocks) },
        {}
};

static const Field accelerator_fields[] = {
        { "nvidia", FIELD_MAP, "NVIDIA GPUs.", 0, nvidia_fields },
        {}
};

/* featuregates.go in nodeadm/internal/api: both are off unless said. */
const Field feature_gates[] = {
        { "InstanceIdNodeName", FIELD_BOOL, "Name the node after its instance id, not its private DNS name.", AT(gates.instance_id_node_name) },
        { "FastImagePull", FIELD_BOOL, "Pull and unpack images in parallel on machines that are large enough.", AT(gates.fast_image_pull) },
        {}
};

static const Field spec_fields[] = {
        { "cluster", FIELD_MAP, "The cluster that this node joins.", 0, cluster_fields },
        { "kubelet", FIELD_MAP, "kubelet.", 0, kubelet_fields },
        { "containerd", FIELD_MAP, "containerd.", 0, containerd_fields },
        { "instance", FIELD_MAP, "The machine itself.", 0, instance_fields },
        { "accelerator", FIELD_MAP, "Accelerators.", 0, accelerator_fields },
        { "featureGates", FIELD_DICT, "Features by name; true or false.", FIELD_GATES, feature_gates, .bind = bind_gates },
        { "failurePolicy", FIELD_ENUM, "After a failed step: do not start kubelet, or join with a taint.",
          NAMES(failure_policy_table), AT(failure_policy) },
        {}
};

const Field nodeconfig_fields[] = {
        { "apiVersion", FIELD_ENUM, "Group and version.", FIELD_NEEDED, NAMES(api_version_table) },
        { "kind", FIELD_ENUM, "Kind.", FIELD_NEEDED, NAMES(kind_table) },
        { "metadata", FIELD_IGNORED, "Not looked at." },
        { "spec", FIELD_MAP, "What this node shall be.", 0, spec_fields },
        {}
};

size_t fields_count(const Field *fields) {
        size_t n = 0;
        while (fields[n].key)
                n++;
        return n;
}

const Field *fields_find(const Field *fields, const char *key) {
        for (; fields->key; fields++)
                if (streq(fields->key, key))
                        return fields;
        return NULL;
}

/* Looks for the key in the whole tree, depth first; prefix grows on the way down. */
static char *find_elsewhere(const Field *fields, const char *key, const char *prefix) {
        for (; fields->key; fields++) {
                _cleanup_(freep) char *path = xasprintf("%s%s%s", prefix, *prefix ? "." : "", fields->key);
                if (streq(fields->key, key))
                        return TAKE_PTR(path);
                char *found = fields->type == FIELD_MAP ? find_elsewhere(fields->fields, key, path) : NULL;
                if (found)
                        return found;
        }
        return NULL;
}

char *fields_suggest(const Field *fields, const char *key) {
        size_t n = fields_count(fields);
        _cleanup_(freep) const char **names = xcalloc(n + 1, sizeof *names);
        for (size_t i = 0; i < n; i++)
                names[i] = fields[i].key;
        const char *near = nearest_name(key, names);
        return near ? xstrdup(near) : find_elsewhere(nodeconfig_fields, key, "");
}

int field_enum_index(const Field *f, const char *text) {
        for (size_t i = 0; i < f->n_names; i++)
                if (f->names[i] && (f->flags & FIELD_ANY_CASE ? strcasecmp(f->names[i], text)
                                                              : strcmp(f->names[i], text)) == 0)
                        return (int)i;
        return -EINVAL;
}

char *field_enum_list(const Field *f) {
        Text t = {};
        for (size_t i = 0; i < f->n_names; i++)
                if (f->names[i])
                        text_add(&t, "%s%s", t.size > 0 ? ", " : "", f->names[i]);
        return text_take(&t);
}

const char *field_fallback(const Field *f) {
        return f->names ? f->names[0] : f->fallback;
}

int64_t field_fallback_number(const Field *f) {
        uint64_t n = 0;
        return f->fallback && parse_u64(f->fallback, &n) >= 0 ? (int64_t)n : 0;
}
