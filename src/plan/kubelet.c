/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet configuration: a table of settings by version, what the machine decides, and the settings of
 * the user, as a drop-in from 1.28 on. Values as in nodeadm
 * (awslabs/amazon-eks-ami:nodeadm/internal/kubelet). */
#include "plan/planner.h"
#include "base/str.h"
#include "config/kubelet.h"
#include "doc/doc.h"
#include "redact/secret.h"
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>

#define CONFIG_FILE  "/etc/kubernetes/kubelet/config.json"
#define CONFIG_DIR   "/etc/kubernetes/kubelet/config.json.d"
#define CONFIG_USER  CONFIG_DIR "/40-nodeadm.conf"
#define DROP_IN_FROM 28         /* --config-dir is new in 1.28 (kubernetes KEP-3983) */

/* A setting for kubelet 1.from to below 1.until (0: no end). value is JSON; NULL: the machine decides. In the
 * order of the nodeadm file, which people compare and patch. */
typedef struct Setting { const char *path; unsigned from, until; const char *value; } Setting;
#define KIND        "\"KubeletConfiguration\""
#define API_VERSION "\"kubelet.config.k8s.io/v1beta1\""
static const Setting settings[] = {
        { "address",                                         0,  0, "\"0.0.0.0\"" },
        { "authentication/x509/clientCAFile",                0,  0, "\"" CLUSTER_CA "\"" },
        { "authentication/webhook/enabled",                  0,  0, "true" },
        { "authentication/webhook/cacheTTL",                 0,  0, "\"2m0s\"" },
        { "authentication/anonymous/enabled",                0,  0, "false" },
        { "authorization/mode",                              0,  0, "\"Webhook\"" },
        { "authorization/webhook/cacheAuthorizedTTL",        0,  0, "\"5m0s\"" },
        { "authorization/webhook/cacheUnauthorizedTTL",      0,  0, "\"30s\"" },
        { "cgroupDriver",                                    0,  0, "\"systemd\"" },
        { "cgroupRoot",                                      0,  0, "\"/\"" },
        { "clusterDNS",                                      0,  0, NULL },
        { "clusterDomain",                                   0,  0, "\"cluster.local\"" },
        { "containerRuntimeEndpoint",                        0,  0, NULL },
        { "imageServiceEndpoint",                            0,  0, NULL },
        { "evictionHard/memory.available",                   0,  0, "\"100Mi\"" },
        { "evictionHard/nodefs.available",                   0,  0, "\"10%\"" },
        { "evictionHard/nodefs.inodesFree",                  0,  0, "\"5%\"" },
        { "featureGates/DynamicResourceAllocation",         33, 38, "true" }, /* eks-ami#2285 */
        { "featureGates/KubeletCredentialProviders",         0, 28, "true" },
        { "featureGates/MutableCSINodeAllocatableCount",    34, 38, "true" }, /* eks-ami#2389 */
        { "featureGates/RotateKubeletServerCertificate",     0,  0, "true" },
        { "hairpinMode",                                     0,  0, "\"hairpin-veth\"" },
        /* the default of kubelet is higher from 1.27 on */
        { "kubeAPIBurst",                                   22, 27, "20" },
        { "kubeAPIQPS",                                     22, 27, "10" },
        { "kubeReserved/cpu",                                0,  0, NULL },
        { "kubeReserved/ephemeral-storage",                  0,  0, "\"1Gi\"" },
        { "kubeReserved/memory",                             0,  0, NULL },
        { "kubeReservedCgroup",                              0,  0, "\"/runtime\"" },
        { "logging/verbosity",                               0,  0, "2" },
        { "maxPods",                                         0,  0, NULL },
        { "protectKernelDefaults",                           0,  0, "true" },
        /* for the external cloud provider: kubernetes#121367 */
        { "providerID",                                     26,  0, NULL },
        { "readOnlyPort",                                    0,  0, "0" },
        { "serializeImagePulls",                             0,  0, "false" },
        { "serverTLSBootstrap",                              0,  0, "true" },
        /* eks-ami#2390: EC2 grants about 3 minutes */
        { "shutdownGracePeriod",                            34,  0, "\"2m30s\"" },
        { "shutdownGracePeriodCriticalPods",                34,  0, "\"30s\"" },
        { "systemReservedCgroup",                            0,  0, "\"/system\"" },
        { "tlsCipherSuites",                                 0,  0,
          "[\"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\", \"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384\", "
          "\"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305\", \"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\", "
          "\"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384\", "
          "\"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305\", \"TLS_RSA_WITH_AES_128_GCM_SHA256\", "
          "\"TLS_RSA_WITH_AES_256_GCM_SHA384\"]" },
        { "kind",                                            0,  0, KIND },
        { "apiVersion",                                      0,  0, API_VERSION },
};

