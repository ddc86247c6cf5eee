/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for Trainium and Inferentia, on the machines of the table. */
#include "sample.h"

static Plan *plan_of(Sample *s, const char *type, bool driver) {
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(host_freep) Host *host = NULL;
        HostOptions options = { .instance_type = type, .kubelet_version = "1.34.2", .containerd_version = "2.1.5" };
        PlanOptions plan_options = {};
        Plan *plan = NULL;
        ASSERT_OK(root_new("/", &root));
        ASSERT_OK(host_detect(root, &s->config, &options, &host, &s->diag));
        host->neuron.driver = host->neuron.driver && driver;
        ASSERT_OK(plan_make(&s->config, host, &plan_options, &plan, &s->diag));
        return plan;
}

static unsigned nodes_awaited(const char *type) {
        _cleanup_(sample_done) Sample s = sample_new();
        _cleanup_(plan_freep) Plan *plan = plan_of(&s, type, true);
        const Action *load = plan_find(plan, "load-module:neuron"), *nodes = plan_find(plan, "await-devices:/dev/neuron*"),
                     *turn = plan_find(plan, "write-file:" KUBELET_TURN);
        if (!nodes)
                return 0;
        ASSERT_TRUE(strv_contains(load->after, "await-unit:neuron-kmod-load.service"));
        ASSERT_TRUE(strv_contains(nodes->after, "load-module:neuron"));
        ASSERT_TRUE(strv_contains(turn->after, nodes->id));
        return nodes->device.count;
}

TEST(kubelet_waits_for_as_many_devices_as_the_type_has) {
        static const struct { const char *type; unsigned count; } types[] = {
                { "inf1.xlarge", 1 },   { "inf1.24xlarge", 16 }, { "inf2.24xlarge", 6 },  { "inf2.48xlarge", 12 },
                { "trn1.2xlarge", 1 },  { "trn1n.32xlarge", 16 }, { "trn2.3xlarge", 1 },  { "trn2u.48xlarge", 16 },
                { "p5.48xlarge", 0 },   { "m5.large", 0 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                ASSERT_EQ(nodes_awaited(types[i].type), types[i].count);
}

TEST(an_image_without_the_neuron_driver_only_gets_a_warning) {
        _cleanup_(sample_done) Sample s = sample_new();
        _cleanup_(plan_freep) Plan *plan = plan_of(&s, "trn1.32xlarge", false);
        ASSERT_TRUE(!plan_find(plan, "load-module:neuron") && !plan_find(plan, "await-devices:/dev/neuron*"));
        bool told = false;
        for (size_t i = 0; i < plan->warnings.n; i++)
                told |= streq(plan->warnings.items[i].code, "no-driver") &&
                        strstr(plan->warnings.items[i].text, "16 Neuron devices are not set up");
        ASSERT_TRUE(told);
}

TEST_MAIN
