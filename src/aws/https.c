/* SPDX-License-Identifier: Apache-2.0
 * A form → its response, over TLS and through a proxy of the environment, by libcurl (loaded on demand). */
#include "aws/internal.h"

#include "base/curl.h"
#include "base/time.h"

#include <errno.h>
#include <time.h>

#define MAX_BUNDLE (16u << 20)

#define SET(option, value) curl.setopt(easy, CURLOPT_##option, value)

static Curl curl;
static CURL *easy;              /* kept, with its connection */
static char *bundle;            /* trusted certificates; NULL: of the machine */

/* NULL, or the fault, which libcurl reports late and without a reason. */
static char *judge_bundle(const char *path) {
        _free_ char *text = NULL;
        int r = environment_read(path, MAX_BUNDLE, &text);
        if (r < 0)
                return xasprintf("cannot be read: %s", strerror(-r));
        if (!strstr(text, "-----BEGIN CERTIFICATE-----") &&
            !strstr(text, "-----BEGIN TRUSTED CERTIFICATE-----"))
                return xstrdup("has no PEM certificate (\"-----BEGIN CERTIFICATE-----\")");
        return NULL;
}

static int choose_bundle(Cause cause, const char *other, Diag *diag) {
        const char *variable = environment_value("AWS_CA_BUNDLE") ? "AWS_CA_BUNDLE" : other;
        const char *path = variable ? environment_value(variable) : NULL;
        if (easy && streq(path ?: "", bundle ?: ""))
                return 0;
        _free_ char *wrong = path ? judge_bundle(path) : NULL;
        if (wrong)
                return diag_error(diag, -EINVAL, cause, "%s, which %s names, %s", path, variable, wrong);
        if (easy)
                curl.cleanup(easy);     /* its connection trusts the old bundle */
        easy = NULL;
        free(bundle);
        bundle = xstrdup_or_null(path);
        return 0;
}

int https_load(Cause cause, const char *other_bundle, Diag *diag) {
        _free_ char *why = NULL;
        int r = choose_bundle(cause, other_bundle, diag);
        if (r < 0 || easy)
                return r;
        if (curl.init || curl_load(&curl, &why) >= 0)
                easy = curl.init();
        if (!easy)
                return diag_error(diag, -ELIBACC, cause,
                                  "libcurl.so.4, which carries requests to AWS, cannot be loaded: %s",
                                  why ?: "its initialisation failed");
        return 0;
}

static size_t collect_body(char *data, size_t one, size_t size, void *user) {
        Text *body = user;
        if (body->size + one * size > HTTP_MAX_BODY)
                return 0;               /* an error ends the transfer */
        text_add_bytes(body, data, one * size);
        return one * size;
}

/* Ignores Retry-After as a date (RFC 9110): no AWS service is known to send one. */
static size_t note_header(char *data, size_t one, size_t size, void *user) {
        HttpsReply *reply = user;
        _free_ char *line = xstrndup(data, one * size);
        uint64_t seconds = 0;
        if (strncasecmp(line, "date:", 5) == 0) {
                time_t t = curl.getdate(line + 5, NULL);
                reply->date = t > 0 ? t : 0;
        } else if (strncasecmp(line, "retry-after:", 12) == 0) {
                _free_ char *value = str_strip(line + 12);
                if (parse_u64(value, &seconds) >= 0)
                        reply->wait_usec = MIN(seconds, RETRY_AFTER_MAX / USEC_PER_SEC) * USEC_PER_SEC;
        }
        return one * size;
}

/* Called about once a second; true ends the transfer. */
static int look_for_stop(_unused_ void *user, _unused_ curl_off_t to_get, _unused_ curl_off_t got,
                         _unused_ curl_off_t to_put, _unused_ curl_off_t put) {
        return stop_signal() != 0;
}

/* libcurl reads HTTPS_PROXY in both spellings, but only lowercase http_proxy, since a caller can set the
 * other for a CGI program (https://curl.se/docs/manpage.html#HTTPPROXY). Local hosts bypass a proxy, as in
 * the AWS SDK for Go (https://pkg.go.dev/net/http#ProxyFromEnvironment). */
