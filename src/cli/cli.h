/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Command line → Options, and help. The caller passes the table of commands; nothing here knows how a row
 * uses the options. Called as nodeadm or nodeadm-internal, the program takes their commands and flags. */
#include "base/error.h"
#include "base/power.h"

/* The names that the program may be called by, each with the commands that it has there. */
typedef enum ProgramName {
        PROGRAM_NODESTRAP,
        PROGRAM_NODEADM,
        PROGRAM_NODEADM_INTERNAL,
        _PROGRAM_MAX
} ProgramName;

typedef enum Flag {
        FLAG_CONFIG_SOURCE,
        FLAG_CONFIG_CACHE,
        FLAG_SKIP,
        FLAG_DAEMON,
        FLAG_DRY_RUN,
        FLAG_STRICT,
        FLAG_PARTIAL,
        FLAG_STRICT_NODE_NAME,
        FLAG_CREDENTIAL_PLUGIN,
        FLAG_OUTPUT,
        FLAG_WRITE_TO,
        FLAG_SHOW_SECRETS,
        FLAG_SHOW_DIFF,
        FLAG_DIFF,
        FLAG_MATRIX,
        FLAG_DETAILED_EXITCODE,
        FLAG_INSTANCE_TYPE,
        FLAG_INSTANCE_TYPE_FILE,
        FLAG_KUBELET_VERSION,
        FLAG_CONTAINERD_VERSION,
        FLAG_DRIVER_VERSION,
        FLAG_INTERFACES,
        FLAG_EFA,
        FLAG_CONFIG_OUTPUT,
        FLAG_CLUSTER_NAME,
        FLAG_CLUSTER_ID,
        FLAG_REGION,
        FLAG_ROLE_ARN,
        FLAG_KEY,
        FLAG_ACCOUNT,
        FLAG_CLUSTER,
        FLAG_SERIAL,
        FLAG_FOR,
        FLAG_TIMEOUT,
        FLAG_BUNDLE,
        FLAG_EXIT_CODE,
        FLAG_FOLLOW,
        FLAG_LONG,
        FLAG_ACTION,
        FLAG_INTERFACE,
        FLAG_ROOT,
        FLAG_ASK,
        FLAG_DEVELOPMENT,
        FLAG_HELP,
        FLAG_VERSION,
        _FLAG_MAX,
} Flag;

typedef enum Output {
        OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_SVG, OUTPUT_METRICS, OUTPUT_SARIF, OUTPUT_MARKDOWN,
        _OUTPUT_MAX
} Output;

/* How far a command goes in the stages of main.c. */
typedef enum Stage {
        STAGE_START,                    /* it needs no stage */
        STAGE_ROOT,                     /* the directory that all paths are below */
        STAGE_CONFIG,                   /* the merged, valid configuration */
        STAGE_PLAN,                     /* what would be done on this machine */
        STAGE_APPLY,                    /* doing it: such a command needs root, and must report */
} Stage;

/* The purpose of a command; help lists by it. */
typedef enum Use { USE_NODE, USE_BEFORE, USE_AFTER, USE_UNITS, USE_PROGRAM, _USE_MAX } Use;

typedef struct Run Run;                 /* commands/run.h: what the stages hand to each other */
typedef struct Command Command;
struct Command {
        char words[24];                 /* "config check"; its texts are in conf/help.txt */
        uint64_t flags;                 /* bits of Flag */
        const Command *dry_run;         /* what it becomes with --dry-run */
        int (*run)(Run *run);           /* what it does there: 0, or a negative errno with a diagnostic */
        const char *done;               /* printed at the end on success; or NULL */
        uint64_t powers;                /* powers that it keeps (base/power.h); POWER_ALL: it keeps all to the
                                         * end */
        unsigned names;                 /* bits of ProgramName: the names that list and find it */
        Use use;
        Stage last;
        bool starts_programs;           /* beside that */
        bool sample;                    /* without a source, it has a configuration of its own */
        bool takes_words;               /* after its own: sources, which are merged; codes; a type */
        bool draws;                     /* it takes --output svg and metrics, too */
        bool finds;                     /* it takes --output sarif; the words after its own are sources, which
                                         * it checks one by one */
        bool unchecked;                 /* a configuration that makes no node is only a warning under the name
                                         * nodeadm */
};
typedef struct CommandTable {
        const Command *items; size_t n;
        const Command *help, *version;  /* of them: those of --help and --version */
} CommandTable;

typedef struct Options {
        ProgramName name;               /* that the program was called by */
        const Command *command;         /* never NULL */
        const Command *help_for;        /* of the command help: one command, or NULL for all */
        char *help_group;               /* or all that begin with this word */
        char **sources;                 /* as given, in order; then those that commands/sources.c chooses */
        char **daemons;
        bool skip_config, skip_devices, skip_run;
        bool each;                      /* of config check: a source is one configuration, and is not merged
                                         * with the others */
        bool strict, partial, strict_node_name, dry_run, development;
        Output output;
        const char *format;             /* the same, as given */
        const char *root;
        const char *cache;              /* --config-cache, or NULL */
        const char *output_file;        /* --config-output, or NULL */
        const char *write_to;
        bool show_secrets, show_diff;   /* of plan */
        const char *diff, *matrix;      /* of plan: an earlier one; types, as given; or NULL */
        bool detailed_exitcode;         /* of plan: EXIT_CHANGES, and so never EXIT_USAGE */
        const char *instance_type, *kubelet_version, *containerd_version, *driver_version;
        const char *instance_type_file; /* of plan, or NULL */
        char **instance_types;          /* all that were given: of doctor */
        unsigned interfaces;            /* of plan: how many to place; 0: not given */
        const char *efa;                /* of plan: network cards, as given; or NULL */
        const char *credential_plugin;  /* "nodestrap", or "aws", always for nodeadm */
        const char *cluster_name, *cluster_id, *region, *role_arn;      /* of token */
        const char *key;                /* of config sign and verify: a file; or NULL */
        const char *account, *cluster, *serial; /* of config sign, which has the region, too; or NULL */
        const char *goal;               /* of wait; NULL: by the NodeConfig */
        uint64_t timeout_usec;          /* 0: the command's own */
        const char *bundle;             /* of status: the file, "-" for stdout; or NULL */
        bool ask;                       /* of doctor: the daemons, too */
        bool exit_code, follow;         /* of status: exit as the boot did; follow its progress */
        bool whole;                     /* --long: print everything */
        const char *action, *interface; /* of udev-net-manager, as given; or NULL */
        char **argv;                    /* respelled; the strings above may point into it */
} Options;
void options_done(Options *o);

/* -EINVAL with CAUSE_USAGE and one sentence that says what to type instead. ret->command is valid in any
 * case; its strings point into argv: keep it as long. */
_must_check_ _nonnull_ int options_parse(int argc, char **argv, const CommandTable *commands, Options *ret,
                                         Diag *diag);
/* For o->help_for, or of the whole program, on stdout. */
_nonnull_ void options_print_help(const Options *o, const CommandTable *commands);

/* The table of options, for the parser and for help. */

typedef struct FlagRow {
        char name[24], argument[8];     /* argument "": it takes none */
        char letter;
        uint16_t text, on;              /* offsets in Options */
} FlagRow;
extern const FlagRow flag_rows[_FLAG_MAX];
extern const char *const program_names[_PROGRAM_MAX];

/* The help on an option, as that command has it; "" if there is none. */
_nonnull_ const char *flag_help(Flag flag, const Command *command);
extern const unsigned char help_texts[];        /* conf/help.txt, packed: a line for each text */
extern const size_t help_texts_size;
