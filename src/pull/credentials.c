/* SPDX-License-Identifier: Apache-2.0
 * An image → its login, by the credential providers of kubelet
 * (https://kubernetes.io/docs/tasks/administer-cluster/kubelet-credential-provider/): the program reads a
 * CredentialProviderRequest from stdin and writes a CredentialProviderResponse. The rules for names are those
 * of kubelet (kubernetes/kubernetes: pkg/util/parsers, pkg/credentialprovider/keyring.go: URLsMatch()). */
#include "pull/pull.h"

#include "base/run.h"
#include "base/time.h"
#include "redact/scrub.h"

#include <errno.h>
#include <fnmatch.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONFIG_MAX    (1U << 20)
#define ANSWER_MAX    (1U << 20)
#define TEXT_LIMIT    600
#define LASTING_USEC  (600 * USEC_PER_SEC)
#define PROVIDER_USEC (60 * USEC_PER_SEC)       /* as kubelet has it */

char *told(const char *text, const Login *login) {
        _cleanup_(secrets_done) Secrets secrets = {};
        Text t = {};
        size_t size = 0;
        if (login->password)
                secrets_add(&secrets, login->password);
        _free_ char *clean = secrets_scrub(&secrets, text, strlen(text), &size);
        text_add_shown(&t, clean, size, TEXT_LIMIT, 0);
        return text_take(&t);
}

/* ---- names of images ---- */

char *image_repository(const char *image) {
        const char *slash = strrchr(image, '/') ?: image;
        size_t n = strcspn(image, "@"), tag = (size_t)(slash - image) + strcspn(slash, ":");
        _free_ char *name = xstrndup(image, MIN(n, tag));
        size_t first = strcspn(name, "/");
        _free_ char *host = xstrndup(name, first);
        if (name[first] && (strpbrk(host, ".:") || streq(host, "localhost")))
                return TAKE_PTR(name);
        return xasprintf("docker.io/%s%s", name[first] ? "" : "library/", name);
}

/* The end of a label of a host, which begins at s. */
static size_t label(const char *s) {
        return strcspn(s, ".:/");
}

bool image_matches(const char *pattern, const char *repository) {
        const char *p = pattern, *q = repository;
        p += startswith(p, "https://") ? strlen("https://") : 0;
        for (;; p++, q++) {
                _free_ char *glob = xstrndup(p, label(p)), *part = xstrndup(q, label(q));
                if (fnmatch(glob, part, 0) != 0)
                        return false;
                p += label(p);
                q += label(q);
                if (*p != '.' || *q != '.')
                        break;
        }
        size_t port = strcspn(p, "/"), other = strcspn(q, "/");
        return *p != '.' && *q != '.' && port == other && strncmp(p, q, port) == 0 &&
               startswith(q + other, p + port);
}

/* ---- the configuration ---- */

void providers_done(Providers *p) {
        json_decref(p->config);
        json_decref(p->answers);
        free(p->directory);
        *p = (Providers){};
}

static const json_t *providers_of(const json_t *config) {
        return json_object_get(config, "providers");
}

/* For all providers, before any threads. In an argument list others would see them. */
static void set_variables(const json_t *config) {
        const json_t *provider, *variable;
        size_t i, k;
        json_array_foreach(providers_of(config), i, provider) {
                json_array_foreach(json_object_get(provider, "env"), k, variable) {
                        const char *name = json_get_text(variable, "name");
                        if (*name && !strchr(name, '='))
                                setenv(name, json_get_text(variable, "value"), 1);
                }
        }
}

int providers_read(const Root *root, const char *path, const char *directory, Providers *ret,
                   char **ret_why) {
        _free_ char *text = NULL;
        int r = root_read(root, path, CONFIG_MAX, &text, NULL);
        if (r < 0) {
                *ret_why = xasprintf("%s cannot be read: %s", path, strerror(-r));
                return r;
        }
        _cleanup_(json_decrefp) json_t *config = json_loads(text, 0, NULL);
        if (!json_is_array(providers_of(config))) {
                *ret_why = xasprintf("%s is not a CredentialProviderConfig in JSON", path);
                return -EBADMSG;
        }
        set_variables(config);
        *ret = (Providers){ .config = TAKE_PTR(config), .answers = json_object(),
                            .directory = xstrdup(directory), .lock = PTHREAD_MUTEX_INITIALIZER };
        return 0;
}

/* ---- the provider ---- */

static json_t *answer_parse(const char *text, const char *version, char **ret_why) {
        json_t *answer = json_loads(text, 0, NULL);
        if (streq(json_get_text(answer, "kind"), "CredentialProviderResponse") &&
            streq(json_get_text(answer, "apiVersion"), version))
                return answer;
        json_decref(answer);
        *ret_why = xasprintf("its answer is not a CredentialProviderResponse in %s", version);
        return NULL;
}

