/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Each command is a row of commands.c, which says how far it goes, and a function here. All return 0 or a
 * negative errno with a diagnostic in run->diag. */
#include "cli/cli.h"

extern const CommandTable command_table;

_must_check_ _nonnull_ int command_init(Run *run);
_must_check_ _nonnull_ int command_plan(Run *run);
_must_check_ _nonnull_ int command_config_check(Run *run);
_must_check_ _nonnull_ int command_doctor(Run *run);
_must_check_ _nonnull_ int command_config_dump(Run *run);
_must_check_ _nonnull_ int command_config_schema(Run *run);
_must_check_ _nonnull_ int command_config_example(Run *run);
_must_check_ _nonnull_ int command_config_sign(Run *run);
_must_check_ _nonnull_ int command_config_verify(Run *run);
/* an ExecCredential on stdout, within ten seconds */
_must_check_ _nonnull_ int command_token(Run *run);
/* until the node has joined; sets the exit code itself */
_must_check_ _nonnull_ int command_wait(Run *run);
/* notices of this boot → Events, until all are sent or too old */
_must_check_ _nonnull_ int command_send_events(Run *run);
_must_check_ _nonnull_ int command_status(Run *run);
_must_check_ _nonnull_ int command_explain(Run *run);
/* --bundle: writes options.bundle, and a line on stderr */
_must_check_ _nonnull_ int status_bundle(Run *run);
/* --follow: prints progress until the boot has a verdict, which becomes the exit code, or until a signal */
_must_check_ _nonnull_ int status_follow(Run *run);
_must_check_ _nonnull_ int command_udev_net_manager(Run *run);
/* until the links of networkd are ready */
_must_check_ _nonnull_ int command_boot_hook(Run *run);
_must_check_ _nonnull_ int command_help(Run *run);
_must_check_ _nonnull_ int command_version(Run *run);
