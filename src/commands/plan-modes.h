/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The other modes of `nodestrap plan`. */
#include "commands/run.h"
#include "plan/plan.h"

/* With --output json: prints why planning failed; code becomes the exit code. */
_nonnull_ void plan_tell_failure(const Run *run, ExitCode code);

/* --strict: turns warnings about things that will not work into errors. -EINVAL where there are any. */
_must_check_ _nonnull_ int plan_be_strict(Diag *diag);

/* --diff: compares with an earlier plan. -EINVAL if the file is not a plan. */
_must_check_ _nonnull_ int plan_diff(Run *run);
/* Compares two results of plan_to_json(): as JSON (a new reference), and that as text. Actions need ids.
 * Skips what a plan keeps secret, and, without show_secrets, what it reveals. */
_nonnull_ json_t *plan_compare(json_t *old, json_t *new, bool show_secrets);
_malloc_ _nonnull_ char *plan_compare_text(const json_t *all);

/* --matrix: a row for each type; run->exit_code is that of the first type without a plan. */
_must_check_ _nonnull_ int plan_matrix(Run *run);

/* --write-to: writes every planned file below the directory, and removes earlier ones that are no longer
 * planned. The directory may hold only files of an earlier --write-to. */
_must_check_ _nonnull_ int plan_write(const char *target, const Plan *plan, Diag *diag);
