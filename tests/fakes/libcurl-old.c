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

EXPORT CURLMcode curl_multi_poll(CURLM *multi_handle, struct curl_waitfd extra_fds[], unsigned int extra_nfds, int timeout_ms, int *ret) {
        (void)multi_handle;
        (void)extra_fds;
        (void)extra_nfds;
        (void)timeout_ms;
        (void)ret;
        return CURLM_INTERNAL_ERROR;
}

EXPORT CURLMsg *curl_multi_info_read(CURLM *multi_handle, int *msgs_in_queue) {
        (void)multi_handle;
        *msgs_in_queue = 0;
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
