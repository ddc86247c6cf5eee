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
