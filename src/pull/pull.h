/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* nodestrap-pre-pull: the image service of CRI, and the credentials that kubelet would use for an image. */
#include "base/curl.h"
#include "base/json.h"
#include "base/root.h"
#include "base/str.h"
#include "base/time.h"

#include <pthread.h>

/* ---- the pace ---- (tests/include/fleet.h has a fleet that keeps it) */

#define PULL_THREADS     3
#define PULL_USEC        (600 * USEC_PER_SEC)
#define PULL_JITTER_USEC (5 * USEC_PER_SEC)
#define PULL_TRIES       10                     /* credentials of a new role may come late */
#define PULL_PAUSE_USEC  USEC_PER_SEC
#define PULL_PAUSE_MAX   (30 * USEC_PER_SEC)
#define PULL_LAST_USEC   (30 * USEC_PER_SEC)    /* for the last try */

/* The pause after try n (from 0); false: it was the last one. busy: the registry has too many requests,
 * because a large fleet boots. Then the next try comes at a random moment in the time left, so that kubelet
 * gets the images of the first pods meanwhile. */
static inline bool pull_pause(unsigned n, bool busy, uint64_t left_usec, uint64_t *ret) {
        if (busy) {
                uint64_t span = left_usec - MIN(left_usec, PULL_LAST_USEC);
                *ret = backoff_usec(0, span, span);
                return span > 0;
        }
        *ret = backoff_usec(n, PULL_PAUSE_USEC, PULL_PAUSE_MAX);
        return n + 1 < PULL_TRIES && *ret < left_usec;
}

/* ---- messages of CRI ---- */

/* Of a registry. It is secret. */
typedef struct Login { char *username, *password; } Login;
void login_done(Login *l);

/* A frame of gRPC with ImageStatusRequest, or with PullImageRequest; login may be NULL. */
_nonnull_ void cri_ask_status(Text *to, const char *image);
_nonnull(1, 2) void cri_ask_pull(Text *to, const char *image, const Login *login);

/* status: of gRPC, -1: none came. message: without escapes; or NULL. */
typedef struct CriReply { Text body; int status; char *message; } CriReply;
_nonnull_ void cri_reply_done(CriReply *r);
/* A line of the headers or trailers, with or without its end. */
_nonnull_ void cri_take_header(CriReply *r, const char *line, size_t size);
/* ImageStatusResponse in a frame: 1: the image is there, *ret_bytes; 0: it is not; -EBADMSG. */
_must_check_ _nonnull_ int cri_image_status(const void *frame, size_t size, uint64_t *ret_bytes);

/* ---- the transport ---- */

/* One for each thread. */
typedef struct Channel { const Curl *curl; CURL *easy; const char *socket; } Channel;
/* -ENOTSUP: this libcurl has no HTTP/2. */
_must_check_ _nonnull_ int channel_open(const Curl *curl, const char *socket, Channel *ret);
_nonnull_ void channel_close(Channel *c);
/* Sends a frame to a method of ImageService. 0: *ret has the answer; < 0: *ret_why, for the caller to free.
 * -EINTR: a signal asks to stop. */
_must_check_ _nonnull_ int cri_call(Channel *c, const char *method, const Text *frame, uint64_t deadline,
                                    CriReply *ret, char **ret_why);

/* ---- credentials ---- */

/* A readable copy of a foreign text: on one line, without secrets. */
_malloc_ _nonnull_ char *told(const char *text, const Login *login);

/* config: a CredentialProviderConfig. directory: of its programs. answers: those that also hold for other
 * images, by provider and registry. */
typedef struct Providers {
        json_t *config, *answers;
        char *directory;
        pthread_mutex_t lock;           /* of answers; one program at a time */
} Providers;
/* Sets the variables in it for all programs. -ENOENT: none is configured; else *ret_why. */
_must_check_ _nonnull_ int providers_read(const Root *root, const char *path, const char *directory,
                                          Providers *ret, char **ret_why);
void providers_done(Providers *p);
/* "nginx@sha256:…" → "docker.io/library/nginx" */
_malloc_ _nonnull_ char *image_repository(const char *image);
/* Does "*.dkr.ecr.*.amazonaws.com/team" match this repository? */
_must_check_ _nonnull_ bool image_matches(const char *pattern, const char *repository);
/* The login in a CredentialProviderResponse. 1: *ret; 0: it has none for this repository; < 0: *ret_why. */
_must_check_ _nonnull_ int login_parse(const char *answer, const char *version, const char *repository,
                                       Login *ret, char **ret_why);
/* Asks the provider for this image. 1: *ret; 0: no provider matches, or no login; < 0: *ret_why. */
_must_check_ _nonnull_ int login_find(Providers *p, const char *image, uint64_t deadline, Login *ret,
                                      char **ret_why);
/* A registry has refused a login: ask again. */
_nonnull_ void logins_forget(Providers *p);
