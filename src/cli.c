/* SPDX-License-Identifier: Apache-2.0
 * argv → Options. nodeadm's spellings are kept (-c, -s, -d, -o, --development); options may stand before the
 * command or behind it, and "-c=URI" means the same as "-c URI", because scripts written for nodeadm use all
 * of these. */
#include "cli.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#define BIT(command) (1u << (command))
#define LOADS   (BIT(COMMAND_INIT) | BIT(COMMAND_PLAN) | BIT(COMMAND_CONFIG_CHECK) | BIT(COMMAND_CONFIG_DUMP))
#define PLANS   (BIT(COMMAND_INIT) | BIT(COMMAND_PLAN))
#define PRINTS  (PLANS | BIT(COMMAND_STATUS))
#define ALL     (~0u)
#define TIMEOUT_USEC (300 * USEC_PER_SEC)
#define TIMEOUT_MAX  (86400 * USEC_PER_SEC)

/* The names that the program may be called by, each with the commands that it has there. */
static const char *const program_names[] = { "nodestrap", "nodeadm", "nodeadm-internal" };
typedef enum Name { NAME_NODESTRAP, NAME_NODEADM, NAME_INTERNAL } Name;
#define OURS    BIT(NAME_NODESTRAP)
#define BOTH    (OURS | BIT(NAME_NODEADM))

static const struct { const char *words, *help; unsigned names; } commands[_COMMAND_MAX] = {
        [COMMAND_INIT]          = { "init",          "make this machine a node: load, validate, detect, plan, apply, report", BOTH },
        [COMMAND_PLAN]          = { "plan",          "show what init would do, on this machine or another; changes nothing", OURS },
        [COMMAND_CONFIG_CHECK]  = { "config check",  "validate the configuration", BOTH },
        [COMMAND_CONFIG_DUMP]   = { "config dump",   "print the merged NodeConfig as JSON", BOTH },
        [COMMAND_CONFIG_SCHEMA] = { "config schema", "print the JSON Schema of a NodeConfig", OURS },
        [COMMAND_TOKEN]         = { "token",         "a token for the API server of an EKS cluster, for kubelet and kubectl", OURS },
        [COMMAND_WAIT]          = { "wait",          "wait until this node has joined its cluster, or say why it does not", OURS },
        [COMMAND_STATUS]        = { "status",        "what the last boot did", OURS },
};

enum {
        OPT_ROOT = 256,
        OPT_STRICT,
        OPT_DRY_RUN,
        OPT_DEVELOPMENT,
        OPT_OUTPUT,
        OPT_CACHE,
        OPT_WRITE_TO,
        OPT_INSTANCE_TYPE,
        OPT_KUBELET,
        OPT_CONTAINERD,
        OPT_DRIVER,
        OPT_PLUGIN,
        OPT_CLUSTER_NAME,
        OPT_CLUSTER_ID,
        OPT_REGION,
        OPT_ROLE,
        OPT_FOR,
        OPT_TIMEOUT,
        OPT_VERSION
};

