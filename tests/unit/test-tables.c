/* SPDX-License-Identifier: Apache-2.0
 * The tables of conf/: known rows, order, and unknown names. */
#include "host/tables.h"

#include "base/str.h"
#include "test.h"

static unsigned max_pods(const char *type) {
        unsigned enis = 0, addresses = 0;
        if (!eni_limits_find(type, &enis, &addresses))
                return 0;
        return enis * (addresses - 1) + 2;
}

TEST(max_pods_of_known_types) {
        ASSERT_EQ(max_pods("g4dn.xlarge"), 29);
        ASSERT_EQ(max_pods("p5.48xlarge"), 100);
        ASSERT_EQ(max_pods("p6-b200.48xlarge"), 198);
        ASSERT_EQ(max_pods("g7e.48xlarge"), 632);
        ASSERT_EQ(max_pods("p4d.24xlarge"), 737);
        ASSERT_EQ(max_pods("m5.large"), 29);
        ASSERT_EQ(max_pods("a1.2xlarge"), 58);          /* first row */
        ASSERT_EQ(max_pods("z1d.xlarge"), 58);          /* last row */
}

TEST(unknown_types_have_no_eni_limits) {
        static const char *const unknown[] = { "", "m5", "m5.", "m5.largest", "p6e-gb200.36xlarge", "p3.2xlarge", "zz9.large", "0", ".large", "c6.large", "m5.xlarge.",
                                               "a-name-that-is-far-longer-than-any-row.of-the-table" };
        for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
                unsigned enis = 77, addresses = 78;
                ASSERT_TRUE(!eni_limits_find(unknown[i], &enis, &addresses));
                ASSERT_EQ(enis, 77);
                ASSERT_EQ(addresses, 78);
        }
}

TEST(network_cards_are_found_by_type) {
        ASSERT_EQ(network_cards_find("p5.48xlarge"), 32);
        ASSERT_EQ(network_cards_find("p6-b300.48xlarge"), 17);
        ASSERT_EQ(network_cards_find("g6.xlarge"), 1);
        ASSERT_EQ(network_cards_find("m5.large"), 1);           /* from the table of ENI limits */
        ASSERT_EQ(network_cards_find("c6in.32xlarge"), 2);
        ASSERT_EQ(network_cards_find("u7in-32tb.224xlarge"), 2);
        ASSERT_EQ(network_cards_find("zz9.large"), 0);
        ASSERT_EQ(network_cards_find(NULL), 0);
}

TEST(eni_limits_are_complete_and_sorted) {
        _strv_ char **types = eni_limits_types();
        ASSERT_EQ(strv_length(types), n_eni_limits);
        for (size_t i = 1; i < n_eni_limits; i++)
                ASSERT_TRUE(strcmp(types[i - 1], types[i]) < 0);
        for (size_t i = 0; i < n_eni_limits; i++) {
                ASSERT_TRUE(max_pods(types[i]) >= 2);
                ASSERT_TRUE(strchr(types[i], '.'));
        }
}

TEST(instance_types_are_sorted_and_found) {
        size_t n = n_instance_types;
        const InstanceType *all = instance_types;
        for (size_t i = 0; i < n; i++) {
                ASSERT_TRUE(i == 0 || strcmp(all[i - 1].name, all[i].name) < 0);
                ASSERT_TRUE(instance_type_find(all[i].name) == &all[i]);
                ASSERT_TRUE(!all[i].gpus || *all[i].gpu_model);
                ASSERT_TRUE(!*all[i].gpu_devices == !startswith(all[i].gpu_model, "nvidia-"));
                ASSERT_TRUE(all[i].nvswitch);
        }
        ASSERT_TRUE(!instance_type_find("m5.large"));
        ASSERT_TRUE(!instance_type_find(""));
        ASSERT_TRUE(!instance_type_find(NULL));
}

TEST(p5_48xlarge_has_its_known_numbers) {
        const InstanceType *t = instance_type_find("p5.48xlarge");
        ASSERT_EQ(t->vcpus, 192);
        ASSERT_EQ(t->memory_gib, 2048);
        ASSERT_EQ(t->gpus, 8);
        ASSERT_STREQ(t->gpu_model, "nvidia-h100-80gb");
        ASSERT_EQ(*t->gpu_devices, 0x2330);
        ASSERT_EQ(t->network_cards, 32);
        ASSERT_EQ(t->max_efa, 32);
        ASSERT_EQ(t->disks, 8);
        ASSERT_EQ(t->disk_gb, 3800);
        ASSERT_STREQ(t->nvswitch, "pci");
        ASSERT_STREQ(t->arch, "x86_64");
        ASSERT_EQ(t->numa_nodes, 2);
}

