/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap wait`: has this node joined its cluster, and are its devices there? kubelet files, instance
 * role → the API server answer. */
#include "commands/run.h"

#include "apply/identity.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "report/event.h"
#include "report/join.h"

#include <assert.h>
#include <errno.h>

#define TOTAL_USEC (300 * USEC_PER_SEC)
#define PAUSE_USEC (1 * USEC_PER_SEC)

/* No file says how to reach a cluster. A running init may still write it. */
static void take_refusal(const Root *root, const Diag *diag, JoinOutcome *outcome) {
        const Diagnostic *error = diag_first_error(diag);
        if (outlook_is_lost(root, outcome))
                return;
        _free_ char *text =
                error ? diagnostic_format(error) : xstrdup("the kubeconfig cannot be read");
        outcome->cause = stop_signal() ? CAUSE_INTERRUPTED : error ? error->cause : CAUSE_INTERNAL;
        outcome->text = xasprintf("%s%s", text, outlook_has_init(root) ? "; an init is still running" : "");
}

/* Without the report, the user learns of a failed init only at the deadline. */
static JoinGoal choose_goal(const Root *root, const char *goal) {
        _cleanup_(status_done) Status status = {};
        if (status_read(root, &status) == -EACCES)
                log_warning(REPORT_STATUS " is not readable, so a failed init goes unnoticed; run sudo "
                            "nodestrap wait.");
        JoinGoal usual = status.accelerator.expects ? JOIN_DEVICES : JOIN_READY;
        return goal ? (JoinGoal)join_goal_from_string(goal) : usual;
}

static int read_access(const Root *root, uint64_t deadline_usec, KubeAccess *ret, Diag *diag) {
        for (bool told = false;; told = true) {
                bool at_work = outlook_has_init(root);          /* before the read: it may write and end */
                int r = kube_access_read(root, ret, diag);
                if (r >= 0 || !at_work || stop_signal() || now_usec() >= deadline_usec)
                        return r;
                if (!told)
                        log_info("No kubeconfig yet; waiting for nodestrap init, which is running.");
                diag_done(diag);
                sleep_usec(PAUSE_USEC);
        }
}

static void join_as_instance(const Root *root, JoinGoal goal, uint64_t deadline_usec, JoinReport *ret) {
        Diag diag = {};
        if (read_access(root, deadline_usec, &ret->access, &diag) >= 0) {
                ClusterIdentity as = { &ret->access, deadline_usec };
                KubeIdentity kube = cluster_identity(&as);
                JoinTask task = { .root = root,
                                  .access = &ret->access,
                                  .identity = &kube,
                                  .goal = goal,
                                  .deadline_usec = deadline_usec,
                                  .is_lost = outlook_is_lost,
                                  .registered = condition_of_node,
                                  .expected = status_devices };
                join_wait(&task, &ret->outcome);
        } else
                take_refusal(root, &diag, &ret->outcome);
        diag_done(&diag);
}

int command_wait(Run *run) {
        const Options *o = &run->options;
        _cleanup_(join_report_done) JoinReport join = { .goal = choose_goal(run->root, o->goal),
                                                        .begin_usec = run->begin_usec };
        assert((int)join.goal >= 0);    /* the command line takes no others */
        stop_catch();
        join_as_instance(run->root, join.goal, run->begin_usec + (o->timeout_usec ?: TOTAL_USEC), &join);
        join.end_usec = now_usec();
        hide_in_join(run->root, &join.outcome);
        run->exit_code = report_join(run->root, &join);
        run->reported = true;
        return 0;
}
