/* SPDX-License-Identifier: Apache-2.0 */
#include "config/fields.h"
#include "sample.h"

#define CONFIG "/etc/kubernetes/kubelet/config.json"
#define USER   "/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf"
#define FLAGS  "/etc/eks/kubelet/environment"

TEST(cluster_dns_is_the_tenth_address_of_the_range) {
        static const struct { const char *cidr, *dns; } cases[] = {
                { "10.100.0.0/16", "10.100.0.10" },             { "172.20.0.0/16", "172.20.0.10" },
                { "10.100.7.9/16", "10.100.0.10" },             { "192.168.1.128/25", "192.168.1.138" },
                { "10.0.0.16/28", "10.0.0.26" },                { "0.0.0.0/0", "0.0.0.10" },
                { "fd30:1c53:5f8a::/108", "fd30:1c53:5f8a::a" }, { "FD00:0:0:0:0:0:0:ff/108", "fd00::a" },
                { "10.100.0.0", NULL }, { "10.100.0.0/29", NULL }, { "10.100.0/16", NULL }, { "10.100.0.0/33", NULL }, { "fd00::/125", NULL },
                { "10.100.0.0/-1", NULL }, { "/16", NULL }, { "", NULL }, { "10.100.0.0/16 ", NULL }, { "fd00::/129", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *dns = NULL;
                bool ipv6 = false;
                int r = cluster_dns(cases[i].cidr, &dns, &ipv6);
                if (!cases[i].dns) {
                        if (r != -EINVAL)
                                FAIL("%s is accepted", cases[i].cidr);
                        continue;
                }
                if (r < 0)
                        FAIL("%s is refused", cases[i].cidr);
                ASSERT_STREQ(dns, cases[i].dns);
                ASSERT_EQ(ipv6, strchr(cases[i].cidr, ':') != NULL);
        }
}

TEST(the_cpu_reservation_grows_with_the_cpus) {
        static const unsigned cases[][2] = { { 0, 0 }, { 1, 60 }, { 2, 70 }, { 3, 75 }, { 4, 80 }, { 8, 90 }, { 16, 110 }, { 96, 310 }, { 192, 550 } };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                ASSERT_EQ(cpu_reserved_millicores(cases[i][0]), cases[i][1]);
}

TEST(settings_follow_the_kubelet_version) {
        static const struct { const char *version, *path, *want; } cases[] = {
                { "1.32.9", "featureGates",                "{\"RotateKubeletServerCertificate\":true}" },
                { "1.33.0", "featureGates",                "{\"DynamicResourceAllocation\":true,\"RotateKubeletServerCertificate\":true}" },
                { "1.33.9", "shutdownGracePeriod",         "absent" },
                { "1.34.0", "featureGates",                "{\"MutableCSINodeAllocatableCount\":true,\"RotateKubeletServerCertificate\":true}" },
                { "1.35.9", "featureGates/MutableCSINodeAllocatableCount", "true" },
                { "1.36.0", "featureGates",                "{\"RotateKubeletServerCertificate\":true}" },
                { "1.34.0", "shutdownGracePeriod",         "\"2m30s\"" },
                { "1.35.1", "shutdownGracePeriodCriticalPods", "\"30s\"" },
                { "1.25.3", "featureGates/KubeletCredentialProviders", "true" },
                { "1.26.0", "featureGates/KubeletCredentialProviders", "absent" },
                { "1.28.0", "featureGates/KubeletCredentialProviders", "absent" },
                { "1.26.0", "kubeAPIQPS",                  "10" },
                { "1.27.0", "kubeAPIQPS",                  "absent" },
                { "1.25.0", "providerID",                  "absent" },
                { "1.26.0", "providerID",                  "\"aws:///us-west-2b/i-0123456789abcdef0\"" },
                { "1.33.4", "clusterDNS",                  "[\"10.100.0.10\"]" },
                { "1.33.4", "evictionHard",                "{\"memory.available\":\"100Mi\",\"nodefs.available\":\"10%\",\"nodefs.inodesFree\":\"5%\"}" },
                { "1.33.4", "authentication/x509/clientCAFile", "\"/etc/kubernetes/pki/ca.crt\"" },
                { "1.33.4", "readOnlyPort",                "0" },
                { "1.33.4", "maxPods",                     "234" },
                { "1.33.4", "kubeReserved",                "{\"cpu\":\"110m\",\"ephemeral-storage\":\"1Gi\",\"memory\":\"2829Mi\"}" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xstrdup(cases[i].version);
                s.host.kubelet_version = version;
                sample_plan(&s);
                ASSERT_SETTING(&s, CONFIG, cases[i].path, cases[i].want);
        }
}

/* kubelet warns of gates that are generally available. It does not start with a gate that it no longer
 * knows. */
TEST(feature_gates_follow_version_and_program_name) {
        static const struct { const char *version, *nodeadms, *ours; } cases[] = {
                { "1.27.0", "KubeletCredentialProviders ", "" },
                { "1.32.0", "", "" },
                { "1.33.13", "DynamicResourceAllocation ", "DynamicResourceAllocation " },
                { "1.34.0", "DynamicResourceAllocation MutableCSINodeAllocatableCount ", "MutableCSINodeAllocatableCount " },
                { "1.35.0", "DynamicResourceAllocation MutableCSINodeAllocatableCount ", "MutableCSINodeAllocatableCount " },
                { "1.37.0", "DynamicResourceAllocation MutableCSINodeAllocatableCount ", "" },
                { "1.38.0", "", "" },
        };
        for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xstrdup(cases[i / 2].version);
                s.host.kubelet_version = version;
                s.options.as_nodeadm = i % 2;
                bool locked = version_at_least(version, 1, 35);         /* locked to true */
                s.config.kubelet.config = sample_json(&s, locked ? "{'featureGates': {'DynamicResourceAllocation': true}}"
                                                                 : "{'featureGates': {'DynamicResourceAllocation': false}}");
                sample_plan(&s);
                _cleanup_(json_decrefp) json_t *config = json_loads(sample_file(&s, CONFIG)->file.content, 0, NULL);
                _cleanup_(text_done) Text gates = {};
                const char *gate;
                json_t *on;
                json_object_foreach(json_object_get(config, "featureGates"), gate, on)
                        if (!streq(gate, "RotateKubeletServerCertificate") && json_is_true(on))
                                text_add(&gates, "%s ", gate);
                ASSERT_STREQ(gates.data ?: "", s.options.as_nodeadm ? cases[i / 2].nodeadms : cases[i / 2].ours);
                if (version_at_least(version, 1, 28))
                        ASSERT_SETTING(&s, USER, "featureGates", locked ? "{\"DynamicResourceAllocation\":true}" : "{\"DynamicResourceAllocation\":false}");
        }
}

TEST(the_table_has_feature_gates_by_version) {
        static const struct { const char *name; unsigned minor; const char *want; } cases[] = {
                { "AllAlpha", 28, "off" }, { "AllBeta", 37, "off" }, { "MemoryQoS", 36, "off" }, { "MemoryQoS", 37, "on" },
                { "SidecarContainers", 28, "off" }, { "SidecarContainers", 32, "on" }, { "SidecarContainers", 33, "on, locked" }, { "SidecarContainers", 36, "on, locked" },
                { "SidecarContainers", 37, "not known" }, { "WatchList", 37, "on" }, { "NFTablesProxyMode", 28, "not known" }, { "NFTablesProxyMode", 29, "off" },
                { "NodeSwap", 29, "off" }, { "NodeSwap", 30, "on" }, { "NodeSwap", 33, "on" }, { "NodeSwap", 34, "on, locked" },
                { "AllowServiceLBStatusOnNonLB", 32, "off, locked" }, { "nodeSwap", 33, "not known" }, { "", 33, "not known" },
        };
        unsigned from, until;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                KubeletGate g;
                bool known = kubelet_gate_find(cases[i].name, cases[i].minor, &g);
                _free_ char *got = known ? xasprintf("%s%s", g.on ? "on" : "off", g.locked ? ", locked" : "") : xstrdup("not known");
                if (!streq(got, cases[i].want))
                        FAIL("%s in 1.%u: %s, and not %s", cases[i].name, cases[i].minor, got, cases[i].want);
        }
        ASSERT_TRUE(kubelet_gate_versions("SidecarContainers", &from, &until) && from == 0 && until == 37);
        ASSERT_TRUE(kubelet_gate_versions("NFTablesProxyMode", &from, &until) && from == 29 && until == 0);
        ASSERT_TRUE(!kubelet_gate_versions("Sidecar", &from, &until));
        ASSERT_STREQ(kubelet_gate_nearest("DynamicResourceAlocation"), "DynamicResourceAllocation");
        ASSERT_TRUE(!kubelet_gate_nearest("EntirelyOfMyOwnMaking"));
}

