/* SPDX-License-Identifier: Apache-2.0
 * The Node that a plan makes. Functions of kubelet computed the wanted capacity and reserves
 * (nodestatus.MachineInfo and eviction.ParseThresholdConfig of Kubernetes 1.37), and the API server wrote
 * their quantities. Sizes of arrays to be made follow from the rules of the programs that make them. */
#include "plan/planner.h"
#include "base/str.h"
#include "sample.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

TEST(quantities_are_parsed_or_refused) {
        static const struct { const char *text; int64_t thousandths; } cases[] = {
                { "100Mi", 104857600000 }, { "1.5Gi", 1610612736000 }, { "90m", 90 }, { "0.1", 100 }, { "1e3", 1000000 }, { "1E-2", 10 }, { "2E", INT64_MAX },
                { "1e+3", 1000000 }, { "5n", 1 }, { "1500u", 2 }, { "1.0001", 1001 }, { ".5", 500 }, { "5.", 5000 }, { "+2", 2000 }, { "-1", -1000 }, { "0", 0 },
                { "8191", 8191000 }, { "129e6", 129000000000 }, { "123Mi", 128974848000 }, { "0.123456789Ti", 135742175033389 }, { "1e-100", 1 },
                { "999999999999999999999Ei", INT64_MAX }, { "0.00000000000000000000000000001", 1 }, { "100000000000000000000e-20", 1000 },
        };
        static const char *const refused[] = { "", "1.2.3", "1Kib", "10%", "1e", "--1", "1 Mi", " 1", "1mi", "1K", "0x10", "1e1.5", "1_000", "Mi", ".", "1e--3" };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t value = 0;
                if (quantity_parse(cases[i].text, &value) < 0 || value != cases[i].thousandths)
                        FAIL("%s is %lld", cases[i].text, (long long)value);
        }
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                int64_t value;
                if (quantity_parse(refused[i], &value) >= 0)
                        FAIL("\"%s\" is taken as %lld", refused[i], (long long)value);
        }
}

TEST(quantities_have_their_canonical_form) {
        static const struct { int64_t thousandths; bool binary; const char *text; } cases[] = {
                { 0, false, "0" }, { 0, true, "0" }, { 191450, false, "191450m" }, { 8000, false, "8" }, { 1000000, false, "1k" }, { 110000, false, "110" },
                { 1023000, true, "1023" }, { 1024000, true, "1Ki" }, { 1025000, true, "1025" }, { 1000000, true, "1k" }, { 1500000, true, "1500" },
                { 85886742528000, true, "83873772Ki" }, { 85886742528000, false, "85886742528" }, { 76224326324000, true, "76224326324" },
                { 97842800000000, true, "97842800k" }, { 2199023255552000, true, "2Ti" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = quantity_text(cases[i].thousandths, cases[i].binary);
                ASSERT_STREQ(text, cases[i].text);
        }
}

TEST(cpu_lists_are_counted) {
        static const struct { const char *list; unsigned n; } cases[] = { { "0", 1 }, { "0-3,8", 5 }, { "0,1,2", 3 }, { "", 0 }, { "3-1", 0 }, { "a", 0 }, { "0-", 0 }, { "0-99999999", 0 } };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                ASSERT_EQ(cpu_list_count(cases[i].list), cases[i].n);
}

/* "memory 64Gi" of "capacity", or what else stands in the node. */
static const char *node_text(const Sample *s, const char *object, const char *name) {
        return json_get_text(json_object_get(s->plan->node, object), name);
}

/* A machine of EKS: 8 CPUs, 83873772Ki of disk, an odd size of memory. */
static Sample machine(const char *kubelet) {
        Sample s = sample_new();
        static char version[16];
        static PagePool pools[] = { { .size = GIB, .node = -1 }, { .size = 2 * MIB, .node = -1 } };
        snprintf(version, sizeof version, "%s", kubelet);
        pools[0].count = pools[1].count = 0;
        s.host.kubelet_version = version;
        s.host.cpus = 8;
        s.host.memory_bytes = 32386092ULL * 1024;
        s.host.kubelet_bytes = 83873772ULL * 1024;
        s.host.pools = pools;
        s.host.n_pools = ARRAY_SIZE(pools);
        return s;
}

#define ASSERT_NODE(s, want_cpu, want_memory, want_storage, want_pods) ({                       \
        ASSERT_STREQ(node_text(&(s), "allocatable", "cpu"), want_cpu);                          \
        ASSERT_STREQ(node_text(&(s), "allocatable", "memory"), want_memory);                    \
        ASSERT_STREQ(node_text(&(s), "allocatable", "ephemeral-storage"), want_storage);        \
        ASSERT_STREQ(node_text(&(s), "allocatable", "pods"), want_pods); })