static void set_options(const Url *url, const char *form, uint64_t limit_usec, char *error,
                        HttpsReply *reply) {
        _free_ char *address = xasprintf("%s://%s%s", url->https ? "https" : "http", url->authority,
                                         *url->path ? url->path : "/");
        long limit = (long)(limit_usec / USEC_PER_MSEC);

        SET(URL, address);
        SET(POSTFIELDSIZE, (long)strlen(form));
        SET(POSTFIELDS, form);
        SET(TIMEOUT_MS, limit);
        SET(CONNECTTIMEOUT_MS, limit);
        SET(NOSIGNAL, 1L);
        SET(FOLLOWLOCATION, 0L);
        SET(USERAGENT, "nodestrap/" VERSION);
        SET(ERRORBUFFER, error);
        SET(WRITEFUNCTION, collect_body);
        SET(WRITEDATA, &reply->body);
        SET(HEADERFUNCTION, note_header);
        SET(HEADERDATA, reply);
        SET(NOPROGRESS, 0L);
        SET(XFERINFOFUNCTION, look_for_stop);
        if (bundle) {
                SET(CAINFO, bundle);
                SET(CAPATH, NULL);        /* no others, as in the AWS SDKs */
        }
        /* NULL: resets the option to the environment */
        SET(NOPROXY, curl_is_local(url->host) ? "*" : NULL);
        SET(PROXY, url->https || getenv("http_proxy") ? NULL : environment_value("HTTP_PROXY"));
}

static struct curl_slist *make_list(const char *const (*headers)[2], size_t n) {
        struct curl_slist *list = NULL;
        for (size_t i = 0; i < n; i++) {
                _free_ char *line = xasprintf("%s: %s", headers[i][0], headers[i][1]);
                struct curl_slist *longer = curl.append(list, line);
                /* out of memory: the server refuses the request, and we retry */
                if (longer)
                        list = longer;
                explicit_bzero(line, strlen(line));
        }
        return list;
}

static char *describe_failure(CURLcode code, const char *error) {
        char today[17];
        if (curl_may_quote_proxy(error))
                return xasprintf("%s (nodestrap hides the rest, which may quote a password: check the "
                                 "address in HTTPS_PROXY)",
                                 curl.strerror(code));
        const char *text = *error ? error : curl.strerror(code);
        sigv4_date(time(NULL), today);
        /* before NTP, certificates may not be valid yet */
        if (code == CURLE_PEER_FAILED_VERIFICATION)
                return xasprintf("%s (is the clock here right? It says %.8s)", text, today);
        return xstrdup(text);
}

int https_post(const Url *url, const char *const (*headers)[2], size_t n_headers, const char *form,
               uint64_t limit_usec, HttpsReply *ret, char **ret_why) {
        char error[CURL_ERROR_SIZE] = "";
        struct curl_slist *list = make_list(headers, n_headers);
        HttpsReply reply = {};

        /* A kept connection may reach the same bad server behind a balancer. */
        static bool ill;
        set_options(url, form, limit_usec, error, &reply);
        SET(FRESH_CONNECT, (long)ill);
        SET(MAXCONNECTS, 1L);
        SET(HTTPHEADER, list);
        long proxy_status = 0;          /* the answer to CONNECT */
        CURLcode code = curl.perform(easy);
        curl.getinfo(easy, CURLINFO_RESPONSE_CODE, &reply.status);
        curl.getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
        ill = code != CURLE_OK || reply.status >= 500;
        SET(ERRORBUFFER, NULL);
        SET(HTTPHEADER, NULL);
        curl.free_all(list);
        if (code != CURLE_OK) {
                text_done(&reply.body);
                *ret_why = describe_failure(code, error);
                /* a proxy finds no way to the host; for 403 and 407 it does not try */
                bool no_way = proxy_status >= 502 && proxy_status <= 504,
                     no_host = code == CURLE_COULDNT_RESOLVE_HOST || no_way;
                return no_host ? -EADDRNOTAVAIL : code == CURLE_SSL_CACERT_BADFILE ? -EKEYREJECTED : -EIO;
        }
        *ret = reply;
        return 0;
}
