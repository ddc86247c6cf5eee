/* SPDX-License-Identifier: Apache-2.0 */
#include "aws/internal.h"
#include "base/str.h"
#include "base/time.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int feed(HttpResponse *p, const char *text) {
        return http_feed(p, text, strlen(text));
}

/* A response in one piece, and the same response byte by byte, must have the same result. */
static int feed_both(const char *text, HttpResponse *p) {
        _cleanup_(http_response_done) HttpResponse whole = {};
        int a = feed(&whole, text), b = 0;
        for (const char *c = text; *c && b >= 0; c++) {
                if (b == 1)
                        b = -EBADMSG;
                else
                        b = http_feed(p, c, 1);
        }
        ASSERT_EQ(a, b);
        if (a >= 0) {
                ASSERT_EQ(whole.status, p->status);
                ASSERT_EQ(whole.body.size, p->body.size);
                ASSERT_EQ(whole.keep_alive, p->keep_alive);
        }
        return b;
}

#define ASSERT_RESPONSE(text, wanted_status, wanted_body, wanted_keep) ({                      \
        _cleanup_(http_response_done) HttpResponse _p = {};                                    \
        ASSERT_EQ(feed_both(text, &_p), 1);                                                    \
        ASSERT_EQ(_p.status, wanted_status);                                                   \
        ASSERT_STREQ(_p.body.data ?: "", wanted_body);                                         \
        ASSERT_EQ(_p.keep_alive, wanted_keep); })
#define ASSERT_BAD(text, e) ({                                                                 \
        _cleanup_(http_response_done) HttpResponse _p = {};                                    \
        ASSERT_ERROR(feed_both(text, &_p), e); })
#define ASSERT_CUT(text) ({                                                                    \
        _cleanup_(http_response_done) HttpResponse _p = {};                                    \
        ASSERT_EQ(feed_both(text, &_p), 0);                                                    \
        ASSERT_ERROR(http_feed_end(&_p), ECONNRESET); })

TEST(content_length_delimits_the_body) {
        ASSERT_RESPONSE("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true);
        ASSERT_RESPONSE("HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n", 404, "", true);
        ASSERT_RESPONSE("HTTP/1.1 200\nContent-LENGTH:\t2 \nContent-Length: 2\n\nab", 200, "ab", true);
        ASSERT_RESPONSE("HTTP/1.1 204 None\r\n\r\n", 204, "", true);
        ASSERT_RESPONSE("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200,
                        "x", true);
}

TEST(keep_alive_follows_version_and_connection_header) {
        ASSERT_RESPONSE("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx", 200, "x",
                        false);
        ASSERT_RESPONSE("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", false);
        ASSERT_RESPONSE("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", 200, "x",
                        true);
}

TEST(chunked_bodies_are_decoded_and_checked) {
        ASSERT_RESPONSE("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0a ; "
                        "e=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
                        200, "abc0123456789", true);
        ASSERT_RESPONSE(
                "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n", 200,
                "x", true);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", EFBIG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000000000001\r\n",
                   EFBIG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", EBADMSG);
        ASSERT_CUT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n");
}

TEST(a_body_without_length_ends_at_close) {
        _cleanup_(http_response_done) HttpResponse p = {};
        ASSERT_EQ(feed_both("HTTP/1.1 200 OK\r\nServer: x\r\n\r\nsome body", &p), 0);
        ASSERT_EQ(http_feed_end(&p), 1);
        ASSERT_STREQ(p.body.data, "some body");
        ASSERT_TRUE(!p.keep_alive);
}

TEST(a_cut_response_is_an_error) {
        ASSERT_CUT("");
        ASSERT_CUT("HTTP/1.1 200 OK\r\nConte");
        ASSERT_CUT("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello");
        ASSERT_CUT("HTTP/1.1 100 Continue\r\n\r\n");
}

TEST(invalid_responses_are_refused) {
        ASSERT_BAD("SSH-2.0-OpenSSH\r\n", EBADMSG);
        ASSERT_BAD("HTTP/2 200\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 20\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 2000 OK\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 +20 OK\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 099 OK\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nno colon\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n", EBADMSG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more", EBADMSG);
        _cleanup_(http_response_done) HttpResponse p = {};
        ASSERT_ERROR(http_feed(&p, "HTTP/1.1 200 \0\r\n", 16), EBADMSG);
}

TEST(bodies_and_headers_have_size_limits) {
        _cleanup_(http_response_done) HttpResponse p = {}, q = {};
        _free_ char *many = xcalloc(1 << 20, 1);
        memset(many, 'a', (1 << 20) - 1);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nContent-Length: 4194305\r\n\r\n", EFBIG);
        ASSERT_BAD("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", EBADMSG);
        ASSERT_EQ(feed(&p, "HTTP/1.1 200 OK\r\n\r\n"), 0);
        for (int i = 0; i < 4; i++)
                ASSERT_EQ(http_feed(&p, many, 1 << 20), 0);
        ASSERT_ERROR(http_feed(&p, "x", 1), EFBIG);
        ASSERT_EQ(feed(&q, "HTTP/1.1 200 OK\r\nLong: "), 0);
        ASSERT_ERROR(feed(&q, many), EBADMSG);
}

/* ---- addresses ---- */
#define ASSERT_URL(text, wanted_host, wanted_port, wanted_path, wanted_authority) ({           \
        _cleanup_(url_done) Url _u = {};                                                       \
        ASSERT_OK(url_parse(text, &_u));                                                       \
        ASSERT_STREQ(_u.host, wanted_host);                                                    \
        ASSERT_STREQ(_u.port, wanted_port);                                                    \
        ASSERT_STREQ(_u.path, wanted_path);                                                    \
        ASSERT_STREQ(_u.authority, wanted_authority); })

