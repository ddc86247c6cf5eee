/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the metadata service said of the network interfaces, shared by the processes that set them up: at boot
 * there is one for each, all at once, and the first one asks for all. */
#include "nic/enis.h"
#include "base/paths.h"

#define SNAPSHOT_FILE RUN_DIR "/interfaces.json"
#define SNAPSHOT_LOCK RUN_DIR "/interfaces.lock" /* held (lock_take()) from reading it to writing it */

typedef struct Snapshot {
        Enis enis;
        uint64_t listed_usec; /* CLOCK_MONOTONIC of this boot: when the list was asked for last; 0: never */
        uint64_t failed_usec; /* when the service failed last, if that is the last thing it did; else 0 */
        char *failure;        /* and what was said of that */
} Snapshot;
void snapshot_done(Snapshot *s);
/* What is kept; nothing, with a warning, where that cannot be read, and without one where nothing is, or only
 * of another boot. */
_nonnull_ void snapshot_read(const Root *root, Snapshot *ret, Diag *diag);
/* Without it the next process asks once more: a warning where it cannot be written. */
_nonnull_ void snapshot_write(const Root *root, const Snapshot *s, Diag *diag);
/* The instance's id, where it is not known yet; without the rest of enis_ask(). 0 also where it is not told.
 */
_must_check_ _nonnull_ int snapshot_identify(Snapshot *s, Imds *imds, Diag *diag);
/* enis_ask(). A failure of the service's is noted, with what the diagnostic says, and one about a single
 * interface is not, which is nobody else's; an answer takes such a note away. 1 where others are unasked yet,
 * 2 where the time ended after some answers: no failure, one may go on at once. */
_must_check_ _nonnull_ int snapshot_ask(Snapshot *s, Imds *imds, const EniQuestion *question, Diag *diag);
/* Nothing is known of that interface any more. */
_nonnull_ void snapshot_drop(Snapshot *s, const char *mac);