/* From 1.35 on gates depend on each other. Our gates have their default values there, so only the user
 * decides. */
TEST(each_kubelet_starts_with_our_feature_gates) {
        for (unsigned i = 2 * KUBELET_TABLES_FROM; i < 2 * (KUBELET_TABLES_TO + 1); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xasprintf("1.%u.0", i / 2);
                s.host.kubelet_version = version;
                s.options.as_nodeadm = i % 2;
                sample_plan(&s);
                _cleanup_(json_decrefp) json_t *config = json_loads(sample_file(&s, CONFIG)->file.content, 0, NULL);
                const char *name;
                json_t *on;
                KubeletGate g;
                json_object_foreach(json_object_get(config, "featureGates"), name, on)
                        if (!kubelet_gate_find(name, i / 2, &g) || ((g.locked || i / 2 >= 35) && g.on != json_is_true(on)))
                                FAIL("kubelet %s does not start with %s", version, name);
        }
}

TEST(feature_gates_that_kubelet_exits_with_are_errors) {
        static const struct { const char *file, *flag, *version, *path, *said; } cases[] = {
                { "'DynamicResourceAlocation': true", NULL, "1.33.13", ".config.featureGates.DynamicResourceAlocation",
                  "kubelet 1.33.13 exits: it does not know the feature gate \"DynamicResourceAlocation\"; did you mean DynamicResourceAllocation?" },
                { "'DynamicResourceAlocation': true", NULL, "1.38.0", NULL, NULL }, { "'Own': true", NULL, "1.27.16", NULL, NULL },
                { "'DisableKubeletCloudCredentialProviders': true", NULL, "1.33.13", ".config.featureGates.DisableKubeletCloudCredentialProviders",
                  "kubelet 1.33.13 exits with the feature gate DisableKubeletCloudCredentialProviders, which kubelet 1.33 removed; remove it" },
                { "'DisableKubeletCloudCredentialProviders': true", NULL, "1.32.11", NULL, NULL },
                { "'SidecarContainers': false", NULL, "1.33.13", ".config.featureGates.SidecarContainers",
                  "kubelet 1.33.13 exits with the feature gate SidecarContainers=false: it is locked to true; remove it" },
                { "'SidecarContainers': false", NULL, "1.32.0", NULL, NULL }, { "'SidecarContainers': true", NULL, "1.33.13", NULL, NULL },
                { "'DRAListTypeAttributes': true", NULL, "1.35.6", ".config.featureGates.DRAListTypeAttributes", "DRAListTypeAttributes, which needs kubelet 1.36 or newer; remove it" },
                { NULL, "--feature-gates=NodeSwap=true, Own = 1", "1.33.13", ".flags[0]", "does not know the feature gate \"Own\"" },
                { NULL, "--v=2 --feature_gates SidecarContainers=F", "1.33.13", ".flags[0]", "SidecarContainers=false: it is locked" },
                { NULL, "--feature-gates=\"SidecarContainers=false,SidecarContainers=true\"", "1.33.13", NULL, NULL },
                /* the flag overrides the file; from 1.32 on kubelet checks the file first */
                { "'APIServerTracing': true, 'CSINodeExpandSecret': false", "--feature-gates=CSINodeExpandSecret=true", "1.30.14", NULL, NULL },
                { "'SidecarContainers': false", "--feature-gates=SidecarContainers=true", "1.33.13", ".config.featureGates.SidecarContainers", "locked to true" },
                { "'SidecarContainers': true", "--feature-gates=SidecarContainers=false", "1.33.13", ".flags[0]", "locked to true" },
                /* kubernetes/kubernetes pkg/features/kube_features.go:defaultKubernetesFeatureGateDependencies */
                { "'GracefulNodeShutdown': false", NULL, "1.34.9", NULL, NULL },
                { "'GracefulNodeShutdown': false", NULL, "1.35.0", ".config.featureGates.GracefulNodeShutdown",
                  "kubelet 1.35.0 exits: the feature gate GracefulNodeShutdownBasedOnPodPriority is on and needs GracefulNodeShutdown, which is off; turn both on or both off" },
                { "'GracefulNodeShutdown': false, 'GracefulNodeShutdownBasedOnPodPriority': false, 'WindowsGracefulNodeShutdown': false", NULL, "1.37.0", NULL, NULL },
                { "'TopologyAwareWorkloadScheduling': true", "--feature-gates=GenericWorkload=true", "1.37.0", NULL, NULL },
                { "'TopologyAwareWorkloadScheduling': true, 'GenericWorkload': true", "--feature-gates=GenericWorkload=false", "1.37.0",
                  ".config.featureGates.TopologyAwareWorkloadScheduling", "needs GenericWorkload" },
                { "'GenericWorkload': true", "--feature-gates=TopologyAwareWorkloadScheduling=true", "1.37.0", ".flags[0]", "needs GenericWorkload" },
                { "'AllAlpha': true", NULL, "1.37.0", ".config.featureGates.AllAlpha", "CompositePodGroup is on and needs GenericWorkload" },
                { "'AllAlpha': true, 'AllBeta': true", NULL, "1.37.0", NULL, NULL }, { "'AllAlpha': true", NULL, "1.34.9", NULL, NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *gates = xasprintf("{'featureGates': {%s}}", cases[i].file ?: "");
                Plan *plan = NULL;
                s.config.kubelet.config = sample_json(&s, gates);
                s.config.kubelet.flags = cases[i].flag ? LIST(cases[i].flag) : NULL;
                s.host.kubelet_version = (char *)cases[i].version;
                int r = plan_make(&s.config, &s.host, &s.options, &plan, &s.diag);
                const Diagnostic *e = diag_first_error(&s.diag);
                if ((r < 0) != (cases[i].said != NULL) || (e && (!strstr(e->text, cases[i].said) || !endswith(e->path, cases[i].path))))
                        FAIL("%s, %s for %s gives %d, %s: %s", gates, cases[i].flag ?: "no flag", cases[i].version, r, e ? e->path : "", e ? e->text : "nothing");
                plan_free(plan);
                strv_free(s.config.kubelet.flags);
        }
}

/* nodeadm writes such gates, and so does nodestrap under that name. */
TEST(as_nodeadm_bad_feature_gates_are_warnings) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.kubelet.config = sample_json(&s, "{'featureGates': {'NoSuchGate': true, 'NodeSwap': false}}");
        s.config.kubelet.flags = LIST("--feature-gates=SidecarContainers=false");
        s.host.kubelet_version = (char[]){ "1.34.9" };
        s.options.as_nodeadm = true;
        sample_plan(&s);
        ASSERT_SETTING(&s, USER, "featureGates", "{\"NoSuchGate\":true,\"NodeSwap\":false}");
        ASSERT_TRUE(sample_warned(&s, "kubelet-setting") && sample_warned(&s, "kubelet-flag"));
        strv_free(s.config.kubelet.flags);
}