/* Gates GA from 1.from on, which kubelet warns about. It does not start with one that it no longer knows: the
 * table above ends there (kubernetes:pkg/features/kube_features.go). */
static const struct { const char *path; unsigned from; } stable_gates[] = {
        { "featureGates/DynamicResourceAllocation", 34 },
        { "featureGates/KubeletCredentialProviders", 26 },
        { "featureGates/MutableCSINodeAllocatableCount", 36 },
};

int cluster_dns(const char *cidr, char **ret_address, bool *ret_is_ipv6) {
        unsigned char address[16] = {};
        char text[INET6_ADDRSTRLEN];
        const char *slash = strchr(cidr, '/');
        uint64_t prefix;
        if (!slash || parse_u64(slash + 1, &prefix) < 0)
                return -EINVAL;
        _free_ char *network = xstrndup(cidr, (size_t)(slash - cidr));
        int family = strchr(network, ':') ? AF_INET6 : AF_INET;
        size_t bits = family == AF_INET6 ? 128 : 32;
        /* 16 addresses have a 10th */
        if (inet_pton(family, network, address) != 1 || prefix > bits - 4)
                return -EINVAL;
        for (size_t bit = prefix; bit < bits; bit++)
                address[bit / 8] &= (unsigned char)~(0x80u >> bit % 8);
        address[bits / 8 - 1] |= 10;
        *ret_address = xstrdup(inet_ntop(family, address, text, sizeof(text)));
        *ret_is_ipv6 = family == AF_INET6;
        return 0;
}

/* 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest. */
unsigned cpu_reserved_millicores(unsigned cpus) {
        static const struct {
                unsigned upto, per_10000;
        } bands[] = { { 1000, 600 }, { 2000, 100 }, { 4000, 50 }, { UINT_MAX, 25 } };
        unsigned total = cpus * 1000, from = 0, sum = 0;
        for (size_t i = 0; i < ARRAY_SIZE(bands) && total > from; from = bands[i++].upto)
                sum += (MIN(total, bands[i].upto) - from) * bands[i].per_10000 / 10000;
        return sum;
}

/* "": leave the setting out */
typedef struct Decided { const char *path; char *json; } Decided;

static bool has_reserved_cpus(const json_t *user, _unused_ unsigned minor) {
        return *json_get_text(user, "reservedSystemCPUs");
}

static bool is_gate_off(const json_t *user, const char *name, unsigned minor) {
        return kubelet_gate_state(json_object_get(user, "featureGates"), name, minor) == 0;
}

static bool has_other_shutdown(const json_t *user, unsigned minor) {
        return is_gate_off(user, "GracefulNodeShutdown", minor) ||
               json_array_size(json_object_get(user, "shutdownGracePeriodByPodPriority")) > 0;
}

static bool has_short_shutdown(const json_t *user, unsigned minor) {
        double all;
        const char *text = json_get_text(user, "shutdownGracePeriod");
        return has_other_shutdown(user, minor) ||
               json_is_null(json_object_get(user, "shutdownGracePeriod")) ||
               (kubelet_parse_duration(text, &all) && all < 30);
}

static bool has_no_server_certificate(const json_t *user, unsigned minor) {
        return is_gate_off(user, "RotateKubeletServerCertificate", minor);
}