static const struct Flag {
        const char *name;
        int value;
        unsigned commands;
        const char *argument, *help;
} flags[] = {
        { "config-source", 'c', LOADS, "URI",
          "imds://user-data (default), file://PATH or a directory; repeatable" },
        { "config-cache", OPT_CACHE, PLANS, "FILE",
          "keep the merged configuration here; used when no source has one" },
        { "skip", 's', PLANS, "PHASE", "leave out a phase: config or run; repeatable" },
        { "daemon", 'd', PLANS, "NAME", "only containerd or kubelet; repeatable" },
        { "dry-run", OPT_DRY_RUN, BIT(COMMAND_INIT), NULL, "the same as plan" },
        { "strict", OPT_STRICT, LOADS, NULL, "warnings about the input are errors" },
        { "credential-plugin", OPT_PLUGIN, PLANS, "NAME",
          "kubeconfig's exec plugin: nodestrap (default) or aws" },
        { "output", OPT_OUTPUT, PRINTS, "FORMAT", "text (default) or json; of status also svg" },
        { "write-to", OPT_WRITE_TO, BIT(COMMAND_PLAN), "DIR", "also write every planned file below DIR" },
        { "instance-type", OPT_INSTANCE_TYPE, BIT(COMMAND_PLAN), "TYPE",
          "plan for such a machine instead of this one" },
        { "kubelet-version", OPT_KUBELET, BIT(COMMAND_PLAN), "VERSION", "plan for this kubelet" },
        { "containerd-version", OPT_CONTAINERD, BIT(COMMAND_PLAN), "VERSION", "plan for this containerd" },
        { "driver-version", OPT_DRIVER, BIT(COMMAND_PLAN), "VERSION", "plan for this NVIDIA driver" },
        { "config-output", 'o', BIT(COMMAND_CONFIG_DUMP) | BIT(COMMAND_CONFIG_SCHEMA), "FILE",
          "write there instead of stdout" },
        { "cluster-name", OPT_CLUSTER_NAME, BIT(COMMAND_TOKEN), "NAME", "the cluster that the token is for" },
        { "cluster-id", OPT_CLUSTER_ID, BIT(COMMAND_TOKEN), "ID",
          "the same for a local cluster on an Outpost" },
        { "region", OPT_REGION, BIT(COMMAND_TOKEN), "REGION",
          "of the cluster; default: AWS_REGION, AWS_DEFAULT_REGION, this instance's" },
        { "role-arn", OPT_ROLE, BIT(COMMAND_TOKEN), "ARN", "assume this role first" },
        { "for", OPT_FOR, BIT(COMMAND_WAIT), "GOAL", "registered or ready (default)" },
        { "timeout", OPT_TIMEOUT, BIT(COMMAND_WAIT), "TIME", "how long to wait; default: 5m" },
        { "root", OPT_ROOT, ALL & ~BIT(COMMAND_TOKEN), "DIR",
          "every path read or written lies below DIR, /proc and /sys too" },
        { "development", OPT_DEVELOPMENT, ALL, NULL, "debug log" },
        { "help", 'h', ALL, NULL, "this text; COMMAND --help for one command" },
        { "version", OPT_VERSION, ALL, NULL, "print the version" },
};

void options_done(Options *o) {
        o->sources = strv_free(o->sources);
        o->daemons = strv_free(o->daemons);
        o->argv = strv_free(o->argv);
}

static int add_skip(Options *o, const char *phase, Diag *diag) {
        if (streq(phase, "config"))
                o->skip_config = true;
        else if (streq(phase, "run"))
                o->skip_run = true;
        else
                return diag_error(diag, -EINVAL, CAUSE_USAGE, "--skip takes config or run, not \"%s\"",
                                  phase);
        return 0;
}

static int add_daemon(Options *o, const char *name, Diag *diag) {
        if (!streq(name, "containerd") && !streq(name, "kubelet"))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "--daemon takes containerd or kubelet, not \"%s\"", name);
        strv_add(&o->daemons, name);
        return 0;
}

static int set_output(Options *o, const char *format, Diag *diag) {
        static const char *const formats[] = {
                [OUTPUT_TEXT] = "text", [OUTPUT_JSON] = "json", [OUTPUT_SVG] = "svg"
        };
        for (o->output = 0; o->output < _OUTPUT_MAX; o->output++)
                if (streq(format, formats[o->output]))
                        return 0;
        return diag_error(diag, -EINVAL, CAUSE_USAGE,
                          "--output takes text or json, of status also svg, not \"%s\"", format);
}

static int set_plugin(Options *o, const char *name, Diag *diag) {
        CredentialPlugin plugin = credential_plugin_from_string(name);
        if (plugin < 0)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "--credential-plugin takes nodestrap or aws, not \"%s\"", name);
        if (plugin != PLUGIN_AWS && o->name != NAME_NODESTRAP)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "called as %s, the program writes nodeadm's kubeconfig, which names "
                                  "aws; only under its own name it takes --credential-plugin %s",
                                  program_names[o->name], name);
        o->plugin = plugin;
        return 0;
}

static int set_goal(Options *o, const char *name, Diag *diag) {
        int goal = kube_goal_from_string(name);
        if (goal < 0)
                return diag_error(diag, -EINVAL, CAUSE_USAGE, "--for takes registered or ready, not \"%s\"",
                                  name);
        o->goal = (KubeGoal)goal;
        return 0;
}

