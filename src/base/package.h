/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Packages to install; boot and doctor name the same. */
#include "base/macro.h"

/* The first with CURLOPT_CAINFO_BLOB. We use no feature that libcurl-minimal lacks. */
#define CURL_PACKAGE     "libcurl-minimal (Amazon Linux) or libcurl4 (Debian), version 7.77 or later"
#define LIBMOUNT_PACKAGE "libmount (Amazon Linux) or libmount1 (Debian), version 2.30 or later"
#define BLKID_PACKAGE    "libblkid (Amazon Linux) or libblkid1 (Debian), version 2.17 or later"

/* The package of a program (name or path), library or unit, or its own name. */
_must_check_ _nonnull_ const char *package_of(const char *name);
