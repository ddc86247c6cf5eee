/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What status.json says, for Prometheus: the textfile collector of node_exporter reads such files. */
#include "base/paths.h"
#include "base/str.h"
#include <jansson.h>

#define REPORT_METRICS RUN_DIR "/metrics.prom"

/* The two lines above a gauge's values. */
_nonnull_ void metric_head(Text *t, const char *name, const char *help);
/* actions: also a series for each of them, of which there may be a hundred. */
_malloc_ _nonnull_ char *metrics_make(const json_t *status, bool actions);
