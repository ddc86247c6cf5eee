/* SPDX-License-Identifier: Apache-2.0
 * argv → Options. nodeadm's spellings are kept (-c, -s, -d, -o, --development); options may stand before
 * the command or behind it, and "-c=URI" means the same as "-c URI", because scripts written for nodeadm use
 * all of these. */
#include "cli/cli.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#define BIT(n)       (UINT64_C(1) << (n))
#define usage(diag, ...) diag_error(diag, -EINVAL, CAUSE_USAGE, __VA_ARGS__)
#define TIMEOUT_MAX  (86400 * USEC_PER_SEC)
#define INTERFACES_MAX 999
#define LONG_ONLY    256                /* getopt_long() hands out flags that have
                                         * no letter as this and their number */

static const char *const program_names[_PROGRAM_MAX] = { "nodestrap", "nodeadm", "nodeadm-internal" };
static const char formats[_OUTPUT_MAX][8] = {
        [OUTPUT_TEXT] = "text", [OUTPUT_JSON] = "json", [OUTPUT_SVG] = "svg",
        [OUTPUT_METRICS] = "metrics", [OUTPUT_SARIF] = "sarif"
};

/* Where its argument goes in Options, or that it is given. */
#define TEXT(member) .text = _Generic(((Options *)NULL)->member, const char *: offsetof(Options, member))
#define ON(member)   .on = _Generic(((Options *)NULL)->member, bool: offsetof(Options, member))
static const struct FlagRow {
        char name[24], argument[8];     /* argument "": it takes none */
        const char *help;
        char letter;
        uint16_t text, on;
} flags[_FLAG_MAX] = {
        [FLAG_CONFIG_SOURCE]      = { "config-source", "URI",
                "imds://user-data, file://PATH, PATH, each a file or directory, or - for stdin; repeatable "
                "(default: the sources of the boot, else imds://user-data)",
                .letter = 'c' },
        [FLAG_CONFIG_CACHE]       = { "config-cache", "FILE",
                                      "keep the merged configuration here; used when no source has one" },
        [FLAG_SKIP]               = { "skip", "PHASE",
                                      "leave out a phase: config, devices or run; repeatable",
                                      .letter = 's' },
        [FLAG_DAEMON]             = { "daemon", "NAME",
                                      "only containerd or kubelet, or \"\": none; repeatable",
                                      .letter = 'd' },
        [FLAG_DRY_RUN]            = { "dry-run", "", "show the plan, and do nothing of it", ON(dry_run) },
        [FLAG_STRICT]             = { "strict", "",
                                      "warnings about the input are errors", ON(strict) },
        [FLAG_PARTIAL]            = { "partial", "",
                                      "a drop-in: what only the merged whole must have may be missing",
                                      ON(partial) },
        [FLAG_STRICT_NODE_NAME]   = { "strict-node-name", "",
                                      "wait for EC2 to say the node's name, for ten minutes at most",
                                      ON(strict_node_name) },
        [FLAG_CREDENTIAL_PLUGIN]  = { "credential-plugin", "NAME",
                                      "kubeconfig's exec plugin: nodestrap (default) or aws" },
        [FLAG_OUTPUT]             = { "output", "FORMAT",
                "text (default) or json; of status also svg, metrics, of config check sarif" },
        [FLAG_WRITE_TO]           = { "write-to", "DIR", "also write every planned file below DIR",
                                      TEXT(write_to) },
        [FLAG_SHOW_SECRETS]       = { "show-secrets", "",
                                      "with what is free in the configuration; for root and its owner",
                                      ON(show_secrets) },
        [FLAG_SHOW_DIFF]          = { "show-diff", "", "with what changes in files, line by line",
                                      ON(show_diff) },
        [FLAG_DIFF]               = { "diff", "FILE",
                                      "only what differs from an earlier plan --output json", TEXT(diff) },
        [FLAG_MATRIX]             = { "matrix", "TYPES", "a table of many types: TYPE,TYPE, ./FILE or all",
                                      TEXT(matrix) },
        [FLAG_DETAILED_EXITCODE]  = { "detailed-exitcode", "",
                                      "0: nothing to do, 2: something, 1: called wrongly",
                                      ON(detailed_exitcode) },
        [FLAG_INSTANCE_TYPE]      = { "instance-type", "TYPE",
                                      "plan for such a machine, not this one; doctor: TYPE,TYPE",
                                      TEXT(instance_type) },
        [FLAG_KUBELET_VERSION]    = { "kubelet-version", "VERSION", "plan for this kubelet",
                                      TEXT(kubelet_version) },
        [FLAG_CONTAINERD_VERSION] = { "containerd-version", "VERSION", "plan for this containerd",
                                      TEXT(containerd_version) },
        [FLAG_DRIVER_VERSION]     = { "driver-version", "VERSION", "plan for this NVIDIA driver",
                                      TEXT(driver_version) },
        [FLAG_INTERFACES]         = { "interfaces", "N",
                                      "show which network card, metric and table N interfaces get" },
        [FLAG_CONFIG_OUTPUT]      = { "config-output", "FILE",
                                      "write there instead of stdout", .letter = 'o' },
        [FLAG_CLUSTER_NAME]       = { "cluster-name", "NAME", "the cluster that the token is for",
                                      TEXT(cluster_name) },
        [FLAG_CLUSTER_ID]         = { "cluster-id", "ID", "the same for a local cluster on an Outpost",
                                      TEXT(cluster_id) },
        [FLAG_REGION]             = { "region", "REGION",
                "token: of the cluster; default: AWS_REGION, AWS_DEFAULT_REGION, this instance's; "
                "sign: only for instances there", TEXT(region) },
        [FLAG_ROLE_ARN]           = { "role-arn", "ARN", "assume this role first", TEXT(role_arn) },
        [FLAG_KEY]                = { "key", "FILE",
                                      "sign: with this private key; verify: by this public one",
                                      .letter = 'k', TEXT(key) },
        [FLAG_ACCOUNT]            = { "account", "ID", "sign only for instances of this account",
                                      TEXT(account) },
        [FLAG_CLUSTER]            = { "cluster", "NAME", "sign only for the cluster of that name",
                                      TEXT(cluster) },
        [FLAG_SERIAL]             = { "serial", "N",
                "what must never be lower than before; default: seconds since 1970", TEXT(serial) },
        [FLAG_FOR]                = { "for", "GOAL", "registered or ready (default)", TEXT(goal) },
        [FLAG_TIMEOUT]            = { "timeout", "TIME", "how long to wait; default: 5m, of boot-hook 1m" },
        [FLAG_BUNDLE]             = { "bundle", "FILE",
                "all that a support case needs, and no secret, as .tar.gz; - is stdout", TEXT(bundle) },
        [FLAG_EXIT_CODE]          = { "exit-code", "",
                "end with init's exit status, 0 when all is well, 3 where it has not ended", ON(exit_code) },
        [FLAG_FOLLOW]             = { "follow", "",
                "tell each step as it begins and ends, until the boot has a verdict", ON(follow) },
        [FLAG_LONG]               = { "long", "", "with each step, how long it took and what it found",
                                      ON(whole) },
        [FLAG_ACTION]             = { "action", "ACTION", "what became of the interface: add or remove",
                                      .letter = 'a', TEXT(action) },
        [FLAG_INTERFACE]          = { "interface", "NAME", "the network interface", .letter = 'i',
                                      TEXT(interface) },
        [FLAG_ROOT]               = { "root", "DIR",
                                      "every path read or written lies below DIR, /proc and /sys too",
                                      TEXT(root) },
        [FLAG_ASK]                = { "ask", "",
                                      "also have kubelet and containerd here try the planned files",
                                      ON(ask) },
        [FLAG_DEVELOPMENT]        = { "development", "", "debug log", ON(development) },
        [FLAG_HELP]               = { "help", "",
                                      "this text; COMMAND --help for one command", .letter = 'h' },
        [FLAG_VERSION]            = { "version", "", "print the version" },
};

