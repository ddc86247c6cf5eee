/* SPDX-License-Identifier: Apache-2.0
 * The one table of NodeConfig. The keys of nodeadm are those of its API (awslabs/amazon-eks-ami,
 * nodeadm/api/v1alpha1/nodeconfig_types.go, July 2026); nodeadm ignores the others, which are ours. */
#include "config/fields.h"

#include "base/str.h"

#include <errno.h>
#include <strings.h>

DEFINE_STRING_TABLE(filesystem, Filesystem, "xfs", "ext4")
static const char hugepages_mode_table[][NAME_SIZE] = { "keep", "off", "auto", "explicit" };
static const char policy_table[][NAME_SIZE] = { "fail", "warn" };
static const char efa_mode_table[][NAME_SIZE] = { "auto", "require", "off" };
static const char tuning_mode_table[][NAME_SIZE] = { "audit", "gpu", "off" };
static const char nvidia_mode_table[][NAME_SIZE] = { "auto", "off" };
static const char fabric_manager_table[][NAME_SIZE] = { "auto", "on", "off" };
static const char fabric_gate_table[][NAME_SIZE] = { "require", "warn", "off" };
DEFINE_STRING_TABLE(imex_mode, ImexMode, "auto", "off", "dra", "host")
DEFINE_STRING_TABLE(memory_mode, MemoryMode, "auto", "driver", "numa")
static const char clocks_table[][NAME_SIZE] = { "auto", "max", "default" };
static const char gpu_direct_table[][NAME_SIZE] = { "auto", "on", "off" };
static const char health_policy_table[][NAME_SIZE] = { "warn", "require", "off" };
static const char prove_mode_table[][NAME_SIZE] = { "off", "quick" };
DEFINE_STRING_TABLE(failure_policy, FailurePolicy, "hold", "join-tainted", "reboot", "poweroff")

static const char storage_strategy_table[][NAME_SIZE] = { "", "RAID0", "RAID10", "Mount" };
static const char disabled_mount_table[][NAME_SIZE] = { "", "Containerd", "PodLogs", "SOCI", "Kubelet" };
static const char api_version_table[][NAME_SIZE] = { "", CONFIG_API_VERSION };
static const char kind_table[][NAME_SIZE] = { "", CONFIG_KIND };

int storage_strategy_from_string(const char *text) {
        for (size_t i = 1; i < ARRAY_SIZE(storage_strategy_table); i++)
                if (strcasecmp(storage_strategy_table[i], text) == 0)
                        return (int)i;
        return -EINVAL;
}

/* A key, then its type and the member of Config that bind.c sets. A member of a C type that bind_value()
 * cannot write does not compile. A BOUND() function reads the rows with only a .type. */
#define FIELD(name, text)         .key = name, .doc = DOC(text)
#define AT(what, member)          .type = FIELD_##what, .offset = PLACE(member, IN_##what)
#define BOUND(what, member, with) .type = FIELD_##what, .offset = offsetof(Config, member), .bind = with
#define MAP(rows)                 .type = FIELD_MAP, .fields = rows
#define PLACE(member, stored)     _Generic(((Config *)NULL)->member, stored: offsetof(Config, member))
#define IN_STRING                 char *
#define IN_BOOL                   bool
#define IN_INTEGER                unsigned
#define IN_ENUM                   int           /* so is an enum with a member below 0 */
#define IN_FREE                   json_t *
#define IN_LIST                   char **
#define NAMES(table)              .names = table, .n_names = ARRAY_SIZE(table)
#define CHECK_SCHEME              "[Hh][Tt][Tt][Pp][Ss]?://"
#define CHECK_PLAIN_HOST                                                                                     \
        "^" CHECK_SCHEME "[A-Za-z0-9._-]+(:[0-9]+)?(/.*)?$|"                                                 \
        "^" CHECK_SCHEME "\\[[0-9A-Fa-f:.]+\\](:[0-9]+)?(/.*)?$|^$"

/* An example, and the origin of the key: the nodeadm API, or nodestrap since that version. */
#define NODEADM(text) .example = DOC(text)
#define OURS(text)    .example = DOC(text), .since = "0.1.0"

static const Field string_item[] = { { .type = FIELD_STRING }, {} };

