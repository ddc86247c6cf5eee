/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Everything that the stages of the road hand to each other, and what ends up in the report. A command that
 * looks into one of them includes its header. */
#include "base/root.h"
#include "cli/cli.h"
#include <jansson.h>

struct Run {
        Options options;
        Root *root;
        char *cache;                    /* --config-cache as a path below the root, or NULL */
        struct Imds *imds;
        struct Sources *sources;        /* commands/sources.h */
        struct Config *config;
        json_t *cached_status;          /* facts of an earlier run on the same configuration, or NULL */
        struct Host *host;
        struct Plan *plan;
        struct Results *results;
        bool applied;
        const char *step;               /* where on the road: what the report
                                         * calls it; NULL: it did not start */
        int lock_fd;                    /* RUN_LOCK, */
        int devices_fd;                 /* and DEVICES_LOCK where the run phase is left out */
        uint64_t begin_usec;            /* of the process, CLOCK_MONOTONIC */
        bool reported;                  /* the command has told what became of it; its exit code is */
        ExitCode exit_code;
        Diag diag;
        Diag tried;                     /* a warning for each try before this one, */
        uint64_t pause_usec;            /* after which it waited so long, */
        size_t threads_left;            /* and which the kernel kept so many threads of */
};
void run_done(Run *run);
/* At its end, even where the process cannot end yet. */
_nonnull_ void run_release_locks(Run *run);

/* Will the machine be changed, and so a report be owed? */
_nonnull_ bool run_changes_machine(const Run *run);
/* "config,devices": those that are not left out; the caller frees it. */
_malloc_ _nonnull_ char *run_phases(const Options *o);
/* The next step begins, unless a signal wants us to stop: -EINTR with a diagnostic. */
_must_check_ _nonnull_ int run_enter(Run *run, const char *step);

/* ---- after them (init.c) ---- */
/* Did the devices phase before this run, which has done its steps again, fail or leave no word? */
_must_check_ _nonnull_ bool init_devices_failed(const Run *run);
/* Where that ended well: its unit is none that has failed, and needs nobody's eye. */
void init_forgive_devices(void);

/* What the cluster calls this node, which instance it is, and where; each may stay NULL. */
typedef struct NodeName {
        char *node, *region, *instance_id, *instance_type;
        bool guessed;                   /* EC2 may have another one */
} NodeName;
_nonnull_ void node_name_done(NodeName *n);
/* For a failure, also one that came before they were found out: then as the metadata service may know
 * them. */
_nonnull_ void init_find_name(const Run *run, NodeName *ret);

/* What the command does not need of this process's powers goes, but for what the paths on its command line
 * take (drop-privileges.c). */
_nonnull_ void run_give_up(const Options *options);

/* ---- the stages, in their order (stages.c) ---- */
/* --root, and the right to change it. */
_must_check_ _nonnull_ int run_open_root(Run *run);
/* For a command that is given no source, those of the boot (sources.c); a unit records what it reads. */
_must_check_ _nonnull_ int run_choose_sources(Run *run);
/* Does a person wait for an answer that the metadata service has at once, or never? */
_must_check_ _nonnull_ bool run_is_by_hand(const Run *run);
/* Has one of the units that obey failurePolicy run this, and by our own name? */
_must_check_ _nonnull_ bool run_is_of_units(const Run *run);
/* sources → decode → merge → validate */
_must_check_ _nonnull_ int run_load_config(Run *run);
/* As before that, with an empty diag. */
_nonnull_ void run_forget_config(Run *run);
/* These or the command have failed, with that negative errno: shall they try again (again.c)? Then run is
 * as before run_load_config(), after a pause. */
_must_check_ _nonnull_ bool run_again(Run *run, int error);
/* detect → plan; behind the lock, where the machine will be changed */
_must_check_ _nonnull_ int run_make_plan(Run *run);
