/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for devices: their order, contradictions, and the same plan whatever a boot finds. */
#include "sample.h"
#include "host/tables.h"

#define FM   "nvidia-fabricmanager.service"
#define IMEX "nvidia-imex.service"
#define PERSISTENCED "nvidia-persistenced.service"
#define SYSTEM "await-unit:sysinit.target"
#define CDI  "generate-cdi:/var/run/cdi/nvidia.yaml"

/* ---- a machine as the table of types has it ---- */

typedef struct Box { Sample s; Host *host; } Box;

static void box_done(Box *b) {
        host_free(b->host);
        b->s.host = (Host){};
        sample_done(&b->s);
}

static void box_model(Box *b, const char *type) {
        _cleanup_(root_freep) Root *root = NULL;
        HostOptions options = { .instance_type = type, .kubelet_version = "1.34.2", .containerd_version = "2.1.5" };
        host_free(b->host);
        ASSERT_OK(root_new("/", &root));
        ASSERT_OK(host_detect(root, &b->s.config, &options, &b->host, &b->s.diag));
        b->s.host = *b->host;
}

static Box box_new(const char *type) {
        Box b = { .s = sample_new() };
        b.s.config.nvidia.imex_channels = 2048;
        b.s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
        box_model(&b, type);
        return b;
}
#define BOX(name, type) _cleanup_(box_done) Box name = box_new(type)

static size_t at(const Box *b, const char *id) {
        for (size_t i = 0; i < b->s.plan->n; i++)
                if (streq(b->s.plan->actions[i].id, id))
                        return i;
        FAIL("no action %s for a %s", id, b->s.host.instance.type);
}

static const Action *action(const Box *b, const char *id) {
        return &b->s.plan->actions[at(b, id)];
}

static bool has(const Box *b, const char *id) {
        return plan_find(b->s.plan, id) != NULL;
}

/* Does one action wait for the other, directly or not? Their places in the list do not matter. */
static bool waits(const Box *b, const char *id, const char *before) {
        const Action *a = action(b, id);
        for (char *const *list = a->after, *const *next = a->after_any; list; list = next, next = NULL)
                for (; *list; list++)
                        if (streq(*list, before) || waits(b, *list, before))
                                return true;
        return false;
}
#define ASSERT_ORDER(b, ...) ({                                                                                         \
        const char *_ids[] = { __VA_ARGS__ };                                                                           \
        for (size_t _i = 1; _i < ARRAY_SIZE(_ids); _i++)                                                                \
                if (!waits(&(b), _ids[_i], _ids[_i - 1]))                                                               \
                        FAIL("%s does not wait for %s", _ids[_i], _ids[_i - 1]);                                        \
})
/* These run in parallel: none of them waits for the first one, and it waits for none of them. */
#define ASSERT_BESIDE(b, id, ...) ({                                                                                    \
        const char *_ids[] = { __VA_ARGS__ };                                                                           \
        for (size_t _i = 0; _i < ARRAY_SIZE(_ids); _i++)                                                                \
                if (waits(&(b), _ids[_i], id) || waits(&(b), id, _ids[_i]))                                             \
                        FAIL("%s and %s do not go on beside each other", _ids[_i], id);                                 \
})

static void refused(Box *b, Cause cause, const char *path, const char *words) {
        Plan *plan = NULL;
        diag_done(&b->s.diag);
        ASSERT_TRUE(plan_make(&b->s.config, &b->s.host, &b->s.options, &plan, &b->s.diag) < 0);
        const Diagnostic *e = diag_first_error(&b->s.diag);
        ASSERT_EQ(e->cause, cause);
        ASSERT_STREQ(e->path ?: "", path);
        ASSERT_CONTAINS(e->text, words);
        diag_done(&b->s.diag);
}

/* One request for all GPUs, or for those of a list; "1g.5gb", "7", … */
typedef struct Wanted { MigRequest request; unsigned gpus[8]; Variable profiles[8]; } Wanted;
static void want(Box *b, Wanted *w, const unsigned *gpus, size_t n_gpus, const char *const *words) {
        *w = (Wanted){};
        for (size_t i = 0; i < n_gpus; i++)
                w->gpus[i] = gpus[i];
        for (; words[2 * w->request.n_profiles]; w->request.n_profiles++)
                w->profiles[w->request.n_profiles] = (Variable){ (char *)words[2 * w->request.n_profiles], (char *)words[2 * w->request.n_profiles + 1] };
        w->request.gpus = w->gpus;
        w->request.n_gpus = n_gpus;
        w->request.profiles = w->profiles;
        b->s.config.nvidia.mig = &w->request;
        b->s.config.nvidia.n_mig = 1;
}
#define WANT_ALL(b, w, ...) want(b, w, NULL, 0, (const char *const[]){ __VA_ARGS__, NULL })

static char *layout(const Box *b, unsigned gpu) {
        const Action *a = action(b, "partition-gpus:mig");
        for (size_t i = 0; i < a->device.n_layouts; i++)
                if (a->device.layouts[i].gpu == gpu)
                        return strv_join(a->device.layouts[i].profiles, " ");
        return xstrdup("left as it is");
}
#define ASSERT_LAYOUT(b, gpu, text) ({ _free_ char *_l = layout(&(b), gpu); ASSERT_STREQ(_l, text); })

/* ---- every type ---- */

static void check_common(const Box *b) {
        const Plan *p = b->s.plan;
        const Action *turn = action(b, "write-file:/run/nodestrap/kubelet-may-start");
        ASSERT_STREQ(p->actions[p->n - 1].id, "start-unit:kubelet.service");
        for (size_t i = 0; i < p->n; i++) {
                const Action *a = &p->actions[i];
                ASSERT_TRUE(a->deadline_usec > 0 && *a->why);
                if (!plan_is_device_step(a))
                        continue;
                ASSERT_TRUE(strv_contains(turn->after, a->id));
                if (a->type != ACTION_CHECK_UNIT)       /* the last check */
                        ASSERT_BESIDE(*b, "start-unit:containerd.service", a->id);
        }
        ASSERT_TRUE(!has(b, "load-module:nvidia_drm") && !has(b, "load-module:nvidia_peermem") && !has(b, "load-module:nvidia-peermem"));
}

/* The last check comes after all other steps, whatever their results, and right before kubelet. */
static void check_watch(const Box *b) {
        const Action *watch = action(b, "check-unit:" FM);
        ASSERT_EQ(strv_length(watch->after), 1);
        ASSERT_STREQ(watch->after[0], "start-unit:" FM);
        ASSERT_TRUE(strv_contains(watch->after_any, "start-unit:containerd.service"));
        for (size_t i = 0; i < b->s.plan->n; i++)
                if (plan_is_device_step(&b->s.plan->actions[i]) && &b->s.plan->actions[i] != watch)
                        ASSERT_TRUE(strv_contains(watch->after_any, b->s.plan->actions[i].id) ||
                                    strv_contains(watch->after, b->s.plan->actions[i].id));
        ASSERT_ORDER(*b, "check-unit:" FM, "write-file:/run/nodestrap/kubelet-may-start", "start-unit:kubelet.service");
}

static void check_nvidia(const Box *b, const InstanceType *t) {
        bool pci = streq(t->nvswitch, "pci"), five = streq(t->nvswitch, "nvl5-host"), rack = streq(t->nvswitch, "nvl5-offhost");
        ASSERT_ORDER(*b, "check-machine:devices", "await-unit:nvidia-driver-resolve.service", "await-unit:nvidia-usr-copy@lib64.service", "await-unit:nvidia-setup.service",
                     "await-unit:nvidia-kmod-load.service", "load-module:nvidia", "load-module:nvidia_uvm", "check-driver:nvidia", "start-unit:" PERSISTENCED,
                     "list-gpus:nvidia-smi", CDI, "write-file:" CDI_TURN, "start-unit:kubelet.service");
        ASSERT_ORDER(*b, "await-unit:nvidia-usr-copy@lib64.service", "await-unit:nvidia-ldcache-update.service", "check-driver:nvidia");
        ASSERT_ORDER(*b, "check-driver:nvidia", "make-nodes:/dev/nvidia*", "list-gpus:nvidia-smi");
        ASSERT_ORDER(*b, "check-driver:nvidia", "await-unit:nvidia-cdi-refresh.service", CDI);
        ASSERT_ORDER(*b, "check-driver:nvidia", "await-unit:set-nvidia-clocks.service", "set-clocks:clocks", "start-unit:kubelet.service");
        ASSERT_ORDER(*b, "start-unit:" PERSISTENCED, "set-clocks:clocks");
        ASSERT_BESIDE(*b, "await-unit:nvidia-ldcache-update.service", "load-module:nvidia");
        ASSERT_BESIDE(*b, CDI, "set-clocks:clocks");
        ASSERT_EQ(action(b, "list-gpus:nvidia-smi")->device.count, t->gpus ?: 1);
        ASSERT_EQ(has(b, "start-unit:" FM), pci || five);
        ASSERT_EQ(has(b, "check-unit:" FM), pci || five);
        ASSERT_EQ(has(b, "write-file:" FABRIC_TURN), pci || five);
        ASSERT_EQ(has(b, "mask-unit:" FM), !pci && !five);
        ASSERT_EQ(has(b, "await-fabric:fabric"), five || rack || (pci && !startswith(t->name, "p4d")));
        ASSERT_EQ(has(b, "load-module:ib_umad"), five);
        ASSERT_EQ(has(b, "mask-unit:" IMEX), rack);
        if (has(b, "await-fabric:fabric"))
                ASSERT_BESIDE(*b, "await-fabric:fabric", CDI, "set-clocks:clocks", "await-unit:nvidia-cdi-refresh.service");
        if (!pci && !five) {
                ASSERT_ORDER(*b, "await-unit:nvidia-setup.service", "await-unit:nvidia-kmod-load.service", "mask-unit:" FM);
                return;
        }
        check_watch(b);
        ASSERT_ORDER(*b, "check-driver:nvidia", "check-versions:nvidia", "write-file:" FABRIC_TURN, "start-unit:" FM, CDI);
        ASSERT_ORDER(*b, "unmask-unit:" FM, "write-file:" FABRIC_TURN);
        ASSERT_BESIDE(*b, "start-unit:" FM, "start-unit:" PERSISTENCED, "list-gpus:nvidia-smi", "set-clocks:clocks");
        ASSERT_BESIDE(*b, "unmask-unit:" FM, "await-unit:nvidia-setup.service");
        /* Units that nodestrap starts wait for sysinit.target. Units of the image do not, but all of their
         * time begins there. */
        ASSERT_ORDER(*b, SYSTEM, "start-unit:" FM);
        for (size_t i = 0; i < b->s.plan->n; i++) {
                const Action *a = &b->s.plan->actions[i];
                bool timed = a->type == ACTION_AWAIT_UNIT && !streq(a->id, SYSTEM);
                ASSERT_TRUE(timed ? a->timed_from && streq(a->timed_from, SYSTEM) : !a->timed_from);
        }
        ASSERT_BESIDE(*b, SYSTEM, "await-unit:nvidia-setup.service", "load-module:nvidia");
        if (has(b, "await-fabric:fabric")) {
                ASSERT_ORDER(*b, "start-unit:" FM, "await-fabric:fabric", "start-unit:kubelet.service");
                ASSERT_ORDER(*b, "start-unit:" PERSISTENCED, "await-fabric:fabric");
        }
        if (!five)
                return;
        ASSERT_ORDER(*b, "load-module:mlx5_core", "load-module:mlx5_ib", "load-module:ib_umad", "await-devices:/dev/infiniband/umad*", "write-file:" FABRIC_TURN);
        ASSERT_BESIDE(*b, "load-module:nvidia", "load-module:mlx5_core", "await-devices:/dev/infiniband/umad*");
}

