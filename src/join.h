/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `nodestrap wait`: has this node joined its cluster? The files that kubelet reads and the instance's role →
 * what the API server says. */
#include "cli.h"
#include "kube/kube.h"

typedef struct Join {
        KubeAccess access;              /* empty where nothing says how to reach a cluster */
        KubeGoal goal;
        KubeOutcome outcome;
        uint64_t begin_usec, end_usec;  /* CLOCK_MONOTONIC */
        bool done;                      /* there is something to report */
} Join;
void join_done(Join *j);
/* Waits; what became of it stands in ret, a failure too. */
_nonnull_ void join_wait(const Options *o, const Root *root, uint64_t begin_usec, Join *ret);
