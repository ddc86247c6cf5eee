/* SPDX-License-Identifier: Apache-2.0
 * An HTTP/1.1 request and its response (RFC 9112) over a kept socket, with a deadline. It spares the metadata
 * client the thirty libraries of libcurl. Literal addresses skip the resolver. */
#include "aws/internal.h"

#include "base/time.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static int take_header(HttpResponse *p, const char *name, const char *value) {
        uint64_t n = 0;
        if (strcasecmp(name, "connection") == 0)
                p->keep_alive = strcasecmp(value, "keep-alive") == 0 ||
                                (p->keep_alive && strcasecmp(value, "close") != 0);
        if (strcasecmp(name, "transfer-encoding") == 0) {
                p->chunked = true;
                return strcasecmp(value, "chunked") == 0 ? 0 : -EBADMSG;
        }
        if (strcasecmp(name, "content-length") != 0)
                return 0;
        if (parse_u64(value, &n) < 0 || (p->has_length && n != p->left))
                return -EBADMSG;
        p->has_length = true;
        p->left = n;
        return 0;
}

static int take_header_line(HttpResponse *p, char *line) {
        char *colon = strchr(line, ':');
        if (line[0] == ' ' || line[0] == '\t')
                return 0;               /* continues another header */
        if (!colon || colon == line)
                return -EBADMSG;
        *colon = 0;
        _free_ char *value = str_strip(colon + 1);
        return take_header(p, line, value);
}

static int take_status(HttpResponse *p, const char *line) {
        if (!startswith(line, "HTTP/1.") || strlen(line) < strlen("HTTP/1.1 200") || line[8] != ' ')
                return -EBADMSG;
        _free_ char *digits = xstrndup(line + 9, 3);
        uint64_t status = 0;
        if ((line[12] && line[12] != ' ') || parse_u64(digits, &status) < 0 || status < 100 || status > 599)
                return -EBADMSG;
        p->status = (unsigned)status;
        p->keep_alive = line[7] != '0';
        p->chunked = p->has_length = false;
        p->left = 0;
        p->state = HTTP_HEADER;
        return 0;
}

static int take_end_of_head(HttpResponse *p) {
        if (p->status < 200)
                p->state = HTTP_STATUS;         /* "100 Continue": the answer follows */
        else if (p->status == 204 || p->status == 304)
                p->state = HTTP_DONE;
        else if (p->chunked)
                p->state = HTTP_CHUNK_SIZE;
        else if (!p->has_length) {
                p->keep_alive = false;
                p->state = HTTP_UNTIL_CLOSE;
        } else if (p->left > HTTP_MAX_BODY)
                return -EFBIG;
        else
                p->state = p->left > 0 ? HTTP_BODY : HTTP_DONE;
        return 0;
}

static int take_chunk_size(HttpResponse *p, const char *line) {
        size_t digits = strspn(line, "0123456789abcdefABCDEF");
        const char *end = line + digits + strspn(line + digits, " \t");
        if (digits == 0 || (*end && *end != ';'))
                return -EBADMSG;
        if (digits > 15)
                return -EFBIG;
        p->left = strtoull(line, NULL, 16);
        if (p->left > HTTP_MAX_BODY)
                return -EFBIG;
        p->state = p->left > 0 ? HTTP_CHUNK : HTTP_TRAILER;
        return 0;
}

static int take_line(HttpResponse *p, char *line) {
        switch (p->state) {
        case HTTP_STATUS:
                return take_status(p, line);
        case HTTP_HEADER:
                return *line ? take_header_line(p, line) : take_end_of_head(p);
        case HTTP_CHUNK_SIZE:
                return take_chunk_size(p, line);
        case HTTP_CHUNK_END:
                p->state = HTTP_CHUNK_SIZE;
                return *line ? -EBADMSG : 0;
        default:                        /* HTTP_TRAILER */
                if (!*line)
                        p->state = HTTP_DONE;
                return 0;
        }
}

