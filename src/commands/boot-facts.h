/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Facts that one phase keeps in /run (0600), so that the next phase of the boot asks nothing again. */
#include "base/paths.h"
#include "base/root.h"
#include <jansson.h>

#define KEPT_FILE RUN_DIR "/facts.json"

typedef struct Kept {
        /* of the metadata service; user data, type and MAC cannot change while an instance runs */
        json_t *answers;
        json_t *status;         /* .status as in nodeadm, for this spec */
        char spec[65];          /* its SHA-256 */
} Kept;
void kept_done(Kept *k);
/* -ENOENT: nothing is kept, or only of another boot */
_must_check_ _nonnull_ int kept_read(const Root *root, Kept *ret);
_must_check_ _nonnull_ int kept_write(const Root *root, const Kept *kept);
/* SHA-256 of a spec, in any order of its keys */
_nonnull_ void spec_digest(const json_t *spec, char ret[static 65]);
