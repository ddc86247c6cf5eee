/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* libcurl, loaded on demand: it brings thirty libraries. */
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
        X(free_all, curl_slist_free_all) \
        X(multi, curl_multi_init)        \
        X(add, curl_multi_add_handle)    \
        X(remove, curl_multi_remove_handle) \
        X(step, curl_multi_perform)      \
        X(poll, curl_multi_poll)         \
        X(message, curl_multi_info_read) \
        X(end, curl_multi_cleanup)
typedef struct Curl { CURL_FUNCTIONS(LIBRARY_POINTER) } Curl;

/* Fills the table; results as of library_load(). Changes the environment for a moment. */
_must_check_ _nonnull_ int curl_load(Curl *ret, char **ret_why);
/* Local hosts bypass a proxy. */
static inline bool curl_is_local(const char *host) {
        return streq(host, "localhost") || startswith(host, "127.") || streq(host, "::1");
}
/* libcurl quotes a proxy address that it cannot read, often with a password: do not show such an error. */
_nonnull_ bool curl_may_quote_proxy(const char *error);
