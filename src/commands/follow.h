/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "commands/run.h"

/* `nodestrap status --follow`: tells what goes on until the boot has a verdict, which becomes the exit code,
 * or until a signal. */
_must_check_ _nonnull_ int status_follow(Run *run);
