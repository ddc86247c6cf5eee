/* SPDX-License-Identifier: Apache-2.0
 * A form → the XML answer of a Query API of AWS (EC2, STS). A refusal of the service is final; temporary
 * ones and all other failures are retried. A wrong clock is corrected for signatures only; expired
 * credentials are fetched once more.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html */
#include "aws/internal.h"

#include "base/lock.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/time.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <time.h>

#define ATTEMPT_USEC (5 * USEC_PER_SEC)
#define CORRECTIONS  3                  /* chrony may set the clock between attempts */
#define CLOCK_SKEW   240                /* seconds; AWS accepts about five minutes */

/* In seconds, for all signatures of this process, after a refusal has shown it. */
static int64_t clock_ahead;

int64_t query_clock(int64_t seconds) {
        return seconds + clock_ahead;
}

typedef enum QueryStep {
        QUERY_DONE, QUERY_FORBIDDEN, QUERY_REFUSED, QUERY_AGAIN, QUERY_AGAIN_AT_ONCE,
} QueryStep;

typedef struct Asking {
        const Query *query;
        QueryEndpoint endpoint;
        char *form;
        uint64_t deadline_usec;
        unsigned clock_corrected;
        int64_t signed_at;              /* seconds since 1970 */
        bool credentials_renewed;       /* once */
        bool reached;                   /* a server has answered */
        bool missing;                   /* the last answer: nothing there (yet), */
        bool throttled;                 /* or a throttle */
        uint64_t wait_usec;             /* the wait that it demands, or 0 */
        uint64_t begin_usec;
        bool settled;                   /* q->settle was called */
        bool hopeless;                  /* a retry would fail again */
        char *why, *advice;             /* the last failure, and advice */
} Asking;

/* Takes both texts. */
static QueryStep try_again(Asking *a, char *why, char *advice) {
        FREE_ALL(a->why, a->advice);
        a->why = why;
        a->advice = advice;
        return QUERY_AGAIN;
}

static char *sign(const Asking *a, const char *const (*headers)[2], size_t n_headers, const char *date) {
        SignedRequest request = {
                .method = "POST",
                .path = a->endpoint.path,
                .query = "",
                .headers = headers,
                .n_headers = n_headers,
                .body = a->form,
                .region = a->query->region,
                .service = a->query->service->id,
                .date = date,
        };
        return sigv4_authorization(&request, a->query->credentials);
}

/* All nodes of an account share its rate of EC2 requests. Init and a process for each interface would ask in
 * parallel. They still do if /run is read-only. */
static int take_turn(const Query *q, uint64_t until_usec) {
        _cleanup_(diag_done) Diag unheard = {};
        return q->turns ? lock_take(q->turns, EC2_LOCK, until_usec, &unheard) : 0;
}

/* QUERY_DONE: any HTTP response. */
static QueryStep send_form(Asking *a, uint64_t limit_usec, HttpsReply *reply) {
        const Query *q = a->query;
        char date[17] = "", *why = NULL;
        _free_ char *authorization = NULL;
        const char *headers[5][2] = {
                { "content-type",         "application/x-www-form-urlencoded; charset=utf-8" },
                { "host",                 a->endpoint.host },
                { "x-amz-date",           date },
                { "x-amz-security-token", q->credentials ? q->credentials->token : NULL },
        };
        size_t n = 2;
        uint64_t until = now_usec() + limit_usec;
        _cleanup_(lock_release) int turn = take_turn(q, until);
        if (turn == -ETIMEDOUT || turn == -EINTR)
                return try_again(a,
                                 xasprintf("another nodestrap process is waiting for an answer from %s",
                                           q->service->name),
                                 xstrdup("Find that process: fuser -v " EC2_LOCK));
        if (q->credentials) {
                n = q->credentials->token ? 4 : 3;
                a->signed_at = query_clock(time(NULL));
                sigv4_date(a->signed_at, date);
                authorization = sign(a, headers, n, date);
                headers[n][0] = "authorization";
                headers[n][1] = authorization;
                n++;
        }
        if (q->requests)
                (*q->requests)++;
        int r = https_post(&a->endpoint.url, headers, n, a->form,
                           retry_attempt_usec(now_usec(), until), reply, &why);
        a->reached = a->reached || r >= 0;
        if (r >= 0)
                return QUERY_DONE;
        a->hopeless = r == -EKEYREJECTED;
        if (r == -EKEYREJECTED)
                return try_again(a, why, xstrdup("Check the file that AWS_CA_BUNDLE names, or the package "
                                                 "ca-certificates"));
        _free_ char *kind = r == -EADDRNOTAVAIL && a->endpoint.kind
                                    ? query_endpoint_advice(q->service, &a->endpoint, q->region)
                                    : xstrdup("");
        return try_again(a, why,
                         xasprintf("%sCheck the network path to %s: NAT gateway or VPC endpoint, security "
                                   "groups, HTTPS_PROXY and NO_PROXY",
                                   kind, q->service->full_name));
}

