/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files in memory → one .tar.gz in memory, as tar(1) and Python's tarfile read it: POSIX's pax format
 * ("pax - portable archive interchange", pubs.opengroup.org/onlinepubs/9799919799) in gzip (RFC 1952). */
#include "base/macro.h"

typedef struct Archive Archive;
/* mtime: seconds since 1970 that every member gets. */
_malloc_ Archive *archive_new(int64_t mtime);
Archive *archive_free(Archive *a);
DEFINE_CLEANUP(Archive *, archive_free)
/* A regular file of mode 0600 and of root's, at a relative path of any length. */
_nonnull_ void archive_add(Archive *a, const char *name, const void *data, size_t size);
/* The whole archive, the caller's; nothing can be added behind it. */
_malloc_ _nonnull_ char *archive_end(Archive *a, size_t *ret_size);
