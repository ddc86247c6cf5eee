/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Applies a Plan. No other code changes the machine. Each action is checked first (0: done already, 1:
 * needed, < 0: error). Independent actions run in parallel, each with its own deadline. */
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
        bool missed;            /* unchanged, but the goal was not reached: a warning says so */
        Cause cause;            /* of a failure */
        char *text;             /* failure or skip: the sentence */
        json_t *found;          /* JSON object for reports, or NULL */
} Result;
typedef struct Results {
        Result *items; size_t n;
        size_t threads_left;    /* threads stuck in the kernel; each holds a reference to the plan */
        int turn_fd;            /* DEVICES_LOCK of take-turn, for lock_release(); or 0 */
} Results;
void results_done(Results *r);
const Result *results_first_failure(const Results *r);          /* earliest; NULL if none failed */
size_t results_count(const Results *r, Outcome outcome);

#define KUBELET_LEFT "kubelet, started by an earlier run in this boot, keeps running"

/* Applies every possible action; the dependents of a failed one are skipped. < 0 if any failed: the diag then
 * has the root cause first. Below another root it writes files and skips units. A stop signal (base/time.h)
 * ends the run after the current action; signals then stay blocked until the caller has reported. */
_must_check_ _nonnull_ int apply_plan(const Root *root, const Plan *plan, Results *ret, Diag *diag);

/* look.c predicts what apply_plan() would do, by the same comparisons, and changes nothing. */
/* Sets Plan.looked and live and live_why of its actions. Skips units below another root. */
_nonnull_ void apply_look(const Root *root, Plan *plan);

/* The current file (NULL: none) and the new one; the caller frees both. */
typedef struct Texts {
        char *old, *new;
        size_t old_size, new_size;
        bool private;                   /* the current one is not world-readable */
} Texts;
void texts_done(Texts *t);
_must_check_ _nonnull_ int look_texts(const Root *root, const Action *a, Texts *ret);
