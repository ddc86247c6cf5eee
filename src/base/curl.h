/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* libcurl, loaded when it is really needed: it brings some thirty libraries into the process. */
#include "base/library.h"
#include "base/package.h"
#include <curl/curl.h>

#define CURL_FUNCTIONS(X)                \
        X(init, curl_easy_init)          \
        X(cleanup, curl_easy_cleanup)    \
        X(setopt, curl_easy_setopt)      \
        X(perform, curl_easy_perform)    \
        X(getinfo, curl_easy_getinfo)    \
        X(strerror, curl_easy_strerror)  \
        X(getdate, curl_getdate)         \
        X(append, curl_slist_append)     \
        X(free_all, curl_slist_free_all)
typedef struct Curl { CURL_FUNCTIONS(LIBRARY_POINTER) } Curl;

/* Fills the table, and changes the environment for a moment; returns and *ret_why are those of
 * library_load(). */
_must_check_ _nonnull_ int curl_load(Curl *ret, char **ret_why);
/* Is it this machine itself, which is not asked through a proxy? */
static inline bool curl_is_local(const char *host) {
        return streq(host, "localhost") || startswith(host, "127.") || streq(host, "::1");
}
/* Might this error text of libcurl quote the address of a proxy, as it does where it cannot read one? There
 * is a password in many: then it must not be shown. */
_nonnull_ bool curl_may_quote_proxy(const char *error);
