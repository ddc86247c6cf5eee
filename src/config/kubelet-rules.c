/* SPDX-License-Identifier: Apache-2.0
 * Rules that kubelet checks at its start, over all settings merged, ours and those of the user. A rule passes
 * where the version or the machine is not known. From kubernetes/kubernetes, 1.28 to 1.37:
 * pkg/kubelet/apis/config/validation/validation*.go, unless a rule names another place. */
#include "config/rules.h"

#include <ctype.h>

/* ---- images ---- */

static const char *image_ages(const KubeletGiven *g) {
        double most = seconds(g, "imageMaximumGCAge", 0), least = seconds(g, "imageMinimumGCAge", 120);
        if (most < 0)
                return "must not be negative";
        if (most > 0 && most <= least)
                return "must be longer than imageMinimumGCAge (default: 2m)";
        return needs_gate(g, "ImageMaximumGCAge", most > 0);
}

/* pkg/kubelet/images/pullmanager/image_pull_policies.go */
static const char *image_pattern_fault(const char *pattern) {
        size_t n = strlen(pattern);
        _free_ char *stripped = str_strip(pattern);
        bool open = endswith(pattern, "/*");
        if (n == 0 || !streq(stripped, pattern) || strcspn(pattern, "*") < n - (open ? 1 : 0) ||
            streq(pattern, "/*"))
                return "contains a pattern that is neither an image nor a registry or path with /* after it";
        if (!open && (strchr(pattern, '@') || strchr(strrchr(pattern, '/') ?: pattern, ':') ||
                      strpbrk(pattern, " \t")))
                return "contains an image with a tag, a digest or a space: write only its name";
        return NULL;
}

static const char *image_verification(const KubeletGiven *g) {
        static const char feature[] = "KubeletEnsureSecretPulledImages";
        const char *policy = text(g, "imagePullCredentialsVerificationPolicy"), *fault = NULL;
        const json_t *list = json_object_get(g->all, "preloadedImagesVerificationAllowlist"), *pattern;
        size_t i;
        if (!from(g, 33))
                return NULL;
        fault = needs_gate(g, feature, *policy || json_array_size(list) > 0);
        if (fault || gate(g, feature) != 1)
                return fault;
        if (json_array_size(list) > 0 && !streq(policy, "NeverVerifyAllowlistedImages"))
                return "preloadedImagesVerificationAllowlist needs imagePullCredentialsVerificationPolicy "
                       "NeverVerifyAllowlistedImages";
        json_array_foreach(list, i, pattern)
                fault = fault ?: image_pattern_fault(json_string_value(pattern) ?: "");
        return fault;
}

/* ---- shutdown ---- */

/* From 1.34 on nodestrap sets shutdownGracePeriod itself. */
static const char *shutdown_order(const KubeletGiven *g) {
        double all = seconds(g, "shutdownGracePeriod", 0),
               end = seconds(g, "shutdownGracePeriodCriticalPods", 0);
        if (gate(g, "GracefulNodeShutdown") == 0 || end <= all ||
            (g->minor == 0 && !json_object_get(g->all, "shutdownGracePeriod")))
                return NULL;
        return text_say(g->room, "must not be longer than shutdownGracePeriod (%gs), which includes it",
                        all);
}

static const char *shutdown_least(const KubeletGiven *g) {
        double period = seconds(g, g->key, 0);
        return gate(g, "GracefulNodeShutdown") != 0 && period != 0.0 && period < 1
                       ? "must be 0s, or at least 1s" : NULL;
}

static const char *shutdown_priorities(const KubeletGiven *g) {
        bool used = json_array_size(json_object_get(g->all, "shutdownGracePeriodByPodPriority")) > 0;
        if (used && gate(g, "GracefulNodeShutdownBasedOnPodPriority") != 0 &&
            (seconds(g, "shutdownGracePeriod", 0) > 0 ||
             seconds(g, "shutdownGracePeriodCriticalPods", 0) > 0))
                return "cannot be used with shutdownGracePeriod and shutdownGracePeriodCriticalPods: set "
                       "either it or those two";
        return needs_gate(g, "GracefulNodeShutdownBasedOnPodPriority", used);
}

/* ---- memory ---- */

