/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A shared library that a process loads on demand, as a struct of pointers. One list makes struct and names
 * (base/curl.h): #define CURL_FUNCTIONS(X) X(init, curl_easy_init) X(cleanup, curl_easy_cleanup). Use
 * literals in the call of library_load(): a test reads them from the sources. */
#include "base/macro.h"

#define LIBRARY_POINTER(member, function) __typeof__(&function) member;
#define LIBRARY_NAME(member, function) #function "\0"

/* functions: names in the order of the pointers, each with a NUL, and a NUL as the end; '?' before an
 * optional name, whose pointer may be NULL. package: the package to install, or NULL. -ELIBACC: *ret_why,
 * which the caller frees, has the loader error and the package. A library stays loaded. */
_must_check_ _nonnull(1, 2, 4, 5) int library_load(const char *name, const char *functions,
                                                   const char *package, void *table, char **ret_why);
/* Call it before the first use of libcrypto. It skips the error texts (half a MiB that no message shows;
 * X509_verify_cert_error_string(3) needs none of them) and the cleanup at exit. */
void library_settle_libcrypto(void);
