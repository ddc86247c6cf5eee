/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `nodestrap plan` does beside printing one: the other modes of its command line. */
#include "commands/run.h"
#include "plan/plan.h"

/* With --output json: why there is no plan, on stdout; code is what the process ends with. */
_nonnull_ void plan_tell_failure(const Run *run, ExitCode code);

/* --strict: makes errors of the warnings that tell of something that will not work. -EINVAL where there are
 * any, else 0. */
_must_check_ _nonnull_ int plan_be_strict(Diag *diag);

/* --diff: the plan beside an earlier one. -EINVAL where that is none. */
_must_check_ _nonnull_ int plan_diff(Run *run);
/* Two plans as plan_to_json() has them: what differs, as JSON (a new reference) and that as text. Both must
 * have actions with ids, and files. What one of them keeps secret is not compared, nor, without show_secrets,
 * what one of them reveals. */
_nonnull_ json_t *plan_compare(json_t *old, json_t *new, bool show_secrets);
_malloc_ _nonnull_ char *plan_compare_text(const json_t *all);

/* --matrix: the configuration planned for many types, a row each; run->exit_code is that of the first that no
 * plan can be made for. */
_must_check_ _nonnull_ int plan_matrix(Run *run);

/* --write-to: every planned file below the directory, which holds nothing else than what this has written
 * there before, or nothing; what is planned no more is removed. */
_must_check_ _nonnull_ int plan_write(const char *target, const Plan *plan, Diag *diag);