static int login_of(const json_t *answer, const char *repository, Login *ret) {
        const char *pattern, *best = "";
        json_t *entry, *login = NULL;
        /* kubelet also prefers the last one by bytes, which is the most specific */
        json_object_foreach(json_object_get(answer, "auth"), pattern, entry) {
                if (!image_matches(pattern, repository) || strcmp(pattern, best) < 0)
                        continue;
                best = pattern;
                login = entry;
        }
        const char *username = json_get_text(login, "username"), *password = json_get_text(login, "password");
        if (!*username && !*password)
                return 0;
        *ret = (Login){ xstrdup(username), xstrdup(password) };
        return 1;
}

int login_parse(const char *text, const char *version, const char *repository, Login *ret, char **ret_why) {
        _cleanup_(json_decrefp) json_t *answer = answer_parse(text, version, ret_why);
        return answer ? login_of(answer, repository, ret) : -EBADMSG;
}

/* An open file with the text, at its start. */
static int file_of(const char *text) {
        _cleanup_(close_fd) int fd = memfd_create("request", MFD_CLOEXEC);
        size_t size = strlen(text);
        if (fd < 0 || write(fd, text, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
                return -errno;
        return TAKE_FD(fd);
}

/* NULL: *ret_why. */
static json_t *ask(const Providers *p, const json_t *provider, const char *repository, uint64_t deadline,
                   char **ret_why) {
        const char *name = json_get_text(provider, "name"), *version = json_get_text(provider, "apiVersion");
        json_t *request = json_pack("{ss ss ss}", "kind", "CredentialProviderRequest", "apiVersion", version,
                                    "image", repository);
        _free_ char *text = json_text(request, 0, false), *why = NULL;
        _cleanup_(child_result_done) ChildResult c = {};
        _cleanup_(close_fd) int fd = file_of(text);
        _strv_ char **argv = NULL;
        json_t *answer = NULL;
        const json_t *word;
        size_t i;
        json_decref(request);
        strv_push(&argv, xasprintf("%s/%s", p->directory, name));
        json_array_foreach(json_object_get(provider, "args"), i, word)
                strv_add(&argv, json_string_value(word) ?: "");
        int r = fd < 0 ? fd
                       : child_run_fed(argv, fd, MIN(deadline, now_usec() + PROVIDER_USEC), ANSWER_MAX, &c);
        if (r < 0)
                why = xstrdup(strerror(-r));
        else if (c.timed_out)
                why = xstrdup("it did not end in time");
        else if (c.status != 0) {
                _free_ char *said = told(c.errors, &(Login){});
                why = xasprintf("it exited with status %d%s%s", c.status, *said ? ": " : "", said);
        } else
                answer = answer_parse(c.output, version, &why);
        if (c.output)
                explicit_bzero(c.output, c.size);
        if (!answer)
                *ret_why = xasprintf("%s gave no credentials: %s", argv[0], why);
        return answer;
}

static bool is_responsible(const json_t *provider, const char *repository) {
        const json_t *pattern;
        size_t i;
        json_array_foreach(json_object_get(provider, "matchImages"), i, pattern)
                if (image_matches(json_string_value(pattern) ?: "", repository))
                        return true;
        return false;
}

/* Does the answer hold for the rest of the time that this program has? */
static bool is_lasting(const json_t *provider, const json_t *answer) {
        const char *own = json_get_text(answer, "cacheDuration");
        uint64_t usec = 0;
        return parse_timespan(*own ? own : json_get_text(provider, "defaultCacheDuration"), &usec) >= 0 &&
               usec >= LASTING_USEC;
}

/* "ecr-credential-provider 1.dkr.ecr.us-west-2.amazonaws.com"; without the registry for all of them. */
static char *answer_key(const json_t *provider, const char *repository, bool global) {
        return xasprintf("%s %.*s", json_get_text(provider, "name"),
                         global ? 0 : (int)strcspn(repository, "/"), repository);
}

/* A new reference. */
static json_t *answer_get(Providers *p, const json_t *provider, const char *repository, uint64_t deadline,
                          char **ret_why) {
        _free_ char *own = answer_key(provider, repository, false),
                    *all = answer_key(provider, repository, true);
        json_t *answer = json_object_get(p->answers, own) ?: json_object_get(p->answers, all);
        if (answer)
                return json_incref(answer);
        answer = ask(p, provider, repository, deadline, ret_why);
        const char *type = json_get_text(answer, "cacheKeyType");
        if (ONE_OF(type, "Registry", "Global") && is_lasting(provider, answer))
                json_object_set(p->answers, streq(type, "Global") ? all : own, answer);
        return answer;
}

int login_find(Providers *p, const char *image, uint64_t deadline, Login *ret, char **ret_why) {
        _free_ char *repository = image_repository(image);
        const json_t *provider;
        size_t i;
        int r = 0;
        json_array_foreach(providers_of(p->config), i, provider) {
                if (r > 0 || !is_responsible(provider, repository))
                        continue;
                free(TAKE_PTR(*ret_why));
                pthread_mutex_lock(&p->lock);
                json_t *answer = answer_get(p, provider, repository, deadline, ret_why);
                r = answer ? login_of(answer, repository, ret) : -EIO;
                json_decref(answer);
                pthread_mutex_unlock(&p->lock);
        }
        return r;
}

void logins_forget(Providers *p) {
        pthread_mutex_lock(&p->lock);
        json_object_clear(p->answers);
        pthread_mutex_unlock(&p->lock);
}
