/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Messages quote the last words of daemons and programs, who may repeat what the NodeConfig keeps secret. */
#include "cli/cli.h"
#include "kube/kube.h"

/* Of all failures and warnings of this run. */
_nonnull_ void hide_in_run(Run *run);
/* Of all findings of a file: FILE:14:5: as compilers have it, and the key with a mark at its column. Values
 * stay out, since any may be a secret (excerpt.c). */
_nonnull_ void findings_place(Run *run);
/* Of what became of the join; the NodeConfig is that of this boot's cache, where it can be read. */
_nonnull_ void hide_in_join(const Root *root, JoinOutcome *outcome);
