/* SPDX-License-Identifier: Apache-2.0
 * The name of a region → its partition, from conf/partitions.csv. */
#include "aws/internal.h"

const Partition *partition_find(const char *region) {
        size_t i = 0;
        while (i + 1 < n_partitions && !startswith(region, partitions[i].prefix))
                i++;
        return &partitions[i];
}

/* Regions of "aws" have a direction as second word (us-west-2, ap-southeast-1), those of other partitions a
 * name of their own (us-iso-east-1). */
bool region_tells_partition(const char *region) {
        static const char directions[][8] = { "north", "south", "east", "west", "central" };
        const char *second = strchr(region, '-');
        return *partition_find(region)->prefix ||
               (second && ANY(d, directions, ARRAY_SIZE(directions), startswith(second + 1, *d)));
}

bool region_is_valid(const char *region) {
        size_t n = strspn(region, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");
        return n > 0 && n < 64 && !region[n] && region[0] != '-' && region[n - 1] != '-';
}