/* Where an option is another one than of the other commands. */
static const struct { const char *words; Flag flag; const char *help; } own_help[] = {
        { "init", FLAG_CONFIG_SOURCE,
          "imds://user-data or file://PATH, a file or directory; repeatable (default: the sources of "
          "the boot, else imds://user-data)" },
        { "doctor", FLAG_CONFIG_SOURCE,
          "imds://user-data, file://PATH, PATH, each a file or directory, or - for stdin; repeatable "
          "(default: the sources of the boot, else a plain NodeConfig)" },
        { "config schema", FLAG_STRICT, "a closed one, for editors" },
};

void options_done(Options *o) {
        o->sources = strv_free(o->sources);
        o->daemons = strv_free(o->daemons);
        o->instance_types = strv_free(o->instance_types);
        o->argv = strv_free(o->argv);
}

/* nodeadm looks for the names that it knows and passes over others without a word; called by its name, so do
 * we, with one. */
static int refuse_name(const Options *o, const char *flag, const char *known, const char *name, Diag *diag) {
        if (o->name == PROGRAM_NODESTRAP)
                return usage(diag, "--%s takes %s, not \"%s\"", flag, known, name);
        diag_warn(diag, "unknown-name", "--%s takes %s; nothing has the name \"%s\"", flag, known, name);
        return 0;
}

