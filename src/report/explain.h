/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The manual on a code, a warning or a key of NodeConfig, for a machine without man(1). conf/explain.awk
 * makes the entries of nodestrap-codes(7) and NodeConfig(5), which `make install` puts beside the units. */
#include "base/root.h"

#define EXPLAIN_FILE "/usr/lib/nodestrap/explain"

/* All entries, or a negative errno. */
_must_check_ _nonnull_ int explain_read(const Root *root, char **ret);
/* The entry of "EFABRIC", "efabric", "fabric-gate", "spec.kubelet.flags" or "kubelet.flags": its term, and a
 * line a paragraph. A copy; NULL: none has that name. */
_must_check_ _nonnull_ char *explain_find(const char *entries, const char *word);
/* The term that is nearest to a word without an entry; NULL: none is near. */
_must_check_ _nonnull_ char *explain_nearest(const char *entries, const char *word);
/* The paragraph of an entry that begins so ("Do: "), without that; NULL: it has none. */
_must_check_ _nonnull_ char *explain_paragraph(const char *entry, const char *begin);