TEST(a_node_has_name_capacity_and_allocatable) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        sample_plan(&s);
        ASSERT_STREQ(json_get_text(s.plan->node, "name"), "ip-10-0-3-7.us-west-2.compute.internal");
        ASSERT_STREQ(json_get_text(s.plan->node, "providerID"), "aws:///us-west-2b/i-0123456789abcdef0");
        ASSERT_STREQ(node_text(&s, "capacity", "cpu"), "8");
        ASSERT_STREQ(node_text(&s, "capacity", "memory"), "32386092Ki");
        ASSERT_STREQ(node_text(&s, "capacity", "hugepages-1Gi"), "0");
        ASSERT_STREQ(node_text(&s, "capacity", "hugepages-2Mi"), "0");
        ASSERT_STREQ(node_text(&s, "capacity", "ephemeral-storage"), "83873772Ki");
        ASSERT_STREQ(node_text(&s, "capacity", "pods"), "234");
        ASSERT_NODE(s, "7910m", "29386796Ki", "76224326324", "234");
        ASSERT_EQ(json_object_size(json_object_get(s.plan->node, "approximate")), 0);
        ASSERT_EQ(json_object_size(json_object_get(s.plan->node, "unknown")), 0);
}

TEST(an_unknown_cpu_count_is_a_warning) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        s.host.cpus = 0;
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "cpu"), "");
        ASSERT_STREQ(node_text(&s, "unknown", "cpu"), "the table of instance types lacks the number of CPUs; give --instance-type-file");
        ASSERT_STREQ(node_text(&s, "capacity", "pods"), "234");
        ASSERT_TRUE(sample_warned(&s, "no-cpu-count"));
        ASSERT_CONTAINS(s.plan->machine, "CPUs not known");
}

TEST(newer_kubelets_report_disk_capacity_in_bytes) {
        _cleanup_(sample_done) Sample s = machine("1.37.0");
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "ephemeral-storage"), "85886742528");
        ASSERT_STREQ(node_text(&s, "allocatable", "ephemeral-storage"), "76224326324");
}

