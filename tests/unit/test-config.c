/* SPDX-License-Identifier: Apache-2.0
 * Documents → Config: types, merge, rules, defaults, and the places in messages. */
#include "config/config.h"
#include "base/str.h"
#include "config/containerd.h"
#include "test.h"

#include <unistd.h>

#define HEAD "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
#define CLUSTER "  cluster: {name: c, apiServerEndpoint: https://e, certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==, cidr: 10.100.0.0/16}\n"
#define GOOD HEAD "spec:\n" CLUSTER

/* The result of config_load() for some texts, each a source of its own: "a", "b", … */
typedef struct Loaded { Documents documents; Config *config; Diag diag; int r; char *messages; } Loaded;

static void loaded_done(Loaded *l) {
        documents_done(&l->documents);
        config_free(l->config);
        diag_done(&l->diag);
        free(l->messages);
}

static Loaded load(const char *const *texts) {
        static const char *const sources[] = { "a", "b", "c", "d" };
        Loaded l = {};
        Text t = {};

        for (size_t i = 0; texts[i]; i++) {
                char *copy = xstrdup(texts[i]);
                Blob blob = { { sources[i], 0, 1 }, copy, strlen(copy) };
                Documents more = {};
                ASSERT_OK(yaml_parse(&blob, &more, &l.diag));
                l.documents.items = xrealloc(l.documents.items, l.documents.n + more.n, sizeof *more.items);
                for (size_t d = 0; d < more.n; d++)
                        l.documents.items[l.documents.n++] = more.items[d];
                free(more.items);
                free(copy);
        }
        l.r = config_load(&l.documents, &l.config, &l.diag);
        for (size_t i = 0; i < l.diag.n; i++) {
                _free_ char *line = diagnostic_format(&l.diag.items[i]);
                text_add(&t, "%s\n", line);
        }
        l.messages = text_take(&t);
        return l;
}
#define LOAD(...) load((const char *const[]){ __VA_ARGS__, NULL })

static json_t *spec(const Loaded *l) {
        return json_object_get(l->config->document, "spec");
}

/* A good document with more lines in its spec. */
static Loaded load_with(const char *more) {
        _free_ char *text = xasprintf("%s%s", GOOD, more);
        return LOAD(text);
}

static void expect_error(const char *more, const char *part) {
        _cleanup_(loaded_done) Loaded l = load_with(more);
        if (l.r != -EINVAL || !strstr(l.messages, part))
                FAIL("%s gives %d, \"%s\", and not \"%s\"", more, l.r, l.messages, part);
}

static void expect_accepted(const char *more, const char *part) {
        _cleanup_(loaded_done) Loaded l = load_with(more);
        if (l.r != 0 || (part ? !strstr(l.messages, part) : *l.messages != 0))
                FAIL("%s gives %d, \"%s\", and not \"%s\"", more, l.r, l.messages, part ?: "");
}

TEST(finds_its_documents) {
        _cleanup_(loaded_done) Loaded none = LOAD("apiVersion: v1\nkind: List\n", "just text", "- a list\n", "");
        ASSERT_ERROR(none.r, ENODATA);
        ASSERT_EQ(diag_first_error(&none.diag)->cause, CAUSE_NO_CONFIG);
        ASSERT_CONTAINS(none.messages, "a, line 1: no NodeConfig found in any source: no document has kind NodeConfig and apiVersion "
                                       "node.eks.aws/v1alpha1; the first one is of kind \"List\"");
        _cleanup_(loaded_done) Loaded some = LOAD("kind: List\n", GOOD);
        ASSERT_EQ(some.r, 0);
}

TEST(refuses_other_versions) {
        _cleanup_(loaded_done) Loaded version = LOAD("apiVersion: node.eks.aws/v2\nkind: NodeConfig\nspec: {unheard: of}\n");
        ASSERT_ERROR(version.r, EINVAL);
        ASSERT_STREQ(version.messages, "a, line 1: apiVersion: is \"node.eks.aws/v2\"; it must be node.eks.aws/v1alpha1\n");
        _cleanup_(loaded_done) Loaded kind = LOAD("apiVersion: node.eks.aws/v1alpha1\nspec:\n" CLUSTER);
        ASSERT_ERROR(kind.r, EINVAL);
        ASSERT_STREQ(kind.messages, "a, line 1: kind: is missing; it must be NodeConfig\n");
        _cleanup_(loaded_done) Loaded small = LOAD("kind: NodeConfig\napiversion: node.eks.aws/v1alpha1\n");
        ASSERT_STREQ(small.messages, "a, line 2: apiVersion: is missing; it must be node.eks.aws/v1alpha1; did you mean apiVersion instead of apiversion?\n");
        _cleanup_(loaded_done) Loaded group = LOAD("apiVersion: v1\nkind: NodeConfig\n", GOOD);
        ASSERT_ERROR(group.r, EINVAL);
        ASSERT_CONTAINS(group.messages, "apiVersion: is \"v1\"");
        _cleanup_(loaded_done) Loaded list = LOAD("apiVersion: [node.eks.aws/v1alpha1]\nkind: NodeConfig\n");
        ASSERT_ERROR(list.r, EINVAL);
}

TEST(binds_every_field) {
        _cleanup_(loaded_done) Loaded l = LOAD(HEAD
                "spec:\n"
                "  cluster: {name: c, apiServerEndpoint: https://e, certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==, cidr: 10.100.0.0/16, enableOutpost: yes, id: i, expectDevices: true, repairCondition: true}\n"
                "  kubelet: {config: {podsPerCore: 5}, flags: [--v, 5], maxPodsExpression: 1 + 1}\n"
                "  containerd: {config: 'a = 1', baseRuntimeSpec: {process: {x: 1}}, prePull: ['a.io/b:1', c]}\n"
                "  instance:\n"
                "    localStorage: {strategy: raid10, mountPath: /mnt/x, disabledMounts: [SOCI, Kubelet], filesystem: ext4, expectedDisks: 4}\n"
                "    hugePages: {mode: explicit, pages: [{size: 2Mi, count: 5128}, {size: 1Gi, count: 4, numaNode: 0}], onShortfall: warn}\n"
                "    environment: {kubelet: {B: b, A: 1}, default: {n: y}}\n"
                "    network: {nameservers: [10.0.0.2, 'fd00::2'], domains: [a.b], efa: {mode: require, expectedDevices: 4}, mtu: 8500}\n"
                "    sysctl: {vm.max_map_count: 262144}\n"
                "    tuning: gpu\n"
                "  accelerator:\n"
                "    nvidia:\n"
                "      mode: off\n"
                "      fabric: {manager: on, gate: warn, timeout: 90}\n"
                "      imex: {mode: host, nodes: [10.0.0.1], channels: 16, createChannel0: true}\n"
                "      mig: [{devices: [0, 3], profiles: {3g.20gb: 1, 1g.5gb: 4}}, {devices: [1], profiles: {19: 7}}]\n"
                "      memoryMode: numa\n"
                "      clocks: max\n"
                "      gpuDirect: on\n"
                "      prove: quick\n"
                "      proveTimeout: 2m\n"
                "  featureGates: {InstanceIdNodeName: on, FastImagePull: true, OSManagedNoManageENIs: Y}\n"
                "  failurePolicy: join-tainted\n");
        const Config *c = l.config;
        ASSERT_STREQ(l.messages,
                     "a, line 17: spec.accelerator.nvidia.fabric.gate: no-effect: has no effect with nvidia.mode: off\n"
                     "a, line 17: spec.accelerator.nvidia.fabric.timeout: no-effect: has no effect with nvidia.mode: off\n"
                     "a, line 20: spec.accelerator.nvidia.memoryMode: no-effect: has no effect with nvidia.mode: off\n"
                     "a, line 22: spec.accelerator.nvidia.gpuDirect: no-effect: has no effect with nvidia.mode: off\n"
                     "a, line 23: spec.accelerator.nvidia.prove: no-effect: has no effect with nvidia.mode: off\n"
                     "a, line 24: spec.accelerator.nvidia.proveTimeout: no-effect: has no effect with nvidia.mode: off\n"
                     "a, line 4: spec.cluster.repairCondition: no-effect: has no effect with nvidia.mode: off\n");
        ASSERT_EQ(l.r, 0);
        ASSERT_STREQ(c->cluster.name, "c");
        ASSERT_STREQ(c->cluster.endpoint, "https://e");
        ASSERT_STREQ(c->cluster.certificate_authority, "-----BEGIN CERTIFICATE-----\nsample\n-----END CERTIFICATE-----\n");
        ASSERT_EQ(c->cluster.certificate_authority_size, strlen(c->cluster.certificate_authority));
        ASSERT_STREQ(c->cluster.cidr, "10.100.0.0/16");
        ASSERT_TRUE(c->cluster.outpost);
        ASSERT_STREQ(c->cluster.id, "i");
        ASSERT_TRUE(c->cluster.expect_devices);
        ASSERT_TRUE(c->cluster.repair_condition);
        ASSERT_EQ(json_integer_value(json_object_get(c->kubelet.config, "podsPerCore")), 5);
        ASSERT_EQ(strv_length(c->kubelet.flags), 2);
        ASSERT_STREQ(c->kubelet.flags[1], "5");
        ASSERT_STREQ(c->kubelet.max_pods_expression, "1 + 1");
        ASSERT_EQ(json_integer_value(json_object_get(c->containerd.config, "a")), 1);
        ASSERT_TRUE(json_object_get(c->containerd.base_runtime_spec, "process"));
        ASSERT_TRUE(strv_length(c->containerd.pre_pull) == 2 && streq(c->containerd.pre_pull[0], "a.io/b:1"));
        ASSERT_EQ(c->instance.storage.strategy, STORAGE_RAID10);
        ASSERT_STREQ(c->instance.storage.mount_path, "/mnt/x");
        ASSERT_TRUE(c->instance.storage.no_soci && c->instance.storage.no_kubelet);
        ASSERT_TRUE(!c->instance.storage.no_containerd && !c->instance.storage.no_pod_logs);
        ASSERT_EQ(c->instance.storage.filesystem, FILESYSTEM_EXT4);
        ASSERT_EQ(c->instance.storage.expected_disks, 4);
        ASSERT_EQ(c->instance.hugepages.mode, HUGEPAGES_EXPLICIT);
        ASSERT_EQ(c->instance.hugepages.n_pages, 2);
        ASSERT_EQ(c->instance.hugepages.pages[0].size, 2 << 20);
        ASSERT_EQ(c->instance.hugepages.pages[0].count, 5128);
        ASSERT_EQ(c->instance.hugepages.pages[0].numa_node, -1);
        ASSERT_EQ(c->instance.hugepages.pages[1].size, 1 << 30);
        ASSERT_EQ(c->instance.hugepages.pages[1].numa_node, 0);
        ASSERT_EQ(c->instance.hugepages.on_shortfall, POLICY_WARN);
        ASSERT_EQ(c->instance.n_environment, 2);
        ASSERT_STREQ(c->instance.environment[0].service, "default");
        ASSERT_STREQ(c->instance.environment[0].variables[0].name, "n");
        ASSERT_STREQ(c->instance.environment[0].variables[0].value, "y");
        ASSERT_STREQ(c->instance.environment[1].variables[0].name, "A");
        ASSERT_STREQ(c->instance.environment[1].variables[0].value, "1");
        ASSERT_STREQ(c->instance.nameservers[1], "fd00::2");
        ASSERT_STREQ(c->instance.domains[0], "a.b");
        ASSERT_EQ(c->instance.efa, EFA_REQUIRE);
        ASSERT_EQ(c->instance.expected_efa, 4);
        ASSERT_EQ(c->instance.mtu, 8500);
        ASSERT_EQ(c->instance.tuning, TUNING_GPU);
        ASSERT_STREQ(c->instance.sysctl[0].name, "vm.max_map_count");
        ASSERT_STREQ(c->instance.sysctl[0].value, "262144");
        ASSERT_EQ(c->nvidia.mode, NVIDIA_OFF);
        ASSERT_EQ(c->nvidia.gpu_direct, GPU_DIRECT_ON);
        ASSERT_EQ(c->nvidia.fabric_manager, FABRIC_MANAGER_ON);
        ASSERT_EQ(c->nvidia.fabric_gate, FABRIC_GATE_WARN);
        ASSERT_EQ(c->nvidia.fabric_timeout_usec, 90000000);
        ASSERT_EQ(c->nvidia.imex, IMEX_HOST);
        ASSERT_STREQ(c->nvidia.imex_nodes[0], "10.0.0.1");
        ASSERT_EQ(c->nvidia.imex_channels, 16);
        ASSERT_TRUE(c->nvidia.imex_channel0);
        ASSERT_EQ(c->nvidia.n_mig, 2);
        ASSERT_EQ(c->nvidia.mig[0].n_gpus, 2);
        ASSERT_EQ(c->nvidia.mig[0].gpus[1], 3);
        ASSERT_STREQ(c->nvidia.mig[0].profiles[0].name, "3g.20gb");
        ASSERT_STREQ(c->nvidia.mig[0].profiles[1].value, "4");
        ASSERT_STREQ(c->nvidia.mig[1].profiles[0].name, "19");
        ASSERT_EQ(c->nvidia.memory, MEMORY_NUMA);
        ASSERT_EQ(c->nvidia.clocks, CLOCKS_MAX);
        ASSERT_EQ(c->nvidia.prove, PROVE_QUICK);
        ASSERT_EQ(c->nvidia.prove_timeout_usec, 120000000);
        ASSERT_TRUE(c->gates.instance_id_node_name && c->gates.fast_image_pull && c->gates.no_manage_enis);
        ASSERT_EQ(c->failure_policy, FAILURE_JOIN_TAINTED);
}

TEST(repair_condition_has_no_effect_without_health) {
        _cleanup_(loaded_done) Loaded l =
                LOAD(GOOD, HEAD "spec: {cluster: {repairCondition: true}, accelerator: {nvidia: {health: off}}}\n");
        ASSERT_EQ(l.r, 0);
        ASSERT_STREQ(l.messages, "b, line 3: spec.cluster.repairCondition: no-effect: has no effect with nvidia.health: off\n");
        expect_error("  cluster: {repairCondition: often}\n", "spec.cluster.repairCondition: must be true or false");
}

