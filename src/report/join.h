/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What became of joining the cluster → joined.json, joined.prom, journal, console; and back again for
 * `nodestrap status`. */
#include "kube/kube.h"
#include "report/status.h"

typedef struct JoinReport {
        KubeAccess access;              /* empty where nothing says how to reach a cluster */
        JoinGoal goal;
        JoinOutcome outcome;
        uint64_t begin_usec, end_usec;  /* CLOCK_MONOTONIC */
} JoinReport;
void join_report_done(JoinReport *j);
/* All of it; what cannot be written is a warning at most. Returns the exit code. */
_nonnull_ ExitCode report_join(const Root *root, const JoinReport *join);
/* joined.json of this boot; NULL where there is none. */
_nonnull_ json_t *join_read(const Root *root);
/* A line of `nodestrap status`. */
_nonnull_ void join_show(Text *t, const StatusJoin *joined);
