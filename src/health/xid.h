/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/macro.h"

typedef struct Xid {
        unsigned number;
        bool reset; /* NVIDIA: the GPU must be reset before it is used again */
        const char *what;
} Xid;
/* NULL: one that says nothing of the hardware, or a new one. */
const Xid *xid_find(unsigned number);
/* Has one of an NVSwitch's no impact, by NVIDIA, where the switch does not call it fatal? */
bool sxid_is_harmless(unsigned number);