TEST(every_type_has_its_steps_in_order) {
        size_t n = n_instance_types, nvidia = 0;
        const InstanceType *all = instance_types;
        BOX(b, "m5.large");
        for (size_t i = 0; i < n; i++) {
                box_model(&b, all[i].name);
                sample_plan(&b.s);
                check_common(&b);
                ASSERT_TRUE(has(&b, "check-machine:devices"));
                ASSERT_EQ(has(&b, "check-efa:efa"), host_efa(&b.s.host) > 0);
                ASSERT_EQ(has(&b, "load-module:nvidia"), *all[i].gpu_devices != 0);
                nvidia += *all[i].gpu_devices != 0;
                if (*all[i].gpu_devices)
                        check_nvidia(&b, &all[i]);
        }
        ASSERT_TRUE(nvidia > 60);
}

TEST(an_ordinary_type_has_no_device_steps) {
        BOX(b, "m5.large");
        sample_plan(&b.s);
        check_common(&b);
        for (size_t i = 0; i < b.s.plan->n; i++)
                ASSERT_TRUE(!plan_is_device_step(&b.s.plan->actions[i]));
}

/* ---- one id ---- */

TEST(the_plan_id_does_not_depend_on_what_a_boot_finds) {
        BOX(b, "p6-b200.48xlarge");
        _free_ char *id = xstrdup(sample_plan(&b.s)->id);
        Shortfall missing[] = { { CAUSE_GPU_CLASS, (char *)"no ConnectX function can be read" }, { CAUSE_GPU_MISSING, (char *)"GPU at 0000:53:00.0 is missing" },
                                { CAUSE_EFA, (char *)"7 of 8 EFA devices" } };
        PagePool pools[] = { { 1ULL << 30, 0, 3 }, { 2ULL << 20, 0, 77 } };
        b.s.host.modelled = false;              /* so that the plan has addresses */
        b.s.host.shortfalls = missing;
        b.s.host.n_shortfalls = ARRAY_SIZE(missing);
        b.s.host.gpus.count = 7;
        b.s.host.gpus.doubt = missing[0].text;
        b.s.host.driver_version = (char *)"580.95.05";
        b.s.host.ptrace_scope = 1;
        b.s.host.pools = pools;
        b.s.host.n_pools = ARRAY_SIZE(pools);
        ASSERT_STREQ(sample_plan(&b.s)->id, id);
        const Action *check = action(&b, "check-machine:devices");
        ASSERT_EQ(check->census.n, 3);
        ASSERT_EQ(check->census.missing[0].cause, CAUSE_GPU_CLASS);
        ASSERT_STREQ(check->census.missing[1].text, missing[1].text);
        ASSERT_EQ(strv_length(action(&b, "check-driver:nvidia")->device.seen), 8);
        ASSERT_TRUE(sample_warned(&b.s, "missing-device") && sample_warned(&b.s, "ptrace-scope"));

        plan_filter(b.s.plan, (bool[_PHASE_MAX]){ [PHASE_CONFIG] = true }, NULL);
        ASSERT_STREQ(b.s.plan->id, id);
        b.s.config.nvidia.fabric_timeout_usec += USEC_PER_SEC;
        ASSERT_TRUE(!streq(sample_plan(&b.s)->id, id));
        b.s.host.shortfalls = NULL;
        b.s.host.n_shortfalls = 0;
        b.s.host.gpus.doubt = NULL;
}

TEST(unused_devices_may_be_missing) {
        BOX(b, "p5.48xlarge");
        Shortfall missing[] = { { CAUSE_GPU_MISSING, (char *)"a GPU" }, { CAUSE_EFA, (char *)"an EFA" }, { CAUSE_DISKS, (char *)"a disk" }, { CAUSE_NUMA, (char *)"a node" } };
        b.s.host.shortfalls = missing;
        b.s.host.n_shortfalls = ARRAY_SIZE(missing);
        b.s.config.nvidia.mode = NVIDIA_OFF;
        b.s.config.instance.efa = EFA_OFF;
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "check-machine:devices")->census.n, 0);
        ASSERT_TRUE(sample_warned(&b.s, "unused-device-missing"));
        PageRequest pages[] = { { .size = 2 << 20, .count = 1, .numa_node = 0 } };
        b.s.config.instance.hugepages = (HugePages){ HUGEPAGES_EXPLICIT, pages, 1, POLICY_FAIL };
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "check-machine:devices")->census.n, 1);
        ASSERT_EQ(action(&b, "check-machine:devices")->census.missing[0].cause, CAUSE_NUMA);
        b.s.config.instance.storage.strategy = STORAGE_RAID0;
        b.s.config.instance.storage.mount_path = (char *)"/mnt/k8s-disks";
        b.s.config.nvidia.mode = NVIDIA_AUTO;
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "check-machine:devices")->census.n, 3);
        b.s.host.shortfalls = NULL;
        b.s.host.n_shortfalls = 0;
        b.s.config.instance.hugepages = (HugePages){};
}

/* A pod may bring the driver, and that needs kubelet. */
TEST(an_image_without_a_driver_warns_unless_health_is_required) {
        BOX(b, "p5.48xlarge");
        b.s.host.gpus.driver = false;
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "no-driver"));
        ASSERT_TRUE(!has(&b, "load-module:nvidia") && !has(&b, "start-unit:" FM) && !has(&b, "await-fabric:fabric"));
        ASSERT_EQ(action(&b, "write-file:" FABRIC_TURN)->phase, PHASE_CONFIG);
        ASSERT_TRUE(has(&b, "check-machine:devices") && has(&b, "check-efa:efa"));
        /* an explicit require needs a driver, and the same value as a default does not */
        b.s.config.nvidia.health = HEALTH_REQUIRE;
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "check-driver:nvidia"));
        _cleanup_(json_decrefp) json_t *document =
                json_pack("{s{s{s{ss}}}}", "spec", "accelerator", "nvidia", "health", "require");
        b.s.config.document = document;
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;       /* with hold the plan of a model fails */
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "require-unmet") && !sample_warned(&b.s, "no-driver"));
        ASSERT_TRUE(has(&b, "check-driver:nvidia") && !action(&b, "check-driver:nvidia")->lenient);
        b.s.config.document = NULL;
        b.s.config.failure_policy = FAILURE_HOLD;
}

/* Units of the image, and EFA that the configuration does not ask for, may fail. */
TEST(image_units_and_optional_efa_may_fail) {
        BOX(b, "p5.48xlarge");
        sample_plan(&b.s);
        ASSERT_TRUE(action(&b, "await-unit:nvidia-setup.service")->lenient && !action(&b, "load-module:nvidia")->lenient);
        ASSERT_TRUE(action(&b, "check-efa:efa")->lenient && action(&b, "load-module:efa")->lenient);
        b.s.config.instance.expected_efa = 32;
        sample_plan(&b.s);
        ASSERT_TRUE(!action(&b, "check-efa:efa")->lenient && !action(&b, "load-module:efa")->lenient);
        ASSERT_STREQ(action(&b, "check-efa:efa")->with, "32 devices");
        b.s.config.instance.expected_efa = 0;
        b.s.config.instance.efa = EFA_REQUIRE;
        sample_plan(&b.s);
        ASSERT_STREQ(action(&b, "check-efa:efa")->with, "at least 1 device");
}

/* ---- what the configuration changes ---- */

TEST(the_fabric_gate_follows_the_configuration) {
        BOX(b, "p5.48xlarge");
        sample_plan(&b.s);
        const Action *gate = action(&b, "await-fabric:fabric"), *manager = action(&b, "start-unit:" FM);
        ASSERT_TRUE(!gate->lenient && manager->retry && !*manager->unit.inputs);
        ASSERT_EQ(gate->deadline_usec, 300 * USEC_PER_SEC);
        ASSERT_EQ(manager->deadline_usec, 180 * USEC_PER_SEC);
        ASSERT_EQ(action(&b, "load-module:nvidia")->deadline_usec, 300 * USEC_PER_SEC);
        ASSERT_EQ(action(&b, "load-module:nvidia_uvm")->deadline_usec, 120 * USEC_PER_SEC);
        ASSERT_EQ(gate->device.count, 8);
        ASSERT_EQ(gate->class, GPU_CLASS_NVSWITCH);
        ASSERT_STREQ(action(&b, "check-versions:nvidia")->with, "nv-fabricmanager");
        b.s.config.nvidia.fabric_gate = FABRIC_GATE_WARN;
        sample_plan(&b.s);
        ASSERT_TRUE(action(&b, "await-fabric:fabric")->lenient);
        b.s.config.nvidia.fabric_gate = FABRIC_GATE_OFF;
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "await-fabric:fabric") && has(&b, "start-unit:" FM));

        b.s.config.nvidia.fabric_gate = FABRIC_GATE_REQUIRE;
        b.s.config.nvidia.fabric_manager = FABRIC_MANAGER_OFF;
        refused(&b, CAUSE_FABRIC, "spec.accelerator.nvidia.fabric.gate", "nothing here starts");
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "fabric-gate"));
        b.s.config.failure_policy = FAILURE_HOLD;
        b.s.options.foretell = true;
        sample_plan(&b.s);
        b.s.options.foretell = false;
        ASSERT_TRUE(has(&b, "mask-unit:" FM) && !has(&b, "start-unit:" FM) && !has(&b, "write-file:" FABRIC_TURN) && !has(&b, "check-versions:nvidia"));
        ASSERT_TRUE(sample_warned(&b.s, "fabric-gate"));
        b.s.config.nvidia.fabric_manager = FABRIC_MANAGER_ON;
        sample_plan(&b.s);
        box_model(&b, "p6e-gb200.36xlarge");
        refused(&b, CAUSE_INVALID, "spec.accelerator.nvidia.fabric.manager", "class tray");
}

