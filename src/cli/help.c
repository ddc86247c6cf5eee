/* SPDX-License-Identifier: Apache-2.0
 * The table of commands and that of options → help, 80 columns wide. The zsh completion reads it. */
#include "cli/cli.h"

#include "base/str.h"

#include <stdio.h>

#define BIT(n)    (UINT64_C(1) << (n))
#define COLUMNS   80

static const char *const uses[_USE_MAX] = {
        [USE_NODE] = "Make a node", [USE_BEFORE] = "Before a boot", [USE_AFTER] = "After a boot",
        [USE_UNITS] = "Called by kubelet and by units", [USE_PROGRAM] = "About nodestrap",
};

/* Where the help on an option is that of one command. */
static const struct { char words[20]; Flag flag; const char *help; } own_help[] = {
        { "init", FLAG_CONFIG_SOURCE,
          "read the NodeConfig here: imds://user-data or file://PATH; repeatable "
          "(default: the sources that init reads at boot)" },
        { "doctor", FLAG_CONFIG_SOURCE,
          "read the NodeConfig here: imds://user-data, file://PATH, PATH, or - for stdin; repeatable "
          "(default: what init reads at boot; without any, or with --root, a plain NodeConfig)" },
        { "plan", FLAG_CONFIG_CACHE, "read the NodeConfig here if no source has one" },
        { "plan", FLAG_STRICT_NODE_NAME, "plan with the name from EC2; never assume one" },
        { "plan", FLAG_STRICT,
          "treat warnings about the input, or about settings that will not work, as errors" },
        { "doctor", FLAG_INSTANCE_TYPE,
          "test for TYPE,TYPE (default: this machine; with --root each type that the image supports)" },
        { "doctor", FLAG_KUBELET_VERSION, "test for this kubelet" },
        { "doctor", FLAG_CONTAINERD_VERSION, "test for this containerd" },
        { "doctor", FLAG_DRIVER_VERSION, "test for this NVIDIA driver" },
        { "doctor", FLAG_STRICT, "exit with 70 for a warning, too" },
        { "plan", FLAG_OUTPUT, "print text (default), json or markdown" },
        { "config check", FLAG_OUTPUT, "print text (default), json or sarif" },
        { "config schema", FLAG_STRICT, "print one that refuses unknown keys, for editors" },
        { "config sign", FLAG_REGION, "bind the signature to this region" },
        { "config verify", FLAG_KEY,
          "verify with this public key, not with those in /etc/nodestrap/trusted.d" },
        { "status", FLAG_OUTPUT, "print text (default), json, svg or metrics" },
        { "version", FLAG_LONG, "also print each table of facts, and its day" },
        { "udev-net-manager", FLAG_DRY_RUN, "print the decision; change nothing" },
        { "boot-hook", FLAG_TIMEOUT, "give up after TIME, such as 90s (default: 1m)" },
};

const char *flag_help(Flag flag, const Command *command) {
        for (size_t i = 0; i < ARRAY_SIZE(own_help); i++)
                if (own_help[i].flag == flag && streq(own_help[i].words, command->words))
                        return own_help[i].help;
        return flag_rows[flag].help;
}

/* The texts of a command, each behind the NUL of the one before. */
static const char *text_of(const Command *c, HelpText which) {
        const char *text = c->help;
        for (; which > 0; which--)
                text += strlen(text) + 1;
        return text;
}

/* The first line is at the column indent already; the others are brought there. */
static void print_wrapped(size_t indent, const char *text) {
        size_t at = indent;
        for (size_t n; *text; text += n + (text[n] == ' ')) {
                n = strcspn(text, " ");
                if (at > indent && at + 1 + n > COLUMNS) {
                        printf("\n%*s", (int)indent, "");
                        at = indent;
                }
                at += (size_t)printf("%s%.*s", at > indent ? " " : "", (int)n, text);
        }
        putchar('\n');
}

static void print_examples(const Command *c, const char *program) {
        printf("\nExamples:\n");
        for (const char *line = text_of(c, HELP_EXAMPLES), *end = line; *end; line = end + 1) {
                end = strchrnul(line, '\n');
                printf("  %s %.*s\n", program, (int)(end - line), line);
        }
}

static void print_flags(const Command *c) {
        printf("\nOptions:\n");
        for (size_t i = 0; i < _FLAG_MAX; i++) {
                const FlagRow *f = &flag_rows[i];
                char letter[] = { '-', f->letter, ',', ' ', 0 };
                if (i == FLAG_VERSION || !(c->flags & BIT(i)))
                        continue;
                _free_ char *spelled = xasprintf("%s--%s%s%s", f->letter ? letter : "    ", f->name,
                                                 *f->argument ? " " : "", f->argument);
                printf("  %-28s ", spelled);
                print_wrapped(31, flag_help(i, c));
        }
}

static void print_command(const Command *c, const char *program) {
        _free_ char *about = xasprintf("%s. %s", text_of(c, HELP_LINE), text_of(c, HELP_ABOUT));
        printf("Usage: %s %s %s\n\n", program, c->words, text_of(c, HELP_USAGE));
        print_wrapped(0, about);
        print_flags(c);
        print_examples(c, program);
        if (c->use != USE_PROGRAM)
                printf("\nMore: man nodestrap-%.*s\n", (int)strcspn(c->words, " "), c->words);
}

/* Those that begin with the word group, or all, by their use. */
static void print_commands(const Options *o, const CommandTable *commands, const char *group) {
        Use use = _USE_MAX;
        for (size_t i = 0; i < commands->n; i++) {
                const Command *c = &commands->items[i];
                if (!(c->names & BIT(o->name)) || !startswith(c->words, group ?: "") || (PORTABLE && !c->run))
                        continue;
                if (c->use != use && !group)
                        printf("\n%s:\n", uses[c->use]);
                use = c->use;
                printf("  %-16s %s\n", c->words, text_of(c, HELP_LINE));
        }
}

void options_print_help(const Options *o, const CommandTable *commands) {
        const char *program = program_names[o->name];
        if (o->help_for) {
                print_command(o->help_for, program);
                return;
        }
        if (o->help_group) {
                printf("Usage: %s %s COMMAND [OPTION...]\n\nCommands:\n", program, o->help_group);
                print_commands(o, commands, o->help_group);
                printf("\nOptions and examples: %s help %s COMMAND. More: man nodestrap-%s\n", program,
                       o->help_group, o->help_group);
                return;
        }
        printf("Usage: %s COMMAND [OPTION...]\n\n", program);
        print_wrapped(0, text_of(commands->help, HELP_ABOUT));
        print_commands(o, commands, NULL);
        if (o->name == PROGRAM_NODESTRAP)
                print_examples(commands->help, program);
        printf("\nOptions and examples of a command: %s help COMMAND. More: man nodestrap\n", program);
}