static const Field cluster_fields[] = {
        { FIELD("name", "Name of the EKS cluster; required."),
          AT(STRING, cluster.name), NODEADM("training") },
        { FIELD("apiServerEndpoint", "URL of the API server, https://…; required."),
          .flags = FIELD_NO_NUMBER, .pattern = DOC(CHECK_PLAIN_HOST), AT(STRING, cluster.endpoint),
          NODEADM("https://0123456789ABCDEF0123456789ABCDEF.gr7.us-west-2.eks.amazonaws.com") },
        { FIELD("certificateAuthority", "CA certificates of the cluster, as base64-encoded PEM; required."),
          .pattern = DOC("^[A-Za-z0-9+/=\\r\\n]*$"), BOUND(STRING, cluster, bind_authority),
          NODEADM("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==") },
        { FIELD("cidr", "Service CIDR of the cluster, such as 10.100.0.0/16 or an IPv6 CIDR; required."),
          .flags = FIELD_NO_NUMBER, .pattern = DOC("^[0-9A-Fa-f:.]+/[0-9]{1,3}$|^$"),
          AT(STRING, cluster.cidr), NODEADM("10.100.0.0/16") },
        { FIELD("enableOutpost", "Is this node on an AWS Outpost?"), AT(BOOL, cluster.outpost),
          NODEADM("true") },
        { FIELD("id", "Id of a cluster on an Outpost; required there."), AT(STRING, cluster.id),
          NODEADM("01234567-89ab-cdef-0123-456789abcdef") },
        { FIELD("expectDevices",
                "Report a failure (EDEVICES, NodestrapReady False) if pods cannot get all GPUs, EFA devices "
                "and huge pages of this node within five minutes. kubelet does not wait; see "
                "nodestrap-cluster(7), CONDITION."), AT(BOOL, cluster.expect_devices), OURS("true") },
        { FIELD("repairCondition",
                "Set AcceleratedHardwareReady to False for a GPU that NVIDIA calls unusable, so that EKS or "
                "Karpenter repairs the node."), AT(BOOL, cluster.repair_condition), OURS("true") },
        {}
};

static const Field kubelet_fields[] = {
        { FIELD("config", "All or part of a KubeletConfiguration, merged over that of nodestrap."),
          AT(FREE, kubelet.config),
          NODEADM("{\"maxPods\": 110, \"topologyManagerPolicy\": \"restricted\"}") },
        { FIELD("flags", "Arguments for kubelet, after those of nodestrap."), .flags = FIELD_APPEND,
          .fields = string_item, AT(LIST, kubelet.flags),
          NODEADM("[\"--node-labels=nodegroup=p5\", \"--v=3\"]") },
        { FIELD("maxPodsExpression",
                "CEL expression for maxPods, from default_enis, ips_per_eni, max_pods, vcpus, memory_mib and "
                "physical_memory_mib; config.maxPods wins."), AT(STRING, kubelet.max_pods_expression),
          NODEADM("default_enis * (ips_per_eni - 1) + 2") },
        {}
};

static const Field image_item[] = { { .type = FIELD_STRING, .pattern = DOC("^[!-~]+$") }, {} };

static const Field containerd_fields[] = {
        { FIELD("config", "Configuration of containerd as TOML, merged over that of nodestrap."),
          .type = FIELD_STRING, .flags = FIELD_TOML,
          NODEADM("[plugins.'io.containerd.cri.v1.images']\nmax_concurrent_downloads = 16\n") },
        { FIELD("baseRuntimeSpec", "All or part of an OCI runtime spec, the base of each container."),
          AT(FREE, containerd.base_runtime_spec),
          NODEADM("{\"process\": {\"rlimits\": [{\"type\": \"RLIMIT_NOFILE\", \"soft\": 65536, "
                  "\"hard\": 1048576}]}}") },
        { FIELD("prePull",
                "Images that containerd pulls while kubelet starts; kubelet does not wait for them."),
          .fields = image_item, AT(LIST, containerd.pre_pull),
          OURS("[\"123456789012.dkr.ecr.us-west-2.amazonaws.com/training:7\"]") },
        {}
};

static const Field disabled_mount_item[] = { { .type = FIELD_ENUM, NAMES(disabled_mount_table) }, {} };