/* nodeadm has no phase of that name. */
static int add_skip(Options *o, const char *phase, Diag *diag) {
        bool own = o->name == PROGRAM_NODESTRAP;
        if (streq(phase, "config"))
                o->skip_config = true;
        else if (own && streq(phase, "devices"))
                o->skip_devices = true;
        else if (streq(phase, "run"))
                o->skip_run = true;
        else
                return refuse_name(o, "skip", own ? "config, devices or run" : "config or run", phase, diag);
        return 0;
}

/* "" is no daemon: everything but them. */
static int add_daemon(Options *o, const char *name, Diag *diag) {
        bool known = !*name || streq(name, "containerd") || streq(name, "kubelet");
        int r = known ? 0 : refuse_name(o, "daemon", "containerd or kubelet", name, diag);
        strv_add(&o->daemons, name);
        return r;
}

static int set_output(Options *o, const char *format, Diag *diag) {
        for (o->output = 0; o->output < _OUTPUT_MAX; o->output++)
                if (streq(format, formats[o->output]))
                        return 0;
        return usage(diag,
                     "--output takes text or json, of status also svg or metrics, of config check also "
                     "sarif, not \"%s\"", format);
}

static int set_plugin(Options *o, const char *name, Diag *diag) {
        if (!ONE_OF(name, "nodestrap", "aws"))
                return usage(diag, "--credential-plugin takes nodestrap or aws, not \"%s\"", name);
        if (!streq(name, "aws") && o->name != PROGRAM_NODESTRAP)
                return usage(diag,
                             "called as %s, the program writes nodeadm's kubeconfig, which names aws; only "
                             "under its own name it takes --credential-plugin %s", program_names[o->name],
                             name);
        o->credential_plugin = name;
        return 0;
}

static int set_timeout(Options *o, const char *text, Diag *diag) {
        uint64_t usec = 0;
        if (parse_timespan(text, &usec) < 0 || usec == 0 || usec > TIMEOUT_MAX)
                return usage(diag, "--timeout takes a time like 90s, 5m or 1h30m, up to a day, not \"%s\"",
                             text);
        o->timeout_usec = usec;
        return 0;
}

static int set_interfaces(Options *o, const char *text, Diag *diag) {
        uint64_t n = 0;
        if (parse_u64(text, &n) < 0 || n < 1 || n > INTERFACES_MAX)
                return usage(diag, "--interfaces takes a number from 1 to %d, not \"%s\"", INTERFACES_MAX,
                             text);
        o->interfaces = (unsigned)n;
        return 0;
}

