/* SPDX-License-Identifier: Apache-2.0
 * Does maxPodsExpression work for some instance type? If not it is a warning, as in the plan: a node with the
 * standard number of pods is better than none. */
#include "config/config.h"

#include <limits.h>

/* m5.large, m5.4xlarge, p5.48xlarge */
static const struct { int64_t enis, addresses, cpus, memory_mib; } samples[] = {
        { .enis = 3, .addresses = 10, .cpus = 2, .memory_mib = 8192 },
        { .enis = 8, .addresses = 30, .cpus = 16, .memory_mib = 65536 },
        { .enis = 2, .addresses = 50, .cpus = 192, .memory_mib = 2097152 },
};

int config_check_expression(const Config *config, Diag *diag) {
        const char *text = config->kubelet.max_pods_expression, *path = "spec.kubelet.maxPodsExpression";
        _free_ char *why = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                const ExprVariable variables[] = {
                        { "default_enis", samples[i].enis },
                        { "ips_per_eni", samples[i].addresses },
                        { "max_pods", samples[i].enis * (samples[i].addresses - 1) + 2 },
                        { "vcpus", samples[i].cpus },
                        { "memory_mib", samples[i].memory_mib },
                        { "physical_memory_mib", samples[i].memory_mib },
                };
                int64_t value = 0;
                free(TAKE_PTR(why));
                if (!text || !*text ||
                    (expr_evaluate(text, variables, ARRAY_SIZE(variables), &value, &why) >= 0 && value > 0 &&
                     value <= INT_MAX))
                        return 0;
        }
        diag_warn_at(diag, "max-pods-expression", config_position(config, path), path,
                     "%s; nodestrap uses the default number of pods",
                     why ?: "it gives no number from 1 to 2147483647 for m5.large, m5.4xlarge or "
                            "p5.48xlarge");
        return 0;
}