static const Field local_storage_fields[] = {
        { FIELD("strategy",
                "How to use the instance store disks: one array, or each mounted separately. RAID10 needs at "
                "least four disks."),
          .flags = FIELD_ANY_CASE, NAMES(storage_strategy_table), AT(ENUM, instance.storage.strategy),
          NODEADM("RAID0") },
        { FIELD("mountPath", "Directory to mount the disks in."), .flags = FIELD_NO_NUMBER,
          .pattern = DOC("^/|^$"), .fallback = "/mnt/k8s-disks",
          BOUND(STRING, instance.storage.mount_path, bind_mount_path), NODEADM("/mnt/disks") },
        { FIELD("disabledMounts", "Data that stays on the root disk."), .fields = disabled_mount_item,
          BOUND(LIST, instance.storage, bind_disabled_mounts), NODEADM("[\"PodLogs\"]") },
        { FIELD("filesystem", "File system of the instance store disks."), NAMES(filesystem_table),
          AT(ENUM, instance.storage.filesystem), OURS("ext4") },
        { FIELD("expectedDisks",
                "Number of instance store disks that must exist; 0: that of the instance type. Without a "
                "strategy, a boot only warns of missing disks."), .max = 1024,
          AT(INTEGER, instance.storage.expected_disks), OURS("8") },
        {}
};

static const Field page_fields[] = {
        { FIELD("size", "Size of one page, such as 2Mi; nodestrap-gpu(7), HUGE PAGES, lists all sizes."),
          .type = FIELD_STRING, .flags = FIELD_NO_NUMBER, .pattern = DOC("^[1-9][0-9]*(Ki|Mi|Gi)$"),
          OURS("2Mi") },
        { FIELD("count", "How many pages: in all, or on numaNode."), .type = FIELD_INTEGER,
          .max = INT32_MAX, OURS("21121") },
        { FIELD("numaNode", "NUMA node to take them from; absent: all nodes with CPUs."),
          .type = FIELD_INTEGER, .max = 1023, OURS("0") },
        {}
};
static const Field page_item[] = { { .type = FIELD_MAP, .fields = page_fields }, {} };

static const Field huge_pages_fields[] = {
        { FIELD("mode", "Keep what is reserved (keep), or reserve none (off), what EFA needs (auto), or "
                        "the listed pages (explicit)."),
          NAMES(hugepages_mode_table), AT(ENUM, instance.hugepages.mode), OURS("auto") },
        { FIELD("pages", "The pages to reserve in mode explicit."), .fields = page_item,
          BOUND(LIST, instance.hugepages, bind_pages), OURS("[{\"size\": \"1Gi\", \"count\": 16}]") },
        { FIELD("onShortfall", "Fail or warn if the kernel cannot reserve them all."), NAMES(policy_table),
          AT(ENUM, instance.hugepages.on_shortfall), OURS("warn") },
        {}
};

static const Field efa_fields[] = {
        { FIELD("mode", "auto: use EFA if there is any; require: fail without it; off: leave it alone."),
          NAMES(efa_mode_table), AT(ENUM, instance.efa), OURS("require") },
        { FIELD("expectedDevices", "How many EFA devices there must be; 0: any number; with mode require, "
                                   "at least one."), .max = 1024,
          AT(INTEGER, instance.expected_efa), OURS("32") },
        {}
};

static const Field network_fields[] = {
        { FIELD("nameservers", "DNS servers of the node."), .fields = string_item,
          AT(LIST, instance.nameservers), NODEADM("[\"10.0.0.2\"]") },
        { FIELD("domains", "DNS search domains of the node."), .fields = string_item,
          AT(LIST, instance.domains), NODEADM("[\"example.internal\"]") },
        { FIELD("efa", "Elastic Fabric Adapters."), MAP(efa_fields), OURS("{\"mode\": \"require\"}") },
        /* IPv6 wants 1280 (RFC 8200, section 5); jumbo frames of EC2 have 9001
         * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/network_mtu.html) */
        { FIELD("mtu", "MTU of each interface, in bytes; absent: that of the network, 9001."),
          .min = 1280, .max = 9001, AT(INTEGER, instance.mtu), OURS("8500") },
        {}
};

static const Field environment_item[] = {
        { .type = FIELD_DICT, .doc = DOC("Variables for one service, or, under \"default\", for several."),
          .fields = string_item },
        {}
};

static const Field target_item[] = { { .type = FIELD_STRING }, {} };
static const Field volume_fields[] = {
        { FIELD("device", "Name in the launch template (/dev/xvdb), id (vol-0123), or device node."),
          .type = FIELD_STRING, NODEADM("/dev/xvdb") },
        { FIELD("mountTarget", "Directory to mount it on."), .type = FIELD_STRING, .flags = FIELD_NO_NUMBER,
          .pattern = DOC("^/|^$"), NODEADM("/var/lib/containerd") },
        { FIELD("mountTargets", "Directories that share the volume; use this or mountTarget."),
          .type = FIELD_LIST, .fields = target_item, OURS("[\"/var/lib/kubelet\", \"/data\"]") },
        { FIELD("fsType", "File system for a blank volume."), .type = FIELD_ENUM,
          NAMES(filesystem_table), NODEADM("ext4") },
        {}
};
static const Field volume_item[] = { { .type = FIELD_MAP, .fields = volume_fields }, {} };
static const Field storage_fields[] = {
        { FIELD("volumes", "EBS volumes and where they are mounted."), .fields = volume_item,
          BOUND(LIST, instance, bind_volumes),
          NODEADM("[{\"device\": \"/dev/xvdb\", \"mountTarget\": \"/data\"}]") },
        {}
};

