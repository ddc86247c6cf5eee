/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Command line → Options. One table of commands, one of options; help is printed from them. A command is a
 * place to stop on the road that main.c walks. Called as nodeadm or nodeadm-internal, the program takes their
 * commands and flags. */
#include "base/macro.h"
#include "kube/kube.h"
#include "plan/plan.h"
#include "report.h"

typedef enum Command {
        COMMAND_INIT,
        COMMAND_PLAN,
        COMMAND_CONFIG_CHECK,
        COMMAND_CONFIG_DUMP,
        COMMAND_CONFIG_SCHEMA,
        COMMAND_TOKEN,
        COMMAND_WAIT,
        COMMAND_STATUS,
        COMMAND_VERSION,
        COMMAND_HELP,
        _COMMAND_MAX,
        _COMMAND_INVALID = -22,
} Command;

typedef struct Options {
        unsigned name;                  /* that the program was called by: 0 its
                                         * own, 1 nodeadm, 2 nodeadm-internal */
        Command command;
        Command help_for;               /* of COMMAND_HELP: that command, or COMMAND_HELP for all */
        char **sources;                 /* as given, in order; imds://user-data when none was */
        char **daemons;
        bool skip_config, skip_run;
        bool strict, dry_run, development;
        Output output;                  /* SVG: of status alone */
        const char *root;
        const char *cache;              /* --config-cache, or NULL */
        const char *output_file;        /* --config-output, or NULL */
        const char *write_to;
        const char *instance_type, *kubelet_version, *containerd_version, *driver_version;
        CredentialPlugin plugin;        /* ours, but nodeadm's names keep to nodeadm's */
        const char *cluster_name, *cluster_id, *region, *role_arn;      /* of token; one of the first two */
        KubeGoal goal;                  /* of wait: for what, and for how long */
        uint64_t timeout_usec;
        char **argv;                    /* respelled; what the strings above may point into */
} Options;
void options_done(Options *o);

/* -EINVAL with CAUSE_USAGE and one sentence that says what to type instead. */
_must_check_ _nonnull_ int options_parse(int argc, char **argv, Options *ret, Diag *diag);
void options_print_help(const Options *o);