TEST(has_defaults) {
        _cleanup_(loaded_done) Loaded l = LOAD(GOOD);
        const Config *c = l.config;
        ASSERT_EQ(l.r, 0);
        ASSERT_TRUE(!c->cluster.id && !c->cluster.outpost && !c->cluster.expect_devices && !c->cluster.repair_condition);
        ASSERT_TRUE(!c->kubelet.config && !c->kubelet.flags && !c->kubelet.max_pods_expression);
        ASSERT_TRUE(!c->containerd.config && !c->containerd.base_runtime_spec);
        ASSERT_EQ(c->instance.storage.strategy, STORAGE_NONE);
        ASSERT_STREQ(c->instance.storage.mount_path, "/mnt/k8s-disks");
        ASSERT_EQ(c->instance.hugepages.mode, HUGEPAGES_KEEP);
        ASSERT_TRUE(c->instance.mtu == 0 && c->instance.tuning == TUNING_AUDIT);
        ASSERT_EQ(c->nvidia.fabric_timeout_usec, 300000000);
        ASSERT_EQ(c->nvidia.prove, PROVE_OFF);
        ASSERT_EQ(c->nvidia.prove_timeout_usec, 60000000);
        ASSERT_EQ(c->nvidia.imex_channels, 2048);
        ASSERT_EQ(c->nvidia.n_mig, 0);
        ASSERT_EQ(c->failure_policy, FAILURE_HOLD);
}

TEST(neutral_values_are_supported) {
        _cleanup_(loaded_done) Loaded l = load_with(
                "  instance:\n"
                "    localStorage: {strategy: '', mountPath: /mnt/k8s-disks, disabledMounts: [], filesystem: xfs, expectedDisks: 0}\n"
                "    hugePages: {mode: keep, pages: [], onShortfall: fail}\n"
                "    network: {efa: {mode: auto, expectedDevices: 0}}\n"
                "    sysctl: {}\n"
                "  accelerator: {nvidia: {mode: auto, fabric: {manager: auto, gate: require, timeout: 5m}, mig: '', memoryMode: auto,\n"
                "                         clocks: auto, gpuDirect: auto, imex: {mode: auto, nodes: [], channels: 2048, createChannel0: false}}}\n"
                "  failurePolicy: hold\n");
        ASSERT_STREQ(l.messages, "");
        ASSERT_TRUE(l.config);
}

TEST(text_keeps_its_source) {
        static const char *const plain[] = { "yes", "0123", "0x1F", "1e3", "12_3", "1:30", "2026-01-02", ".5", "Off", "true" };
        for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
                _free_ char *more = xasprintf("  instance: {environment: {default: {A: %s}}}\n", plain[i]);
                _cleanup_(loaded_done) Loaded l = load_with(more);
                ASSERT_EQ(l.r, 0);
                ASSERT_STREQ(l.config->instance.environment[0].variables[0].value, plain[i]);
        }
        expect_accepted("  instance: {environment: {default: {A: ~, B: null, C: }}}\n", NULL);
        /* Unicode has line ends here, and systemd has text */
        expect_accepted("  instance: {environment: {default: {A: \"a\\Nb\\Lc\\Pd\"}}}\n", NULL);
        expect_error("  instance: {environment: {default: {A: [a]}}}\n", "spec.instance.environment.default.A: must be a string, but is a list");
        expect_error("  kubelet: {flags: [a, {b: c}]}\n", "spec.kubelet.flags[1]: must be a string, but is a map");
        expect_error("  kubelet: {maxPodsExpression: \"a\\0b\"}\n", "spec.kubelet.maxPodsExpression: contains a NUL byte");
}

TEST(types_are_strict) {
        expect_error("  featureGates: {InstanceIdNodeName: 'true'}\n", "spec.featureGates.InstanceIdNodeName: must be true or false");
        expect_error("  featureGates: {Whatever: 1}\n", "spec.featureGates.Whatever: must be true or false");
        expect_accepted("  featureGates: {Whatever: Y}\n", "spec.featureGates.Whatever: unknown-feature-gate");
        expect_error("  instance: {network: {efa: {expectedDevices: '4'}}}\n", "expectedDevices: must be a whole number");
        expect_error("  instance: {network: {efa: {expectedDevices: 4.5}}}\n", "expectedDevices: must be a whole number");
        expect_error("  instance: {network: {mtu: 576}}\n", "spec.instance.network.mtu: must be from 1280 to 9001");
        expect_error("  instance: {tuning: latency}\n", "is not one of audit, gpu, off");
        expect_error("  instance: {network: {efa: {expectedDevices: -1}}}\n", "expectedDevices: must be from 0 to 1024");
        expect_error("  kubelet: []\n", "spec.kubelet: must be a map, but is a list");
        expect_error("  kubelet: {flags: --v=2}\n", "spec.kubelet.flags: must be a list, but is an unquoted string");
        expect_error("  kubelet: {config: 'a: b'}\n", "spec.kubelet.config: must be a map, but is a quoted string");
        expect_error("  containerd: {baseRuntimeSpec: [1]}\n", "spec.containerd.baseRuntimeSpec: must be a map");
        expect_error("  containerd: {prePull: ['']}\n", "spec.containerd.prePull[0]: is not the name of an image, such as");
        expect_error("  containerd: {prePull: [a.io/b, 'a.io/c d']}\n", "spec.containerd.prePull[1]: is not the name of an image, such as");
        expect_error("  containerd: {prePull: [\"a.io/${NAME}\"]}\n", "spec.containerd.prePull[0]: is not the name of an image, such as");
        expect_error("  containerd: {prePull: a.io/b}\n", "spec.containerd.prePull: must be a list");
        expect_accepted("  containerd: {prePull: ['[::1]:5000/a_b/c-d@sha256:0123', nginx]}\n", NULL);
        _cleanup_(loaded_done) Loaded l = LOAD(HEAD "spec: [a]\n");
        ASSERT_STREQ(l.messages, "a, line 3: spec: must be a map, but is a list\n");
}

TEST(unknown_keys_warn) {
        expect_accepted("  proxy: {a: b}\n", "a, line 5: spec.proxy: unknown-field");
        expect_accepted("  kubelet: {Flags: [a]}\n", "spec.kubelet.Flags: unknown-field: is not known and is ignored; did you mean flags?");
        expect_accepted("  nvidia: {mode: off}\n", "did you mean spec.accelerator.nvidia?");
        expect_accepted("  instance: {localStorage: {mountTarget: /a}}\n", "did you mean mountPath?");
        expect_accepted("status: {a: b}\n", "a, line 5: status: unknown-field");
        expect_accepted("metadata: [whatever]\n", NULL);
        expect_accepted("  containerd: {baseRuntimeSpec: {whatever: {a: [b]}}}\n", NULL);
        expect_accepted("  kubelet: {config: {maxPodsExpression: 1}}\n", "spec.kubelet.config.maxPodsExpression: unknown-field");
        expect_accepted("  \"a\\nb\\e[31m\": 1\n", "spec.a\\x0ab\\x1b[31m: unknown-field");
        expect_accepted("  instance: {hugePages: {pages: [{size: 2Mi, count: 1, node: 0}]}}\n", "spec.instance.hugePages.pages[0].node: unknown-field");
}

TEST(free_form_keeps_yaml_types) {
        _cleanup_(loaded_done) Loaded l = load_with("  kubelet: {config: {a: 010, b: '5', c: yes, d: 2026-01-02, e: ~, f: [~, 1], g: {h: null}}}\n");
        ASSERT_EQ(l.r, 0);
        _free_ char *text = json_dumps(l.config->kubelet.config, JSON_SORT_KEYS | JSON_COMPACT);
        ASSERT_STREQ(text, "{\"a\":8,\"b\":\"5\",\"c\":true,\"d\":\"2026-01-02\",\"e\":null,\"f\":[null,1],\"g\":{\"h\":null}}");
}

TEST(merges_in_order) {
        _cleanup_(loaded_done) Loaded l = LOAD(
                GOOD "  kubelet: {flags: [--a], config: {x: {y: 1, z: 2}, l: [1, 2], k: 5, m: true}}\n"
                     "  instance: {environment: {default: {A: a, B: b}}, network: {nameservers: [1.1.1.1], domains: [x]}}\n"
                     "  featureGates: {InstanceIdNodeName: true}\n",
                HEAD "spec:\n  kubelet: {flags: [--b], config: {x: {y: 3}, l: [3], k: {}, m: false}}\n"
                     "  instance: {environment: {default: {B: '', C: ~}, kubelet: {}}, network: {nameservers: [], domains: ~}}\n"
                     "  featureGates: {InstanceIdNodeName: off}\n  cluster: {}\n",
                HEAD "spec: ~\n");
        ASSERT_OK(l.r);         /* with warnings: kubelet knows none of these keys and flags */
        _free_ char *kubelet = json_dumps(json_object_get(spec(&l), "kubelet"), JSON_SORT_KEYS | JSON_COMPACT);
        ASSERT_STREQ(kubelet, "{\"config\":{\"k\":5,\"l\":[3],\"m\":false,\"x\":{\"y\":3,\"z\":2}},\"flags\":[\"--a\",\"--b\"]}");
        _free_ char *instance = json_dumps(json_object_get(spec(&l), "instance"), JSON_SORT_KEYS | JSON_COMPACT);
        ASSERT_STREQ(instance, "{\"environment\":{\"default\":{\"A\":\"a\",\"B\":\"\"},\"kubelet\":{}},\"network\":{\"domains\":[\"x\"],\"nameservers\":[]}}");
        ASSERT_TRUE(!l.config->gates.instance_id_node_name && !l.config->instance.nameservers);
}

/* Aliases may share nodes: a change in one place must not change the other. */
TEST(merging_leaves_aliases_apart) {
        _cleanup_(loaded_done) Loaded l = LOAD(
                GOOD "  kubelet: {config: {kubeReserved: &r {cpu: '1'}, systemReserved: *r}}\n", HEAD "spec: {kubelet: {config: {kubeReserved: {cpu: '2'}}}}\n");
        _free_ char *text = json_dumps(l.config->kubelet.config, JSON_SORT_KEYS | JSON_COMPACT);
        ASSERT_STREQ(text, "{\"kubeReserved\":{\"cpu\":\"2\"},\"systemReserved\":{\"cpu\":\"1\"}}");
}

TEST(merges_toml) {
        _cleanup_(loaded_done) Loaded one = LOAD(GOOD "  containerd: {config: \"# kept\\na = 1\\n\"}\n", HEAD "spec: {containerd: {config: ''}}\n");
        ASSERT_STREQ(json_string_value(json_object_get(json_object_get(spec(&one), "containerd"), "config")), "# kept\na = 1\n");
        _cleanup_(loaded_done) Loaded two = LOAD(GOOD "  containerd: {config: \"[a]\\nx = 1\\ny = [1, 2]\"}\n",
                                                 HEAD "spec: {containerd: {config: \"a.y = [3]\\nb = 'c'\"}}\n");
        ASSERT_STREQ(two.messages, "");
        _free_ char *text = json_dumps(two.config->containerd.config, JSON_SORT_KEYS | JSON_COMPACT);
        ASSERT_STREQ(text, "{\"a\":{\"x\":1,\"y\":[3]},\"b\":\"c\"}");
        _cleanup_(json_decrefp) json_t *again = NULL;
        const char *why, *written = json_string_value(json_object_get(json_object_get(spec(&two), "containerd"), "config"));
        unsigned line;
        ASSERT_OK(toml_parse(written, strlen(written), &again, &line, &why));
        ASSERT_TRUE(json_equal(again, two.config->containerd.config));
        _cleanup_(loaded_done) Loaded bad = LOAD(GOOD "  containerd:\n    config: |\n      a = 1\n      b = \n", HEAD "spec: {containerd: {config: 'a = 2'}}\n");
        ASSERT_ERROR(bad.r, EINVAL);
        ASSERT_CONTAINS(bad.messages, "a, line 8: spec.containerd.config: is not TOML: a value is missing");
}

TEST(positions_survive_the_merge) {
        _cleanup_(loaded_done) Loaded l = LOAD(
                GOOD "  kubelet:\n    flags:\n    - --a\n    - --b\n",
                HEAD "spec:\n  cluster:\n    cidr: nonsense\n  kubelet:\n    flags:\n    - |\n      --c\n",
                HEAD "spec: {cluster: {name: \"a\\tb\"}}\n");
        ASSERT_ERROR(l.r, EINVAL);
        ASSERT_CONTAINS(l.messages, "b, line 5: spec.cluster.cidr: ");
        ASSERT_CONTAINS(l.messages, "b, line 8: spec.kubelet.flags[2]: contains a line break");
        ASSERT_CONTAINS(l.messages, "c, line 3: spec.cluster.name: contains a line break, a control character");
        ASSERT_EQ(diag_count(&l.diag, false), 3);
}

TEST(a_later_value_corrects_an_earlier_one) {
        _cleanup_(loaded_done) Loaded l = LOAD(GOOD "  instance: {localStorage: {strategy: RAID5}}\n", HEAD "spec: {instance: {localStorage: {strategy: Mount}}}\n");
        ASSERT_EQ(l.r, 0);
        ASSERT_EQ(l.config->instance.storage.strategy, STORAGE_MOUNT);
}

TEST(missing_fields_are_named_in_order) {
        _cleanup_(loaded_done) Loaded l = LOAD(HEAD);
        static const char *const paths[] = { "spec.cluster.name", "spec.cluster.apiServerEndpoint", "spec.cluster.certificateAuthority", "spec.cluster.cidr" };
        ASSERT_EQ(l.diag.n, ARRAY_SIZE(paths));
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                ASSERT_STREQ(l.diag.items[i].path, paths[i]);
        expect_error("  cluster: {enableOutpost: true}\n", "duplicate-key");
        _cleanup_(loaded_done) Loaded outpost = LOAD(GOOD, HEAD "spec: {cluster: {enableOutpost: true}}\n");
        ASSERT_STREQ(outpost.messages, "b, line 3: spec.cluster.id: is missing: enableOutpost: true needs it\n");
}

