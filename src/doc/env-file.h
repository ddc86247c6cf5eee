/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* KEY=value as systemd and shells read it. The three kinds of files agree only on plain words, so each has
 * its own function. The last assignment counts. */
#include "base/macro.h"

/* In a file for EnvironmentFile= (systemd.exec(5); systemd:src/basic/env-file.c). Quotes may span lines, and
 * nothing is refused. The caller frees it; NULL: not set. */
_must_check_ _nonnull_ char *assignment_in_environment(const char *text, const char *name);
/* In a section ("Mount") of a unit (systemd.syntax(7); systemd:src/shared/conf-parser.c). Quotes stay, as
 * each setting has its own rules for them. The caller frees it; NULL: not set. */
_must_check_ _nonnull_ char *assignment_in_unit(const char *text, const char *section, const char *name);
/* All of a section, in order: a name, its value, the next name …; new, or NULL. */
_must_check_ _nonnull_ char **assignments_in_unit(const char *text, const char *section);
/* In a shell file of /etc/default ("Shell Command Language" of POSIX). It reads one word on one line without
 * expansions; -EINVAL for any other value. The caller frees it; NULL: not set, or empty. */
_must_check_ _nonnull_ int assignment_in_shell(const char *text, const char *name, char **ret);

/* Splits a value into the words of $NAME on a command line (systemd.service(5)), and joins them. */
_must_check_ _nonnull_ char **assignment_split(const char *value);
_malloc_ char *assignment_join(char *const *words);
/* A line of an EnvironmentFile= that gives a process this value, line breaks included. */
_malloc_ char *assignment_line(const char *name, const char *value);
/* One for Environment= of a unit or DefaultEnvironment= of system.conf, in quotes. */
_malloc_ char *assignment_quote(const char *name, const char *value);