TEST(mode_off_leaves_the_gpus_to_the_image) {
        BOX(b, "p5.48xlarge");
        b.s.config.nvidia.mode = NVIDIA_OFF;
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "write-file:" FABRIC_TURN)->phase, PHASE_CONFIG);
        ASSERT_TRUE(!has(&b, "load-module:nvidia") && !has(&b, "start-unit:" FM) && has(&b, "check-efa:efa"));
        ASSERT_TRUE(sample_warned(&b.s, "accelerator"));
}

#define ASSERT_DRIVER(b, wanted) ({                                                            \
        _free_ char *_words = strv_join(action(&b, "check-driver:nvidia")->device.parameters, " "); \
        ASSERT_STREQ(_words, wanted); })

TEST(persistenced_is_optional) {
        BOX(b, "p5.48xlarge");
        sample_plan(&b.s);
        const Action *a = action(&b, "start-unit:nvidia-persistenced.service");
        ASSERT_TRUE(a->optional && a->lenient);
        ASSERT_TRUE(!action(&b, "start-unit:" FM)->lenient);
}

TEST(a_driver_that_is_too_old_is_refused) {
        static const struct { const char *type, *version; bool old; } cases[] = {
                { "p6-b200.48xlarge", "565.57.01", true }, { "p6-b200.48xlarge", "570.133.20", false }, { "p6e-gb200.36xlarge", "560.35.03", true },
                { "p5.48xlarge", "525.85.12", false }, { "g5.xlarge", "450.51", false }, { "p6-b200.48xlarge", NULL, false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                BOX(b, cases[i].type);
                char *was = b.s.host.driver_version;
                b.s.host.driver_version = (char *)cases[i].version;
                if (cases[i].old)
                        refused(&b, CAUSE_DRIVER, "", "finds no device");
                b.s.options.foretell = true;
                sample_plan(&b.s);
                ASSERT_EQ(sample_warned(&b.s, "driver-version"), cases[i].old);
                b.s.host.driver_version = was;
        }
}

typedef struct Versions { const char *type, *kubelet, *containerd, *driver, *kernel; } Versions;

static void take_versions(Box *b, const Versions *v) {
        Host *h = b->host;
        const struct { char **slot; const char *value; } given[] = {
                { &h->kubelet_version, v->kubelet }, { &h->containerd_version, v->containerd },
                { &h->driver_version, v->driver }, { &h->kernel, v->kernel },
        };
        for (size_t i = 0; i < ARRAY_SIZE(given); i++)
                if (given[i].value)
                        RENEW(*given[i].slot, xstrdup(given[i].value));
        h->assumed = strv_free(h->assumed);
        b->s.host = *h;
}

/* All sentences of AWS on versions for P6e, DRA and MIG, then those of others. They stand in awsdocs/amazon-eks-user-guide below latest/ug/ml/.
 * P6e is ml-eks-nvidia-ultraserver.adoc at 00e3293. MIG is device-management-nvidia-mig.adoc at 80436be. AMI is ml-eks-optimized-ami.adoc at 07d09a0.
 * DRA is device-management-nvidia-dra-device-plugin.adoc, device-management-nvidia.adoc and, for EFA, device-management-efa.adoc, at 43d79bd.
 * No row can judge the others, which name no version of this host.
 * P6e has GPU operator 25.3.4+, since when the DRA driver comes apart from it. It has DRA driver 25.8.0+ with elastic ComputeDomains.
 * It has EFA plugin 0.5.14+. It has AMI release v20251103, whose driver, 580, is judged.
 * DRA has chart 0.4.1 and device plugin 0.19.0 to 0.19.3 (GDRCopy). It has Bottlerocket 1.63.0, and Karpenter 1.11 for EFA.
 * MIG has Bottlerocket 1.34.0 and 1.63.0. AMI has CUDA 13 of containers. Its kernel and driver on Bottlerocket begin with 1.33 and 1.34. */
TEST(version_requirements_are_checked_by_type) {
#define TRAY "p6e-gb200.36xlarge"
#define GOOD "580.126.20"
        static const struct { Versions v; const char *config, *code, *text; Cause cause; } cases[] = {
                /* P6e: "Kubernetes versions 1.33 and above", and again for the procedure */
                { { TRAY, "1.32.9", NULL, GOOD, NULL }, NULL, "kubelet-too-old", "kubelet 1.32.9 lacks the DRA support that EKS needs on P6e-GB200; install 1.33 or newer", CAUSE_VERSION },
                { { TRAY, "1.33.0", NULL, GOOD, NULL }, NULL, NULL, NULL, CAUSE_NONE },
                { { "p6-b200.48xlarge", "1.32.9", NULL, GOOD, NULL }, NULL, NULL, NULL, CAUSE_NONE },
                { { "p6e-gb300.36xlarge", "1.32.9", NULL, GOOD, NULL }, NULL, "requirement", "lacks the DRA support that ComputeDomains need", CAUSE_NONE },
                { { "p6e-gb300.36xlarge", "1.32.9", NULL, GOOD, NULL }, "imex-off", NULL, NULL, CAUSE_NONE },
                /* P6e: "driver version 580 … enables CDMM"; CDMM excludes MIG:
                 * mig_is_refused_or_ignored_where_it_cannot_work */
                { { TRAY, "1.34.2", NULL, "570.195.03", NULL }, "driver", "driver-version", "driver 570.195.03 does not support memoryMode: driver (CDMM)", CAUSE_DRIVER },
                { { TRAY, "1.34.2", NULL, "580.65.05", NULL }, "driver", "driver-version", "install 580.65.06 or newer", CAUSE_DRIVER },
                { { TRAY, "1.34.2", NULL, GOOD, NULL }, "driver", NULL, NULL, CAUSE_NONE },
                { { TRAY, "1.34.2", NULL, "570.195.03", NULL }, NULL, "requirement", "does not support CDMM: kubelet counts GPU memory", CAUSE_NONE },
                { { TRAY, "1.34.2", NULL, NULL, NULL }, "driver", NULL, NULL, CAUSE_NONE },
                { { "p5.48xlarge", "1.34.2", NULL, "570.195.03", NULL }, "driver", NULL, NULL, CAUSE_NONE },
                /* P6e: "Kernel 6.12", in the table of components */
                { { TRAY, "1.34.2", NULL, GOOD, "6.1.155-176.282.amzn2023.aarch64" }, NULL, "requirement", "Linux 6.1.155-176.282.amzn2023.aarch64 is older than AWS ships", CAUSE_NONE },
                { { TRAY, "1.34.2", NULL, GOOD, "6.12.46-66.121.amzn2023.aarch64" }, NULL, NULL, NULL, CAUSE_NONE },
                /* DRA: "Kubernetes version 1.34 or later", also for EFA, is for devices as claims. A NodeConfig does not ask for those, and the device
                 * plugins take all versions. ComputeDomains follow the guide for P6e. */
                { { TRAY, "1.33.9", NULL, GOOD, NULL }, NULL, NULL, NULL, CAUSE_NONE },
                { { "p5.48xlarge", "1.33.9", NULL, GOOD, NULL }, NULL, NULL, NULL, CAUSE_NONE },
                /* MIG: "The g7 instance type requires NVIDIA driver version 595 or later", and the AMIs have 580 */
                { { "g7.2xlarge", "1.34.2", NULL, GOOD, NULL }, NULL, "driver-version", "does not support this GPU: it finds no device; install 595 or newer", CAUSE_DRIVER },
                { { "g7.2xlarge", "1.34.2", NULL, "595.45.04", NULL }, NULL, NULL, NULL, CAUSE_NONE },
                { { "g7e.2xlarge", "1.34.2", NULL, GOOD, NULL }, NULL, NULL, NULL, CAUSE_NONE },
                { { "g7e.2xlarge", "1.34.2", NULL, "570.195.03", NULL }, NULL, "driver-version", "install 575.51 or newer", CAUSE_DRIVER },
                { { "g7e.2xlarge", "1.34.2", NULL, GOOD, NULL }, "mig", NULL, NULL, CAUSE_NONE },
                /* MIG: "Kubernetes version 1.34 or later" with the DRA driver; a static division does with the device plugin of any version */
                { { "p5.48xlarge", "1.33.9", NULL, GOOD, NULL }, "mig", NULL, NULL, CAUSE_NONE },
                { { "p5.48xlarge", "1.34.0", NULL, GOOD, NULL }, "mig", NULL, NULL, CAUSE_NONE },
                /* MIG: "enabled by default in Kubernetes version 1.36 and later" is the dynamic division, by the DRA driver */
                { { "p5.48xlarge", "1.35.9", NULL, GOOD, NULL }, "mig", NULL, NULL, CAUSE_NONE },
                { { "p5.48xlarge", "1.36.0", "2.1.5", GOOD, NULL }, "mig", NULL, NULL, CAUSE_NONE },
                /* AMI: "kernel 6.12 for Kubernetes versions 1.33 and above", and driver 580 "for all": the
                 * AMI has them, and other types work without */
                { { "p5.48xlarge", "1.33.9", NULL, GOOD, "6.1.155" }, NULL, NULL, NULL, CAUSE_NONE },
                { { "p5.48xlarge", "1.32.9", NULL, "570.195.03", "6.1.155" }, NULL, NULL, NULL, CAUSE_NONE },
                { { "p5.48xlarge", "1.33.0", NULL, "570.195.03", "6.12.46" }, NULL, NULL, NULL, CAUSE_NONE },
                { { "g5g.xlarge", "1.33.0", NULL, "570.195.03", "6.1.155" }, NULL, NULL, NULL, CAUSE_NONE },
                /* kubernetes/kubernetes#133920 */
                { { TRAY, "1.34.0", NULL, GOOD, NULL }, NULL, "requirement", "kubelet 1.34.0 loses the connection to an idle DRA driver", CAUSE_NONE },
                { { TRAY, "1.34.1", NULL, GOOD, NULL }, NULL, "requirement", "install 1.34.2 or newer", CAUSE_NONE },
                { { TRAY, "1.34.1", NULL, GOOD, NULL }, "imex-off", NULL, NULL, CAUSE_NONE },
                { { "p5.48xlarge", "1.34.1", NULL, GOOD, NULL }, NULL, NULL, NULL, CAUSE_NONE },
                /* NVIDIA/aicr#668 and #2439 */
                { { TRAY, "1.34.2", NULL, "580.95.05", NULL }, NULL, "requirement", "is older than NVIDIA recommends for EFA on GB200", CAUSE_NONE },
                { { TRAY, "1.34.2", NULL, "595.91.07", NULL }, NULL, "requirement", "install a driver from branch 580", CAUSE_NONE },
                { { TRAY, "1.34.2", NULL, "595.91.07", NULL }, "efa-off", NULL, NULL, CAUSE_NONE },
                /* the prerequisites of the DRA driver */
                { { TRAY, "1.34.2", NULL, "570.133.20", NULL }, NULL, "requirement", "is too old for ComputeDomains", CAUSE_NONE },
                /* the guide for fabric manager */
                { { "p6-b200.48xlarge", "1.34.2", NULL, GOOD, "5.15.190" }, NULL, "kernel-too-old", "Linux 5.15.190 does not work with the NVSwitches", CAUSE_FABRIC_MANAGER },
                { { "p6-b300.48xlarge", "1.34.2", NULL, "565.57.01", NULL }, NULL, "driver-version", "install 570 or newer", CAUSE_DRIVER },
                { { "p6-b300.48xlarge", "1.34.2", NULL, "565.57.01", "5.15.190" }, "off", NULL, NULL, CAUSE_NONE },
                /* kubernetes/kubernetes#139121 */
                { { "g6.xlarge", "1.38.0", "1.7.29", GOOD, NULL }, NULL, "containerd-too-old", "containerd 1.7.29 cannot tell this kubelet its cgroup driver", CAUSE_UNIT },
                { { "g6.xlarge", "1.36.0", "1.7.29", GOOD, NULL }, NULL, "requirement", "install containerd 2", CAUSE_NONE },
                { { "g6.xlarge", "1.35.9", "1.7.29", GOOD, NULL }, NULL, NULL, NULL, CAUSE_NONE },
        };
        static const char *const codes[] = { "requirement", "kubelet-too-old", "containerd-too-old", "driver-version", "kernel-too-old" };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                BOX(b, cases[i].v.type);
                const char *config = cases[i].config ?: "";
                Wanted wanted;
                take_versions(&b, &cases[i].v);
                if (streq(config, "mig"))
                        WANT_ALL(&b, &wanted, startswith(cases[i].v.type, "g7e") ? "1g.24gb" : "1g.10gb", "2");
                b.s.config.nvidia.memory = streq(config, "driver") ? MEMORY_DRIVER : MEMORY_AUTO;
                b.s.config.nvidia.imex = streq(config, "imex-off") ? IMEX_OFF : IMEX_AUTO;
                b.s.config.nvidia.mode = streq(config, "off") ? NVIDIA_OFF : NVIDIA_AUTO;
                b.s.config.instance.efa = streq(config, "efa-off") ? EFA_OFF : EFA_AUTO;
                if (cases[i].cause != CAUSE_NONE)
                        refused(&b, cases[i].cause, "", cases[i].text);
                b.s.options.foretell = true;
                sample_plan(&b.s);
                const Diagnostic *found = FIND(w, b.s.plan->warnings.items, b.s.plan->warnings.n,
                                               strv_contains((char *const *)(const char *const[]){ codes[0], codes[1], codes[2], codes[3], codes[4], NULL }, w->code) &&
                                                       (!cases[i].text || strstr(w->text, cases[i].text)));
                if (!found != !cases[i].code || (found && !streq(found->code, cases[i].code)))
                        FAIL("case %zu, %s: %s", i, cases[i].v.type, found ? found->text : "no word");
                ASSERT_TRUE(!found || found->cause == cases[i].cause);
                ASSERT_TRUE(!found || plan_warning_fails(found) == (cases[i].cause != CAUSE_NONE));
        }
}