static int set_timeout(Options *o, const char *text, Diag *diag) {
        uint64_t usec = 0;
        if (parse_timespan(text, &usec) < 0 || usec == 0 || usec > TIMEOUT_MAX)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "--timeout takes a time like 90s, 5m or 1h30m, up to a day, not \"%s\"",
                                  text);
        o->timeout_usec = usec;
        return 0;
}

static int set_flag(Options *o, int value, const char *argument, Diag *diag) {
        switch (value) {
        case 'c': strv_add(&o->sources, argument); return 0;
        case 's': return add_skip(o, argument, diag);
        case 'd': return add_daemon(o, argument, diag);
        case 'o': o->output_file = argument; return 0;
        case OPT_CACHE: o->cache = argument; return 0;
        case OPT_ROOT: o->root = argument; return 0;
        case OPT_STRICT: o->strict = true; return 0;
        case OPT_DRY_RUN: o->dry_run = true; return 0;
        case OPT_DEVELOPMENT: o->development = true; return 0;
        case OPT_OUTPUT: return set_output(o, argument, diag);
        case OPT_PLUGIN: return set_plugin(o, argument, diag);
        case OPT_WRITE_TO: o->write_to = argument; return 0;
        case OPT_INSTANCE_TYPE: o->instance_type = argument; return 0;
        case OPT_KUBELET: o->kubelet_version = argument; return 0;
        case OPT_CONTAINERD: o->containerd_version = argument; return 0;
        case OPT_DRIVER: o->driver_version = argument; return 0;
        case OPT_CLUSTER_NAME: o->cluster_name = argument; return 0;
        case OPT_CLUSTER_ID: o->cluster_id = argument; return 0;
        case OPT_REGION: o->region = argument; return 0;
        case OPT_ROLE: o->role_arn = argument; return 0;
        case OPT_FOR: return set_goal(o, argument, diag);
        case OPT_TIMEOUT: return set_timeout(o, argument, diag);
        default: return diag_error(diag, -EINVAL, CAUSE_INTERNAL, "option %d has no meaning", value);
        }
}

static size_t flag_index(int value) {
        size_t i = 0;
        while (i < ARRAY_SIZE(flags) && flags[i].value != value)
                i++;
        return i;
}

/* value is what getopt_long() returned, word where it stopped; optopt is 0 for a name that it does not
 * know. */
static int refuse_flag(int value, const char *word, Diag *diag) {
        const char *names[ARRAY_SIZE(flags) + 1] = {}, *near;
        int n = (int)strcspn(word, "=");
        if (value == ':')
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "option %.*s lacks its value; see nodestrap --help", n, word);
        if (optopt && flag_index(optopt) == ARRAY_SIZE(flags))
                return diag_error(diag, -EINVAL, CAUSE_USAGE, "option -%c is unknown; see nodestrap --help",
                                  optopt);
        if (optopt)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "option %.*s takes no value; see nodestrap --help", n, word);
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                names[i] = flags[i].name;
        near = nearest_name(word + strspn(word, "-"), names);
        return diag_error(diag, -EINVAL, CAUSE_USAGE, "option %.*s is unknown%s%s; see nodestrap --help", n,
                          word, near ? ": did you mean --" : "", near ?: "");
}

static int unknown_command(const char *words, Name name, Diag *diag) {
        const char *known[_COMMAND_MAX + 1] = {}, *near;
        size_t n = 0;
        for (size_t i = 0; i < _COMMAND_MAX; i++)
                if (commands[i].names & BIT(name))
                        known[n++] = commands[i].words;
        near = nearest_name(words, known);
        return diag_error(diag, -EINVAL, CAUSE_USAGE, "there is no command \"%s\"%s%s%s; see %s --help",
                          words, name == NAME_NODESTRAP ? "" : " under this name",
                          near ? ": did you mean " : "", near ?: "", program_names[name]);
}

/* "config", "check" → COMMAND_CONFIG_CHECK. */
static int find_command(char *const *words, Options *o, Diag *diag) {
        _cleanup_(freep) char *joined = strv_join(words, " ");

        if (!words)
                return 0;
        for (size_t i = 0; i < _COMMAND_MAX; i++)
                if (commands[i].names & BIT(o->name) && streq(commands[i].words, joined)) {
                        o->command = (Command)i;
                        return 0;
                }
        if (streq(joined, "help") || (streq(joined, "config") && o->name != NAME_INTERNAL)) {
                o->command = COMMAND_HELP;
                return 0;
        }
        return unknown_command(joined, (Name)o->name, diag);
}