static int set_flag(Options *o, Flag flag, const char *argument, Diag *diag) {
        if (flags[flag].on > 0)
                *(bool *)((char *)o + flags[flag].on) = true;
        if (flags[flag].text > 0)
                *(const char **)(void *)((char *)o + flags[flag].text) = argument;
        switch (flag) {
        case FLAG_CONFIG_SOURCE:      strv_add(&o->sources, argument); return 0;
        case FLAG_CONFIG_CACHE:       o->cache = *argument ? argument : NULL; return 0;
        case FLAG_SKIP:               return add_skip(o, argument, diag);
        case FLAG_DAEMON:             return add_daemon(o, argument, diag);
        case FLAG_CREDENTIAL_PLUGIN:  return set_plugin(o, argument, diag);
        case FLAG_OUTPUT:             return set_output(o, argument, diag);
        case FLAG_WRITE_TO:
                return *argument ? 0 : usage(diag, "--write-to takes the name of a directory");
        case FLAG_INSTANCE_TYPE:      strv_add(&o->instance_types, argument); return 0;
        case FLAG_INTERFACES:         return set_interfaces(o, argument, diag);
        case FLAG_CONFIG_OUTPUT:      o->output_file = *argument ? argument : NULL; return 0;
        case FLAG_FOR:
                return ONE_OF(argument, "registered", "ready")
                               ? 0 : usage(diag, "--for takes registered or ready, not \"%s\"", argument);
        case FLAG_TIMEOUT:            return set_timeout(o, argument, diag);
        case FLAG_BUNDLE:
                return *argument ? 0 : usage(diag, "--bundle takes the name of a file, like node.tar.gz, "
                                                   "or - for stdout");
        default:                      return 0;         /* help and version: options_parse() has noted them */
        }
}

/* What getopt_long() calls a flag: its letter, where it has one. */
static int flag_value(size_t flag) {
        return flags[flag].letter ? flags[flag].letter : LONG_ONLY + (int)flag;
}

/* The other way round; _FLAG_MAX for a value that is no flag's. */
static Flag flag_of(int value) {
        size_t i = 0;
        while (i < _FLAG_MAX && flag_value(i) != value)
                i++;
        return (Flag)i;
}

static int unknown_command(const char *words, ProgramName name, const CommandTable *commands, Diag *diag) {
        Nearest near = { .text = words };
        for (size_t i = 0; i < commands->n; i++)
                if (commands->items[i].names & BIT(name))
                        nearest_try(&near, commands->items[i].words);
        int r = usage(diag, "there is no command \"%s\"%s; see %s --help", words,
                      name == PROGRAM_NODESTRAP ? "" : " under this name", program_names[name]);
        diag_suggest_name(diag, "", near.best);
        return r;
}

/* The command whose words these are, or begin with; then *ret_rest is what stands behind them. */
static const Command *command_of(const char *joined, ProgramName name, const CommandTable *commands,
                                 const char **ret_rest) {
        for (size_t i = 0; i < commands->n; i++) {
                const Command *c = &commands->items[i];
                size_t n = strlen(c->words);
                bool ends = startswith(joined, c->words) && (!joined[n] || joined[n] == ' ');
                if (!ends || !(c->names & BIT(name)))
                        continue;
                *ret_rest = joined[n] ? joined + n + 1 : NULL;
                return c;
        }
        return NULL;
}

/* "config", "check", "a.yaml" → the words behind those of the command are sources; nodeadm takes nothing
 * there. */
static bool takes_sources(const Command *c, char *const *words, Options *o) {
        size_t n = 1;
        for (const char *p = c->words; *p; p++)
                n += *p == ' ';
        if (!(c->finds || c->takes_words) || o->name != PROGRAM_NODESTRAP || strv_length(words) <= n)
                return false;
        o->each = c->finds;
        strv_extend(&o->sources, words + n);
        return true;
}

static int refuse_rest(const Command *c, const char *rest, const Options *o, Diag *diag) {
        if (c->flags & BIT(FLAG_CONFIG_SOURCE))
                return usage(diag,
                             "%s takes no \"%s\" behind its name; a source is named by -c, as in -c "
                             "file://PATH", c->words, rest);
        return usage(diag, "%s takes no \"%s\" behind its name; see %s %s --help", c->words, rest,
                     program_names[o->name], c->words);
}

