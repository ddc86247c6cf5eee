/* SPDX-License-Identifier: Apache-2.0
 * Settings that cost GPUs time: one warning about all of them, and a step for those that nodestrap sets. */
#include "plan/devices.h"
#include "base/str.h"

#define PATH "spec.instance.tuning"
#define JUMBO 9001U     /* docs.aws.amazon.com/AWSEC2/latest/UserGuide/network_mtu.html: all current types */

static void add_fault(Text *t, const char *text) {
        text_add(t, "%s%s", t->size > 0 ? "; " : "", text);
}

static void add_links(Text *t, const Host *host) {
        unsigned n = 0;
        const Nic *first = NULL;
        for (const Nic *nic = host->nics; nic < host->nics + host->n_nics; nic++)
                if (nic->driver && streq(nic->driver, "ena") && nic->mtu < JUMBO && n++ == 0)
                        first = nic;
        if (!first)
                return;
        _free_ char *more = n > 1 ? xasprintf(" and %u more", n - 1) : xstrdup(""),
                    *text = xasprintf("the MTU of %s%s is %u, not %u (spec.instance.network.mtu)",
                                      first->name, more, first->mtu, JUMBO);
        add_fault(t, text);
}

static void tell_faults(Plan *plan, const InstanceOptions *o, const Host *host, bool sets) {
        _cleanup_(text_done) Text t = {};
        const HostTuning *all = &host->tuning;
        for (size_t i = 0; i < all->n_faults; i++) {
                const TuningRule *rule = all->faults[i].rule;
                if (!(sets && rule->ours) && !(rule->path && plan_sets(plan, rule->path)))
                        add_fault(&t, all->faults[i].text);
        }
        /* kubelet refuses swap; with failSwapOn: false, daemons and some pods swap
         * (kubernetes.io/docs/concepts/cluster-administration/swap-memory-management) */
        if (host->kernel_state.swap && !plan_kubelet_switch(plan, "failSwapOn", true))
                add_fault(&t, "swap is on (swapoff -a)");
        if (o->mtu == 0)
                add_links(&t, host);
        if (t.size > 0)
                diag_warn_at(&plan->warnings, "host-tuning", NULL, PATH,
                             "settings of this machine slow down its GPUs: %s", t.data);
}

void plan_tuning(Plan *plan, const Config *config, const Host *host) {
        const InstanceOptions *o = &config->instance;
        const HostTuning *all = &host->tuning;
        bool gpus = MAX(host->gpus.count, host->gpus.expected) > 0, asked = gpus && o->tuning == TUNING_GPU,
             sets = asked && !all->owner;
        if (asked && all->owner)
                diag_warn_at(&plan->warnings, "tuning-owner", NULL, PATH,
                             "%s sets the CPU governor and idle states, so nodestrap does not: disable it "
                             "(systemctl disable --now %s), or choose a low-latency profile",
                             all->owner, all->owner);
        if (sets || all->set) {
                Action *a = plan_add(plan, ACTION_SET_TUNING, PHASE_DEVICES, "system", "cpus",
                                     sets ? "low latency for GPUs and NCCL"
                                          : "restore the settings that tuning: gpu changed");
                a->with = sets ? xasprintf("performance, idle states up to %d us", TUNING_IDLE_USEC)
                               : xstrdup("as before");
                a->lenient = true;
        }
        if (gpus && o->tuning != TUNING_OFF && all->known)
                tell_faults(plan, o, host, sets);
}