/* The number of used bytes, or a negative errno. */
static ssize_t feed_line(HttpResponse *p, const char *data, size_t size) {
        const char *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end - data) + 1 : size;
        p->head += n;
        if (p->head > HTTP_MAX_HEAD)
                return -EBADMSG;
        text_add_bytes(&p->line, data, end ? n - 1 : n);
        if (!end)
                return (ssize_t)n;
        if (strlen(p->line.data) != p->line.size)
                return -EBADMSG;
        if (p->line.size > 0 && p->line.data[p->line.size - 1] == '\r')
                p->line.data[--p->line.size] = 0;
        int r = take_line(p, p->line.data);
        p->line.size = 0;
        return r < 0 ? r : (ssize_t)n;
}

static ssize_t feed_body(HttpResponse *p, const char *data, size_t size) {
        size_t n = p->state == HTTP_UNTIL_CLOSE ? size : MIN(size, p->left);
        if (p->body.size + n > HTTP_MAX_BODY)
                return -EFBIG;
        text_add_bytes(&p->body, data, n);
        p->head = 0;
        if (p->state == HTTP_UNTIL_CLOSE)
                return (ssize_t)n;
        p->left -= n;
        if (p->left == 0)
                p->state = p->state == HTTP_BODY ? HTTP_DONE : HTTP_CHUNK_END;
        return (ssize_t)n;
}

int http_feed(HttpResponse *p, const char *data, size_t size) {
        while (size > 0) {
                bool in_body =
                        p->state == HTTP_BODY || p->state == HTTP_CHUNK || p->state == HTTP_UNTIL_CLOSE;
                ssize_t n = p->state == HTTP_DONE ? -EBADMSG
                            : in_body             ? feed_body(p, data, size)
                                                  : feed_line(p, data, size);
                if (n < 0)
                        return (int)n;
                data += n;
                size -= (size_t)n;
        }
        return p->state == HTTP_DONE;
}

int http_feed_end(HttpResponse *p) {
        if (p->state == HTTP_UNTIL_CLOSE)
                p->state = HTTP_DONE;
        return p->state == HTTP_DONE ? 1 : -ECONNRESET;
}

void http_response_done(HttpResponse *p) {
        text_done(&p->line);
        text_done(&p->body);
        *p = (HttpResponse){};
}

static int wait_for(int fd, short events, uint64_t deadline) {
        for (;;) {
                struct pollfd p = { .fd = fd, .events = events };
                uint64_t now = now_usec();
                int r = now >= deadline ? 0 : poll(&p, 1, (int)((deadline - now + 999) / 1000));
                if (r > 0)
                        return 0;
                if (r == 0)
                        return -ETIMEDOUT;
                if (errno != EINTR || stop_signal())
                        return -errno;
        }
}

static int connect_to(const struct addrinfo *a, uint64_t deadline) {
        int e = 0, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        int r = connect(fd, a->ai_addr, a->ai_addrlen) < 0 ? -errno : 0;
        if (r == -EINPROGRESS)
                r = wait_for(fd, POLLOUT, deadline);
        if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &(socklen_t){ sizeof e }) == 0)
                r = -e;
        if (r < 0)
                close(fd);
        return r < 0 ? r : fd;
}

static int open_connection(const Url *url, uint64_t deadline) {
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV },
                        *list = NULL;
        int r = getaddrinfo(url->host, url->port, &hints, &list);
        if (r == EAI_NONAME) {
                hints.ai_flags = AI_NUMERICSERV;
                r = getaddrinfo(url->host, url->port, &hints, &list);
        }
        if (r != 0)
                return -EADDRNOTAVAIL;
        int fd = -EADDRNOTAVAIL;
        for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
                fd = connect_to(a, deadline);
        freeaddrinfo(list);
        return fd;
}