static const Field instance_fields[] = {
        { FIELD("localStorage", "Instance store disks."), MAP(local_storage_fields),
          NODEADM("{\"strategy\": \"RAID0\"}") },
        { FIELD("storage", "EBS volumes."), MAP(storage_fields),
          NODEADM("{\"volumes\": [{\"device\": \"/dev/xvdb\", \"mountTarget\": \"/data\"}]}") },
        { FIELD("hugePages", "Huge pages, reserved before kubelet counts them."), MAP(huge_pages_fields),
          OURS("{\"mode\": \"auto\"}") },
        { FIELD("environment",
                "Environment variables by service, with or without .service. The entry default is for "
                "containerd, kubelet, SOCI and each service named here; when nodestrap runs as nodeadm, "
                "for all services. A variable name has letters, digits and _. For proxies see "
                "nodestrap(8), ENVIRONMENT."), .fields = environment_item,
          BOUND(DICT, instance, bind_environment),
          NODEADM("{\"default\": {\"HTTPS_PROXY\": \"http://10.0.0.8:3128\", "
                  "\"HTTP_PROXY\": \"http://10.0.0.8:3128\", "
                  "\"NO_PROXY\": \"169.254.169.254,10.0.0.0/8,.internal,.eks.amazonaws.com\"}}") },
        { FIELD("network", "Name resolution and network devices."), MAP(network_fields),
          NODEADM("{\"efa\": {\"mode\": \"require\"}}") },
        { FIELD("sysctl", "Kernel settings by name."), .fields = string_item,
          BOUND(DICT, instance, bind_sysctl), OURS("{\"net.core.somaxconn\": \"4096\"}") },
        { FIELD("tuning",
                "With GPUs: audit warns about settings that slow GPUs down; gpu also changes the CPU "
                "settings; off does neither."),
          NAMES(tuning_mode_table), AT(ENUM, instance.tuning), OURS("gpu") },
        { FIELD("strictNodeName",
                "Wait until EC2 returns the node name, and never assume one."),
          AT(BOOL, instance.strict_node_name), OURS("true") },
        {}
};

static const Field fabric_fields[] = {
        { FIELD("manager", "Run the NVIDIA fabric manager."), NAMES(fabric_manager_table),
          AT(ENUM, nvidia.fabric_manager), OURS("on") },
        { FIELD("gate", "Must the fabric be ready before kubelet starts?"), NAMES(fabric_gate_table),
          AT(ENUM, nvidia.fabric_gate), OURS("warn") },
        { FIELD("timeout", "Longest wait for the fabric, such as 90s, 5m or 1h30m; 90 is 90 seconds."),
          .fallback = "5m",
          .pattern = DOC("^([0-9]+(ms|s|m|h)?)+$|^$"),
          BOUND(STRING, nvidia.fabric_timeout_usec, bind_timespan),
          OURS("10m") },
        {}
};

static const Field imex_fields[] = {
        { FIELD("mode",
                "Share memory between nodes: not at all (off), through the DRA driver (dra), or through a "
                "service on this host (host). auto is dra on GB200 and GB300; elsewhere it leaves IMEX as "
                "the image has it."),
          NAMES(imex_mode_table), AT(ENUM, nvidia.imex), OURS("dra") },
        { FIELD("nodes", "For mode host: addresses of all nodes of the domain."), .fields = string_item,
          AT(LIST, nvidia.imex_nodes), OURS("[\"10.0.1.11\", \"10.0.1.12\"]") },
        { FIELD("channels", "How many IMEX channels; the same on all nodes of the domain."), .max = 1 << 20,
          .fallback = "2048", AT(INTEGER, nvidia.imex_channels), OURS("2048") },
        { FIELD("createChannel0", "Make the device file of IMEX channel 0."), AT(BOOL, nvidia.imex_channel0),
          OURS("true") },
        { FIELD("label", "Register the node with the label nvidia.com/gpu.clique."),
          AT(BOOL, nvidia.imex_label), OURS("true") },
        {}
};

