/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the configuration was read from, for the stages that read it and for config-sign.c. */
#include "cli/cli.h"
#include "commands/boot-facts.h"
#include "source/binding.h"
#include "source/source.h"

typedef struct Sources {
        SourceList list;                /* of the boot or the image, which names what is read; or empty */
        bool by_default;                /* the command line names no source */
        Trust *trust;                   /* NULL: configurations need not be signed */
        Signatures signatures;
        Blobs blobs;
        Documents documents;
        Kept kept;                      /* of the other phase of this boot */
} Sources;
/* By whom they are signed; or that one has a signature, and this machine trusts no key (config-sign.c). */
_nonnull_ void tell_signatures(const Run *run);
