/* SPDX-License-Identifier: Apache-2.0
 * Requests to the API server by libcurl, over one TLS connection that stays open, through the proxy of the
 * environment. Only the CA of the cluster may vouch for the server.
 *
 * A node may watch its own Node by name, even before it exists, and its own ResourceSlices by their nodeName
 * (kubernetes: plugin/pkg/auth/authorizer/node, authorizeNode() and authorizeResourceSlice()). Without a
 * resourceVersion a watch begins with the current state. */
#include "kube/internal.h"

#include "base/curl.h"
#include "base/time.h"

#include <errno.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_USEC (10 * USEC_PER_SEC)        /* TCP and TLS */
#define ANSWER_USEC  (10 * USEC_PER_SEC)        /* until the first line of an answer, CONNECT_USEC included */
#define QUIET_USEC   (1 * USEC_PER_SEC)
#define WATCH_USEC   (65 * USEC_PER_SEC)        /* longer than KUBE_WATCH */
#define LINE_LIMIT   (4u << 20)
#define BODY_LIMIT   (1u << 20)                 /* a Node lists its images */

/* Of a handle of the KubeApi a. */
#define SET(easy, option, value) a->curl.setopt(easy, CURLOPT_##option, value)

struct KubeApi {
        Curl curl;
        CURL *easy[2];          /* both: of watches; the first: of requests */
        CURLM *multi;           /* keeps their connections */
        const KubeAccess *access;
        bool connected;         /* this request has a connection, with TLS or without */
};

typedef struct Transfer {
        KubeApi *api;
        CURL *easy;
        KubeRequest request;
        struct curl_slist *headers;
        char error[CURL_ERROR_SIZE];
        KubeReply *reply;
        bool (*on_line)(void *user, const char *line, size_t size);     /* NULL: not a watch */
        void *user;
        Text line;              /* incomplete */
        uint64_t begin_usec, answer_usec;
        uint64_t tick_usec;             /* of the next call of on_line without a line */
        bool answered, enough;
} Transfer;

void kube_reply_done(KubeReply *r) {
        free(r->error);
        text_done(&r->body);
        *r = (KubeReply){};
}

KubeApi *kube_api_free(KubeApi *a) {
        for (size_t i = 0; a && i < ARRAY_SIZE(a->easy); i++)
                if (a->easy[i])
                        a->curl.cleanup(a->easy[i]);
        if (a && a->multi)
                a->curl.end(a->multi);
        free(a);
        return NULL;
}

/* Hands over complete lines. A return other than size ends the transfer. */
static size_t take_data(char *data, size_t one, size_t size, void *user) {
        Transfer *t = user;
        size *= one;
        t->api->curl.getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->reply->status);
        if (t->reply->status != 200 || !t->on_line) {
                Text *body = &t->reply->body;
                text_add_bytes(body, data, MIN(size, BODY_LIMIT - MIN(body->size, BODY_LIMIT)));
                return size;
        }
        for (size_t left = size; left > 0; ) {
                const char *end = memchr(data, '\n', left);
                size_t n = end ? (size_t)(end - data) + 1 : left;
                text_add_bytes(&t->line, data, n);
                if (t->line.size > LINE_LIMIT)
                        return 0;
                if (end && !t->on_line(t->user, t->line.data, t->line.size)) {
                        t->enough = true;
                        return 0;
                }
                if (end)
                        t->line.size = 0;
                data += n;
                left -= n;
        }
        return size;
}

/* NULL: another header. */
static const char *header_value(const char *line, const char *name) {
        return strncasecmp(line, name, strlen(name)) == 0 ? line + strlen(name) : NULL;
}

static size_t on_header(char *data, size_t one, size_t size, void *user) {
        Transfer *t = user;
        _free_ char *raw = xstrndup(data, one * size), *line = str_strip(raw);
        const char *date = header_value(line, "date:"), *retry = header_value(line, "retry-after:");
        uint64_t seconds;
        if (!t->answered)       /* the state has a full second from here */
                t->tick_usec = now_usec() + QUIET_USEC;
        t->answered = true;
        t->api->curl.getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->reply->status);
        if (date)
                t->reply->date = MAX((int64_t)t->api->curl.getdate(date, NULL), 0);
        if (retry && parse_u64(retry + strspn(retry, " "), &seconds) >= 0)
                t->reply->retry_after = (unsigned)MIN(seconds, 3600u);
        return one * size;
}

/* libcurl does not tell a refused connection from one that never speaks TLS; the socket does. */
static int close_socket(void *user, curl_socket_t fd) {
        KubeApi *a = user;
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        a->connected |= getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
        return close(fd);
}

/* libcurl calls it about once a second; a return other than 0 ends the transfer. */
static int look_for_end(void *user, _unused_ curl_off_t to_get, _unused_ curl_off_t got,
                        _unused_ curl_off_t to_put, _unused_ curl_off_t put) {
        Transfer *t = user;
        uint64_t now = now_usec();
        if (t->on_line && !t->enough && t->answered && t->reply->status == 200 && now > t->tick_usec) {
                t->tick_usec = now + QUIET_USEC;
                t->enough = !t->on_line(t->user, "", 0);
        }
        return t->enough || stop_signal() != 0 || (!t->answered && now > t->begin_usec + t->answer_usec);
}