static const char *swap_behavior(const KubeletGiven *g) {
        const char *word = text_in(g, "memorySwap", "swapBehavior");
        if (!*word || g->minor == 0)
                return NULL;
        if (streq(word, "UnlimitedSwap") && from(g, 30))
                return "is UnlimitedSwap, which kubelet knows up to 1.29: write LimitedSwap or NoSwap";
        if (streq(word, "NoSwap") && until(g, 30))
                return "is NoSwap, but kubelet before 1.30 knows only LimitedSwap and UnlimitedSwap";
        return needs_gate(g, "NodeSwap", true);
}

/* ---- sysctls ---- */

/* k8s.io/component-helpers:node/util/sysctl/namespace.go; a pattern ends in a star. */
static bool is_namespaced(const char *name, unsigned minor) {
        _free_ char *s = xstrndup(name, strcspn(name, "*"));
        bool newest = minor == 0 || minor >= 37;
        /* the first separator decides which one the name uses */
        bool slashes = strcspn(s, "/") < strcspn(s, ".");
        for (char *p = s; *p; p++)
                *p = slashes && *p == '/' ? '.' : *p;
        return startswith(s, "net.") || startswith(s, "fs.mqueue.") ||
               (newest && (startswith(s, "user.") || streq(s, "kernel.domainname"))) ||
               word_is_among(s, "kernel.sem|kernel.shmall|kernel.shmmax|kernel.shmmni|kernel.shm_rmid_forced|"
                                "kernel.shm|kernel.msgmax|kernel.msgmnb|kernel.msgmni|kernel.msg");
}

/* pkg/apis/policy/validation/validation.go: IsValidSysctlPattern; a star only at the end. */
static bool is_sysctl(const char *name, bool pattern) {
        size_t n = strlen(name), star = strcspn(name, "*");
        if (n == 0 || n > 253 || (star < n && (!pattern || star != n - 1)))
                return false;
        for (size_t i = 0; i < star; i++) {
                bool alone = islower((unsigned char)name[i]) || is_digit(name[i]);
                bool edge = i == 0 || strchr("./", name[i - 1]) || (i + 1 == n) || strchr("./", name[i + 1]);
                if (!alone && (edge || !strchr("-_./", name[i])))
                        return false;
        }
        return true;
}

static const char *unsafe_sysctls(const KubeletGiven *g) {
        json_t *item;
        size_t i;
        json_array_foreach(json_object_get(g->all, "allowedUnsafeSysctls"), i, item) {
                const char *name = json_string_value(item) ?: "";
                if (!is_sysctl(name, true))
                        return "contains a name that is not a kernel setting; write, for example, "
                               "net.core.somaxconn";
                if (!is_namespaced(name, g->minor))
                        return text_say(g->room, "contains %s, which is not namespaced; list only namespaced "
                                        "ones, such as net.*, fs.mqueue.*, kernel.shm*, kernel.msg* and "
                                        "kernel.sem", name);
        }
        return NULL;
}

static const char *pod_sysctls(const KubeletGiven *g) {
        json_t *all = json_object_get(g->all, "defaultPodSysctls"), *unused;
        const char *name, *fault = needs_gate(g, "DefaultPodSysctls", json_object_size(all) > 0);
        if (fault)
                return fault;
        json_object_foreach(all, name, unused)
                if (!is_sysctl(name, false) || !is_namespaced(name, g->minor))
                        return text_say(g->room, "contains %s, which is not a namespaced kernel setting; "
                                        "remove it", name);
        return NULL;
}

/* ---- the rest ---- */

/* pkg/util/taints/taints.go:CheckTaintValidation; a row of the table judges the effect. */
static const char *taints(const KubeletGiven *g) {
        json_t *taint;
        size_t i;
        json_array_foreach(json_object_get(g->all, "registerWithTaints"), i, taint)
                if (!kubelet_label_is_valid(json_get_text(taint, "key"), json_get_text(taint, "value")))
                        return text_say(g->room, "contains an invalid taint at [%zu]: write it like key: "
                                                 "nvidia.com/gpu, value: present, effect: NoSchedule", i);
        return NULL;
}

