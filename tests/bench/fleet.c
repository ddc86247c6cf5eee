/* SPDX-License-Identifier: Apache-2.0
 * How fast a fleet gets its names from an EC2 API that throttles: a table on stdout of what tests/include/fleet.h
 * counts. tests/unit/test-fleet.c holds it to what is promised of it.
 * usage: fleet */
#include "fleet.h"

#include <stdio.h>

static double percent(size_t part, size_t whole) {
        return 100 * (double)part / (double)whole;
}

static void show(const char *name, FleetPolicy policy, size_t nodes) {
        FleetResult r = fleet_boot(policy, nodes);
        printf("  %6zu  %-16s", nodes, name);
        for (size_t m = 0; m < FLEET_MARKS; m++)
                printf("  %6.1f %%", percent(r.ready[m], nodes));
        printf("  %6.1f %%  %6.1f %%  %8.2f  %5u\n", percent(r.assumed, nodes), percent(r.lost, nodes),
               (double)r.requests / (double)nodes, r.most);
}

int main(void) {
        static const size_t fleets[] = { 18, 1000, 10000 };
        printf("simulated: nodes that boot within %.0f s and ask a bucket of %.0f tokens, refilled by %.0f a "
               "second\n",
               (double)SPREAD / USEC_PER_SEC, BUCKET, REFILL);
        printf("  %6s  %-16s  %8s  %8s  %8s  %8s  %8s  %8s  %5s\n", "nodes", "policy", "2 min", "5 min", "10 min",
               "assumed", "gave up", "requests", "most");
        for (size_t i = 0; i < ARRAY_SIZE(fleets); i++) {
                show("nodestrap", fleet_ours, fleets[i]);
                show("strict-node-name", fleet_strict, fleets[i]);
                show("nodeadm", fleet_peers, fleets[i]);
        }
        return 0;
}