TEST(user_settings_change_the_allocatable_resources) {
        static const struct { const char *settings, *flags[4], *cpu, *memory, *storage, *pods; } cases[] = {
                { "{'systemReserved':{'cpu':'100m','memory':'1Gi','ephemeral-storage':'2Gi'}}", {}, "7810m", "28338220Ki", "74076842676", "234" },
                { "{'kubeReserved':{'cpu':'0.5'}}", {}, "7500m", "29386796Ki", "76224326324", "234" },
                { "{'kubeReserved':null}", {}, "8", "32283692Ki", "77298068148", "234" },
                { "{'kubeReserved':{'memory':null,'cpu':null}}", {}, "8", "32283692Ki", "76224326324", "234" },
                { "{'evictionHard':{'memory.available':'5%','nodefs.available':'0%'}}", {}, "7910m", "28538768769", "82825196Ki", "234" },
                { "{'evictionHard':{'nodefs.available':'12.34%'}}", {}, "7910m", "29386796Ki", "74214576443", "234" },
                { "{'evictionHard':null}", {}, "7910m", "29489196Ki", "82825196Ki", "234" },
                { "{'podsPerCore':10}", {}, "7910m", "29386796Ki", "76224326324", "80" },
                { "{'maxPods':40}", {}, "7910m", "31572012Ki", "76224326324", "40" },
                { "{'reservedSystemCPUs':'0-1,7'}", {}, "5", "29386796Ki", "76224326324", "234" },
                { "{}", { "--kube-reserved=cpu=1,memory=1Gi" }, "7", "31235116Ki", "77298068148", "234" },
                { "{}", { "--kube_reserved", "memory=1Gi", "--kube-reserved=memory=2Gi,cpu=250m" }, "7750m", "30186540Ki", "77298068148", "234" },
                { "{}", { "--eviction-hard=memory.available<500Mi", "--system-reserved=cpu=1" }, "6910m", "28977196Ki", "82825196Ki", "234" },
                { "{'evictionHard':{'memory.available':'5%'}}", { "--experimental-allocatable-ignore-eviction" }, "7910m", "29489196Ki", "82825196Ki", "234" },
                { "{}", { "--pods-per-core=5 --reserved-cpus 0,4" }, "6", "29386796Ki", "76224326324", "40" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = machine("1.33.4");
                _strv_ char **flags = sample_list(cases[i].flags);
                s.config.kubelet.config = sample_json(&s, cases[i].settings);
                s.config.kubelet.flags = flags;
                sample_plan(&s);
                ASSERT_NODE(s, cases[i].cpu, cases[i].memory, cases[i].storage, cases[i].pods);
                ASSERT_TRUE(!sample_warned(&s, "kubelet-setting") && !sample_warned(&s, "reserved-too-much"));
        }
}

TEST(user_settings_count_for_an_old_kubelet) {
        _cleanup_(sample_done) Sample s = machine("1.27.3");
        s.config.kubelet.config = sample_json(&s, "{'systemReserved':{'memory':'1Gi'}}");
        sample_plan(&s);
        ASSERT_NODE(s, "7910m", "28338220Ki", "76224326324", "234");
}

TEST(settings_that_stop_kubelet_are_failing_warnings) {
        static const struct { const char *settings, *code, *words; } cases[] = {
                { "{'kubeReserved':{'memory':'1GB'}}", "kubelet-setting", "must be a quantity" },
                { "{'systemReserved':{'cpu':'-1'}}", "kubelet-setting", "negative" },
                { "{'systemReserved':{'cpu':1}}", "kubelet-setting", "put it in quotes" },
                { "{'evictionHard':{'memory.available':'101%'}}", "kubelet-setting", "memory.available must be from 0% to 100%" },
                { "{'evictionHard':{'nodefs.available':'0'}}", "kubelet-setting", "nodefs.available must be above 0" },
                { "{'systemReserved':{'memory':'40Gi'}}", "reserved-too-much", "the memory reservation" },
                { "{'systemReserved':{'cpu':'8'}}", "reserved-too-much", "the machine has 8" },
                { "{'kubeReserved':{'ephemeral-storage':'80Gi'}}", "reserved-too-much", "the ephemeral-storage reservation" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = machine("1.33.4");
                s.config.kubelet.config = sample_json(&s, cases[i].settings);
                s.options.foretell = true;
                sample_plan(&s);
                ASSERT_EQ(s.plan->warnings.n, 1);
                ASSERT_STREQ(s.plan->warnings.items[0].code, cases[i].code);
                ASSERT_CONTAINS(s.plan->warnings.items[0].text, cases[i].words);
                ASSERT_TRUE(plan_warning_fails(&s.plan->warnings.items[0]));
        }
}

/* Only a configuration that asks for more than there is makes an error. An image may change our figures,
 * its disk is not certain, and on the machine itself kubelet decides. */
TEST(reserving_more_than_a_model_has_is_an_error) {
        static const struct { const char *settings, *flags[2]; bool certain, there; } cases[] = {
                { "{'kubeReserved':{'cpu':'640'}}", {}, true },
                { "{'kubeReserved':{'cpu':'640'}}", {}, false, .there = true },
                { "{'systemReserved':{'memory':'40Gi'}}", {}, true },
                { "{}", { "--kube-reserved=cpu=9" }, true },
                { "{'systemReserved':{'cpu':'1'}}", {}, false },
                { "{'maxPods':4000}", {}, false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = machine("1.33.4");
                _strv_ char **flags = sample_list(cases[i].flags);
                s.config.kubelet.config = sample_json(&s, cases[i].settings);
                s.config.kubelet.flags = flags;
                s.host.modelled = !cases[i].there;
                ASSERT_EQ(plan_make(&s.config, &s.host, &s.options, &s.plan, &s.diag), cases[i].certain ? -EINVAL : 0);
                const Diagnostic *error = diag_first_error(&s.diag);
                ASSERT_EQ(error != NULL, cases[i].certain);
                if (error)
                        ASSERT_STREQ(error->code, "reserved-too-much");
                if (error)
                        ASSERT_EQ(error->cause, CAUSE_INVALID);
        }
}

/* ---- huge pages ---- */

TEST(huge_pages_reduce_the_allocatable_memory) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        PageRequest want[] = { { 2 * MIB, 512, -1 }, { GIB, 4, -1 } };
        s.host.pools[1].count = 7;
        s.config.instance.hugepages = (HugePages){ .mode = HUGEPAGES_EXPLICIT, .pages = want, .n_pages = 2 };
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "hugepages-1Gi"), "4Gi");
        ASSERT_STREQ(node_text(&s, "allocatable", "hugepages-2Mi"), "1Gi");
        ASSERT_STREQ(node_text(&s, "capacity", "memory"), "32386092Ki");
        ASSERT_STREQ(node_text(&s, "allocatable", "memory"), "24143916Ki");     /* 29386796Ki - 5Gi */
        ASSERT_TRUE(!sample_warned(&s, "no-memory-left"));
        ASSERT_STREQ(node_text(&s, "approximate", "memory"), "");
        s.config.instance.hugepages.on_shortfall = POLICY_WARN;
        sample_plan(&s);
        ASSERT_CONTAINS(node_text(&s, "approximate", "hugepages-1Gi"), "at most");
        ASSERT_CONTAINS(node_text(&s, "approximate", "memory"), "huge pages");
}

