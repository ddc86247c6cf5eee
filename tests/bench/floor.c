/* SPDX-License-Identifier: Apache-2.0
 * The least cost of such a program. It loads the libraries of nodestrap, makes the same requests of the
 * metadata service on one connection, and asks EC2 once through libcurl.
 * It decides nothing and writes nothing.
 *
 * usage: floor ADDRESS PORT [PATH...] [--ec2 URL]
 * PATH: "/latest/meta-data/mac", as the mock's log has them */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <expat.h>
#include <jansson.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>
#include <yaml.h>
#include <zlib.h>

static char answer[1 << 20];

static int fail(const char *what) {
        perror(what);
        return 1;
}

/* One symbol of each library, so that --as-needed keeps all of them. */
static int load_libraries(void) {
        static void *volatile symbols[7];
        symbols[0] = json_null;
        symbols[1] = yaml_parser_initialize;
        symbols[2] = XML_ParserCreate;
        symbols[3] = inflateInit2_;
        symbols[4] = sd_bus_new;
        symbols[5] = EVP_sha256;
        return symbols[0] && symbols[1] && symbols[2] && symbols[3] && symbols[4] && symbols[5] ? 0 : -1;
}

/* Reads one answer: the head, then as many bytes as it says. Returns the body. */
static const char *read_answer(int fd) {
        size_t size = 0, want = 0;
        for (;;) {
                ssize_t n = read(fd, answer + size, sizeof answer - size - 1);
                if (n <= 0)
                        return NULL;
                size += (size_t)n;
                answer[size] = 0;
                const char *body = strstr(answer, "\r\n\r\n"),
                           *length = strcasestr(answer, "content-length:");
                if (!body || !length)
                        continue;
                want = (size_t)(body + 4 - answer) + strtoul(length + strlen("content-length:"), NULL, 10);
                if (size >= want)
                        return body + 4;
        }
}

static const char *request(int fd, const char *head) {
        return write(fd, head, strlen(head)) == (ssize_t)strlen(head) ? read_answer(fd) : NULL;
}

static int ask_metadata(const char *address, int port, char **paths, int n) {
        static char head[4096], token[256];
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
            connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
                return fail("connect");
        const char *body = request(fd, "PUT /latest/api/token HTTP/1.1\r\nHost: imds\r\n"
                                       "X-aws-ec2-metadata-token-ttl-seconds: 300\r\n"
                                       "Content-Length: 0\r\n\r\n");
        if (!body)
                return fail("token");
        snprintf(token, sizeof token, "%s", body);
        for (int i = 0; i < n; i++) {
                snprintf(head, sizeof head,
                         "GET %s HTTP/1.1\r\nHost: imds\r\nX-aws-ec2-metadata-token: %s\r\n\r\n", paths[i],
                         token);
                if (!request(fd, head))
                        return fail(paths[i]);
        }
        close(fd);
        return 0;
}

static size_t drop(char *data, size_t size, size_t n, void *to) {
        (void)data, (void)to;
        return size * n;
}

/* The question does not matter, and an error is an answer too: the request is signed, sent and read. */
static int ask_ec2(const char *url) {
        void *library = dlopen("libcurl.so.4", RTLD_LAZY | RTLD_LOCAL);
        if (!library)
                return fail(dlerror());
        CURL *(*easy_init)(void) = (CURL *(*)(void))dlsym(library, "curl_easy_init");
        CURLcode (*setopt)(CURL *, CURLoption, ...) =
                (CURLcode (*)(CURL *, CURLoption, ...))dlsym(library, "curl_easy_setopt");
        CURLcode (*perform)(CURL *) = (CURLcode (*)(CURL *))dlsym(library, "curl_easy_perform");
        CURL *c = easy_init();
        (setopt)(c, CURLOPT_URL, url);
        (setopt)(c, CURLOPT_AWS_SIGV4, "aws:amz:us-west-2:ec2");
        (setopt)(c, CURLOPT_USERPWD, "AKIAEXAMPLE:example");
        (setopt)(c, CURLOPT_POSTFIELDS,
                 "Action=DescribeInstances&InstanceId.1=i-0f1e2d3c4b5a69788&Version=2016-11-15");
        (setopt)(c, CURLOPT_WRITEFUNCTION, drop);
        return (perform)(c) == CURLE_OK ? 0 : fail("ec2");
}

int main(int argc, char **argv) {
        const char *ec2 = NULL;
        if (argc >= 5 && strcmp(argv[argc - 2], "--ec2") == 0) {
                ec2 = argv[argc - 1];
                argc -= 2;
        }
        if (argc < 3 || load_libraries() < 0)
                return 2;
        int r = ask_metadata(argv[1], (int)strtol(argv[2], NULL, 10), argv + 3, argc - 3);
        return r == 0 && ec2 ? ask_ec2(ec2) : r;
}
