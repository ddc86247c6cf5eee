/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an IMEX service on this host: keys that differ from the defaults, or that others rely on. The
 * DRA driver uses the command socket in its host-managed mode
 * (https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/config.html;
 * kubernetes-sigs/dra-driver-nvidia-gpu, pkg/imex/imex.go). */
#include "plan/devices.h"
#include "base/str.h"

static const char settings[] =
        "# Written by nodestrap from spec.accelerator.nvidia.imex.\n" "LOG_LEVEL=4\n"
        "LOG_FILE_NAME=/var/log/nvidia-imex.log\n" "DAEMONIZE=1\n" "SERVER_PORT=50000\n"
        "IMEX_NODE_CONFIG_FILE=" IMEX_NODES "\n" "IMEX_WAIT_FOR_QUORUM=RECOVERY\n" "IMEX_CMD_ENABLED=1\n"
        "IMEX_CMD_PORT=50005\n" "IMEX_CMD_UNIX_DOMAIN_PATH=/etc/nvidia-imex/imex_ctrl.sock\n";

/* IMEX looks for its own host in the list. A name may be this host. */
static bool may_name_host(char *const *nodes, const Instance *i) {
        const char *const own[] = { i->ipv4, i->ipv6 };
        for (; nodes && *nodes; nodes++) {
                if (!address_is_valid(*nodes))
                        return true;
                for (size_t k = 0; k < ARRAY_SIZE(own); k++)
                        if (own[k] && streq(own[k], *nodes))
                                return true;
        }
        return false;
}

void plan_imex_files(Plan *plan, const Nvidia *nvidia, const Host *host) {
        _cleanup_(text_done) Text nodes = {};
        size_t n = strv_length(nvidia->imex_nodes);
        for (char **node = nvidia->imex_nodes; node && *node; node++)
                text_add(&nodes, "%s\n", *node);
        if (!host->modelled && !may_name_host(nvidia->imex_nodes, &host->instance))
                diag_warn_at(&plan->warnings, "imex-nodes", NULL, NVIDIA_PATH ".imex.nodes",
                             "does not have the address of this host: IMEX ignores such a list and does "
                             "not become ready; add the address");
        _free_ char *why = xasprintf("%zu-node NVLink domain; must match on every node", n);
        plan_file(plan, PHASE_CONFIG, "accelerator", IMEX_CONFIG,
                  "configure IMEX, with a command socket", settings, 0644);
        plan_file(plan, PHASE_CONFIG, "accelerator", IMEX_NODES, why, nodes.data ?: "", 0644);
}
