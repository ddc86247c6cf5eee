/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The commands: each one row of commands.c, which says how far it goes on the road, and one function here,
 * which does the rest. All return 0 or a negative errno with a diagnostic in run->diag. */
#include "cli/cli.h"

extern const CommandTable command_table;

_must_check_ _nonnull_ int command_init(Run *run);              /* carries the plan out */
/* prints it, and writes its files for --write-to */
_must_check_ _nonnull_ int command_plan(Run *run);
/* what validation leaves to a person who asks */
_must_check_ _nonnull_ int command_config_check(Run *run);
/* can this machine, or an image, run the plans that are made for it? */
_must_check_ _nonnull_ int command_doctor(Run *run);
_must_check_ _nonnull_ int command_config_dump(Run *run);       /* prints the merged NodeConfig */
_must_check_ _nonnull_ int command_config_schema(Run *run);
/* prints a NodeConfig for an instance type */
_must_check_ _nonnull_ int command_config_example(Run *run);
/* prints the sources as one message with a signature */
_must_check_ _nonnull_ int command_config_sign(Run *run);
/* by whom the sources are signed; nothing but that */
_must_check_ _nonnull_ int command_config_verify(Run *run);
/* an ExecCredential on stdout, within ten seconds */
_must_check_ _nonnull_ int command_token(Run *run);
/* until the node has joined; reports by itself */
_must_check_ _nonnull_ int command_wait(Run *run);
/* the notices of this boot → Events, until the last one is sent or has become too old */
_must_check_ _nonnull_ int command_send_events(Run *run);
_must_check_ _nonnull_ int command_status(Run *run);            /* prints what the last boot did */
_must_check_ _nonnull_ int command_explain(Run *run);           /* prints the manual on words */
/* its --bundle: all that a support case needs into options.bundle, and a line on stderr that says so */
_must_check_ _nonnull_ int status_bundle(Run *run);
/* its --follow: tells what goes on until the boot has a verdict, which becomes the exit code, or a signal */
_must_check_ _nonnull_ int status_follow(Run *run);
/* sets up a network interface that has come, or takes away what it had made of one that has gone */
_must_check_ _nonnull_ int command_udev_net_manager(Run *run);
/* until networkd's links are as they should be */
_must_check_ _nonnull_ int command_boot_hook(Run *run);
_must_check_ _nonnull_ int command_help(Run *run);
_must_check_ _nonnull_ int command_version(Run *run);