TEST(items_keep_their_numbers) {
        _cleanup_(loaded_done) Loaded l = load_with("  kubelet:\n    flags:\n    - {a: b}\n    - --v=2\n    - [c]\n    - \"--v=1\\n\"\n");
        ASSERT_CONTAINS(l.messages, "a, line 7: spec.kubelet.flags[0]: must be a string");
        ASSERT_CONTAINS(l.messages, "a, line 9: spec.kubelet.flags[2]: must be a string");
        ASSERT_CONTAINS(l.messages, "a, line 10: spec.kubelet.flags[3]: contains a line break");
        ASSERT_EQ(l.diag.n, 3);
        _cleanup_(loaded_done) Loaded m = load_with("  kubelet: {flags: [~, --root-dir=/x, null, --v=2]}\n");
        ASSERT_STREQ(m.messages, "");
        ASSERT_EQ(strv_length(m.config->kubelet.flags), 2);
}

/* One cause, one message. */
TEST(a_field_of_a_wrong_type_is_not_also_missing) {
        _cleanup_(loaded_done) Loaded l = LOAD(HEAD "spec: {cluster: [a]}\n");
        ASSERT_STREQ(l.messages, "a, line 3: spec.cluster: must be a map, but is a list\n");
        _cleanup_(loaded_done) Loaded m = LOAD(HEAD "spec: {cluster: {name: [a], apiServerEndpoint: https://e, certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==, cidr: 1}}\n");
        ASSERT_EQ(m.diag.n, 2);
}

TEST(cluster_values) {
        static const struct { const char *field, *value; bool good; } cases[] = {
                { "cidr", "10.100.0.5/16", true }, { "cidr", "fd40::/108", true }, { "cidr", "10.100.0.0", false }, { "cidr", "10.100.0.0/33", false },
                { "cidr", "fd40::/129", false }, { "cidr", "10.100.0.0/16,fd00::/8", false }, { "cidr", "10.100.0.0/", false },
                { "cidr", "10.100.0.0/+8", false }, { "cidr", " 10.100.0.0/16", false }, { "cidr", "10.100.0/16", false }, { "cidr", "10.100.0.0/0x8", false },
                { "cidr", "::ffff:10.0.0.0/104", true }, { "cidr", "fe80::1%eth0/64", false },
                { "apiServerEndpoint", "https://e:443/p/q", true }, { "apiServerEndpoint", "https://[fd00::1]:6443", true },
                { "apiServerEndpoint", "https://10.0.0.1", true }, { "apiServerEndpoint", "https://ABC.gr7.us-west-2.eks.amazonaws.com", true },
                { "apiServerEndpoint", "HTTPS://e", true }, { "apiServerEndpoint", "https://", false }, { "apiServerEndpoint", "https:///x", false },
                { "apiServerEndpoint", "https://:443", false }, { "apiServerEndpoint", "https://e:0", false }, { "apiServerEndpoint", "https://e:65536", false },
                { "apiServerEndpoint", "https://e:44x", false }, { "apiServerEndpoint", "https://u:p@e", false }, { "apiServerEndpoint", "https://e\\tx", false },
                { "apiServerEndpoint", "https://e/\\u0085x", false }, { "apiServerEndpoint", "https://[fd00::1", false }, { "apiServerEndpoint", "https://e?q", false },
                { "apiServerEndpoint", "e", false }, { "apiServerEndpoint", " https://e", false }, { "apiServerEndpoint", "https://[e]", false },
                { "certificateAuthority", "Y2E=\\n", true }, { "certificateAuthority", "Y2\\r\\nE=", true }, { "certificateAuthority", "Y2E", false },
                { "certificateAuthority", "Y2E= ", false }, { "certificateAuthority", "Y2-_", false }, { "certificateAuthority", "\\n", false },
                { "certificateAuthority", "Y2E==", false }, { "certificateAuthority", "Y2E=Y2E=", false }, { "certificateAuthority", "", false },
                { "name", "a b", true }, { "name", "a\\nb", false }, { "name", "a\\x7f", false }, { "name", "a\\u009b", false }, { "name", "é", true }, { "name", "", false },
                { "id", "a\\rb", false }, { "id", "", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = xasprintf(HEAD "spec: {cluster: {%s: \"%s\"}}\n", cases[i].field, cases[i].value);
                _free_ char *path = xasprintf("spec.cluster.%s: ", cases[i].field);
                _cleanup_(loaded_done) Loaded l = LOAD(GOOD, text);
                if ((l.r == 0) != cases[i].good || (!cases[i].good && !strstr(l.messages, path)))
                        FAIL("%s %s: %d %s", cases[i].field, cases[i].value, l.r, l.messages);
        }
}

TEST(mount_paths) {
        static const struct { const char *path; bool good; } cases[] = {
                { "/mnt/k8s-disks/", true }, { "/data", true }, { "/users", true }, { "/lib32/x", true }, { "/mnt/..x", true }, { "/mnt/./x", true }, { "", true },
                { "/", false }, { "//", false }, { "/.", false }, { "mnt", false }, { "./mnt", false }, { "/mnt/..", false }, { "/mnt/../data", false },
                { "/etc", false }, { "/etc/", false }, { "//etc/x", false }, { "/./etc", false }, { "/usr/local/x", false }, { "/lib64", false }, { "/run/x", false }, { "/proc/x", true },
                { "/mnt/a\\nb", false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *more = xasprintf("  instance: {localStorage: {mountPath: \"%s\"}}\n", cases[i].path);
                _cleanup_(loaded_done) Loaded l = load_with(more);
                if ((l.r == 0) != cases[i].good || (!cases[i].good && !strstr(l.messages, "spec.instance.localStorage.mountPath: ")))
                        FAIL("%s: %d %s", cases[i].path, l.r, l.messages);
        }
}

TEST(mount_paths_are_written_as_the_kernel_does) {
        const struct { const char *given, *bound; } cases[] = {
                { "", "/mnt/k8s-disks" }, { "/data", "/data" }, { "/data/", "/data" }, { "//mnt///a b/./c/.", "/mnt/a b/c" }, { "/./.x/..y", "/.x/..y" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *more = xasprintf("  instance: {localStorage: {mountPath: \"%s\"}}\n", cases[i].given);
                _cleanup_(loaded_done) Loaded l = load_with(more);
                ASSERT_EQ(l.r, 0);
                ASSERT_STREQ(l.config->instance.storage.mount_path, cases[i].bound);
        }
}

TEST(names_of_services_and_variables) {
        expect_error("  instance: {environment: {\"a/b\": {A: b}}}\n", "spec.instance.environment: ");
        expect_error("  instance: {environment: {\"a..b\": {A: b}}}\n", "spec.instance.environment: ");
        expect_error("  instance: {environment: {\"a'b\": {A: b}}}\n", "spec.instance.environment: ");
        expect_error("  instance: {environment: {\"a\\nb\": {A: b}}}\n", "spec.instance.environment: ");
        expect_error("  instance: {environment: {\"\": {A: b}}}\n", "spec.instance.environment: ");
        expect_error("  instance: {environment: {kubelet: {\"A\\\"B\": b}}}\n", "spec.instance.environment.kubelet: ");
        expect_error("  instance: {environment: {kubelet: {\"A\\tB\": b}}}\n", "spec.instance.environment.kubelet: ");
        expect_accepted("  instance: {environment: {kubelet: {\"A=B\": b}}}\n", "systemd ends the name there");
        expect_accepted("  instance:\n    environment:\n      default:\n        MY-VAR: x\n", "a, line 8: spec.instance.environment.default.MY-VAR: environment-name: systemd ignores this variable");
        expect_error("  instance: {environment: {HTTPS_PROXY: x}}\n", "spec.instance.environment.HTTPS_PROXY: must be a map, but is an unquoted string; did you mean default: {HTTPS_PROXY: ...}?");
        expect_error("  instance: {environment: {kubelet: {A: \"b\\nc\"}}}\n", "spec.instance.environment.kubelet.A: contains a line break");
        expect_accepted("  instance: {environment: {a.b-c@d: {A_B: \"%h \\\\ ' \\\"\"}}}\n", NULL);
        expect_error("  instance: {sysctl: {../x: 1}}\n", "spec.instance.sysctl: ");
        expect_error("  instance: {sysctl: {vm.x: \"1\\n2\"}}\n", "spec.instance.sysctl.vm.x: ");
        expect_error("  instance: {network: {nameservers: [\"1.1.1.1\\nDNS=2.2.2.2\"]}}\n", "spec.instance.network.nameservers[0]: ");
}

/* Characters: systemd src/basic/utf8.c:unichar_is_valid(), yaml/go-yaml readerc.go. Addresses: systemd src/shared/socket-netlink.c, kubernetes/utils
 * net/parse.go; IMEX: kubernetes-sigs/dra-driver-nvidia-gpu#289. Placeholders: harishvs/slinky_on_eks. */
TEST(texts_with_bad_characters_placeholders_or_addresses) {
        static const struct { const char *text, *said; } cases[] = {   /* said NULL: accepted without a message */
                { "kubelet: {flags: [\"--v=2\\uFFFE\"]}", "a, line 5: spec.kubelet.flags[0]: contains a Unicode noncharacter" },
                { "kubelet: {flags: [\"--root-dir=/\\U0010FFFF\"]}", "flags[0]: contains a Unicode noncharacter" },
                { "kubelet: {flags: [\"--root-dir=/\\U0001FFFE\"]}", "flags[0]: contains a Unicode noncharacter" }, { "kubelet: {flags: [\"--root-dir=/\\uFDD0\"]}", "flags[0]: contains a Unicode noncharacter" },
                { "kubelet: {flags: [\"--root-dir=/\\uFFFD\\u2028\\uFDCF\\U0010FFFD\"]}", NULL },
                { "instance: {environment: {kubelet: {A: \"x\\uFFFF\"}}}", "a, line 5: spec.instance.environment.kubelet.A: contains a Unicode noncharacter" },
                { "instance: {environment: {kubelet: {A: \"x\\u2028\"}}}", NULL },
                { "instance: {environment: {kubelet: {\"A\\uFFFE\": x}}}", "spec.instance.environment.kubelet: a variable name" },
                { "instance: {environment: {\"a\\uFFFF\": {A: x}}}", "spec.instance.environment: a service name" },
                { "instance: {environment: {default: {A: \"http://${HOST}:3128\"}}}", "environment.default.A: contains an unfilled placeholder" },
                { "instance: {environment: {default: {A: \"{{ host }}\"}}}", "environment.default.A: contains an unfilled placeholder" },
                { "instance: {environment: {default: {A: \"$HOME %i {} ${\"}}}", NULL },
                { "instance: {network: {domains: [\"a\\x01\"]}}", "spec.instance.network.domains[0]: contains a control character" },
                { "instance: {network: {domains: [\"${DOMAIN}\"]}}", "spec.instance.network.domains[0]: contains an unfilled placeholder" },
                { "instance: {network: {domains: [\"a\\tb.c\", \"~.\"]}}", NULL },
                { "instance: {sysctl: {vm.max_map_count: \"${COUNT}\"}}", "spec.instance.sysctl.vm.max_map_count: contains an unfilled placeholder" },
                { "instance: {network: {nameservers: [10.0.0.2, '10.0.0.2\\']}}", "a, line 5: spec.instance.network.nameservers[1]: is not the address of a name server" },
                { "instance: {network: {nameservers: ['10.0.0.2,10.0.0.3']}}", "nameservers[0]: is not the address" }, { "instance: {network: {nameservers: [dns.lab.example]}}", "nameservers[0]: is not the address" },
                { "instance: {network: {nameservers: [10.0.0.300]}}", "nameservers[0]: is not the address" }, { "instance: {network: {nameservers: ['10.0.0.2:0']}}", "nameservers[0]: is not the address" },
                { "instance: {network: {nameservers: ['10.0.0.2:65536']}}", "nameservers[0]: is not the address" }, { "instance: {network: {nameservers: ['[fd00::2]']}}", "nameservers[0]: is not the address" },
                { "instance: {network: {nameservers: ['[10.0.0.2]:53']}}", "nameservers[0]: is not the address" }, { "instance: {network: {nameservers: ['10.0.0.2#']}}", "nameservers[0]: is not the address" },
                { "instance: {network: {nameservers: ['fd00::2%']}}", "nameservers[0]: is not the address" }, { "instance: {network: {nameservers: ['#x']}}", "nameservers[0]: is not the address" },
                { "instance: {network: {nameservers: [':53']}}", "nameservers[0]: is not the address" }, { "instance: {network: {nameservers: ['[']}}", "nameservers[0]: is not the address" },
                { "instance: {network: {nameservers: ['10.0.0.2 10.0.0.3x']}}", "nameservers[0]: is not the address" },
                { "instance: {network: {nameservers: ['10.0.0.2 10.0.0.3', '10.0.0.2:53#x.lab', 'fd00::2', 'fe80::1%eth0', '[fd00::2]:53%eth0#x.lab', '::ffff:10.0.0.2']}}", NULL },
                { "kubelet: {config: {clusterDNS: [10.100.0.10, '10.100.0.10,10.100.0.11']}}", "a, line 5: spec.kubelet.config.clusterDNS[1]: is not an address" },
                { "kubelet: {config: {clusterDNS: [10.100.0.300]}}", "clusterDNS[0]: is not an address" }, { "kubelet: {config: {clusterDNS: ['10.100.0.10 ']}}", "clusterDNS[0]: is not an address" },
                { "kubelet: {config: {clusterDNS: [10.100.10]}}", "clusterDNS[0]: is not an address" }, { "kubelet: {config: {clusterDNS: ['']}}", "clusterDNS[0]: is not an address" },
                { "kubelet: {config: {clusterDNS: [10.100.0.10.1]}}", "clusterDNS[0]: is not an address" }, { "kubelet: {config: {clusterDNS: ['fe80::1%eth0']}}", "clusterDNS[0]: is not an address" },
                { "kubelet: {config: {clusterDNS: [10.100.0.10, 010.100.000.011, 'fd00::a']}}", NULL }, { "kubelet: {config: {clusterDNS: []}}", NULL },
                { "kubelet: {flags: ['--vmodule=kubelet=4,,a']}", "flags[0]: kubelet would exit: --vmodule must be FILE=NUMBER, such as kubelet=4" },
                { "kubelet: {flags: ['--vmodule=a=2147483648']}", "flags[0]: kubelet would exit: --vmodule must be FILE=NUMBER" },
                { "kubelet: {flags: [--v=2, max-pods=5]}", "a, line 5: spec.kubelet.flags[1]: is neither a flag" }, { "kubelet: {flags: [--register-node false]}", "flags[0]: is neither a flag" },
                { "kubelet: {flags: ['--vmodule=a=1,,b/*=2147483647']}", NULL },
                { "kubelet: {flags: [--root-dir=rel]}", "flags[0]: kubelet would exit: --root-dir must be an absolute path" }, { "kubelet: {flags: ['--root-dir=']}", "--root-dir must be" },
                { "kubelet: {flags: ['--node-ip=10.0.0.1,10.0.0.2']}", "--node-ip must be one address" }, { "kubelet: {flags: [--cloud-provider=aws]}", "--cloud-provider must be external" },
                { "kubelet: {flags: ['--reserved-memory=0:memory']}", "--reserved-memory must look like 0:memory=1Gi" }, { "kubelet: {flags: [--housekeeping-interval=x]}", "--housekeeping-interval must be a duration" },
                { "kubelet: {flags: [--version]}", "flags[0]: makes kubelet print a message" }, { "kubelet: {flags: [--v=2, -h]}", "flags[1]: makes kubelet print" }, { "kubelet: {flags: [--help=false]}", "flags[0]: makes" },
                { "kubelet: {flags: [--exit-on-lock-contention]}", "flags[0]: --exit-on-lock-contention needs --lock-file" }, { "kubelet: {flags: [--log-text-split-stream]}", "needs the feature gate LoggingAlphaOptions" },

                { "kubelet: {config: {containerRuntimeEndpoint: 'tcp://127.0.0.1:1'}}", "containerRuntimeEndpoint: must be a socket" },
                { "kubelet: {flags: ['--image-service-endpoint=run/x']}", "flags[0]: must be a socket" }, { "kubelet: {config: {imageServiceEndpoint: /run/x}}", NULL },
                { "kubelet: {flags: ['--cluster-dns=10.100.0.10,10.100.0.300']}", "flags[0]: pods could not resolve service names: --cluster-dns contains an item that is not an address" },
                { "kubelet: {config: {clusterDomain: '{{ domain }}'}}", "a, line 5: spec.kubelet.config.clusterDomain: contains an unfilled placeholder" },
                { "kubelet: {config: {clusterDNS: ['${DNS}'], tlsCipherSuites: ['${A}']}}", "spec.kubelet.config.clusterDNS[0]: contains an unfilled placeholder" },
                { "kubelet: {config: {containerLogMaxSize: '${SIZE}'}}", "spec.kubelet.config.containerLogMaxSize: contains an unfilled placeholder" },
                { "kubelet: {config: {staticPodURLHeader: {X: ['${A}']}}}", NULL },
                { "containerd: {config: \"[plugins.'a']\\nx = ['${CERTS}']\\n\"}", "a, line 5: spec.containerd.config: contains an unfilled placeholder" },
                { "containerd: {config: \"[plugins.'{{ plugin }}']\\nx = 1\\n\"}", "spec.containerd.config: contains an unfilled placeholder" },
                { "containerd: {config: \"[a.headers]\\nX = ['${A}']\\n[a.auth]\\npassword = '{{'\\n# ${x}\\n\"}", NULL },
                { "containerd: {baseRuntimeSpec: {process: {args: [sh, -c, 'echo ${HOME}']}}}", NULL },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: [10.0.1.300]}}}", "a, line 5: spec.accelerator.nvidia.imex.nodes[0]: is not an address" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: [10.0.1.11/24]}}}", "imex.nodes[0]: is not an address" }, { "accelerator: {nvidia: {imex: {mode: host, nodes: ['fd00::11/64']}}}", "imex.nodes[0]: is not" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: ['10.0.1.11:50000']}}}", "imex.nodes[0]: is not an address" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: [10.0.1.11, 10.0.1]}}}", "imex.nodes[1]: is not an address" }, { "accelerator: {nvidia: {imex: {mode: host, nodes: ['[fd00::11]']}}}", "imex.nodes[0]: is not an" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: [10.0.1.11, 127.0.0.1]}}}", "imex.nodes[1]: is an address by which a node reaches only itself" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: ['::1']}}}", "imex.nodes[0]: is an address by" }, { "accelerator: {nvidia: {imex: {mode: host, nodes: ['::ffff:127.9.9.9']}}}", "imex.nodes[0]: is an address by" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: [LocalHost]}}}", "imex.nodes[0]: is an address by" }, { "accelerator: {nvidia: {imex: {mode: host, nodes: [0.0.0.0]}}}", "imex.nodes[0]: is an address by" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: [10.0.1.11, a, 10.0.1.11]}}}", "imex.nodes: names a node twice" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: ['fd00::11', 'FD00:0:0::11']}}}", "imex.nodes: names a node twice" }, { "accelerator: {nvidia: {imex: {mode: host, nodes: [Node-1, node-1]}}}", "names a node twice" },
                { "accelerator: {nvidia: {imex: {mode: host, nodes: [10.0.1.11, 'fd00::11', ip-10-0-1-12.lab.example, compute-domain-daemon-0000]}}}", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *more = xasprintf("  %s\n", cases[i].text);
                if (cases[i].said)
                        expect_error(more, cases[i].said);
                else
                        expect_accepted(more, NULL);
        }
        expect_error("  containerd:\n    config: |\n      version = 3\n      [plugins.'a']\n      x = ['${CERTS}']\n", "a, line 9: spec.containerd.config: contains an unfilled placeholder");
        _cleanup_(loaded_done) Loaded once = load_with("  kubelet: {config: {containerLogMaxSize: '${SIZE}', clusterDNS: ['${DNS}']}}\n");
        ASSERT_EQ(diag_count(&once.diag, false), 2);    /* one message for one cause */
        static const char *const endpoints[] = { "\\u2028", "\\u2029", "\\u0085", "\\uFFFF", "\\x7f" };
        for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++) {
                _free_ char *text = xasprintf("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: c, certificateAuthority: Y2E=, cidr: 10.100.0.0/16,\n"
                                              "    apiServerEndpoint: \"https://e/a%sb\"}\n", endpoints[i]);
                _cleanup_(loaded_done) Loaded l = LOAD(text);
                ASSERT_ERROR(l.r, EINVAL);
                ASSERT_CONTAINS(l.messages, "a, line 5: spec.cluster.apiServerEndpoint: contains a line break, a control character");
                ASSERT_EQ(diag_count(&l.diag, false), 1);
        }
}

