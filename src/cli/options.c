/* SPDX-License-Identifier: Apache-2.0
 * argv → Options. Scripts for nodeadm must work, so its spellings do (-c, -s, -d, -o, --development).
 * Options may stand before the command or behind it, and "-c=URI" means "-c URI". */
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
#define LONG_ONLY    256                /* getopt_long() returns this plus its number for a flag without a
                                         * letter */

const char *const program_names[_PROGRAM_MAX] = { "nodestrap", "nodeadm", "nodeadm-internal" };
static const char formats[_OUTPUT_MAX][9] = {
        [OUTPUT_TEXT] = "text", [OUTPUT_JSON] = "json", [OUTPUT_SVG] = "svg",
        [OUTPUT_METRICS] = "metrics", [OUTPUT_SARIF] = "sarif",
        [OUTPUT_MARKDOWN] = "markdown"
};

/* The member of Options for its argument, or for its use. */
#define TEXT(member) .text = _Generic(((Options *)NULL)->member, const char *: offsetof(Options, member))
#define ON(member)   .on = _Generic(((Options *)NULL)->member, bool: offsetof(Options, member))
const FlagRow flag_rows[_FLAG_MAX] = {
        [FLAG_CONFIG_SOURCE]      = { "config-source", "URI", .letter = 'c' },
        [FLAG_CONFIG_CACHE]       = { "config-cache", "FILE" },
        [FLAG_SKIP]               = { "skip", "PHASE", .letter = 's' },
        [FLAG_DAEMON]             = { "daemon", "NAME", .letter = 'd' },
        [FLAG_DRY_RUN]            = { "dry-run", "", ON(dry_run) },
        [FLAG_STRICT]             = { "strict", "", ON(strict) },
        [FLAG_PARTIAL]            = { "partial", "", ON(partial) },
        [FLAG_STRICT_NODE_NAME]   = { "strict-node-name", "", ON(strict_node_name) },
        [FLAG_CREDENTIAL_PLUGIN]  = { "credential-plugin", "NAME" },
        [FLAG_OUTPUT]             = { "output", "FORMAT", TEXT(format) },
        [FLAG_WRITE_TO]           = { "write-to", "DIR", TEXT(write_to) },
        [FLAG_SHOW_SECRETS]       = { "show-secrets", "", ON(show_secrets) },
        [FLAG_SHOW_DIFF]          = { "show-diff", "", ON(show_diff) },
        [FLAG_DIFF]               = { "diff", "FILE", TEXT(diff) },
        [FLAG_MATRIX]             = { "matrix", "TYPES", TEXT(matrix) },
        [FLAG_DETAILED_EXITCODE]  = { "detailed-exitcode", "", ON(detailed_exitcode) },
        [FLAG_INSTANCE_TYPE]      = { "instance-type", "TYPE", TEXT(instance_type) },
        [FLAG_INSTANCE_TYPE_FILE] = { "instance-type-file", "FILE", TEXT(instance_type_file) },
        [FLAG_KUBELET_VERSION]    = { "kubelet-version", "V", TEXT(kubelet_version) },
        [FLAG_CONTAINERD_VERSION] = { "containerd-version", "V", TEXT(containerd_version) },
        [FLAG_DRIVER_VERSION]     = { "driver-version", "V", TEXT(driver_version) },
        [FLAG_INTERFACES]         = { "interfaces", "N" },
        [FLAG_EFA]                = { "efa", "CARDS", TEXT(efa) },
        [FLAG_CONFIG_OUTPUT]      = { "config-output", "FILE", .letter = 'o' },
        [FLAG_CLUSTER_NAME]       = { "cluster-name", "NAME", TEXT(cluster_name) },
        [FLAG_CLUSTER_ID]         = { "cluster-id", "ID", TEXT(cluster_id) },
        [FLAG_REGION]             = { "region", "REGION", TEXT(region) },
        [FLAG_ROLE_ARN]           = { "role-arn", "ARN", TEXT(role_arn) },
        [FLAG_KEY]                = { "key", "FILE", .letter = 'k', TEXT(key) },
        [FLAG_ACCOUNT]            = { "account", "ID", TEXT(account) },
        [FLAG_CLUSTER]            = { "cluster", "NAME", TEXT(cluster) },
        [FLAG_SERIAL]             = { "serial", "N", TEXT(serial) },
        [FLAG_FOR]                = { "for", "GOAL", TEXT(goal) },
        [FLAG_TIMEOUT]            = { "timeout", "TIME" },
        [FLAG_BUNDLE]             = { "bundle", "FILE", TEXT(bundle) },
        [FLAG_EXIT_CODE]          = { "exit-code", "", ON(exit_code) },
        [FLAG_FOLLOW]             = { "follow", "", ON(follow) },
        [FLAG_LONG]               = { "long", "", ON(whole) },
        [FLAG_ACTION]             = { "action", "ACTION", .letter = 'a', TEXT(action) },
        [FLAG_INTERFACE]          = { "interface", "NAME", .letter = 'i', TEXT(interface) },
        [FLAG_ROOT]               = { "root", "DIR", TEXT(root) },
        [FLAG_ASK]                = { "ask", "", ON(ask) },
        [FLAG_DEVELOPMENT]        = { "development", "", ON(development) },
        [FLAG_HELP]               = { "help", "", .letter = 'h' },
        [FLAG_VERSION]            = { "version", "" },
};

