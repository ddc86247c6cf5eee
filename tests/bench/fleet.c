/* SPDX-License-Identifier: Apache-2.0
 * How fast a fleet gets its names from an EC2 API that throttles, and its images from ECR. It prints tables of
 * what tests/include/fleet.h counts. tests/unit/test-fleet.c holds it to what is promised of it.
 * usage: fleet */
#include "fleet.h"

#include <stdio.h>

static double percent(size_t part, size_t whole) {
        return 100 * (double)part / (double)whole;
}

static void show(const char *name, FleetPolicy policy, size_t nodes) {
        FleetResult r = fleet_boot(policy, nodes, NULL);
        printf("  %6zu  %-16s", nodes, name);
        for (size_t m = 0; m < FLEET_MARKS; m++)
                printf("  %6.1f %%", percent(r.ready[m], nodes));
        printf("  %6.1f %%  %6.1f %%  %8.2f  %5u\n", percent(r.assumed, nodes), percent(r.lost, nodes),
               (double)r.requests / (double)nodes, r.most);
}

/* ---- images ---- */

static const char *const services[FLEET_OWN] = { "EC2", "logins", "manifests", "blobs" };

static void show_images(const char *name, const FleetLoad *load, size_t nodes) {
        FleetResult r = fleet_boot(fleet_ours, nodes, load);
        printf("  %6zu  %-16s", nodes, name);
        for (size_t m = 0; m < FLEET_MARKS && !load->warmed; m++)
                printf("  %6.1f %%", percent(r.pods[m], nodes));
        printf("%*s", load->warmed ? 10 * FLEET_MARKS : 0, "");
        for (size_t m = 0; m < FLEET_MARKS && load->images > 0; m++)
                printf("  %6.1f %%", percent(r.pulled[m], nodes * load->images));
        if (load->images > 0)
                printf("  %6.1f %%", percent(r.failed, nodes * load->images));
        printf("\n");
}

/* The requests by time: in each half minute the second with the most, and those that the service refused. */
static void show_rates(const FleetLoad *load, size_t nodes) {
        FleetResult r = fleet_boot(fleet_ours, nodes, load);
        printf("  %6s", "until");
        for (size_t i = 0; i < FLEET_OWN; i++)
                printf("  %10s  refused", services[i]);
        for (size_t from = 0, step = 30; from < 240; from += step) {
                printf("\n  %4zu s", from + step);
                for (size_t i = 0; i < FLEET_OWN; i++) {
                        size_t most = from;
                        for (size_t s = from; s < from + step; s++)
                                most = r.asked[i][s] > r.asked[i][most] ? s : most;
                        printf("  %8u/s  %5u/s", r.asked[i][most], r.refused[i][most]);
                }
        }
        printf("\n");
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
        static const FleetLoad none, one = { 1, 30, 0.3, false, false },
                               four = { 4, 30, 0.3, false, false },
                               own = { 1, 30, 0.3, true, false }, warmed = { 4, 30, 0.3, false, true };
        printf("simulated: the same with images of 30 blobs in prePull, beside the first pods of kubelet, by the\n"
               "default quotas of ECR; own: from a registry that gives %.1f GB/s, %.0f MB a blob; warmed: in a\n"
               "warm pool, whose nodes have the images when they start (none)\n",
               OWN_BYTES / 1e9, BLOB_BYTES / 1e6);
        printf("  %6s  %-16s  %8s  %8s  %8s  %8s  %8s  %8s  %8s\n", "nodes", "images", "pods 2m",
               "5 min", "10 min", "there 2m", "5 min", "10 min", "gave up");
        for (size_t i = 0; i < ARRAY_SIZE(fleets); i++) {
                show_images("none", &none, fleets[i]);
                show_images("one", &one, fleets[i]);
                show_images("four", &four, fleets[i]);
                show_images("one, own", &own, fleets[i]);
                show_images("four, warmed", &warmed, fleets[i]);
        }
        printf("the busiest second of each half minute, %zu nodes with one image\n", fleets[2]);
        show_rates(&one, fleets[2]);
        return 0;
}