/* NVIDIA documents the first drivers for MIG apart from those for the GPU. */
TEST(mig_has_its_own_driver_requirements) {
        static const struct { Versions v; const char *profile; bool told; } cases[] = {
                { { "p6-b200.48xlarge", NULL, NULL, "570.86.15", NULL }, "1g.23gb", true },
                { { "p6-b200.48xlarge", NULL, NULL, "570.133.20", NULL }, "1g.23gb", false },
                { { "p6-b200.48xlarge", NULL, NULL, "570.86.15", NULL }, NULL, false },
                { { "p6-b300.48xlarge", NULL, NULL, "580.65.06", NULL }, "1g.34gb", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                BOX(b, cases[i].v.type);
                Wanted w;
                take_versions(&b, &cases[i].v);
                if (cases[i].profile)
                        WANT_ALL(&b, &w, cases[i].profile, "7");
                sample_plan(&b.s);
                ASSERT_EQ(sample_warned(&b.s, "requirement"), cases[i].told);
        }
}

/* A machine that boots gets a warning, not an error. A taint does not help against an old kubelet.
 * Assumptions of a model prove nothing. */
TEST(unmet_requirements_are_errors_for_models_only) {
        static const Versions old = { TRAY, "1.32.9", NULL, "560.35.03", NULL };
        BOX(b, old.type);
        take_versions(&b, &old);
        b.s.host.modelled = false;
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "kubelet-too-old") && sample_warned(&b.s, "driver-version"));
        ASSERT_TRUE(!sample_warned(&b.s, "requirement"));
        b.s.host.modelled = true;
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        refused(&b, CAUSE_VERSION, "", "kubelet 1.32.9");       /* no taint helps */
        b.s.options.as_nodeadm = true;
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "kubelet-too-old"));
        b.s.options.as_nodeadm = false;
        strv_add(&b.host->assumed, "programs.kubelet");
        b.s.host = *b.host;
        sample_plan(&b.s);
        ASSERT_TRUE(!sample_warned(&b.s, "kubelet-too-old") && sample_warned(&b.s, "driver-version"));
}

TEST(driver_options_follow_type_and_configuration) {
        BOX(b, "p6e-gb200.36xlarge");
        const char *file = "/etc/modprobe.d/zz-nodestrap-nvidia.conf";
        sample_plan(&b.s);
        ASSERT_CONTAINS(sample_file(&b.s, file)->file.content,
                        "\noptions nvidia NVreg_CoherentGPUMemoryMode=driver NVreg_ImexChannelCount=2048 NVreg_CreateImexChannel0=0 NVreg_GrdmaPciTopoCheckOverride=1\n");
        ASSERT_ORDER(b, "write-file:/etc/modprobe.d/zz-nodestrap-nvidia.conf", "await-unit:nvidia-driver-resolve.service", "load-module:nvidia");
        ASSERT_DRIVER(b, "CoherentGPUMemoryMode=driver? ImexChannelCount=2048? CreateImexChannel0=0? GrdmaPciTopoCheckOverride=1??");
        ASSERT_STREQ(action(&b, "check-driver:nvidia")->why, "check the driver and its options: CoherentGPUMemoryMode=driver, ImexChannelCount=2048, CreateImexChannel0=0, GrdmaPciTopoCheckOverride=1");
        b.s.config.nvidia.memory = MEMORY_NUMA;
        b.s.config.nvidia.imex_channel0 = true;
        sample_plan(&b.s);
        ASSERT_CONTAINS(sample_file(&b.s, file)->file.content, "MemoryMode=numa NVreg_ImexChannelCount=2048 NVreg_CreateImexChannel0=1 NVreg_GrdmaPciTopoCheckOverride=1\n");
        ASSERT_DRIVER(b, "CoherentGPUMemoryMode=numa ImexChannelCount=2048? GrdmaPciTopoCheckOverride=1??");  /* a step makes a missing channel 0 */
        b.s.config.nvidia.imex_channels = 64;
        sample_plan(&b.s);
        ASSERT_DRIVER(b, "CoherentGPUMemoryMode=numa ImexChannelCount=64 GrdmaPciTopoCheckOverride=1??");
        b.s.config.nvidia.imex_channels = 2048;
        ASSERT_ORDER(b, "check-driver:nvidia", "make-channel:/dev/nvidia-caps-imex-channels/channel0", CDI);
        b.s.config.nvidia.memory = MEMORY_AUTO;
        b.s.config.nvidia.imex_channel0 = false;

        box_model(&b, "p5.48xlarge");
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "write-file:/etc/modprobe.d/zz-nodestrap-nvidia.conf") && !action(&b, "check-driver:nvidia")->device.parameters);
        box_model(&b, "g5.xlarge");
        sample_plan(&b.s);
        ASSERT_CONTAINS(sample_file(&b.s, file)->file.content, "\noptions nvidia NVreg_EnableGpuFirmware=0\n");
        ASSERT_TRUE(!action(&b, "check-driver:nvidia")->device.parameters);          /* the open module ignores the option */
}

/* Trays with EFA get the option. on requires it, auto only warns, off is silent. */
TEST(gpu_direct_sets_a_driver_option_on_trays_with_efa) {
        static const struct { const char *type; GpuDirect direct; EfaMode efa; const char *want; } cases[] = {
                { "p6e-gb200.36xlarge", GPU_DIRECT_AUTO, EFA_AUTO,    "=1??" },
                { "p6e-gb200.36xlarge", GPU_DIRECT_ON,   EFA_AUTO,    "=1" },
                { "p6e-gb200.36xlarge", GPU_DIRECT_OFF,  EFA_AUTO,    NULL },
                { "p6e-gb200.36xlarge", GPU_DIRECT_AUTO, EFA_OFF,     NULL },
                { "p6e-gb300.36xlarge", GPU_DIRECT_AUTO, EFA_REQUIRE, "=1??" },
                { "p6e-gb300.36xlarge", GPU_DIRECT_ON,   EFA_REQUIRE, "=1" },
                { "p5.48xlarge",        GPU_DIRECT_ON,   EFA_AUTO,    NULL },
                { "p6-b200.48xlarge",   GPU_DIRECT_AUTO, EFA_AUTO,    NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                BOX(b, cases[i].type);
                b.s.config.nvidia.gpu_direct = cases[i].direct;
                b.s.config.instance.efa = cases[i].efa;
                sample_plan(&b.s);
                char **words = action(&b, "check-driver:nvidia")->device.parameters;
                _free_ char *word = cases[i].want ? xasprintf("GrdmaPciTopoCheckOverride%s", cases[i].want) : NULL, *all = words ? strv_join(words, " ") : xstrdup("");
                ASSERT_EQ(word && strv_contains(words, word), word != NULL);
                ASSERT_EQ(strstr(all, "Grdma") != NULL, word != NULL);
                if (has(&b, "write-file:/etc/modprobe.d/zz-nodestrap-nvidia.conf"))
                        ASSERT_EQ(strstr(sample_file(&b.s, "/etc/modprobe.d/zz-nodestrap-nvidia.conf")->file.content, " NVreg_GrdmaPciTopoCheckOverride=1") != NULL, word != NULL);
        }
        BOX(b, "g6.xlarge");
        b.s.config.nvidia.gpu_direct = GPU_DIRECT_ON;
        refused(&b, CAUSE_EFA, "spec.accelerator.nvidia.gpuDirect", "expects 1 EFA device, but g6.xlarge has none: the boot fails");
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "too-many-efa"));
        b.s.host.gpus.driver = false;           /* a pod may bring the driver, but not before kubelet */
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "require-unmet") && has(&b, "check-driver:nvidia"));
}