TEST(urls_are_parsed_or_refused) {
        static const char *const bad[] = {
                "",
                "http://",
                "http://:80",
                "http://h:0",
                "http://h:65536",
                "http://h:x",
                "http://[::1",
                "http://[::1]x",
                "http://u@h",
                "http://h/a b",
                "http://h\r\n",
                "http://h/?q",
                "http://[]:80",
                "http://h:",
        };
        ASSERT_URL("http://169.254.169.254", "169.254.169.254", "80", "", "169.254.169.254");
        ASSERT_URL("http://[fd00:ec2::254]/", "fd00:ec2::254", "80", "", "[fd00:ec2::254]");
        ASSERT_URL("http://[::1]:8080/base//", "::1", "8080", "/base", "[::1]:8080");
        ASSERT_URL("127.0.0.1:1338", "127.0.0.1", "1338", "", "127.0.0.1:1338");
        ASSERT_URL("https://ec2.eu-west-1.amazonaws.com", "ec2.eu-west-1.amazonaws.com", "443", "",
                   "ec2.eu-west-1.amazonaws.com");
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                Url u = {};
                ASSERT_ERROR(url_parse(bad[i], &u), EINVAL);
                ASSERT_TRUE(!u.host);
        }
}

/* ---- the exchange, over a socket pair that stands for the kept connection ---- */
typedef struct Peer { int ours, theirs; Text request; Url nowhere; } Peer;

/* Port 1 of the loopback refuses, so a new connection shows up as an error. */
static Peer peer_new(void) {
        Peer p = { .nowhere = { .host = xstrdup("127.0.0.1"), .port = xstrdup("1") } };
        int pair[2];
        ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
        ASSERT_OK(fcntl(pair[0], F_SETFL, O_NONBLOCK));
        p.ours = pair[0];
        p.theirs = pair[1];
        text_add(&p.request, "GET / HTTP/1.1\r\n\r\n");
        return p;
}

static void peer_done(Peer *p) {
        if (p->ours >= 0)
                close(p->ours);
        close(p->theirs);
        text_done(&p->request);
        url_done(&p->nowhere);
}

static int peer_exchange(Peer *p, uint64_t usec, HttpResponse *ret) {
        return http_exchange(&p->nowhere, &p->ours, &p->request, now_usec() + usec, ret);
}

/* Answers one request, in two pieces. */
static void *answer(void *peer) {
        static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        int fd = ((Peer *)peer)->theirs;
        char request[4096];
        if (recv(fd, request, sizeof request, 0) > 0 && send(fd, response, 20, 0) == 20)
                (void)!send(fd, response + 20, strlen(response) - 20, 0);
        return NULL;
}

TEST(the_connection_is_reused) {
        _cleanup_(peer_done) Peer peer = peer_new();
        for (int i = 0; i < 2; i++) {
                _cleanup_(http_response_done) HttpResponse p = {};
                pthread_t thread;
                ASSERT_EQ(pthread_create(&thread, NULL, answer, &peer), 0);
                int r = peer_exchange(&peer, 5 * USEC_PER_SEC, &p);
                pthread_join(thread, NULL);
                ASSERT_OK(r);
                ASSERT_STREQ(p.body.data, "hello");
                ASSERT_TRUE(peer.ours >= 0);
        }
}

TEST(a_missing_answer_ends_at_the_deadline) {
        _cleanup_(peer_done) Peer peer = peer_new();
        _cleanup_(http_response_done) HttpResponse p = {};
        ASSERT_ERROR(peer_exchange(&peer, 1000, &p), ETIMEDOUT);
        ASSERT_EQ(peer.ours, -1);
}

TEST(a_kept_connection_that_was_closed_is_replaced) {
        _cleanup_(peer_done) Peer peer = peer_new();
        _cleanup_(http_response_done) HttpResponse p = {};
        ASSERT_OK(shutdown(peer.theirs, SHUT_RDWR));
        ASSERT_ERROR(peer_exchange(&peer, 5 * USEC_PER_SEC, &p), ECONNREFUSED);
        ASSERT_EQ(peer.ours, -1);
}