TEST(flags_follow_the_kubelet_version) {
        static const struct { const char *version, *text; bool there; } cases[] = {
                { "1.33.4", "--cloud-provider=external", true },        { "1.25.0", "--cloud-provider=aws", true },
                { "1.25.0", "--hostname-override", false },             { "1.33.4", "--hostname-override=ip-10-0-3-7.us-west-2.compute.internal", true },
                { "1.33.4", "--node-ip=10.0.3.7", true },               { "1.27.0", "--pod-infra-container-image=localhost/kubernetes/pause:latest", true },
                { "1.28.0", "--pod-infra-container-image", false },     { "1.26.9", "--container-runtime=remote", true },
                { "1.27.0", "--container-runtime", false },             { "1.32.9", "nvidia.com/gpu.present", false },
                { "1.33.0", "--node-labels=nvidia.com/gpu.present=true", true },
                { "1.33.4", "--config=/etc/kubernetes/kubelet/config.json", true }, { "1.33.4", "--config-dir", false },
                { "1.33.4", "--image-credential-provider-bin-dir=/etc/eks/image-credential-provider ", true },
                { "1.33.4", "--kubeconfig=/var/lib/kubelet/kubeconfig", true },
                { "1.33.4", "--runtime-cgroups=/runtime.slice/containerd.service", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xstrdup(cases[i].version);
                s.host.kubelet_version = version;
                s.host.gpus = (Gpus){ .class = GPU_CLASS_SINGLE, .count = 1, .expected = 1 };
                s.host.pci = (PciDevice[]){ { .address = (char[]){ "0000:31:00.0" }, .vendor = 0x10de, .device = 0x2237 } };
                s.host.n_pci = 1;
                sample_plan(&s);
                const char *text = sample_file(&s, FLAGS)->file.content;
                if (!!strstr(text, cases[i].text) != cases[i].there)
                        FAIL("kubelet %s, %s: %s", cases[i].version, cases[i].text, text);
        }
}

TEST(as_nodeadm_the_gpu_label_starts_with_1_35) {
        for (unsigned minor = 33; minor < 37; minor++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xasprintf("1.%u.3", minor);
                s.host.kubelet_version = version;
                s.host.pci = (PciDevice[]){ { .address = (char[]){ "0000:31:00.0" }, .vendor = 0x10de, .device = 0x2237 } };
                s.host.n_pci = 1;
                s.options.as_nodeadm = true;
                sample_plan(&s);
                ASSERT_EQ(!!strstr(sample_file(&s, FLAGS)->file.content, "gpu.present"), minor >= 35);
        }
}

TEST(gpu_label_needs_a_gpu) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.host.gpus.class = GPU_CLASS_NVSWITCH;         /* by the instance type alone: the GPUs are missing */
        s.host.kubelet_version = (char[]){ "1.35.0" };
        sample_plan(&s);
        ASSERT_TRUE(!strstr(sample_file(&s, FLAGS)->file.content, "gpu.present"));
}

