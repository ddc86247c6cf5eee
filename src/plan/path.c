/* SPDX-License-Identifier: Apache-2.0 */
/* Which chain of steps kubelet waits for longest, by what steps usually take: what is worth making faster. An
 * estimate for the reader; what it was on a boot, status.json knows. */
#include "plan/plan.h"
#include "base/str.h"

#define KUBELET "start-unit:kubelet.service"
#define ANY_STEP_USEC (10 * USEC_PER_MSEC)      /* so that of two chains the one with more steps is longer */

/* For a machine with eight GPUs, rounded. What is documented is that fabric manager waits up to 30 s for GPUs
 * (pytorch/ci-infra#552) and sleeps 5 s behind NVLSM; the rest is what the fakes of tests/bench/boot.py take.
 * Only what is much longer than the others matters here. Target NULL: any. */
static const struct { const char *target; ActionType type; unsigned msec; } usual[] = {
        { "nvidia", ACTION_LOAD_MODULE, 12000 },
        { "nvidia-fabricmanager.service", ACTION_START_UNIT, 15000 },
        { NULL, ACTION_AWAIT_FABRIC, 30000 },
        { "nvidia-persistenced.service", ACTION_START_UNIT, 2000 },
        { NULL, ACTION_SET_MIG_MODE, 10000 },
        { NULL, ACTION_PARTITION_GPUS, 10000 },
        { NULL, ACTION_LIST_GPUS, 1000 },
        { NULL, ACTION_SET_CLOCKS, 1000 },
        { NULL, ACTION_CHECK_HEALTH, 1000 },
        { NULL, ACTION_GENERATE_CDI, 2000 },
        { NULL, ACTION_AWAIT_IMEX, 5000 },
        { NULL, ACTION_RESERVE_PAGES, 1000 },
        { "containerd.service", ACTION_START_UNIT, 8000 },
        { NULL, ACTION_IMPORT_IMAGE, 2000 },
        { NULL, ACTION_CREATE_RAID, 1000 },
        { NULL, ACTION_MAKE_FILESYSTEM, 3000 },
};

static uint64_t usual_usec(const Action *a) {
        for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
                if (usual[i].type == a->type && (!usual[i].target || streq(usual[i].target, a->target)))
                        return usual[i].msec * USEC_PER_MSEC;
        return ANY_STEP_USEC;
}

typedef struct Reach { uint64_t usec; size_t from; } Reach;     /* from: the step before it, or SIZE_MAX */

static void reach_behind(const json_t *index, const Reach *all, Reach *own, char *const *ids) {
        for (; ids && *ids; ids++) {
                const json_t *at = json_object_get(index, *ids);
                size_t i = (size_t)json_integer_value(at);
                if (at && all[i].usec > own->usec)
                        *own = (Reach) { .usec = all[i].usec, .from = i };
        }
}

size_t plan_critical_path(const Plan *plan, size_t **ret, uint64_t *ret_usec) {
        _cleanup_(freep) Reach *all = xcalloc(plan->n + 1, sizeof *all);
        _cleanup_(json_decrefp) json_t *index = plan_index(plan);
        size_t last = SIZE_MAX, n = 0;
        for (size_t i = 0; i < plan->n; i++) {          /* each stands behind those that it waits for */
                const Action *a = &plan->actions[i];
                Reach own = { .from = SIZE_MAX };
                reach_behind(index, all, &own, a->after);
                reach_behind(index, all, &own, a->after_any);
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
