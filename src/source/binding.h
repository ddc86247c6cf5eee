/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Is a configuration that is signed meant for this cluster, this account and region, and now? */
#include "aws/aws.h"
#include "config/config.h"
#include "source/signature.h"

/* What is bound to another account, region or cluster, or was signed before what this machine has applied, is
 * a failure; what cannot be told, too, unless only_looks: then it is a warning. imds may be NULL then. */
_must_check_ _nonnull(1, 2, 3, 4, 7) int signatures_check(const Root *root, const Signatures *signatures,
                                                          const Trust *trust, const Config *config,
                                                          Imds *imds, bool only_looks, Diag *diag);
/* These are applied from now on: nothing that was signed before is taken any more. */
_must_check_ _nonnull_ int signatures_keep(const Root *root, const Signatures *signatures, Diag *diag);
