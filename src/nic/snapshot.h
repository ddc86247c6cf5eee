/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answers of the metadata service about interfaces, which all processes share: at boot each interface has
 * one, and the first asks for all. */
#include "nic/enis.h"
#include "base/paths.h"

#define SNAPSHOT_FILE RUN_DIR "/interfaces.json"
#define SNAPSHOT_LOCK RUN_DIR "/interfaces.lock" /* held (lock_take()) from the read to the write */

typedef struct Snapshot {
        Enis enis;
        /* CLOCK_MONOTONIC: when the list was asked last; 0: never */
        uint64_t listed_usec;
        uint64_t failed_usec; /* when the service last failed; 0: it has answered since */
        char *failure;        /* the error */
} Snapshot;
void snapshot_done(Snapshot *s);
/* Empty, with a warning, if it cannot be read; without one if none is kept, or only of another boot. */
_nonnull_ void snapshot_read(const Root *root, Snapshot *ret, Diag *diag);
/* Warns if it cannot be written: the next process asks again. */
_nonnull_ void snapshot_write(const Root *root, const Snapshot *s, Diag *diag);
/* Asks for the instance id, if it is not known. 0 also without an answer. */
_must_check_ _nonnull_ int snapshot_identify(Snapshot *s, Imds *imds, Diag *diag);
/* enis_ask(). Notes a failure of the service with its diagnostic, but not one about a single interface. An
 * answer clears the note. 1: others are unasked; 2: the time ended after some answers, so it may go on at
 * once. */
_must_check_ _nonnull_ int snapshot_ask(Snapshot *s, Imds *imds, const EniQuestion *question, Diag *diag);
/* Forgets that interface. */
_nonnull_ void snapshot_drop(Snapshot *s, const char *mac);