/* Words of a closed list are not secrets. Messages quote them, cut, and with control characters escaped. */
TEST(enums_are_quoted_safely) {
        expect_error("  instance: {localStorage: {strategy: RAID5}}\n",
                     "a, line 5: spec.instance.localStorage.strategy: \"RAID5\" is not one of RAID0, RAID10, Mount");
        expect_error("  instance: {localStorage: {disabledMounts: [Containerd, containerd]}}\n",
                     "spec.instance.localStorage.disabledMounts[1]: \"containerd\" is not one of Containerd, PodLogs, SOCI, Kubelet");
        expect_error("  failurePolicy: \"\\e[31m0123456789012345678901234567890123456789\"\n", "\"\\x1b[31m01234567890123456789012345678901234…\"");
        expect_error("  accelerator: {nvidia: {clocks: off}}\n", "\"off\" is not one of auto, max, default");
}

/* YAML 1.1 tools rewrite off and on as false and true. */
TEST(on_and_off_survive_yaml_tools) {
        _cleanup_(loaded_done) Loaded l = load_with("  accelerator: {nvidia: {mode: false, fabric: {manager: true, gate: no}}}\n");
        ASSERT_STREQ(l.messages, "");
        ASSERT_EQ(l.config->nvidia.mode, NVIDIA_OFF);
        ASSERT_EQ(l.config->nvidia.fabric_manager, FABRIC_MANAGER_ON);
        ASSERT_EQ(l.config->nvidia.fabric_gate, FABRIC_GATE_OFF);
        expect_error("  accelerator: {nvidia: {mode: true}}\n", "\"true\" is not one of auto, off");
}

#define VOLUMES(list) "  instance: {storage: {volumes: [" list "]}}\n"
TEST(volumes) {
        _cleanup_(loaded_done) Loaded l = load_with(VOLUMES("{device: /dev/sdb, mountTarget: /var/lib/containerd/}, {device: vol-0123, mountTargets: [/data, /opt//models], fsType: ext4}"));
        ASSERT_EQ(l.r, 0);
        ASSERT_EQ(l.config->instance.n_volumes, 2);
        const Volume *a = &l.config->instance.volumes[0], *b = &l.config->instance.volumes[1];
        ASSERT_STREQ(a->device, "/dev/sdb");
        ASSERT_STREQ(a->key, "xvdb");
        ASSERT_STREQ(a->targets[0], "/var/lib/containerd");
        ASSERT_STREQ(a->folders[0], "");
        ASSERT_TRUE(a->whole && !b->whole && a->filesystem == FILESYSTEM_XFS && b->filesystem == FILESYSTEM_EXT4);
        ASSERT_STREQ(b->key, "vol-0123");
        ASSERT_STREQ(b->targets[1], "/opt/models");
        ASSERT_STREQ(b->folders[1], "opt-models");
}

TEST(volumes_that_contradict) {
        expect_error(VOLUMES("{mountTarget: /data}"), "volumes[0].device: is missing");
        expect_error(VOLUMES("{device: /dev/xvdb}"), "volumes[0].mountTarget: is missing");
        expect_error(VOLUMES("{device: sdb, mountTarget: /a, mountTargets: [/b]}"), "volumes[0].mountTargets: cannot be set together with mountTarget");
        expect_error(VOLUMES("{device: sdb, mountTarget: /var/lib/nodestrap}"), "volumes[0].mountTarget: \"/var/lib/nodestrap\" holds the state of nodestrap");
        expect_error(VOLUMES("{device: sdb, mountTargets: [/var/lib/nodestrap/x/]}"), "volumes[0].mountTargets[0]: \"/var/lib/nodestrap/x/\" holds the state of nodestrap");
        expect_error(VOLUMES("{device: ../x, mountTarget: /a}"), "volumes[0].device: \"../x\" is not a device");
        expect_error(VOLUMES("{device: /dev/disk/../sda, mountTarget: /a}"), "is not a device");
        expect_error(VOLUMES("{device: disk/by-id/x, mountTarget: /a}"), "is not a device");
        expect_error(VOLUMES("{device: UUID=1, mountTarget: /a}"), "is not a device");
        expect_error(VOLUMES("{device: sdb, mountTarget: /a}, {device: /dev/xvdb, mountTarget: /b}"), "volumes[1].device: \"/dev/xvdb\" is also the device of spec.instance.storage.volumes[0]");
        expect_error(VOLUMES("{device: vol0a, mountTarget: /a}, {device: vol-0a, mountTarget: /b}"), "volumes[1].device: ");
        expect_error(VOLUMES("{device: sdb, mountTarget: /a}, {device: sdc, mountTarget: /a/}"), "volumes[1].mountTarget: /a is also a target of spec.instance.storage.volumes[0]");
        expect_error(VOLUMES("{device: sdb, mountTargets: [/a, /a]}"), "volumes[0].mountTargets[1]: /a is also a target of");
        expect_error(VOLUMES("{device: sdb, mountTarget: /a}, {device: sdc, mountTarget: /a/b}"), "volumes[1].mountTarget: /a/b and /a, a target of spec.instance.storage.volumes[0], overlap, so one would hide");
        expect_error(VOLUMES("{device: sdb, mountTarget: /a/b}, {device: sdc, mountTargets: [/a]}"), "volumes[1].mountTargets[0]: /a and /a/b");
        expect_error(VOLUMES("{device: sdb, mountTargets: [/a-b/c, /a/b-c]}"), "would share the directory a-b-c of the volume");
        expect_error(VOLUMES("{device: sdb, mountTarget: data}"), "\"data\" is not an absolute path");
        expect_error(VOLUMES("{device: sdb, mountTarget: //.}"), "is the root directory");
        expect_error(VOLUMES("{device: sdb, mountTarget: /var/lib/}"), "\"/var/lib/\" is in use by the whole system");
        expect_error(VOLUMES("{device: sdb, mountTarget: /etc/x}"), "in a system directory");
        expect_error(VOLUMES("{device: sdb, mountTarget: /a/../b}"), "in a system directory");
        expect_accepted(VOLUMES("{device: sdb, mountTarget: /a, mountPoint: /a}"), "volumes[0].mountPoint: unknown-field: is not known and is ignored; did you mean mountTarget?");
        expect_accepted(VOLUMES("{device: sdb, mountTarget: /a, mountPath: /a}"), "did you mean mountTarget?");
        expect_error(VOLUMES("{device: sdb, mountTarget: /a, fsType: btrfs}"), "volumes[0].fsType: \"btrfs\" is not one of xfs, ext4");
        expect_accepted(VOLUMES("{device: sdb, mountTarget: /a}, {device: sdc, mountTarget: /ab}, {device: /dev/disk/by-id/nvme-x_y, mountTarget: /b}"), NULL);
}

