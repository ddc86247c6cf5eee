/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap wait`: has this node joined its cluster? The files that kubelet reads and the instance's role
 * → what the API server says. */
#include "commands/commands.h"
#include "commands/hide.h"
#include "commands/run.h"

#include "apply/identity.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"
#include "report/join.h"

#include <assert.h>
#include <jansson.h>

#define TOTAL_USEC (300 * USEC_PER_SEC)

/* Nothing says how to reach a cluster. */
static void take_refusal(const Diag *diag, JoinOutcome *outcome) {
        const Diagnostic *error = diag_first_error(diag);
        outcome->cause = error ? error->cause : CAUSE_INTERNAL;
        outcome->text = error ? diagnostic_format(error) : xstrdup("the kubeconfig cannot be read");
}

static void join_as_instance(const Root *root, JoinGoal goal, uint64_t deadline_usec, JoinReport *ret) {
        Diag diag = {};
        if (kube_access_read(root, &ret->access, &diag) >= 0) {
                ClusterIdentity as = { &ret->access, deadline_usec };
                KubeIdentity kube = cluster_identity(&as);
                join_wait(root, &ret->access, &kube, goal, deadline_usec, &ret->outcome);
        } else
                take_refusal(&diag, &ret->outcome);
        diag_done(&diag);
}

int command_wait(Run *run) {
        const Options *o = &run->options;
        int goal = join_goal_from_string(o->goal);
        assert(goal >= 0);              /* the command line takes no others */
        _cleanup_(join_report_done) JoinReport join = { .goal = (JoinGoal)goal,
                                                        .begin_usec = run->begin_usec };
        stop_catch();
        join_as_instance(run->root, join.goal, run->begin_usec + (o->timeout_usec ?: TOTAL_USEC), &join);
        join.end_usec = now_usec();
        hide_in_join(run->root, &join.outcome);
        run->exit_code = report_join(run->root, &join);
        run->reported = true;
        return 0;
}
