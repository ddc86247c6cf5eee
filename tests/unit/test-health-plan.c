/* SPDX-License-Identifier: Apache-2.0
 * The checks of the health of a machine, and their time. */
#include "sample.h"

#define HEALTH "check-health:gpus"

typedef struct Box { Sample s; Host *host; } Box;

static void box_done(Box *b) {
        host_free(b->host);
        b->s.host = (Host){};
        sample_done(&b->s);
}

static Box box_new(const char *type) {
        _cleanup_(root_freep) Root *root = NULL;
        Box b = { .s = sample_new() };
        HostOptions options = { .instance_type = type, .kubelet_version = "1.34.2", .containerd_version = "2.1.5" };
        b.s.config.nvidia.imex_channels = 2048;
        b.s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
        ASSERT_OK(root_new("/", &root));
        ASSERT_OK(host_detect(root, &b.s.config, &options, &b.host, &b.s.diag));
        b.s.host = *b.host;
        sample_plan(&b.s);
        return b;
}
#define BOX(name, type) _cleanup_(box_done) Box name = box_new(type)

static const Action *health(const Box *b) {
        const Action *a = plan_find(b->s.plan, HEALTH);
        ASSERT_TRUE(a);
        return a;
}

static bool waits(const Plan *p, const char *id, const char *before) {
        const Action *a = plan_find(p, id);
        for (char *const *list = a->after, *const *next = a->after_any; list; list = next, next = NULL)
                for (; *list; list++)
                        if (streq(*list, before) || waits(p, *list, before))
                                return true;
        return false;
}

static void looks_at(const char *type, const char *with, unsigned nvlinks) {
        BOX(b, type);
        const Action *a = health(&b);
        ASSERT_STREQ(a->with, with);
        ASSERT_EQ(a->device.nvlinks, nvlinks);
        ASSERT_EQ(a->device.count, b.s.host.gpus.expected);
        ASSERT_EQ(a->phase, PHASE_DEVICES);
        ASSERT_TRUE(a->lenient);
        ASSERT_TRUE(waits(b.s.plan, HEALTH, "check-driver:nvidia"));
        ASSERT_TRUE(waits(b.s.plan, "start-unit:kubelet.service", HEALTH));
}

TEST(checks_follow_the_gpu_class) {
        looks_at("p5.48xlarge", "fabric, recovery, memory, nvlink x 18, clocks, pcie, kernel-log, efa, gpudirect", 18);
        looks_at("p6-b200.48xlarge", "fabric, recovery, memory, nvlink x 18, clocks, pcie, kernel-log, efa, gpudirect", 18);
        looks_at("p6e-gb200.36xlarge", "fabric, recovery, memory, nvlink x 18, clocks, pcie, kernel-log, efa, gpudirect", 18);
        /* A100 GPUs do not register with the fabric, so only their links can be checked */
        looks_at("p4d.24xlarge", "recovery, memory, nvlink x 12, clocks, pcie, kernel-log, efa, gpudirect", 12);
        /* one H100 of a board that other instances share */
        looks_at("p5.4xlarge", "recovery, memory, clocks, pcie, kernel-log, efa, gpudirect", 0);
        looks_at("g6.xlarge", "recovery, memory, clocks, pcie, kernel-log", 0);
        looks_at("g5.48xlarge", "recovery, memory, clocks, pcie, kernel-log, efa, gpudirect", 0);
}

TEST(nvlinks_without_switches_need_the_whole_board) {        /* eight V100 link to each other; four of them also link to GPUs outside the instance */
        BOX(b, "g5.48xlarge");
        b.s.host.gpus.model = gpu_model_find(0x1db1);
        sample_plan(&b.s);
        ASSERT_EQ(health(&b)->device.nvlinks, 6);
        b.s.host.gpus.expected = 4;
        sample_plan(&b.s);
        ASSERT_EQ(health(&b)->device.nvlinks, 0);
}

TEST(efa_off_removes_the_efa_check) {
        BOX(b, "p5.48xlarge");
        b.s.config.instance.efa = EFA_OFF;
        sample_plan(&b.s);
        ASSERT_STREQ(health(&b)->with, "fabric, recovery, memory, nvlink x 18, clocks, pcie, kernel-log, gpudirect");
}

