/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Verdicts → notices for the cluster, one file each, which `nodestrap send-events` makes Events of: it is
 * started when the first one is there (units/nodestrap-event.path), and nothing waits for it.
 * {reason, warning, message, key, time, access, given, environment}: key tells one reason from another;
 * access is what kube_access_take() takes, where it is known, and given, that it counts for more than a
 * kubeconfig, which then is of an earlier boot; environment is event_environment()'s. */
#include "base/paths.h"
#include "report/join.h"
#include "report/report.h"
#include "report/verdict.h"

#define EVENTS_DIR RUN_DIR "/events"
/* The way to the cluster that this process knows: {NAME: value}, of each variable that names a proxy or what
 * needs none; null where it is not set. */
json_t *event_environment(void);

#define EVENTS_MAX 16           /* that wait; then the oldest goes */

/* Of init: each verdict that is not ok, and the first one behind it that is, of a run phase. well: so is that
 * of the boot. */
_nonnull_ void event_of_run(const Root *root, const Report *report, const Verdict *v, bool well);
/* Of a wait that is a unit: only somebody who asked has heard it otherwise. */
_nonnull_ void event_of_join(const Root *root, const Verdict *v);