/* Settings with one condition. */
static const char *limited(const KubeletGiven *g) {
        const char *address = text(g, "address");
        const struct { const char *key; bool broken; const char *fault; } settings[] = {
                { "imageGCLowThresholdPercent",
                  number(g, "imageGCLowThresholdPercent", 80) >= number(g, "imageGCHighThresholdPercent", 85),
                  "imageGCLowThresholdPercent must be below imageGCHighThresholdPercent (default: 80 and "
                  "85)" },
                { "imageMinimumGCAge", from(g, 36) && seconds(g, "imageMinimumGCAge", 0) < 0,
                  "must not be negative" },
                { "maxParallelImagePulls",
                  is_on(g, "serializeImagePulls", false) && number(g, "maxParallelImagePulls", 1) > 1,
                  "must be 1 if serializeImagePulls is true" },
                { "runOnce", from(g, 32) && is_on(g, "runOnce", false),
                  "must be false from Kubernetes 1.32 on" },
                { "systemCgroups", streq(text(g, "systemCgroups"), "/"), "must not be the root cgroup" },
                { "systemCgroups", *text(g, "systemCgroups") && g->minor > 0 && !*text(g, "cgroupRoot"),
                  "needs a cgroupRoot, such as /" },
                /* kubelet makes "<nil>" of another text (pkg/kubelet/server/server.go) */
                { "address", *address && !kubelet_address_is_valid(address), "must be an IP address" },
        };
        return PICK(s, settings, ARRAY_SIZE(settings), s->broken && streq(s->key, g->key), s->fault, NULL);
}

/* Settings that need only a gate. */
static const char *gated(const KubeletGiven *g) {
        const struct { const char *key, *gate; bool used; } settings[] = {
                { "shutdownGracePeriod", "GracefulNodeShutdown",
                  seconds(g, "shutdownGracePeriod", 0) > 0 ||
                          seconds(g, "shutdownGracePeriodCriticalPods", 0) > 0 },
                { "memoryThrottlingFactor", "MemoryQoS",
                  from(g, 37) && number(g, "memoryThrottlingFactor", 0.9) != 0.9 },
                { "memoryReservationPolicy", "MemoryQoS",
                  streq(text(g, "memoryReservationPolicy"), "TieredReservation") },
                { "serverTLSBootstrap", "RotateKubeletServerCertificate",
                  is_on(g, "serverTLSBootstrap", false) },
                { "cpuCFSQuotaPeriod", "CustomCPUCFSQuotaPeriod",
                  seconds(g, "cpuCFSQuotaPeriod", 0.1) != 0.1 },
        };
        return PICK(s, settings, ARRAY_SIZE(settings), streq(s->key, g->key),
                    needs_gate(g, s->gate, s->used), NULL);
}

/* kubelet gives these settings a default when it reads our file, where their gate is on. If the file then
 * turns the gate off, or a flag undoes the file, its default stops kubelet. A flag alone takes effect first
 * (pkg/kubelet/apis/config/v1beta1/defaults.go, cmd/kubelet/app/server.go:NewKubeletCommand). */
static const char *gates_of_defaults(const KubeletGiven *g) {
        static const char *const names[] = { "KubeletCrashLoopBackOffMax",
                                             "KubeletEnsureSecretPulledImages" };
        for (size_t i = 0; i < ARRAY_SIZE(names) && g->whole; i++) {
                const json_t *in_file = json_object_get(json_object_get(g->user, "featureGates"), names[i]);
                if (kubelet_gate_state(NULL, names[i], g->minor) != 1 || gate(g, names[i]) != 0 ||
                    (!json_is_true(in_file) && kubelet_flags_turn_off(g->flags, names[i])))
                        continue;
                return text_say(g->room, "turns off %s, but kubelet 1.%u gives another setting a default "
                                         "that needs it; leave it on", names[i], g->minor);
        }
        return NULL;
}

/* The server that starts later fails; which one that is changes. Port 0 is the default. */
static const char *shared_port(const KubeletGiven *g) {
        double port = number(g, g->key, streq(g->key, "healthzPort") ? 10248 : 0);
        bool same = port != 0.0 && port == (number(g, "port", 0) ?: 10250);
        if (!same)
                return NULL;
        return streq(g->key, "healthzPort")
                       ? "healthzPort (default: 10248) must differ from port (default: 10250)"
                       : "must differ from port (default: 10250)";
}

/* k8s.io/cri-client/pkg/remote_runtime.go: kubelet ends when containerd does not answer its first question in
 * that time. 0s in the file means the default; in a flag it means 0s. */