TEST(require_makes_a_fault_fail_and_off_removes_the_check) {
        BOX(b, "p5.48xlarge");
        char id[72];
        memcpy(id, b.s.plan->id, sizeof id);
        b.s.config.nvidia.health = HEALTH_REQUIRE;
        sample_plan(&b.s);
        ASSERT_TRUE(!health(&b)->lenient);
        ASSERT_CONTAINS(health(&b)->why, "a fault fails this step");
        ASSERT_TRUE(!streq(id, b.s.plan->id));
        b.s.config.nvidia.health = HEALTH_OFF;
        sample_plan(&b.s);
        ASSERT_TRUE(!plan_find(b.s.plan, HEALTH));
}

TEST(repair_condition_is_included_unless_health_is_off) {
        BOX(b, "p4d.24xlarge");
        b.s.config.cluster.repair_condition = true;
        sample_plan(&b.s);
        ASSERT_STREQ(health(&b)->with, "recovery, memory, nvlink x 12, clocks, pcie, kernel-log, efa, gpudirect, repair-condition");
        b.s.config.nvidia.health = HEALTH_OFF;          /* without the check, no finding is about hardware */
        b.s.config.nvidia.gpu_direct = GPU_DIRECT_ON;
        sample_plan(&b.s);
        ASSERT_STREQ(health(&b)->with, "gpudirect-required");
}

TEST(gpu_direct_selects_the_gpudirect_check) {
        BOX(b, "p6e-gb200.36xlarge");
        b.s.config.nvidia.gpu_direct = GPU_DIRECT_OFF;
        sample_plan(&b.s);
        ASSERT_STREQ(health(&b)->with, "fabric, recovery, memory, nvlink x 18, clocks, pcie, kernel-log, efa");
        b.s.config.nvidia.gpu_direct = GPU_DIRECT_ON;
        sample_plan(&b.s);
        ASSERT_STREQ(health(&b)->with, "fabric, recovery, memory, nvlink x 18, clocks, pcie, kernel-log, efa, gpudirect-required");
        ASSERT_TRUE(health(&b)->lenient && health(&b)->class == GPU_CLASS_TRAY);
        b.s.config.nvidia.health = HEALTH_OFF;          /* only the required check stays */
        sample_plan(&b.s);
        ASSERT_STREQ(health(&b)->with, "gpudirect-required");
        ASSERT_STREQ(health(&b)->why, "check what gpuDirect requires");
        ASSERT_TRUE(waits(b.s.plan, "start-unit:kubelet.service", HEALTH) && waits(b.s.plan, HEALTH, "check-efa:efa"));
}

TEST(health_check_runs_even_if_the_fabric_has_failed) {
        BOX(b, "p5.48xlarge");
        ASSERT_TRUE(strv_contains(health(&b)->after_any, "await-fabric:fabric"));
        ASSERT_TRUE(strv_contains(health(&b)->after_any, "start-unit:nvidia-fabricmanager.service"));
        ASSERT_TRUE(strv_contains(health(&b)->after_any, "check-efa:efa"));    /* a failed EFA check does not block it, either */
        ASSERT_TRUE(!strv_contains(health(&b)->after, "await-fabric:fabric"));
        Variable profile = { (char *)"1g.10gb", (char *)"7" };
        MigRequest mig = { .profiles = &profile, .n_profiles = 1 };
        b.s.config.nvidia.mig = &mig;
        b.s.config.nvidia.n_mig = 1;
        sample_plan(&b.s);
        const Action *divide = plan_find(b.s.plan, "partition-gpus:mig");      /* a failure of either one blocks this step */
        ASSERT_TRUE(strv_contains(divide->after, "await-fabric:fabric") && strv_contains(divide->after, HEALTH));
}

TEST(without_fabric_manager_nvlinks_are_not_checked) { /* in a pod it trains them when kubelet runs */
        BOX(b, "p4d.24xlarge");
        b.s.config.nvidia.fabric_manager = FABRIC_MANAGER_OFF;
        sample_plan(&b.s);
        ASSERT_EQ(health(&b)->device.nvlinks, 0);
        ASSERT_TRUE(!strstr(health(&b)->with, "nvlink"));
}

