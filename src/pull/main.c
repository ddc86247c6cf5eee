/* SPDX-License-Identifier: Apache-2.0
 * nodestrap-pre-pull [CONFIG [RESULT]]: has containerd pull the images of spec.containerd.prePull beside the
 * start of kubelet, by the call that kubelet itself would make. It never fails: what it cannot pull is a
 * warning, and kubelet pulls that for the first pod that needs it. units/nodestrap-pre-pull.service runs it.
 *
 * A thread waits for each of a few pulls. kubelet pulls beside them; containerd fetches no layer twice. */
#include "pull/pull.h"

#include "base/log.h"
#include "base/paths.h"
#include "base/time.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define CONFIG_MAX  (1U << 20)
#define STATUS_USEC (30 * USEC_PER_SEC)
#define RESULT_MODE 0640        /* as REPORT_MODE: it quotes containerd */
/* of gRPC (grpc/grpc:doc/statuscodes.md) */
enum { OK = 0, INVALID_ARGUMENT = 3, NOT_FOUND = 5, UNIMPLEMENTED = 12 };

typedef struct Image {
        const char *name, *state;       /* waiting, pulling, present, pulled, failed */
        uint64_t bytes, begin_usec, end_usec;
        char *text;                     /* of a failure */
} Image;

typedef struct Puller {
        Root *root;
        const char *result;             /* its path */
        json_t *config;
        Curl curl;
        Providers providers;
        Image *images;
        size_t n;
        atomic_size_t next;             /* of images */
        uint64_t begin_usec, end_usec;  /* end_usec: 0 while it runs */
        uint64_t deadline;
        pthread_mutex_t lock;           /* of images and the file */
        Channel channels[PULL_THREADS];
        char *no_providers;             /* why; or NULL */
} Puller;

typedef struct Hand { Puller *p; Channel *channel; } Hand;      /* of a thread */

/* nodestrap-codes(7) has the codes. */
_printf_(2, 3) static void pull_warn(const char *code, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        log_warning("%s: %s", code, text);
}

/* ---- the result ---- */

static bool is_here(const Image *i) {
        return ONE_OF(i->state, "present", "pulled");
}

/* "3 of 4 pulled, 10.2 GB, 35 s", and a line for each failure. */
static char *result_text(const Puller *p) {
        uint64_t bytes = 0;
        size_t here = 0;
        Text t = {};
        for (const Image *i = p->images; i < p->images + p->n; i++) {
                here += is_here(i);
                bytes += i->bytes;
        }
        _free_ char *took = p->end_usec > 0 ? usec_text((int64_t)(p->end_usec - p->begin_usec))
                                            : xstrdup("not finished yet");
        text_add(&t, "%zu of %zu pulled, %.3g %s, %s", here, p->n,
                 (double)bytes / (bytes < 1000000000 ? 1e6 : 1e9), bytes < 1000000000 ? "MB" : "GB", took);
        for (const Image *i = p->images; i < p->images + p->n; i++)
                if (streq(i->state, "failed"))
                        text_add(&t, "\n  %s: %s", i->name, i->text);
        return text_take(&t);
}

static void result_write(const Puller *p) {
        _free_ char *said = result_text(p);
        json_t *images = json_array(),
               *all = json_pack("{so sI sI ss}", "images", images, "beginUsec", (json_int_t)p->begin_usec,
                                "endUsec", (json_int_t)p->end_usec, "text", said);
        for (const Image *i = p->images; i < p->images + p->n; i++)
                json_array_append_new(images, json_pack("{ss ss sI sI sI ss*}", "image", i->name, "state",
                                                        i->state, "bytes", (json_int_t)i->bytes, "beginUsec",
                                                        (json_int_t)i->begin_usec, "endUsec",
                                                        (json_int_t)i->end_usec, "text", i->text));
        _free_ char *text = json_text(all, 2, false);
        json_decref(all);
        int r = root_replace_volatile(p->root, p->result, text, strlen(text), RESULT_MODE);
        if (r < 0)
                pull_warn("no-pre-pull", "%s cannot be written: %s", p->result, strerror(-r));
}

/* text is taken. */
static void image_set(Puller *p, Image *i, const char *state, uint64_t bytes, char *text) {
        pthread_mutex_lock(&p->lock);
        uint64_t now = now_usec();
        if (streq(state, "pulling"))
                i->begin_usec = now;
        else
                i->end_usec = now;
        i->state = state;
        i->bytes = bytes;
        RENEW(i->text, text);
        result_write(p);
        pthread_mutex_unlock(&p->lock);
        if (streq(state, "failed"))
                pull_warn("image-not-pulled", "%s: %s; kubelet pulls it for the first pod that needs it",
                          i->name, i->text);
        else if (is_here(i)) {
                _free_ char *took = usec_text((int64_t)(i->end_usec - i->begin_usec));
                log_info("image %s is %s: %.1f MB, %s", i->name,
                         streq(state, "present") ? "there already" : "pulled", (double)i->bytes / 1e6, took);
        }
}