static char *advise_interception(const QueryService *service, const char *more) {
        return xasprintf("Another server answers in place of %s: check HTTPS_PROXY, NO_PROXY%s "
                         "AWS_ENDPOINT_URL%s",
                         service->name, *more ? "," : " and", more);
}

static QueryStep judge_answer(Asking *a, const HttpsReply *reply) {
        const Query *q = a->query;
        int r = reply->body.size > 0 ? q->accept(q, &reply->body) : -EBADMSG;
        if (r > 0)
                return QUERY_DONE;
        a->missing = r == 0;
        return try_again(a,
                         r < 0 ? xasprintf("a non-XML answer from %s", q->service->name)
                               : xstrdup(q->missing),
                         r == 0 && q->missing_advice ? xstrdup(q->missing_advice)
                                                     : advise_interception(q->service, ""));
}

/* Signs by the clock of the service if ours differed at the signature; chrony may have set it since. */
static bool correct_clock(Asking *a, const HttpsReply *reply) {
        const char *name = a->query->service->name;
        int64_t ahead = reply->date - (int64_t)time(NULL), wrong = reply->date - a->signed_at;
        if (a->clock_corrected >= CORRECTIONS || reply->date == 0 ||
            (wrong < CLOCK_SKEW && wrong > -CLOCK_SKEW))
                return false;
        a->clock_corrected++;
        clock_ahead = ahead;
        if (ahead < CLOCK_SKEW && ahead > -CLOCK_SKEW) {
                log_info("The clock of this machine agrees with %s again.", name);
                return true;
        }
        log_warning("The clock of this machine is %lld s %s %s; signing requests with the time from %s. "
                    "Check chrony.",
                    (long long)(ahead < 0 ? -ahead : ahead), ahead < 0 ? "ahead of" : "behind", name, name);
        return true;
}

static bool renew_credentials(Asking *a, Diag *diag) {
        const Query *q = a->query;
        Credentials fresh = {};
        if (a->credentials_renewed ||
            credentials_get(q->imds, q->region, a->deadline_usec, &fresh, diag) < 0)
                return false;
        a->credentials_renewed = true;
        credentials_done(q->credentials);
        *q->credentials = fresh;
        log_info("%s says that the credentials have expired; fetched them again.", q->service->name);
        return true;
}

static QueryStep report_refusal(const Asking *a, RefusalKind kind, const HttpsReply *reply, const char *code,
                                Diag *diag) {
        const QueryService *s = a->query->service;
        _free_ char *id = refusal_word(&reply->body, s->request_id_path);
        _free_ char *clock = refusal_clock(s->name, reply->date);
        _free_ char *signature =
                xasprintf("it does not accept the credentials or the signature; %s", clock);
        const char *advice = kind == REFUSAL_UNAUTHORIZED ? a->query->unauthorized
                             : kind == REFUSAL_EXPIRED    ? a->query->expired
                             : kind == REFUSAL_SIGNATURE  ? signature
                             : streq(code, "RegionDisabledException")
                                     ? "activate STS for this region in the IAM account settings"
                                     : "a retry will not help";
        diag_error(diag, -EPERM, s->cause, "%s at %s refused %s: %s (HTTP %ld, request %s): %s", s->name,
                   a->endpoint.host, a->query->action, code, reply->status, id ?: "without id", advice);
        return kind == REFUSAL_UNAUTHORIZED ? QUERY_FORBIDDEN : QUERY_REFUSED;
}

