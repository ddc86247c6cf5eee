/* SPDX-License-Identifier: Apache-2.0
 * libcurl before 7.77 for a caller with a certificate authority in memory: all functions are there, and it
 * refuses the option. */
#include <curl/curl.h>
#include <stdarg.h>
#include <stddef.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo
#define EXPORT __attribute__((visibility("default")))

static char handle;

EXPORT CURL *curl_easy_init(void) {
        return &handle;
}

EXPORT void curl_easy_cleanup(CURL *curl) {
        (void)curl;
}

EXPORT CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...) {
        (void)curl;
        return option == CURLOPT_CAINFO_BLOB ? CURLE_UNKNOWN_OPTION : CURLE_OK;
}

EXPORT CURLcode curl_easy_perform(CURL *curl) {
        (void)curl;
        return CURLE_FAILED_INIT;
}

EXPORT CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...) {
        (void)curl;
        (void)info;
        return CURLE_UNKNOWN_OPTION;
}

EXPORT const char *curl_easy_strerror(CURLcode code) {
        return code == CURLE_UNKNOWN_OPTION ? "An unknown option was passed in to libcurl" : "Error";
}

/* libcurl 7.66 has all of these */
EXPORT CURLM *curl_multi_init(void) {
        return &handle;
}

EXPORT CURLMcode curl_multi_add_handle(CURLM *multi, CURL *curl) {
        (void)multi;
        (void)curl;
        return CURLM_OK;
}

EXPORT CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *curl) {
        (void)multi;
        (void)curl;
        return CURLM_OK;
}

EXPORT CURLMcode curl_multi_perform(CURLM *multi, int *running) {
        (void)multi;
        *running = 0;
        return CURLM_INTERNAL_ERROR;
}

EXPORT CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd *more, unsigned int n, int msec, int *ready) {
        (void)multi;
        (void)more;
        (void)n;
        (void)msec;
        (void)ready;
        return CURLM_INTERNAL_ERROR;
}

EXPORT CURLMsg *curl_multi_info_read(CURLM *multi, int *left) {
        (void)multi;
        *left = 0;
        return NULL;
}

EXPORT CURLMcode curl_multi_cleanup(CURLM *multi) {
        (void)multi;
        return CURLM_OK;
}

EXPORT time_t curl_getdate(const char *p, const time_t *unused) {
        (void)p;
        (void)unused;
        return -1;
}

EXPORT struct curl_slist *curl_slist_append(struct curl_slist *list, const char *data) {
        (void)data;
        return list;
}

EXPORT void curl_slist_free_all(struct curl_slist *list) {
        (void)list;
}
