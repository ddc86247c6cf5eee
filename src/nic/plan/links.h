/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Is the network of a boot complete? systemd-networkd has configured the primary interface and those decided
 * for it, and manages no other link. No interface waits for its decision. All here is pure. */
#include "networkd/networkd.h"
#include "nic/enis.h"
#include "nic/nic.h"

typedef struct LinkFacts {
        const Links *links;             /* as networkd has them */
        const Interfaces *interfaces;
        const Decisions *decisions;
        const Enis *enis;               /* the known ones; primary is always set */
        bool settled;                   /* EC2 had enough time: an interface without an address gets none, */
        uint64_t settled_usec;          /* if it was here at this instant (Interface.since_usec) */
} LinkFacts;
/* A sentence for each link that is not ready, with its state and the next command, new; NULL: none. */
_must_check_ _nonnull_ char **links_find_unready(const LinkFacts *f);
/* The same for each link whose file is never read, because another one comes first. It counts as ready. */
_must_check_ _nonnull_ char **links_find_foreign(const LinkFacts *f);
