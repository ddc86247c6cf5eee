/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of kubelet and containerd, compared. */
#include "plan/planner.h"

bool version_at_least(const char *version, unsigned major, unsigned minor) {
        char *end = NULL;
        unsigned long a = version ? strtoul(version, &end, 10) : 0;
        if (!version || end == version || *end != '.')
                return false;
        unsigned long b = strtoul(end + 1, NULL, 10);
        return a > major || (a == major && b >= minor);
}