static int check_flags_fit(const Options *o, const bool *seen, Diag *diag) {
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                if (seen[i] && !(flags[i].commands & BIT(o->command)))
                        return diag_error(
                                diag, -EINVAL, CAUSE_USAGE, "%s does not take --%s; see nodestrap %s --help",
                                commands[o->command].words, flags[i].name, commands[o->command].words);
        if (o->output == OUTPUT_SVG && o->command != COMMAND_STATUS)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "%s cannot be drawn: --output takes text or json here",
                                  commands[o->command].words);
        return 0;
}

/* What goes into a header of the presigned URL. */
static bool is_cluster(const char *name) {
        for (const char *c = name; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        return false;
        return *name;
}

static int check_cluster(const Options *o, Diag *diag) {
        const char *cluster = o->cluster_id ?: o->cluster_name;
        if (!cluster || (o->cluster_id && o->cluster_name))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "token takes one of --cluster-name NAME and --cluster-id ID");
        if (!is_cluster(cluster))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "the name of the cluster is empty, or has characters that none has");
        if (o->role_arn && !*o->role_arn)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "--role-arn is empty; without it the token is that of this instance");
        return 0;
}

static void make_getopt_tables(struct option *longs, char *shorts) {
        *shorts++ =
                '-'; /* hand out the command's words, too, in their place, whatever POSIXLY_CORRECT says */
        *shorts++ = ':'; /* tell a missing value from an unknown option; we print, not getopt */
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                longs[i] =
                        (struct option){ flags[i].name, flags[i].argument ? required_argument : no_argument,
                                         NULL, flags[i].value };
                if (flags[i].value < 256) {
                        *shorts++ = (char)flags[i].value;
                        if (flags[i].argument)
                                *shorts++ = ':';
                }
        }
        *shorts = 0;
}

typedef struct Parsed { char **words; bool seen[ARRAY_SIZE(flags)], help, version; } Parsed;

static void parsed_done(Parsed *p) {
        strv_free(p->words);
}

static int parse_argv(int argc, char **argv, Options *o, Parsed *p, Diag *diag) {
        struct option longs[ARRAY_SIZE(flags) + 1] = {};
        char shorts[2 * ARRAY_SIZE(flags) + 3];
        int value, r = 0;

        make_getopt_tables(longs, shorts);
        opterr = 0;
        while (r >= 0 && (value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
                const char *argument = optarg ?: "";
                if (value == '?' || value == ':')
                        return refuse_flag(value, argv[optind - 1], diag);
                if (value == 1)
                        strv_add(&p->words, argument);
                else if (value == 'h')
                        p->help = true;
                else if (value == OPT_VERSION)
                        p->version = true;
                else {
                        p->seen[flag_index(value)] = true;
                        r = set_flag(o, value, argument + (value < 256 && *argument == '='), diag);
                }
        }
        for (int i = optind; i < argc; i++)     /* behind "--" */
                strv_add(&p->words, argv[i]);
        return r;
}

static Name called_by(const char *path) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        return streq(name, program_names[NAME_INTERNAL]) ? NAME_INTERNAL
               : startswith(name, "nodeadm")             ? NAME_NODEADM
                                                         : NAME_NODESTRAP;
}

/* nodeadm reads its command line with flaggy (github.com/integrii/flaggy): a name may stand behind one dash
 * or two, a switch may be followed by "=true" or "=false" (Go's strconv.ParseBool), and -d before the command
 * is --development. NULL: says nothing. */
static char *respell(const char *word, bool before_command) {
        size_t dashes = strspn(word, "-"), n = strcspn(word + dashes, "=");
        const char *name = word + dashes, *value = name[n] ? name + n + 1 : NULL;
        static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True", NULL };
        static const char *const no[] = { "0", "f", "F", "FALSE", "false", "False", NULL };

        if (dashes == 0 || dashes > 2 || n == 0)
                return xstrdup(word);
        if (n == 1)
                return before_command && streq(name, "d") ? xstrdup("--development") : xasprintf("-%s", name);
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                if (strlen(flags[i].name) != n || strncmp(flags[i].name, name, n) != 0)
                        continue;
                if (value && !flags[i].argument && strv_contains((char *const *)no, value))
                        return NULL;
                return value && !flags[i].argument && strv_contains((char *const *)yes, value)
                               ? xasprintf("--%s", flags[i].name)
                               : xasprintf("--%s", name);
        }
        return xstrdup(word);
}