static int send_request(int fd, const Text *request, uint64_t deadline) {
        for (size_t done = 0; done < request->size;) {
                ssize_t n = send(fd, request->data + done, request->size - done, MSG_NOSIGNAL);
                if (n >= 0)
                        done += (size_t)n;
                else if (errno == EAGAIN) {
                        int r = wait_for(fd, POLLOUT, deadline);
                        if (r < 0)
                                return r;
                } else if (errno != EINTR)
                        return -errno;
        }
        return 0;
}

static int receive_response(int fd, uint64_t deadline, HttpResponse *p) {
        char buffer[16384];
        for (int r = 0;;) {
                ssize_t n = recv(fd, buffer, sizeof buffer, 0);
                if (n == 0)
                        return http_feed_end(p);
                if (n > 0)
                        r = http_feed(p, buffer, (size_t)n);
                else if (errno == EAGAIN)
                        r = wait_for(fd, POLLIN, deadline);
                else if (errno != EINTR)
                        r = -errno;
                if (r != 0)
                        return r;
                if (now_usec() >= deadline)
                        return -ETIMEDOUT;      /* also for a slow trickle */
        }
}

static int exchange_once(const Url *url, int *fd, const Text *request, uint64_t deadline, HttpResponse *p) {
        int r = 0;
        if (*fd < 0) {
                *fd = open_connection(url, deadline);
                r = MIN(*fd, 0);
        }
        THEN(r, send_request(*fd, request, deadline));
        THEN(r, receive_response(*fd, deadline, p));
        if (r < 0 || !p->keep_alive)
                close_fd(fd);
        return MIN(r, 0);
}

int http_exchange(const Url *url, int *fd, const Text *request, uint64_t deadline, HttpResponse *ret) {
        HttpResponse p = {};
        /* Input on a kept connection before a request is its end or a stray answer. */
        if (*fd >= 0 && poll(&(struct pollfd){ .fd = *fd, .events = POLLIN | POLLRDHUP }, 1, 0) != 0)
                close_fd(fd);
        bool reused = *fd >= 0;
        int r = exchange_once(url, fd, request, deadline, &p);
        /* A peer may close an idle connection just as we use it: send again on a new one. */
        if (reused && (r == -EPIPE || r == -ECONNRESET) && p.head == 0 && p.state == HTTP_STATUS) {
                http_response_done(&p);
                r = exchange_once(url, fd, request, deadline, &p);
        }
        if (r < 0) {
                http_response_done(&p);
                return r;
        }
        *ret = p;
        return 0;
}

static int split_authority(const char *authority, const char *default_port, char **ret_host,
                           char **ret_port) {
        bool literal = *authority == '[';       /* IPv6 */
        const char *host = authority + literal, *end = host + strcspn(host, literal ? "]" : ":");
        if (literal && !*end)
                return -EINVAL;
        const char *port = end + literal;
        uint64_t number = 80;
        if (end == host || (*port && (*port != ':' || parse_u64(port + 1, &number) < 0)) || number < 1 ||
            number > 65535)
                return -EINVAL;
        *ret_host = xstrndup(host, (size_t)(end - host));
        *ret_port = xstrdup(*port ? port + 1 : default_port);
        return 0;
}

int url_parse(const char *text, Url *ret) {
        bool https = startswith(text, "https://");
        const char *start = startswith(text, "http://") ? text + strlen("http://")
                            : https                     ? text + strlen("https://")
                                                        : text;
        size_t length = strcspn(start, "/");
        Url u = { .https = https };

        if (!credentials_text_is_valid(text) || strpbrk(text, "@?#\"<>\\"))
                return -EINVAL;
        _free_ char *authority = xstrndup(start, length);
        int r = split_authority(authority, https ? "443" : "80", &u.host, &u.port);
        if (r < 0)
                return r;
        u.authority = TAKE_PTR(authority);
        u.path = xstrdup(start + length);
        for (size_t n = strlen(u.path); n > 0 && u.path[n - 1] == '/'; n--)
                u.path[n - 1] = 0;
        *ret = u;
        return 0;
}

void url_done(Url *u) {
        FREE_ALL(u->authority, u->host, u->port, u->path);
        *u = (Url){};
}