static QueryStep judge_error(Asking *a, const HttpsReply *reply, Diag *diag) {
        const QueryService *s = a->query->service;
        _free_ char *code = refusal_word(&reply->body, s->code_path);
        a->wait_usec = reply->wait_usec;
        if (!code) {
                bool redirect = reply->status >= 300 && reply->status < 400;
                return try_again(a,
                                 redirect ? xasprintf("HTTP %ld, a redirect, which nodestrap never follows: "
                                                      "a server other than %s answers there",
                                                      reply->status, s->name)
                                          : xasprintf("an answer that is not from %s (HTTP %ld)", s->name,
                                                      reply->status),
                                 advise_interception(s, " and the VPC endpoint"));
        }
        /* A service error is final; an error of a proxy or load balancer may pass. */
        RefusalKind kind = refusal_kind(code);
        bool is_signed = a->query->credentials, expired = kind == REFUSAL_EXPIRED,
             temporary = kind == REFUSAL_TEMPORARY || kind == REFUSAL_THROTTLED || reply->status >= 500,
             at_once = !temporary && is_signed &&
                       (((expired || kind == REFUSAL_SIGNATURE) && correct_clock(a, reply)) ||
                        (expired && renew_credentials(a, diag)));
        if (!temporary && !at_once)
                return report_refusal(a, kind, reply, code, diag);
        a->throttled = kind == REFUSAL_THROTTLED;
        (void)try_again(a, xasprintf("%s (HTTP %ld)", code, reply->status),
                        xasprintf("%s itself reports this error and may answer later", s->name));
        return at_once ? QUERY_AGAIN_AT_ONCE : QUERY_AGAIN;
}

/* The first instant for q->settle. */
static uint64_t patience_end(const Asking *a) {
        const Query *q = a->query;
        return q->settle && q->retry.patience_usec > 0 && !a->settled
                       ? MIN(a->begin_usec + q->retry.patience_usec, a->deadline_usec)
                       : a->deadline_usec;
}

uint64_t retry_attempt_usec(uint64_t now, uint64_t until) {
        uint64_t left = until - MIN(now, until);
        return MIN(MAX(left, USEC_PER_SEC), ATTEMPT_USEC);
}

static QueryStep attempt_query(Asking *a, Diag *diag) {
        HttpsReply reply = {};
        uint64_t now = now_usec(), end = patience_end(a), until = now < end ? end : a->deadline_usec;
        a->missing = a->throttled = false;
        a->wait_usec = 0;
        QueryStep step = send_form(a, retry_attempt_usec(now, until), &reply);
        if (step == QUERY_DONE)
                step = reply.status == 200 ? judge_answer(a, &reply) : judge_error(a, &reply, diag);
        if (reply.body.data)
                explicit_bzero(reply.body.data, reply.body.size);       /* STS answers have secrets */
        text_done(&reply.body);
        return step;
}

/* Settings of the AWS SDKs. A mistake in them must not end the boot; 0 or less means no limit. The modes
 * differ only between many requests of a process.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html */
static void apply_retry_settings(RetryPolicy *policy) {
        const char *text = environment_value("AWS_MAX_ATTEMPTS"), *mode = environment_value("AWS_RETRY_MODE");
        uint64_t n = 0;
        if (mode && !streq(mode, "standard") && !streq(mode, "adaptive") && !streq(mode, "legacy"))
                log_warning("AWS_RETRY_MODE in the environment has no effect: it must be standard, adaptive "
                            "or legacy; correct or unset it.");
        if (text && parse_u64(text + (*text == '-' || *text == '+'), &n) < 0)
                log_warning("AWS_MAX_ATTEMPTS in the environment is not a number, so nodestrap retries until "
                            "its time limit.");
        if (n == 0 || *text == '-')
                return;
        policy->attempts = policy->elastic ? (unsigned)MIN(n, UINT_MAX) : (unsigned)MIN(n, policy->attempts);
        uint64_t longest = MAX(policy->cap_usec, policy->throttled_cap_usec);
        if (policy->elastic)
                policy->total_usec = MAX(policy->total_usec, policy->attempts * longest);
}

uint64_t retry_pause(const RetryPolicy *policy, unsigned n, bool throttled, uint64_t wait_usec,
                     uint64_t *last_usec) {
        uint64_t least = throttled ? MAX(policy->throttled_base_usec, wait_usec) : wait_usec,
                 most = MAX(policy->throttled_cap_usec, 2 * least);
        *last_usec = least > 0 ? backoff_apart_usec(*last_usec, least, most)
                               : backoff_usec(n, policy->base_usec, policy->cap_usec);
        return *last_usec;
}