/* As Go programs of Kubernetes do, requests to this machine itself bypass the proxy. */
static void set_common(KubeApi *a, CURL *easy) {
        SET(easy, NOSIGNAL, 1L);
        SET(easy, FOLLOWLOCATION, 0L);
        SET(easy, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        SET(easy, SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        SET(easy, SUPPRESS_CONNECT_HEADERS, 1L);
        SET(easy, USERAGENT, "nodestrap/" VERSION);
        SET(easy, TCP_KEEPALIVE, 1L);
        if (curl_is_local(a->access->host))
                SET(easy, NOPROXY, "*");
}

static int refuse(Diag *diag, int r, const char *why) {
        return diag_error(diag, r, CAUSE_API_ROUTE,
                          "libcurl.so.4, which carries requests to the API server, cannot be used: %s",
                          why);
}

int kube_api_new(const KubeAccess *access, KubeApi **ret, Diag *diag) {
        _cleanup_(kube_api_freep) KubeApi *a = xcalloc(1, sizeof *a);
        struct curl_blob ca = { access->ca, access->ca_size, CURL_BLOB_COPY };
        _free_ char *why = NULL;
        int r = curl_load(&a->curl, &why);
        if (r < 0)
                return refuse(diag, r, why);
        a->access = access;
        a->multi = a->curl.multi();
        for (size_t i = 0; i < ARRAY_SIZE(a->easy); i++) {
                CURL *easy = a->easy[i] = a->curl.init();
                if (!easy || !a->multi)
                        return refuse(diag, -ELIBACC, "it cannot be initialised");
                set_common(a, easy);
                /* an older libcurl would use the authorities of the system, which do not know the cluster */
                CURLcode code = SET(easy, CAINFO_BLOB, &ca);
                if (code != CURLE_OK) {
                        why = xasprintf("it does not accept a certificate authority from memory (%s); "
                                        "install %s",
                                        a->curl.strerror(code), CURL_PACKAGE);
                        return refuse(diag, -ELIBACC, why);
                }
                SET(easy, CAPATH, NULL);  /* else the directory of the system counts, too */
                SET(easy, WRITEFUNCTION, take_data);
                SET(easy, HEADERFUNCTION, on_header);
                SET(easy, CLOSESOCKETFUNCTION, close_socket);
                SET(easy, CLOSESOCKETDATA, a);
                SET(easy, NOPROGRESS, 0L);
                SET(easy, XFERINFOFUNCTION, look_for_end);
        }
        *ret = TAKE_PTR(a);
        return 0;
}

static long milliseconds(uint64_t usec) {
        /* never 0, which means no limit, and not before the deadline */
        return (long)(usec / USEC_PER_MSEC) + 1;
}

/* Only the text of libcurl names what it could not reach: the host, or a proxy, alone or behind a "via". */
static bool failed_at_proxy(const KubeApi *a, const KubeReply *r, const char *error) {
        if (r->curl == CURLE_COULDNT_RESOLVE_PROXY || r->proxy_status >= 300)
                return true;
        return r->proxy_set && r->curl == CURLE_COULDNT_CONNECT &&
               (!strstr(error, a->access->host) || strstr(error, " via "));
}

static void take_result(Transfer *t, CURLcode code, uint64_t deadline_usec) {
        static const char *const proxies[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY" };
        const Curl *curl = &t->api->curl;
        const char *error = t->error;
        CURL *easy = t->easy;
        KubeReply *r = t->reply;
        curl_off_t resolved = 0;

        r->usec = now_usec() - t->begin_usec;
        curl->getinfo(easy, CURLINFO_RESPONSE_CODE, &r->status);
        r->cut_by_deadline = code == CURLE_OPERATION_TIMEDOUT && now_usec() >= deadline_usec;
        /* this process may end a watch */
        if (code == CURLE_OK || t->enough ||
            (t->on_line && code == CURLE_OPERATION_TIMEDOUT && r->status == 200))
                return;
        if (code == CURLE_ABORTED_BY_CALLBACK && !stop_signal())
                code = CURLE_OPERATION_TIMEDOUT;
        r->curl = (int)code;
        r->proxy_set = ANY(name, proxies, ARRAY_SIZE(proxies), *(getenv(*name) ?: ""));
        r->error = xstrdup(*error && !curl_may_quote_proxy(error) ? error : curl->strerror(code));
        curl->getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &r->verify);
        curl->getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &r->proxy_status);
        curl->getinfo(easy, CURLINFO_OS_ERRNO, &r->os_error);
        curl->getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &resolved);
        r->resolved = resolved > 0;
        r->connected = t->api->connected;
        r->at_proxy = failed_at_proxy(t->api, r, error);
}

