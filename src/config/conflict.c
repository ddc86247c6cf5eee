/* SPDX-License-Identifier: Apache-2.0
 * What is valid and may still not do what its writer expects. A kubelet flag and a key of kubelet.config that
 * set the same thing: kubelet takes the flag and says nothing. Pairs as kubelet defines them:
 * kubernetes/kubernetes cmd/kubelet/app/options/options.go (AddKubeletConfigFlags) and
 * staging/src/k8s.io/kubelet/config/v1beta1/types.go. */
#include "config/fields.h"

#include "base/json.h"
#include "base/str.h"

static const struct { const char *flag, *key; } pairs[] = {     /* a key with dots lies deeper */
        { "address", "address" },
        { "allowed-unsafe-sysctls", "allowedUnsafeSysctls" },
        { "anonymous-auth", "authentication.anonymous.enabled" },
        { "authentication-token-webhook", "authentication.webhook.enabled" },
        { "authentication-token-webhook-cache-ttl", "authentication.webhook.cacheTTL" },
        { "authorization-mode", "authorization.mode" },
        { "authorization-webhook-cache-authorized-ttl", "authorization.webhook.cacheAuthorizedTTL" },
        { "authorization-webhook-cache-unauthorized-ttl", "authorization.webhook.cacheUnauthorizedTTL" },
        { "cgroup-driver", "cgroupDriver" },
        { "cgroup-root", "cgroupRoot" },
        { "cgroups-per-qos", "cgroupsPerQOS" },
        { "client-ca-file", "authentication.x509.clientCAFile" },
        { "cluster-dns", "clusterDNS" },
        { "cluster-domain", "clusterDomain" },
        { "container-log-max-files", "containerLogMaxFiles" },
        { "container-log-max-size", "containerLogMaxSize" },
        { "container-runtime-endpoint", "containerRuntimeEndpoint" },
        { "contention-profiling", "enableContentionProfiling" },
        { "cpu-cfs-quota", "cpuCFSQuota" },
        { "cpu-cfs-quota-period", "cpuCFSQuotaPeriod" },
        { "cpu-manager-policy", "cpuManagerPolicy" },
        { "cpu-manager-policy-options", "cpuManagerPolicyOptions" },
        { "cpu-manager-reconcile-period", "cpuManagerReconcilePeriod" },
        { "enable-controller-attach-detach", "enableControllerAttachDetach" },
        { "enable-debugging-handlers", "enableDebuggingHandlers" },
        { "enable-server", "enableServer" },
        { "enforce-node-allocatable", "enforceNodeAllocatable" },
        { "event-burst", "eventBurst" },
        { "event-qps", "eventRecordQPS" },
        { "eviction-hard", "evictionHard" },
        { "eviction-max-pod-grace-period", "evictionMaxPodGracePeriod" },
        { "eviction-minimum-reclaim", "evictionMinimumReclaim" },
        { "eviction-pressure-transition-period", "evictionPressureTransitionPeriod" },
        { "eviction-soft", "evictionSoft" },
        { "eviction-soft-grace-period", "evictionSoftGracePeriod" },
        { "fail-swap-on", "failSwapOn" },
        { "feature-gates", "featureGates" },
        { "file-check-frequency", "fileCheckFrequency" },
        { "hairpin-mode", "hairpinMode" },
        { "healthz-bind-address", "healthzBindAddress" },
        { "healthz-port", "healthzPort" },
        { "http-check-frequency", "httpCheckFrequency" },
        { "image-gc-high-threshold", "imageGCHighThresholdPercent" },
        { "image-gc-low-threshold", "imageGCLowThresholdPercent" },
        { "image-service-endpoint", "imageServiceEndpoint" },
        { "iptables-drop-bit", "iptablesDropBit" },
        { "iptables-masquerade-bit", "iptablesMasqueradeBit" },
        { "kernel-memcg-notification", "kernelMemcgNotification" },
        { "kube-api-burst", "kubeAPIBurst" },
        { "kube-api-content-type", "contentType" },
        { "kube-api-qps", "kubeAPIQPS" },
        { "kube-reserved", "kubeReserved" },
        { "kube-reserved-cgroup", "kubeReservedCgroup" },
        { "kubelet-cgroups", "kubeletCgroups" },
        { "local-storage-capacity-isolation", "localStorageCapacityIsolation" },
        { "logging-format", "logging.format" },
        { "make-iptables-util-chains", "makeIPTablesUtilChains" },
        { "manifest-url", "staticPodURL" },
        { "manifest-url-header", "staticPodURLHeader" },
        { "max-open-files", "maxOpenFiles" },
        { "max-pods", "maxPods" },
        { "memory-manager-policy", "memoryManagerPolicy" },
        { "minimum-image-ttl-duration", "imageMinimumGCAge" },
        { "node-status-max-images", "nodeStatusMaxImages" },
        { "node-status-update-frequency", "nodeStatusUpdateFrequency" },
        { "oom-score-adj", "oomScoreAdj" },
        { "pod-cidr", "podCIDR" },
        { "pod-manifest-path", "staticPodPath" },
        { "pod-max-pids", "podPidsLimit" },
        { "pods-per-core", "podsPerCore" },
        { "port", "port" },
        { "protect-kernel-defaults", "protectKernelDefaults" },
        { "provider-id", "providerID" },
        { "qos-reserved", "qosReserved" },
        { "read-only-port", "readOnlyPort" },
        { "register-node", "registerNode" },
        { "register-with-taints", "registerWithTaints" },
        { "registry-burst", "registryBurst" },
        { "registry-qps", "registryPullQPS" },
        { "reserved-cpus", "reservedSystemCPUs" },
        { "reserved-memory", "reservedMemory" },
        { "resolv-conf", "resolvConf" },
        { "rotate-certificates", "rotateCertificates" },
        { "rotate-server-certificates", "serverTLSBootstrap" },
        { "runtime-request-timeout", "runtimeRequestTimeout" },
        { "seccomp-default", "seccompDefault" },
        { "serialize-image-pulls", "serializeImagePulls" },
        { "streaming-connection-idle-timeout", "streamingConnectionIdleTimeout" },
        { "sync-frequency", "syncFrequency" },
        { "system-cgroups", "systemCgroups" },
        { "system-reserved", "systemReserved" },
        { "system-reserved-cgroup", "systemReservedCgroup" },
        { "tls-cert-file", "tlsCertFile" },
        { "tls-cipher-suites", "tlsCipherSuites" },
        { "tls-min-version", "tlsMinVersion" },
        { "tls-private-key-file", "tlsPrivateKeyFile" },
        { "topology-manager-policy", "topologyManagerPolicy" },
        { "topology-manager-policy-options", "topologyManagerPolicyOptions" },
        { "topology-manager-scope", "topologyManagerScope" },
        { "v", "logging.verbosity" },
        { "vmodule", "logging.vmodule" },
        { "volume-plugin-dir", "volumePluginDir" },
        { "volume-stats-agg-period", "volumeStatsAggPeriod" },
};

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

static void warn_of_flags(const Merge *m, Diag *diag) {
        const json_t *kubelet = json_object_get(json_object_get(m->document, "spec"), "kubelet"),
                     *config = json_object_get(kubelet, "config");
        json_t *flag;
        size_t i;

        json_array_foreach(json_object_get(kubelet, "flags"), i, flag) {
                const char *text = json_string_value(flag);
                _cleanup_(freep) char *name = text ? flag_name(text) : NULL,
                                      *path = xasprintf("spec.kubelet.flags[%zu]", i);
                for (size_t p = 0; name && p < ARRAY_SIZE(pairs); p++)
                        if (streq(pairs[p].flag, name) && has_key(config, pairs[p].key))
                                diag_warn_at(diag, "flag-and-config", origins_find(&m->origins, path), path,
                                             "--%s sets the same as spec.kubelet.config.%s; kubelet takes "
                                             "the flag",
                                             name, pairs[p].key);
        }
}

void conflicts_warn(const Merge *m, Diag *diag) {
        warn_of_endpoint(m, diag);
        warn_of_variables(m, diag);
        warn_of_resolver(m, diag);
        warn_of_pages(m, diag);
        warn_of_flags(m, diag);
}