TEST(imex_runs_on_the_host_or_is_masked) {
        BOX(b, "p6e-gb200.36xlarge");
        char **nodes = LIST("10.0.0.1", "10.0.0.2");
        b.s.config.nvidia.imex = IMEX_HOST;
        b.s.config.nvidia.imex_nodes = nodes;
        sample_plan(&b.s);
        ASSERT_STREQ(sample_file(&b.s, "/etc/nvidia-imex/nodes_config.cfg")->file.content, "10.0.0.1\n10.0.0.2\n");
        ASSERT_CONTAINS(sample_file(&b.s, "/etc/nvidia-imex/config.cfg")->file.content, "IMEX_CMD_UNIX_DOMAIN_PATH=/etc/nvidia-imex/imex_ctrl.sock\n");
        static const char *const before[] = { ("unmask-unit:" IMEX), "check-versions:nvidia", "await-fabric:fabric",
                                              "make-channel:/dev/nvidia-caps-imex-channels/channel0", PLAN_RELOAD_ID };
        for (size_t i = 0; i < ARRAY_SIZE(before); i++)
                ASSERT_ORDER(b, before[i], "start-unit:" IMEX, "await-imex:imex", "start-unit:kubelet.service");
        ASSERT_ORDER(b, "make-channel:/dev/nvidia-caps-imex-channels/channel0", CDI);
        ASSERT_BESIDE(b, CDI, "await-imex:imex");
        ASSERT_TRUE(!has(&b, "mask-unit:" IMEX) && has(&b, "mask-unit:" FM));
        const Action *start = action(&b, "start-unit:" IMEX);
        ASSERT_EQ(strv_length(start->unit.reads), 2);
        ASSERT_TRUE(strv_contains(start->after, "write-file:/etc/nvidia-imex/config.cfg") && strv_contains(start->after, PLAN_RELOAD_ID));
        ASSERT_STREQ(action(&b, "check-versions:nvidia")->with, "nvidia-imex");
        ASSERT_DRIVER(b, "CoherentGPUMemoryMode=driver? ImexChannelCount=2048? GrdmaPciTopoCheckOverride=1??");       /* a step makes a missing channel 0 */
        ASSERT_TRUE(!sample_warned(&b.s, "imex-nodes"));
        b.s.host.modelled = false;
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "imex-nodes"));
        strv_add(&nodes, "10.0.0.10");
        b.s.config.nvidia.imex_nodes = nodes;
        sample_plan(&b.s);
        ASSERT_TRUE(!sample_warned(&b.s, "imex-nodes"));

        b.s.config.nvidia.imex = IMEX_OFF;
        sample_plan(&b.s);
        ASSERT_TRUE(has(&b, "mask-unit:" IMEX) && !has(&b, "start-unit:" IMEX) && !has(&b, "write-file:/etc/nvidia-imex/config.cfg"));
        strv_free(nodes);
}

/* ---- the longest chain to kubelet ---- */

static char *critical(const Box *b) {
        _free_ size_t *path = NULL;
        uint64_t usec;
        Text t = {};
        size_t n = plan_critical_path(b->s.plan, &path, &usec);
        ASSERT_TRUE((n > 0) == (usec > 0));
        for (size_t i = 0; i < n; i++)
                text_add(&t, "%s%s", i > 0 ? " " : "", b->s.plan->actions[path[i]].id);
        return t.data ? text_take(&t) : xstrdup("");
}
#define ASSERT_CRITICAL(b, ...) ({                                                      \
        const char *_ids[] = { __VA_ARGS__ };                                           \
        _free_ char *_path = critical(&(b));                                  \
        const char *_at = _path;                                                        \
        for (size_t _i = 0; _i < ARRAY_SIZE(_ids); _i++, _at++)                         \
                if (!(_at = strstr(_at, _ids[_i])))                                     \
                FAIL("%s is not in its place: %s", _ids[_i], _path);            \
})

TEST(the_critical_path_is_the_longest_chain_to_kubelet) {
        BOX(b, "p5.48xlarge");
        _free_ char *id = xstrdup(sample_plan(&b.s)->id);
        ASSERT_CRITICAL(b, "load-module:nvidia ", "check-driver:nvidia ", "start-unit:" FM " ", "await-fabric:fabric ", "start-unit:kubelet.service");
        _free_ char *fabric = critical(&b);
        ASSERT_TRUE(!strstr(fabric, "containerd") && !strstr(fabric, CDI) && !strstr(fabric, "check-efa"));
        ASSERT_STREQ(b.s.plan->id, id);
        /* the path also has steps that only have to end: the taint waits for them */
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        sample_plan(&b.s);
        ASSERT_CRITICAL(b, "await-fabric:fabric ", "mark-node:" TAINT_FILE " ", "start-unit:kubelet.service");
        b.s.config.failure_policy = FAILURE_HOLD;

        box_model(&b, "g6.xlarge");
        sample_plan(&b.s);
        ASSERT_CRITICAL(b, "load-module:nvidia ", "list-gpus:nvidia-smi ", CDI " ", "start-unit:kubelet.service");
        box_model(&b, "m5.large");
        sample_plan(&b.s);
        ASSERT_CRITICAL(b, "start-unit:containerd.service ", "start-unit:kubelet.service");
        char **daemons = LIST("containerd");
        plan_filter(b.s.plan, (bool[_PHASE_MAX]){}, daemons);
        strv_free(daemons);
        _free_ char *none = critical(&b);
        ASSERT_STREQ(none, "");
}

/* ---- MIG ---- */

TEST(mig_comes_after_the_fabric_and_before_cdi) {
        BOX(b, "p5.48xlarge");
        Wanted w;
        WANT_ALL(&b, &w, "1g.10gb", "7");
        sample_plan(&b.s);
        ASSERT_ORDER(b, "start-unit:" FM, "await-fabric:fabric", "partition-gpus:mig", "list-gpus:nvidia-smi", CDI);
        /* steps that hold GPUs end before, or begin after it */
        ASSERT_ORDER(b, "await-unit:set-nvidia-clocks.service", "partition-gpus:mig");
        ASSERT_ORDER(b, "await-unit:nvidia-cdi-refresh.service", "partition-gpus:mig", "set-clocks:clocks");
        ASSERT_EQ(action(&b, "partition-gpus:mig")->device.n_layouts, 8);
        ASSERT_EQ(action(&b, "partition-gpus:mig")->device.count, 8);   /* or the numbers of GPUs would be wrong */
        ASSERT_STREQ(action(&b, "partition-gpus:mig")->with, "all GPUs: 7 x 1g.10gb");
        ASSERT_LAYOUT(b, 7, "1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb");
}

/* On Ampere a new mode needs a reset: before our steps hold the GPUs, and after the steps of the image. */
TEST(ampere_sets_mig_mode_before_other_gpu_steps) {
        BOX(b, "p4d.24xlarge");
        Wanted w;
        WANT_ALL(&b, &w, "1g.5gb", "7");
        sample_plan(&b.s);
        for (int i = 0; i < 3; i++) {
                static const char *const before[] = { "check-driver:nvidia", "await-unit:set-nvidia-clocks.service", "await-unit:nvidia-cdi-refresh.service" },
                                  *const behind[] = { "start-unit:nvidia-persistenced.service", ("start-unit:" FM), "partition-gpus:mig" };
                ASSERT_TRUE(waits(&b, "set-mig-mode:mig", before[i]) && waits(&b, behind[i], "set-mig-mode:mig"));
        }
        const Action *mode = action(&b, "set-mig-mode:mig"), *mig = action(&b, "partition-gpus:mig");
        ASSERT_EQ(mode->device.count, 8);
        ASSERT_EQ(mode->device.n_layouts, 8);
        for (size_t i = 0; i < 8; i++)
                ASSERT_TRUE(mode->device.layouts[i].gpu == i && strv_length(mode->device.layouts[i].profiles) == 7 && mode->device.layouts[i].profiles != mig->device.layouts[i].profiles);
        b.s.config.nvidia.n_mig = 0;
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "set-mig-mode:mig"));
        ASSERT_TRUE(waits(&b, "start-unit:nvidia-persistenced.service", "check-driver:nvidia"));
        ASSERT_TRUE(!waits(&b, "start-unit:" FM, "await-unit:set-nvidia-clocks.service"));      /* that unit takes long */
        box_model(&b, "p5.48xlarge");
        WANT_ALL(&b, &w, "1g.10gb", "7");
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "set-mig-mode:mig") && !waits(&b, "start-unit:" FM, "await-unit:set-nvidia-clocks.service"));
}

TEST(mig_profiles_are_ordered_so_that_they_fit) {
        BOX(b, "p4d.24xlarge");
        Wanted w;
        WANT_ALL(&b, &w, "1g.5gb", "1", "15", "1", "3g.20gb", "1", "1g.5gb+me", "1");
        sample_plan(&b.s);
        ASSERT_LAYOUT(b, 0, "3g.20gb 1g.10gb 1g.5gb+me 1g.5gb");
        const unsigned two[] = { 5, 2 };
        want(&b, &w, two, 2, (const char *const[]){ "3g.20gb", "1", "4g.20gb", "1", NULL });
        sample_plan(&b.s);
        ASSERT_LAYOUT(b, 5, "4g.20gb 3g.20gb");
        ASSERT_LAYOUT(b, 0, "left as it is");
        ASSERT_EQ(action(&b, "partition-gpus:mig")->device.layouts[0].gpu, 2);
        ASSERT_STREQ(action(&b, "partition-gpus:mig")->with, "GPUs 5, 2: 4g.20gb, 3g.20gb");
}

