/* SPDX-License-Identifier: Apache-2.0 */
/* maxPods: from the user, else from network interface addresses, changed by maxPodsExpression. As in nodeadm
 * (internal/kubelet/eni_max_pods.go, maxpods/), but reservations use a user-set number, too. */
#include "plan/planner.h"
#include "base/str.h"
#include "config/kubelet.h"
#include <limits.h>

#define EXPRESSION       "spec.kubelet.maxPodsExpression"
#define DEFAULT_MAX_PODS 110    /* default of kubelet */

/* As in kubelet: flags win over files, the last flag wins. */
static bool from_user(const Config *config, unsigned *ret, const char **ret_source) {
        bool found = false;
        json_t *setting = json_object_get(config->kubelet.config, "maxPods");
        json_int_t value = json_integer_value(setting);
        if (json_is_integer(setting) && value > 0 && value <= INT_MAX) {
                *ret = (unsigned)value;
                *ret_source = "user setting";
                found = true;
        }
        _strv_ char **words = kubelet_words(config->kubelet.flags);
        for (char **w = words; w && *w; w++) {
                const char *number = startswith(*w, "--max-pods=") ? *w + strlen("--max-pods=")
                        : streq(*w, "--max-pods") && w[1] ? w[1] : NULL;
                uint64_t n;
                if (number && parse_u64(number, &n) >= 0 && n > 0 && n <= INT_MAX) {
                        *ret = (unsigned)n;
                        *ret_source = "user flag";
                        found = true;
                }
        }
        return found;
}

static bool are_limits_known(const Host *host) {
        return host->eni_limits_known && host->addresses_per_eni > 0;
}

static unsigned standard(const Host *host, const char **ret_source, Diag *warnings) {
        if (!are_limits_known(host)) {
                diag_warn(warnings, "unknown-eni-limits",
                          "the pod limit of %s is not known (%s), so kubelet gets the default of %d; set "
                          "spec.kubelet.config.maxPods", host->instance.type ?: "this instance type",
                          host->eni_limits_why ?: "its interfaces are not known", DEFAULT_MAX_PODS);
                *ret_source = "assumed";
                return DEFAULT_MAX_PODS;
        }
        *ret_source = "IP limit";
        /* 2: kube-proxy and the CNI use the address of the node */
        return host->max_enis * (host->addresses_per_eni - 1) + 2;
}

static void apply_expression(MaxPods *pods, const Config *config, const Host *host, Diag *warnings) {
        int64_t mib = (int64_t)(memory_of_cpus(host) >> 20);
        const ExprVariable variables[] = {
                { "default_enis", host->max_enis },
                { "ips_per_eni", host->addresses_per_eni },
                { "max_pods", pods->pods },
                { "vcpus", host->type && host->type->vcpus ? host->type->vcpus : host->cpus },
                { "physical_memory_mib", mib }, { "memory_mib", mib },  /* the older name in nodeadm */
        };
        _free_ char *why = NULL;
        int64_t value = 0;
        int r = expr_evaluate(config->kubelet.max_pods_expression, variables, ARRAY_SIZE(variables), &value,
                              &why);
        if (r >= 0 && value > 0 && value <= INT_MAX)
                *pods = (MaxPods) { (unsigned)value, "maxPodsExpression" };
        else
                diag_warn_at(warnings, "max-pods-expression", config_position(config, EXPRESSION),
                             EXPRESSION, "%s; kubelet gets the default of %u",
                             r < 0 ? why ?: "it cannot be evaluated"
                                   : "its result is not a number from 1 to 2147483647", pods->pods);
}

MaxPods max_pods_choose(const Config *config, const Host *host, Diag *warnings) {
        MaxPods pods = {};
        if (from_user(config, &pods.pods, &pods.source))
                return pods;
        pods.pods = standard(host, &pods.source, warnings);
        if (config->kubelet.max_pods_expression && are_limits_known(host))
                apply_expression(&pods, config, host, warnings);
        else if (config->kubelet.max_pods_expression)
                diag_warn_at(warnings, "max-pods-expression", config_position(config, EXPRESSION), EXPRESSION,
                             "is not evaluated, so kubelet gets the default of %u. nodestrap does "
                             "not know how many interfaces and addresses this instance type supports; set "
                             "spec.kubelet.config.maxPods", pods.pods);
        return pods;
}
