/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who holds the GPUs, so that they can be neither reset nor left by their driver: daemons of the image's,
 * modules that stand on the driver, and whatever other process has one of them open. */
#include "apply/work.h"

/* Stops those that run, and takes out nvidia_drm and nvidia_modeset where nobody uses them. all: also
 * persistenced, fabric manager and IMEX. One that does not go is no failure: what is done then shows it.
 * Nothing where kubelet may run: holders_may_stop(). */
_nonnull_ void holders_stop(Work *w, bool all);
/* Starts and loads again what this process or one before it has stopped, or nothing; without waiting for
 * units, and also where the task was given up. A unit or module that does not start is a warning, and left
 * to the next run. all: also persistenced and fabric manager, which the plan starts by itself. */
_nonnull_ void holders_start(Work *w, bool all);
/* These modules go too, those that stand on others first. false: it cannot be noted, so leave them. */
_must_check_ _nonnull(1) bool holders_note(const Work *w, char *const *names);
/* Was it stopped, and not started again? */
_must_check_ _nonnull_ bool holders_stopped(const Work *w, const char *name);
/* Pods may use the GPUs, and jobs end with fabric manager. */
_must_check_ _nonnull_ bool holders_may_stop(Work *w);
/* What keeps the GPUs from being reset now: "nv-hostengine (812), python3 (900) have one open; nvidia_drm is
 * loaded"; "": nothing is seen. The caller frees it. */
_must_check_ _nonnull_ char *holders_found(const Work *w);
