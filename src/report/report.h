/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A run → status.json, metrics.prom, journal fields, a line on the console, an Event, and the last line on
 * stderr. */
#include "apply/apply.h"

typedef struct Report {
        const char *command;            /* "init" */
        const char *phases;             /* "config", "devices,run" … */
        unsigned tries;                 /* of this process, with this one */
        const char *step;               /* the stage of a failure outside of actions; NULL: did not start */
        uint64_t begin_usec;            /* of the process, CLOCK_MONOTONIC */
        const Plan *plan;               /* NULL: no plan */
        const Results *results;         /* NULL: not applied */
        const Diag *diag;
        unsigned imds_requests, ec2_requests;
        bool internal;                  /* as nodeadm-internal, each failure is EXIT_INTERNAL */
        const Config *config;           /* any of these may be NULL: not known */
        const char *region, *node;      /* node: the name in the cluster */
        const char *instance_id, *instance_type;
        const char *then;               /* from aftermath_choose(), or NULL */
        bool node_guessed;              /* node is from the metadata service, not in a domain of EC2 */
} Report;

/* Did this run do it, or find it done? */
_nonnull_ bool report_did(const Report *report, ActionType type, const char *target);
/* NULL: the run has not reached the action. */
_nonnull_ const Result *report_result(const Report *report, ActionType type, const char *target);

/* Prints warnings and errors on stderr. A single error without an excerpt is left to the last line. */
_nonnull_ void report_tell(const Diag *diag);
/* Prints the last line, for a command without a report. Returns the exit code. */
_nonnull_ ExitCode report_tell_failure(const Report *report);
/* Writes everything, including report_tell(). A report that cannot be written is a warning. Returns the exit
 * code: 0 also for a tainted node, whose cause has its own code in status.json. */
_nonnull_ ExitCode report_write(const Root *root, const Report *report);
