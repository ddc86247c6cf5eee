/* SPDX-License-Identifier: Apache-2.0
 * A fleet of ten thousand nodes boots within a minute beside an EC2 API that answers twenty of them a
 * second. Chance moves these figures by less than a hundredth. */
#include "fleet.h"
#include "test.h"

#define NODES 10000u

TEST(all_are_ready_in_two_minutes_with_three_requests_each) {
        FleetResult r = fleet_boot(fleet_ours, NODES);
        ASSERT_EQ(r.ready[0], NODES);
        ASSERT_EQ(r.lost, 0);
        ASSERT_TRUE(r.requests <= 3UL * NODES);
        ASSERT_TRUE(r.most <= 6);
}

/* Every answer is a name that no node had to assume. */
TEST(no_answer_is_left) {
        FleetResult r = fleet_boot(fleet_ours, NODES);
        size_t answers = (size_t)(BUCKET + REFILL * (double)SPREAD / USEC_PER_SEC);
        ASSERT_TRUE(NODES - r.assumed >= answers);
}

TEST(a_few_nodes_assume_nothing) {
        FleetResult r = fleet_boot(fleet_ours, 1000);
        ASSERT_EQ(r.assumed + r.lost, 0);
        ASSERT_EQ(r.requests, 1000);
}

/* A node that waits for EC2 waits for ten thousand answers; there are 2500 in two minutes. */
TEST(all_that_wait_for_ec2_have_their_name_in_the_end) {
        FleetResult r = fleet_boot(fleet_strict, NODES);
        ASSERT_EQ(r.lost, 0);
        ASSERT_TRUE(r.ready[0] > NODES * 24UL / 100);
        ASSERT_EQ(r.ready[2], NODES);
        ASSERT_TRUE(r.requests < 15UL * NODES);
}

TEST_MAIN
