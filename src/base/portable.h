/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files of the package: installed, or inside of the static program. */
#include "base/root.h"

typedef struct PortableText { char path[64]; const char *text; } PortableText;
extern const PortableText portable_texts[];     /* the last one has no path */

/* Results as of installed_read(). */
_must_check_ _nonnull_ int portable_text(const char *path, char **ret);

/* The text of a file in /usr/lib/nodestrap, which the caller frees; or a negative errno. The static program
 * reads no file, because a laptop has no package. */
_must_check_ _nonnull_ static inline int installed_read(const Root *root, const char *path, size_t limit,
                                                        char **ret) {
        return PORTABLE ? portable_text(path, ret) : root_read(root, path, limit, ret, NULL);
}
