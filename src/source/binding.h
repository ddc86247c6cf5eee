/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Is a signed configuration meant for this cluster, account and region, and not older than the last one? */
#include "aws/aws.h"
#include "config/config.h"
#include "source/signature.h"

/* Fails for another account, region or cluster, and for a serial below the one that this machine applied
 * last. A check that is not possible fails, too; with only_looks it is a warning, and imds may be NULL. */
_must_check_ _nonnull(1, 2, 3, 4, 7) int signatures_check(const Root *root, const Signatures *signatures,
                                                          const Trust *trust, const Config *config,
                                                          Imds *imds, bool only_looks, Diag *diag);
/* Records their serials; the machine then refuses lower ones. */
_must_check_ _nonnull_ int signatures_keep(const Root *root, const Signatures *signatures, Diag *diag);
