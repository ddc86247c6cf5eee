/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* libcurl, loaded when it is really needed: it brings some thirty libraries into the process. */
#include "base/macro.h"
#include <curl/curl.h>

typedef struct Curl {
        __typeof__(&curl_easy_init) init;
        __typeof__(&curl_easy_cleanup) cleanup;
        __typeof__(&curl_easy_setopt) setopt;
        __typeof__(&curl_easy_perform) perform;
        __typeof__(&curl_easy_getinfo) getinfo;
        __typeof__(&curl_easy_strerror) strerror;
        __typeof__(&curl_getdate) getdate;
        __typeof__(&curl_slist_append) append;
        __typeof__(&curl_slist_free_all) free_all;
} Curl;

/* As library_load() does. */
_must_check_ _nonnull_ int curl_load(Curl *ret, char **ret_why);
/* An error text of libcurl quotes a proxy's address that it cannot read, and there is a password in many:
 * then it must not be shown. */
_nonnull_ bool curl_may_quote_proxy(const char *error);
