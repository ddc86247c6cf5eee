/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Versions as text: "1.33.4", "6.12.46-66.121.amzn2023.x86_64". */
#include "base/macro.h"

/* Is "1.33.4" this version or later? false for NULL. */
bool version_at_least(const char *version, unsigned major, unsigned minor);
/* 33 of "1.33.4"; 0: not a version */
unsigned version_minor(const char *version);
/* By their numbers, as rpmvercmp and kernels do: < 0, 0, > 0. */
_nonnull_ int version_compare(const char *a, const char *b);
