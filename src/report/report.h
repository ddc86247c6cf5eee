/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What happened → status.json, metrics.prom, journal fields, one verdict line on the console, an Event in
 * the cluster, the last line on stderr. */
#include "apply/apply.h"

typedef struct Report {
        const char *command;            /* "init" */
        const char *phases;             /* "config", "devices,run" … */
        unsigned tries;                 /* this one and those before it, of the same process */
        const char *step;               /* how far it came, for a failure that belongs
                                         * to no action; NULL: it did not start */
        uint64_t begin_usec;            /* of the process, CLOCK_MONOTONIC */
        const Plan *plan;               /* NULL if it did not come to a plan */
        const Results *results;         /* NULL if nothing was applied */
        const Diag *diag;
        unsigned imds_requests, ec2_requests;
        bool internal;                  /* called nodeadm-internal: each failure ends with EXIT_INTERNAL */
        const Config *config;           /* of the cluster that hears of a failure; NULL: */
        const char *region, *node;      /* not known, as may be where this node is, and
                                         * what the cluster calls it, */
        const char *instance_id, *instance_type;        /* which instance it is, of what type; */
        const char *then;               /* what aftermath_choose() says; or NULL */
        bool node_guessed;              /* the metadata service's word, of no domain of EC2's */
} Report;

/* Did this run do it, or find it done? */
_nonnull_ bool report_did(const Report *report, ActionType type, const char *target);
/* What became of the action; NULL: the run did not come to it. */
_nonnull_ const Result *report_result(const Report *report, ActionType type, const char *target);

/* Warnings and errors, line by line on stderr. An error that is the only one, and has no excerpt, is left to
 * the last line. */
_nonnull_ void report_tell(const Diag *diag);
/* The last line on stderr, for a command that leaves no report behind. Returns the exit code. */
_nonnull_ ExitCode report_tell_failure(const Report *report);
/* All of it, what report_tell() does too; a report that cannot be written is a warning, never a failure of
 * the boot. Returns the exit code: 0 also where the node joins tainted, whose cause has another one in
 * status.json. */
_nonnull_ ExitCode report_write(const Root *root, const Report *report);