TEST(user_settings_go_to_a_drop_in_or_are_merged) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.kubelet.config = sample_json(&s, "{'maxPods': 42, 'featureGates': {'NodeSwap': true}, 'memoryThrottlingFactor': 0.9}");
        sample_plan(&s);
        ASSERT_SETTING(&s, USER, "kind", "\"KubeletConfiguration\"");
        ASSERT_SETTING(&s, USER, "featureGates", "{\"NodeSwap\":true}");
        ASSERT_CONTAINS(sample_file(&s, USER)->file.content, "\"memoryThrottlingFactor\": 0.9\n");
        ASSERT_SETTING(&s, CONFIG, "featureGates/NodeSwap", "absent");
        ASSERT_SETTING(&s, CONFIG, "kubeReserved/memory", "\"717Mi\"");
        ASSERT_CONTAINS(sample_file(&s, FLAGS)->file.content, "--config-dir=/etc/kubernetes/kubelet/config.json.d");
        ASSERT_TRUE(!strstr(sample_file(&s, FLAGS)->file.content, "ALPHA"));

        s.host.kubelet_version = (char[]){ "1.29.3" };
        sample_plan(&s);
        ASSERT_CONTAINS(sample_file(&s, FLAGS)->file.content, "KUBELET_CONFIG_DROPIN_DIR_ALPHA=on\n");

        s.host.kubelet_version = (char[]){ "1.27.5" };          /* no drop-ins yet: merged */
        sample_plan(&s);
        ASSERT_TRUE(!plan_find(s.plan, "write-file:" USER));
        ASSERT_SETTING(&s, CONFIG, "featureGates", "{\"NodeSwap\":true,\"RotateKubeletServerCertificate\":true}");
        ASSERT_TRUE(!strstr(sample_file(&s, FLAGS)->file.content, "ALPHA"));
}

