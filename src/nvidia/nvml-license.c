/* SPDX-License-Identifier: Apache-2.0
 * nvmlDeviceGetGridLicensableFeatures, layout of version 4 (https://docs.nvidia.com/deploy/nvml-api,
 * nvmlGridLicensableFeatures_t; NVIDIA/go-nvml:gen/nvml/nvml.h). */
#include "nvidia/nvml.h"

#include "base/library.h"
#include "base/str.h"

#include <stdio.h>

#define FEATURES_MAX 3                  /* NVML_GRID_LICENSE_FEATURE_MAX_COUNT */

typedef struct Feature {                /* nvmlGridLicensableFeature_t */
        unsigned code, licensed;
        char info[128], product[128];
        unsigned enabled;
        struct {
                unsigned year;
                unsigned short month, day, hour, minute, second;
                unsigned char status;
        } expiry;
} Feature;
typedef struct Features {               /* nvmlGridLicensableFeatures_t */
        int supported;
        unsigned n;
        Feature items[FEATURES_MAX];
} Features;
_Static_assert(sizeof(Feature) == 284 && sizeof(Features) == 860, "as nvml.h has them");

/* One of several features has the licence. */
int nvml_license(NvmlDevice device, NvmlLicense *ret) {
        struct { unsigned (*features)(NvmlDevice, Features *); } nvml = {};
        _free_ char *why = NULL;
        Features all = {};
        /* nvml_open() has loaded the library */
        int r = library_load("libnvidia-ml.so.1", "?nvmlDeviceGetGridLicensableFeatures_v4\0", NULL, &nvml,
                             &why),
            code = r >= 0 && nvml.features ? (int)nvml.features(device, &all) : NVML_FUNCTION_NOT_FOUND;
        if (code != NVML_OK)
                return code;
        *ret = (NvmlLicense){ .supported = all.supported };
        for (unsigned i = 0; i < MIN(all.n, FEATURES_MAX) && !ret->licensed; i++) {
                const Feature *f = &all.items[i];
                ret->licensed = f->licensed;
                if (f->licensed || f->enabled)
                        snprintf(ret->product, sizeof ret->product, "%.*s", (int)sizeof f->product - 1,
                                 f->product);
        }
        return NVML_OK;
}