/* "config", "check" → the row of that command; "config" alone is a question for help. */
static int find_command(char *const *words, const CommandTable *commands, Options *o, Diag *diag) {
        _free_ char *joined = strv_join(words, " "), *group = xasprintf("%s ", joined);
        const char *rest = NULL;

        if (!words)
                return 0;
        const Command *c = command_of(joined, o->name, commands, &rest);
        if (c && rest && !takes_sources(c, words, o))
                return refuse_rest(c, rest, o, diag);
        if (c)
                o->command = c;
        if (c || streq(joined, commands->help->words))
                return 0;
        for (size_t i = 0; i < commands->n; i++)
                if (commands->items[i].names & BIT(o->name) && startswith(commands->items[i].words, group))
                        return 0;
        return unknown_command(joined, o->name, commands, diag);
}

/* value is what getopt_long() returned, word where it stopped, words what came before it; optopt is 0 for a
 * name that it does not know. */
static int refuse_flag(int value, const char *word, char *const *words, const CommandTable *commands,
                       const Options *o, Diag *diag) {
        const char *rest;
        _free_ char *joined = strv_join(words, " ");
        const Command *c = words ? command_of(joined, o->name, commands, &rest) : NULL;
        _free_ char *see = xasprintf("see %s%s%s --help", program_names[o->name], c ? " " : "",
                                     c ? c->words : "");
        int n = (int)strcspn(word, "=");
        if (value == ':')
                return usage(diag, "option %.*s lacks its value; %s", n, word, see);
        if (optopt && flag_of(optopt) == _FLAG_MAX)
                return usage(diag, "option -%c is unknown; %s", optopt, see);
        if (optopt)
                return usage(diag, "option %.*s takes no value; %s", n, word, see);
        Nearest near = { .text = word + strspn(word, "-") };
        for (size_t i = 0; i < _FLAG_MAX; i++)
                if (!c || c->flags & BIT(i))
                        nearest_try(&near, flags[i].name);
        int r = usage(diag, "option %.*s is unknown; %s", n, word, see);
        diag_suggest_name(diag, "--", near.best);
        return r;
}

static int check_flags_fit(const Options *o, const bool *seen, Diag *diag) {
        const char *words = o->command->words;
        for (size_t i = 0; i < _FLAG_MAX; i++)
                if (seen[i] && !(o->command->flags & BIT(i))) {
                        int r = usage(diag, "%s does not take --%s; see %s %s --help", words, flags[i].name,
                                      program_names[o->name], words);
                        /* nodeadm's -o is a file; most other programs' is how they print */
                        if (i == FLAG_CONFIG_OUTPUT && o->command->flags & BIT(FLAG_OUTPUT))
                                diag_suggest(diag, "--%s", flags[FLAG_OUTPUT].name);
                        return r;
                }
        if ((o->output == OUTPUT_SVG || o->output == OUTPUT_METRICS) && !o->command->draws)
                return usage(diag, "%s cannot be %s: --output takes text or json here", words,
                             o->output == OUTPUT_SVG ? "drawn" : "told in metrics");
        if (o->output == OUTPUT_SARIF && !o->command->finds)
                return usage(diag, "--output sarif is for config check; of %s it takes text or json", words);
        if (o->each && seen[FLAG_CONFIG_SOURCE])
                return usage(diag,
                             "%s takes files, each a configuration by itself, or --config-source, for one "
                             "that is merged; not both", words);
        if (o->instance_type && strchr(o->instance_type, ',') && o->command->flags & BIT(FLAG_MATRIX))
                return usage(diag,
                             "--instance-type takes one type here; --matrix %s makes a table of several",
                             o->instance_type);
        if (o->bundle && (seen[FLAG_OUTPUT] || o->exit_code || o->follow || o->whole))
                return usage(diag, "--bundle takes all that there is: leave out --%s",
                             o->follow      ? "follow"
                             : o->exit_code ? "exit-code"
                             : o->whole     ? "long"
                                            : "output");
        if (o->follow && o->output != OUTPUT_TEXT)
                return usage(diag, "--follow tells in words: leave out --output");
        return 0;
}