static const Field gpu_index_item[] = { { .type = FIELD_INTEGER, .max = 63 }, {} };
static const Field profile_item[] = { { .type = FIELD_INTEGER, .min = 1, .max = 64 }, {} };
static const Field mig_fields[] = {
        { FIELD("devices", "Indexes of GPUs as nvidia-smi numbers them, or all."), .type = FIELD_LIST,
          .flags = FIELD_OR_TEXT | FIELD_NO_NUMBER, .fields = gpu_index_item, .pattern = DOC("^(all)?$"),
          OURS("[0, 1]") },
        { FIELD("profiles", "Number of instances by profile, such as 1g.10gb: 7 on an H100."),
          .type = FIELD_DICT, .fields = profile_item, OURS("{\"1g.10gb\": 7}") },
        {}
};
static const Field mig_item[] = { { .type = FIELD_MAP, .fields = mig_fields }, {} };

static const Field nvidia_fields[] = {
        { FIELD("mode", "Set up NVIDIA GPUs where there are any."), NAMES(nvidia_mode_table),
          AT(ENUM, nvidia.mode), OURS("auto") },
        { FIELD("fabric", "NVSwitch and NVLink fabric."), MAP(fabric_fields),
          OURS("{\"gate\": \"require\"}") },
        { FIELD("imex", "Memory exchange between nodes of one NVLink domain."), MAP(imex_fields),
          OURS("{\"mode\": \"dra\"}") },
        { FIELD("mig",
                "Partitions of GPUs; absent: those of /etc/default/mig, or else the present ones; off: turn "
                "MIG mode off. Short form for all GPUs: \"19,19,19\"."),
          .flags = FIELD_OR_TEXT, .fields = mig_item,
          .pattern = DOC("^[0-9a-z.+-]+( *, *[0-9a-z.+-]+)*$|^$"), BOUND(LIST, nvidia, bind_mig),
          OURS("[{\"devices\": \"all\", \"profiles\": {\"1g.10gb\": 7}}]") },
        { FIELD("memoryMode",
                "Manager of coherent GPU memory: the driver (driver, CDMM), or the kernel, as NUMA nodes "
                "(numa)."),
          NAMES(memory_mode_table), AT(ENUM, nvidia.memory), OURS("driver") },
        { FIELD("clocks", "GPU clocks."), NAMES(clocks_table), AT(ENUM, nvidia.clocks), OURS("max") },
        { FIELD("health", "Must the hardware be healthy before kubelet starts?"), NAMES(health_policy_table),
          AT(ENUM, nvidia.health), OURS("require") },
        { FIELD("gpuDirect", "Must EFA reach GPU memory? off: do not check, set no driver option."),
          NAMES(gpu_direct_table), AT(ENUM, nvidia.gpu_direct), OURS("on") },
        { FIELD("prove", "Test the memory, the arithmetic and the links of the GPUs before kubelet starts."),
          NAMES(prove_mode_table), AT(ENUM, nvidia.prove), OURS("quick") },
        { FIELD("proveTimeout", "Time limit for prove, from 5s to 1h."), .fallback = "60s",
          .pattern = DOC("^([0-9]+(ms|s|m|h)?)+$|^$"),
          BOUND(STRING, nvidia.prove_timeout_usec, bind_timespan),
          OURS("90s") },
        {}
};

static const Field accelerator_fields[] = {
        { FIELD("nvidia", "NVIDIA GPUs."), MAP(nvidia_fields), OURS("{\"health\": \"require\"}") },
        {}
};

/* nodeadm/internal/api/featuregates.go; the last one since autumn 2026 (awslabs/amazon-eks-ami#2791). */
const Field feature_gates[] = {
        { FIELD("InstanceIdNodeName",
                "Name the node after its instance id, not its private DNS name. The cluster must map the "
                "instance role to that name; see nodestrap-cluster(7), NAME OF THE NODE."),
          AT(BOOL, gates.instance_id_node_name), NODEADM("true") },
        { FIELD("FastImagePull", "Pull and unpack images in parallel on machines that are large enough."),
          AT(BOOL, gates.fast_image_pull), NODEADM("true") },
        { FIELD("OSManagedNoManageENIs",
                "Have systemd-networkd configure the interfaces that are tagged "
                "node.k8s.amazonaws.com/no_manage=true, which the CNI leaves alone."),
          AT(BOOL, gates.no_manage_enis), NODEADM("true") },
        {}
};