static struct curl_slist *make_headers(const Curl *curl, const char *token, const char *type) {
        _free_ char *line = xasprintf("Authorization: Bearer %s", token),
                    *content = type ? xasprintf("Content-Type: %s", type) : NULL;
        const char *const lines[] = { "Accept: application/json", line, content };
        struct curl_slist *list = NULL;
        for (size_t i = 0; i < (content ? 3 : 2); i++) {
                struct curl_slist *longer = curl->append(list, lines[i]);
                if (longer)             /* without memory the list stays as it is */
                        list = longer;
        }
        explicit_bzero(line, strlen(line));
        return list;
}

/* Until one has ended. */
static void perform(KubeApi *a, Transfer *transfers, size_t n, const char *token, uint64_t deadline_usec,
                    uint64_t limit_usec) {
        const CURLMsg *m = NULL;
        int unused;
        for (Transfer *t = transfers; t < transfers + n; t++) {
                CURL *easy = a->easy[t - transfers];
                _free_ char *url = xasprintf("%s%s", a->access->server, t->request.path);
                t->api = a;
                t->easy = easy;
                t->begin_usec = now_usec();
                t->headers = make_headers(&a->curl, token, t->request.type);
                uint64_t left = deadline_usec - MIN(t->begin_usec, deadline_usec);
                *t->reply = (KubeReply){};
                a->connected = false;
                t->request.body ? SET(easy, POSTFIELDS, t->request.body) : SET(easy, HTTPGET, 1L);
                SET(easy, CUSTOMREQUEST, t->request.method);
                SET(easy, URL, url);
                SET(easy, HTTPHEADER, t->headers);
                SET(easy, TIMEOUT_MS, milliseconds(MIN(left, limit_usec)));
                SET(easy, CONNECTTIMEOUT_MS, milliseconds(MIN(left, CONNECT_USEC)));
                SET(easy, ERRORBUFFER, t->error);
                SET(easy, WRITEDATA, t);
                SET(easy, HEADERDATA, t);
                SET(easy, XFERINFODATA, t);
                a->curl.add(a->multi, easy);
        }
        do
                m = a->curl.step(a->multi, &unused) == CURLM_OK ? a->curl.message(a->multi, &unused) : NULL;
        while (!m && a->curl.poll(a->multi, NULL, 0, QUIET_USEC / 2 / USEC_PER_MSEC, NULL) == CURLM_OK);
        const CURL *ended = m ? m->easy_handle : NULL;
        CURLcode code = m ? m->data.result : CURLE_OUT_OF_MEMORY;
        for (Transfer *t = transfers; t < transfers + n; t++) {
                t->reply->cut = ended && ended != t->easy;
                a->curl.remove(a->multi, t->easy);
                take_result(t, t->reply->cut ? CURLE_OK : code, deadline_usec);
                SET(t->easy, ERRORBUFFER, NULL);
                SET(t->easy, HTTPHEADER, NULL);
                SET(t->easy, POSTFIELDS, NULL);
                a->curl.free_all(t->headers);
                text_done(&t->line);
        }
}

void kube_api_request(KubeApi *a, const KubeRequest *request, const char *token, uint64_t deadline_usec,
                      KubeReply *ret) {
        uint64_t limit = request->answer_usec ?: ANSWER_USEC;
        Transfer t = { .request = *request, .reply = ret, .answer_usec = limit };
        perform(a, &t, 1, token, deadline_usec, limit);
}

void kube_api_watch(KubeApi *a, const KubeWatch *watches, size_t n, const char *token,
                    uint64_t deadline_usec) {
        Transfer t[ARRAY_SIZE(a->easy)] = {};
        for (size_t i = 0; i < n; i++)
                t[i] = (Transfer){ .request = { .method = "GET", .path = watches[i].path },
                                   .reply = watches[i].reply, .on_line = watches[i].on_line,
                                   .user = watches[i].user, .answer_usec = ANSWER_USEC };
        perform(a, t, n, token, deadline_usec, WATCH_USEC);
}

static size_t take_nothing(_unused_ char *data, size_t one, size_t size, _unused_ void *user) {
        return one * size;
}

int64_t kube_api_clock(KubeApi *a, uint64_t deadline_usec) {
        KubeReply reply = {};
        Transfer t = { .api = a, .reply = &reply };
        uint64_t left = usec_left(deadline_usec);
        CURL *easy = a->curl.init();
        if (!easy)
                return 0;
        set_common(a, easy);
        SET(easy, URL, a->access->server);
        SET(easy, NOBODY, 1L);
        SET(easy, SSL_VERIFYPEER, 0L);
        SET(easy, SSL_VERIFYHOST, 0L);
        SET(easy, TIMEOUT_MS, milliseconds(MIN(MAX(left, USEC_PER_SEC), 5 * USEC_PER_SEC)));
        SET(easy, WRITEFUNCTION, take_nothing);
        SET(easy, HEADERFUNCTION, on_header);
        SET(easy, HEADERDATA, &t);
        (void)a->curl.perform(easy);
        a->curl.cleanup(easy);
        return reply.date;
}
