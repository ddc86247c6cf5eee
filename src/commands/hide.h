/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Messages quote daemons and programs, which may repeat secrets of the NodeConfig. */
#include "cli/cli.h"
#include "kube/kube.h"

/* The lines of units in the journal, from now on. */
_nonnull_ void hide_in_journal(Run *run);
/* All failures and warnings of this run. */
_nonnull_ void hide_in_run(Run *run);
/* Findings of a file: FILE:14:5: as compilers have it, and the key with a mark, never a value (excerpt.c). */
_nonnull_ void findings_place(Run *run);
/* The text about the join, with the NodeConfig in the cache of this boot, if it can be read. */
_nonnull_ void hide_in_join(const Root *root, JoinOutcome *outcome);
