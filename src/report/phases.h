/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What became of each phase of a boot, and what that makes of the boot. One that is not over is not ok. */
#include "base/macro.h"
#include <jansson.h>

typedef enum UnitWork { UNIT_IDLE, UNIT_WAITS, UNIT_WORKS } UnitWork;

/* Of the phases, and of the wait for the cluster behind them. */
enum { ONGOING_CONFIG, ONGOING_DEVICES, ONGOING_RUN, ONGOING_JOIN, _ONGOING_MAX };

/* What goes on while somebody asks. */
typedef struct Ongoing {
        UnitWork units[_ONGOING_MAX];
        json_t *processes;              /* progress_read() */
        int64_t now_usec;               /* by the clock of the status; 0: not known */
} Ongoing;

/* Into a status with "runs", and with "joined" or without: "phases", a list of {"phase", "verdict",
 * "beginUsec", "endUsec"}, a running one with "steps", and the boot's "verdict". A phase is ok, tainted,
 * failed, held (what comes before it has failed), not begun, waiting or running; a boot ok, tainted, failed,
 * unfinished, waiting or running. ongoing NULL: by what was written alone. */
_nonnull(1) void phases_put(json_t *status, const Ongoing *ongoing);
/* What to look at first, as a command: "next"; nothing where all is well. */
_nonnull_ void next_put(json_t *status);
/* The longest steps: "longest", a list of {"run", "id", "usec"}. */
_nonnull_ void longest_put(json_t *status);
