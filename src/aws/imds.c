/* SPDX-License-Identifier: Apache-2.0
 * A client of the instance metadata service, version 2: a session token, then GETs on one connection.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html The service
 * may be unreachable, slow or busy during boot, so all but 200 and 404 is retried. */
#include "aws/internal.h"

#include "base/log.h"
#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>
#include <strings.h>
#include <unistd.h>

#define BUDGET_USEC  (60 * USEC_PER_SEC)
#define ATTEMPT_USEC (5 * USEC_PER_SEC)
#define BACKOFF_USEC (50 * USEC_PER_MSEC)
#define BACKOFF_CAP  (5 * USEC_PER_SEC)
#define TOKEN_TTL    "21600"            /* six hours, the maximum */

struct Imds {
        Url url;                        /* host is NULL before the first get */
        int fd;
        char *token;
        uint64_t budget_usec, spent_usec;
        unsigned requests;
        bool takes_refusal;
        bool refused;                   /* the last answer was a 403 */
        json_t *answers;                /* path → base64, or null for 404 */
};

Imds *imds_new(uint64_t budget_usec) {
        Imds *i = xcalloc(1, sizeof *i);
        i->fd = -1;
        i->budget_usec = budget_usec ?: BUDGET_USEC;
        return i;
}

void imds_renew(Imds *i, uint64_t budget_usec) {
        i->budget_usec = budget_usec ?: BUDGET_USEC;
        i->spent_usec = 0;
}

void imds_take_refusal(Imds *i) {
        i->takes_refusal = true;
}

Imds *imds_free(Imds *i) {
        if (!i)
                return NULL;
        close_fd(&i->fd);
        forget_secret(i->token);
        url_done(&i->url);
        json_decref(i->answers);
        free(i);
        return NULL;
}

unsigned imds_requests(const Imds *i) {
        return i->requests;
}

void imds_recall(Imds *i, json_t *answers) {
        json_decref(i->answers);
        i->answers = json_incref(answers);
}

json_t *imds_answers(const Imds *i) {
        return i->answers;
}

void imds_forget(Imds *i, const char *path) {
        if (i->answers)
                json_object_del(i->answers, path);
}

/* 1: an earlier answer, -ENOENT: an earlier 404, 0: none. */
static int find_answer(const Imds *i, const char *path, char **ret, size_t *ret_size) {
        const json_t *answer = json_object_get(i->answers, path);
        size_t size = 0;
        if (!answer)
                return 0;
        if (!json_is_string(answer))
                return -ENOENT;
        if (base64_decode(json_string_value(answer), json_string_length(answer), false, ret, &size) < 0)
                return 0;
        if (ret_size)
                *ret_size = size;
        return 1;
}

/* Credentials are secret and short-lived: not kept. */
static void keep_answer(Imds *i, const char *path, const Text *body) {
        if (startswith(path, "meta-data/iam/"))
                return;
        _free_ char *coded = body ? base64_encode(body->data ?: "", body->size) : NULL;
        i->answers = i->answers ?: json_object();
        json_object_set_new(i->answers, path, coded ? json_string(coded) : json_null());
}

void imds_know(Imds *i, const char *path, const void *data, size_t size) {
        _cleanup_(text_done) Text body = {};
        text_add_bytes(&body, data, size);
        keep_answer(i, path, &body);
}