/* Our settings yield where kubelet would not start with both (awslabs/amazon-eks-ami#1334, #2794;
 * kubernetes/kubernetes:pkg/kubelet/apis/config/validation). */
static const struct Yielding {
        const char *key;
        bool (*yields)(const json_t *user, unsigned minor);
        const char *to;
} yielding[] = {
        { "kubeReservedCgroup", has_reserved_cpus, "reservedSystemCPUs" },
        { "serverTLSBootstrap", has_no_server_certificate, "RotateKubeletServerCertificate: false" },
        { "shutdownGracePeriod", has_other_shutdown, "your shutdown settings" },
        { "shutdownGracePeriodCriticalPods", has_short_shutdown, "your shutdown settings" },
        { "systemReservedCgroup", has_reserved_cpus, "reservedSystemCPUs" },
};

/* Removes what yields; said gets the reasons. */
static void yield(json_t *ours, const Config *config, unsigned minor, Text *said) {
        _strv_ char **words = kubelet_words(config->kubelet.flags);
        _cleanup_(json_decrefp) json_t *user =
                config->kubelet.config ? json_deep_copy(config->kubelet.config) : json_object();
        kubelet_flags_merge(user, words);
        for (size_t i = 0; i < ARRAY_SIZE(yielding); i++) {
                const char *key = yielding[i].key;
                if (!json_object_get(ours, key) || !yielding[i].yields(user, minor))
                        continue;
                text_add(said, "; without %s because of %s", key, yielding[i].to);
                json_object_del(ours, key);
        }
        /* shutdownGracePeriod includes that of critical pods. */
        const char *whole = json_get_text(ours, "shutdownGracePeriod"),
                   *end = json_get_text(user, "shutdownGracePeriodCriticalPods");
        double has, wants;
        if (!*whole || *json_get_text(user, "shutdownGracePeriod") || !kubelet_parse_duration(whole, &has) ||
            !kubelet_parse_duration(end, &wants) || wants <= has)
                return;
        text_add(said, "; shutdownGracePeriod %s to cover shutdownGracePeriodCriticalPods", end);
        json_set_text(ours, "shutdownGracePeriod", end);
}

static json_t *kubelet_settings(const Config *config, const Host *host, const PlanOptions *options,
                                const MaxPods *pods, const char *dns, Text *said, Diag *warnings) {
        const char *reason;
        const char *socket = plan_containerd_socket(config, host, options->as_nodeadm);
        bool soci = plan_uses_soci(config, host, &reason);
        Decided decided[] = {
                { "clusterDNS", xasprintf("[\"%s\"]", dns) },
                { "containerRuntimeEndpoint", xasprintf("\"unix://%s\"", socket) },
                { "imageServiceEndpoint", xstrdup(soci ? "\"unix://" SOCI_SOCKET "\"" : "") },
                { "kubeReserved/cpu", xasprintf("\"%um\"", cpu_reserved_millicores(host->cpus)) },
                { "kubeReserved/memory", xasprintf("\"%lluMi\"", 11ULL * pods->pods + 255) },
                { "maxPods", xasprintf("%u", pods->pods) },
                { "providerID", xasprintf("\"aws:///%s/%s\"", host->instance.zone, host->instance.id) },
        };
        json_t *all = json_object();
        if (host->cpus == 0)
                diag_warn(warnings, "no-cpu-count",
                          "the number of CPUs is not known, so no CPU is reserved for kubelet and "
                          "containerd");
        for (const Setting *s = settings; s < settings + ARRAY_SIZE(settings); s++) {
                const char *json = s->value;
                for (size_t k = 0; k < ARRAY_SIZE(decided); k++)
                        if (streq(decided[k].path, s->path))
                                json = decided[k].json;
                json_t *value = json && *json ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;
                /* kubelet warns about stable gates; nodeadm writes them */
                if (value && version_at_least(host->kubelet_version, 1, s->from) &&
                    !(s->until && version_at_least(host->kubelet_version, 1, s->until)) &&
                    (options->as_nodeadm ||
                     !ANY(g, stable_gates, ARRAY_SIZE(stable_gates),
                          streq(g->path, s->path) && version_at_least(host->kubelet_version, 1, g->from))))
                        json_put(all, s->path, value);
                else
                        json_decref(value);
        }
        for (size_t i = 0; i < ARRAY_SIZE(decided); i++)
                free(decided[i].json);
        yield(all, config, version_minor(host->kubelet_version), said);
        if (!version_at_least(host->kubelet_version, 1, DROP_IN_FROM) && config->kubelet.config)
                json_merge_deep(all, config->kubelet.config);   /* no --config-dir yet */
        return all;
}

