/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What one phase learned, kept for the next one of the same boot in /run (0600): so the run phase asks nobody
 * again. */
#include "base/paths.h"
#include "base/root.h"
#include <jansson.h>

#define KEPT_FILE RUN_DIR "/facts.json"

typedef struct Kept {
        json_t *answers;        /* of the metadata service; user data, type and
                                 * MAC cannot change while an instance runs */
        json_t *status;         /* nodeadm's .status: facts that hold for one spec */
        char spec[65];          /* SHA-256 of that spec */
} Kept;
void kept_done(Kept *k);
/* -ENOENT where nothing was kept, or in another boot. */
_must_check_ _nonnull_ int kept_read(const Root *root, Kept *ret);
_must_check_ _nonnull_ int kept_write(const Root *root, const Kept *kept);
/* SHA-256 of a spec, whatever the order of its keys. */
_nonnull_ void spec_digest(const json_t *spec, char ret[static 65]);
