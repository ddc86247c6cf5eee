/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What people install to have what an image lacks: a boot that ends for want of it, and a look at the image
 * before, say the same. */
#include "base/macro.h"

/* The first with CURLOPT_CAINFO_BLOB; what libcurl-minimal leaves out is not asked for. */
#define CURL_PACKAGE     "libcurl-minimal (Amazon Linux) or libcurl4 (Debian), version 7.77 or later"
#define LIBMOUNT_PACKAGE "libmount (Amazon Linux) or libmount1 (Debian), version 2.30 or later"
#define BLKID_PACKAGE    "libblkid (Amazon Linux) or libblkid1 (Debian), version 2.17 or later"

/* Of a program, by name or by path, a library or a unit, to go on behind "install": "xfsprogs". Its own name
 * where that is the package's, or nothing is known. */
_must_check_ _nonnull_ const char *package_of(const char *name);
