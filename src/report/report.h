/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A run → status.json, metrics.prom, journal fields, a line on the console, an Event, and the last line on
 * stderr. */
#include "apply/apply.h"

typedef struct Report {
        const char *command;            /* "init" */
        const char *phases;             /* "config", "devices,run" … */
        unsigned tries;                 /* in this process, counting this */
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

/* ---- verdict.c: a verdict → status files, journal, console, stderr; never with a secret ---- */

typedef struct Verdict {
        const char *word, *code;
        ExitCode exit_code;
        const char *step;               /* NULL if all is well, as */
        const char *phase;              /* the phase that failed, */
        char *text;                     /* and this message; owned. For a warm pool, an ok has both */
        bool tolerated;                 /* the node joins with a taint */
} Verdict;

/* NULL becomes null. Replaces text that is not UTF-8, which units may print. */
json_t *text_json(const char *text);
/* Sets verdict, code, exit, step, text and planId. */
_nonnull(1, 2) void verdict_put(json_t *object, const Verdict *v, const char *plan_id);
/* Writes a journal entry with fields. */
_nonnull_ void verdict_record(const Verdict *v, const char *phases, const char *plan_id, double seconds,
                              const char *line);
/* The same, and a line on the console. */
_nonnull_ void verdict_announce(const Verdict *v, const char *phases, const char *plan_id, double seconds,
                                const char *line);
/* Did systemd start this process for a unit? */
_must_check_ bool verdict_is_of_unit(void);
/* Prints the last line on stderr. */
_nonnull_ void verdict_tell(const Verdict *v, const char *line);
/* Now, "2026-01-02T03:04:05Z"; the clock may not be set yet. */
_malloc_ char *verdict_time(void);

/* ---- aftermath.c: failurePolicy reboot and poweroff. It decides and writes POWER_FILE; systemd then starts
 * units/nodestrap-power.service, which acts on it. ---- */

#define REBOOT_LEDGER "/var/lib/nodestrap/failure-reboot"        /* the instance that has had its reboot */

typedef struct AftermathFacts {
        FailurePolicy policy;
        Cause cause;
        bool step;                      /* a step has failed, not something before the steps */
        bool units;                     /* one of our units ran this to its end, as nodestrap */
        bool later;                     /* a later phase retries it */
        bool kubelet;                   /* kubelet has had its turn in this boot */
} AftermathFacts;
/* FAILURE_HOLD: the machine stays as it is. */
_must_check_ _nonnull_ FailurePolicy aftermath_decide(const AftermathFacts *f);
/* Why the instance gets no reboot, or NULL. instance_id NULL: not known. The caller frees it. */
_must_check_ _nonnull(1) char *aftermath_ledger_look(const Root *root, const char *instance_id);
/* Cancels what an earlier run has asked for. */
_nonnull_ void aftermath_take_back(const Root *root);
/* Decides, writes the ledger and POWER_FILE, and warns. "powers off in 12 minutes", or NULL; the caller
 * frees it. */
_must_check_ _nonnull_ char *aftermath_choose(const Root *root, const Report *report, bool units, Diag *diag);
