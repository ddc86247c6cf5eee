/* SPDX-License-Identifier: Apache-2.0 */
/* take-turn: before all steps of the devices. Beside the process of the devices phase there may be that of the
 * run phase, or somebody's own. */
#include "plan/planner.h"
#include "base/str.h"

/* Of the process that has the turn, before its first step: interfaces, disks and GPUs are looked at. */
#define DETECT_USEC (300 * USEC_PER_SEC)

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

/* How long the steps may take at most where each that waits for others has all of its time, and settings are
 * made one after the other. As planners add them, each comes behind those that it is after. */
static uint64_t longest_path(const Plan *plan) {
        _cleanup_(freep) uint64_t *until = xcalloc(plan->n, sizeof *until);
        uint64_t longest = 0, settings = 0;
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (a->phase != PHASE_DEVICES)
                        continue;
                uint64_t after = longest_before(plan, until, a->after),
                         after_any = longest_before(plan, until, a->after_any);
                until[i] = MAX(after, after_any) + a->deadline_usec;
                if (a->type == ACTION_SET_SYSCTL)
                        settings += a->deadline_usec;
                longest = MAX(longest, until[i]);
        }
        return MAX(longest, settings);
}

void plan_take_turn(Plan *plan) {
        if (!plan_has_phase(plan, PHASE_DEVICES))
                return;
        uint64_t usec = longest_path(plan) + DETECT_USEC;
        Action *turn = plan_add(plan, ACTION_TAKE_TURN, PHASE_DEVICES, "system", "devices",
                                "one process at a time works on them");
        turn->deadline_usec = usec;
        for (size_t i = 0; i + 1 < plan->n; i++) {
                Action *a = &plan->actions[i];
                if (a->phase == PHASE_DEVICES && !has_phase_before(plan, a))
                        action_after(a, turn->id);
        }
}
