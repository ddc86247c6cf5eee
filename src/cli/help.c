/* SPDX-License-Identifier: Apache-2.0
 * The tables of commands and of options, and the texts of conf/help.txt → help, 80 columns wide. The zsh
 * completion reads it. */
#include "cli/cli.h"

#include "base/str.h"
#include "doc/doc.h"

#include <stdio.h>

#define BIT(n)    (UINT64_C(1) << (n))
#define COLUMNS   80

static const char uses[_USE_MAX][31] = {
        [USE_NODE] = "Make a node", [USE_BEFORE] = "Before a boot", [USE_AFTER] = "After a boot",
        [USE_UNITS] = "Called by kubelet and by units", [USE_PROGRAM] = "About nodestrap",
};

/* The text of that key, past that many others; NULL: there is none. */
static const char *find_text(const char *section, const char *key, unsigned others) {
        static Table table = { help_texts, &help_texts_size, NULL };
        _free_ char *head = xasprintf("[%s]", section), *begin = xasprintf("%s: ", key);
        bool inside = false;
        for (const char *at = table_text(&table); *at;) {
                const char *line = table_cell(&at);
                if (*line == '[')
                        inside = streq(line, head);
                else if (inside && startswith(line, begin) && others-- == 0)
                        return line + strlen(begin);
        }
        return NULL;
}

static const char *text_of(const Command *c, const char *key) {
        return find_text(c->words, key, 0) ?: "";
}

const char *flag_help(Flag flag, const Command *command) {
        _free_ char *key = xasprintf("--%s", flag_rows[flag].name);
        return find_text(command->words, key, 0) ?: find_text("options", key, 0) ?: "";
}

/* The first line starts at column indent already; indents the others. */
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
        const char *line;
        for (unsigned i = 0; (line = find_text(c->words, "example", i)); i++)
                printf("  %s %s\n", program, line);
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
        _free_ char *about = xasprintf("%s. %s", text_of(c, "title"), text_of(c, "about"));
        printf("Usage: %s %s %s\n\n", program, c->words, text_of(c, "usage"));
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
                printf("  %-16s %s\n", c->words, text_of(c, "title"));
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
        print_wrapped(0, text_of(commands->help, "about"));
        print_commands(o, commands, NULL);
        if (o->name == PROGRAM_NODESTRAP)
                print_examples(commands->help, program);
        printf("\nOptions and examples of a command: %s help COMMAND. More: man nodestrap\n", program);
}