TEST(existing_huge_pages_count_unless_turned_off) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        s.host.pools[0].count = 3;
        sample_plan(&s);                /* keep */
        ASSERT_STREQ(node_text(&s, "capacity", "hugepages-1Gi"), "3Gi");
        ASSERT_STREQ(node_text(&s, "allocatable", "memory"), "26241068Ki");
        s.config.instance.hugepages.mode = HUGEPAGES_OFF;
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "hugepages-1Gi"), "0");
}

TEST(pages_of_one_numa_node_add_to_those_of_the_other) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        NumaNode nodes[] = { { .id = 0, .cpus = 4, .memory_bytes = 16 * GIB }, { .id = 1, .cpus = 4, .memory_bytes = 16 * GIB } };
        PagePool pools[] = { { 2 * MIB, 0, 100 }, { 2 * MIB, 1, 50 } };
        PageRequest want[] = { { 2 * MIB, 512, 1 } };
        s.host.nodes = nodes;
        s.host.n_nodes = 2;
        s.host.pools = pools;
        s.host.n_pools = 2;
        s.config.instance.hugepages = (HugePages){ .mode = HUGEPAGES_EXPLICIT, .pages = want, .n_pages = 1 };
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "hugepages-2Mi"), "1224Mi");     /* 612 pages */
}

TEST(huge_pages_that_leave_no_memory_are_a_warning) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        PageRequest want[] = { { GIB, 29, -1 } };
        s.config.instance.hugepages = (HugePages){ .mode = HUGEPAGES_EXPLICIT, .pages = want, .n_pages = 1 };
        sample_plan(&s);
        ASSERT_TRUE(sample_warned(&s, "no-memory-left"));
        ASSERT_STREQ(node_text(&s, "allocatable", "memory"), "0");
        want[0].count = 28;
        sample_plan(&s);
        ASSERT_TRUE(!sample_warned(&s, "no-memory-left"));
        ASSERT_STREQ(node_text(&s, "allocatable", "memory"), "26668Ki");
}