/* From the tables of the MIG user guide: layouts that fit on an A100, and layouts that do not. */
TEST(mig_layouts_that_do_not_fit_are_refused) {
        BOX(b, "p4d.24xlarge");
        Wanted w;
        static const char *const good[][7] = {
                { "7g.40gb", "1" }, { "4g.20gb", "1", "3g.20gb", "1" }, { "3g.20gb", "2" }, { "2g.10gb", "3", "1g.5gb", "1" }, { "1g.10gb", "4" },
                { "4g.20gb", "1", "2g.10gb", "1", "1g.5gb", "1" }, { "3g.20gb", "1", "2g.10gb", "1", "1g.5gb", "2" }, { "0", "1" }, { "1g.10gb", "3", "1g.5gb", "1" },
        };
        static const char *const bad[][7] = {
                { "7g.40gb", "1", "1g.5gb", "1" }, { "4g.20gb", "2" }, { "3g.20gb", "3" }, { "2g.10gb", "4" }, { "1g.5gb", "8" }, { "1g.10gb", "5" },
                { "1g.5gb+me", "2" }, { "3g.20gb", "2", "1g.5gb", "1" }, { "2g.10gb", "3", "1g.10gb", "1", "1g.5gb", "1" }, { "9", "3" }, { "1g.5gb", "64" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                want(&b, &w, NULL, 0, good[i]);
                sample_plan(&b.s);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                want(&b, &w, NULL, 0, bad[i]);
                refused(&b, CAUSE_MIG, "spec.accelerator.nvidia.mig", "a100-40gb holds at most ");
        }
        WANT_ALL(&b, &w, "3g.20gb", "2", "2g.10gb", "1");
        refused(&b, CAUSE_MIG, "spec.accelerator.nvidia.mig", "holds at most 2 x 3g.20gb, not 2 x 3g.20gb, 2g.10gb (devices: all)");
        WANT_ALL(&b, &w, "7", "1");
        refused(&b, CAUSE_MIG, "spec.accelerator.nvidia.mig", "7 is not a profile of this GPU (a100-40gb); use one of 7g.40gb");
}

TEST(unknown_mig_profiles_are_left_to_the_driver) {
        BOX(b, "p6-b300.48xlarge");
        Wanted w;
        WANT_ALL(&b, &w, "1g.32gb", "7");               /* the name that AWS uses */
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "mig-profile"));
        ASSERT_LAYOUT(b, 0, "1g.32gb 1g.32gb 1g.32gb 1g.32gb 1g.32gb 1g.32gb 1g.32gb");
        WANT_ALL(&b, &w, "19", "7");                    /* an id that the table does not have */
        sample_plan(&b.s);
        ASSERT_TRUE(!sample_warned(&b.s, "mig-profile"));
        ASSERT_LAYOUT(b, 0, "19 19 19 19 19 19 19");
        WANT_ALL(&b, &w, "4g.135gb", "2");
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "mig-fit"));
        WANT_ALL(&b, &w, "1g.34gb+me.all", "1");
        sample_plan(&b.s);
        ASSERT_TRUE(!sample_warned(&b.s, "mig-profile"));
        b.s.host.gpus.model = NULL;                     /* an unknown GPU has unknown profiles */
        WANT_ALL(&b, &w, "1g.7gb", "2", "3g.9gb", "1");
        sample_plan(&b.s);
        ASSERT_LAYOUT(b, 7, "3g.9gb 1g.7gb 1g.7gb");
}

TEST(mig_is_refused_or_ignored_where_it_cannot_work) {
        BOX(b, "p6e-gb200.36xlarge");
        Wanted w;
        WANT_ALL(&b, &w, "1g.23gb", "2");
        refused(&b, CAUSE_INVALID, "spec.accelerator.nvidia.mig", "contradicts memoryMode auto, which here means CDMM");
        b.s.config.nvidia.memory = MEMORY_NUMA;
        sample_plan(&b.s);
        b.s.config.nvidia.imex = IMEX_HOST;
        sample_plan(&b.s);
        ASSERT_ORDER(b, "await-fabric:fabric", "partition-gpus:mig", "list-gpus:nvidia-smi");
        ASSERT_ORDER(b, "partition-gpus:mig", "start-unit:" IMEX);
        b.s.config.nvidia.imex = IMEX_AUTO;
        b.s.config.nvidia.memory = MEMORY_AUTO;
        box_model(&b, "g6.xlarge");
        refused(&b, CAUSE_MIG, "spec.accelerator.nvidia.mig", "this GPU (l4) does not support MIG");
        box_model(&b, "p4d.24xlarge");
        const unsigned eight = 8;
        want(&b, &w, &eight, 1, (const char *const[]){ "1g.5gb", "1", NULL });
        refused(&b, CAUSE_MIG, "spec.accelerator.nvidia.mig", "names GPU 8, but this machine has only 8, numbered from 0");
        box_model(&b, "m5.large");
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "no-effect") && !has(&b, "partition-gpus:mig"));
}

TEST(mig_can_be_turned_off) {
        BOX(b, "p4d.24xlarge");
        Wanted w;
        want(&b, &w, NULL, 0, (const char *const[]){ NULL });
        b.s.host.gpus.mig_default = (char *)"19,19";    /* the NodeConfig overrides it */
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "set-mig-mode:mig")->device.n_layouts, 8);
        ASSERT_STREQ(action(&b, "partition-gpus:mig")->with, "all GPUs: off");
        ASSERT_STREQ(action(&b, "partition-gpus:mig")->why, "make all configured MIG instances, or none");
        ASSERT_LAYOUT(b, 7, "");
        /* without MIG there is nothing to do and nothing to report */
        for (const char *const *type = (const char *const[]){ "g6.xlarge", "p6e-gb200.36xlarge", "m5.large", NULL }; *type; type++) {
                box_model(&b, *type);
                sample_plan(&b.s);
                ASSERT_TRUE(!has(&b, "partition-gpus:mig") && !sample_warned(&b.s, "no-effect"));
        }
}

TEST(etc_default_mig_applies_unless_the_nodeconfig_has_mig) {
        BOX(b, "p4d.24xlarge");
        Wanted w;
        b.s.host.gpus.mig_default = (char *)"19,19, 14,";
        sample_plan(&b.s);
        ASSERT_LAYOUT(b, 3, "2g.10gb 1g.5gb 1g.5gb");
        ASSERT_CONTAINS(action(&b, "partition-gpus:mig")->why, "/etc/default/mig");
        b.s.host.gpus.mig_default = (char *)"0,0";
        refused(&b, CAUSE_MIG, "/etc/default/mig", "not 2 x 7g.40gb");
        WANT_ALL(&b, &w, "0", "1");                     /* the NodeConfig overrides it */
        sample_plan(&b.s);
        ASSERT_LAYOUT(b, 3, "7g.40gb");
        b.s.config.nvidia.n_mig = 0;
        b.s.host.gpus.mig_default = (char *)"";
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "partition-gpus:mig"));
        for (const char *const *type = (const char *const[]){ "g5.xlarge", "p6e-gb200.36xlarge", NULL }; *type; type++) {
                box_model(&b, *type);
                b.s.host.gpus.mig_default = (char *)"19,19";
                sample_plan(&b.s);
                ASSERT_TRUE(!has(&b, "partition-gpus:mig") && sample_warned(&b.s, "no-effect"));
        }
        b.s.host.gpus.mig_default = NULL;
}

TEST(every_mig_profile_of_the_table_fits_alone) {
        BOX(b, "p4d.24xlarge");
        Wanted w;
        size_t n, rows = 0;
        for (size_t i = 0; i < n_gpu_models; i++) {
                if (!*gpu_models[i].mig)
                        continue;
                const MigProfile *p = mig_profiles_of(gpu_models[i].mig, &n);
                ASSERT_TRUE(p && n > 0);
                b.s.host.gpus.model = &gpu_models[i];
                b.s.config.nvidia.memory = MEMORY_NUMA;
                for (size_t k = 0; k < n; k++, rows++) {
                        char most[4];
                        snprintf(most, sizeof most, "%u", p[k].most);
                        WANT_ALL(&b, &w, p[k].name, most);
                        sample_plan(&b.s);
                        ASSERT_TRUE(!sample_warned(&b.s, "mig-fit") && !sample_warned(&b.s, "mig-profile"));
                }
        }
        ASSERT_TRUE(rows >= n_mig_profiles);
        ASSERT_TRUE(!mig_profiles_of("voodoo", &n) && n == 0);
        b.s.host.gpus.model = b.host->gpus.model;
}

/* ---- huge pages, EFA, kernel settings ---- */

TEST(auto_huge_pages_are_reserved_for_efa) {
        BOX(b, "p5.48xlarge");
        b.s.config.instance.hugepages.mode = HUGEPAGES_AUTO;
        sample_plan(&b.s);
        const Action *a = action(&b, "reserve-pages:2Mi");
        ASSERT_EQ(a->pages.count, 21121);               /* as seen on a p5: facts H4 */
        ASSERT_EQ(a->pages.node, -1);
        ASSERT_TRUE(a->pages.if_none && !a->lenient);
        ASSERT_BESIDE(b, "reserve-pages:2Mi", "load-module:nvidia", "load-module:ib_core", "start-unit:containerd.service");
        b.s.host.page_size = 512ULL << 20;              /* arm64 with base pages of 64 KiB */
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "reserve-pages:512Mi") && sample_warned(&b.s, "no-huge-pages"));
        b.s.host.page_size = 0;                 /* without hugetlb */
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "reserve-pages:2Mi") && sample_warned(&b.s, "no-huge-pages"));
        b.s.config.instance.efa = EFA_OFF;
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "reserve-pages:2Mi") && !has(&b, "load-module:efa"));
}

TEST(larger_huge_pages_are_reserved_first) {
        BOX(b, "m5.24xlarge");
        PageRequest pages[] = { { 2ULL << 20, 8, -1 }, { 1ULL << 30, 2, 1 }, { 1ULL << 30, 3, 0 } };
        b.s.config.instance.hugepages = (HugePages){ HUGEPAGES_EXPLICIT, pages, 3, POLICY_WARN };
        sample_plan(&b.s);
        ASSERT_TRUE(strv_contains(action(&b, "reserve-pages:1Gi on node 1")->after_any, "reserve-pages:1Gi on node 0"));
        ASSERT_TRUE(strv_contains(action(&b, "reserve-pages:2Mi")->after_any, "reserve-pages:1Gi on node 1"));
        ASSERT_TRUE(action(&b, "reserve-pages:2Mi")->lenient);
        ASSERT_EQ(action(&b, "reserve-pages:1Gi on node 0")->pages.count, 3);
        b.s.host.modelled = false;
        refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "names NUMA node 1, which this machine does not have");
        pages[1].numa_node = pages[2].numa_node = -1;
        pages[0].size = 512ULL << 20;
        refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "names a size of 512Mi, but this kernel has 2Mi, 1Gi");
        b.s.host.memory_bytes = 5ULL << 30;
        pages[0].size = 2ULL << 20;
        refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "asks for 5136 MiB, but the machine has only 5120 MiB");
}

/* This holds for a model, too: the table has its nodes, each with a share of the memory. */
TEST(huge_pages_must_fit_their_numa_node) {
        BOX(b, "p5.48xlarge");
        PageRequest pages[] = { { 2ULL << 20, 4, 1000 }, { 1ULL << 30, 1, 0 } };
        b.s.config.instance.hugepages = (HugePages){ HUGEPAGES_EXPLICIT, pages, 2, POLICY_FAIL };
        refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "names NUMA node 1000, which this machine does not have");
        pages[0].numa_node = 1;
        pages[1].count = 1800;
        refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "asks for 1843200 MiB on NUMA node 0, but it has only 1048576 MiB of memory");
        pages[1].count = 1000;
        sample_plan(&b.s);
        pages[0] = (PageRequest){ 2ULL << 20, 24 * 512, 0 };
        refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "asks for 1048576 MiB on NUMA node 0");
}