/* As many as the node limit of a document allows. */
TEST(thousands_of_targets_are_compared_with_each_other) {
        static const struct { const char *last, *said; } cases[] = {
                { "/d/9000/x", NULL }, { "/d/17/x", "mountTargets[9000]: /d/17/x is also a target of" }, { "/d/17/x/y", "mountTargets[9000]: /d/17/x/y and /d/17/x, a target of" },
                { "/d", "mountTargets[9000]: /d and /d/0/x, a target of" }, { "/d/17-x", "mountTargets[9000]: /d/17-x and /d/17/x would share the directory d-17-x of the volume" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(text_done) Text t = {};
                text_add(&t, "  instance: {storage: {volumes: [{device: sdb, mountTargets: [");
                for (size_t k = 0; k < 9000; k++)
                        text_add(&t, "/d/%zu/x, ", k);
                text_add(&t, "%s]}]}}\n", cases[i].last);
                _cleanup_(loaded_done) Loaded l = load_with(t.data);
                ASSERT_EQ(l.r < 0, cases[i].said != NULL);
                ASSERT_CONTAINS(l.messages, cases[i].said ?: "");
                if (!cases[i].said)
                        ASSERT_STREQ(l.config->instance.volumes[0].folders[8999], "d-8999-x");
        }
}

/* The message names the first target before it that contains it or lies in it. */
TEST(targets_that_contradict_several_others) {
        expect_error(VOLUMES("{device: sdb, mountTargets: [/a/b/c, /a/b, /a/bb, /a]}"), "mountTargets[1]: /a/b and /a/b/c");
        expect_error(VOLUMES("{device: sdb, mountTargets: [/a/b/c, /a/b, /a/bb, /a]}"), "mountTargets[3]: /a and /a/b/c");
        expect_error(VOLUMES("{device: sdb, mountTargets: [/a/x, /a.x, /a/x/y/z, /a/x/y]}"), "mountTargets[3]: /a/x/y and /a/x,");
        expect_error(VOLUMES("{device: sdb, mountTargets: [/a/x/y/z, /a, /a/x]}"), "mountTargets[2]: /a/x and /a/x/y/z,");
}

TEST(contradictions) {
        expect_error("  accelerator: {nvidia: {imex: {mode: host}}}\n", "spec.accelerator.nvidia.imex.nodes: ");
        expect_error("  accelerator: {nvidia: {mig: '19,19', memoryMode: driver}}\n", "spec.accelerator.nvidia.mig: contradicts");
        expect_accepted("  accelerator: {nvidia: {mig: off, memoryMode: driver}}\n", NULL);
        expect_error("  accelerator: {nvidia: {gpuDirect: on}}\n  instance: {network: {efa: {mode: off}}}\n", "spec.accelerator.nvidia.gpuDirect: is on, which contradicts spec.instance.network.efa.mode off");
        expect_accepted("  accelerator: {nvidia: {gpuDirect: off}}\n  instance: {network: {efa: {mode: off}}}\n", NULL);
        expect_error("  accelerator: {nvidia: {gpuDirect: maybe}}\n", "spec.accelerator.nvidia.gpuDirect: \"maybe\" is not one of auto, on, off");
        expect_accepted("  accelerator: {nvidia: {mig: [], memoryMode: driver}}\n", "spec.accelerator.nvidia.mig: no-effect: is an empty list");
        expect_error("  instance: {hugePages: {mode: explicit}}\n", "spec.instance.hugePages.pages: ");
        expect_error("  instance: {hugePages: {mode: explicit, pages: [{count: 1}]}}\n", "spec.instance.hugePages.pages[0].size: ");
        expect_error("  instance: {hugePages: {mode: explicit, pages: [{size: 2Mi}]}}\n", "spec.instance.hugePages.pages[0].count: ");
        expect_error("  instance: {hugePages: {pages: [{size: 3Mi, count: 1}]}}\n", "spec.instance.hugePages.pages[0].size: ");
        expect_error("  instance: {hugePages: {pages: [{size: 2M, count: 1}]}}\n", "spec.instance.hugePages.pages[0].size: ");
        expect_error("  instance: {localStorage: {strategy: RAID10, expectedDisks: 3}}\n", "spec.instance.localStorage.expectedDisks: ");
        expect_error("  kubelet: {config: {reservedMemory: [{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 4Mi}}]}}\n",
                     "spec.kubelet.config.reservedMemory[0].limits: ");
        expect_error("  kubelet: {config: {reservedMemory: [{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 0}}]}}\n", "needs a quantity above 0");
        expect_error("  kubelet: {flags: ['--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi']}\n", "spec.kubelet.flags[0]: ");
        expect_error("  accelerator: {nvidia: {mig: [{devices: [0], profiles: {1g.5gb: 7}}, {devices: [1, 0], profiles: {2g.10gb: 3}}]}}\n", "twice");
        expect_error("  accelerator: {nvidia: {mig: [{devices: all, profiles: {1g.5gb: 7}}, {devices: [1], profiles: {2g.10gb: 3}}]}}\n", "twice");
        expect_error("  accelerator: {nvidia: {mig: [{devices: some, profiles: {1g.5gb: 7}}]}}\n", "mig[0].devices: ");
        expect_error("  accelerator: {nvidia: {mig: [{devices: all}]}}\n", "mig[0].profiles: ");
        expect_error("  accelerator: {nvidia: {mig: [{profiles: {1g/5gb: 7}}]}}\n", "mig[0].profiles: ");
        expect_error("  accelerator: {nvidia: {mig: '19,,19'}}\n", "spec.accelerator.nvidia.mig: must be off, a list of {devices, profiles}");
        expect_error("  accelerator: {nvidia: {imex: {channels: 0, createChannel0: true}}}\n", "spec.accelerator.nvidia.imex.channels: is 0, but ");
        expect_error("  accelerator: {nvidia: {imex: {channels: 0, mode: host, nodes: [a]}}}\n", "spec.accelerator.nvidia.imex.channels: is 0, but ");
        expect_accepted("  accelerator: {nvidia: {imex: {channels: 0}}}\n", NULL);
        expect_accepted("  accelerator: {nvidia: {imex: {createChannel0: true}}}\n", NULL);
        expect_error("  accelerator: {nvidia: {fabric: {timeout: 5 minutes}}}\n", "spec.accelerator.nvidia.fabric.timeout: ");
        expect_error("  accelerator: {nvidia: {prove: quick, proveTimeout: 500ms}}\n", "spec.accelerator.nvidia.proveTimeout: must be a time span from 5s to 1h");
        expect_error("  accelerator: {nvidia: {prove: quick, proveTimeout: 100h}}\n", "spec.accelerator.nvidia.proveTimeout: must be a time span from 5s to 1h");
        expect_error("  accelerator: {nvidia: {prove: long}}\n", "spec.accelerator.nvidia.prove: ");
}

/* nodestrap refuses a value that kubelet refuses, unless protectKernelDefaults is off. */
TEST(kernel_settings) {
        expect_accepted("  instance: {sysctl: {net/ipv4/conf/eth0.1/rp_filter: 2, vm.panic_on_oom: ' 0'}}\n", NULL);
        expect_error("  instance: {sysctl: {net/ipv4/conf/eth0.1/rp_filter: 2, net.ipv4.conf.eth0/1.rp_filter: 2}}\n",   /* sysctl.d(5): the same */
                     "a, line 5: spec.instance.sysctl.net.ipv4.conf.eth0/1.rp_filter: is set twice, under two names");
        expect_error("  instance: {sysctl: {vm/panic_on_oom: 1}}\n", "spec.instance.sysctl.vm/panic_on_oom: kubelet starts only with the value 0");
        expect_error("  instance: {sysctl: {vm/panic_on_oom: 1}}\n  kubelet: {config: {protectKernelDefaults: true}}\n", "only with the value 0");
        expect_accepted("  instance: {sysctl: {vm/panic_on_oom: 1}}\n  kubelet: {config: {protectKernelDefaults: false}}\n", NULL);
        expect_accepted("  instance: {sysctl: {vm/panic_on_oom: 1}}\n  kubelet: {flags: [--protect-kernel-defaults=false]}\n", "protect-kernel-defaults");
        expect_accepted("  instance: {sysctl: {vm.nr_hugepages: 1}}\n", NULL);
        expect_accepted("  instance: {sysctl: {vm.nr_hugepages: 1}, hugePages: {mode: keep}}\n", NULL);
        expect_error("  instance: {sysctl: {vm.nr_hugepages: 1}, hugePages: {mode: auto}}\n", "spec.instance.sysctl.vm.nr_hugepages: reserves huge pages");
        expect_error("  instance: {sysctl: {net.ipv6.conf.all.stable_secret: '::1'}}\n", "spec.instance.sysctl.net.ipv6.conf.all.stable_secret: is a secret");
}

/* Kubelet 1.28 ignores newer settings, whatever their value. */
TEST(wrong_values_of_new_settings_are_warnings) {
        static const struct { const char *setting, *want; } cases[] = {
                { "containerLogMaxWorkers: 0", "containerLogMaxWorkers: kubelet-setting: must be from 1 to" },
                { "containerLogMonitorInterval: 1s", "containerLogMonitorInterval: kubelet-setting: must be at least 3s; as it is, kubelet 1.30 and newer would" },
                { "imagePullCredentialsVerificationPolicy: Always", "is not one of NeverVerify" },
                { "memoryReservationPolicy: Tiered", "is not one of None, TieredReservation" },
                { "podLogsDir: pods", "podLogsDir: kubelet-setting: must be an absolute path" },
                { "podLogsDir: /var/log/../pods", "podLogsDir: kubelet-setting: must be" },
                { "podLogsDir: /var/log/", "podLogsDir: kubelet-setting: must be" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *spec = xasprintf("  kubelet:\n    config:\n      %s\n", cases[i].setting);
                expect_accepted(spec, cases[i].want);
        }
        expect_accepted("  kubelet: {config: {tlsCurvePreferences: [X25519]}}\n", "a, line 5: spec.kubelet.config.tlsCurvePreferences: kubelet-setting: must list numbers of TLS curves");
        expect_accepted("  kubelet: {config: {podLogsDir: logs}}\n", "kubelet 1.30 and newer would not start");
        expect_accepted("  kubelet: {config: {imageMaximumGCAge: 5}}\n", "kubelet 1.29 and newer would not start");
}

TEST(toml_that_containerd_refuses) {
        expect_error("  containerd:\n    config: |\n      version = 3\n      [plugins.'io.containerd.cri.v1.images']\n      # a comment\n      max_concurrent_downloads = \"16\"\n",
                     "a, line 10: spec.containerd.config.plugins.io.containerd.cri.v1.images.max_concurrent_downloads: must be a whole number, without quotes; as it is, containerd would exit, or would not serve CRI");
        expect_error("  containerd:\n    config: |\n      imports = [\n      ]\n      disabled_plugins = ['io.containerd.grpc.v1.cri']\n", "a, line 9: spec.containerd.config.disabled_plugins[0]: turns off a plugin that CRI needs");
        expect_error("  containerd: {config: \"imports = 'x'\"}\n", "a, line 5: spec.containerd.config.imports: must be a list of strings");
        expect_error("  containerd: {config: \"version = 1\"}\n", "spec.containerd.config.version: selects a schema with other plugin names");
        expect_error("  containerd: {config: \"plugins.'io.containerd.grpc.v1.cri'.containerd.default_runtime_name = 'kata'\"}\n", "default_runtime_name: is not a runtime");
        expect_error("  containerd: {baseRuntimeSpec: {process: {rlimits: [{type: RLIMIT_CPU, hard: '5'}]}}}\n", "a, line 5: spec.containerd.baseRuntimeSpec.process.rlimits[0].hard: must be a whole number");
        /* with an unknown version, and of settings that nodestrap adds */
        expect_accepted("  containerd: {baseRuntimeSpec: {linux: {memoryPolicy: 5}}}\n", "a, line 5: spec.containerd.baseRuntimeSpec.linux.memoryPolicy: containerd-setting: must be a table; as it is, containerd would exit");
        expect_error("  containerd: {config: \"plugins.'io.containerd.cri.v1.runtime'.use_internal_loopback = 1\\nplugins.'io.containerd.cri.v1.runtime'.cni.use_internal_loopback = 1\"}\n", "use_internal_loopback: must be true or false");
        expect_accepted("  containerd: {config: \"plugins.'io.containerd.grpc.v1.cri'.containerd.default_runtime_name = 'nvidia'\"}\n", NULL);
        expect_accepted("  containerd: {config: \"plugins.'io.containerd.gc.v1.scheduler' = {pause_threshold = 1, schedule_delay = 1}\"}\n", NULL);
        expect_accepted("  containerd: {config: \"plugins.'io.containerd.cri.v1.runtime'.cni = {bin_dir = '/a', bin_dirs = ['/b']}\\nversion = 4\"}\n", NULL);
        expect_accepted("  containerd:\n    config: |\n      [grpc]\n      adress = '/x'\n", "a, line 8: spec.containerd.config.grpc.adress: containerd-setting: is not a key that containerd 1.7 to 2.4 knows here; did you mean address?");
        expect_accepted("  containerd: {config: \"[plugins.'com.example.x']\\na = 1\"}\n", NULL);
        expect_accepted("  containerd: {config: \"disabled_plugins = ['io.containerd.server.v1.grpc']\"}\n", NULL);     /* which 2.3 has */
        /* containerd 1 ignores some that differ in case */
        expect_accepted("  containerd: {config: \"Disabled_Plugins = ['io.containerd.grpc.v1.cri']\"}\n", "spec.containerd.config.disabled_plugins[0]: containerd-setting: turns off a plugin that CRI needs; as it is, containerd would exit");
        expect_error("  containerd:\n    config: |\n      Root = '/a'\n      DISABLED_PLUGINS = [\n      'io.containerd.grpc.v1.cri']\n", "a, line 8: spec.containerd.config.disabled_plugins[0]: turns off a plugin that CRI needs");
        expect_error("  containerd:\n    config: |\n      [plugins.'io.containerd.cri.v1.images'.registry.configs.'https://u:p/w@r'.auth]\n      username = 5\n", "a, line 8: spec.containerd.config.plugins.io.containerd.cri.v1.images.registry.configs.https://(hidden)@r.auth.username: must");
        expect_error("  containerd: {config: \"plugins.'io.containerd.cri.v1.images'.registry.configs.'u:p@w@r'.auth.username = 5\"}\n", "registry.configs.(hidden)@r.auth.username: must");
        /* whatever its case */
        expect_error("  containerd:\n    config: |\n      version = 3\n      Disabled_Plugins = [\n      'io.containerd.grpc.v1.cri']\n", "a, line 8: spec.containerd.config.disabled_plugins[0]: turns off a plugin that CRI needs");
        expect_error("  containerd:\n    config: |\n      [plugins.'io.containerd.cri.v1.images'.Registry]\n      config_path = '/a'\n      [plugins.'io.containerd.cri.v1.images'.Registry.Mirrors.'docker.io']\n      Endpoint = ['https://m']\n", "registry.mirrors: cannot be used with config_path");
}

/* The messages have twenty faults, and the number of the others. */
TEST(toml_with_thousands_of_faults) {
        Text runtimes = {}, keys = {};
        for (size_t i = 0; i < 5000; i++) {
                text_add(&runtimes, "      r%zu = {runtime_type = 5}\n", i);
                text_add(&keys, "      k%zu = 5\n", i);
        }
        _free_ char *wrong = xasprintf("  containerd:\n    config: |\n      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes]\n%s", runtimes.data),
                    *unknown = xasprintf("  containerd:\n    config: |\n      [plugins.'io.containerd.cri.v1.runtime'.cni]\n%s", keys.data);
        _cleanup_(loaded_done) Loaded bad = load_with(wrong), odd = load_with(unknown);
        ASSERT_EQ(bad.diag.n, 21);
        ASSERT_CONTAINS(bad.messages, "spec.containerd: contains 4980 more wrong settings: correct them, too; as it is, containerd would exit");
        ASSERT_OK(odd.r);
        ASSERT_EQ(odd.diag.n, 21);
        ASSERT_CONTAINS(odd.messages, "spec.containerd.config: containerd-setting: contains 4980 more keys that are unknown");
        text_done(&runtimes);
        text_done(&keys);
}

TEST(toml_in_the_spelling_of_the_table) {
        static const char first[] = GOOD "  containerd: {config: \"ROOT = '/a'\\nImports = ['x']\\n[Plugins.'X.Y']\\nRoot = 1\\n[plugins.'io.containerd.cri.v1.runtime'.Containerd.Runtimes.Kata]\\n"
                                         "Runtime_Type = 'io.containerd.kata.v2'\\nSnapShotter = ''\\nOptions = {foo = 1, binaryname = 'x'}\\n\"}\n",
                          second[] = HEAD "spec: {containerd: {config: \"rooT = '/b'\\nState = '/c'\\nstate = '/d'\\n[stream_processors.X]\\nPath = '/p'\\n\"}}\n";
        _cleanup_(loaded_done) Loaded l = LOAD(first, second);
        ASSERT_OK(l.r);
        _free_ char *text = json_dumps(l.config->containerd.config, JSON_SORT_KEYS | JSON_COMPACT);
        ASSERT_STREQ(text, "{\"Plugins\":{\"X.Y\":{\"Root\":1}},\"State\":\"/c\",\"imports\":[\"x\"],\"plugins\":{\"io.containerd.cri.v1.runtime\":{\"containerd\":{\"runtimes\":{\"Kata\":"
                           "{\"options\":{\"binaryname\":\"x\",\"foo\":1},\"runtime_type\":\"io.containerd.kata.v2\",\"snapshotter\":\"\"}}}}},\"root\":\"/b\","
                           "\"state\":\"/d\",\"stream_processors\":{\"X\":{\"path\":\"/p\"}}}");
}

/* 1.7.24 reads four spellings: pelletier/go-toml 1.9 marshal.go. */
TEST(toml_as_containerd_1_reads_it) {
        _cleanup_(loaded_done) Loaded l = load_with(
                "  containerd:\n    config: |\n      ROOT = '/a'\n      State = '/b'\n      [Grpc]\n      address = '/c'\n"
                "      [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.x]\n      Runtime_Type = 't'\n"
                "      options = {binaryName = 'n', systemdcgroup = false, Noptions = 1}\n");
        ASSERT_OK(l.r);
        _free_ char *text = json_dumps(containerd_settings(l.config, "1.7.24"), JSON_SORT_KEYS | JSON_COMPACT);
        ASSERT_STREQ(text, "{\"Grpc\":{\"address\":\"/c\"},\"State\":\"/b\",\"plugins\":{\"io.containerd.grpc.v1.cri\":{\"containerd\":{\"runtimes\":{\"x\":{\"Runtime_Type\":\"t\","
                           "\"options\":{\"BinaryName\":\"n\",\"Noptions\":1,\"SystemdCgroup\":false}}}}}},\"root\":\"/a\"}");
        ASSERT_STREQ(json_string_value(json_object_get(containerd_settings(l.config, "2.1.9"), "state")), "/b");
        ASSERT_TRUE(containerd_settings(l.config, NULL) == l.config->containerd.config);
        ASSERT_EQ(config_position(l.config, "spec.containerd.config.State")->line, 8);
        ASSERT_EQ(config_position(l.config, "spec.containerd.config.state")->line, 8);
}

TEST(toml_that_is_folded_or_wrong) {
        _cleanup_(loaded_done) Loaded literal = load_with("  containerd:\n    config:\n      |2-\n\n        a = 1\n        b\n");
        ASSERT_CONTAINS(literal.messages, "a, line 10: spec.containerd.config: is not TOML: ");
        expect_error("  containerd:\n    config: >\n      [a]\n      b = 1\n", "a, line 6: spec.containerd.config: is not TOML: line 1 of this text: ");
        expect_error("  containerd:\n    config: >\n      [a]\n      b = 1\n", "YAML folds the lines after config: > into one; did you mean config: |?");
        expect_accepted("  containerd:\n    config: >\n      a = 1\n", NULL);
        expect_error("  containerd:\n    config:\n      a = 1\n      b = 2\n", "without config: |, YAML folds the lines into one; did you mean config: |?");
        expect_accepted("  containerd:\n    config:\n      a = 1\n", NULL);
}

TEST(the_message_names_a_no_break_space_in_a_key) {
        expect_accepted("\u00a0 instance:\n    sysctl: {a.b: 1}\n", "instance: unknown-field: is not known and is ignored: a no-break space (U+00A0) in it is not an ordinary space; did you mean ");
}

TEST(fields_that_have_no_effect_alone_are_warnings) {
        static const struct { const char *field, *with; } idle[] = {
                { "spec.instance.hugePages.pages", "instance: {hugePages: {mode: auto, pages: [{size: 2Mi, count: 1}]}}" },
                { "spec.instance.network.efa.expectedDevices", "instance: {network: {efa: {mode: off, expectedDevices: 4}}}" },
                { "spec.accelerator.nvidia.imex.nodes", "accelerator: {nvidia: {imex: {nodes: [10.0.0.1]}}}" },
                { "spec.accelerator.nvidia.imex.nodes", "accelerator: {nvidia: {imex: {mode: dra, nodes: [10.0.0.1]}}}" },
                { "spec.accelerator.nvidia.imex.label", "accelerator: {nvidia: {imex: {label: true}, fabric: {gate: off}}}" },
                { "spec.accelerator.nvidia.health", "accelerator: {nvidia: {mode: off, health: require}}" },
                { "spec.accelerator.nvidia.fabric.timeout", "accelerator: {nvidia: {mode: off, fabric: {timeout: 9m}}}" },
                { "spec.accelerator.nvidia.gpuDirect", "accelerator: {nvidia: {mode: off, gpuDirect: on}}" },
                { "spec.accelerator.nvidia.proveTimeout", "accelerator: {nvidia: {proveTimeout: 9m}}" },
                { "spec.kubelet.maxPodsExpression", "kubelet: {maxPodsExpression: max_pods + 1, config: {maxPods: 9}}" },
                { "spec.kubelet.maxPodsExpression", "kubelet: {maxPodsExpression: max_pods + 1, flags: [--v=2 --max_pods=9]}" },
        };
        static const char *const not[] = {
                "instance: {hugePages: {mode: explicit, pages: [{size: 2Mi, count: 1}]}}",
                "instance: {network: {efa: {mode: off, expectedDevices: 0}}}",
                "instance: {network: {efa: {expectedDevices: 4}}}",
                "accelerator: {nvidia: {imex: {mode: host, nodes: [10.0.0.1]}}}",
                "accelerator: {nvidia: {imex: {label: false}, fabric: {gate: off}}}",
                "accelerator: {nvidia: {imex: {label: true}}}",
                "accelerator: {nvidia: {mode: off, health: off, fabric: {gate: off}}}",
                "accelerator: {nvidia: {mode: auto, health: require}}",
                "accelerator: {nvidia: {mode: off, gpuDirect: off}}",
                "kubelet: {maxPodsExpression: max_pods + 1}",
        };
        for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
                _free_ char *more = xasprintf("  %s\n", idle[i].with), *want = xasprintf("%s: no-effect: has no effect", idle[i].field);
                expect_accepted(more, want);
        }
        for (size_t i = 0; i < ARRAY_SIZE(not); i++) {
                _free_ char *more = xasprintf("  %s\n", not[i]);
                expect_accepted(more, NULL);
        }
}

/* Compressed, this key is a kilobyte of user data. */
TEST(a_very_long_key) {
        _free_ char *key = xcalloc(1000001, 1), *text = NULL;
        memset(key, 'k', 1000000);
        text = xasprintf("  ? \"%s\"\n  : 1\n", key);
        expect_accepted(text, "unknown-field: is not known and is ignored\n");
}

TEST(mig_in_its_short_form) {
        _cleanup_(loaded_done) Loaded l = load_with("  accelerator: {nvidia: {mig: \"9,14, 14,9\"}}\n");
        ASSERT_STREQ(l.messages, "");
        ASSERT_EQ(l.config->nvidia.n_mig, 1);
        ASSERT_EQ(l.config->nvidia.mig[0].n_gpus, 0);
        ASSERT_EQ(l.config->nvidia.mig[0].n_profiles, 2);
        ASSERT_STREQ(l.config->nvidia.mig[0].profiles[0].name, "9");
        ASSERT_STREQ(l.config->nvidia.mig[0].profiles[0].value, "2");
        _cleanup_(loaded_done) Loaded one = load_with("  accelerator: {nvidia: {mig: 19}}\n");
        ASSERT_STREQ(one.config->nvidia.mig[0].profiles[0].name, "19");
}

/* Tools that rewrite YAML 1.1 turn off into false. */
TEST(mig_off) {
        static const char *const words[] = { "off", "'off'", "false", "no", "OFF" };
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                _free_ char *more = xasprintf("  accelerator: {nvidia: {mig: %s}}\n", words[i]);
                _cleanup_(loaded_done) Loaded l = load_with(more);
                ASSERT_STREQ(l.messages, "");
                ASSERT_TRUE(nvidia_mig_is_off(&l.config->nvidia));
        }
        _cleanup_(loaded_done) Loaded empty = load_with("  accelerator: {nvidia: {mig: []}}\n");
        ASSERT_EQ(empty.config->nvidia.n_mig, 0);
        _cleanup_(loaded_done) Loaded divided = load_with("  accelerator: {nvidia: {mig: [{profiles: {1g.5gb: 7}}]}}\n");
        ASSERT_TRUE(!nvidia_mig_is_off(&divided.config->nvidia));
        expect_error("  accelerator: {nvidia: {mig: 0}}\n", "spec.accelerator.nvidia.mig: is 0, which is ambiguous: write \"off\"");
        expect_error("  accelerator: {nvidia: {mig: '0'}}\n", "write \"off\" to turn MIG off");
        expect_error("  accelerator: {nvidia: {mig: on}}\n", "spec.accelerator.nvidia.mig: must be off, a list of {devices, profiles}");
        expect_error("  accelerator: {nvidia: {mig: [{devices: off, profiles: {1g.5gb: 7}}]}}\n", "mig[0].devices: must be all");
}

