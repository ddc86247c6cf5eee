/* SPDX-License-Identifier: Apache-2.0 */
/* Which chain of steps kubelet waits for longest, by what steps usually take: what is worth making faster. An
 * estimate for the reader; what it was on a boot, status.json knows. */
#include "plan/plan.h"
#include "base/str.h"

#define KUBELET "start-unit:kubelet.service"
#define ANY_STEP_USEC (10 * USEC_PER_MSEC)      /* so that of two chains the one with more steps is longer */

/* From public reports of machines with eight GPUs, rounded; where there are none, from what the fakes of
 * tests/bench/boot.py take. Target NULL: any. */
static const struct { ActionType type; const char *target; unsigned msec; } usual[] = {
        /* open-gpu-kernel-modules at 8 GPUs, with the firmware of each */
        { ACTION_LOAD_MODULE, "nvidia", 12000 },
        /* NVLSM and the 5 s behind it included; GPUs join for up to a minute after it
         * (pytorch/ci-infra:osdc/docs/h100-fabric-handles-imex-channels.md) */
        { ACTION_START_UNIT, "nvidia-fabricmanager.service", 15000 },
        { ACTION_AWAIT_FABRIC, NULL, 30000 },
        { ACTION_START_UNIT, "nvidia-persistenced.service", 2000 },
        { ACTION_SET_MIG_MODE, NULL, 10000 },
        { ACTION_PARTITION_GPUS, NULL, 10000 },
        { ACTION_LIST_GPUS, NULL, 1000 },
        { ACTION_SET_CLOCKS, NULL, 1000 },
        { ACTION_CHECK_HEALTH, NULL, 1000 },
        { ACTION_GENERATE_CDI, NULL, 2000 },
        { ACTION_AWAIT_IMEX, NULL, 5000 },
        { ACTION_RESERVE_PAGES, NULL, 1000 },
        { ACTION_START_UNIT, "containerd.service", 8000 },
        { ACTION_IMPORT_IMAGE, NULL, 2000 },
        { ACTION_CREATE_RAID, NULL, 1000 },
        { ACTION_MAKE_FILESYSTEM, NULL, 3000 },
};

static uint64_t usual_usec(const Action *a) {
        for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
                if (usual[i].type == a->type && (!usual[i].target || streq(usual[i].target, a->target)))
                        return usual[i].msec * USEC_PER_MSEC;
        return ANY_STEP_USEC;
}

typedef struct Reach { uint64_t usec; size_t from; } Reach;     /* from: the step before it, or SIZE_MAX */

static void reach_behind(const Plan *plan, const Reach *all, Reach *own, char *const *ids) {
        for (; ids && *ids; ids++)
                for (size_t i = 0; i < plan->n; i++)
                        if (streq(plan->actions[i].id, *ids) && all[i].usec > own->usec)
                                *own = (Reach) { .usec = all[i].usec, .from = i };
}

size_t plan_critical_path(const Plan *plan, size_t **ret, uint64_t *ret_usec) {
        _cleanup_(freep) Reach *all = xcalloc(plan->n + 1, sizeof *all);
        size_t last = SIZE_MAX, n = 0;
        for (size_t i = 0; i < plan->n; i++) {          /* each stands behind those that it waits for */
                const Action *a = &plan->actions[i];
                Reach own = { .from = SIZE_MAX };
                reach_behind(plan, all, &own, a->after);
                reach_behind(plan, all, &own, a->after_any);
                own.usec += usual_usec(a);
                all[i] = own;
                last = streq(a->id, KUBELET) ? i : last;
        }
        for (size_t i = last; i != SIZE_MAX; i = all[i].from)
                n++;
        *ret = xcalloc(n + 1, sizeof **ret);
        *ret_usec = n > 0 ? all[last].usec : 0;
        for (size_t i = last, k = n; k > 0; i = all[i].from)
                (*ret)[--k] = i;
        return n;
}