TEST(addresses_come_from_a_machine_and_not_from_a_model) {
        BOX(b, "p5.48xlarge");
        ASSERT_TRUE(!health(&b)->device.seen && !health(&b)->device.efa);   /* those of a model mean nothing */
        b.s.host.modelled = false;
        sample_plan(&b.s);
        ASSERT_EQ(strv_length(health(&b)->device.seen), 8);
        ASSERT_EQ(strv_length(health(&b)->device.efa), 32);
}

#define PROVE "prove-gpus:gpus"

/* The test needs the GPUs for itself: after each step that may open them, and before all others. */
TEST(gpu_test_has_the_gpus_for_itself) {
        BOX(b, "p5.48xlarge");
        ASSERT_TRUE(!plan_find(b.s.plan, PROVE));
        b.s.config.nvidia.prove = PROVE_QUICK;
        b.s.config.nvidia.prove_timeout_usec = 90 * USEC_PER_SEC;
        sample_plan(&b.s);
        const Action *a = plan_find(b.s.plan, PROVE);
        ASSERT_TRUE(a);
        ASSERT_STREQ(a->with, "quick, with links");
        ASSERT_EQ(a->phase, PHASE_DEVICES);
        ASSERT_EQ(a->device.count, 8);
        ASSERT_EQ(a->device.nvlinks, 18);
        ASSERT_EQ(a->device.bandwidth, 3350);
        ASSERT_EQ(a->deadline_usec, (90 + PROVE_MORE_SEC) * USEC_PER_SEC);
        ASSERT_TRUE(a->lenient);
        ASSERT_TRUE(waits(b.s.plan, PROVE, HEALTH));
        ASSERT_TRUE(waits(b.s.plan, PROVE, "await-fabric:fabric"));
        ASSERT_TRUE(waits(b.s.plan, PROVE, "make-nodes:/dev/nvidia*"));
        ASSERT_TRUE(waits(b.s.plan, "set-clocks:clocks", PROVE));
        ASSERT_TRUE(waits(b.s.plan, "generate-cdi:/var/run/cdi/nvidia.yaml", PROVE));
        ASSERT_TRUE(waits(b.s.plan, "start-unit:kubelet.service", PROVE));
        b.s.config.nvidia.health = HEALTH_REQUIRE;
        sample_plan(&b.s);
        ASSERT_TRUE(!plan_find(b.s.plan, PROVE)->lenient);
        b.s.config.nvidia.health = HEALTH_OFF;
        sample_plan(&b.s);
        ASSERT_TRUE(waits(b.s.plan, PROVE, "await-fabric:fabric"));
}

TEST(gpu_test_of_a_single_gpu_has_no_links) {
        BOX(b, "g6.xlarge");
        b.s.config.nvidia.prove = PROVE_QUICK;
        sample_plan(&b.s);
        ASSERT_STREQ(plan_find(b.s.plan, PROVE)->with, "quick");
        ASSERT_EQ(plan_find(b.s.plan, PROVE)->device.bandwidth, 300);
}

TEST(mig_excludes_the_gpu_test_with_a_warning) {
        BOX(b, "p5.48xlarge");
        MigRequest mig = { .profiles = &(Variable){ .name = (char *)"1g.10gb", .value = (char *)"7" }, .n_profiles = 1 };
        b.s.config.nvidia.prove = PROVE_QUICK;
        b.s.config.nvidia.mig = &mig;
        b.s.config.nvidia.n_mig = 1;
        sample_plan(&b.s);
        ASSERT_TRUE(!plan_find(b.s.plan, PROVE));
        ASSERT_TRUE(ANY(w, b.s.plan->warnings.items, b.s.plan->warnings.n, streq(w->code, "no-effect") && strstr(w->path, ".prove")));
        b.s.config.nvidia.mig = NULL;
        b.s.config.nvidia.n_mig = 0;
}

TEST_MAIN