static const char *runtime_timeout(const KubeletGiven *g) {
        double n;
        if (!kubelet_parse_duration(text(g, g->key), &n) || n >= 0.1)
                return NULL;
        _free_ char *path = kubelet_setting_path(g->user, g->flags, g->key);
        return n == 0.0 && path && endswith(path, g->key)
                       ? NULL
                       : "must be 100ms or more: containerd has that long for its first answer to kubelet";
}

static const char *crash_loop(const KubeletGiven *g) {
        const char *most = text_in(g, "crashLoopBackOff", "maxContainerRestartPeriod");
        double n;
        if (!*most || !kubelet_parse_duration(most, &n))
                return NULL;
        return n < 1 || n > 300 ? "maxContainerRestartPeriod must be from 1s to 300s"
                                : needs_gate(g, "KubeletCrashLoopBackOffMax", true);
}

static const char *log_query(const KubeletGiven *g) {
        bool used = is_on(g, "enableSystemLogQuery", false);
        return used && !is_on(g, "enableSystemLogHandler", true) ? "needs enableSystemLogHandler"
                                                                 : needs_gate(g, "NodeLogQuery", used);
}

/* pkg/kubelet/userns/userns_manager.go: all user IDs after the first block, divided among pods. */
static const char *user_namespaces(const KubeletGiven *g) {
        const json_t *value = json_object_get(json_object_get(g->all, "userNamespaces"), "idsPerPod");
        json_int_t ids = json_is_integer(value) && from(g, 33) ? json_integer_value(value) : 65536,
                   all = INT64_C(1) << 32;
        double pods = number(g, "maxPods", 110);
        if (json_is_integer(value) &&
            (json_integer_value(value) % 65536 != 0 || all % json_integer_value(value) != 0))
                return "idsPerPod must be 65536, multiplied by 1 or another power of two";
        json_int_t most = ids > 0 ? all / ids - 1 : 0;
        if (!from(g, 30) || ids <= 0 || pods <= (double)most)
                return NULL;
        return text_say(g->room, "maxPods must be at most %lld: kubelet keeps %lld user IDs for each pod",
                        (long long)most, (long long)ids);
}

/* k8s.io/component-base:cli/flag/curves_flag.go. Go 1.26 knows P-256, P-384, P-521, X25519 and three with
 * ML-KEM (pkg.go.dev/crypto/tls#CurveID). */
static const char *curves(const KubeletGiven *g) {
        static const int known[] = { 23, 24, 25, 29, 4587, 4588, 4589 };
        const json_t *list = json_object_get(g->all, "tlsCurvePreferences"), *item;
        size_t i, seen[ARRAY_SIZE(known)] = {};
        if (g->minor > KUBELET_TABLES_TO)
                return NULL;
        json_array_foreach(list, i, item) {
                size_t k = 0;
                while (k < ARRAY_SIZE(known) && known[k] != json_integer_value(item))
                        k++;
                if (k == ARRAY_SIZE(known) || seen[k]++)
                        return "must list numbers of TLS curves, each once: 23, 24, 25, 29, 4587, 4588 and "
                               "4589";
        }
        return NULL;
}

