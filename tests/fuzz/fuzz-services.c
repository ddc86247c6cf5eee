/* SPDX-License-Identifier: Apache-2.0
 * Answers of the metadata service, the credential endpoint of a container, EC2 and STS → our structs.
 * The first byte chooses the request; the rest are the answers, with a line "==" between them. Those of the
 * first two are the bytes of a connection; the others are "STATUS DATE SECONDS" of Retry-After and the
 * body. The last one has no answer behind it. */
#include "fake-clock.h"

#include "aws/internal.h"
#include "base/hash.h"
#include "base/log.h"
#include "nic/enis.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *next, *end;
static unsigned asked;

static bool answer_take(const char **ret, size_t *ret_size) {
        static const char line[] = "\n==\n";
        asked++;
        if (!next)
                return false;
        const char *stop = memmem(next, (size_t)(end - next), line, strlen(line));
        *ret = next;
        *ret_size = (size_t)((stop ?: end) - next);
        next = stop ? stop + strlen(line) : NULL;
        return true;
}

/* ---- connections ---- */

/* In place of the C library: each connection has one answer to read, then its end. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved ones */
int connect(int fd, const struct sockaddr *address, socklen_t n) {
        static int peer = -1;
        const char *answer;
        size_t size;
        int pair[2];
        (void)address, (void)n;
        if (peer >= 0)
                close(peer);
        peer = -1;
        if (!answer_take(&answer, &size)) {
                errno = ECONNREFUSED;
                return -1;
        }
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
            dup2(pair[0], fd) < 0)
                abort();
        close(pair[0]);
        peer = pair[1];
        /* only a part, if the answer is larger than the buffer of the socket */
        if (size > 0 && send(peer, answer, size, MSG_NOSIGNAL) < 0)
                abort();
        shutdown(peer, SHUT_WR);
        return 0;
}

int https_load(Cause cause, const char *other_bundle, Diag *diag) {
        (void)cause, (void)other_bundle, (void)diag;
        return 0;
}

int https_post(const Url *url, const char *const (*headers)[2], size_t n_headers, const char *form,
               uint64_t limit_usec, HttpsReply *ret, char **ret_why) {
        const char *answer;
        size_t size;
        long status;
        long long date;
        unsigned wait;
        int at = 0;
        (void)url, (void)form, (void)limit_usec;
        for (size_t i = 0; i < n_headers; i++)
                if (strpbrk(headers[i][0], "\r\n") || strpbrk(headers[i][1], "\r\n"))
                        abort();        /* an injected header */
        _free_ char *text = answer_take(&answer, &size) ? xstrndup(answer, size) : NULL;
        if (!text || sscanf(text, "%ld %lld %u%n", &status, &date, &wait, &at) != 3 || !text[at]) {
                *ret_why = xstrdup("nobody answers");
                return -EKEYREJECTED;
        }
        /* as curl_getdate() and note_header() have them */
        *ret = (HttpsReply){ .status = status, .date = date > 0 && date < 253402300800 ? date : 0,
                             .wait_usec = MIN(wait, 60U) * USEC_PER_SEC };
        text_add_bytes(&ret->body, text + at + 1, strlen(text) - (size_t)at - 1);
        return 0;
}

/* ---- questions ---- */

static void check_word(const char *word) {
        if (word && (!*word || !credentials_text_is_valid(word)))
                abort();
}

static int ask_credentials(Imds *imds, bool assume, Diag *diag) {
        _cleanup_(credentials_done) Credentials c = {};
        uint64_t deadline = now_usec() + 20 * USEC_PER_SEC;
        int r = assume ? sts_assume_role(imds, "us-west-2", "arn:aws:iam::1:role/x", deadline, &c, diag)
                       : credentials_get(imds, "us-west-2", deadline, &c, diag);
        if (r >= 0 && (!c.key_id || !c.secret))
                abort();
        check_word(c.key_id);
        check_word(c.token);
        return r;
}

static int ask_imds(Imds *imds, Diag *diag) {
        _free_ char *text = NULL, *again = NULL;
        size_t size = 0;
        int r = imds_get(imds, "user-data", &text, &size, diag);
        if (r >= 0 && (text[size] || imds_get(imds, "user-data", &again, NULL, diag) != 0))
                abort();
        return r;
}

/* The region comes from the metadata service, too. */
static int ask_token(Diag *diag) {
        _free_ char *token = NULL;
        int64_t seconds;
        TokenRequest request = { .cluster = "prod", .deadline_usec = now_usec() + 20 * USEC_PER_SEC };
        int r = token_make(&request, &token, &seconds, diag);
        if (r >= 0 && !startswith(token, "k8s-aws-v1."))
                abort();
        return r;
}

static bool settle(void *user, const char *why, bool more) {
        if (!*why)
                abort();
        return *(const char *)user & 8 && more;
}

static int ask_ec2(char what, Imds *imds, Diag *diag) {
        Ec2 ec2 = { .region = "us-west-2", .domain = "amazonaws.com", .imds = imds,
                    .wish = { .settle = settle, .user = &what } };
        _free_ char *name = NULL;
        unsigned enis = 0, addresses = 0;
        bool tagged = false;
        int r = (what & 7) == 3   ? ec2_private_dns_name(&ec2, "i-0123456789abcdef0", &name, diag)
                : (what & 7) == 4 ? ec2_eni_limits(&ec2, "m5.large", &enis, &addresses, diag)
                                  : ec2_interface_is_tagged(&ec2, "i-0123456789abcdef0", "0a:00:00:00:00:0b",
                                                            &tagged, diag);
        if (r >= 0 && ((what & 7) == 3 ? !name || !*name : (what & 7) == 4 && (enis < 1 || addresses < 1)))
                abort();
        check_word(name);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(imds_freep) Imds *imds = imds_new(0);
        if (size < 1)
                return 0;
        _free_ char *text = xmemdup(data + 1, size - 1);
        char what = (char)data[0];
        unsigned kind = what & 7;
        next = text;
        end = text + size - 1;
        asked = 0;
        if (hash_load(&diag) < 0)
                abort();
        log_set_level(LOG_EMERG);
        setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1", 1);
        if (kind == 1)
                setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/x", 1);
        if (kind >= 2 && kind <= 5) {
                setenv("AWS_ACCESS_KEY_ID", "AKIA", 1);
                setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
        }
        int r = kind == 6 ? ask_imds(imds, &diag)
                : kind == 7 ? ask_token(&diag)
                : kind < 3  ? ask_credentials(imds, kind == 2, &diag)
                            : ask_ec2(what, imds, &diag);
        if (r < 0 && r != -ECANCELED && r != -ENOENT && !diag_first_error(&diag))
                abort();
        if (asked > 2000)
                abort();        /* the retries do not end */
        unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        unsetenv("AWS_ACCESS_KEY_ID");
        unsetenv("AWS_SECRET_ACCESS_KEY");
        return 0;
}