static void plan_settings(Plan *plan, const Config *config, const Host *host, const PlanOptions *options,
                          const MaxPods *pods, const char *dns) {
        _cleanup_(text_done) Text said = {};
        json_t *all = kubelet_settings(config, host, options, pods, dns, &said, &plan->warnings);
        bool merged = !version_at_least(host->kubelet_version, 1, DROP_IN_FROM) && config->kubelet.config;
        _free_ char *text = json_text(all, 4, false);
        _free_ char *why =
                xasprintf("kubelet %s, maxPods %u (%s), DNS %s%s%s", host->kubelet_version, pods->pods,
                          pods->source, dns, merged ? "; with user settings" : "", said.data ?: "");
        plan_users_file(plan, "kubelet", CONFIG_FILE, why, text, merged,
                        json_holds_secret(config->kubelet.config));
        json_decref(all);
}

/* kubelet merges it over config.json. A drop-in needs its kind; the user may omit it. */
static void plan_user_settings(Plan *plan, const json_t *user, const char *version) {
        json_t *all = json_object(), *unused;
        const char *key;
        KubeletSetting s;
        json_object_foreach((json_t *)user, key, unused) {
                _free_ char *path = xasprintf("spec.kubelet.config.%s", key);
                if (kubelet_setting_find(key, &s) && !version_at_least(version, 1, s.since))
                        diag_warn_at(&plan->warnings, "kubelet-setting", NULL, path,
                                     "kubelet %s ignores it: it is new in 1.%u", version, s.since);
        }
        json_put(all, "kind", json_loads(KIND, JSON_DECODE_ANY, NULL));
        json_put(all, "apiVersion", json_loads(API_VERSION, JSON_DECODE_ANY, NULL));
        json_object_update(all, (json_t *)user);
        _free_ char *text = json_text(all, 4, true);
        size_t n = json_object_size(user);
        _free_ char *why = xasprintf("%zu kubelet setting%s from the user", n, n == 1 ? "" : "s");
        plan_users_file(plan, "kubelet", CONFIG_USER, why, text, true, json_holds_secret(user));
        json_decref(all);
}

static void add_flag(char ***flags, const char *name, const char *value) {
        strv_push(flags, xasprintf("--%s=%s", name, value));
}

static int add_node_flags(char ***flags, const Config *config, const Host *host, bool ipv6, Diag *diag) {
        const Instance *instance = &host->instance;
        const char *name = config->gates.instance_id_node_name ? instance->id : instance->private_dns_name;
        const char *address = ipv6 ? instance->ipv6 : instance->ipv4;
        int r = 0;
        if (!name)
                r = diag_error(diag, -EINVAL, CAUSE_FACTS,
                               "the private DNS name of the instance is not known, but it must be the node "
                               "name; to use the instance id, set spec.featureGates.InstanceIdNodeName: "
                               "true");
        if (!address)
                r = diag_error_at(diag, -EINVAL, CAUSE_FACTS, NULL, "spec.cluster.cidr",
                                  "the primary interface has no %s address, but the services of the cluster "
                                  "use that family", ipv6 ? "IPv6" : "IPv4");
        if (r < 0)
                return r;
        add_flag(flags, "node-ip", address);
        if (version_at_least(host->kubelet_version, 1, 26)) {
                add_flag(flags, "cloud-provider", "external");
                add_flag(flags, "hostname-override", name);
        } else
                add_flag(flags, "cloud-provider", "aws");
        return 0;
}

