/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sources of the configuration, for the stages and for config-sign.c. */
#include "base/paths.h"
#include "cli/cli.h"
#include "source/signature.h"
#include "source/source.h"
#include "source/wrapped.h"

/* Facts that one phase keeps in /run (0600), so that the next phase asks nothing again (boot-facts.c). */
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

typedef struct Sources {
        SourceList list;                /* of the boot or the image; or empty */
        bool by_default;                /* the command line names no source */
        Trust *trust;                   /* NULL: configurations need no signature */
        Signatures signatures;
        Blobs blobs;
        Documents documents;
        WrappedFile wrapped;            /* the file of another tool among them, or empty */
        const Wrapped *chosen;          /* of it; or NULL */
        size_t turn, turns;             /* turn 1 to turns: the items of it that are checked alone; turn 0:
                                         * the command line chooses */
        Kept kept;                      /* of the other phase of this boot */
} Sources;
/* Logs the signers, or that a signature is there and this machine trusts no key (config-sign.c). */
_nonnull_ void tell_signatures(const Run *run);
