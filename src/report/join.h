/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The result of a join → joined.json, joined.prom, journal, console; and back for `nodestrap status`. */
#include "kube/kube.h"
#include "report/status.h"

typedef struct JoinReport {
        KubeAccess access;              /* empty: not known */
        JoinGoal goal;
        JoinOutcome outcome;
        uint64_t begin_usec, end_usec;  /* CLOCK_MONOTONIC */
} JoinReport;
void join_report_done(JoinReport *j);
/* A file that cannot be written is only a warning. Returns the exit code. */
_nonnull_ ExitCode report_join(const Root *root, const JoinReport *join);
/* joined.json of this boot, or NULL. */
_nonnull_ json_t *join_read(const Root *root);
/* A line of `nodestrap status`. */
_nonnull_ void join_show(Text *t, const StatusJoin *joined);
