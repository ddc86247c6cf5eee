/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The data of the stages and the report. A command that reads a member includes its header. */
#include "base/root.h"
#include "commands/commands.h"
#include <jansson.h>

struct JoinOutcome;
struct Run {
        Options options;
        Root *root;
        char *cache;                    /* --config-cache as a path below the root, or NULL */
        struct Imds *imds;
        struct Sources *sources;        /* commands/sources.h */
        struct Config *config;
        json_t *cached_status;          /* facts of an earlier run with this configuration, or NULL */
        struct Host *host;
        struct Plan *plan;
        struct Results *results;
        bool applied;
        /* the stage, as the report names it; NULL: not started */
        const char *step;
        int lock_fd;                    /* RUN_LOCK */
        int devices_fd;                 /* DEVICES_LOCK, without the run phase */
        uint64_t begin_usec;            /* of the process, CLOCK_MONOTONIC */
        bool reported;                  /* the command reported its own result and exit code */
        ExitCode exit_code;
        Diag diag;
        Diag tried;                     /* a warning for each earlier try */
        uint64_t pause_usec;            /* the wait before this try */
        size_t threads_left;            /* of the earlier tries, stuck in the kernel */
};
void run_done(Run *run);
/* At the end of the run, even if the process cannot end yet. */
_nonnull_ void run_release_locks(Run *run);

/* Does it change the machine, and so need a report? */
_nonnull_ bool run_changes_machine(const Run *run);
/* "config,devices": the phases of this run; the caller frees it. */
_malloc_ _nonnull_ char *run_phases(const Options *o);
/* Begins the next step. -EINTR with a diagnostic after a signal. */
_must_check_ _nonnull_ int run_enter(Run *run, const char *step);

/* ---- init (init.c) ---- */
/* Did the earlier devices phase, whose steps this run repeats, fail or leave no verdict? */
_must_check_ _nonnull_ bool init_devices_failed(const Run *run);
/* After success: resets its failed unit, which needs no attention any more. */
void init_forgive_devices(void);

/* Name of this node in the cluster, and its instance; each may be NULL. */
typedef struct NodeName {
        char *node, *region, *instance_id, *instance_type;
        bool guessed;                   /* EC2 may have another one */
} NodeName;
_nonnull_ void node_name_done(NodeName *n);
/* For a failure, also one before the facts were known: then from the answers of the metadata service. */
_nonnull_ void init_find_name(const Run *run, NodeName *ret);

/* Drops the capabilities that neither the command nor its paths need (drop-privileges.c). */
_nonnull_ void run_give_up(const Options *options);

/* ---- the stages, in their order (stages.c) ---- */
/* Opens --root, and checks the right to change it. */
_must_check_ _nonnull_ int run_open_root(Run *run);
/* Without a source on the command line, those of the boot (sources.c). A unit records them. */
_must_check_ _nonnull_ int run_choose_sources(Run *run);
/* Does a person wait, so that a refusal of the metadata service is final? */
_must_check_ _nonnull_ bool run_is_by_hand(const Run *run);
/* Did a unit that obeys failurePolicy start this, as nodestrap? */
_must_check_ _nonnull_ bool run_is_of_units(const Run *run);
/* sources → decode → merge → validate */
_must_check_ _nonnull_ int run_load_config(Run *run);
/* Undoes run_load_config(), and empties diag. */
_nonnull_ void run_forget_config(Run *run);
/* After this error, should it try again (again.c)? Then it pauses, and undoes run_load_config(). */
_must_check_ _nonnull_ bool run_again(Run *run, int error);
/* detect → plan; takes the lock first if it changes the machine */
_must_check_ _nonnull_ int run_make_plan(Run *run);

/* ---- secrets that messages quote from daemons and programs (hide.c) ---- */
/* The lines of units in the journal, from now on. */
_nonnull_ void hide_in_journal(Run *run);
/* All failures and warnings of this run. */
_nonnull_ void hide_in_run(Run *run);
/* The text about the join, with the NodeConfig in the cache of this boot, if it can be read. */
_nonnull_ void hide_in_join(const Root *root, struct JoinOutcome *outcome);
/* Findings of a file: FILE:14:5: as compilers have it, and the key with a mark, never a value (excerpt.c). */
_nonnull_ void findings_place(Run *run);

/* ---- the modes of plan (plan.c, plan-*.c) ---- */
/* With --output json or markdown: prints why planning failed; code becomes the exit code. */
_nonnull_ void plan_tell_failure(const Run *run, ExitCode code);
/* --strict: turns warnings about things that will not work into errors. -EINVAL where there are any. */
_must_check_ _nonnull_ int plan_be_strict(Diag *diag);
/* Prints a text, or with --output markdown a page with it (plan/plan.h). */
_must_check_ _nonnull_ int plan_show(Run *run, const char *title, const char *of, const Diag *findings,
                                     const char *language, const char *text);
/* --diff: compares with an earlier plan. -EINVAL if the file is not a plan. */
_must_check_ _nonnull_ int plan_diff(Run *run);
/* Compares two results of plan_to_json(): as JSON (a new reference), and that as text. Actions need ids.
 * Skips what a plan keeps secret, and, without show_secrets, what it reveals. */
_nonnull_ json_t *plan_compare(json_t *old, json_t *new, bool show_secrets);
_malloc_ _nonnull_ char *plan_compare_text(const json_t *all);
/* --matrix: a row for each type; run->exit_code is that of the first type without a plan. */
_must_check_ _nonnull_ int plan_matrix(Run *run);
/* --write-to: writes every planned file below the directory, and removes earlier ones that are no longer
 * planned. The directory may hold only files of an earlier --write-to. */
_must_check_ _nonnull_ int plan_write(const char *target, const struct Plan *plan, Diag *diag);
