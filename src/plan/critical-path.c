/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path to kubelet by usual times. status.json has the times of a boot. */
#include "plan/plan.h"
#include "base/str.h"

#define KUBELET "start-unit:kubelet.service"
#define ANY_STEP_USEC (10 * USEC_PER_MSEC)

static uint64_t usual_usec(const Action *a) {
        for (const ActionUsual *u = action_row(a->type)->usual; u && u->msec > 0; u++)
                if (!u->target || streq(u->target, a->target))
                        return u->msec * USEC_PER_MSEC;
        return ANY_STEP_USEC;
}

typedef struct Reach { uint64_t usec; size_t from; } Reach;     /* from: index, or SIZE_MAX */

static void reach_behind(const json_t *index, const Reach *all, Reach *own, char *const *ids) {
        for (; ids && *ids; ids++) {
                const json_t *at = json_object_get(index, *ids);
                size_t i = (size_t)json_integer_value(at);
                if (at && all[i].usec > own->usec)
                        *own = (Reach) { .usec = all[i].usec, .from = i };
        }
}

size_t plan_critical_path(const Plan *plan, size_t **ret, uint64_t *ret_usec) {
        _free_ Reach *all = xcalloc(plan->n + 1, sizeof *all);
        _cleanup_(json_decrefp) json_t *index = plan_index(plan);
        size_t last = SIZE_MAX, n = 0;
        for (size_t i = 0; i < plan->n; i++) {          /* in order of dependencies */
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