/* Huge pages do not belong in GPU memory, which the machine cannot give away. */
TEST(huge_pages_are_refused_on_numa_nodes_without_cpus) {
        BOX(b, "p6e-gb200.36xlarge");
        NumaNode nodes[] = { { 0, 72, 1ULL << 30 }, { 1, 72, 1ULL << 30 }, { 2, 0, 100ULL << 30 }, { 3, 0, 0 } };
        PageRequest pages[] = { { 2ULL << 20, 8, 1 } };
        b.s.host.nodes = nodes;
        b.s.host.n_nodes = ARRAY_SIZE(nodes);
        b.s.host.modelled = false;
        b.s.host.memory_bytes = 102ULL << 30;
        b.s.config.instance.hugepages = (HugePages){ HUGEPAGES_EXPLICIT, pages, 1, POLICY_FAIL };
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "reserve-pages:2Mi on node 1")->pages.node, 1);
        for (int node = 2; node <= 3; node++) {
                pages[0].numa_node = node;
                refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "which has no CPUs: its memory belongs to a GPU");
        }
        pages[0] = (PageRequest){ 2ULL << 20, 1024, -1 };
        refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "asks for 2048 MiB, but the machine has only 2048 MiB of memory");
        pages[0].count = 1023;
        sample_plan(&b.s);
        ASSERT_CONTAINS(action(&b, "reserve-pages:2Mi")->why, "across CPU NUMA nodes");
}

/* A first boot sees only the nodes of the CPUs; a later one also sees those of the GPUs. Both must make
 * the same plan. */
TEST(gpu_numa_nodes_are_planned_before_they_appear) {
        BOX(b, "p6e-gb200.36xlarge");
        NumaNode nodes[34] = { { 0, 72, 480ULL << 30 }, { 1, 72, 480ULL << 30 } };
        PageRequest pages[] = { { 2ULL << 20, 1024, -1 } };
        char id[2][sizeof b.s.plan->id];
        b.s.config.nvidia.memory = MEMORY_NUMA;
        b.s.config.kubelet.config = sample_json(&b.s, "{'topologyManagerPolicy':'best-effort'}");
        b.s.config.instance.hugepages = (HugePages){ HUGEPAGES_EXPLICIT, pages, 1, POLICY_FAIL };
        b.s.host.nodes = nodes;
        b.s.host.modelled = false;
        for (int later = 0; later < 2; later++) {
                b.s.host.n_nodes = later ? 34 : 2;
                b.s.host.memory_bytes = (later ? 960 + 184 : 960) * (1ULL << 30);
                nodes[2].memory_bytes = later ? 184ULL << 30 : 0;
                for (int node = 2; node <= 33; node += 31) {
                        pages[0].numa_node = node;
                        refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "which has no CPUs: its memory belongs to a GPU");
                }
                pages[0].numa_node = 34;
                refused(&b, CAUSE_INVALID, "spec.instance.hugePages.pages", "names NUMA node 34, which this machine does not have");
                pages[0].numa_node = -1;
                sample_plan(&b.s);
                ASSERT_TRUE(action(&b, "reserve-pages:2Mi")->pages.by_node);
                ASSERT_EQ(json_integer_value(json_object_get(b.s.plan->facts, "kubeletNumaNodes")), 34);
                ASSERT_CONTAINS(b.s.plan->machine, later ? "on 2 NUMA nodes with CPUs and 32 without" : "on 2 NUMA nodes (34 once the");
                ASSERT_TRUE(sample_warned(&b.s, "numa-nodes"));
                memcpy(id[later], b.s.plan->id, sizeof id[later]);
        }
        ASSERT_STREQ(id[0], id[1]);
        b.s.config.nvidia.memory = MEMORY_DRIVER;
        b.s.host.n_nodes = 2;
        sample_plan(&b.s);
        ASSERT_TRUE(!action(&b, "reserve-pages:2Mi")->pages.by_node && !sample_warned(&b.s, "numa-nodes"));
        ASSERT_TRUE(!json_object_get(b.s.plan->facts, "kubeletNumaNodes"));
}

TEST(huge_pages_off_frees_all_sizes) {
        BOX(b, "m5.large");
        PagePool pools[] = { { 1ULL << 30, 0, 0 }, { 1ULL << 30, 1, 2 }, { 2ULL << 20, 0, 5 }, { 2ULL << 20, 1, 5 } };
        b.s.host.pools = pools;
        b.s.host.n_pools = ARRAY_SIZE(pools);
        b.s.config.instance.hugepages.mode = HUGEPAGES_OFF;
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "reserve-pages:1Gi")->pages.count, 0);
        ASSERT_EQ(action(&b, "reserve-pages:2Mi")->pages.node, -1);
        b.s.config.instance.hugepages.mode = HUGEPAGES_KEEP;
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "reserve-pages:1Gi"));
}

TEST(efa_has_modules_a_check_and_locked_memory) {
        BOX(b, "p5.48xlarge");
        sample_plan(&b.s);
        ASSERT_ORDER(b, "load-module:ib_core", "load-module:ib_uverbs", "load-module:efa", "check-efa:efa", "start-unit:kubelet.service");
        ASSERT_BESIDE(b, "check-efa:efa", "load-module:nvidia", "start-unit:" FM, "start-unit:containerd.service");
        ASSERT_EQ(action(&b, "check-efa:efa")->device.count, 0);        /* the launch template decides */
        const char *spec = sample_file(&b.s, "/etc/containerd/base-runtime-spec.json")->file.content;
        ASSERT_CONTAINS(spec, "\"RLIMIT_MEMLOCK\"");
        ASSERT_CONTAINS(spec, "18446744073709551615");
        ASSERT_TRUE(!strstr(spec, "RLIM_INFINITY"));
        ASSERT_CONTAINS(sample_file(&b.s, "/etc/systemd/system/containerd.service.d/40-nodestrap-memlock.conf")->file.content, "LimitMEMLOCK=infinity");
        ASSERT_TRUE(strv_contains(action(&b, "start-unit:containerd.service")->unit.reads, "/etc/systemd/system/containerd.service.d/40-nodestrap-memlock.conf"));
        b.s.config.containerd.base_runtime_spec = sample_json(&b.s, "{'process': {'rlimits': [{'type': 'RLIMIT_MEMLOCK', 'soft': 1, 'hard': 2}]}}");
        sample_plan(&b.s);
        ASSERT_TRUE(!strstr(sample_file(&b.s, "/etc/containerd/base-runtime-spec.json")->file.content, "18446744073709551615"));
        ASSERT_TRUE(sample_warned(&b.s, "efa-memlock"));
        static const struct { const char *soft; bool told; } limits[] = { { "17179869183", true }, { "17179869184", false }, { "1.8446744073709552e19", false } };
        for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
                _free_ char *spec_of_user = xasprintf("{'process': {'rlimits': [{'type': 'RLIMIT_MEMLOCK', 'soft': %s, 'hard': 1.8446744073709552e19}]}}", limits[i].soft);
                b.s.config.containerd.base_runtime_spec = sample_json(&b.s, spec_of_user);
                sample_plan(&b.s);
                ASSERT_EQ(sample_warned(&b.s, "efa-memlock"), limits[i].told);
        }
        b.s.config.instance.efa = EFA_OFF;
        b.s.config.containerd.base_runtime_spec = sample_json(&b.s, "{'process': {'rlimits': [{'type': 'RLIMIT_MEMLOCK', 'soft': 1, 'hard': 2}]}}");
        sample_plan(&b.s);
        ASSERT_TRUE(!sample_warned(&b.s, "efa-memlock"));
        b.s.config.instance.efa = EFA_AUTO;
        b.s.config.containerd.base_runtime_spec = NULL;

        box_model(&b, "m5.large");
        sample_plan(&b.s);
        ASSERT_TRUE(!has(&b, "check-efa:efa") && !has(&b, "write-file:/etc/systemd/system/containerd.service.d/40-nodestrap-memlock.conf"));
        ASSERT_TRUE(!strstr(sample_file(&b.s, "/etc/containerd/base-runtime-spec.json")->file.content, "MEMLOCK"));
        b.s.config.instance.efa = EFA_REQUIRE;
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "check-efa:efa")->device.count, 1);
        b.s.config.instance.expected_efa = 4;
        b.s.config.instance.efa = EFA_AUTO;
        sample_plan(&b.s);
        ASSERT_EQ(action(&b, "check-efa:efa")->device.count, 4);
        ASSERT_TRUE(has(&b, "check-machine:devices"));
        ASSERT_TRUE(sample_warned(&b.s, "efa-unknown"));

        box_model(&b, "p5.48xlarge");
        b.s.config.instance.expected_efa = 32;
        sample_plan(&b.s);
        ASSERT_TRUE(!sample_warned(&b.s, "efa-unknown"));
        b.s.config.instance.expected_efa = 64;
        refused(&b, CAUSE_EFA, "spec.instance.network.efa.expectedDevices", "expects 64 EFA devices, but p5.48xlarge has at most 32: the boot fails");
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        sample_plan(&b.s);
        ASSERT_TRUE(sample_warned(&b.s, "too-many-efa"));
}

TEST(kernel_settings_become_sysctl_steps) {
        BOX(b, "m5.large");
        Variable v[] = { { (char *)"net/ipv4/conf/eth0.1/rp_filter", (char *)"2" }, { (char *)"vm.panic_on_oom", (char *)" 0" } };
        b.s.config.instance.sysctl = v;
        b.s.config.instance.n_sysctl = 2;
        sample_plan(&b.s);
        ASSERT_STREQ(action(&b, "set-sysctl:net/ipv4/conf/eth0.1/rp_filter")->with, "2");
}

/* ---- what a failure means ---- */

#define CHECK_NODE "check-node:" TAINT_KEY

