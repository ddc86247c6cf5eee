/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* PCI ids, for checks that depend on the model. */
#include "base/root.h"

/* vendor << 16
 * device; 0: not known. */
_nonnull_ unsigned pci_id_at(const Root *root, const char *address);
/* A100, H100, B200 and similar (conf/hbm-chips.csv). */
extern const unsigned char hbm_chips[];
extern const size_t n_hbm_chips;
bool pci_id_is_hbm_gpu(unsigned id);