static int find_imds_endpoint(Imds *i, Diag *diag) {
        const char *url = environment_value("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
                   *mode = environment_value("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"),
                   *disabled = environment_value("AWS_EC2_METADATA_DISABLED");
        if (i->url.host)
                return 0;
        /* as in the AWS SDKs and CLI */
        if (disabled && strcasecmp(disabled, "true") == 0)
                return diag_error(diag, -EPERM, CAUSE_IMDS,
                                  "AWS_EC2_METADATA_DISABLED is true in the environment, but nodestrap needs "
                                  "the metadata service; unset it");
        if (mode && strcasecmp(mode, "IPv4") != 0 && strcasecmp(mode, "IPv6") != 0)
                return diag_error(
                        diag, -EINVAL, CAUSE_IMDS,
                        "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE in the environment must be IPv4 or IPv6; "
                        "correct or unset it");
        if (!url)
                url = mode && strcasecmp(mode, "IPv6") == 0 ? "http://[fd00:ec2::254]"
                                                            : "http://169.254.169.254";
        int r = url_parse(url, &i->url);
        if (r >= 0 && !i->url.https)
                return 0;
        url_done(&i->url);
        return diag_error(
                diag, -EINVAL, CAUSE_IMDS,
                "AWS_EC2_METADATA_SERVICE_ENDPOINT in the environment must have the form http://HOST[:PORT]; "
                "correct or unset it");
}

/* A request with one header. */
static int imds_request(Imds *i, const char *method, const char *path, const char *header, const char *value,
                        uint64_t deadline, HttpResponse *ret) {
        _cleanup_(text_done) Text request = {};
        uint64_t now = now_usec(), left = deadline > now ? deadline - now : 0;

        text_add(&request, "%s %s/latest/%s HTTP/1.1\r\nHost: %s\r\n", method, i->url.path, path,
                 i->url.authority);
        text_add(&request, "User-Agent: nodestrap/" VERSION "\r\nAccept: */*\r\n%s: %s\r\n%s\r\n", header,
                 value, streq(method, "PUT") ? "Content-Length: 0\r\n" : "");
        i->requests++;
        /* The last attempt gets at least a second. */
        int r = http_exchange(&i->url, &i->fd, &request, now + MIN(MAX(left, USEC_PER_SEC), ATTEMPT_USEC),
                              ret);
        i->refused = r >= 0 && ret->status == 403;
        explicit_bzero(request.data, request.size);
        return r;
}

static const char *describe_errno(int r) {
        static const struct { int error; const char *text; } texts[] = {
                { ETIMEDOUT,     "no answer in time"                 },
                { ECONNRESET,    "the connection was cut off"        },
                { EPIPE,         "the connection was cut off"        },
                { EBADMSG,       "an answer that is not valid HTTP"  },
                { EADDRNOTAVAIL, "the host name does not resolve"    },
        };
        return PICK(t, texts, ARRAY_SIZE(texts), t->error == -r, t->text, strerror(-r));
}

static char *describe_status(unsigned status) {
        if (status >= 300 && status < 400)
                return xasprintf("HTTP %u, a redirect, which nodestrap never follows: a server other than "
                                 "the metadata service answers; check the route to the metadata service",
                                 status);
        if (status == 403)
                return xstrdup("HTTP 403: the metadata service is switched off in the metadata options of "
                               "this instance");
        return xasprintf("HTTP %u", status);
}

/* Takes text; 0: retry. */
static int note_failure(char **why, char *text) {
        free(*why);
        *why = text;
        return 0;
}

/* 1: there is a token. */
static int fetch_token(Imds *i, uint64_t deadline, char **why) {
        _cleanup_(http_response_done) HttpResponse answer = {};
        if (i->token)
                return 1;
        int r = imds_request(i, "PUT", "api/token", "X-aws-ec2-metadata-token-ttl-seconds", TOKEN_TTL,
                             deadline, &answer);
        if (r < 0)
                return note_failure(why, xasprintf("asking for a session token: %s", describe_errno(r)));
        if (answer.status != 200) {
                close_fd(&i->fd);
                _free_ char *status = describe_status(answer.status);
                (void)note_failure(why, xasprintf("asking for a session token: %s", status));
                return answer.status == 403 && i->takes_refusal ? -EACCES : 0;
        }
        for (size_t k = 0; k < answer.body.size; k++)
                if (answer.body.data[k] <= ' ' || answer.body.data[k] > '~')
                        return note_failure(why,
                                            xstrdup("a session token with invalid characters"));
        if (answer.body.size == 0 || answer.body.size > 4096)
                return note_failure(why, xasprintf("a session token of %zu bytes", answer.body.size));
        i->token = xmemdup(answer.body.data, answer.body.size);
        explicit_bzero(answer.body.data, answer.body.size);
        return 1;
}

/* 1: an answer, 0: retry, else final. A session token may expire at any time: a 401 gets one new token. */
static int imds_try(Imds *i, const char *path, uint64_t deadline, HttpResponse *ret, char **why) {
        for (unsigned n = 0; n < 2; n++) {
                _cleanup_(http_response_done) HttpResponse answer = {};
                int r = fetch_token(i, deadline, why);
                if (r <= 0)
                        return r;
                r = imds_request(i, "GET", path, "X-aws-ec2-metadata-token", i->token, deadline, &answer);
                if (r == -EFBIG)
                        return r;
                if (r < 0)
                        return note_failure(why, xstrdup(describe_errno(r)));
                if (answer.status == 404)
                        return -ENOENT;
                if (answer.status == 200) {
                        *ret = answer;
                        answer = (HttpResponse){};
                        return 1;
                }
                note_failure(why, describe_status(answer.status));
                close_fd(&i->fd);       /* reusing it may reach the same bad server */
                if (answer.status != 401)
                        return answer.status == 403 && i->takes_refusal ? -EACCES : 0;
                forget_secret(TAKE_PTR(i->token));
        }
        return 0;
}

/* Outside EC2, user data may be a file. */
static const char *elsewhere(const char *path) {
        return streq(path, "user-data") ? "; a machine outside EC2 needs a file: -c file://PATH" : "";
}

static int imds_try_until(Imds *i, const char *path, uint64_t deadline, HttpResponse *ret, char **why) {
        for (unsigned n = 0;; n++) {
                int r = stop_signal() ? -EINTR : imds_try(i, path, deadline, ret, why);
                uint64_t now = now_usec();
                if (r != 0)
                        return r;
                if (stop_signal())
                        return -EINTR;
                if (now >= deadline)
                        return i->refused ? -EPERM : -ETIMEDOUT;
                log_line(n == 0 ? LOG_INFO : LOG_DEBUG, "Instance metadata, %s: %s; trying again for %u s%s.",
                         path, *why, (unsigned)((deadline - now) / USEC_PER_SEC), elsewhere(path));
                uint64_t pause = backoff_usec(n, BACKOFF_USEC, BACKOFF_CAP);
                sleep_usec(MIN(pause, deadline - now));
        }
}

static int report_failure(const Imds *i, int r, const char *path, unsigned requests, uint64_t usec,
                          const char *why, Diag *diag) {
        if (r == -EFBIG)
                return diag_error(diag, r, CAUSE_LIMIT,
                                  "/latest/%s of the instance metadata exceeds the limit of %u MiB", path,
                                  HTTP_MAX_BODY >> 20);
        if (r == -EINTR)
                return diag_error(diag, r, CAUSE_INTERRUPTED,
                                  "stopped by %s while asking the instance metadata service at %s for "
                                  "/latest/%s, after %u requests in %.1f s; nothing was changed",
                                  stop_name(stop_signal()), i->url.authority, path, requests,
                                  (double)usec / USEC_PER_SEC);
        return diag_error(diag, r, CAUSE_IMDS,
                          "no usable answer from the instance metadata service at %s for /latest/%s "
                          "after %u requests in %.1f s; the last one: %s. Check the network of this "
                          "instance and its metadata options%s",
                          i->url.authority, path, requests, (double)usec / USEC_PER_SEC, why,
                          elsewhere(path));
}

int imds_get(Imds *i, const char *path, char **ret, size_t *ret_size, Diag *diag) {
        _cleanup_(http_response_done) HttpResponse answer = {};
        _free_ char *why = NULL;
        unsigned requests = i->requests;
        uint64_t begin = now_usec();

        if (!credentials_text_is_valid(path))
                return diag_error(diag, -EINVAL, CAUSE_IMDS, "a metadata path has invalid characters");
        int r = find_answer(i, path, ret, ret_size);
        if (r != 0)
                return MIN(r, 0);
        r = find_imds_endpoint(i, diag);
        if (r < 0)
                return r;
        r = imds_try_until(i, path, begin + i->budget_usec - MIN(i->spent_usec, i->budget_usec), &answer,
                           &why);
        /* Time between two gets does not count. */
        uint64_t spent = now_usec() - begin;
        i->spent_usec += spent;
        log_debug("Instance metadata, %s: %s after %u requests, %llu ms.", path,
                  r > 0 ? "answered" : r == -ENOENT ? "not there" : "failed", i->requests - requests,
                  (unsigned long long)(spent / USEC_PER_MSEC));
        if (r == -ENOENT) {
                keep_answer(i, path, NULL);
                return r;
        }
        if (r < 0)
                return report_failure(i, r, path, i->requests - requests, spent, why, diag);
        keep_answer(i, path, &answer.body);
        if (ret_size)
                *ret_size = answer.body.size;
        *ret = text_take(&answer.body);
        return 0;
}

int imds_get_within(Imds *i, uint64_t budget_usec, const char *path, char **ret, Diag *diag) {
        uint64_t budget = i->budget_usec, spent = i->spent_usec;
        imds_renew(i, budget_usec);
        int r = imds_get(i, path, ret, NULL, diag);
        i->budget_usec = budget;
        i->spent_usec = spent;
        return r;
}