TEST(join_tainted_marks_the_node_after_all_device_steps) {
        BOX(b, "p5.48xlarge");
        sample_plan(&b.s);
        ASSERT_TRUE(!action(&b, "mark-node:" TAINT_FILE)->after_any && !action(&b, "mark-node:" TAINT_FILE)->after);
        ASSERT_TRUE(strv_contains(action(&b, "start-unit:kubelet.service")->unit.reads, TAINT_FILE));
        ASSERT_TRUE(!plan_find(b.s.plan, CHECK_NODE));

        char **flags = LIST("--register-with-taints=a=b:NoSchedule", "--v=2 --register-with-taints \"c=d:NoExecute,e:NoSchedule\"");
        b.s.config.kubelet.flags = flags;
        b.s.config.kubelet.config = sample_json(&b.s, "{'registerWithTaints': [{'key': 'x', 'value': 'y', 'effect': 'NoSchedule'}, {'key': 'z', 'effect': 'NoExecute'}]}");
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        sample_plan(&b.s);
        const Action *taint = action(&b, "mark-node:" TAINT_FILE), *node = action(&b, CHECK_NODE), *turn = action(&b, "write-file:/run/nodestrap/kubelet-may-start");
        for (size_t i = 0; i < b.s.plan->n; i++) {
                const Action *a = &b.s.plan->actions[i];
                if (plan_is_device_step(a))
                        ASSERT_TRUE(strv_contains(node->after_any, a->id) && strv_contains(taint->after_any, a->id) && strv_contains(turn->after_any, a->id) && !strv_contains(turn->after, a->id));
        }
        ASSERT_TRUE(strv_contains(turn->after, taint->id) && strv_contains(turn->after, "start-unit:containerd.service"));
        ASSERT_ORDER(b, "mark-node:" TAINT_FILE, "write-file:/run/nodestrap/kubelet-may-start", "start-unit:kubelet.service");
        /* the check uses the files of kubelet, and the taint waits for its result */
        ASSERT_TRUE(strv_contains(taint->after, CHECK_NODE) && strv_contains(node->after, "write-file:" KUBECONFIG) &&
                    strv_contains(node->after, "write-file:" KUBELET_ENVIRONMENT) && strv_contains(node->after, "write-file:" CLUSTER_CA));
        ASSERT_STREQ(node->with, b.s.host.instance.id);
        _free_ char *last = strv_join(taint->node.taints, " ");
        ASSERT_STREQ(last, "c=d:NoExecute e:NoSchedule");

        b.s.config.kubelet.flags = NULL;
        sample_plan(&b.s);
        _free_ char *settings = strv_join(action(&b, "mark-node:" TAINT_FILE)->node.taints, " ");
        ASSERT_STREQ(settings, "x=y:NoSchedule z:NoExecute");
        b.s.config.kubelet.config = NULL;
        strv_free(flags);
}

/* Steps that register the node, or record that, wait until the instance has left its pool. */
TEST(a_warm_pool_delays_kubelet_and_registration) {
        BOX(b, "p5.48xlarge");
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        b.s.host.pool = POOL_RESUMES;
        ASSERT_TRUE(!plan_find(sample_plan(&b.s), "check-pool:warm-pool"));
        _free_ char *id = xstrdup(b.s.plan->id);
        b.s.host.pool = POOL_PREPARES;
        b.s.host.pool_text = (char *)"Warmed:Stopped";
        sample_plan(&b.s);
        ASSERT_TRUE(!streq(b.s.plan->id, id));
        const Action *pool = action(&b, "check-pool:warm-pool");
        ASSERT_STREQ(pool->with, "Warmed:Stopped");
        const char *const behind[] = { CHECK_NODE, "mark-node:" TAINT_FILE, "write-file:" KUBELET_TURN, "start-unit:kubelet.service" };
        for (size_t i = 0; i < ARRAY_SIZE(behind); i++)
                ASSERT_TRUE(strv_contains(action(&b, behind[i])->after, pool->id));
        /* device failures count in this boot, too */
        for (size_t i = 0; i < b.s.plan->n; i++)
                if (plan_is_device_step(&b.s.plan->actions[i]))
                        ASSERT_TRUE(strv_contains(pool->after_any, b.s.plan->actions[i].id));
        ASSERT_TRUE(strv_contains(pool->after_any, "start-unit:containerd.service"));
}

static bool label_has_no_effect(const Box *b, const char *why) {
        for (size_t i = 0; i < b->s.plan->warnings.n; i++)
                if (strstr(b->s.plan->warnings.items[i].text, why) && strstr(b->s.plan->warnings.items[i].path ?: "", "imex.label"))
                        return streq(b->s.plan->warnings.items[i].code, "no-effect");
        return false;
}

TEST(a_tray_registers_with_its_clique_label) {
        BOX(b, "p6e-gb200.36xlarge");
        sample_plan(&b.s);
        ASSERT_TRUE(!action(&b, "mark-node:" TAINT_FILE)->node.clique);
        b.s.config.nvidia.imex_label = true;
        sample_plan(&b.s);
        const Action *a = action(&b, "mark-node:" TAINT_FILE);
        ASSERT_TRUE(a->node.clique && strv_contains(a->after, "await-fabric:fabric"));
        ASSERT_STREQ(a->with, "nvidia.com/gpu.clique");
        _free_ char *text = plan_to_text(b.s.plan);
        ASSERT_CONTAINS(text, "label                nvidia.com/gpu.clique, known when the fabric is complete\n");
        ASSERT_ORDER(b, "await-fabric:fabric", "mark-node:" TAINT_FILE, "start-unit:kubelet.service");
        ASSERT_TRUE(!label_has_no_effect(&b, ""));

        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        sample_plan(&b.s);
        a = action(&b, "mark-node:" TAINT_FILE);
        ASSERT_TRUE(a->node.clique && !strv_contains(a->after, "await-fabric:fabric") && strv_contains(a->after_any, "await-fabric:fabric"));
        ASSERT_STREQ(a->with, "nvidia.com/gpu.clique nodestrap/unhealthy");

        b.s.config.nvidia.fabric_gate = FABRIC_GATE_OFF;
        sample_plan(&b.s);
        ASSERT_TRUE(!action(&b, "mark-node:" TAINT_FILE)->node.clique);
}

TEST(the_clique_label_has_no_effect_outside_racks) {
        for (const char *const *type = (const char *const[]){ "p5.48xlarge", "p6-b200.48xlarge", "g5.xlarge", NULL }; *type; type++) {
                BOX(b, *type);
                b.s.config.nvidia.imex_label = true;
                sample_plan(&b.s);
                ASSERT_TRUE(!action(&b, "mark-node:" TAINT_FILE)->node.clique && label_has_no_effect(&b, "leads to another machine"));
        }
}

TEST(a_taint_does_not_replace_a_failed_file) {
        BOX(b, "p6e-gb200.36xlarge");
        b.s.config.failure_policy = FAILURE_JOIN_TAINTED;
        sample_plan(&b.s);
        ASSERT_TRUE(strv_contains(action(&b, "await-unit:nvidia-driver-resolve.service")->after, "write-file:" NVIDIA_OPTIONS));
        ASSERT_TRUE(strv_contains(action(&b, "write-file:/run/nodestrap/kubelet-may-start")->after, "write-file:" NVIDIA_OPTIONS));
}

TEST(json_has_the_arguments_of_device_steps) {
        BOX(b, "p4d.24xlarge");
        Wanted w;
        WANT_ALL(&b, &w, "19", "2");
        b.s.config.instance.hugepages.mode = HUGEPAGES_AUTO;
        sample_plan(&b.s);
        json_t *plan = plan_to_json(b.s.plan), *a, *all = json_object_get(plan, "actions");
        size_t i, seen = 0;
        json_array_foreach(all, i, a) {
                const char *id = json_string_value(json_object_get(a, "id"));
                if (streq(id, "partition-gpus:mig")) {
                        json_t *l = json_array_get(json_object_get(a, "layouts"), 7);
                        ASSERT_EQ(json_integer_value(json_object_get(l, "gpu")), 7);
                        ASSERT_STREQ(json_string_value(json_array_get(json_object_get(l, "profiles"), 1)), "1g.5gb");
                } else if (streq(id, "reserve-pages:2Mi")) {
                        ASSERT_EQ(json_integer_value(json_object_get(json_object_get(a, "pages"), "count")), 10561);
                        ASSERT_TRUE(json_is_true(json_object_get(json_object_get(a, "pages"), "ifNone")));
                } else if (streq(id, "start-unit:" FM))
                        ASSERT_TRUE(json_is_true(json_object_get(a, "retry")) && streq(json_string_value(json_object_get(a, "class")), "nvswitch"));
                else if (streq(id, "start-unit:nvidia-persistenced.service"))
                        ASSERT_TRUE(json_is_true(json_object_get(a, "optional")));
                else if (streq(id, "start-unit:containerd.service"))
                        ASSERT_TRUE(!json_object_get(a, "afterAny"));
                else
                        continue;
                seen++;
        }
        ASSERT_EQ(seen, 5);
        json_decref(plan);
}

/* ---- units that are not quoted ---- */

TEST(units_that_may_print_a_secret_are_quiet) {
        static const char *const quiet[] = { "start-unit:containerd.service", "start-unit:kubelet.service" };
        Variable v[] = { { (char[]){"A"}, (char[]){"1"} } };
        ServiceEnvironment e[] = { { (char[]){"nvidia-fabricmanager"}, v, 1 } };
        BOX(b, "p5.48xlarge");
        sample_plan(&b.s);
        for (size_t i = 0; i < ARRAY_SIZE(quiet); i++)
                ASSERT_TRUE(plan_find(b.s.plan, quiet[i])->quiet);
        ASSERT_TRUE(!plan_find(b.s.plan, "start-unit:" FM)->quiet && !plan_find(b.s.plan, "check-unit:" FM)->quiet);
        ASSERT_TRUE(!plan_find(b.s.plan, "import-image:" SANDBOX_ARCHIVE)->quiet);
        b.s.config.instance.environment = e;
        b.s.config.instance.n_environment = 1;
        b.s.config.containerd.config = sample_json(&b.s, "{'metrics': {'address': '127.0.0.1:1338'}}");
        sample_plan(&b.s);
        ASSERT_TRUE(plan_find(b.s.plan, "start-unit:" FM)->quiet && plan_find(b.s.plan, "check-unit:" FM)->quiet);
        ASSERT_TRUE(!plan_find(b.s.plan, "start-unit:" PERSISTENCED)->quiet);
        ASSERT_TRUE(plan_find(b.s.plan, "import-image:" SANDBOX_ARCHIVE)->quiet && plan_find(b.s.plan, "pin-image:" SANDBOX_IMAGE)->quiet);
}

/* As nodeadm, systemd itself gives the variables to all services. Otherwise drop-ins give them to single
 * units. */
TEST(as_nodeadm_default_variables_make_all_units_quiet) {
        Variable v[] = { { (char[]){"A"}, (char[]){"1"} } };
        ServiceEnvironment e[] = { { (char[]){"default"}, v, 1 } };
        BOX(b, "p5.48xlarge");
        b.s.config.instance.environment = e;
        b.s.config.instance.n_environment = 1;
        sample_plan(&b.s);
        ASSERT_TRUE(!plan_find(b.s.plan, "start-unit:" FM)->quiet && !plan_find(b.s.plan, "check-unit:" FM)->quiet);
        b.s.options.as_nodeadm = true;
        sample_plan(&b.s);
        ASSERT_TRUE(plan_find(b.s.plan, "start-unit:" FM)->quiet && plan_find(b.s.plan, "check-unit:" FM)->quiet);
        ASSERT_TRUE(plan_find(b.s.plan, "start-unit:" PERSISTENCED)->quiet);
}

TEST_MAIN