TEST(max_pods_follow_eni_limits_and_flags) {
        _cleanup_(sample_done) Sample s = sample_new();
        Diag w = {};
        ASSERT_EQ(max_pods_choose(&s.config, &s.host, &w).pods, 234);
        s.host.eni_limits_known = false;
        ASSERT_EQ(diag_count(&w, true), 0);
        ASSERT_EQ(max_pods_choose(&s.config, &s.host, &w).pods, 110);
        ASSERT_STREQ(w.items[0].code, "unknown-eni-limits");
        s.config.kubelet.flags = LIST("--max-pods=10 --v=2", "--max-pods", "7");
        ASSERT_EQ(max_pods_choose(&s.config, &s.host, &w).pods, 7);
        strv_free(s.config.kubelet.flags);
        diag_done(&w);
}

TEST(flags_that_kubelet_does_not_know_are_errors) {
        static const struct { const char *flag, *version, *said; } cases[] = {
                { "--pod-infra-container-image=x", "1.34.3", NULL }, { "--pod_infra_container_image=x", "1.35.3", "kubelet 1.35.3 does not know --pod-infra-container-image and would exit" },
                { "--fail-cgroupv1=false", "1.30.14", "does not know --fail-cgroupv1" }, { "--fail-cgroupv1=false", "1.31.13", NULL },
                { "--v=2 --node-lables=a=b", "1.33.1", "did you mean --node-labels?" }, { "--node-lables=a=b", "1.38.0", NULL }, { "--iptables-drop-bit=1", "1.33.1", "; set spec.kubelet.config.iptablesDropBit instead" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                s.config.kubelet.flags = LIST(cases[i].flag);
                s.host.kubelet_version = (char *)cases[i].version;
                Plan *plan = NULL;
                int r = plan_make(&s.config, &s.host, &s.options, &plan, &s.diag);
                const Diagnostic *e = diag_first_error(&s.diag);
                if ((r < 0) != (cases[i].said != NULL) || (e && !strstr(e->text, cases[i].said)))
                        FAIL("%s for %s gives %d, %s", cases[i].flag, cases[i].version, r, e ? e->text : "nothing");
                plan_free(plan);
                strv_free(s.config.kubelet.flags);
        }
}

TEST(plan_errors_have_file_and_line) {
        _cleanup_(sample_done) Sample s = sample_new();
        _cleanup_(origins_done) Origins o = {};
        origins_add(&o, "spec", (Position){ .source = "a", .line = 3 });
        origins_add(&o, "spec.kubelet.flags[1]", (Position){ .source = "a", .line = 7 });
        s.config.origins = &o;
        s.config.kubelet.flags = LIST("--v=2", "--node-lables=a=b");
        s.host.kubelet_version = (char *)"1.33.1";
        Plan *plan = NULL;
        ASSERT_EQ(plan_make(&s.config, &s.host, &s.options, &plan, &s.diag), -EINVAL);
        const Diagnostic *e = diag_first_error(&s.diag);
        ASSERT_EQ(diag_count(&s.diag, false), 1);
        ASSERT_STREQ(e->where, "a, line 7");
        ASSERT_STREQ(e->path, "spec.kubelet.flags[1]");
        ASSERT_STREQ(e->source, "a");
        ASSERT_EQ(e->line, 7);
        strv_free(s.config.kubelet.flags);
        s.config.origins = NULL;
}

TEST(unknown_or_incompatible_versions_are_warnings) {
        static const struct { const char *kubelet, *containerd; bool kubelet_told, containerd_told, too_old, old; } cases[] = {
                { "1.37.2", "1.7.27", false, false, false, true }, { "1.38.0", "2.1.5", true, false, false, false }, { "1.38.0", "1.7.27", true, false, true, false },
                { "1.28.0", "2.9.0", false, false, false, false }, { "1.27.16", "2.1.5", true, false, false, false }, { "1.20.0", "3.0", true, true, false, false },
                { "1.35.9", "1.7.27", false, false, false, false }, { "1.36.0", "1.7.27", false, false, false, true }, { "1.36.0", "2.0.0", false, false, false, false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                s.host.kubelet_version = (char *)cases[i].kubelet;
                s.host.containerd_version = (char *)cases[i].containerd;
                sample_plan(&s);
                ASSERT_EQ(sample_warned(&s, "kubelet-version"), cases[i].kubelet_told);
                ASSERT_EQ(sample_warned(&s, "containerd-version"), cases[i].containerd_told);
                ASSERT_EQ(sample_warned(&s, "containerd-too-old"), cases[i].too_old);
                ASSERT_EQ(sample_warned(&s, "requirement"), cases[i].old);
        }
}

TEST(a_bad_max_pods_expression_is_a_warning) {
        static const struct { const char *text; unsigned pods; bool warned; } cases[] = {
                { "(default_enis - 1) * (ips_per_eni - 1) + 2", 205, false }, { "max_pods * 2", 468, false }, { "vcpus + memory_mib", 65552, false }, { "vcpus + physical_memory_mib", 65552, false },
                { "max_pods - 234", 234, true }, { "2147483648", 234, true }, { "nonsense", 234, true }, { "1 / 0", 234, true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *text = xstrdup(cases[i].text);
                s.config.kubelet.max_pods_expression = text;
                Diag w = {};
                MaxPods pods = max_pods_choose(&s.config, &s.host, &w);
                if (pods.pods != cases[i].pods || (diag_count(&w, true) > 0) != cases[i].warned)
                        FAIL("%s is %u, %zu warnings: %s", text, pods.pods, diag_count(&w, true), w.n > 0 ? w.items[0].text : "");
                diag_done(&w);
        }
}

/* With memoryMode numa the GPU memory joins the machine when the driver loads. A later run must have the
 * same number. */
TEST(gpu_memory_does_not_count_in_an_expression) {
        _cleanup_(sample_done) Sample s = sample_new();
        NumaNode nodes[] = { { 0, 4, s.host.memory_bytes }, { 2, 0, 100ULL << 30 } };
        _free_ char *text = xstrdup("memory_mib");
        Diag w = {};
        s.config.kubelet.max_pods_expression = text;
        unsigned pods = max_pods_choose(&s.config, &s.host, &w).pods;
        s.host.nodes = nodes;
        s.host.n_nodes = ARRAY_SIZE(nodes);
        s.host.memory_bytes += 100ULL << 30;
        ASSERT_EQ(max_pods_choose(&s.config, &s.host, &w).pods, pods);
        s.host.nodes = NULL;
        s.host.n_nodes = 0;
        diag_done(&w);
}

TEST(node_ip_and_host_name_follow_the_configuration) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.cluster.cidr = (char[]){ "fd30:1c53:5f8a::/108" };
        s.host.instance.ipv6 = (char[]){ "2600:1f14::7" };
        s.config.gates.instance_id_node_name = true;
        s.host.instance.private_dns_name = NULL;
        sample_plan(&s);
        const char *text = sample_file(&s, FLAGS)->file.content;
        ASSERT_CONTAINS(text, "--node-ip=2600:1f14::7");
        ASSERT_CONTAINS(text, "--hostname-override=i-0123456789abcdef0");
        ASSERT_SETTING(&s, CONFIG, "clusterDNS", "[\"fd30:1c53:5f8a::a\"]");
        s.host.instance.ipv6 = NULL;
        ASSERT_ERROR(plan_make(&s.config, &s.host, &s.options, &(Plan *){ NULL }, &s.diag), EINVAL);
        ASSERT_CONTAINS(diag_first_error(&s.diag)->text, "IPv6");
}

TEST(kubeconfig_has_server_plugin_and_quoted_names) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.cluster.name = (char[]){ "a\"b: c" };
        sample_plan(&s);
        const char *text = sample_file(&s, "/var/lib/kubelet/kubeconfig")->file.content;
        ASSERT_CONTAINS(text, "        command: aws\n");
        ASSERT_CONTAINS(text, "          - \"a\\\"b: c\"\n");
        ASSERT_CONTAINS(text, "      server: https://ABC123.gr7.us-west-2.eks.amazonaws.com\n");
        s.options.plugin = PLUGIN_NODESTRAP;
        sample_plan(&s);
        ASSERT_CONTAINS(sample_file(&s, "/var/lib/kubelet/kubeconfig")->file.content,
                        "command: /usr/bin/nodestrap\n        args:\n          - \"token\"\n          - \"--cluster-name\"\n          - \"a\\\"b: c\"\n          - \"--region\"\n");
        s.config.cluster.endpoint = (char[]){ "https://ABC123.gr7.us-west-2.eks.amazonaws.com:" };
        sample_plan(&s);
        ASSERT_CONTAINS(sample_file(&s, "/var/lib/kubelet/kubeconfig")->file.content,
                        "      server: \"https://ABC123.gr7.us-west-2.eks.amazonaws.com:\"\n");
        ASSERT_EQ(sample_file(&s, "/etc/kubernetes/pki/ca.crt")->file.size, s.config.cluster.certificate_authority_size);
}

TEST(the_credential_provider_config_follows_the_version) {
        static const char *path = "/etc/eks/image-credential-provider/config.json";
        _cleanup_(sample_done) Sample s = sample_new();
        s.host.kubelet_version = (char[]){ "1.31.0" };
        s.host.image_credential_provider = (char[]){ "/opt/ecr" };
        sample_plan(&s);
        const char *text = sample_file(&s, path)->file.content;
        ASSERT_SETTING(&s, path, "apiVersion", "\"kubelet.config.k8s.io/v1\"");
        ASSERT_CONTAINS(text, "\"name\": \"ecr\"");
        ASSERT_CONTAINS(text, "\"*.dkr-ecr.*.on.amazonwebservices.com.cn\"");
        ASSERT_TRUE(!strstr(text, "ecr-public.aws.com"));
        ASSERT_CONTAINS(sample_file(&s, FLAGS)->file.content, "--image-credential-provider-bin-dir=/opt ");
        s.host.kubelet_version = (char[]){ "1.32.0" };
        sample_plan(&s);
        ASSERT_CONTAINS(sample_file(&s, path)->file.content, "ecr-public.aws.com");
        s.host.kubelet_version = (char[]){ "1.26.0" };
        sample_plan(&s);
        ASSERT_SETTING(&s, path, "apiVersion", "\"kubelet.config.k8s.io/v1alpha1\"");
        s.host.image_credential_provider = NULL;
        sample_plan(&s);
        ASSERT_TRUE(!plan_find(s.plan, "write-file:/etc/eks/image-credential-provider/config.json"));
        ASSERT_TRUE(sample_warned(&s, "no-image-credential-provider"));
}

TEST_MAIN
