/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* When is the network of a boot complete? The primary interface and those decided for systemd-networkd are
 * configured, all other links unmanaged, and none waits for its decision. Pure, as all here. */
#include "networkd/networkd.h"
#include "nic/enis.h"
#include "nic/nic.h"

typedef struct LinkFacts {
        const Links *links; /* what networkd says of them */
        const Interfaces *interfaces;
        const Decisions *decisions;
        const Enis *enis; /* as far as they are known; primary is */
        bool settled;     /* the metadata service has had time enough: an interface that has no
                           * address by now will have none, */
        uint64_t settled_usec;  /* if it has been here since then (Interface.since_usec) */
} LinkFacts;
/* A sentence for each link that is not as it should be, with what it is and where to look next. NULL: all
 * are. The caller's. */
_must_check_ _nonnull_ char **links_find_unready(const LinkFacts *f);
/* A sentence for each link that should have its file from udev-net-manager and never will, as another file
 * comes before that one. Such a link counts as ready all the same. NULL: none. The caller's. */
_must_check_ _nonnull_ char **links_find_foreign(const LinkFacts *f);