/* A Grace CPU has so many nodes if the kernel has the GPU memory. */
TEST(more_than_8_numa_nodes_warn_with_a_topology_manager) {
        static const struct { const char *file, *flags[3]; size_t nodes; bool warned; } cases[] = {
                { "{}", {}, 34, false },
                { "{'topologyManagerPolicy':'none'}", {}, 34, false },
                { "{'topologyManagerPolicy':'best-effort'}", {}, 8, false },
                { "{'topologyManagerPolicy':'best-effort'}", {}, 9, true },
                { "{'topologyManagerPolicy':'restricted','topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'34'}}", {}, 34, false },
                { "{'topologyManagerPolicy':'restricted','topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'33'}}", {}, 34, true },
                { "{}", { "--topology-manager-policy=single-numa-node" }, 34, true },
                { "{}", { "--topology-manager-policy=single-numa-node", "--topology-manager-policy-options=max-allowable-numa-nodes=40" }, 34, false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = machine("1.34.2");
                NumaNode nodes[34] = {};
                s.host.nodes = nodes;
                s.host.n_nodes = cases[i].nodes;
                s.config.kubelet.config = sample_json(&s, cases[i].file);
                s.config.kubelet.flags = (char **)cases[i].flags;
                sample_plan(&s);
                if (sample_warned(&s, "numa-nodes") != cases[i].warned)
                        FAIL("%s %s: %d", cases[i].file, cases[i].flags[0] ?: "", cases[i].warned);
        }
}

static const Diagnostic *warning(const Sample *s, const char *code) {
        for (size_t i = 0; i < s->plan->warnings.n; i++)
                if (streq(s->plan->warnings.items[i].code, code))
                        return &s->plan->warnings.items[i];
        FAIL("no %s", code);
}

/* kubelet 1.31 brought the option. Before 1.36 pods with devices wait in spite of it. */
TEST(numa_warnings_name_the_setting_that_causes_them) {
        static const struct { const char *file, *flags[2], *kubelet, *code, *path, *words; } cases[] = {
                { "{'topologyManagerPolicy':'best-effort'}", {}, "1.30.1", "numa-nodes", "spec.kubelet.config.topologyManagerPolicy", "; from 1.31 on kubelet accepts topologyManagerPolicyOptions" },
                { "{'topologyManagerPolicy':'best-effort'}", {}, "1.33.13", "numa-nodes", "spec.kubelet.config.topologyManagerPolicy", "{max-allowable-numa-nodes: \"34\"}, but with Kubernetes before 1.36, pods" },
                { "{}", { "--topology-manager-policy=restricted" }, "1.37.0", "numa-nodes", "spec.kubelet.flags", "accepts up to 8 NUMA nodes, but finds 34: 2 with CPUs, and 8 for each GPU" },
                { "{'topologyManagerPolicy':'best-effort','topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'34'}}", {}, "1.35.6", "numa-stall", "spec.kubelet.config.topologyManagerPolicy", "pods that request devices" },
                { "{'topologyManagerPolicy':'best-effort','topologyManagerPolicyOptions':{'max-allowable-numa-nodes':'34'}}", {}, "1.36.0", NULL, NULL, NULL },
                { "{}", { "--memory-manager-policy=Static" }, "1.37.0", "numa-stall", "spec.kubelet.flags", "Guaranteed pods stay Pending" },
                { "{'memoryManagerPolicy':'None'}", {}, "1.33.13", NULL, NULL, NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = machine(cases[i].kubelet);
                NumaNode nodes[] = { { .id = 0, .cpus = 4, .memory_bytes = 16 * GIB }, { .id = 1, .cpus = 4, .memory_bytes = 16 * GIB } };
                s.host.nodes = nodes;
                s.host.n_nodes = 2;
                s.host.gpus = (Gpus){ .class = GPU_CLASS_TRAY, .count = 4, .expected = 4 };
                s.config.nvidia.memory = MEMORY_NUMA;
                s.config.kubelet.config = sample_json(&s, cases[i].file);
                s.config.kubelet.flags = (char **)cases[i].flags;
                s.options.foretell = true;      /* Static wants reservedMemory as well */
                sample_plan(&s);
                if (!cases[i].code) {
                        ASSERT_TRUE(!sample_warned(&s, "numa-nodes") && !sample_warned(&s, "numa-stall"));
                        continue;
                }
                const Diagnostic *w = warning(&s, cases[i].code);
                ASSERT_STREQ(w->path, cases[i].path);
                ASSERT_CONTAINS(w->text, cases[i].words);
                ASSERT_CONTAINS(w->text, "Set spec.accelerator.nvidia.memoryMode: driver, or ");
                ASSERT_TRUE(plan_warning_fails(w));
        }
}

/* The kernel has the GPU memory if the configuration says so, or if the driver cannot keep it. */
TEST(gpu_numa_nodes_follow_memory_mode_and_driver) {
        static const struct { GpuClass class; MemoryMode memory; NvidiaMode mode; const char *driver; size_t nodes; } cases[] = {
                { GPU_CLASS_TRAY, MEMORY_AUTO, NVIDIA_AUTO, NULL, 1 },
                { GPU_CLASS_TRAY, MEMORY_AUTO, NVIDIA_AUTO, "580.65.06", 1 },
                { GPU_CLASS_TRAY, MEMORY_AUTO, NVIDIA_AUTO, "575.51.02", 33 },
                { GPU_CLASS_TRAY, MEMORY_DRIVER, NVIDIA_AUTO, "575.51.02", 1 },
                { GPU_CLASS_TRAY, MEMORY_NUMA, NVIDIA_AUTO, NULL, 33 },
                { GPU_CLASS_TRAY, MEMORY_NUMA, NVIDIA_OFF, NULL, 1 },
                { GPU_CLASS_NVSWITCH, MEMORY_NUMA, NVIDIA_AUTO, NULL, 1 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = machine("1.34.2");
                NumaNode node = { .cpus = 8 };
                s.host.nodes = &node;
                s.host.n_nodes = 1;
                s.host.gpus = (Gpus){ .class = cases[i].class, .count = 3, .expected = 4 };
                s.host.driver_version = (char *)cases[i].driver;
                s.config.nvidia.memory = cases[i].memory;
                s.config.nvidia.mode = cases[i].mode;
                if (kubelet_numa_nodes(&s.config, &s.host) != cases[i].nodes)
                        FAIL("%zu: %zu nodes", i, kubelet_numa_nodes(&s.config, &s.host));
        }
}

/* ---- the state of kubelet managers from an earlier boot ---- */

TEST(manager_settings_are_compared_with_a_left_state) {
        static const struct { const char *file, *flags[4], *words; } cases[] = {
                { "{}", {}, "cpuManagerPolicy=none memoryManagerPolicy=None draManagerState=v1" },
                { "{'cpuManagerPolicy':'','memoryManagerPolicy':'Static'}", {}, "cpuManagerPolicy=none memoryManagerPolicy=Static draManagerState=v1" },
                { "{'cpuManagerPolicy':'static','reservedSystemCPUs':'0-1'}", {}, "cpuManagerPolicy=static memoryManagerPolicy=None reservedSystemCPUs=0-1 draManagerState=v1" },
                { "{'cpuManagerPolicy':'none'}", { "--cpu-manager-policy=static", "--memory-manager-policy=Static", "--cpu-manager-policy-options=strict-cpu-reservation=true" },
                  "cpuManagerPolicy=static memoryManagerPolicy=Static strict-cpu-reservation=true draManagerState=v1" },
                { "{'cpuManagerPolicy':'s3cret','reservedSystemCPUs':'s3cret'}", {}, "memoryManagerPolicy=None draManagerState=v1" },
                { "{}", { "--root-dir=/var/lib/kubelet" }, "cpuManagerPolicy=none memoryManagerPolicy=None draManagerState=v1" },
                { "{}", { "--root-dir", "/data/kubelet" }, "cpuManagerPolicy=none memoryManagerPolicy=None draManagerState=v1" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = machine("1.33.4");
                s.config.kubelet.config = sample_json(&s, cases[i].file);
                s.config.kubelet.flags = (char **)cases[i].flags;
                s.options.foretell = true;      /* include a value that kubelet refuses */
                const char *id = cases[i].flags[1] && streq(cases[i].flags[1], "/data/kubelet") ? "forget-state:/data/kubelet" : "forget-state:" KUBELET_DIR;
                const Action *a = plan_find(sample_plan(&s), id), *turn = plan_find(s.plan, "write-file:" KUBELET_TURN);
                _free_ char *words = a ? strv_join(a->words, " ") : xstrdup("");
                ASSERT_STREQ(words, cases[i].words);
                ASSERT_TRUE(a && strv_contains(turn->after, id));
                ASSERT_TRUE(!a || (a->lenient && strv_contains(a->after, "write-file:" MOUNTS_READY)));
        }
        _cleanup_(sample_done) Sample s = machine("1.30.4");
        ASSERT_TRUE(!strv_contains(plan_find(sample_plan(&s), "forget-state:" KUBELET_DIR)->words, "draManagerState=v1"));
}

/* kubelet 1.33.13 itself does the same in tests/cluster/kernel.sh. */
TEST(kernel_settings_and_swap_that_stop_kubelet_are_warnings) {
        static const struct { const char *settings, *flag, *values, *swap, *said; } cases[] = {      /* said NULL: no warning */
                { "{}", NULL, "1 0 10 1 1000000 25000000", NULL, NULL },
                { "{}", NULL, NULL, NULL, NULL },      /* as for a model */
                { "{}", NULL, "1 0 10 1 - -", NULL, NULL },       /* unreadable values give no warning */
                { "{}", NULL, "0 0 0 1 1000000 25000000", NULL, "kernel-settings: kubelet does not start: protectKernelDefaults requires other kernel settings (vm.overcommit_memory is 0 "
                  "and not 1, kernel.panic is 0 and not 10); set them in a file in /etc/sysctl.d, or in spec.instance.sysctl" },
                { "{\"protectKernelDefaults\": false}", NULL, "0 0 0 1 1000000 25000000", NULL, NULL },
                { "{}", "--protect-kernel-defaults=false", "0 0 0 1 1000000 25000000", NULL, NULL },
                { "{}", NULL, NULL, "/dev/zram0", "swap: kubelet does not start with swap (/dev/zram0, in /proc/swaps): failSwapOn is true; swapoff -a and remove it from /etc/fstab, or set "
                  "spec.kubelet.config.failSwapOn: false" },
                { "{\"failSwapOn\": false}", NULL, NULL, "/dev/zram0", NULL }, { "{}", "--fail-swap-on=false", NULL, "/dev/zram0", NULL },
                { "{\"failSwapOn\": false}", "--fail-swap-on", NULL, "/dev/zram0", "swap: " },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                char *words = cases[i].values ? xstrdup(cases[i].values) : NULL, *rest = words;
                s.host.kernel_state.swap = cases[i].swap ? xstrdup(cases[i].swap) : NULL;
                for (char *word; rest && (word = strsep(&rest, " "));)
                        strv_add(&s.host.kernel_state.tunables, streq(word, "-") ? "" : word);
                s.config.kubelet.config = sample_json(&s, cases[i].settings);
                s.config.kubelet.flags = cases[i].flag ? LIST(cases[i].flag) : NULL;
                sample_plan(&s);
                _cleanup_(text_done) Text said = {};
                for (size_t k = 0; k < s.plan->warnings.n; k++)
                        if (strstr(s.plan->warnings.items[k].text, "kubelet does not start"))
                                text_add(&said, "%s: %s", s.plan->warnings.items[k].code, s.plan->warnings.items[k].text);
                if (cases[i].said ? !startswith(said.data ?: "", cases[i].said) : said.size > 0)
                        FAIL("case %zu says \"%s\"", i, said.data ?: "");
                kernel_done(&s.host.kernel_state);
                strv_free(s.config.kubelet.flags);
                free(words);
        }
}

TEST(a_planned_kernel_setting_is_not_warned_about) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable set = { (char *)"kernel/panic", (char *)"10" };
        s.config.instance.sysctl = &set;
        s.config.instance.n_sysctl = 1;
        s.host.kernel_state.tunables = LIST("1", "0", "0", "1", "1000000", "25000000");
        sample_plan(&s);
        ASSERT_TRUE(!sample_warned(&s, "kernel-settings"));
        kernel_done(&s.host.kernel_state);
}

/* ---- storage ---- */

/* The space that mkfs.xfs 6.1 and mke2fs 1.47 leave of devices of these sizes. For a member it is the rule
 * of mdadm (super1.c), not a measurement: 129 MiB at the start. */
TEST(file_system_sizes_match_mkfs) {
        static const struct { uint64_t device, log; } xfs[] = {
                { 1 * GIB, 64 }, { 60 * GIB, 64 }, { 300 * GIB, 150 }, { 900 * GIB, 450 }, { 1900 * GIB, 950 }, { 15360 * GIB, 2038 },
        };
        static const struct { uint64_t device; double taken_mib; } ext4[] = {
                { 10 * GIB, 260.7 }, { 60 * GIB, 1272.2 }, { 300 * GIB, 5909.2 }, { 900 * GIB, 15564.7 }, { 3840 * GIB, 62833.3 }, { 7680 * GIB, 63122.3 }, { 15360 * GIB, 125064.1 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(xfs); i++)
                ASSERT_EQ(filesystem_bytes(xfs[i].device, FILESYSTEM_XFS), xfs[i].device - xfs[i].log * MIB);
        for (size_t i = 0; i < ARRAY_SIZE(ext4); i++) {
                double off = (double)(ext4[i].device - filesystem_bytes(ext4[i].device, FILESYSTEM_EXT4)) - ext4[i].taken_mib * MIB;
                if (off * off > (double)ext4[i].device / 200 * (double)ext4[i].device / 200)
                        FAIL("ext4 of %llu GiB is off by %.0f MiB", (unsigned long long)(ext4[i].device / GIB), off / MIB);
        }
        ASSERT_EQ(member_bytes(1900000000000), (1900000000000 - 129 * MIB) / 262144 * 262144);
        ASSERT_EQ(filesystem_bytes(MIB, FILESYSTEM_XFS), 0);
        ASSERT_EQ(member_bytes(MIB), 0);
}

#define STORE(n) { .name = (char *)"nvme" #n "n1", .serial = (char *)"AWS" #n, .kind = DISK_INSTANCE_STORE, .bytes = 1900000000000 }
static struct { Disk disks[4]; } stores = { { STORE(1), STORE(2), STORE(3), STORE(4) } };

static Sample with_disks(size_t n, StorageStrategy strategy) {
        static char place[] = "/mnt/k8s-disks";
        Sample s = machine("1.37.0");
        s.host.type = NULL;
        s.host.disks = stores.disks;
        s.host.n_disks = n;
        s.config.instance.storage = (LocalStorage){ .strategy = strategy, .mount_path = place };
        return s;
}

TEST(ephemeral_storage_is_the_size_of_the_array) {
        static const struct { size_t disks; StorageStrategy strategy; Filesystem filesystem; const char *capacity; } cases[] = {
                { 1, STORAGE_RAID0, FILESYSTEM_XFS, "1899072262144" },
                { 4, STORAGE_RAID0, FILESYSTEM_XFS, "7597321093120" },
                { 4, STORAGE_RAID10, FILESYSTEM_XFS, "3797873709056" },
                { 4, STORAGE_MOUNT, FILESYSTEM_XFS, "85886742528" },    /* the root disk, as it is */
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = with_disks(cases[i].disks, cases[i].strategy);
                s.config.instance.storage.filesystem = cases[i].filesystem;
                sample_plan(&s);
                ASSERT_STREQ(node_text(&s, "capacity", "ephemeral-storage"), cases[i].capacity);
                ASSERT_EQ(*node_text(&s, "approximate", "ephemeral-storage") != 0, cases[i].strategy != STORAGE_MOUNT);
        }
}

TEST(ephemeral_storage_may_stay_on_the_root_disk) {
        _cleanup_(sample_done) Sample s = with_disks(2, STORAGE_RAID0);
        s.config.instance.storage.no_kubelet = true;
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "ephemeral-storage"), "85886742528");
        ASSERT_STREQ(node_text(&s, "approximate", "ephemeral-storage"), "");
}

TEST(unknown_ephemeral_storage_is_marked_as_unknown) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        s.host.kubelet_bytes = 0;
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "ephemeral-storage"), "");
        ASSERT_CONTAINS(node_text(&s, "unknown", "ephemeral-storage"), "cannot see the file system");
        _free_ char *text = plan_to_text(s.plan);
        ASSERT_CONTAINS(text, "ephemeral-storage    not known: ");
}