static void add_version_flags(char ***flags, const Host *host, bool as_nodeadm, const char *socket) {
        const char *version = host->kubelet_version;
        /* for container metrics of containerd: eks-ami#1667 */
        add_flag(flags, "runtime-cgroups", "/runtime.slice/containerd.service");
        if (!version_at_least(version, 1, 27)) {
                add_flag(flags, "container-runtime", "remote");
                _free_ char *endpoint = xasprintf("unix://%s", socket);
                add_flag(flags, "container-runtime-endpoint", endpoint);
        }
        /* later only containerd pins the image: kubernetes#118544 */
        if (!version_at_least(version, 1, 28))
                add_flag(flags, "pod-infra-container-image", SANDBOX_IMAGE);
        /* eks-ami#2607: by devices, not by type. AWS guide for P6e (awsdocs/amazon-eks-user-guide,
         * ml-eks-nvidia-ultraserver.adoc): the DRA driver selects nodes by it from 1.33 on. */
        if (version_at_least(version, 1, as_nodeadm ? 35 : 33) &&
            ANY(p, host->pci, host->n_pci, p->vendor == 0x10de))
                add_flag(flags, "node-labels", "nvidia.com/gpu.present=true");
}

/* kubelet exits if it does not know a flag. Versions outside the tables may know more. */
static bool knows_flag(const char *version, const char *word, KubeletFlag *ret) {
        if (kubelet_flag_find(word, ret))
                return version_at_least(version, 1, ret->from) &&
                       !(ret->until && version_at_least(version, 1, ret->until));
        *ret = (KubeletFlag){ .key = "" };
        return !version_at_least(version, 1, KUBELET_TABLES_FROM) ||
               version_at_least(version, 1, KUBELET_TABLES_TO + 1);
}

static int check_flag(char *element, size_t i, const Host *host, Diag *diag) {
        _free_ char *path = xasprintf("spec.kubelet.flags[%zu]", i);
        _strv_ char **words = kubelet_words((char *[]){ element, NULL });
        int r = 0;
        for (char **w = words; w && *w; w++) {
                KubeletFlag f;
                if (!startswith(*w, "--") || knows_flag(host->kubelet_version, *w, &f))
                        continue;
                _free_ char *name = kubelet_flag_name(*w);
                const char *near = f.name ? NULL : kubelet_flag_nearest(name);
                r = diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, path,
                                  "kubelet %s does not know --%s and would exit", host->kubelet_version,
                                  f.name ?: name);
                if (near)
                        diag_suggest(diag, "--%s", near);
                else if (*f.key && !f.from)
                        diag_instead(diag, "spec.kubelet.config.%s", f.key);
        }
        return r;
}

static void warn_of_versions(Plan *plan, const Host *host) {
        const char *version = host->kubelet_version;
        if (host->containerd_version && version_at_least(host->containerd_version, 3, 0))
                diag_warn(&plan->warnings, "containerd-version",
                          "containerd %s is newer than containerd 2, which this nodestrap knows: containerd "
                          "may read the configuration differently; update nodestrap",
                          host->containerd_version);
        if (version_at_least(version, 1, KUBELET_TABLES_TO + 1))
                diag_warn(&plan->warnings, "kubelet-version",
                          "this nodestrap knows kubelet up to 1.%d, not %s: settings and flags may differ; "
                          "update nodestrap", KUBELET_TABLES_TO, version);
        else if (!version_at_least(version, 1, KUBELET_TABLES_FROM))
                diag_warn(&plan->warnings, "kubelet-version",
                          "this nodestrap knows kubelet 1.%d and newer, not %s: settings and flags may "
                          "differ; update kubelet", KUBELET_TABLES_FROM, version);
}