static const Field spec_fields[] = {
        { FIELD("cluster", "The cluster that this node joins."), MAP(cluster_fields),
          NODEADM("{\"name\": \"training\"}") },
        { FIELD("kubelet", "Settings of kubelet."), MAP(kubelet_fields),
          NODEADM("{\"config\": {\"maxPods\": 110}}") },
        { FIELD("containerd", "Settings of containerd."), MAP(containerd_fields), NODEADM("{}") },
        { FIELD("instance", "The machine itself."), MAP(instance_fields),
          NODEADM("{\"localStorage\": {\"strategy\": \"RAID0\"}}") },
        { FIELD("accelerator", "Accelerators."), MAP(accelerator_fields),
          OURS("{\"nvidia\": {\"health\": \"require\"}}") },
        { FIELD("featureGates", "Features by name; true or false."), .type = FIELD_DICT, .flags = FIELD_GATES,
          .fields = feature_gates, .bind = bind_gates, NODEADM("{\"InstanceIdNodeName\": true}") },
        { FIELD("failurePolicy", "If a device step fails: keep kubelet down (hold), or join with a "
                                 "taint (join-tainted). reboot and poweroff act like hold; where hardware "
                                 "has failed, they also reboot once, or power off after 10 to 30 minutes."),
          NAMES(failure_policy_table), AT(ENUM, failure_policy), OURS("join-tainted") },
        {}
};

const Field nodeconfig_fields[] = {
        { FIELD("apiVersion", "Group and version."), .type = FIELD_ENUM, .flags = FIELD_NEEDED,
          NAMES(api_version_table), NODEADM("node.eks.aws/v1alpha1") },
        { FIELD("kind", "Kind."), .type = FIELD_ENUM, .flags = FIELD_NEEDED, NAMES(kind_table),
          NODEADM("NodeConfig") },
        { FIELD("metadata", "Ignored."), .type = FIELD_IGNORED, NODEADM("{\"name\": \"training\"}") },
        { FIELD("spec", "Settings of this node."), MAP(spec_fields),
          NODEADM("{\"failurePolicy\": \"hold\"}") },
        {}
};

const Field *fields_find(const Field *fields, const char *key) {
        while (*fields->key && !streq(fields->key, key))
                fields++;
        return *fields->key ? fields : NULL;
}

/* The path of the key, wherever it is in the tree. */
static char *find_elsewhere(const Field *fields, const char *key, const char *prefix) {
        for (; *fields->key; fields++) {
                _free_ char *path = xasprintf("%s%s%s", prefix, *prefix ? "." : "", fields->key);
                if (streq(fields->key, key))
                        return TAKE_PTR(path);
                char *found = fields->type == FIELD_MAP ? find_elsewhere(fields->fields, key, path) : NULL;
                if (found)
                        return found;
        }
        return NULL;
}

char *fields_suggest(const Field *fields, const char *key) {
        /* two branches name the same thing differently */
        static const char *const siblings[][2] = { { "filesystem", "fsType" }, { "fsType", "filesystem" },
                                                   { "name", "device" }, { "volumeId", "device" } };
        __auto_type own = FIND(s, siblings, ARRAY_SIZE(siblings),
                               streq((*s)[0], key) && fields_find(fields, (*s)[1]));
        if (own)
                return xstrdup((*own)[1]);
        Nearest near = { .text = key };
        for (; *fields->key; fields++)
                nearest_try(&near, fields->key);
        return near.best ? xstrdup(near.best) : find_elsewhere(nodeconfig_fields, key, "");
}

int field_enum_index(const Field *f, const char *text) {
        for (size_t i = 0; i < f->n_names; i++)
                if (*f->names[i] && (f->flags & FIELD_ANY_CASE ? strcasecmp(f->names[i], text)
                                                               : strcmp(f->names[i], text)) == 0)
                        return (int)i;
        return -EINVAL;
}

char *field_enum_list(const Field *f) {
        Text t = {};
        for (size_t i = 0; i < f->n_names; i++)
                if (*f->names[i])
                        text_add(&t, "%s%s", t.size > 0 ? ", " : "", f->names[i]);
        return text_take(&t);
}

const char *field_fallback(const Field *f) {
        return f->names && *f->names[0] ? f->names[0] : f->fallback;
}

int64_t field_fallback_number(const Field *f) {
        uint64_t n = 0;
        return f->fallback && parse_u64(f->fallback, &n) >= 0 ? (int64_t)n : 0;
}