/* Habits of other programs. */
static const struct { char typed[12], meant[16]; } habits[] = {
        { "validate", "config check" }, { "lint", "config check" }, { "apply", "init" },
        { "bootstrap", "init" }, { "logs", "status" }, { "v", "--version" }, { "V", "--version" },
        { "verbose", "--development" }, { "debug", "--development" }, { "format", "--output" },
};

void options_done(Options *o) {
        o->sources = strv_free(o->sources);
        o->daemons = strv_free(o->daemons);
        o->instance_types = strv_free(o->instance_types);
        o->argv = strv_free(o->argv);
        free(o->help_group);
}

/* nodeadm silently ignores unknown names. Under its name we ignore them, too, with a warning. */
static int refuse_name(const Options *o, const char *flag, const char *known, const char *name, Diag *diag) {
        if (o->name == PROGRAM_NODESTRAP)
                return usage(diag, "--%s takes %s, not \"%s\"", flag, known, name);
        diag_warn(diag, "unknown-name", "--%s takes %s; it ignores \"%s\"", flag, known, name);
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

/* "" names none of them: everything else is done. */
static int add_daemon(Options *o, const char *name, Diag *diag) {
        bool known = !*name || streq(name, "containerd") || streq(name, "kubelet");
        int r = known ? 0 : refuse_name(o, "daemon", "containerd or kubelet", name, diag);
        strv_add(&o->daemons, name);
        return r;
}

/* check_output() refuses the rest, when it knows the command. */
static void set_output(Options *o, const char *format) {
        for (o->output = 0; o->output < _OUTPUT_MAX; o->output++)
                if (streq(format, formats[o->output]))
                        return;
}

static int set_plugin(Options *o, const char *name, Diag *diag) {
        if (!ONE_OF(name, "nodestrap", "aws"))
                return usage(diag, "--credential-plugin takes nodestrap or aws, not \"%s\"", name);
        if (!streq(name, "aws") && o->name != PROGRAM_NODESTRAP)
                return usage(diag,
                             "--credential-plugin %s: called as %s, this program writes the kubeconfig of "
                             "nodeadm, which names aws; call it as nodestrap", name, program_names[o->name]);
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
        if (flag_rows[flag].on > 0)
                *(bool *)((char *)o + flag_rows[flag].on) = true;
        if (flag_rows[flag].text > 0)
                *(const char **)(void *)((char *)o + flag_rows[flag].text) = argument;
        switch (flag) {
        case FLAG_CONFIG_SOURCE:      strv_add(&o->sources, argument); return 0;
        case FLAG_CONFIG_CACHE:       o->cache = *argument ? argument : NULL; return 0;
        case FLAG_SKIP:               return add_skip(o, argument, diag);
        case FLAG_DAEMON:             return add_daemon(o, argument, diag);
        case FLAG_CREDENTIAL_PLUGIN:  return set_plugin(o, argument, diag);
        case FLAG_OUTPUT:             set_output(o, argument); return 0;
        case FLAG_WRITE_TO:
                return *argument ? 0 : usage(diag, "--write-to takes the name of a directory");
        case FLAG_INSTANCE_TYPE:      strv_add(&o->instance_types, argument); return 0;
        case FLAG_INTERFACES:         return set_interfaces(o, argument, diag);
        case FLAG_CONFIG_OUTPUT:      o->output_file = *argument ? argument : NULL; return 0;
        case FLAG_FOR:
                return ONE_OF(argument, "registered", "ready", "devices")
                               ? 0 : usage(diag, "--for takes registered, ready or devices, not \"%s\"",
                                           argument);
        case FLAG_TIMEOUT:            return set_timeout(o, argument, diag);
        case FLAG_BUNDLE:
                return *argument ? 0 : usage(diag, "--bundle takes the name of a file, like node.tar.gz, "
                                                   "or - for stdout");
        default:                      return 0;         /* help and version: options_parse() has noted them */
        }
}

/* The value that getopt_long() has for a flag: its letter, if it has one. */
static int flag_value(size_t flag) {
        return flag_rows[flag].letter ? flag_rows[flag].letter : LONG_ONLY + (int)flag;
}

/* The other way round; _FLAG_MAX for any other value. */
static Flag flag_of(int value) {
        size_t i = 0;
        while (i < _FLAG_MAX && flag_value(i) != value)
                i++;
        return (Flag)i;
}

static const char *habit(const char *typed, size_t n) {
        for (size_t i = 0; i < ARRAY_SIZE(habits); i++)
                if (strlen(habits[i].typed) == n && memcmp(habits[i].typed, typed, n) == 0)
                        return habits[i].meant;
        return NULL;
}

/* "chek" is near "check", too, the last word of "config check". */
static int unknown_command(const char *words, ProgramName name, const CommandTable *commands, Diag *diag) {
        Nearest near = { .text = words };
        const char *meant = NULL, *usual = name == PROGRAM_NODESTRAP ? habit(words, strlen(words)) : NULL;
        for (size_t i = 0; i < commands->n; i++) {
                const Command *c = &commands->items[i];
                const char *last = near.best, *group = strchr(c->words, ' ');
                if (!(c->names & BIT(name)) || (PORTABLE && !c->run))
                        continue;
                nearest_try(&near, c->words);
                if (group)
                        nearest_try(&near, group + 1);
                if (near.best != last)
                        meant = c->words;
        }
        int r = usage(diag, "command \"%s\" is not known%s; see %s --help", words,
                      name == PROGRAM_NODESTRAP ? "" : " under this program name", program_names[name]);
        diag_suggest_name(diag, "", usual ?: meant);
        return r;
}

/* The command whose words these are or begin with; *ret_rest holds the words after them. */
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

/* "config", "check", "a.yaml" → the words after those of the command are sources; nodeadm takes nothing
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
                             "%s takes no \"%s\" after its name; name a source by -c, as in -c file://PATH",
                             c->words, rest);
        return usage(diag, "%s takes no \"%s\" after its name; see %s %s --help", c->words, rest,
                     program_names[o->name], c->words);
}

/* "config", "check" → the row of that command; "config" alone asks for help on its commands. */
static int find_command(char *const *words, const CommandTable *commands, Options *o, Diag *diag) {
        _free_ char *joined = strv_join(words, " "), *group = xasprintf("%s ", joined);
        const char *rest = NULL;

        if (!words || !*words)
                return 0;
        const Command *c = command_of(joined, o->name, commands, &rest);
        if (PORTABLE && c && !c->run)
                return usage(diag, "%s is not in this build: install the package on the node", c->words);
        if (c && rest && !takes_sources(c, words, o))
                return refuse_rest(c, rest, o, diag);
        if (c)
                o->command = c;
        if (c)
                return 0;
        for (size_t i = 0; i < commands->n; i++)
                if (commands->items[i].names & BIT(o->name) && startswith(commands->items[i].words, group)) {
                        o->help_group = xstrdup(words[0]);
                        return 0;
                }
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
        if (optopt && flag_of(optopt) == _FLAG_MAX) {
                int r = usage(diag, "option -%c is unknown; %s", optopt, see);
                diag_suggest_name(diag, "", habit((const char[]){ (char)optopt }, 1));
                return r;
        }
        if (optopt)
                return usage(diag, "option %.*s takes no value; %s", n, word, see);
        const char *typed = word + strspn(word, "-"), *meant = habit(typed, strcspn(typed, "="));
        if (meant && (!startswith(meant, "--") ||
                      (streq(meant, "--output") && c && !(c->flags & BIT(FLAG_OUTPUT)))))
                meant = NULL;           /* this command does not take it */
        Nearest near = { .text = typed };
        for (size_t i = 0; i < _FLAG_MAX; i++)
                if (!c || c->flags & BIT(i))
                        nearest_try(&near, flag_rows[i].name);
        int r = usage(diag, "option %.*s is unknown; %s", n, word, see);
        diag_suggest_name(diag, meant ? "" : "--", meant ?: near.best);
        return r;
}

static int check_output(const Options *o, Diag *diag) {
        const Command *c = o->command;
        bool fits = o->output <= OUTPUT_JSON || (o->output <= OUTPUT_METRICS && c->draws) ||
                    (o->output == OUTPUT_SARIF && c->finds) ||
                    (o->output == OUTPUT_MARKDOWN && c->last == STAGE_PLAN);
        if (fits)
                return 0;
        const char *help = flag_help(FLAG_OUTPUT, c);
        return usage(diag, "%s --output prints %s, not \"%s\"", c->words,
                     help + (startswith(help, "print ") ? strlen("print ") : 0), o->format);
}

static int check_flags_fit(const Options *o, const bool *seen, Diag *diag) {
        const char *words = o->command->words;
        for (size_t i = 0; i < _FLAG_MAX; i++)
                if (seen[i] && !(o->command->flags & BIT(i))) {
                        int r = usage(diag, "%s does not take --%s; see %s %s --help", words,
                                      flag_rows[i].name, program_names[o->name], words);
                        /* nodeadm -o takes a file; most other programs take a format */
                        if (i == FLAG_CONFIG_OUTPUT && o->command->flags & BIT(FLAG_OUTPUT))
                                diag_suggest(diag, "--%s", flag_rows[FLAG_OUTPUT].name);
                        return r;
                }
        if (check_output(o, diag) < 0)
                return -EINVAL;
        if (o->each && seen[FLAG_CONFIG_SOURCE])
                return usage(diag,
                             "%s takes files, each a NodeConfig of its own, or --config-source for a merged "
                             "one, not both", words);
        if (o->instance_type && strchr(o->instance_type, ',') && o->command->flags & BIT(FLAG_MATRIX))
                return usage(diag,
                             "--instance-type takes one type here; --matrix %s makes a table of several",
                             o->instance_type);
        if (o->bundle && (seen[FLAG_OUTPUT] || o->exit_code || o->follow || o->whole))
                return usage(diag, "--bundle packs everything: leave out --%s",
                             o->follow      ? "follow"
                             : o->exit_code ? "exit-code"
                             : o->whole     ? "long"
                                            : "output");
        if (o->follow && o->output != OUTPUT_TEXT)
                return usage(diag, "--follow prints only text: leave out --output");
        return 0;
}

static void make_getopt_tables(struct option *longs, char *shorts) {
        *shorts++ = '-';        /* return the command words, too, whatever POSIXLY_CORRECT says */
        *shorts++ = ':';        /* tell a missing value from an unknown option; we print, not getopt */
        for (size_t i = 0; i < _FLAG_MAX; i++) {
                int takes = *flag_rows[i].argument ? required_argument : no_argument;
                longs[i] = (struct option){ flag_rows[i].name, takes, NULL, flag_value(i) };
                if (!flag_rows[i].letter)
                        continue;
                *shorts++ = flag_rows[i].letter;
                if (*flag_rows[i].argument)
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
                r = set_flag(o, flag, argument + (flag_rows[flag].letter && *argument == '='), diag);
        }
        for (int i = optind; i < argc; i++)     /* behind "--" */
                strv_add(&p->words, argv[i]);
        return r;
}

static ProgramName called_by(const char *path) {
        const char *name = path_last(path);
        /* the longest one first; a suffix may tell several apart: nodeadm-0.4 */
        for (ProgramName n = _PROGRAM_MAX - 1; n > PROGRAM_NODESTRAP; n--)
                if (startswith(name, program_names[n]))
                        return n;
        return PROGRAM_NODESTRAP;
}

/* nodeadm reads its command line with flaggy (github.com/integrii/flaggy). A name may follow one dash or two,
 * and "=true" or "=false" a switch (Go's strconv.ParseBool). -d is --development for all but init, which has
 * --daemon. NULL: drop the word. */
static char *respell(const char *word, bool daemons) {
        size_t dashes = strspn(word, "-"), n = strcspn(word + dashes, "=");
        const char *name = word + dashes, *value = name[n] ? name + n + 1 : NULL;

        if (dashes == 0 || dashes > 2 || n == 0)
                return xstrdup(word);
        if (n == 1)
                return !daemons && streq(name, "d") ? xstrdup("--development") : xasprintf("-%s", name);
        for (size_t i = 0; i < _FLAG_MAX; i++) {
                if (strlen(flag_rows[i].name) != n || strncmp(flag_rows[i].name, name, n) != 0)
                        continue;
                int on = value && !*flag_rows[i].argument ? parse_bool(value) : -EINVAL;
                return on == 0 ? NULL : xasprintf("--%s", on > 0 ? flag_rows[i].name : name);
        }
        return xstrdup(word);
}

/* Is the next word the value of this one? */
static bool takes_next(const char *word) {
        for (size_t i = 0; i < _FLAG_MAX; i++) {
                bool is_long = startswith(word, "--") && streq(word + 2, flag_rows[i].name);
                bool is_short = word[0] == '-' && word[1] && word[1] == flag_rows[i].letter && !word[2];
                if (*flag_rows[i].argument && (is_long || is_short))
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

/* --help and --version ask about the command; so does a line without one. */
static int ask_about(const Parsed *p, const CommandTable *commands, Options *o, Diag *diag) {
        bool help = p->seen[FLAG_HELP], version = p->seen[FLAG_VERSION];
        o->help_for = o->command == commands->help ? NULL : o->command;
        o->command = version && !help ? commands->version : commands->help;
        if (!p->words && !help && !version)
                return usage(diag, "no command given; %s --help lists them", program_names[o->name]);
        return help ? 0 : check_output(o, diag);
}

int options_parse(int argc, char **argv, const CommandTable *commands, Options *o, Diag *diag) {
        _cleanup_(parsed_done) Parsed p = {};

        *o = (Options){ .name = called_by(argc > 0 ? argv[0] : ""),
                        .command = commands->help,
                        .root = "/" };
        o->credential_plugin = o->name == PROGRAM_NODESTRAP ? "nodestrap" : "aws";
        if (o->name != PROGRAM_NODESTRAP) {
                o->argv = respell_all(argc, argv);
                argc = (int)strv_length(o->argv);
                argv = o->argv;
        }
        /* even after an unreadable word: it decides the exit code of that error */
        o->detailed_exitcode = strv_contains(argv, "--detailed-exitcode");
        int r = parse_argv(argc, argv, commands, o, &p, diag);
        if (r < 0)
                return r;
        bool about = p.words && streq(p.words[0], commands->help->words);       /* help plan: plan --help */
        r = find_command(p.words + about, commands, o, diag);
        if (r < 0)
                return r;
        p.seen[FLAG_HELP] |= about;
        if (p.seen[FLAG_HELP] || p.seen[FLAG_VERSION] || o->command == commands->help)
                return ask_about(&p, commands, o, diag);
        r = check_flags_fit(o, p.seen, diag);
        if (r >= 0 && o->dry_run)
                o->command = o->command->dry_run;       /* also in its requests */
        /* nodeadm has two phases, the first of which must not hold up cloud-init. */
        if (o->name != PROGRAM_NODESTRAP)
                o->skip_devices = o->skip_run;
        return r;
}
