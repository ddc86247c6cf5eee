/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sources of the configuration, for the stages and for config-sign.c. */
#include "cli/cli.h"
#include "commands/boot-facts.h"
#include "source/binding.h"
#include "source/source.h"

typedef struct Sources {
        SourceList list;                /* of the boot or the image; or empty */
        bool by_default;                /* the command line names no source */
        Trust *trust;                   /* NULL: configurations need no signature */
        Signatures signatures;
        Blobs blobs;
        Documents documents;
        Kept kept;                      /* of the other phase of this boot */
} Sources;
/* Logs the signers, or that a signature is there and this machine trusts no key (config-sign.c). */
_nonnull_ void tell_signatures(const Run *run);