/* ---- one image ---- */

/* Will the same call have the same answer? */
static bool is_final(const CriReply *r) {
        const char *text = r->message ?: "";
        return r->status == INVALID_ARGUMENT || r->status == NOT_FOUND || r->status == UNIMPLEMENTED ||
               strstr(text, "no space left on device") || strstr(text, "invalid reference format");
}

/* Does the registry, or ECR as the provider quotes it, get too many requests? */
static bool is_busy(const char *why) {
        return why && (strstr(why, "429 Too Many Requests") || strstr(why, "ThrottlingException"));
}

/* 0: *ret is the answer; < 0: *ret_why. -EREMOTEIO: a permanent refusal. */
static int call(const Hand *h, const char *method, const Text *frame, uint64_t deadline, CriReply *ret,
                char **ret_why) {
        _cleanup_(cri_reply_done) CriReply reply = {};
        int r = cri_call(h->channel, method, frame, deadline, &reply, ret_why);
        if (r < 0)
                return r;
        if (reply.status != OK) {
                *ret_why = reply.message && *reply.message
                                   ? xstrdup(reply.message)
                                   : xasprintf("containerd returned gRPC status %d", reply.status);
                return is_final(&reply) ? -EREMOTEIO : -EAGAIN;
        }
        *ret = reply;
        reply = (CriReply){};
        return 0;
}

/* 1: it is there; 0: it is not. */
static int look(const Hand *h, const Image *i, uint64_t *ret_bytes, char **ret_why) {
        _cleanup_(cri_reply_done) CriReply reply = {};
        _cleanup_(text_done) Text frame = {};
        cri_ask_status(&frame, i->name);
        int r = call(h, "ImageStatus", &frame, MIN(h->p->deadline, now_usec() + STATUS_USEC), &reply,
                     ret_why);
        if (r < 0)
                return r;
        r = cri_image_status(reply.body.data ?: "", reply.body.size, ret_bytes);
        if (r < 0)
                *ret_why = xstrdup("the answer about the image is malformed");
        return r;
}

/* A provider that fails does not end it: the image may need no login, and kubelet tries it too. -EBUSY: too
 * many requests; the login is good, and asking for another adds a request. */
static int pull(const Hand *h, const Image *i, char **ret_why) {
        Puller *p = h->p;
        _cleanup_(cri_reply_done) CriReply reply = {};
        _cleanup_(login_done) Login login = {};
        _free_ char *none = xstrdup_or_null(p->no_providers), *why = NULL;
        Text frame = {};
        int k = p->providers.config ? login_find(&p->providers, i->name, p->deadline, &login, &none) : 0;
        cri_ask_pull(&frame, i->name, k > 0 ? &login : NULL);
        int r = call(h, "PullImage", &frame, p->deadline, &reply, &why);
        explicit_bzero(frame.data, frame.size);
        text_done(&frame);
        if (r >= 0)
                return 0;
        if (is_busy(why) || (k < 0 && is_busy(none)))
                r = -EBUSY;
        else if (k > 0)
                logins_forget(&p->providers);
        _free_ char *refusal = told(why, &login);
        *ret_why = none ? xasprintf("%s (%s)", refusal, none) : xstrdup(refusal);
        /* without its credentials, a registry may say that an image does not exist */
        return r == -EREMOTEIO && k < 0 ? -EAGAIN : r;
}

static void image_work(const Hand *h, Image *i) {
        Puller *p = h->p;
        _free_ char *why = NULL;
        uint64_t bytes = 0;
        image_set(p, i, "pulling", 0, NULL);
        if (usec_left(p->deadline) == 0)
                return image_set(p, i, "failed", 0, xstrdup("no time was left after the earlier images"));
        for (unsigned n = 0;; n++) {
                free(TAKE_PTR(why));
                int r = look(h, i, &bytes, &why);
                if (r > 0)
                        return image_set(p, i, n > 0 ? "pulled" : "present", bytes, NULL);
                if (r == 0)
                        r = pull(h, i, &why);
                if (r >= 0) {
                        _free_ char *ignored = NULL;
                        (void)!look(h, i, &bytes, &ignored);
                        return image_set(p, i, "pulled", bytes, NULL);
                }
                uint64_t pause = 0;
                if (r == -EREMOTEIO || r == -EINTR ||
                    !pull_pause(n, r == -EBUSY, usec_left(p->deadline), &pause))
                        return image_set(p, i, "failed", 0, TAKE_PTR(why));
                sleep_usec(pause);
        }
}