TEST(p3_types_have_their_known_numbers) {
        const InstanceType *t = instance_type_find("p3.16xlarge");
        ASSERT_EQ(t->gpus, 8);
        ASSERT_EQ(*t->gpu_devices, 0x1db1);
        ASSERT_STREQ(t->nvswitch, "none");      /* NVLink from GPU to GPU */
        ASSERT_EQ(t->max_efa, 0);
        ASSERT_EQ(t->disks, 0);
        ASSERT_EQ(instance_type_find("p3.2xlarge")->gpus, 1);
        ASSERT_EQ(instance_type_find("p3.8xlarge")->gpus, 4);
}

TEST(each_gpu_model_has_its_mig_profiles) {
        static const struct { const char *gpu; size_t n; const char *largest; } models[] = {
                { "b200", 7, "7g.180gb" }, { "b300", 7, "7g.269gb" }, { "gb200", 7, "7g.186gb" }, { "gb300", 7, "7g.278gb" }, { "rtx-pro-6000", 10, "4g.96gb+gfx" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
                size_t n = 0;
                const MigProfile *all = mig_profiles_of(models[i].gpu, &n);
                ASSERT_EQ(n, models[i].n);
                ASSERT_STREQ(all[0].name, models[i].largest);
        }
}

/* The rows of network cards agree with those of types. */
TEST(network_cards_agree_with_the_table_of_types) {
        size_t n = 0, seen = 0;
        ASSERT_TRUE(!network_cards_of("g6.xlarge", &n) && n == 0);
        for (size_t i = 0; i < n_instance_types; i++) {
                const InstanceType *t = &instance_types[i];
                const NetworkCards *rows = network_cards_of(t->name, &n);
                int cards = 0, efa = 0;
                for (size_t k = 0; k < n; k++)
                        for (unsigned card = rows[k].first; card <= rows[k].last; card += rows[k].step) {
                                cards++;
                                efa += rows[k].efa;
                                ASSERT_TRUE(rows[k].efa || rows[k].ena);
                                ASSERT_TRUE(rows[k].gpu < (int)t->gpus);
                                ASSERT_EQ(rows[k].ena, card % (unsigned)t->card_step == 0);
                        }
                seen += n;
                if (n > 0) {
                        ASSERT_EQ(cards, t->network_cards);
                        ASSERT_EQ(efa, t->max_efa);
                }
        }
        ASSERT_EQ(seen, n_network_cards);
}

TEST(unknown_numbers_are_not_zero) {
        const InstanceType *t = instance_type_find("p6e-gb200.36xlarge");
        ASSERT_EQ(t->gpus, 4);
        ASSERT_EQ(t->disks, 3);
        ASSERT_EQ(t->disk_gb, 7500);
        ASSERT_EQ(t->max_efa, 16);
        ASSERT_EQ(t->network_cards, 17);
        ASSERT_TRUE(!t->unconfirmed);
        ASSERT_STREQ(t->nvswitch, "nvl5-offhost");
        ASSERT_STREQ(t->arch, "arm64");
        t = instance_type_find("p6e-gb300.36xlarge");
        ASSERT_TRUE(t->unconfirmed);
        ASSERT_EQ(t->max_efa, -1);
        ASSERT_EQ(t->gpus, 4);
        ASSERT_EQ(t->disks, -1);
        ASSERT_EQ(t->numa_nodes, -1);
        ASSERT_EQ(t->gpu_devices[0], 0x31c2);
        ASSERT_EQ(t->gpu_devices[1], 0x31c3);
        t = instance_type_find("hpc6a.48xlarge");
        ASSERT_EQ(t->disks, 0);
        ASSERT_TRUE(!*t->gpu_model);
        ASSERT_TRUE(!*instance_type_find("trn2.3xlarge")->arch);
}

TEST(partitions_are_found_by_region) {
        ASSERT_STREQ(partition_find("us-west-2")->domain, "amazonaws.com");
        ASSERT_STREQ(partition_find("cn-northwest-1")->domain, "amazonaws.com.cn");
        ASSERT_STREQ(partition_find("us-gov-west-1")->domain, "amazonaws.com");
        ASSERT_STREQ(partition_find("us-iso-east-1")->domain, "c2s.ic.gov");
        ASSERT_STREQ(partition_find("us-isob-east-1")->domain, "sc2s.sgov.gov");
        ASSERT_STREQ(partition_find("eu-isoe-west-1")->domain, "cloud.adc-e.uk");
        ASSERT_STREQ(partition_find("us-isof-south-1")->domain, "csp.hci.ic.gov");
        ASSERT_STREQ(partition_find("eusc-de-east-1")->domain, "amazonaws.eu");
        ASSERT_STREQ(partition_find("")->domain, "amazonaws.com");
        ASSERT_STREQ(partition_find("us-gov-west-1")->name, "aws-us-gov");
        ASSERT_STREQ(partition_find("us-west-2")->dual_stack, "api.aws");
}

TEST_MAIN
