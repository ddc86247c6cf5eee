/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* KEY=value as systemd and shells read it. The three kinds of files that hold such lines agree on plain
 * words and on little else, so each has its own function; of several assignments the last one counts. */
#include "base/macro.h"

/* Of a file that EnvironmentFile= names (systemd.exec(5); systemd:src/basic/env-file.c). Quotes may span
 * lines, and nothing is refused. The caller's; NULL where the name is not set. */
_must_check_ _nonnull_ char *assignment_in_environment(const char *text, const char *name);
/* Of a section ("Mount") of a unit (systemd.syntax(7); systemd:src/shared/conf-parser.c). Quotes stay, for
 * each setting has its own rules for them. The caller's; NULL where the name is not set. */
_must_check_ _nonnull_ char *assignment_in_unit(const char *text, const char *section, const char *name);
/* All of a section, in their order: a name, its value, the next name …; new, NULL where there are none. */
_must_check_ _nonnull_ char **assignments_in_unit(const char *text, const char *section);
/* Of a file of /etc/default, which a shell reads ("Shell Command Language" of POSIX), as far as nothing in it
 * needs a shell: no expansion, one word on one line. The caller's; NULL where the name is not set, or
 * empty; -EINVAL where its value is more than that. */
_must_check_ _nonnull_ int assignment_in_shell(const char *text, const char *name, char **ret);

/* The words that systemd makes of $NAME on a command line (systemd.service(5), "Command lines"), and a value
 * for NAME= in an EnvironmentFile= that becomes these words. */
_must_check_ _nonnull_ char **assignment_split(const char *value);
_malloc_ char *assignment_join(char *const *words);
/* A line of an EnvironmentFile= by which a process gets just this value; it may have line breaks. */
_malloc_ char *assignment_line(const char *name, const char *value);
/* One for Environment= of a unit or DefaultEnvironment= of system.conf, in quotes. */
_malloc_ char *assignment_quote(const char *name, const char *value);