TEST(a_kept_connection_that_talks_first_is_replaced) {
        _cleanup_(peer_done) Peer peer = peer_new();
        _cleanup_(http_response_done) HttpResponse p = {};
        ASSERT_EQ(send(peer.theirs, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, 0), 38);
        ASSERT_ERROR(peer_exchange(&peer, 5 * USEC_PER_SEC, &p), ECONNREFUSED);
}

TEST(backoff_is_random_below_its_cap) {
        uint64_t last = 0;
        unsigned changes = 0;
        for (unsigned n = 0; n < 100; n++) {
                uint64_t span = n < 7 ? 50ULL << n : 5000;
                uint64_t usec = backoff_usec(n, 50, 5000);
                ASSERT_TRUE(usec <= span);
                changes += usec != last;
                last = usec;
        }
        ASSERT_TRUE(changes > 50);
}

TEST(backoff_apart_stays_in_its_range) {
        uint64_t last = 0, longest = 0;
        unsigned changes = 0;
        for (unsigned n = 0; n < 200; n++) {
                uint64_t usec = backoff_apart_usec(last, 100, 60000);
                ASSERT_TRUE(usec >= 100 && usec <= 60000 && usec <= 3 * MAX(last, 100u));
                changes += usec != last;
                last = usec;
                longest = MAX(longest, usec);
        }
        ASSERT_TRUE(changes > 50 && longest > 10000);
        ASSERT_EQ(backoff_apart_usec(1 << 30, 100, 60000) <= 60000, true);
}

static atomic_int sleeper;

static void *sleep_long(_unused_ void *none) {
        sleeper = gettid();
        sleep_usec(600 * USEC_PER_SEC);
        return NULL;
}

/* As in host/name.c, the main thread takes the signal while it only waits for the other thread. */
static void stop_while_another_sleeps(void) {
        pthread_t thread;
        sigset_t held, before;
        char state = 0;
        alarm(60);
        stop_catch();
        sigemptyset(&held);
        sigaddset(&held, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &held, &before);
        ASSERT_EQ(pthread_create(&thread, NULL, sleep_long, NULL), 0);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        while (state != 'S') {
                _free_ char *path = xasprintf("/proc/self/task/%d/stat", (int)sleeper);
                FILE *f = sleeper ? fopen(path, "re") : NULL;
                if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
                        state = 0;
                if (f)
                        fclose(f);
        }
        ASSERT_OK(raise(SIGTERM));
        ASSERT_EQ(pthread_join(thread, NULL), 0);
}

TEST(a_signal_ends_the_sleep_of_another_thread) {
        int status = 0;
        pid_t child = ASSERT_OK(fork());
        if (child == 0) {
                stop_while_another_sleeps();
                _exit(0);
        }
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
}

TEST(retry_pauses_follow_throttling_and_retry_after) {
        const RetryPolicy policy = { .base_usec = 10, .cap_usec = 100, .throttled_base_usec = 1000,
                                     .throttled_cap_usec = 9000 };
        const RetryPolicy plain = { .base_usec = 10, .cap_usec = 100 };
        for (unsigned n = 0; n < 100; n++) {
                uint64_t last = 0;
                ASSERT_TRUE(retry_pause(&policy, n, false, 0, &last) <= 100);
                ASSERT_TRUE(retry_pause(&plain, n, true, 0, &last) <= 100);
                last = 0;
                uint64_t first = retry_pause(&policy, n, true, 0, &last);
                ASSERT_TRUE(first >= 1000 && first <= 3000 && last == first);
                ASSERT_TRUE(retry_pause(&policy, n, true, 0, &last) <= MIN(3 * first, 9000u));
                last = 0;               /* the pause that the service asks for is a minimum, and the clients do not come all at once after it */
                ASSERT_TRUE(retry_pause(&policy, n, true, 50000, &last) >= 50000 && last <= 100000);
                ASSERT_TRUE(retry_pause(&plain, n, false, 50000, &last) >= 50000 && last <= 100000);
        }
}

TEST(the_last_attempt_has_at_least_a_second) {
        const uint64_t s = USEC_PER_SEC;
        ASSERT_EQ(retry_attempt_usec(100 * s, 160 * s), 5 * s);
        ASSERT_EQ(retry_attempt_usec(100 * s, 103 * s), 3 * s);
        ASSERT_EQ(retry_attempt_usec(100 * s, 100 * s + 1), s);
        ASSERT_EQ(retry_attempt_usec(100 * s, 100 * s), s);
        ASSERT_EQ(retry_attempt_usec(100 * s + 1, 100 * s), s); /* the sleep before it took a little longer */
}

TEST_MAIN
