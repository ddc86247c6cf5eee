/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* status --bundle. */
#include "commands/run.h"

/* All that a support case needs into options.bundle, and a line on stderr that says so. */
_must_check_ _nonnull_ int status_bundle(Run *run);