TEST(flags_that_config_sets_too) {
        expect_accepted("  kubelet: {flags: ['--node-labels=a=b', --max_pods=5], config: {maxPods: 6}}\n",
                        "spec.kubelet.flags[1]: flag-and-config: --max-pods and spec.kubelet.config.maxPods set the same thing");
        expect_accepted("  kubelet: {flags: [--anonymous-auth=false], config: {authentication: {anonymous: {enabled: false}}}}\n", "flag-and-config");
        expect_accepted("  kubelet: {flags: [--v=2, --node-labels, max-pods], config: {maxPods: 6}}\n", NULL);
        _cleanup_(loaded_done) Loaded l = LOAD(GOOD "  kubelet: {flags: [--v=2]}\n", HEAD "spec: {kubelet: {flags: [--max-pods, '5']}}\n",
                                               HEAD "spec: {kubelet: {config: {maxPods: 6}}}\n");
        ASSERT_CONTAINS(l.messages, "b, line 3: spec.kubelet.flags[1]: flag-and-config");
}

/* No message repeats a value that may be a secret. */
static void expect_cluster(const char *key, const char *value, int r, const char *part) {
        static const char *const good[][2] = { { "name", "c" }, { "apiServerEndpoint", "https://e" }, { "certificateAuthority", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==" }, { "cidr", "10.100.0.0/16" } };
        _cleanup_(text_done) Text t = {};
        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                text_add(&t, "    %s: %s\n", good[i][0], streq(good[i][0], key) ? value : good[i][1]);
        _free_ char *text = xasprintf(HEAD "spec:\n  cluster:\n%s", t.data);
        _cleanup_(loaded_done) Loaded l = LOAD(text);
        if (l.r != r || !strstr(l.messages, part))
                FAIL("%s: %s gives %d, \"%s\", and not \"%s\"", key, value, l.r, l.messages, part);
}

TEST(cluster_values_that_cannot_work) {
        static const char *const keys[] = { "name", "apiServerEndpoint", "certificateAuthority", "cidr" },
                                 *const values[] = { "${name}", "'{{ .Name }}'", "<CLUSTER>", "https://$ENDPOINT" };
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
                        _free_ char *said = xasprintf("spec.cluster.%s: is an unfilled placeholder", keys[i]);
                        expect_cluster(keys[i], values[k], -EINVAL, said);
                }
        _cleanup_(loaded_done) Loaded l = LOAD(HEAD "spec:\n  cluster: {name: '${CLUSTER}'}\n");
        ASSERT_TRUE(!strstr(l.messages, "cluster-name"));
        expect_cluster("name", "-a", 0, "a, line 5: spec.cluster.name: cluster-name: is not a valid name of an EKS cluster");
        expect_cluster("name", "a.b", 0, "cluster-name");
        expect_cluster("name", "0_a-B", 0, "");
        expect_cluster("certificateAuthority", "Y2E=", 0, "spec.cluster.certificateAuthority: no-certificate: contains no PEM certificate, but kubelet needs a complete one to start");
        expect_cluster("certificateAuthority", "TFMwdExTMUNSVWRKVGlCRFJWSlVTVVpKUTBGVVJTMHRMUzB0Q2c9PQ==", -EINVAL, "certificateAuthority: is a certificate that is base64-encoded twice");
        expect_cluster("certificateAuthority", "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0tCkFBQUEKLS0tLS1FTkQgRUMgUFJJVkFURSBLRVktLS0tLQo=", -EINVAL, "certificateAuthority: is a private key instead of a certificate");
}

/* A certificate of OpenSSL: whole, without its end, and without the middle of its body. */
TEST(certificate_authorities_that_are_cut) {
        _cleanup_(loaded_done) Loaded whole = LOAD(HEAD "spec:\n  cluster: {name: c, apiServerEndpoint: https://e, cidr: 10.100.0.0/16, certificateAuthority: "
                "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJmekNDQVNXZ0F3SUJBZ0lVTDBiZzZPVlhZSTRxZER6SWFsU3hvL3czMGJFd0NnWUlLb1pJemowRUF3SXcKRlRFVE1CRUdBMVVFQXd3S2EzVmlaWEp1WlhSbGN6QWVGdzB5TmpFeE1qVXlNakV3TlRGYUZ3MHpOakV4TWpJeQpNakV3TlRGYU1CVXhFekFSQmdOVkJBTU1DbXQxWW1WeWJtVjBaWE13V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPClBRTUJCd05DQUFUT0I3K3FpQWVTcEkzZzk0NjdOM2RNa21qd0dLS1RZSTRNWlF5ZzdJV1dwMXVvNzhveTZ3OGEKTVMwbGJ6dFBPdjNtVGE3Y1FkZVRjNkJIYjU1c3RMR1VvMU13VVRBZEJnTlZIUTRFRmdRVU9veVN3dHZQVkh4SApNWTJRejJaZDJhcHdPWUV3SHdZRFZSMGpCQmd3Rm9BVU9veVN3dHZQVkh4SE1ZMlF6MlpkMmFwd09ZRXdEd1lEClZSMFRBUUgvQkFVd0F3RUIvekFLQmdncWhrak9QUVFEQWdOSUFEQkZBaUVBNHh6RHRXbXRCZzBySFkxTHVaUGcKVWJzSU1ZVklvQXR3TDlDZzJ3eC82TGtDSURxdUVNTUlyalUyV3RkVXEyU1BjYmNUbFBDcHZYU01peXZ6aTNZZQpPOGZ2Ci0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K}\n");
        ASSERT_STREQ(whole.messages, "");
        expect_cluster("certificateAuthority", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJmekNDQVNXZ0F3SUJBZ0lVTDBiZzZPVlhZSTRxZER6SWFsU3hvL3czMGJFd0NnWUlLb1pJemowRUF3SXcKRlRFVE1CRUdBMVVFQXd3S2EzVmlaWEp1WlhSbGN6QWVGdzB5TmpFeE1qVXlNakV3TlRGYUZ3MHpOakV4TWpJeQpNakV3TlRGYU1CVXhFekFSQmdOVkJBTU1DbXQxWW1WeWJtVjBaWE13V1Q=",
                       0, "spec.cluster.certificateAuthority: no-certificate: contains a certificate without its END line, but kubelet needs a complete one to start");
        expect_cluster("certificateAuthority", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJmekNDQVNXZ0F3SUJBZ0lVTDBiZzZPVlhZSTRxZER6SWFsU3hvL3czMGJFd0NnWUlLb1pJemowRUF3SXcKRlRFVE1CRUdBMVVFQXd3S2EzVmlaWEp1WlhSbGN6QWVGdzB5TmpFeE1qVXlNakV3TlRGYUZ3MHpOakV4TWpJeQpNakV3TlRGYU1CVXhFekFSQmdOVkJBTU1DbXQxWW1WeWJtVjBaWE13V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K",
                       0, "no-certificate: contains a truncated or damaged certificate");
}

#define ENVIRONMENT(text) "  instance: {environment: {" text "}}\n"
TEST(proxies_and_services) {
        expect_accepted(ENVIRONMENT("default: {HTTP_PROXY: http://p, https_proxy: http://p}"),
                        "a, line 5: spec.instance.environment.default: no-proxy: sets a proxy, but NO_PROXY lacks 169.254.169.254: ");
        expect_accepted(ENVIRONMENT("default: {HTTPS_PROXY: http://p, NO_PROXY: 169.254.0.0/16}"),
                        "a, line 5: spec.instance.environment.default: api-by-proxy: sets a proxy, but NO_PROXY lacks the host of the API server: ");
        expect_accepted(ENVIRONMENT("default: {HTTP_PROXY: http://p, NO_PROXY: '10.0.0.0/8,169.254.0.0/15'}"), NULL);
        expect_accepted(ENVIRONMENT("default: {HTTP_PROXY: http://p, HTTPS_PROXY: http://p, no_proxy: '*'}"), NULL);
        expect_accepted(ENVIRONMENT("default: {NO_PROXY: ' 169.254.169.254 ,E'}, kubelet: {HTTP_PROXY: http://p, HTTPS_PROXY: http://p}"), NULL);
        expect_accepted(ENVIRONMENT("default: {HTTP_PROXY: http://p, HTTPS_PROXY: http://p, NO_PROXY: '169.254.169.254 E'}"),
                        "a, line 5: spec.instance.environment.default: no-proxy: sets a proxy, but NO_PROXY has spaces between its entries: ");
        expect_accepted(ENVIRONMENT("default: {NO_PROXY: 'a b'}"), NULL);
        expect_accepted(ENVIRONMENT("containerd: {HTTP_PROXY: http://p, HTTPS_PROXY: http://p}"), NULL);       /* asks neither */
        expect_accepted(ENVIRONMENT("kubelet.service: {HTTP_PROXY: http://p, NO_PROXY: 169.254.169.25}"), "kubelet.service: no-proxy: ");
        expect_accepted(ENVIRONMENT("kubelet: {HTTP_PROXY: http://p, NO_PROXY: 169.254.169.25}"), "environment.kubelet: no-proxy: ");
        _cleanup_(loaded_done) Loaded six = LOAD(HEAD "spec:\n  cluster: {name: c, apiServerEndpoint: 'https://A.gr7.eks.amazonaws.com:443', certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==, cidr: 'fd00::/108'}\n"
                ENVIRONMENT("default: {HTTP_PROXY: http://p, HTTPS_PROXY: http://p, NO_PROXY: '169.254.169.254,.eks.amazonaws.com'}"));
        ASSERT_CONTAINS(six.messages, "lacks fd00:ec2::254: ");
        expect_accepted(ENVIRONMENT("kublet: {A: b}"), "environment.kublet: unknown-service: is not a service that nodestrap knows; did you mean kubelet?");
        expect_accepted(ENVIRONMENT("container.service: {A: b}"), "did you mean containerd?");
        expect_accepted(ENVIRONMENT("my-agent: {A: b}, kubelet.service: {A: b}, kube-proxy: {A: b}, crond: {A: b}, nvidia-gridd: {A: b}"), NULL);
}

#define SETTING(text) "  kubelet:\n    config:\n      " text "\n"
/* The message of kubelet 1.37 for each: "failed to unmarshal merged JSON", "invalid configuration", "failed
 * to parse quantity". */
TEST(settings_that_kubelet_refuses) {
        static const struct { const char *text, *said; } bad[] = {
                { "maxPods: twenty", "a, line 7: spec.kubelet.config.maxPods: must be a whole number, without quotes; as it is, kubelet would not start" },
                { "maxPods: -5", "maxPods: must be from 0 to 2147483647" },
                { "maxPods: 1.5", "maxPods: must be a whole number" },
                { "maxPods: 99999999999", "maxPods: must be from 0 to" },
                { "oomScoreAdj: 2000", "oomScoreAdj: must be from -1000 to 1000" },
                { "failSwapOn: 'false'", "failSwapOn: must be true or false, without quotes" },
                { "nodeStatusUpdateFrequency: 10", "nodeStatusUpdateFrequency: must be a duration" },
                { "nodeStatusUpdateFrequency: '10'", "nodeStatusUpdateFrequency: must be a duration" },
                { "nodeStatusUpdateFrequency: 1h5", "nodeStatusUpdateFrequency: must be a duration" },
                { "clusterDNS: 10.0.0.10", "clusterDNS: must be a list of strings" },
                { "enforceNodeAllocatable: [pods, some]", "enforceNodeAllocatable: contains a value that is not one of none, pods" },
                { "kubeReserved: {cpu: 1}", "kubeReserved[cpu]: must be a string" },
                { "kubeReserved: {cpu: '1', gpu: '1'}", "kubeReserved[gpu]: is not one of the resources" },
                { "systemReserved: {memory: 1GB}", "systemReserved[memory]: must be a quantity" },
                { "evictionHard: {memory.available: 5p}", "evictionHard[memory.available]: must be a quantity or a percentage" },
                { "evictionHard: {nodefs.avail: 5%}", "evictionHard[nodefs.avail]: is not an eviction signal" },
                { "featureGates: {A: 'true'}", "featureGates[A]: must be true or false" },
                { "registerWithTaints: a=b:NoSchedule", "registerWithTaints: must be a list" },
                { "registerWithTaints: [a=b:NoSchedule]", "registerWithTaints: must be a list of maps" },
                { "authentication: yes", "authentication: must be a map" },
                { "topologyManagerPolicy: best", "topologyManagerPolicy: is not one of none, best-effort, restricted, single-numa-node" },
                { "memoryThrottlingFactor: '0.9'", "memoryThrottlingFactor: must be a number" },
                { "providerID: 5", "providerID: must be a string" },
                { "containerLogMaxSize: 50MB", "containerLogMaxSize: must be a quantity without a fraction, in quotes, such as \"50Mi\"" }, { "containerLogMaxSize: 50", "containerLogMaxSize: must be a quantity without a fraction" },
                { "containerLogMaxFiles: 1", "containerLogMaxFiles: must be from 2 to 2147483647" },
                { "maxParallelImagePulls: 0", "maxParallelImagePulls: must be from 1 to" },
                { "cpuCFSQuotaPeriod: 1m0.5s", "cpuCFSQuotaPeriod: must be at least 1ms and at most 1s" }, { "cpuCFSQuotaPeriod: '0'", "cpuCFSQuotaPeriod: must be at least 1ms" },
                { "cpuCFSQuotaPeriod: -10ms", "cpuCFSQuotaPeriod: must be at least 1ms" },
                { "memoryThrottlingFactor: 0", "memoryThrottlingFactor: must be above 0 and at most 1" }, { "memoryThrottlingFactor: 1.1", "memoryThrottlingFactor: must be above 0 and at most 1" },
                { "tlsMinVersion: '1.2'", "tlsMinVersion: is not one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13" },
                { "{imageGCHighThresholdPercent: 70, imageGCLowThresholdPercent: 80}", "imageGCLowThresholdPercent: imageGCLowThresholdPercent must be below imageGCHighThresholdPercent (default: 80" },
                { "imageGCHighThresholdPercent: 80", "spec.kubelet.config.imageGCHighThresholdPercent: imageGCLow" },
                { "{serializeImagePulls: true, maxParallelImagePulls: 5}", "a, line 7: spec.kubelet.config.maxParallelImagePulls: must be 1 if serializeImagePulls is true; as it is, kubelet would" },
                { "{shutdownGracePeriod: 59s, shutdownGracePeriodCriticalPods: 1m}", "shutdownGracePeriodCriticalPods: must not be longer" },
                { "enforceNodeAllocatable: [pods, none]", "enforceNodeAllocatable: must not list other values" }, { "cgroupsPerQOS: false", "cgroupsPerQOS: must be true unless" },
                { "logging: {format: xml}", "logging.format: is not one of text, json" }, { "authorization: {mode: RBAC}", "authorization.mode: is not one of" },
                { "kind: KubeletConfig", "spec.kubelet.config.kind: is not one of KubeletConfiguration" }, { "apiVersion: kubelet.config.k8s.io/v1", "apiVersion: is not one of kubelet.config.k8s.io/v1beta1" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _free_ char *more = xasprintf(SETTING("%s"), bad[i].text);
                expect_error(more, bad[i].said);
        }
        expect_accepted(SETTING("{containerLogMaxSize: 50Mi, containerLogMaxFiles: 2, containerLogMonitorInterval: 3s, cpuCFSQuotaPeriod: 5ms, memoryThrottlingFactor: 1, tlsMinVersion: VersionTLS13}"), NULL);
        expect_accepted(SETTING("{imageGCHighThresholdPercent: 82, maxParallelImagePulls: 5, serializeImagePulls: false, shutdownGracePeriod: 1m, shutdownGracePeriodCriticalPods: 60s,\n"
                                "       cgroupsPerQOS: false, enforceNodeAllocatable: [none], podLogsDir: /var/log/pods.d, logging: {format: json}, authorization: {mode: Webhook}}"), NULL);
        expect_accepted("  kubelet: {flags: [--image-gc-high-threshold=90], config: {imageGCLowThresholdPercent: 86}}\n", "deprecated");
        expect_accepted(SETTING("memoryManagerPolicy: Static"), "memoryManagerPolicy: kubelet-setting: is Static without reservedMemory");
        expect_accepted(SETTING("{maxPods: 20.0, nodeStatusUpdateFrequency: 1h1.5m, kubeReserved: {cpu: '0.5', memory: ~}, clusterDNS: [10.100.0.10], podPidsLimit: 9223372036854775807,\n"
                                "       evictionHard: {memory.available: 10%, nodefs.available: 1.5Gi}, shutdownGracePeriod: '0', featureGates: {CPUManagerPolicyBetaOptions: off}, maxOpenFiles: ~, hairpinMode: ''}"), NULL);
        expect_error(SETTING("registerWithTaints: [{key: a, effect: NoExecute}, {key: b, effect: NoSchedul}]"),
                     "a, line 7: spec.kubelet.config.registerWithTaints[1].effect: is not one of NoSchedule, PreferNoSchedule, NoExecute; as it is, kubelet would not start");
        expect_accepted(SETTING("registerWithTaints: [{key: a}]"), "registerWithTaints[0]: kubelet-setting: lacks an effect, and the API server refuses");
        expect_accepted("  kubelet: {flags: ['--register-with-taints=a:NoSchedule'], config: {registerWithTaints: [{key: b}]}}\n", "flag-and-config");
        expect_accepted(SETTING("{evictionSoft: {memory.available: 5%, pid.available: 5%}, evictionSoftGracePeriod: {memory.available: 1m}}"),
                        "spec.kubelet.config.evictionSoft[pid.available]: kubelet-setting: has no evictionSoftGracePeriod");
        expect_error(SETTING("reservedSystemCPUs: 0-a"), "a, line 7: spec.kubelet.config.reservedSystemCPUs: must be a list of CPUs");
        expect_accepted(SETTING("{tlsCurvePreferences: [29], reservedSystemCPUs: '0-3,8', registerWithTaints: [{key: a, effect: NoSchedule}], evictionSoft: {pid.available: 5%}, evictionSoftGracePeriod: {pid.available: 1m}}"), NULL);
        /* valid to nodeadm */
        expect_accepted(SETTING("maxPods: '58'"), "spec.kubelet.config.maxPods: kubelet-setting: is a number in quotes");
        expect_accepted(SETTING("maxpods: 58"), "a, line 7: spec.kubelet.config.maxpods: kubelet-setting: is not a key of KubeletConfiguration in Kubernetes 1.28 to 1.37; did you mean maxPods?");
        expect_accepted(SETTING("{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration}"), NULL);
}

TEST(flags_of_kubelet) {
        expect_accepted("  kubelet: {flags: ['--v 4 --register_with_taints=a=b:NoSchedule']}\n", "a, line 5: spec.kubelet.flags[0]: deprecated-flag: kubelet deprecates --register-with-taints; set spec.kubelet.config.registerWithTaints instead");
        expect_accepted("  kubelet: {flags: [--maximum-dead-containers=1]}\n", "kubelet deprecates --maximum-dead-containers\n");
        expect_accepted("  kubelet: {flags: [--node-lables=a=b]}\n", "\"node-lables\" is not a flag of kubelet 1.28 to 1.37: kubelet exits on an unknown flag, and plan --kubelet-version refuses it; did you mean --node-labels?");
        expect_accepted("  kubelet: {flags: [--container-runtime=remote]}\n", "spec.kubelet.flags[0]: kubelet-flag: kubelet 1.27 or newer exits: it does not know --container-runtime\n");
        expect_accepted("  kubelet: {flags: [--hostname-override=x]}\n", "--hostname-override replaces a flag of nodestrap: the name of the node");
        expect_accepted("  kubelet: {flags: [\"--root-dir='/x --nope'\", -v=2, '--image-credential-provider-extra']}\n", "\"image-credential-provider-extra\"");
        expect_accepted("  kubelet: {flags: [\"--root-dir='/x --nope'\", -v=2, -v2, --cert-dir, /x]}\n", NULL);
}

/* Without a version: an error if no kubelet of the table accepts the gate. */
TEST(feature_gates_of_kubelet) {
        static const struct { const char *text, *said; } told[] = {
                { "config: {featureGates: {DynamicResourceAlocation: true}}",
                  "a, line 6: spec.kubelet.config.featureGates.DynamicResourceAlocation: kubelet-setting: \"DynamicResourceAlocation\" is not a feature gate of kubelet 1.28 to 1.37: "
                  "kubelet exits on an unknown gate; did you mean DynamicResourceAllocation?\n" },
                { "config:\n      featureGates:\n        NodeSwap: true\n        SidecarContainers: false",
                  "a, line 9: spec.kubelet.config.featureGates.SidecarContainers: kubelet-setting: kubelet 1.33 or newer exits with the feature gate SidecarContainers=false: it is locked to true\n" },
                { "config: {featureGates: {DisableKubeletCloudCredentialProviders: true}}", "kubelet 1.33 or newer exits with the feature gate DisableKubeletCloudCredentialProviders, which kubelet 1.33 removed\n" },
                { "flags: [--feature-gates, 'NodeSwap=true,NodeSwop=true']", "a, line 6: spec.kubelet.flags[1]: kubelet-flag: \"NodeSwop\" is not a feature gate" },
                { "config: {featureGates: {DRAListTypeAttributes: true, NodeSwap: true}}", NULL },      /* a newer one */
                { "flags: ['--feature-gates=NodeSwap=1, MemoryQoS = F,']", "a, line 6: spec.kubelet.flags[0]: deprecated-flag: kubelet deprecates --feature-gates" },
        }, refused[] = {
                { "config: {featureGates: {APISelfSubjectReview: false}}",
                  "a, line 6: spec.kubelet.config.featureGates.APISelfSubjectReview: every kubelet exits with the feature gate APISelfSubjectReview=false: it is locked to true; remove it\n" },
                { "flags: [--feature-gates=APISelfSubjectReview=false]", "spec.kubelet.flags[0]: every kubelet exits with" },
                { "flags: [--feature-gates=NodeSwap]", "flags[0]: kubelet would exit: --feature-gates must set feature gates to true or false, such as A=true,B=false\n" },
                { "flags: ['--feature-gates=NodeSwap=true,MemoryQoS=on']", "--feature-gates must set feature gates" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
                _free_ char *more = xasprintf("  kubelet:\n    %s\n", told[i].text);
                expect_accepted(more, told[i].said);
        }
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                _free_ char *more = xasprintf("  kubelet:\n    %s\n", refused[i].text);
                expect_error(more, refused[i].said);
        }
}

/* As kubelet reads flags by pflag, and labels by cmd/kubelet/app/options:ValidateKubeletFlags. */
TEST(flags_at_which_kubelet_exits) {
        static const struct { const char *flags, *said; bool taken; } bad[] = {
                { "--v=high", "a, line 5: spec.kubelet.flags[0]: kubelet would exit: --v must be a whole number\n" },
                { "--max-pods=twenty", "--max-pods must be a whole number" },
                { "--max-pods=", "--max-pods must be a whole number" },
                { "--max-pods", "--max-pods has no value" },
                { "--max-pods, --v=3", "flags[0]: kubelet would exit: --max-pods has no value" },
                { "--cgroup-root, --v=3", "flags[0]: kubelet-flag: kubelet would exit: --cgroup-root has no value", true },
                { "--v=5x", "kubelet-flag: kubelet would exit: --v must be a whole number", true },
                { "--v=0x4", "kubelet-flag: kubelet would exit: --v must be a whole number", true },
                { "'--node-labels=${labels}'", "flags[0]: contains an unfilled placeholder: render the user data" },
                { "'--register-with-taints={{ .Taints }}'", "flags[0]: contains an unfilled placeholder" },
                { "-node-labels=a=b", "a, line 5: spec.kubelet.flags[0]: begins with one dash: kubelet reads each letter as a flag, knows only v and h, and exits; begin the flag with --; did you mean --node-labels?\n" },
                { "--v=3, -max_pods, '5'", "flags[1]: begins with one dash" }, { "-vmodule=a=2", "did you mean --vmodule?" },
                { "-volume-plugin-dir=/x", "did you mean --volume-plugin-dir?" },
                { "--v=3, --max_pods, '-5'", "flags[1]: kubelet-flag: kubelet would exit: --max-pods must be from 0 to 2147483647", true },
                { "--register-node=maybe", "--register-node must be true or false" },
                { "--register-node, 'false'", "flags[1]: is neither a flag" },
                { "--cpu-manager-policy=stattic", "--cpu-manager-policy is not one of none", true },
                { "--sync-frequency=10", "--sync-frequency must be a duration" },
                { "v=3", "is neither a flag, which begins with --, nor the value of one, so kubelet would exit; remove it; did you mean --v?" },
                { "--node-labels=a=b, word", "flags[1]: is neither a flag, which begins with --, nor the value of one, so kubelet would exit; remove it\n" },
                { "'--node-labels=a=b,node-role.kubernetes.io/gpu=true'", "--node-labels names a label of kubernetes.io or k8s.io that a node must not set" },
                { "--node-labels=kubernetes.io/x=", "names a label" }, { "--node-labels=x.k8s.io/x", "names a label" },
                { "'--node-labels=a=b c'", "--node-labels contains an invalid label" }, { "--node-labels=a/b/c=d", "contains an invalid label" },
                { "--node-labels=a=-b", "contains an invalid label" }, { "--node-labels==b", "contains an invalid label" }, { "--node-labels", "has no value" },
                { "'--register-with-taints=a=b:NoSchedule,c:NoSchedul'", "--register-with-taints contains a taint without a valid effect" },
                { "--node-labels=a=b - --v=3", "flags[0]: kubelet-flag: contains \" - -\": YAML joined two list items into one", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _free_ char *more = xasprintf("  kubelet: {flags: [%s]}\n", bad[i].flags);
                if (bad[i].taken)
                        expect_accepted(more, bad[i].said);
                else
                        expect_error(more, bad[i].said);
        }
        expect_accepted("  kubelet:\n    flags:\n    - --node-labels=a=b\n     - --v=3\n", "a, line 7: spec.kubelet.flags[0]: kubelet-flag: contains");
        expect_accepted("  kubelet: {flags: [--node-labels=gpu, '--node-labels=a=,b=c, kubernetes.io/os=linux,node.kubernetes.io/x=y,x.node.kubernetes.io/y,topology.k8s.aws/x=1',\n"
                        "    --v, '4', -v2, -v=2, -v, '2', '--node-labels=a = b, c', --vmodule=a=2, --root-dir, /x, '--node-labels a=b', --cert-dir, -1]}\n", NULL);
        _cleanup_(loaded_done) Loaded l = load_with("  kubelet: {flags: [--register-node, --max-pods=0x10, --oom-score-adj, '-999', '--register-with-taints=a:NoSchedule,b=c:NoExecute,d-', --sync-frequency=1m]}\n");
        ASSERT_TRUE(!strstr(l.messages, "kubelet exits"));
}

TEST(messages_do_not_repeat_values) {
        static const char *const places[] = {
                "  cluster: {name: \"hunter2\\n\", apiServerEndpoint: \"hunter2\", certificateAuthority: \"hunter2!\", cidr: hunter2, id: \"hunter2\\n\"}\n",
                "  instance: {environment: {default: {A: \"hunter2\\n\", B: [hunter2]}}}\n", "  kubelet: {flags: [\"--x=hunter2\\n\", {a: hunter2}]}\n",
                "  containerd: {config: \"a = hunter2\"}\n", "  instance: {sysctl: {a.b: \"hunter2\\n\"}, localStorage: {mountPath: hunter2}}\n",
                "  accelerator: {nvidia: {mig: hunter2, fabric: {timeout: hunter2}, imex: {nodes: ['hunter2 x']}}}\n",
        };
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _free_ char *text = xasprintf(HEAD "spec:\n%s", places[i]);
                _cleanup_(loaded_done) Loaded l = LOAD(GOOD, text);
                ASSERT_ERROR(l.r, EINVAL);
                if (strstr(l.messages, "hunter2"))
                        FAIL("%s", l.messages);
        }
}

TEST(a_document_survives_the_cache) {
        char dir[] = "/tmp/test-config.XXXXXX";
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(json_decrefp) json_t *spec_again = NULL, *status = json_pack("{s:s}", "kubeletVersion", "v1.33.0"), *status_again = NULL;
        _cleanup_(config_freep) Config *again = NULL;
        Diag diag = {};
        _cleanup_(loaded_done) Loaded l = load_with(
                "  kubelet: {config: {a: 1.5, b: '1.5', c: 1e300, d: true, h: 1.0, e: 'true', f: [null, '~', {g: ''}]}, flags: ['5', '--x', 'null']}\n"
                "  instance: {environment: {default: {A: 'no', B: '0123', C: ''}}}\n  containerd: {config: 'a = 1.0'}\n"
                "  featureGates: {InstanceIdNodeName: true, OSManagedNoManageENIs: true}\n  accelerator: {nvidia: {mode: off, imex: {channels: 5}}}\n");

        ASSERT_EQ(l.r, 0);
        ASSERT_TRUE(mkdtemp(dir) != NULL);
        ASSERT_OK(root_new(dir, &root));
        ASSERT_ERROR(config_cache_read(root, "/run/c.json", &spec_again, &status_again, &diag), ENOENT);
        ASSERT_OK(config_cache_write(root, "/run/c.json", l.config, status, &diag));
        ASSERT_OK(config_cache_read(root, "/run/c.json", &spec_again, &status_again, &diag));
        ASSERT_TRUE(config_cache_matches(spec(&l), spec_again));
        ASSERT_TRUE(json_equal(json_object_get(spec_again, "featureGates"), json_object_get(spec(&l), "featureGates")));
        ASSERT_TRUE(json_equal(status, status_again));
        _cleanup_(json_decrefp) json_t *document = json_pack("{s:s, s:s, s:O}", "apiVersion", CONFIG_API_VERSION, "kind", CONFIG_KIND, "spec", spec_again);
        ASSERT_OK(config_from_json(document, "cache", &again, &diag));
        ASSERT_TRUE(config_cache_matches(json_object_get(again->document, "spec"), spec(&l)));
        ASSERT_EQ(again->nvidia.imex_channels, 5);
        ASSERT_EQ(diag_count(&diag, false), 0);
        diag_done(&diag);
        ASSERT_OK(root_replace(root, "/run/c.json", "{\"spec\":", 8, 0600));
        json_t *none = NULL;
        ASSERT_ERROR(config_cache_read(root, "/run/c.json", &none, &none, &diag), EBADMSG);
        ASSERT_EQ(diag_count(&diag, true), 1);
        diag_done(&diag);
        ASSERT_OK(root_remove(root, "/run/c.json"));
        _free_ char *run = xasprintf("%s/run", dir);
        rmdir(run);
        rmdir(dir);
}

TEST(expressions_are_checked_beforehand) {
        static const struct { const char *text; bool good; } cases[] = {
                { "((default_enis - 1) * (ips_per_eni - 1)) + 2", true }, { "vcpus > 100 ? 250 : max_pods", true }, { "max_pods / (vcpus - 2)", true },
                { "max_pods +", false }, { "pods", false }, { "0", false }, { "max_pods / 0", false }, { "1.5", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *more = xasprintf("  kubelet: {maxPodsExpression: \"%s\"}\n", cases[i].text);
                _cleanup_(loaded_done) Loaded l = load_with(more);
                ASSERT_TRUE(l.config != NULL);
                ASSERT_OK(config_check_expression(l.config, &l.diag));
                if ((l.diag.n == 0) != cases[i].good)
                        FAIL("%s: %s", cases[i].text, l.diag.n > 0 ? l.diag.items[0].text : "nothing");
                if (l.diag.n > 0) {
                        ASSERT_STREQ(l.diag.items[0].path, "spec.kubelet.maxPodsExpression");
                        ASSERT_STREQ(l.diag.items[0].code, "max-pods-expression");
                }
        }
}

TEST(string_tables) {
        ASSERT_EQ(storage_strategy_from_string("raid10"), STORAGE_RAID10);
        ASSERT_ERROR(storage_strategy_from_string("raid1"), EINVAL);
        ASSERT_ERROR(storage_strategy_from_string(""), EINVAL);
        ASSERT_STREQ(memory_mode_to_string(MEMORY_DRIVER), "driver");
        ASSERT_EQ(failure_policy_from_string("join-tainted"), FAILURE_JOIN_TAINTED);
        ASSERT_EQ(failure_policy_from_string("reboot"), FAILURE_REBOOT);
        ASSERT_EQ(failure_policy_from_string("poweroff"), FAILURE_POWER_OFF);
}

TEST_MAIN
