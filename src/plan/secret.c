/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the user's that hold a secret: their file is for root alone, and is shown nowhere. */
#include "plan/planner.h"
#include <strings.h>

/* registry.headers and registry.configs.*.auth of containerd; headers of kubelet's static pod URL;
 * process.env of an OCI spec. */
static const char *const secret_keys[] = {
        "auth",    "password",      "identitytoken",      "token", "secret", "header",
        "headers", "authorization", "staticPodURLHeader", "env",
};

bool key_is_secret(const char *key) {
        for (size_t i = 0; i < ARRAY_SIZE(secret_keys); i++)
                if (strcasecmp(key, secret_keys[i]) == 0)
                        return true;
        return false;
}

/* Depth is bounded by the decoders (DOC_MAX_DEPTH). */
bool json_holds_secret(const json_t *json) {
        const char *key;
        json_t *value;
        size_t i;
        json_object_foreach((json_t *)json, key, value)
                if ((key_is_secret(key) && !(streq(key, "authorization") && json_is_object(value))) ||
                    json_holds_secret(value))
                        return true;
        json_array_foreach(json, i, value)
                if (json_holds_secret(value))
                        return true;
        return false;
}
