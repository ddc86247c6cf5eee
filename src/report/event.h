/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Verdicts → files for `nodestrap send-events`, which makes Events of them. units/nodestrap-event.path
 * starts it; init does not wait for it. {reason, warning, message, key, time, access, given, environment}:
 * key distinguishes Events of one reason. access is for kube_access_take(), if known. given: access replaces
 * the kubeconfig, which is from an earlier boot. environment is from event_environment(). */
#include "base/paths.h"
#include "report/join.h"
#include "report/report.h"

#define EVENTS_DIR RUN_DIR "/events"
/* The proxy variables of this process: {NAME: value}, null if not set. */
json_t *event_environment(void);

#define EVENTS_MAX 16           /* files; then the oldest is removed */

/* Of init: each verdict that is not ok, and the first ok of a run phase after it. well: the boot is ok. */
_nonnull_ void event_of_run(const Root *root, const Report *report, const Verdict *v, bool well);
/* For a wait by a unit: on a terminal you see the result. */
_nonnull_ void event_of_join(const Root *root, const Verdict *v);
