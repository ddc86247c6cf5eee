/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Carries out a Plan; the only code that changes the machine. Each action is checked before it is applied (0
 * already so, 1 needed, < 0 error), actions that do not wait for each other run at the same time, each has
 * its deadline. */
#include "plan/plan.h"

typedef enum Outcome {
        OUTCOME_PENDING,
        OUTCOME_UNCHANGED,
        OUTCOME_DONE,
        OUTCOME_SKIPPED,
        OUTCOME_FAILED,
        _OUTCOME_INVALID = -22
} Outcome;
DECLARE_STRING_TABLE(outcome, Outcome);

typedef struct Result {
        const Action *action;   /* of the plan, which must live longer */
        Outcome outcome;
        uint64_t begin_usec, end_usec; /* CLOCK_MONOTONIC; 0 if it never began */
        bool missed;            /* unchanged, for what did not come true is only warned of */
        Cause cause;            /* of a failure */
        char *text;             /* failure or skip: the sentence */
        json_t *found;          /* what a person or a dashboard wants to know of it, an object; or NULL */
} Result;
typedef struct Results {
        Result *items; size_t n;
        size_t threads_left;    /* that the kernel keeps; they run on beside the caller; each holds a
                                 * reference to the plan */
        int turn_fd;            /* DEVICES_LOCK, of take-turn: the caller's, for lock_release(); or 0 */
} Results;
void results_done(Results *r);
const Result *results_first_failure(const Results *r);          /* by time, NULL if all went well */
size_t results_count(const Results *r, Outcome outcome);

/* Of kubelet, where somebody looks for what became of the node. */
#define KUBELET_LEFT "kubelet, which an earlier run of this boot has let run, is left as it is"

/* Applies everything that can be: after a failure, actions that depend on it are skipped and the rest goes
 * on. < 0 when any failed; the diag then has the root cause first. With a root that is not the host's, units
 * are skipped and files are written. A signal that asks to stop (base/stop.h) ends the run after the action
 * in hand is undone or finished; then all of them stay blocked, so that the report is written whatever
 * comes. */
_must_check_ _nonnull_ int apply_plan(const Root *root, const Plan *plan, Results *ret, Diag *diag);