/* golang.org/x/net/http2:ConfigureServer() */
static const char *http2_cipher(const KubeletGiven *g) {
        const json_t *list = json_object_get(g->all, "tlsCipherSuites"), *word;
        bool there = json_array_size(list) == 0 || streq(text(g, "tlsMinVersion"), "VersionTLS13");
        size_t i;
        json_array_foreach(list, i, word) {
                there |= ONE_OF(json_string_value(word) ?: "", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                                "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
        }
        return there ? NULL
                     : "must contain TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or "
                       "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, which HTTP/2 needs";
}

/* It must be as filepath.Clean() of Go writes it. */
static const char *pod_logs(const KubeletGiven *g) {
        const char *dir = text(g, "podLogsDir");
        for (const char *p = dir; *p; p++)
                if ((unsigned char)*p > 0x7f)
                        return "must have only ASCII characters";
        return !*dir || (*dir == '/' && !strstr(dir, "//") && !strstr(dir, "/./") && !strstr(dir, "/../") &&
                         !endswith(dir, "/.") && !endswith(dir, "/..") && (!dir[1] || !endswith(dir, "/")))
                       ? NULL
                       : "must be an absolute path that contains no //, /./ or /../";
}

/* k8s.io/component-base:tracing/api/v1/config.go */
static const char *trace_endpoint(const KubeletGiven *g) {
        const char *endpoint = text_in(g, "tracing", "endpoint"), *slashes = strstr(endpoint, "//");
        bool used = until(g, 34) && json_object_get(g->all, "tracing");
        const char *fault = needs_gate(g, "KubeletTracing", used);
        if (fault || !*endpoint)
                return fault;
        if (slashes && !startswith(endpoint, "dns://") && !startswith(endpoint, "unix://") &&
            !startswith(endpoint, "unix-abstract://"))
                return "its endpoint must be host:port without a scheme, or begin with dns://, unix:// or "
                       "unix-abstract://";
        const char *host = slashes ? slashes + 2 : endpoint;
        _free_ char *authority = xstrndup(host, strcspn(host, "/?#"));
        const char *colon = strrchr(authority, ':');
        return strpbrk(authority, " <>\"\\^`{|}") ||
                               (colon && !strchr(colon, ']') && colon[1 + strspn(colon + 1, "0123456789")])
                       ? "its endpoint must be a host and a port, such as localhost:4317"
                       : NULL;
}

/* k8s.io/component-base:logs/api/v1/options.go */
static const char *logging(const KubeletGiven *g) {
        const json_t *log = json_object_get(g->all, "logging"),
                     *flush = json_object_get(log, "flushFrequency"), *item;
        const char *format = json_get_text(log, "format");
        double n = 1;
        size_t i;
        if ((json_is_string(flush) && (!kubelet_parse_duration(json_string_value(flush), &n) || n < 0)) ||
            (json_is_integer(flush) && json_integer_value(flush) < 0))
                return "its flushFrequency must be a duration above 0";
        static const char *const formats[] = { "json", "text" };
        for (i = 0; i < ARRAY_SIZE(formats); i++) {
                const json_t *options = json_object_get(json_object_get(log, "options"), formats[i]);
                const char *size = json_get_text(options, "infoBufferSize"),
                           *fault = *size && !streq(size, "0") ? needs_gate(g, "LoggingAlphaOptions", true)
                                                               : NULL;
                if (fault)
                        return fault;
        }
        if (json_array_size(json_object_get(log, "vmodule")) > 0 && *format && !streq(format, "text"))
                return "its vmodule needs format: text";
        json_array_foreach(json_object_get(log, "vmodule"), i, item) {
                const char *pattern = json_get_text(item, "filePattern");
                if (!*pattern || strpbrk(pattern, "=,"))
                        return "its vmodule needs a filePattern, without = or commas";
        }
        return NULL;
}

/* k8s.io/cri-client:pkg/util/util_unix.go:GetAddressAndDialer() */
static const char *socket_endpoint(const KubeletGiven *g) {
        const char *endpoint = text(g, g->key), *scheme = strstr(endpoint, "://");
        bool other = scheme ? !startswith(endpoint, "unix://")
                            : *endpoint && *endpoint != '/' && !startswith(endpoint, "unix:/");
        return other ? "must be a socket, such as unix:///run/containerd/containerd.sock" : NULL;
}

/* k8s.io/component-base:metrics/options.go */
static const char *hidden_metrics(const KubeletGiven *g) {
        const char *version = text(g, "showHiddenMetricsForVersion");
        _free_ char *before = xasprintf("1.%u", g->minor - 1);
        if (!*version || g->minor == 0 || streq(version, before))
                return NULL;
        return text_say(g->room, "must be %s, the version before that of this kubelet", before);
}

/* ---- the rules ---- */

typedef struct Judge { const KubeletGiven *given; KubeletTell *tell; void *context; bool good; } Judge;

/* The message names the first key that the user sets. whole: the rest of the NodeConfig may mend it. */
static void judge(Judge *j, const char *key, const char *other,
                  const char *(*fault_of)(const KubeletGiven *g), bool whole) {
        _cleanup_(text_done) Text room = {};
        KubeletGiven its = *j->given;
        its.key = key;
        its.room = &room;
        const char *fault = whole && !its.whole ? NULL : fault_of(&its);
        if (!fault)
                return;
        _free_ char *path = kubelet_setting_path(its.user, its.flags, key);
        if (!path && other)
                path = kubelet_setting_path(its.user, its.flags, other);
        j->tell(j->context, path, fault);
        j->good = false;
}

/* Calls, since each start would relocate the pointers of a table. */
static void judge_all(Judge *j) {
        judge(j, "imageGCLowThresholdPercent", "imageGCHighThresholdPercent", limited, true);
        judge(j, "imageMaximumGCAge", "imageMinimumGCAge", image_ages, false);
        judge(j, "imageMinimumGCAge", NULL, limited, false);
        judge(j, "maxParallelImagePulls", "serializeImagePulls", limited, false);
        judge(j, "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist",
              image_verification, true);
        judge(j, "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", gated, true);
        judge(j, "shutdownGracePeriodCriticalPods", "shutdownGracePeriod", shutdown_order, false);
        judge(j, "shutdownGracePeriod", NULL, shutdown_least, false);
        judge(j, "shutdownGracePeriodCriticalPods", NULL, shutdown_least, false);
        judge(j, "shutdownGracePeriodByPodPriority", "shutdownGracePeriod", shutdown_priorities, false);
        judge(j, "enforceNodeAllocatable", NULL, enforcement_words, false);
        judge(j, "cgroupsPerQOS", "enforceNodeAllocatable", enforcement_levels, true);
        judge(j, "enforceNodeAllocatable", "reservedSystemCPUs", enforcement_cgroups, true);
        judge(j, "reservedSystemCPUs", NULL, reserved_cpus, false);
        judge(j, "reservedMemory", NULL, reserved_memory, false);
        judge(j, "memoryManagerPolicy", "reservedMemory", static_memory, true);
        judge(j, "kubeReserved", NULL, quantity_signs, false);
        judge(j, "systemReserved", NULL, quantity_signs, false);
        judge(j, "qosReserved", NULL, qos_reserved, false);
        judge(j, "evictionHard", NULL, eviction_thresholds, false);
        judge(j, "evictionSoft", NULL, eviction_thresholds, false);
        judge(j, "evictionMinimumReclaim", NULL, eviction_thresholds, false);
        judge(j, "evictionSoftGracePeriod", "evictionSoft", eviction_grace, false);
        judge(j, "cpuManagerPolicyOptions", "cpuManagerPolicy", cpu_manager_options, false);
        judge(j, "cpuManagerPolicy", "kubeReserved", static_cpus, true);
        judge(j, "topologyManagerPolicyOptions", "topologyManagerPolicy", topology_manager_options, false);
        judge(j, "memorySwap", NULL, swap_behavior, false);
        judge(j, "memoryThrottlingFactor", NULL, gated, false);
        judge(j, "memoryReservationPolicy", NULL, gated, false);
        judge(j, "allowedUnsafeSysctls", NULL, unsafe_sysctls, false);
        judge(j, "defaultPodSysctls", NULL, pod_sysctls, false);
        judge(j, "registerWithTaints", NULL, taints, false);
        judge(j, "serverTLSBootstrap", "featureGates", gated, false);
        judge(j, "cpuCFSQuotaPeriod", NULL, gated, false);
        judge(j, "crashLoopBackOff", NULL, crash_loop, false);
        judge(j, "featureGates", NULL, gates_of_defaults, false);
        judge(j, "address", NULL, limited, false);
        judge(j, "readOnlyPort", "port", shared_port, false);
        judge(j, "healthzPort", "port", shared_port, false);
        judge(j, "runtimeRequestTimeout", NULL, runtime_timeout, false);
        judge(j, "enableSystemLogQuery", "enableSystemLogHandler", log_query, false);
        judge(j, "tlsCipherSuites", "tlsMinVersion", http2_cipher, true);
        judge(j, "tlsCurvePreferences", NULL, curves, false);
        judge(j, "userNamespaces", "maxPods", user_namespaces, false);
        judge(j, "runOnce", NULL, limited, false);
        judge(j, "systemCgroups", NULL, limited, false);
        judge(j, "podLogsDir", NULL, pod_logs, false);
        judge(j, "tracing", NULL, trace_endpoint, false);
        judge(j, "logging", NULL, logging, false);
        judge(j, "showHiddenMetricsForVersion", NULL, hidden_metrics, false);
        judge(j, "containerRuntimeEndpoint", NULL, socket_endpoint, false);
        judge(j, "imageServiceEndpoint", NULL, socket_endpoint, false);
}

bool kubelet_judge_together(const KubeletGiven *g, KubeletTell *tell, void *context) {
        Judge j = { g, tell, context, true };
        judge_all(&j);
        return j.good;
}