static void make_getopt_tables(struct option *longs, char *shorts) {
        *shorts++ = '-';        /* hand out the command's words, too, whatever POSIXLY_CORRECT says */
        *shorts++ = ':';        /* tell a missing value from an unknown option; we print, not getopt */
        for (size_t i = 0; i < _FLAG_MAX; i++) {
                longs[i] = (struct option){ .name = flags[i].name,
                                            .has_arg = *flags[i].argument ? required_argument : no_argument,
                                            .val = flag_value(i) };
                if (!flags[i].letter)
                        continue;
                *shorts++ = flags[i].letter;
                if (*flags[i].argument)
                        *shorts++ = ':';
        }
        *shorts = 0;
}

typedef struct Parsed { char **words; bool seen[_FLAG_MAX]; } Parsed;

static void parsed_done(Parsed *p) {
        strv_free(p->words);
}

static int parse_argv(int argc, char **argv, const CommandTable *commands, Options *o, Parsed *p,
                      Diag *diag) {
        struct option longs[_FLAG_MAX + 1] = {};
        char shorts[2 * _FLAG_MAX + 3];
        int r = 0;

        make_getopt_tables(longs, shorts);
        opterr = 0;
        while (r >= 0) {
                int value = getopt_long(argc, argv, shorts, longs, NULL);
                const char *argument = optarg ?: "";
                if (value == -1)
                        break;
                if (value == '?' || value == ':')
                        return refuse_flag(value, argv[optind - 1], p->words, commands, o, diag);
                if (value == 1) {
                        strv_add(&p->words, argument);
                        continue;
                }
                Flag flag = flag_of(value);
                p->seen[flag] = true;
                r = set_flag(o, flag, argument + (flags[flag].letter && *argument == '='), diag);
        }
        for (int i = optind; i < argc; i++)     /* behind "--" */
                strv_add(&p->words, argv[i]);
        return r;
}

static ProgramName called_by(const char *path) {
        const char *name = path_last(path);
        /* the longest one first; behind it may stand what tells several apart: nodeadm-0.4 */
        for (ProgramName n = _PROGRAM_MAX - 1; n > PROGRAM_NODESTRAP; n--)
                if (startswith(name, program_names[n]))
                        return n;
        return PROGRAM_NODESTRAP;
}

/* nodeadm reads its command line with flaggy (github.com/integrii/flaggy): a name may stand behind one dash
 * or two, a switch may be followed by "=true" or "=false" (Go's strconv.ParseBool), and -d is --development
 * for all but init, which has --daemon. NULL: says nothing. */
static char *respell(const char *word, bool daemons) {
        size_t dashes = strspn(word, "-"), n = strcspn(word + dashes, "=");
        const char *name = word + dashes, *value = name[n] ? name + n + 1 : NULL;

        if (dashes == 0 || dashes > 2 || n == 0)
                return xstrdup(word);
        if (n == 1)
                return !daemons && streq(name, "d") ? xstrdup("--development") : xasprintf("-%s", name);
        for (size_t i = 0; i < _FLAG_MAX; i++) {
                if (strlen(flags[i].name) != n || strncmp(flags[i].name, name, n) != 0)
                        continue;
                int on = value && !*flags[i].argument ? parse_bool(value) : -EINVAL;
                return on == 0 ? NULL : xasprintf("--%s", on > 0 ? flags[i].name : name);
        }
        return xstrdup(word);
}

/* Is the next word the value of this one? */
static bool takes_next(const char *word) {
        for (size_t i = 0; i < _FLAG_MAX; i++) {
                bool is_long = startswith(word, "--") && streq(word + 2, flags[i].name);
                bool is_short = word[0] == '-' && word[1] && word[1] == flags[i].letter && !word[2];
                if (*flags[i].argument && (is_long || is_short))
                        return true;
        }
        return false;
}

