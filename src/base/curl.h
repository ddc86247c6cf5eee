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

/* Fills the table; returns and *ret_why are those of library_load(). */
_must_check_ _nonnull_ int curl_load(Curl *ret, char **ret_why);
/* Might this error text of libcurl quote the address of a proxy, as it does where it cannot read one? There is
 * a password in many: then it must not be shown. */
_nonnull_ bool curl_may_quote_proxy(const char *error);
