/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A shared library that only some processes need, loaded by those: a struct of pointers takes the place of
 * linking. It and the names come from one list, as in base/curl.h, so that they cannot differ:
 *      #define CURL_FUNCTIONS(X) X(init, curl_easy_init) X(cleanup, curl_easy_cleanup)
 *      typedef struct Curl { CURL_FUNCTIONS(LIBRARY_POINTER) } Curl;
 *      library_load("libcurl.so.4", CURL_FUNCTIONS(LIBRARY_NAME), CURL_PACKAGE, &curl, &why)
 * Names and list are literals where it is called, so that a test reads from the sources what is looked for at
 * run time. */
#include "base/macro.h"

#define LIBRARY_POINTER(member, function) __typeof__(&function) member;
#define LIBRARY_NAME(member, function) #function "\0"

/* functions: their names in the order of the table's pointers, a NUL behind each and one more at the end; the
 * name of one that older libraries lack begins with '?', and its pointer is NULL there. package: what a
 * person installs where it is missing or too old ("libcurl4 (Debian)"); NULL: the caller says it. 0 and the
 * table is filled; or -ELIBACC, *ret_why, the caller's (the loader's words and the package), and a table that
 * is not to be used. The library stays for the life of the process. */
_must_check_ _nonnull(1, 2, 4, 5) int library_load(const char *name, const char *functions,
                                                   const char *package, void *table, char **ret_why);
/* Before the first use of libcrypto: leaves out the texts of its errors, half a MiB that no message shows
 * (libssl's are loaded, and those about certificates, X509_verify_cert_error_string(3), are no part of
 * either), and its cleaning up at exit, which only the end of the process comes after. */
void library_settle_libcrypto(void);
