/* SPDX-License-Identifier: Apache-2.0
 * A unary call of gRPC by libcurl: POST with HTTP/2 and prior knowledge over a UNIX socket. The trailers have
 * the result, and libcurl hands them over as headers. libcurl-minimal of Amazon Linux 2023 has HTTP/2, too
 * (https://docs.aws.amazon.com/linux/al2023/ug/curl-minimal.html). */
#include "pull/pull.h"

#include "base/time.h"

#include <errno.h>

#define SERVICE    "http://localhost/runtime.v1.ImageService/"
#define ANSWER_MAX (1U << 20)

#define SET(option, value) c->curl->setopt(c->easy, CURLOPT_##option, value)

int channel_open(const Curl *curl, const char *socket, Channel *ret) {
        Channel channel = { .curl = curl, .easy = curl->init(), .socket = socket }, *c = &channel;
        if (!c->easy)
                return -ENOMEM;
        if (SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE) != CURLE_OK) {
                channel_close(c);
                return -ENOTSUP;
        }
        *ret = channel;
        return 0;
}

void channel_close(Channel *c) {
        if (c->easy)
                c->curl->cleanup(c->easy);
        c->easy = NULL;
}

static size_t take_body(char *data, size_t one, size_t size, void *user) {
        Text *body = user;
        if (body->size + one * size > ANSWER_MAX)
                return 0;               /* an error ends the call */
        text_add_bytes(body, data, one * size);
        return one * size;
}

static size_t take_header(char *data, size_t one, size_t size, void *user) {
        cri_take_header(user, data, one * size);
        return one * size;
}

/* Called about once a second; true ends the call. */
static int look_for_stop(_unused_ void *user, _unused_ curl_off_t to_get, _unused_ curl_off_t got,
                         _unused_ curl_off_t to_put, _unused_ curl_off_t put) {
        return stop_signal() != 0;
}

int cri_call(Channel *c, const char *method, const Text *frame, uint64_t deadline, CriReply *ret,
             char **ret_why) {
        _free_ char *url = xasprintf(SERVICE "%s", method);
        _cleanup_(cri_reply_done) CriReply reply = { .status = -1 };
        struct curl_slist *list = c->curl->append(NULL, "content-type: application/grpc"),
                          *longer = c->curl->append(list, "te: trailers");
        SET(URL, url);
        SET(UNIX_SOCKET_PATH, c->socket);
        SET(PROXY, "");
        SET(FORBID_REUSE, 1L);          /* libcurl 7.88 cannot use it twice (curl/curl#10634) */
        SET(HTTPHEADER, longer ?: list);
        SET(POSTFIELDSIZE, (long)frame->size);
        SET(POSTFIELDS, frame->data);
        SET(TIMEOUT_MS, (long)(usec_left(deadline) / USEC_PER_MSEC + 1));
        SET(NOSIGNAL, 1L);
        SET(WRITEFUNCTION, take_body);
        SET(WRITEDATA, &reply.body);
        SET(HEADERFUNCTION, take_header);
        SET(HEADERDATA, &reply);
        SET(NOPROGRESS, 0L);
        SET(XFERINFOFUNCTION, look_for_stop);
        CURLcode code = c->curl->perform(c->easy);
        SET(HTTPHEADER, NULL);
        SET(POSTFIELDS, NULL);
        c->curl->free_all(list);
        if (code == CURLE_OK && reply.status >= 0) {
                *ret = reply;
                reply = (CriReply){};
                return 0;
        }
        if (stop_signal())
                return *ret_why = xasprintf("a signal terminated the program"), -EINTR;
        if (code == CURLE_OPERATION_TIMEDOUT)
                return *ret_why = xasprintf("containerd did not answer in time"), -ETIMEDOUT;
        *ret_why = xasprintf("the call to %s failed: %s", c->socket,
                             code == CURLE_OK ? "it does not speak gRPC" : c->curl->strerror(code));
        return -EIO;
}
