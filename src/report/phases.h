/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What became of each phase of a boot, and what that makes of the boot. One that is not over is not ok. */
#include "base/macro.h"
#include <jansson.h>

typedef enum UnitWork { UNIT_IDLE, UNIT_WAITS, UNIT_WORKS } UnitWork;

/* Of the phases, and of the wait for the cluster behind them. */
enum { LIVE_CONFIG, LIVE_DEVICES, LIVE_RUN, LIVE_JOIN, _LIVE_MAX };

/* What goes on while somebody asks. */
typedef struct Live {
        UnitWork units[_LIVE_MAX];
        json_t *processes;              /* progress_read() */
        int64_t now_usec;               /* by the clock of the status; 0: not known */
} Live;

/* Into a status with "runs", and with "joined" or without: "phases", a list of {"phase", "verdict",
 * "beginUsec", "endUsec"}, a running one with "steps", and the boot's "verdict". A phase is ok, tainted, failed, held (what comes before
 * it has failed), not begun, waiting or running; a boot ok, tainted, failed, unfinished, waiting or running.
 * live NULL: by what was written alone. */
_nonnull(1) void phases_put(json_t *status, const Live *live);
/* What to look at first, as a command: "next"; nothing where all is well. */
_nonnull_ void next_put(json_t *status);
/* The longest steps: "longest", a list of {"run", "id", "usec"}. */
_nonnull_ void longest_put(json_t *status);