/* Is the next word the value of this one? */
static bool takes_next(const char *word) {
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                bool is_long = startswith(word, "--") && streq(word + 2, flags[i].name);
                if (flags[i].argument &&
                    (is_long || (word[0] == '-' && word[1] == flags[i].value && !word[2])))
                        return true;
        }
        return false;
}

static char **respell_all(int argc, char **argv) {
        bool value = false, command = false, end = false;
        char **all = NULL;

        for (int i = 0; i < argc; i++) {
                char *word = i == 0 || value || end ? xstrdup(argv[i]) : respell(argv[i], !command);
                if (!word)
                        continue;
                end = end || (!value && streq(word, "--"));
                command = command || (i > 0 && !value && word[0] != '-');
                value = i > 0 && !value && takes_next(word);
                strv_push(&all, word);
        }
        return all;
}

int options_parse(int argc, char **argv, Options *o, Diag *diag) {
        _cleanup_(parsed_done) Parsed p = {};

        *o = (Options){ .name = called_by(argc > 0 ? argv[0] : ""),
                        .command = COMMAND_HELP,
                        .help_for = COMMAND_HELP,
                        .root = "/",
                        .goal = KUBE_READY,
                        .timeout_usec = TIMEOUT_USEC };
        o->plugin = o->name == NAME_NODESTRAP ? PLUGIN_NODESTRAP : PLUGIN_AWS;
        if (o->name == NAME_INTERNAL && argc > 1 && argv[1][0] != '-')
                /* before its options are found strange */
                return unknown_command(argv[1], NAME_INTERNAL, diag);
        if (o->name != NAME_NODESTRAP) {
                o->argv = respell_all(argc, argv);
                argc = (int)strv_length(o->argv);
                argv = o->argv;
        }
        int r = parse_argv(argc, argv, o, &p, diag);
        if (r >= 0)
                r = find_command(p.words, o, diag);
        if (r < 0)
                return r;
        if (p.help || p.version || o->command == COMMAND_HELP) {
                o->help_for = o->command;
                o->command = p.version && !p.help ? COMMAND_VERSION : COMMAND_HELP;
                if (!p.words && !p.help && !p.version)
                        return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                          "no command given; nodestrap --help lists them");
                return 0;
        }
        if (!o->sources)
                strv_add(&o->sources, "imds://user-data");
        r = check_flags_fit(o, p.seen, diag);
        if (r >= 0 && o->command == COMMAND_TOKEN)
                r = check_cluster(o, diag);
        if (r >= 0 && o->dry_run)
                o->command = COMMAND_PLAN;      /* the same, also in what it asks */
        return r;
}

static void print_flags(unsigned mask) {
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                if (!(flags[i].commands & mask))
                        continue;
                _cleanup_(freep) char *spelled = xasprintf("%c%c%s--%s%s%s", flags[i].value < 256 ? '-' : ' ',
                        flags[i].value < 256 ? flags[i].value : ' ', flags[i].value < 256 ? ", " : "  ",
                        flags[i].name, flags[i].argument ? " " : "", flags[i].argument ?: "");
                printf("  %-32s %s\n", spelled, flags[i].help);
        }
}

void options_print_help(const Options *o) {
        if (o->help_for != COMMAND_HELP) {
                printf("nodestrap %s: %s\n\nOptions:\n", commands[o->help_for].words,
                       commands[o->help_for].help);
                print_flags(BIT(o->help_for));
                return;
        }
        printf("nodestrap turns a bare EC2 instance into a working node of an EKS cluster.\n\nCommands:\n");
        for (size_t i = 0; i < _COMMAND_MAX; i++)
                if (commands[i].names & BIT(o->name))
                        printf("  %-14s %s\n", commands[i].words, commands[i].help);
        printf("\nOptions of every command:\n");
        print_flags(BIT(COMMAND_HELP));
        printf("\nSee nodestrap COMMAND --help, and nodestrap(8) for exit codes and files.\n");
}
