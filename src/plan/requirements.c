/* SPDX-License-Identifier: Apache-2.0 */
/* conf/requirements.csv against the machine versions. Versions that are not known meet every row. */
#include "base/str.h"
#include "host/tables.h"
#include "plan/devices.h"

/* code: of a row that fails */
typedef struct Program { const char *name, *code, *fact; Cause cause; } Program;
static const Program programs[] = {
        [COMPONENT_KUBELET] = { "kubelet", .code = "kubelet-too-old", "programs.kubelet", CAUSE_VERSION },
        [COMPONENT_CONTAINERD] = { "containerd", .code = "containerd-too-old", "programs.containerd",
                                   CAUSE_UNIT },
        [COMPONENT_DRIVER] = { "NVIDIA driver", .code = "driver-version", "programs.driver", CAUSE_DRIVER },
        [COMPONENT_KERNEL] = { "Linux", .code = "kernel-too-old", "kernel", CAUSE_FABRIC_MANAGER },
};

/* NULL: not known. A model assumes those of a recent image, and what is assumed proves nothing. */
static const char *version_of(const Host *host, size_t component) {
        const char *const versions[] = { host->kubelet_version, host->containerd_version,
                                         host->driver_version, host->kernel };
        return strv_contains(host->assumed, programs[component].fact) ? NULL : versions[component];
}

static bool holds(const Config *config, const Host *host, const char *word) {
        const Nvidia *n = &config->nvidia;
        const GpuModel *m = host->gpus.model;
        bool tray = host->gpus.class == GPU_CLASS_TRAY, coherent = gpus_are_coherent(host),
             on = n->mode != NVIDIA_OFF;
        const struct { const char *word; bool holds; } features[] = {
                { "cdmm", on && coherent && n->memory == MEMORY_DRIVER },
                { "cdmm-auto", on && coherent && n->memory == MEMORY_AUTO },
                { "compute-domains", on && tray && (n->imex == IMEX_AUTO || n->imex == IMEX_DRA) },
                { "efa", plan_uses_efa(config, host) },
                { "mig", on && n->n_mig > 0 && !nvidia_mig_is_off(n) },
        };
        static const char kubelet[] = "kubelet-";
        const char *version = version_of(host, COMPONENT_KUBELET);
        if (startswith(word, kubelet))
                return version && version_compare(version, word + strlen(kubelet)) >= 0;
        return (m && streq(m->name, word)) ||
               PICK(f, features, ARRAY_SIZE(features), streq(f->word, word), f->holds, false);
}

static bool is_about(const Requirement *r, const Config *config, const Host *host) {
        bool all = r->component < ARRAY_SIZE(programs) &&
                   !(r->component >= COMPONENT_DRIVER && config->nvidia.mode == NVIDIA_OFF);
        for (const char *rest = r->what; all && *rest;) {
                _free_ char *word = str_cut(&rest, "+");
                all = holds(config, host, word);
        }
        return all;
}

/* On a machine a step or a daemon finds out; a row that is wrong must not keep a node away. */
static bool is_certain(const Requirement *r, const Plan *plan, const Config *config, const Host *host) {
        return r->fails && host->modelled && !plan->as_nodeadm &&
               !(r->component >= COMPONENT_DRIVER && config->failure_policy == FAILURE_JOIN_TAINTED);
}

void plan_requirements(Plan *plan, const Config *config, const Host *host) {
        bool failed[_COMPONENT_MAX] = {};       /* then further warnings add nothing */
        for (const Requirement *r = requirements; r < requirements + n_requirements; r++) {
                if (failed[r->component] || !is_about(r, config, host))
                        continue;
                const Program *p = &programs[r->component];
                const char *version = version_of(host, r->component);
                if (!requirement_misses(r, version))
                        continue;
                _free_ char *advice = requirement_advice(r);
                diag_warn(&plan->warnings, r->fails ? p->code : "requirement", "%s %s %s; %s", p->name,
                          version, r->why, advice);
                failed[r->component] = r->fails;
                if (is_certain(r, plan, config, host))
                        diag_foretell(&plan->warnings, p->cause);
        }
}
