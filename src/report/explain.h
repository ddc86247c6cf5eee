/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Manual entries of codes, warnings and NodeConfig keys, for a machine without man(1). conf/explain.awk
 * makes them from nodestrap-codes(7) and NodeConfig(5); `make install` installs the file. */
#include "base/root.h"

#define EXPLAIN_FILE "/usr/lib/nodestrap/explain"

/* All entries, or a negative errno. */
_must_check_ _nonnull_ int explain_read(const Root *root, char **ret);
/* The entry of "EFABRIC", "efabric", "fabric-gate", "spec.kubelet.flags" or "kubelet.flags": its term, then
 * a line for each paragraph. A copy; NULL: none. */
_must_check_ _nonnull_ char *explain_find(const char *entries, const char *word);
/* The term most similar to a word without an entry; NULL: none is similar. */
_must_check_ _nonnull_ char *explain_nearest(const char *entries, const char *word);
/* The rest of the paragraph that begins with this text ("Do: "); NULL: none. */
_must_check_ _nonnull_ char *explain_paragraph(const char *entry, const char *begin);
