/* SPDX-License-Identifier: Apache-2.0
 * Each rule of config/kubelet-rules.c has a case on either side of it, for the versions between which it changes. tests/oracles/kubelet.py asks the real
 * kubelet for its verdicts. */
#include "config/kubelet.h"
#include "sample.h"

#define CONFIG "/etc/kubernetes/kubelet/config.json"

typedef struct Case { const char *version, *settings, *flag, *path, *words; } Case;

static const char *said_at(const Sample *s, const char *path) {
        for (size_t i = 0; i < s->plan->warnings.n; i++) {
                const Diagnostic *d = &s->plan->warnings.items[i];
                if (streq(d->code, "kubelet-setting") && d->cause == CAUSE_INVALID && (!path || streq(d->path ?: "", path)))
                        return d->text;
        }
        return NULL;
}

static void check(const Case *c) {
        _cleanup_(sample_done) Sample s = sample_new();
        _free_ char *version = xstrdup(c->version);
        _strv_ char **flags = c->flag ? LIST(c->flag) : NULL;
        s.host.kubelet_version = version;
        s.host.n_nodes = 1;
        s.host.nodes = (NumaNode[]){ { .cpus = 16 } };
        s.config.kubelet.config = sample_json(&s, c->settings ?: "{}");
        s.config.kubelet.flags = flags;
        s.options.foretell = true;
        sample_plan(&s);
        const char *said = said_at(&s, c->words ? c->path : NULL);
        if (!c->words && said)
                FAIL("%s %s %s: \"%s\"", c->version, c->settings ?: "", c->flag ?: "", said);
        if (c->words && (!said || !strstr(said, c->words)))
                FAIL("%s %s %s: %s, and not %s", c->version, c->settings ?: "", c->flag ?: "", said ?: "nothing", c->words);
        s.host.nodes = NULL;
        s.host.n_nodes = 0;
}

#define OF(key) "spec.kubelet.config." key
#define BAD(version, settings, key, words) { version, settings, NULL, OF(key), words }
#define GOOD(version, settings) { version, settings, NULL, NULL, NULL }

