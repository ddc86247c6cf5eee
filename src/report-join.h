/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What became of the join → files, journal, console; and back again for `nodestrap status`. */
#include "join.h"

#include <jansson.h>

#define REPORT_JOINED         "/run/nodestrap/joined.json"
#define REPORT_JOINED_METRICS "/run/nodestrap/joined.prom"

/* All of it; what cannot be written is a warning at most. Returns the exit code. */
_nonnull_ ExitCode report_join(const Root *root, const Join *join);
/* joined.json of this boot; NULL where there is none. */
_nonnull_ json_t *joined_read(const Root *root);
/* A line of `nodestrap status`. */
_nonnull_ void joined_show(const json_t *joined);