static int report_exhaustion(const Asking *a, unsigned attempts, uint64_t usec, Diag *diag) {
        const Query *q = a->query;
        _free_ char *instead =
                q->instead ? xasprintf("; with %s set, nodestrap does not ask %s", q->instead,
                                       q->service->name)
                           : xstrdup("");
        int r = a->hopeless ? -EKEYREJECTED : a->reached ? -ETIMEDOUT : -EHOSTUNREACH;
        return diag_error(diag, r, q->service->cause,
                          "no usable answer from %s at %s for %s after %u requests in %.1f s; the last one: "
                          "%s. %s%s",
                          q->service->name, a->endpoint.host, q->action, attempts,
                          (double)usec / USEC_PER_SEC, a->why, a->advice, instead);
}

static int report_stop(const Asking *a, Diag *diag) {
        const QueryService *s = a->query->service;
        return diag_error(diag, -EINTR, CAUSE_INTERRUPTED, "stopped by %s while asking %s at %s for %s%s",
                          stop_name(stop_signal()), s->name, a->endpoint.host, a->query->action,
                          s->if_stopped);
}

/* Calls q->settle once. */
static bool settles(Asking *a, bool more) {
        const Query *q = a->query;
        if (!q->settle || a->settled || a->missing || a->hopeless)
                return false;
        a->settled = true;
        return q->settle(q->user, a->why, more);
}

/* 1: no more attempts. */
static int pause_query(Asking *a, uint64_t until) {
        uint64_t now = now_usec(), end = patience_end(a);
        sleep_usec(MIN(until, end) - MIN(now, MIN(until, end)));
        now = now_usec();
        if (!stop_signal() && now >= end && end < a->deadline_usec && settles(a, true))
                return 1;
        sleep_usec(until - MIN(now, until));
        return 0;
}

static int attempt_until(Asking *a, Diag *diag) {
        const Query *q = a->query;
        RetryPolicy policy = q->retry;
        uint64_t last = 0;
        apply_retry_settings(&policy);
        a->begin_usec = now_usec();
        a->deadline_usec = a->begin_usec + policy.total_usec;
        for (unsigned n = 1, failures = 0;; n++) {
                QueryStep step = attempt_query(a, diag);
                if (step == QUERY_DONE)
                        return 0;
                if (step == QUERY_FORBIDDEN || step == QUERY_REFUSED)
                        return step == QUERY_FORBIDDEN ? -EACCES : -EPERM;
                if (stop_signal())
                        return report_stop(a, diag);
                uint64_t now = now_usec(), left = a->deadline_usec - MIN(now, a->deadline_usec),
                         pause = step == QUERY_AGAIN_AT_ONCE ? 0
                                                             : retry_pause(&policy, failures, a->throttled,
                                                                           a->wait_usec, &last);
                if (a->hopeless || n >= policy.attempts || left == 0 || (policy.brief && pause > left))
                        return settles(a, false) ? -ECANCELED
                                                 : report_exhaustion(a, n, now - a->begin_usec, diag);
                if (step == QUERY_AGAIN_AT_ONCE)
                        continue;
                log_line(failures++ == 0 ? LOG_INFO : LOG_DEBUG, "%s, %s: %s; trying again.",
                         q->service->name, q->action, a->why);
                int r = pause_query(a, now + MIN(pause, left));
                if (stop_signal())
                        return report_stop(a, diag);
                if (r > 0)
                        return -ECANCELED;
        }
}

int query_ask(const Query *q, Diag *diag) {
        Asking a = { .query = q };
        assert(!q->credentials || (q->imds && q->credentials->key_id));
        int r = query_endpoint(q->service, q->region, q->domain, &a.endpoint, diag) ?:
                https_load(q->service->cause, q->service->other_bundle, diag);
        if (r >= 0) {
                a.form = xasprintf("Action=%s&Version=%s%s", q->action, q->service->version, q->fields);
                r = attempt_until(&a, diag);
                explicit_bzero(a.form, strlen(a.form));         /* a web identity is a secret */
        }
        query_endpoint_done(&a.endpoint);
        FREE_ALL(a.form, a.why, a.advice);
        return r;
}
