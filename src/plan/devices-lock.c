/* SPDX-License-Identifier: Apache-2.0 */
/* The devices phase waits for a lock (take-turn) and starts units after sysinit.target. */
#include "plan/planner.h"
#include "base/str.h"

/* Detection in the process that has the lock: interfaces, disks, GPUs. */
#define DETECT_USEC (300 * USEC_PER_SEC)
#define SYSTEM_USEC (900 * USEC_PER_SEC)        /* cloud-init may ask for metadata for minutes */

static bool has_phase_before(const Plan *plan, const Action *a) {
        for (char **id = a->after; id && *id; id++) {
                const Action *before = plan_find(plan, *id);
                if (before && before->phase == a->phase)
                        return true;
        }
        return false;
}

static uint64_t longest_before(const Plan *plan, const uint64_t *until, char *const *ids) {
        uint64_t longest = 0;
        for (; ids && *ids; ids++)
                for (size_t i = 0; i < plan->n; i++)
                        if (streq(plan->actions[i].id, *ids))
                                longest = MAX(longest, until[i]);
        return longest;
}

/* false: no change */
static bool paths_grow(const Plan *plan, uint64_t *until) {
        bool grown = false;
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (a->phase != PHASE_DEVICES)
                        continue;
                uint64_t after = longest_before(plan, until, a->after),
                         after_any = longest_before(plan, until, a->after_any),
                         from = longest_before(plan, until, (char *[]){ a->timed_from, NULL }),
                         usec = MAX(MAX(after, after_any), from) + a->deadline_usec;
                grown = grown || usec != until[i];
                until[i] = usec;
        }
        return grown;
}

/* The longest time of all steps, if each uses its whole deadline and sysctls run one by one. */
static uint64_t longest_path(const Plan *plan) {
        _free_ uint64_t *until = xcalloc(plan->n, sizeof *until);
        uint64_t longest = 0, settings = 0;
        for (size_t i = 0; i < plan->n && paths_grow(plan, until); i++)
                ;
        for (size_t i = 0; i < plan->n; i++) {
                if (plan->actions[i].type == ACTION_SET_SYSCTL)
                        settings += plan->actions[i].deadline_usec;
                longest = MAX(longest, until[i]);
        }
        return MAX(longest, settings);
}

/* Units of the image wait for sysinit.target, and so for cloud-init and disks: their deadlines start after
 * it. A unit without default dependencies may end before, so waiting for its end starts at once. */
static void plan_await_system(Plan *plan) {
        _free_ char *id = NULL;
        for (size_t i = 0, n = plan->n; i < n; i++) {
                ActionType type = plan->actions[i].type;
                if (plan->actions[i].phase != PHASE_DEVICES ||
                    (type != ACTION_START_UNIT && type != ACTION_AWAIT_UNIT))
                        continue;
                if (!id) {
                        Action *system = plan_add(plan, ACTION_AWAIT_UNIT, PHASE_DEVICES, "system",
                                                  "sysinit.target",
                                                  "wait for early boot before starting units");
                        system->deadline_usec = SYSTEM_USEC;
                        system->lenient = true;
                        id = xstrdup(system->id);
                }
                if (type == ACTION_START_UNIT)
                        action_after(&plan->actions[i], id);
                else
                        plan->actions[i].timed_from = xstrdup(id);
        }
}

void plan_take_turn(Plan *plan) {
        if (!plan_has_phase(plan, PHASE_DEVICES))
                return;
        plan_await_system(plan);
        uint64_t usec = longest_path(plan) + DETECT_USEC;
        Action *turn = plan_add(plan, ACTION_TAKE_TURN, PHASE_DEVICES, "system", "devices",
                                "wait for other nodestrap processes");
        turn->deadline_usec = usec;
        for (size_t i = 0; i + 1 < plan->n; i++) {
                Action *a = &plan->actions[i];
                if (a->phase == PHASE_DEVICES && !has_phase_before(plan, a))
                        action_after(a, turn->id);
        }
}
