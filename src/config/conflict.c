/* SPDX-License-Identifier: Apache-2.0
 * What is valid and may still not do what its writer expects. A kubelet flag and a key of kubelet.config that
 * set the same thing: kubelet takes the flag and says nothing. Pairs as kubelet defines them:
 * kubernetes/kubernetes cmd/kubelet/app/options/options.go (AddKubeletConfigFlags) and
 * staging/src/k8s.io/kubelet/config/v1beta1/types.go. */
#include "config/fields.h"

#include "base/json.h"
#include "base/str.h"

/* Flag and key in turn, a key with dots lies deeper. In one string, which needs no relocation at start. */
static const char pairs[] =
        "address\0address\0"
        "allowed-unsafe-sysctls\0allowedUnsafeSysctls\0"
        "anonymous-auth\0authentication.anonymous.enabled\0"
        "authentication-token-webhook\0authentication.webhook.enabled\0"
        "authentication-token-webhook-cache-ttl\0authentication.webhook.cacheTTL\0"
        "authorization-mode\0authorization.mode\0"
        "authorization-webhook-cache-authorized-ttl\0authorization.webhook.cacheAuthorizedTTL\0"
        "authorization-webhook-cache-unauthorized-ttl\0authorization.webhook.cacheUnauthorizedTTL\0"
        "cgroup-driver\0cgroupDriver\0"
        "cgroup-root\0cgroupRoot\0"
        "cgroups-per-qos\0cgroupsPerQOS\0"
        "client-ca-file\0authentication.x509.clientCAFile\0"
        "cluster-dns\0clusterDNS\0"
        "cluster-domain\0clusterDomain\0"
        "container-log-max-files\0containerLogMaxFiles\0"
        "container-log-max-size\0containerLogMaxSize\0"
        "container-runtime-endpoint\0containerRuntimeEndpoint\0"
        "contention-profiling\0enableContentionProfiling\0"
        "cpu-cfs-quota\0cpuCFSQuota\0"
        "cpu-cfs-quota-period\0cpuCFSQuotaPeriod\0"
        "cpu-manager-policy\0cpuManagerPolicy\0"
        "cpu-manager-policy-options\0cpuManagerPolicyOptions\0"
        "cpu-manager-reconcile-period\0cpuManagerReconcilePeriod\0"
        "enable-controller-attach-detach\0enableControllerAttachDetach\0"
        "enable-debugging-handlers\0enableDebuggingHandlers\0"
        "enable-server\0enableServer\0"
        "enforce-node-allocatable\0enforceNodeAllocatable\0"
        "event-burst\0eventBurst\0"
        "event-qps\0eventRecordQPS\0"
        "eviction-hard\0evictionHard\0"
        "eviction-max-pod-grace-period\0evictionMaxPodGracePeriod\0"
        "eviction-minimum-reclaim\0evictionMinimumReclaim\0"
        "eviction-pressure-transition-period\0evictionPressureTransitionPeriod\0"
        "eviction-soft\0evictionSoft\0"
        "eviction-soft-grace-period\0evictionSoftGracePeriod\0"
        "fail-swap-on\0failSwapOn\0"
        "feature-gates\0featureGates\0"
        "file-check-frequency\0fileCheckFrequency\0"
        "hairpin-mode\0hairpinMode\0"
        "healthz-bind-address\0healthzBindAddress\0"
        "healthz-port\0healthzPort\0"
        "http-check-frequency\0httpCheckFrequency\0"
        "image-gc-high-threshold\0imageGCHighThresholdPercent\0"
        "image-gc-low-threshold\0imageGCLowThresholdPercent\0"
        "image-service-endpoint\0imageServiceEndpoint\0"
        "iptables-drop-bit\0iptablesDropBit\0"
        "iptables-masquerade-bit\0iptablesMasqueradeBit\0"
        "kernel-memcg-notification\0kernelMemcgNotification\0"
        "kube-api-burst\0kubeAPIBurst\0"
        "kube-api-content-type\0contentType\0"
        "kube-api-qps\0kubeAPIQPS\0"
        "kube-reserved\0kubeReserved\0"
        "kube-reserved-cgroup\0kubeReservedCgroup\0"
        "kubelet-cgroups\0kubeletCgroups\0"
        "local-storage-capacity-isolation\0localStorageCapacityIsolation\0"
        "logging-format\0logging.format\0"
        "make-iptables-util-chains\0makeIPTablesUtilChains\0"
        "manifest-url\0staticPodURL\0"
        "manifest-url-header\0staticPodURLHeader\0"
        "max-open-files\0maxOpenFiles\0"
        "max-pods\0maxPods\0"
        "memory-manager-policy\0memoryManagerPolicy\0"
        "minimum-image-ttl-duration\0imageMinimumGCAge\0"
        "node-status-max-images\0nodeStatusMaxImages\0"
        "node-status-update-frequency\0nodeStatusUpdateFrequency\0"
        "oom-score-adj\0oomScoreAdj\0"
        "pod-cidr\0podCIDR\0"
        "pod-manifest-path\0staticPodPath\0"
        "pod-max-pids\0podPidsLimit\0"
        "pods-per-core\0podsPerCore\0"
        "port\0port\0"
        "protect-kernel-defaults\0protectKernelDefaults\0"
        "provider-id\0providerID\0"
        "qos-reserved\0qosReserved\0"
        "read-only-port\0readOnlyPort\0"
        "register-node\0registerNode\0"
        "register-with-taints\0registerWithTaints\0"
        "registry-burst\0registryBurst\0"
        "registry-qps\0registryPullQPS\0"
        "reserved-cpus\0reservedSystemCPUs\0"
        "reserved-memory\0reservedMemory\0"
        "resolv-conf\0resolvConf\0"
        "rotate-certificates\0rotateCertificates\0"
        "rotate-server-certificates\0serverTLSBootstrap\0"
        "runtime-request-timeout\0runtimeRequestTimeout\0"
        "seccomp-default\0seccompDefault\0"
        "serialize-image-pulls\0serializeImagePulls\0"
        "streaming-connection-idle-timeout\0streamingConnectionIdleTimeout\0"
        "sync-frequency\0syncFrequency\0"
        "system-cgroups\0systemCgroups\0"
        "system-reserved\0systemReserved\0"
        "system-reserved-cgroup\0systemReservedCgroup\0"
        "tls-cert-file\0tlsCertFile\0"
        "tls-cipher-suites\0tlsCipherSuites\0"
        "tls-min-version\0tlsMinVersion\0"
        "tls-private-key-file\0tlsPrivateKeyFile\0"
        "topology-manager-policy\0topologyManagerPolicy\0"
        "topology-manager-policy-options\0topologyManagerPolicyOptions\0"
        "topology-manager-scope\0topologyManagerScope\0"
        "v\0logging.verbosity\0"
        "vmodule\0logging.vmodule\0"
        "volume-plugin-dir\0volumePluginDir\0"
        "volume-stats-agg-period\0volumeStatsAggPeriod\0";

