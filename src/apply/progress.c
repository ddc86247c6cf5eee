/* SPDX-License-Identifier: Apache-2.0
 * What has become of the tasks since the last time → lines for who looks on. Told before the loop waits,
 * not where a task begins or ends: one write for all that happened at once, and a step that waits for nothing
 * is only told when it is over. */
#include "apply/engine.h"

#include "base/progress.h"
#include "base/time.h"

static bool is_over(const Task *t) {
        return t->state == TASK_ENDED || t->state == TASK_WATCHED;
}

void progress_tell(Apply *a) {
        Text t = {};
        for (size_t i = 0; i < a->n; i++) {
                Task *task = &a->tasks[i];
                const Result *r = task->result;
                if (is_over(task) && task->told != TOLD_OVER) {
                        progress_add(&t, r->end_usec ?: now_usec(), outcome_to_string(r->outcome),
                                     task->action->id);
                        task->told = TOLD_OVER;
                } else if (task->state == TASK_RUNNING && task->told == TOLD_NOTHING) {
                        progress_add(&t, r->begin_usec, "begin", task->action->id);
                        task->told = TOLD_BEGUN;
                }
        }
        progress_write(a->root, &a->progress_fd, &t);
}
