/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* failurePolicy reboot and poweroff. This decides and writes POWER_FILE; systemd then starts
 * units/nodestrap-power.service, which acts on it. */
#include "report/report.h"

#define REBOOT_LEDGER "/var/lib/nodestrap/failure-reboot"        /* the instance that has had its reboot */

typedef struct AftermathFacts {
        FailurePolicy policy;
        Cause cause;
        bool step;                      /* a step has failed, not something before the steps */
        bool units;                     /* one of our units ran this to its end, as nodestrap */
        bool later;                     /* a later phase retries it */
        bool kubelet;                   /* kubelet has had its turn in this boot */
} AftermathFacts;
/* FAILURE_HOLD: the machine stays as it is. */
_must_check_ _nonnull_ FailurePolicy aftermath_decide(const AftermathFacts *f);
/* Why the instance gets no reboot, or NULL. instance_id NULL: not known. The caller frees it. */
_must_check_ _nonnull(1) char *aftermath_ledger_look(const Root *root, const char *instance_id);
/* Cancels what an earlier run has asked for. */
_nonnull_ void aftermath_take_back(const Root *root);
/* Decides, writes the ledger and POWER_FILE, and warns. "powers off in 12 minutes", or NULL; the caller
 * frees it. */
_must_check_ _nonnull_ char *aftermath_choose(const Root *root, const Report *report, bool units, Diag *diag);