TEST(without_capacity_isolation_storage_is_not_reported) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        s.config.kubelet.config = sample_json(&s, "{'localStorageCapacityIsolation':false}");
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "ephemeral-storage"), "");
        ASSERT_STREQ(node_text(&s, "unknown", "ephemeral-storage"), "");
}

/* ---- the Node ---- */

TEST(labels_and_taints_come_from_the_flags) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        _strv_ char **flags = LIST("--node-labels=a=b,example.com/x=", "--node-labels c=d", "--register-with-taints=gpu=true:NoSchedule,old:NoExecute");
        s.config.kubelet.flags = flags;
        sample_plan(&s);
        json_t *node = s.plan->node;
        char *taints = json_dumps(json_object_get(node, "taints"), JSON_COMPACT | JSON_SORT_KEYS), *labels = json_dumps(json_object_get(node, "labels"), JSON_COMPACT | JSON_SORT_KEYS);
        ASSERT_STREQ(taints, "[{\"effect\":\"NoSchedule\",\"key\":\"gpu\",\"value\":\"true\"},{\"effect\":\"NoExecute\",\"key\":\"old\"}]");
        ASSERT_STREQ(labels, "{\"a\":\"b\",\"c\":\"d\",\"example.com/x\":\"\"}");
        free(taints);
        free(labels);
}

TEST(the_disk_size_does_not_change_the_plan_id) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        char id[sizeof s.plan->id];
        memcpy(id, sample_plan(&s)->id, sizeof id);
        s.host.kubelet_bytes *= 2;
        ASSERT_STREQ(sample_plan(&s)->id, id);
        ASSERT_STREQ(node_text(&s, "capacity", "ephemeral-storage"), "167747544Ki");
}

TEST(the_memory_of_a_model_is_approximate_or_unknown) {
        _cleanup_(sample_done) Sample s = machine("1.33.4");
        _strv_ char **assumed = LIST("hugePages", "memoryBytes");
        s.host.assumed = assumed;
        s.host.modelled = true;
        sample_plan(&s);
        ASSERT_CONTAINS(node_text(&s, "approximate", "memory"), "at most");
        s.host.memory_bytes = 0;
        sample_plan(&s);
        ASSERT_STREQ(node_text(&s, "capacity", "memory"), "");
        ASSERT_CONTAINS(node_text(&s, "unknown", "memory"), "table");
}

TEST_MAIN
