/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A shared library that only some processes need, loaded by those: a struct of pointers takes the place of
 * linking. It and the names come from one list, as in base/curl.h, so that they cannot differ:
 *      #define CURL_FUNCTIONS(X) X(init, curl_easy_init) X(cleanup, curl_easy_cleanup)
 *      typedef struct Curl { CURL_FUNCTIONS(LIBRARY_POINTER) } Curl;
 *      library_load("libcurl.so.4", CURL_FUNCTIONS(LIBRARY_NAME), &curl, &why) */
#include "base/macro.h"

#define LIBRARY_POINTER(member, function) __typeof__(&function) member;
#define LIBRARY_NAME(member, function) #function "\0"

/* functions: their names in the order of the table's pointers, a NUL behind each and one more at the end; the
 * name of one that older libraries lack begins with '?', and its pointer is NULL there. 0 and the table is
 * filled; or -ELIBACC, *ret_why, the caller's, and a table that is not to be used. The library stays for the
 * life of the process. */
_must_check_ _nonnull_ int library_load(const char *name, const char *functions, void *table, char **ret_why);
/* Before the first use of libcrypto: leaves out the texts of its errors, half a MiB that no message shows
 * (libssl's are loaded, and those about certificates, X509_verify_cert_error_string(3), are no part of
 * either), and its cleaning up at exit, which only the end of the process comes after. */
void library_settle_libcrypto(void);