TEST(rules_judge_settings_by_version) {
        static const Case cases[] = {
                /* images */
                BAD("1.33.4", "{'imageGCHighThresholdPercent':70}", "imageGCHighThresholdPercent", "must be below"), GOOD("1.33.4", "{'imageGCLowThresholdPercent':84}"),
                BAD("1.33.4", "{'imageMaximumGCAge':'12h','imageMinimumGCAge':'24h'}", "imageMaximumGCAge", "must be longer"), GOOD("1.33.4", "{'imageMaximumGCAge':'3m'}"),
                BAD("1.33.4", "{'imageMaximumGCAge':'2m'}", "imageMaximumGCAge", "must be longer"), BAD("1.29.1", "{'imageMaximumGCAge':'3m'}", "imageMaximumGCAge", "feature gate ImageMaximumGCAge"),
                GOOD("1.28.1", "{'imageMaximumGCAge':'3m'}"), GOOD("1.35.4", "{'imageMinimumGCAge':'-1s'}"), BAD("1.36.0", "{'imageMinimumGCAge':'-1s'}", "imageMinimumGCAge", "negative"),
                BAD("1.33.4", "{'serializeImagePulls':true,'maxParallelImagePulls':2}", "maxParallelImagePulls", "must be 1"), GOOD("1.33.4", "{'maxParallelImagePulls':2}"),
                BAD("1.33.4", "{'imagePullCredentialsVerificationPolicy':'AlwaysVerify'}", "imagePullCredentialsVerificationPolicy", "KubeletEnsureSecretPulledImages"),
                GOOD("1.35.4", "{'imagePullCredentialsVerificationPolicy':'AlwaysVerify'}"),
                BAD("1.35.4", "{'preloadedImagesVerificationAllowlist':['a/b']}", "preloadedImagesVerificationAllowlist", "NeverVerifyAllowlistedImages"),
                BAD("1.35.4", "{'imagePullCredentialsVerificationPolicy':'NeverVerifyAllowlistedImages','preloadedImagesVerificationAllowlist':['a/b:1']}", "imagePullCredentialsVerificationPolicy", "a tag"),
                BAD("1.35.4", "{'imagePullCredentialsVerificationPolicy':'NeverVerifyAllowlistedImages','preloadedImagesVerificationAllowlist':['a/*b']}", "imagePullCredentialsVerificationPolicy", "pattern"),
                GOOD("1.35.4", "{'imagePullCredentialsVerificationPolicy':'NeverVerifyAllowlistedImages','preloadedImagesVerificationAllowlist':['a.b:5000/c','a/*']}"),
                BAD("1.36.0", "{'tlsCurvePreferences':['X25519']}", "tlsCurvePreferences", "numbers of TLS curves"), GOOD("1.35.4", "{'tlsCurvePreferences':['X25519']}"),
                BAD("1.33.4", "{'containerRuntimeEndpoint':'http://x'}", "containerRuntimeEndpoint", "must be a socket"), GOOD("1.33.4", "{'containerRuntimeEndpoint':'unix:///run/containerd/containerd.sock'}"),
                /* shutdown */
                BAD("1.33.4", "{'shutdownGracePeriodCriticalPods':'3m'}", "shutdownGracePeriodCriticalPods", "must not be longer"), GOOD("1.34.0", "{'shutdownGracePeriodCriticalPods':'3m'}"),
                BAD("1.34.0", "{'shutdownGracePeriod':'20s','shutdownGracePeriodCriticalPods':'30s'}", "shutdownGracePeriodCriticalPods", "(20s)"), GOOD("1.34.0", "{'shutdownGracePeriod':'20s'}"),
                BAD("1.33.4", "{'shutdownGracePeriod':'500ms'}", "shutdownGracePeriod", "at least 1s"), BAD("1.33.4", "{'shutdownGracePeriod':'1m','shutdownGracePeriodCriticalPods':'1ms'}", "shutdownGracePeriodCriticalPods", "at least 1s"),
                BAD("1.34.0", "{'shutdownGracePeriod':'1m','featureGates':{'GracefulNodeShutdown':false}}", "shutdownGracePeriod", "GracefulNodeShutdown"), GOOD("1.34.0", "{'featureGates':{'GracefulNodeShutdown':false}}"),
                BAD("1.33.4", "{'shutdownGracePeriod':'1m','shutdownGracePeriodByPodPriority':[{'priority':0,'shutdownGracePeriodSeconds':10}]}", "shutdownGracePeriodByPodPriority", "cannot be used with"),
                GOOD("1.34.0", "{'shutdownGracePeriodByPodPriority':[{'priority':0,'shutdownGracePeriodSeconds':10}]}"),
                BAD("1.34.0", "{'shutdownGracePeriodByPodPriority':[{'priority':'high'}]}", "shutdownGracePeriodByPodPriority[0].priority", "whole number"),
                /* reserved resources */
                BAD("1.33.4", "{'enforceNodeAllocatable':['pods','none']}", "enforceNodeAllocatable", "besides \"none\""), BAD("1.31.4", "{'enforceNodeAllocatable':['pods','pods']}", "enforceNodeAllocatable", "twice"),
                GOOD("1.30.4", "{'enforceNodeAllocatable':['pods','pods']}"), BAD("1.31.4", "{'enforceNodeAllocatable':['pods','kube-reserved-compressible']}", "enforceNodeAllocatable", "needs kubelet 1.32 or newer"),
                BAD("1.33.4", "{'enforceNodeAllocatable':['kube-reserved','kube-reserved-compressible']}", "enforceNodeAllocatable", "-compressible"), GOOD("1.33.4", "{'enforceNodeAllocatable':['pods','kube-reserved-compressible']}"),
                BAD("1.33.4", "{'enforceNodeAllocatable':['pods','system-reserved']}", "enforceNodeAllocatable", "systemReserved is not set"), GOOD("1.33.4", "{'enforceNodeAllocatable':['pods','system-reserved'],'systemReserved':{'cpu':'1'}}"),
                BAD("1.33.4", "{'enforceNodeAllocatable':['pods','kube-reserved'],'reservedSystemCPUs':'0'}", "enforceNodeAllocatable", "reservedSystemCPUs rules that cgroup out"),
                BAD("1.33.4", "{'cgroupsPerQOS':false}", "cgroupsPerQOS", "is []"), GOOD("1.33.4", "{'cgroupsPerQOS':false,'enforceNodeAllocatable':['none']}"),
                BAD("1.30.4", "{'cgroupsPerQOS':false,'enforceNodeAllocatable':['none']}", "cgroupsPerQOS", "is []"), GOOD("1.30.4", "{'cgroupsPerQOS':false,'enforceNodeAllocatable':[]}"),
                GOOD("1.33.4", "{'reservedSystemCPUs':'0-1,8'}"), BAD("1.33.4", "{'reservedSystemCPUs':'0-16'}", "reservedSystemCPUs", "names CPU 16"), BAD("1.33.4", "{'reservedSystemCPUs':'2-1'}", "reservedSystemCPUs", "list of CPUs"),
                BAD("1.33.4", "{'reservedSystemCPUs':'0,'}", "reservedSystemCPUs", "list of CPUs"), BAD("1.33.4", "{'reservedSystemCPUs':'0','systemReservedCgroup':'/system'}", "reservedSystemCPUs", "cannot be used with"),
                BAD("1.33.4", "{'reservedMemory':[{'numaNode':0,'limits':{'memory':'0'}}]}", "reservedMemory", "above 0"), BAD("1.33.4", "{'reservedMemory':[{'numaNode':0,'limits':{'cpu':'1'}}]}", "reservedMemory", "only memory"),
                BAD("1.33.4", "{'reservedMemory':[{'numaNode':0,'limits':{'memory':'1Gi'}},{'numaNode':0,'limits':{'memory':'1Gi'}}]}", "reservedMemory", "twice"), GOOD("1.33.4", "{'reservedMemory':[{'numaNode':0,'limits':{'memory':1024}}]}"),
                BAD("1.33.4", "{'memoryManagerPolicy':'Static'}", "memoryManagerPolicy", "limits: {memory: 2929Mi}"), BAD("1.33.4", "{'memoryManagerPolicy':'Static','reservedMemory':[{'numaNode':0,'limits':{'memory':'1Gi'}}]}", "memoryManagerPolicy", "has 1Gi"),
                GOOD("1.33.4", "{'memoryManagerPolicy':'Static','reservedMemory':[{'numaNode':0,'limits':{'memory':'2929Mi'}}]}"),
                BAD("1.33.4", "{'memoryManagerPolicy':'Static','reservedMemory':[{'numaNode':1,'limits':{'memory':'2929Mi'}}]}", "memoryManagerPolicy", "NUMA node 1"),
                GOOD("1.33.4", "{'memoryManagerPolicy':'Static','kubeReserved':{'memory':'1Gi'},'systemReserved':{'memory':'1Gi'},'evictionHard':{'memory.available':'0%'},'reservedMemory':[{'numaNode':0,'limits':{'memory':'2Gi'}}]}"),
                BAD("1.33.4", "{'memoryManagerPolicy':'Static','evictionHard':{'memory.available':'5%'}}", "memoryManagerPolicy", "without reservedMemory"),
                GOOD("1.33.4", "{'memoryManagerPolicy':'Static','evictionHard':{'memory.available':'5%'},'reservedMemory':[{'numaNode':0,'limits':{'memory':'4Gi'}}]}"),
                BAD("1.33.4", "{'systemReserved':{'cpu':'-1'}}", "systemReserved", "negative"), BAD("1.33.4", "{'qosReserved':{'memory':'half'}}", "qosReserved", "percentage"), GOOD("1.33.4", "{'qosReserved':{'memory':'50%'}}"),
                BAD("1.33.4", "{'qosReserved':{'cpu':'50%'}}", "qosReserved", "other than memory"), BAD("1.33.4", "{'qosReserved':{'memory':'101%'}}", "qosReserved", "percentage"),
                /* eviction */
                BAD("1.33.4", "{'evictionHard':{'memory.available':'0'}}", "evictionHard", "above 0"), GOOD("1.33.4", "{'evictionHard':{'memory.available':'0%'}}"), BAD("1.33.4", "{'evictionHard':{'memory.available':'110%'}}", "evictionHard", "from 0% to 100%"),
                BAD("1.28.4", "{'evictionHard':{'containerfs.available':'5%'}}", "evictionHard", "needs kubelet 1.29 or newer"), GOOD("1.29.4", "{'evictionHard':{'containerfs.available':'5%'}}"),
                BAD("1.33.4", "{'evictionSoft':{'memory.available':'5%'}}", "evictionSoft", "lacks a grace period for memory.available"), GOOD("1.33.4", "{'evictionSoft':{'memory.available':'5%'},'evictionSoftGracePeriod':{'memory.available':'1m'}}"),
                BAD("1.33.4", "{'evictionSoftGracePeriod':{'memory.available':'5'}}", "evictionSoftGracePeriod", "must be a duration"), BAD("1.33.4", "{'evictionMinimumReclaim':{'memory.available':'0%'}}", "evictionMinimumReclaim", "above 0%"),
                GOOD("1.33.4", "{'evictionMinimumReclaim':{'memory.available':'0'}}"),
                /* managers */
                GOOD("1.33.4", "{'cpuManagerPolicy':'static'}"), BAD("1.33.4", "{'cpuManagerPolicy':'static','kubeReserved':{'cpu':'0'}}", "cpuManagerPolicy", "no CPU is reserved"), GOOD("1.33.4", "{'cpuManagerPolicy':'static','kubeReserved':{'cpu':'0'},'reservedSystemCPUs':'0'}"),
                BAD("1.33.4", "{'cpuManagerPolicyOptions':{'full-pcpus-only':'true'}}", "cpuManagerPolicyOptions", "needs cpuManagerPolicy"), GOOD("1.33.4", "{'cpuManagerPolicy':'static','cpuManagerPolicyOptions':{'full-pcpus-only':'true'}}"),
                BAD("1.33.4", "{'cpuManagerPolicy':'static','cpuManagerPolicyOptions':{'align-by-socket':'true'}}", "cpuManagerPolicyOptions", "CPUManagerPolicyAlphaOptions"), BAD("1.33.4", "{'cpuManagerPolicy':'static','cpuManagerPolicyOptions':{'pin':'true'}}", "cpuManagerPolicyOptions", "does not know"),
                BAD("1.31.4", "{'cpuManagerPolicy':'static','cpuManagerPolicyOptions':{'strict-cpu-reservation':'true'}}", "cpuManagerPolicyOptions", "needs kubelet 1.32 or newer"), BAD("1.33.4", "{'cpuManagerPolicy':'static','cpuManagerPolicyOptions':{'full-pcpus-only':'yes'}}", "cpuManagerPolicyOptions", "\"true\""),
                BAD("1.33.4", "{'cpuManagerPolicy':'static','featureGates':{'CPUManagerPolicyAlphaOptions':true},'cpuManagerPolicyOptions':{'full-pcpus-only':'true','distribute-cpus-across-cores':'true'}}", "cpuManagerPolicyOptions", "cannot be used together"),
                BAD("1.33.4", "{'topologyManagerPolicy':'restricted','topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'4'}}", "topologyManagerPolicyOptions", "in quotes, at least 8"), GOOD("1.33.4", "{'topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'4'}}"),
                BAD("1.30.4", "{'topologyManagerPolicy':'restricted','topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'16'}}", "topologyManagerPolicyOptions", "needs kubelet 1.31 or newer"), GOOD("1.33.4", "{'topologyManagerPolicy':'restricted','topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'16'}}"),
                BAD("1.33.4", "{'featureGates':{'TopologyManagerPolicyBetaOptions':false},'topologyManagerPolicy':'restricted','topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'16'}}", "topologyManagerPolicyOptions", "TopologyManagerPolicyBetaOptions"),
                /* the rest */
                BAD("1.33.4", "{'memorySwap':{'swapBehavior':'UnlimitedSwap'}}", "memorySwap", "up to 1.29"), GOOD("1.33.4", "{'memorySwap':{'swapBehavior':'LimitedSwap'}}"), BAD("1.29.4", "{'memorySwap':{'swapBehavior':'LimitedSwap'}}", "memorySwap", "NodeSwap"),
                BAD("1.37.0", "{'memoryThrottlingFactor':0.8,'featureGates':{'MemoryQoS':false}}", "memoryThrottlingFactor", "MemoryQoS"), GOOD("1.36.0", "{'memoryThrottlingFactor':0.8}"), BAD("1.36.0", "{'memoryReservationPolicy':'TieredReservation','featureGates':{'MemoryQoS':false}}", "memoryReservationPolicy", "MemoryQoS"),
                BAD("1.33.4", "{'allowedUnsafeSysctls':['kernel.*']}", "allowedUnsafeSysctls", "kernel.*, which is not namespaced"), BAD("1.33.4", "{'allowedUnsafeSysctls':['net.*.a']}", "allowedUnsafeSysctls", "not a kernel setting"),
                GOOD("1.33.4", "{'allowedUnsafeSysctls':['net.*','kernel.shm*','fs.mqueue.msg_max','net/core/somaxconn']}"), BAD("1.36.4", "{'allowedUnsafeSysctls':['user.max_user_namespaces']}", "allowedUnsafeSysctls", "user."), GOOD("1.37.4", "{'allowedUnsafeSysctls':['user.max_user_namespaces']}"),
                GOOD("1.34.0", "{'featureGates':{'RotateKubeletServerCertificate':false}}"), BAD("1.34.0", "{'serverTLSBootstrap':true,'featureGates':{'RotateKubeletServerCertificate':false}}", "serverTLSBootstrap", "RotateKubeletServerCertificate"),
                BAD("1.33.4", "{'cpuCFSQuotaPeriod':'10ms'}", "cpuCFSQuotaPeriod", "CustomCPUCFSQuotaPeriod"), BAD("1.33.4", "{'crashLoopBackOff':{'maxContainerRestartPeriod':'60s'}}", "crashLoopBackOff", "KubeletCrashLoopBackOffMax"),
                GOOD("1.35.4", "{'crashLoopBackOff':{'maxContainerRestartPeriod':'60s'}}"), BAD("1.35.4", "{'crashLoopBackOff':{'maxContainerRestartPeriod':'10m'}}", "crashLoopBackOff", "from 1s to 300s"),
                BAD("1.33.4", "{'enableSystemLogQuery':true,'enableSystemLogHandler':false}", "enableSystemLogQuery", "enableSystemLogHandler"), BAD("1.33.4", "{'runOnce':true}", "runOnce", "must be false"), GOOD("1.31.4", "{'runOnce':true}"),
                BAD("1.33.4", "{'userNamespaces':{'idsPerPod':196608}}", "userNamespaces", "power of two"), BAD("1.33.4", "{'maxPods':65536}", "maxPods", "at most 65535"), GOOD("1.33.4", "{'maxPods':65535}"), GOOD("1.29.4", "{'maxPods':65536}"),
                BAD("1.33.4", "{'systemCgroups':'/'}", "systemCgroups", "root"), BAD("1.33.4", "{'podLogsDir':'/var/../log'}", "podLogsDir", "absolute path"), BAD("1.33.4", "{'podLogsDir':'/var/l\xc3\xb6g'}", "podLogsDir", "ASCII"),
                BAD("1.33.4", "{'tracing':{'endpoint':'http://a:1'}}", "tracing", "dns://"), BAD("1.33.4", "{'tracing':{'endpoint':'x y'}}", "tracing", "a host and a port"), GOOD("1.33.4", "{'tracing':{'endpoint':'localhost:4317','samplingRatePerMillion':1000}}"),
                BAD("1.33.4", "{'logging':{'format':'json','vmodule':[{'filePattern':'a','verbosity':1}]}}", "logging", "vmodule"), BAD("1.33.4", "{'logging':{'flushFrequency':'-1s'}}", "logging", "flushFrequency"),
                GOOD("1.33.4", "{'logging':{'options':{'text':{'splitStream':true}}}}"), BAD("1.33.4", "{'showHiddenMetricsForVersion':'1.31'}", "showHiddenMetricsForVersion", "must be 1.32"), GOOD("1.33.4", "{'showHiddenMetricsForVersion':'1.32'}"),
                BAD("1.33.4", "{'tlsCipherSuites':['TLS_RSA_WITH_AES_128_CBC_SHA']}", "tlsCipherSuites", "HTTP/2"), GOOD("1.33.4", "{'tlsMinVersion':'VersionTLS13','tlsCipherSuites':['TLS_RSA_WITH_AES_128_CBC_SHA']}"),
                BAD("1.37.0", "{'tlsCurvePreferences':[29,29]}", "tlsCurvePreferences", "each once"), BAD("1.37.0", "{'tlsCurvePreferences':[-1]}", "tlsCurvePreferences", "numbers of TLS curves"), GOOD("1.37.0", "{'tlsCurvePreferences':[29,4588]}"),
                BAD("1.37.0", "{'featureGates':{'DefaultPodSysctls':true},'defaultPodSysctls':{'vm.swappiness':'1'}}", "defaultPodSysctls", "vm.swappiness"), BAD("1.37.0", "{'defaultPodSysctls':{'net.core.somaxconn':'1'}}", "defaultPodSysctls", "DefaultPodSysctls"),
                BAD("1.33.4", "{'address':'10.0.0.300'}", "address", "IP address"), GOOD("1.33.4", "{'address':'::'}"),
                BAD("1.33.4", "{'healthzPort':10250}", "healthzPort", "healthzPort (default: 10248) must differ from port"), GOOD("1.33.4", "{'healthzPort':0}"),
                BAD("1.33.4", "{'readOnlyPort':10250,'port':0}", "readOnlyPort", "must differ from port"), BAD("1.33.4", "{'runtimeRequestTimeout':'-1s'}", "runtimeRequestTimeout", "100ms or more"),
                BAD("1.33.4", "{'runtimeRequestTimeout':'1ms'}", "runtimeRequestTimeout", "100ms or more"), GOOD("1.33.4", "{'runtimeRequestTimeout':'0s'}"), GOOD("1.33.4", "{'runtimeRequestTimeout':'1s'}"),
                BAD("1.33.4", "{'readOnlyPort':10250}", "readOnlyPort", "must differ from port"), GOOD("1.33.4", "{'readOnlyPort':10255}"), BAD("1.33.4", "{'readOnlyPort':11000,'port':11000}", "readOnlyPort", "must differ from port"),
                BAD("1.37.0", "{'featureGates':{'KubeletCrashLoopBackOffMax':false}}", "featureGates", "leave it on"), GOOD("1.33.4", "{'featureGates':{'KubeletCrashLoopBackOffMax':false}}"),
                BAD("1.37.0", "{'featureGates':{'AllBeta':false}}", "featureGates", "leave it on"), GOOD("1.34.0", "{'shutdownGracePeriod':null}"),
                BAD("1.33.4", "{'registerWithTaints':[{'key':'a/b/c'}]}", "registerWithTaints", "[0]"), BAD("1.33.4", "{'registerWithTaints':[{'key':'x','value':'a b'}]}", "registerWithTaints", "[0]"), GOOD("1.33.4", "{'registerWithTaints':[{'key':'nvidia.com/gpu','value':'true','effect':'NoSchedule'},{'key':'x'}]}"),
                BAD("1.33.4", "{'registerWithTaints':[{'key':'A.com/b'}]}", "registerWithTaints", "[0]"),
                /* values that a table row judges, below a key */
                BAD("1.33.4", "{'maxPods':'30'}", "maxPods", "without quotes"), BAD("1.33.4", "{'userNamespaces':{'idsPerPod':5}}", "userNamespaces.idsPerPod", "must be from 65536"),
                BAD("1.33.4", "{'containerLogMaxSize':'0.5'}", "containerLogMaxSize", "quantity without a fraction"),
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

TEST(flags_override_settings_in_the_rules) {
        static const Case cases[] = {
                { "1.33.4", "{'reservedSystemCPUs':'99'}", "--reserved-cpus=0-1", NULL, NULL },
                { "1.33.4", NULL, "--reserved-cpus=99", "spec.kubelet.flags[0]", "names CPU 99" },
                { "1.33.4", "{'runtimeRequestTimeout':'1m'}", "--runtime-request-timeout=0s", "spec.kubelet.flags[0]", "100ms or more" },
                { "1.33.4", "{'systemReserved':{'cpu':'-1'}}", "--system-reserved=cpu=1", NULL, NULL },
                { "1.33.4", NULL, "--system_reserved cpu=-1", "spec.kubelet.flags[0]", "negative" },
                { "1.33.4", "{'evictionSoft':{'memory.available':'5%'}}", "--eviction-soft-grace-period=memory.available=1m", NULL, NULL },
                { "1.33.4", NULL, "--eviction-soft=memory.available<5%", "spec.kubelet.flags[0]", "lacks a grace period" },
                { "1.33.4", "{'imagePullCredentialsVerificationPolicy':'AlwaysVerify'}", "--feature-gates=KubeletEnsureSecretPulledImages=true", NULL, NULL },
                { "1.37.0", NULL, "--feature-gates=KubeletEnsureSecretPulledImages=false", NULL, NULL },
                { "1.37.0", "{'featureGates':{'KubeletEnsureSecretPulledImages':true}}", "--feature-gates=KubeletEnsureSecretPulledImages=false", "spec.kubelet.flags[0]", "leave it on" },
                { "1.33.4", "{'memoryManagerPolicy':'Static'}", "--reserved-memory=0:memory=2929Mi", NULL, NULL },
                { "1.33.4", "{'memoryManagerPolicy':'Static'}", "--reserved-memory=0:memory=1Gi;1:memory=1905Mi", "spec.kubelet.config.memoryManagerPolicy", "NUMA node 1" },
                { "1.33.4", "{'memoryManagerPolicy':'Static','evictionHard':{'memory.available':'5%'}}", "--experimental-allocatable-ignore-eviction",
                  "spec.kubelet.config.memoryManagerPolicy", "and evictionHard 0; reservedMemory has none: set it to [{numaNode: 0, limits: {memory: 2829Mi}}]" },
                { "1.33.4", "{'enforceNodeAllocatable':['none']}", "--cgroups-per-qos=false", NULL, NULL },
                { "1.33.4", NULL, "--cgroups-per-qos=false", "spec.kubelet.flags[0]", "is []" },
                { "1.33.4", NULL, "--max-pods=x", "spec.kubelet.flags[0]", "whole number" },
                { "1.33.4", "{'allowedUnsafeSysctls':['vm.a']}", "--allowed-unsafe-sysctls=net.core.somaxconn,net.*", NULL, NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

/* Our settings disappear if the user sets the same thing, and only then. */
TEST(our_settings_yield_to_those_of_the_user) {
        static const struct { const char *settings, *flag, *key, *want; } cases[] = {
                { "{}", NULL, "kubeReservedCgroup", "\"/runtime\"" },
                { "{'reservedSystemCPUs':'0'}", NULL, "kubeReservedCgroup", "absent" },
                { "{}", "--reserved-cpus=0", "systemReservedCgroup", "absent" },
                { "{'reservedSystemCPUs':''}", NULL, "systemReservedCgroup", "\"/system\"" },
                { "{'featureGates':{'RotateKubeletServerCertificate':false}}", NULL, "serverTLSBootstrap", "absent" },
                { "{}", "--feature-gates=RotateKubeletServerCertificate=false", "serverTLSBootstrap", "absent" },
                { "{'featureGates':{'RotateKubeletServerCertificate':true}}", NULL, "serverTLSBootstrap", "true" },
                { "{'shutdownGracePeriod':'0s'}", NULL, "shutdownGracePeriodCriticalPods", "absent" },
                { "{'shutdownGracePeriod':'30s'}", NULL, "shutdownGracePeriodCriticalPods", "\"30s\"" },
                { "{'shutdownGracePeriodCriticalPods':'3m'}", NULL, "shutdownGracePeriod", "\"3m\"" },
                { "{'shutdownGracePeriodCriticalPods':'1m'}", NULL, "shutdownGracePeriod", "\"2m30s\"" },
                { "{'shutdownGracePeriodByPodPriority':[{'priority':0}]}", NULL, "shutdownGracePeriod", "absent" },
                { "{'shutdownGracePeriodByPodPriority':[]}", NULL, "shutdownGracePeriod", "\"2m30s\"" },
                { "{'featureGates':{'GracefulNodeShutdown':false}}", NULL, "shutdownGracePeriod", "absent" },
                { "{'featureGates':{'AllBeta':false}}", NULL, "shutdownGracePeriod", "absent" },
                { "{'shutdownGracePeriod':null}", NULL, "shutdownGracePeriodCriticalPods", "absent" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                static char version[] = "1.34.2";
                _cleanup_(sample_done) Sample s = sample_new();
                _strv_ char **flags = cases[i].flag ? LIST(cases[i].flag) : NULL;
                s.host.kubelet_version = version;
                s.config.kubelet.config = sample_json(&s, cases[i].settings);
                s.config.kubelet.flags = flags;
                sample_plan(&s);
                ASSERT_SETTING(&s, CONFIG, cases[i].key, cases[i].want);
                bool said = strstr(sample_file(&s, CONFIG)->why, streq(cases[i].want, "absent") ? cases[i].key : "to cover");
                ASSERT_EQ(said, streq(cases[i].want, "absent") || streq(cases[i].want, "\"3m\""));
        }
}

/* As nodeadm, the files must have the bytes of nodeadm. */
TEST(as_nodeadm_the_rules_only_warn) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.options.as_nodeadm = true;
        s.config.kubelet.config = sample_json(&s, "{'evictionSoft':{'memory.available':'5%'}}");
        sample_plan(&s);
        ASSERT_TRUE(sample_warned(&s, "kubelet-setting"));
        ASSERT_TRUE(!said_at(&s, NULL));
}

TEST_MAIN
