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
        free(p->directory);
        *p = (Providers){};
}

static const json_t *providers_of(const json_t *config) {
        return json_object_get(config, "providers");
}

/* For all of them, before there are threads. In an argument list others would see them. */
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
        *ret = (Providers){ .config = TAKE_PTR(config), .directory = xstrdup(directory) };
        return 0;
}

/* ---- the provider ---- */

int login_parse(const char *answer, const char *version, const char *repository, Login *ret,
                char **ret_why) {
        _cleanup_(json_decrefp) json_t *response = json_loads(answer, 0, NULL);
        const char *pattern, *best = "";
        json_t *entry, *login = NULL;
        if (!streq(json_get_text(response, "kind"), "CredentialProviderResponse") ||
            !streq(json_get_text(response, "apiVersion"), version)) {
                *ret_why = xasprintf("its answer is not a CredentialProviderResponse of %s", version);
                return -EBADMSG;
        }
        /* kubelet also prefers the last one by bytes, which is the most special one */
        json_object_foreach(json_object_get(response, "auth"), pattern, entry) {
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

/* An open file with the text, at its begin. */
static int file_of(const char *text) {
        _cleanup_(close_fd) int fd = memfd_create("request", MFD_CLOEXEC);
        size_t size = strlen(text);
        if (fd < 0 || write(fd, text, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
                return -errno;
        return TAKE_FD(fd);
}

static int ask(const Providers *p, const json_t *provider, const char *repository, uint64_t deadline,
               Login *ret, char **ret_why) {
        const char *name = json_get_text(provider, "name"), *version = json_get_text(provider, "apiVersion");
        json_t *request = json_pack("{ss ss ss}", "kind", "CredentialProviderRequest", "apiVersion", version,
                                    "image", repository);
        _free_ char *text = json_text(request, 0, false), *why = NULL;
        _cleanup_(child_result_done) ChildResult c = {};
        _cleanup_(close_fd) int fd = file_of(text);
        _strv_ char **argv = NULL;
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
        else if (c.timed_out) {
                r = -ETIMEDOUT;
                why = xstrdup("it does not end");
        } else if (c.status != 0) {
                _free_ char *said = told(c.errors, &(Login){});
                r = -EIO;
                why = xasprintf("it ended with status %d%s%s", c.status, *said ? ": " : "", said);
        } else
                r = login_parse(c.output, version, repository, ret, &why);
        if (c.output)
                explicit_bzero(c.output, c.size);
        if (r < 0)
                *ret_why = xasprintf("%s gave no credentials: %s", argv[0], why);
        return r;
}

static bool is_responsible(const json_t *provider, const char *repository) {
        const json_t *pattern;
        size_t i;
        json_array_foreach(json_object_get(provider, "matchImages"), i, pattern)
                if (image_matches(json_string_value(pattern) ?: "", repository))
                        return true;
        return false;
}

int login_find(const Providers *p, const char *image, uint64_t deadline, Login *ret, char **ret_why) {
        _free_ char *repository = image_repository(image);
        const json_t *provider;
        size_t i;
        int r = 0;
        json_array_foreach(providers_of(p->config), i, provider) {
                if (r > 0 || !is_responsible(provider, repository))
                        continue;
                free(TAKE_PTR(*ret_why));
                r = ask(p, provider, repository, deadline, ret, ret_why);
        }
        return r;
}
