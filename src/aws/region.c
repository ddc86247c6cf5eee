/* SPDX-License-Identifier: Apache-2.0
 * The name of a region → its partition, from conf/partitions.csv. */
#include "aws/internal.h"

const Partition *partition_find(const char *region) {
        size_t i = 0;
        while (i + 1 < n_partitions && !startswith(region, partitions[i].prefix))
                i++;
        return &partitions[i];
}

bool region_is_valid(const char *region) {
        size_t n = strspn(region, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");
        return n > 0 && n < 64 && !region[n] && region[0] != '-' && region[n - 1] != '-';
}
