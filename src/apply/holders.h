/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who holds the GPUs, so that they can be neither reset nor left by their driver: daemons of the image's,
 * modules that stand on the driver, and whatever other process has one of them open. */
#include "apply/work.h"

typedef struct Holders {
        char **ours;                    /* units that ran and that the plan starts by itself: persistenced,
                                         * fabric manager */
        char **others;                  /* units that ran: DCGM and its like, IMEX */
        char **modules;                 /* that were taken out, in this order */
} Holders;
void holders_done(Holders *h);

/* Stops those that run, and takes out nvidia_drm and nvidia_modeset where nobody uses them; they are added to
 * h. all: also persistenced, fabric manager and IMEX. One that does not go is no failure: what is done then
 * shows it. Nothing where kubelet may run: holders_may_stop(). */
_nonnull_ void holders_stop(Work *w, Holders *h, bool all);
/* Starts and loads them again, without waiting for any of them; all: also those that the plan starts. Empties
 * h. */
_nonnull_ void holders_start(Work *w, Holders *h, bool all);
/* Pods may use the GPUs, and jobs end with fabric manager. */
_must_check_ _nonnull_ bool holders_may_stop(const Work *w);
/* What keeps the GPUs from being reset now: "nv-hostengine (812), python3 (900) have one open; nvidia_drm is
 * loaded"; "": nothing is seen. The caller frees it. */
_must_check_ _nonnull_ char *holders_found(const Work *w);