static void foretell(void *context, const char *path, const char *fault) {
        Plan *plan = context;
        diag_warn_at(&plan->warnings, "kubelet-setting", NULL, path, "%s; as it is, kubelet would not start",
                     fault);
        if (!plan->as_nodeadm)          /* nodeadm writes it anyway */
                diag_foretell(&plan->warnings, CAUSE_INVALID);
}

/* Another program may serve CRI there, in front of containerd. */
static void check_endpoint(Plan *plan, const Config *config, const Host *host, const json_t *all) {
        static const char key[] = "containerRuntimeEndpoint";
        const char *socket = plan_containerd_socket(config, host, plan->as_nodeadm),
                   *theirs = json_get_text(all, key), *colon = strstr(theirs, ":/");
        _free_ char *path = kubelet_setting_path(config->kubelet.config, config->kubelet.flags, key);
        const char *real = colon ? colon + strspn(colon, ":/") - 1 : theirs;
        real += startswith(real, "/var/run/") ? strlen("/var") : 0;
        if (path && *theirs && !streq(real, socket))
                diag_warn_at(&plan->warnings, "kubelet-setting", NULL, path,
                             "is not %s, where containerd listens; kubelet does not start unless another "
                             "program serves CRI at this endpoint", socket);
}

/* Checks all written settings together. */
static void judge_settings(Plan *plan, const Config *config, const Host *host) {
        _cleanup_(json_decrefp) json_t *all = node_settings(plan, host);
        unsigned minor = version_minor(host->kubelet_version);
        bool known = host->type || !host->modelled;     /* a model of an unknown type has one NUMA node */
        KubeletSetting s;
        const char *key;
        void *next;
        json_t *unused;
        json_object_foreach_safe(all, next, key, unused)
                if (kubelet_setting_find(key, &s) && s.since > minor)
                        json_object_del(all, key);      /* kubelet ignores it */
        KubeletGiven given = { .all = all, .user = config->kubelet.config, .flags = config->kubelet.flags,
                               .minor = minor, .cpus = host->cpus,
                               .nodes = known ? (unsigned)kubelet_numa_nodes(config, host) : 0,
                               .whole = true };
        (void)!kubelet_judge(&given, foretell, plan);
        check_endpoint(plan, config, host, all);
}

int plan_kubelet(Plan *plan, const Config *config, const Host *host, const PlanOptions *options, Diag *diag) {
        _free_ char *dns = NULL;
        _strv_ char **flags = NULL;
        bool ipv6 = false;
        if (!config->cluster.cidr || cluster_dns(config->cluster.cidr, &dns, &ipv6) < 0)
                return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, "spec.cluster.cidr",
                                     "is not a service range with room for the DNS address of the cluster; "
                                     "write it like 10.100.0.0/16");
        int r = add_node_flags(&flags, config, host, ipv6, diag);
        for (size_t i = 0; i < strv_length(config->kubelet.flags); i++) {
                int k = check_flag(config->kubelet.flags[i], i, host, diag);
                r = MIN(r, k);
        }
        int g = kubelet_gate_check(config, host->kubelet_version, !options->as_nodeadm,
                                   options->as_nodeadm ? &plan->warnings : diag);
        if (r < 0 || g < 0)
                return MIN(r, g);

        warn_of_versions(plan, host);
        MaxPods pods = max_pods_choose(config, host, &plan->warnings);
        plan_settings(plan, config, host, options, &pods, dns);
        add_flag(&flags, "config", CONFIG_FILE);
        if (version_at_least(host->kubelet_version, 1, DROP_IN_FROM) &&
            json_object_size(config->kubelet.config) > 0) {
                plan_user_settings(plan, config->kubelet.config, host->kubelet_version);
                add_flag(&flags, "config-dir", CONFIG_DIR);
        }
        add_version_flags(&flags, host, options->as_nodeadm,
                          plan_containerd_socket(config, host, options->as_nodeadm));
        kubelet_access(plan, config, host, options, &flags);
        strv_sort(flags);
        kubelet_arguments(plan, config, host, flags);
        judge_settings(plan, config, host);
        return 0;
}
