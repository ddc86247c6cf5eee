/* SPDX-License-Identifier: Apache-2.0
 * MIG profiles (conf/mig-profiles.csv) */
#include "host/tables.h"

const MigProfile *mig_profiles_of(const char *gpu, size_t *ret_n) {
        const MigProfile *first = NULL;
        *ret_n = 0;
        for (size_t i = 0; i < n_mig_profiles; i++)
                if (streq(mig_profiles[i].gpu, gpu)) {
                        first = first ?: &mig_profiles[i];
                        (*ret_n)++;
                }
        return first;
}
