/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* By what a boot took so long: from kubelet's start back, always to what had to end before and ended last. */
#include "base/str.h"
#include <jansson.h>

/* "criticalPath" of status.json, first to last: {run, id, phase, beginUsec, endUsec}, where "cloud-init" is
 * no action but the wait between the configuration phase and the run phase. Nothing where no kubelet was
 * started. */
_nonnull_ void critical_put(json_t *status, json_t *runs);
/* Does it lead over this action of this run? */
_nonnull_ bool critical_has(const json_t *status, const char *run, const char *id);
/* Of that list: how long "config", "devices", "run" or "cloud-init" was what the others waited for, */
_must_check_ int64_t critical_share(const json_t *path, const char *part);
/* and when it ended, both in µs. */
_must_check_ int64_t critical_end(const json_t *path);
/* A line for people, which took longest on it; or "". */
_nonnull_ _malloc_ char *critical_text(const json_t *status);