/* "--max_pods=5" → "max-pods": kubelet takes underscores for hyphens. NULL when it is no flag but another
 * one's value. */
static char *flag_name(const char *flag) {
        size_t dashes = startswith(flag, "--") ? 2 : startswith(flag, "-v") ? 1 : 0;
        if (dashes == 0)
                return NULL;
        char *name = xstrndup(flag + dashes, strcspn(flag + dashes, "= "));
        for (char *p = name; *p; p++)
                if (*p == '_')
                        *p = '-';
        return name;
}

static bool has_key(const json_t *config, const char *key) {
        for (;;) {
                size_t n = strcspn(key, ".");
                _cleanup_(freep) char *part = xstrndup(key, n);
                config = json_object_get(config, part);
                if (!config || !key[n])
                        return config != NULL;
                key += n + 1;
        }
}

/* kubelet takes it, and nodeadm writes it; EKS serves nothing there, and what kubelet says who it is by could
 * be read on the way. */
static void warn_of_endpoint(const Merge *m, Diag *diag) {
        const char *path = "spec.cluster.apiServerEndpoint";
        const json_t *cluster = json_object_get(json_object_get(m->document, "spec"), "cluster");
        if (strncasecmp(json_get_text(cluster, "apiServerEndpoint"), "http://", strlen("http://")) == 0)
                diag_warn_at(diag, "plain-http", origins_find(&m->origins, path), path,
                             "is http: kubelet's token crosses the network in clear text, and an API server "
                             "of EKS only answers to https");
}