static void *thread(void *argument) {
        const Hand *h = argument;
        for (size_t i = 0; (i = atomic_fetch_add(&h->p->next, 1)) < h->p->n;)
                image_work(h, &h->p->images[i]);
        return NULL;
}

/* ---- all of them ---- */

static int config_read(Puller *p, const char *path) {
        _free_ char *text = NULL;
        int r = root_read(p->root, path, CONFIG_MAX, &text, NULL);
        if (r < 0) {
                pull_warn("no-pre-pull", "%s cannot be read: %s; run nodestrap init again", path,
                          strerror(-r));
                return r;
        }
        p->config = json_loads(text, 0, NULL);
        const json_t *images = json_object_get(p->config, "images"), *image;
        size_t i;
        if (!json_is_array(images)) {
                pull_warn("no-pre-pull", "%s is damaged; run nodestrap init again", path);
                return -EBADMSG;
        }
        p->images = xcalloc(json_array_size(images) + 1, sizeof(Image));
        json_array_foreach(images, i, image)
                p->images[p->n++] = (Image){ .name = json_string_value(image) ?: "", .state = "waiting" };
        return 0;
}

/* Tests have other numbers. */
static uint64_t config_usec(const Puller *p, const char *key, uint64_t otherwise) {
        const json_t *value = json_object_get(p->config, key);
        double seconds = value ? json_number_value(value) : (double)otherwise / USEC_PER_SEC;
        return (uint64_t)(MAX(MIN(seconds, 86400.0), 0.0) * (double)USEC_PER_SEC);
}

/* Before the threads: it changes the environment, and the first handle starts libcurl. */
static int prepare(Puller *p) {
        const char *provider = json_get_text(p->config, "provider"),
                   *socket = json_get_text(p->config, "socket");
        size_t n = (size_t)(path_last(provider) - provider);
        _free_ char *why = NULL, *directory = xstrndup(provider, n > 1 ? n - 1 : 0);
        const char *given = json_get_text(p->config, "providerConfig");
        if (*provider && providers_read(p->root, *given ? given : PROVIDER_CONFIG, directory, &p->providers,
                                        &p->no_providers) < 0)
                pull_warn("no-pull-credentials", "%s; images that need a login are not pulled",
                          p->no_providers);
        int r = curl_load(&p->curl, &why);
        for (size_t i = 0; r >= 0 && i < PULL_THREADS; i++)
                r = channel_open(&p->curl, socket, &p->channels[i]);
        if (r == -ENOTSUP)
                pull_warn("no-pre-pull", "libcurl.so.4 has no HTTP/2, which nodestrap needs to call "
                          "containerd; install " CURL_PACKAGE);
        else if (r < 0)
                pull_warn("no-pre-pull", "libcurl.so.4 cannot be initialised: %s", why ?: "no memory");
        return r;
}

static void all_pull(Puller *p) {
        pthread_t threads[PULL_THREADS];
        Hand hands[PULL_THREADS];
        size_t n = 0;
        for (; n < MIN((size_t)PULL_THREADS, p->n); n++) {
                hands[n] = (Hand){ p, &p->channels[n] };
                if (pthread_create(&threads[n], NULL, thread, &hands[n]) != 0)
                        break;
        }
        if (n == 0 && p->n > 0)
                thread(&(Hand){ p, &p->channels[0] });
        for (size_t i = 0; i < n; i++)
                pthread_join(threads[i], NULL);
}

static void puller_done(Puller *p) {
        for (size_t i = 0; i < PULL_THREADS; i++)
                if (p->channels[i].easy)
                        channel_close(&p->channels[i]);
        for (size_t i = 0; i < p->n; i++)
                free(p->images[i].text);
        providers_done(&p->providers);
        json_decref(p->config);
        FREE_ALL(p->images, p->no_providers);
        root_free(p->root);
}

int main(int argc, char **argv) {
        _cleanup_(puller_done) Puller p = {
                .result = argc > 2 ? argv[2] : PRE_PULL_RESULT,
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .begin_usec = now_usec(),
        };
        stop_catch();
        if (root_new("/", &p.root) < 0 || config_read(&p, argc > 1 ? argv[1] : PRE_PULL_CONFIG) < 0)
                return 0;
        p.deadline = p.begin_usec + config_usec(&p, "seconds", PULL_USEC);
        result_write(&p);
        if (prepare(&p) >= 0) {
                /* random, so that the nodes of a fleet do not ask registries at the same moment */
                uint64_t most = config_usec(&p, "jitterSeconds", PULL_JITTER_USEC);
                sleep_usec(backoff_usec(0, most, most));
                all_pull(&p);
        }
        p.end_usec = now_usec();
        result_write(&p);
        _free_ char *said = result_text(&p);
        log_info("images: %.*s", (int)strcspn(said, "\n"), said);
        return 0;
}
