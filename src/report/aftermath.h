/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* failurePolicy: reboot and poweroff: a failure → what becomes of the machine. Decided here and written to
 * POWER_FILE; units/nodestrap-power.service does it, which systemd starts where one of our units fails. */
#include "report/report.h"

#define REBOOT_LEDGER "/var/lib/nodestrap/failure-reboot"        /* which instance has had its reboot */

typedef struct AftermathFacts {
        FailurePolicy policy;
        Cause cause;
        bool step;                      /* a step has failed, and not what comes before them */
        bool units;                     /* one of our units has run this to its end, by our own name */
        bool later;                     /* a later phase tries it again */
        bool kubelet;                   /* it has had its turn in this boot */
} AftermathFacts;
/* FAILURE_REBOOT, FAILURE_POWER_OFF, or FAILURE_HOLD: the machine stays as it is. */
_must_check_ _nonnull_ FailurePolicy aftermath_decide(const AftermathFacts *f);
/* Why no reboot is made for that instance, NULL: not known which; or NULL, one can. The caller frees it. */
_must_check_ _nonnull(1) char *aftermath_ledger_look(const Root *root, const char *instance_id);
/* This run begins again: the machine stays as it is, whatever an earlier one has asked for. */
_nonnull_ void aftermath_take_back(const Root *root);
/* Decides, notes the reboot in the ledger, leaves POWER_FILE, and warns of what comes.
 * "powers off in 12 minutes", or NULL; the caller frees it. units: as above. */
_must_check_ _nonnull_ char *aftermath_choose(const Root *root, const Report *report, bool units, Diag *diag);