/* As nodeadm, which writes NAME=VALUE whatever the name is. */
static void warn_of_variables(const Merge *m, Diag *diag) {
        const json_t *environment = json_object_get(
                json_object_get(json_object_get(m->document, "spec"), "instance"), "environment");
        const char *service, *name;
        json_t *variables, *unused;
        json_object_foreach((json_t *)environment, service, variables) {
                _cleanup_(freep) char *path = xasprintf("spec.instance.environment.%s", service);
                json_object_foreach(variables, name, unused) {
                        if (strchr(name, '='))
                                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                                             "a variable's name holds an equals sign, and ends there");
                }
        }
}

/* systemd-resolved leaves out what it cannot read as an address or a name, and says so in its own log alone
 * (resolved.conf(5)). */
static void warn_of_resolver(const Merge *m, Diag *diag) {
        static const char *const lists[] = { "nameservers", "domains" };
        const json_t *network = json_object_get(
                json_object_get(json_object_get(m->document, "spec"), "instance"), "network");
        json_t *item;
        size_t k;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                json_array_foreach(json_object_get(network, lists[i]), k, item) {
                        const char *word = json_string_value(item) ?: "";
                        _cleanup_(freep) char *path = xasprintf("spec.instance.network.%s[%zu]", lists[i], k);
                        if (!*word || strpbrk(word, ",;'\"\\"))
                                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                                             "is no %s, and systemd-resolved passes over it",
                                             i == 0 ? "address" : "domain name");
                }
}

/* Pages that are listed in a mode that does not look at the list. */
static void warn_of_pages(const Merge *m, Diag *diag) {
        const json_t *huge = json_object_get(
                json_object_get(json_object_get(m->document, "spec"), "instance"), "hugePages");
        const char *mode = json_get_text(huge, "mode"), *path = "spec.instance.hugePages.pages";
        if (json_array_size(json_object_get(huge, "pages")) > 0 && !streq(mode, "explicit"))
                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                             "has no effect without mode: explicit");
}

static void warn_of_mig(const Merge *m, Diag *diag) {
        const char *path = "spec.accelerator.nvidia.mig";
        const json_t *spec = json_object_get(m->document, "spec"),
                     *nvidia = json_object_get(json_object_get(spec, "accelerator"), "nvidia"),
                     *mig = json_object_get(nvidia, "mig");
        if (json_is_array(mig) && json_array_size(mig) == 0)
                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                             "is an empty list, which is as if it were not there: the GPUs stay divided as "
                             "they are; to turn MIG off write off");
}

static void warn_of_flags(const Merge *m, Diag *diag) {
        const json_t *kubelet = json_object_get(json_object_get(m->document, "spec"), "kubelet"),
                     *config = json_object_get(kubelet, "config");
        json_t *flag;
        size_t i;

        json_array_foreach(json_object_get(kubelet, "flags"), i, flag) {
                const char *text = json_string_value(flag);
                _cleanup_(freep) char *name = text ? flag_name(text) : NULL,
                                      *path = xasprintf("spec.kubelet.flags[%zu]", i);
                for (const char *is = pairs, *key; name && *is; is = key + strlen(key) + 1) {
                        key = is + strlen(is) + 1;
                        if (streq(is, name) && has_key(config, key))
                                diag_warn_at(diag, "flag-and-config", origins_find(&m->origins, path), path,
                                             "--%s sets the same as spec.kubelet.config.%s; kubelet takes "
                                             "the flag",
                                             name, key);
                }
        }
}

void conflicts_warn(const Merge *m, Diag *diag) {
        warn_of_endpoint(m, diag);
        warn_of_variables(m, diag);
        warn_of_resolver(m, diag);
        warn_of_pages(m, diag);
        warn_of_mig(m, diag);
        warn_of_flags(m, diag);
}
