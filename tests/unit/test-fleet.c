/* SPDX-License-Identifier: Apache-2.0
 * A fleet of ten thousand nodes boots within a minute beside an EC2 API that answers twenty of them a
 * second. ECR has its quotas, too. Chance moves these figures by less than a hundredth. */
#include "fleet.h"
#include "test.h"

#define NODES 10000u

TEST(all_nodes_are_ready_in_two_minutes_with_three_requests_each) {
        FleetResult r = fleet_boot(fleet_ours, NODES, NULL);
        ASSERT_EQ(r.ready[0], NODES);
        ASSERT_EQ(r.lost, 0);
        ASSERT_TRUE(r.requests <= 3UL * NODES);
        ASSERT_TRUE(r.most <= 6);
}

/* With each answer of EC2 a node has a name that it need not assume. */
TEST(nodes_use_all_answers_of_ec2) {
        FleetResult r = fleet_boot(fleet_ours, NODES, NULL);
        size_t answers = (size_t)(BUCKET + REFILL * (double)SPREAD / USEC_PER_SEC);
        ASSERT_TRUE(NODES - r.assumed >= answers);
}

TEST(a_thousand_nodes_assume_no_name) {
        FleetResult r = fleet_boot(fleet_ours, 1000, NULL);
        ASSERT_EQ(r.assumed + r.lost, 0);
        ASSERT_EQ(r.requests, 1000);
}

/* A node that waits for EC2 waits for ten thousand answers; there are 2500 in two minutes. */
TEST(all_nodes_that_wait_for_ec2_get_their_name) {
        FleetResult r = fleet_boot(fleet_strict, NODES, NULL);
        ASSERT_EQ(r.lost, 0);
        ASSERT_TRUE(r.ready[0] > NODES * 24UL / 100);
        ASSERT_EQ(r.ready[2], NODES);
        ASSERT_TRUE(r.requests < 15UL * NODES);
}

/* ---- images ---- */

static const FleetLoad nothing, one = { 1, 30, 0.3, false, false },
                       four = { 4, 30, 0.3, false, false };

TEST(no_boot_waits_for_images) {
        FleetResult without = fleet_boot(fleet_ours, NODES, &nothing),
                    with = fleet_boot(fleet_ours, NODES, &four);
        ASSERT_EQ(with.ready[0], without.ready[0]);
        ASSERT_EQ(with.ready[0], NODES);
        ASSERT_TRUE(with.requests <= 3UL * NODES);
}

TEST(a_thousand_nodes_stay_below_every_quota) {
        FleetResult r = fleet_boot(fleet_ours, 1000, &four);
        for (size_t i = FLEET_TOKENS; i < FLEET_OWN; i++)
                ASSERT_EQ(fleet_sum(r.refused[i]), 0);
        ASSERT_TRUE(fleet_peak(r.asked[FLEET_BLOBS]) < 3000);
        ASSERT_EQ(r.pods[0], 1000);
        ASSERT_EQ(r.pulled[0], 4000);
}

/* Two logins a node: kubelet has its own cache. */
TEST(no_login_of_a_node_is_refused) {
        FleetResult r = fleet_boot(fleet_ours, NODES, &one);
        ASSERT_EQ(fleet_sum(r.refused[FLEET_TOKENS]), 0);
        ASSERT_EQ(fleet_sum(r.asked[FLEET_TOKENS]), 2UL * NODES);
        ASSERT_TRUE(fleet_peak(r.asked[FLEET_TOKENS]) < 450);
}

/* 420 000 blobs, of which ECR gives 3000 a second. */
TEST(the_first_pods_come_soon_beside_too_many_pulls) {
        FleetResult r = fleet_boot(fleet_ours, NODES, &one);
        ASSERT_TRUE(fleet_sum(r.refused[FLEET_BLOBS]) > 0);
        ASSERT_TRUE(r.pods[0] > NODES * 75UL / 100);
        ASSERT_EQ(r.pods[1], NODES);
        ASSERT_EQ(r.failed, 0);
        ASSERT_TRUE(r.pulled[2] > NODES * 90UL / 100);
}

TEST(four_images_take_longer_but_arrive) {
        FleetResult r = fleet_boot(fleet_ours, NODES, &four);
        ASSERT_TRUE(r.pods[1] > NODES * 90UL / 100);
        ASSERT_EQ(r.pods[2], NODES);
        ASSERT_EQ(r.failed, 0);
        ASSERT_TRUE(r.pulled[2] > 4UL * NODES * 85 / 100);
}

TEST_MAIN
