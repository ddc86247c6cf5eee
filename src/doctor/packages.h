/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Versions of what an image has, from what its package managers wrote and from its files. */
#include "base/root.h"

/* The upstream version of the first of these packages (names ends with NULL) that is installed, under that
 * name or with a branch behind it ("nvidia-imex-580"); NULL: none is, or nothing tells it. The caller's. */
_must_check_ _nonnull_ char *package_version(const Root *root, const char *const *names);
/* Is it a version as those of NVIDIA's driver are, "580.126.09" or "470.82", and nothing else? */
_nonnull_ bool driver_is_version(const char *s, size_t size);
/* The version of NVIDIA's driver that a program was built with: the one string of that form in it. wanted,
 * where not NULL, is enough where it is among several. NULL: none, or several. The caller's. */
_must_check_ _nonnull(1, 2) char *program_version(const Root *root, const char *path, const char *wanted);
