/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* status.json: what the runs of this boot did, and what that makes of the boot. */
#include "base/paths.h"
#include "report/report.h"
#include "report/verdict.h"

#define REPORT_STATUS RUN_DIR "/status.json"
#define REPORT_MODE   0640      /* for root and the group of RUN_DIR, which units/nodestrap.tmpfiles gives to
                                 * those who may read the journal: a daemon's last words are in both */

/* The keys of "runs", in the order of the phases: which of them one process did. */
extern const char *const status_phases[7];

/* Until the descriptor is closed no other process makes and writes a status; < 0: it is made all the same. */
_must_check_ _nonnull_ int status_lock(const Root *root);
/* The file's new content: this run, beside what is there of other phases of the same boot. */
_nonnull_ json_t *status_make(const Root *root, const Report *report, const Verdict *v, uint64_t end_usec);
/* A time or a count of it: 0 to 2^52, so that none that a damaged file holds overflows when it is reckoned
 * with. */
int64_t status_number(const json_t *object, const char *key);
/* How many actions of "runs" ended how; a step that one phase has done and a later one found done is one that
 * was done. */
_nonnull(2) void status_count(json_t *runs, size_t counts[static OUTCOME_FAILED + 1]);
/* What the last run left, with joined.json of this boot as "joined". -ENOENT where there was none, -EBADMSG
 * where it is damaged. */
_must_check_ _nonnull_ int status_read(const Root *root, json_t **ret);
/* What this machine, or that below root, calls itself; "" where it does not say. */
_malloc_ _nonnull_ char *status_host(const Root *root);
/* Of the plan that was applied last; NULL where none was. The caller frees it. */
_nonnull_ char *status_plan_id(const Root *root);
