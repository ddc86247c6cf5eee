/* SPDX-License-Identifier: Apache-2.0
 * Checks that containerd serves CRI. With the CRI plugin disabled or not loaded, containerd runs but kubelet
 * exits again and again. The call runtime.v1.RuntimeService/Version is an unknown service then. A reply has a
 * DATA frame. A refusal has only headers (grpc/grpc:doc/PROTOCOL-HTTP2.md, Trailers-Only), here with
 * grpc-status 12, UNIMPLEMENTED. While it recovers sandboxes, containerd refuses with another status
 * (containerd/containerd:internal/cri/instrument/instrumented_service.go). */
#include "apply/units/unit.h"

#include "base/journal.h"
#include "base/paths.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define AGAIN_USEC (20 * USEC_PER_MSEC)
#define UNIMPLEMENTED "\2" "12"  /* its length and text; Huffman coding would save nothing */

/* RFC 9113: preface, SETTINGS, HEADERS with END_HEADERS, DATA with END_STREAM; headers are RFC 7541 literals
 * with its static table. */
static const char request[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                              "\0\0\0\4\0\0\0\0\0" "\0\0\x49\1\4\0\0\0\1"
                              "\x83\x86\4\x22/runtime.v1.RuntimeService/Version\1\1x" "\xf\x10\x10"
                              "application/grpc" "\0\2te\btrailers" "\0\0\5\0\1\0\0\0\1" "\0\0\0\0\0";
enum { FRAME_HEAD = 9, DATA = 0, HEADERS = 1, RST_STREAM = 3, GOAWAY = 7, END_STREAM = 1 };

int cri_answer(const unsigned char *p, size_t n) {
        while (n >= FRAME_HEAD) {
                size_t size = FRAME_HEAD + ((size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2]);
                if (p[3] == DATA)
                        return 1;
                if (p[3] == RST_STREAM || p[3] == GOAWAY)
                        return -EBUSY;
                if (size > n)
                        break;
                if (p[3] == HEADERS && p[4] & END_STREAM)
                        return memmem(p, size, UNIMPLEMENTED, strlen(UNIMPLEMENTED)) ? 0 : -EBUSY;
                p += size;
                n -= size;
        }
        return -EAGAIN;
}

static const char *socket_path(const Unit *u) {
        return u->task->action->with ?: CONTAINERD_SOCKET;
}

/* Forgets the record, so that the next run starts containerd with the corrected configuration. */
static void refused(Unit *u) {
        _cleanup_(text_done) Text t = {};
        if (!journal_quote(&t, u->state.id, u->begun_usec, "failed to load plugin", "CRI") &&
            !journal_quote(&t, u->state.id, u->begun_usec, "failed to load plugin", "grpc.v1.cri"))
                text_add(&t, " and its log does not say why: disabled_plugins may name CRI");
        unit_forget_record(u);
        (void)task_fail(u->task, -EPROTONOSUPPORT, CAUSE_CRI,
                        "%s runs without CRI, which kubelet needs,%s; correct its configuration "
                        "(containerd config dump shows it) and run nodestrap init",
                        u->name, t.data);
}

static int on_again(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        cri_ask(userdata);
        return 0;
}

/* With Type=notify the sockets exist. Otherwise it has just begun. If it hangs up, it restarts, or its unit
 * reports the end. */
static void unanswered(Unit *u, int r) {
        bool later = r == -EAGAIN || r == -EBUSY || r == -ECONNRESET || r == -EPIPE;
        if ((later || !streq(u->state.type, "notify")) &&
            sd_event_add_time_relative(u->task->apply->event, &u->timer, CLOCK_MONOTONIC, AGAIN_USEC,
                                       USEC_PER_MSEC, on_again, u) >= 0)
                return;
        (void)task_fail(u->task, r, CAUSE_CRI,
                        "%s runs, but does not answer CRI requests at %s: %m; correct the address in its "
                        "configuration (containerd config dump shows it)",
                        u->name, socket_path(u));
}

static int on_answer(_unused_ sd_event_source *s, int fd, _unused_ uint32_t events, void *userdata) {
        Unit *u = userdata;
        ssize_t n = recv(fd, u->answer + u->n_answer, sizeof u->answer - u->n_answer, 0);
        if (n < 0 && errno == EAGAIN)
                return 0;
        u->n_answer += (size_t)MAX(n, 0);
        int r = cri_answer(u->answer, u->n_answer);
        if (r == -EAGAIN && n > 0)
                return 0;
        u->io = sd_event_source_disable_unref(u->io);
        if (r < 0)
                unanswered(u, r == -EBUSY ? r : -ECONNRESET);
        else if (r == 0)
                refused(u);
        else
                u->kind->serves(u);
        return 0;
}

void cri_ask(Unit *u) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int r = 0, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        u->asks = true;
        u->n_answer = 0;
        u->timer = sd_event_source_disable_unref(u->timer);
        strncpy(address.sun_path, socket_path(u), sizeof address.sun_path - 1);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
            send(fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0)
                r = -errno;
        THEN(r, sd_event_add_io(u->task->apply->event, &u->io, fd, EPOLLIN, on_answer, u));
        if (r >= 0)
                r = sd_event_source_set_io_fd_own(u->io, true);
        else if (fd >= 0)
                close(fd);
        if (r < 0)
                unanswered(u, r);
}
