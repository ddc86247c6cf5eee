/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files in memory → a .tar.gz in memory, POSIX pax (pubs.opengroup.org/onlinepubs/9799919799) in gzip. */
#include "base/macro.h"

typedef struct Archive Archive;
/* mtime: of all members, in seconds since 1970 */
_malloc_ Archive *archive_new(int64_t mtime);
Archive *archive_free(Archive *a);
DEFINE_CLEANUP(Archive *, archive_free)
/* A regular file of root with mode 0600, at a relative path of any length. */
_nonnull_ void archive_add(Archive *a, const char *name, const void *data, size_t size);
/* The whole archive; the caller frees it. Add nothing afterwards. */
_malloc_ _nonnull_ char *archive_end(Archive *a, size_t *ret_size);