static char **respell_all(int argc, char **argv) {
        bool value = false, daemons = false, end = false;
        char **all = NULL;

        for (int i = 0; i < argc; i++) {
                char *word = i == 0 || value || end ? xstrdup(argv[i]) : respell(argv[i], daemons);
                if (!word)
                        continue;
                end = end || (!value && streq(word, "--"));
                daemons = daemons || (i > 0 && !value && streq(word, "init"));
                value = i > 0 && !value && takes_next(word);
                strv_push(&all, word);
        }
        return all;
}

/* --help and --version ask about the command; so does who names none of them. */
static int ask_about(const Parsed *p, const CommandTable *commands, Options *o, Diag *diag) {
        bool help = p->seen[FLAG_HELP], version = p->seen[FLAG_VERSION];
        o->help_for = o->command == commands->help ? NULL : o->command;
        o->command = version && !help ? commands->version : commands->help;
        if (!p->words && !help && !version)
                return usage(diag, "no command given; %s --help lists them", program_names[o->name]);
        return 0;
}

int options_parse(int argc, char **argv, const CommandTable *commands, Options *o, Diag *diag) {
        _cleanup_(parsed_done) Parsed p = {};

        *o = (Options){ .name = called_by(argc > 0 ? argv[0] : ""),
                        .command = commands->help,
                        .root = "/",
                        .goal = "ready" };
        o->credential_plugin = o->name == PROGRAM_NODESTRAP ? "nodestrap" : "aws";
        if (o->name != PROGRAM_NODESTRAP) {
                o->argv = respell_all(argc, argv);
                argc = (int)strv_length(o->argv);
                argv = o->argv;
        }
        /* also where what stands before it cannot be read: it says what that comes to */
        o->detailed_exitcode = strv_contains(argv, "--detailed-exitcode");
        int r = parse_argv(argc, argv, commands, o, &p, diag) ?: find_command(p.words, commands, o, diag);
        if (r < 0)
                return r;
        if (p.seen[FLAG_HELP] || p.seen[FLAG_VERSION] || o->command == commands->help)
                return ask_about(&p, commands, o, diag);
        r = check_flags_fit(o, p.seen, diag);
        if (r >= 0 && o->dry_run)
                o->command = o->command->dry_run;       /* also in what it asks */
        /* nodeadm has two phases, the first of which must not hold up cloud-init. */
        if (o->name != PROGRAM_NODESTRAP)
                o->skip_devices = o->skip_run;
        return r;
}

/* ---- help ---- */

static const char *help_of(size_t flag, const char *words) {
        for (size_t i = 0; i < ARRAY_SIZE(own_help); i++)
                if (own_help[i].flag == flag && streq(own_help[i].words, words))
                        return own_help[i].help;
        return flags[flag].help;
}

static void print_flags(const Command *c) {
        for (size_t i = 0; i < _FLAG_MAX; i++) {
                const struct FlagRow *f = &flags[i];
                char letter[] = { '-', f->letter, ',', ' ', 0 };
                if (!(c->flags & BIT(i)))
                        continue;
                _free_ char *spelled = xasprintf("%s--%s%s%s", f->letter ? letter : "    ", f->name,
                                                 *f->argument ? " " : "", f->argument);
                printf("  %-32s %s\n", spelled, help_of(i, c->words));
        }
}

void options_print_help(const Options *o, const CommandTable *commands) {
        if (o->help_for) {
                printf("nodestrap %s: %s\n\nOptions:\n", o->help_for->words, o->help_for->help);
                print_flags(o->help_for);
                return;
        }
        printf("nodestrap turns a bare EC2 instance into a working node of an EKS cluster.\n\nCommands:\n");
        for (size_t i = 0; i < commands->n; i++)
                if (commands->items[i].names & BIT(o->name))
                        printf("  %-16s %s\n", commands->items[i].words, commands->items[i].help);
        printf("\nOptions of every command:\n");
        print_flags(commands->help);
        puts("\nSee nodestrap COMMAND --help, nodestrap(8), NodeConfig(5), and nodestrap-codes(7) for every "
             "code.");
}
