/* SPDX-License-Identifier: Apache-2.0
 * Links in /etc/systemd/system → enabled units of nodeadm beside ours, as in the EKS image
 * (awslabs/amazon-eks-ami: templates/al2023/provisioners/install-nodeadm.sh). Drop-ins in
 * units/nodeadm-*.service.d keep them from running, but it is a mistake. */
#include "host/detect.h"

#include "base/paths.h"
#include "base/str.h"

#define WANTS           UNIT_DIR "/multi-user.target.wants"
#define UNIT_FILE_LIMIT 65536           /* only empty or not matters */

/* A mask: a link to /dev/null, or an empty file (systemd.unit(5)) */
static bool is_masked(const Root *root, const char *unit) {
        _free_ char *path = xasprintf(UNIT_DIR "/%s", unit), *target = NULL,
                    *text = NULL;
        size_t size = 0;
        if (root_link_name(root, path, &target) >= 0 && streq(target, "null"))
                return true;
        return root_read(root, path, UNIT_FILE_LIMIT, &text, &size) >= 0 && size == 0;
}

char **detect_bootstrappers(const Root *root) {
        static const char *const others[] = { "nodeadm-config.service", "nodeadm-run.service" };
        _strv_ char **enabled = NULL;
        char **found = NULL;
        if (root_list(root, WANTS, &enabled) < 0 ||
            !(strv_contains(enabled, "nodestrap-config.service") ||
              strv_contains(enabled, "nodestrap-run.service")))
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (strv_contains(enabled, others[i]) && !is_masked(root, others[i]))
                        strv_add(&found, others[i]);
        return found;
}
