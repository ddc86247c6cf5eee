/* SPDX-License-Identifier: Apache-2.0
 * Source URIs → the bytes behind them, undecoded: imds://user-data, file://PATH for a file, or for a
 * directory, whose *.yaml, *.yml and *.json are taken in the order of their names, as drop-ins are. A URI is
 * read as Go's net/url reads it for nodeadm (internal/configprovider/factory.go): the scheme in any case, the
 * path with its escapes, without a query or a fragment. */
#include "source/source.h"

#include "base/guard.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Before unpacking: base64 adds a third to what may be 1 MiB, and a message has other parts beside ours. */
#define SOURCE_MAX_BYTES (4u << 20)

/* What stands behind a scheme and its colon; NULL where the URI has another one. */
static const char *after_scheme(const char *uri, const char *scheme) {
        size_t n = strlen(scheme);
        return strncasecmp(uri, scheme, n) == 0 && uri[n] == ':' ? uri + n + 1 : NULL;
}

bool source_is_imds(const char *uri) {
        return after_scheme(uri, "imds");
}

/* file://a/b%20c?x#y → "a/b c"; NULL where it is no file or has no path. What looks like an escape and is
 * none stays. */
char *source_file_path(const char *uri) {
        const char *rest = after_scheme(uri, "file");
        if (!rest || rest[0] != '/')
                return NULL;
        rest += startswith(rest, "//") ? 2 : 0;
        char *path = xstrndup(rest, strcspn(rest, "?#")), *out = path;
        for (const char *p = path; *p; p++) {
                int high = *p == '%' ? hex_digit(p[1]) : -1, low = high >= 0 ? hex_digit(p[2]) : -1;
                *out++ = low >= 0 && (high | low) > 0 ? (char)(high << 4 | low) : *p;
                p += low >= 0 && (high | low) > 0 ? 2 : 0;
        }
        *out = 0;
        if (*path)
                return path;
        free(path);
        return NULL;
}

/* Messages name a source long after the list of URIs was walked; names made here are kept as long as the
 * program runs. */
static const char *keep_name(const char *name) {
        static struct Name { struct Name *next; char text[]; } *kept;
        size_t size = strlen(name) + 1;
        struct Name *k = xcalloc(1, sizeof *k + size);
        memcpy(k->text, name, size);
        k->next = kept;
        kept = k;
        return k->text;
}

static int read_user_data(Imds *imds, Blobs *ret, Diag *diag) {
        char *data = NULL;
        size_t size = 0;
        int r = imds_get(imds, "user-data", &data, &size, diag);
        /* -ENOENT: the instance was launched without user data, which is as good as empty */
        if (r < 0 && r != -ENOENT)
                return r;
        data = data ?: xstrdup("");
        blobs_add(ret, (Position){ .source = "user-data", .line = 1 }, data, size);
        return 0;
}

/* name is what the user typed and messages say, path is where that is below the root. */
static int read_file(const Root *root, const char *path, const char *name, bool guard, Blobs *ret,
                     Diag *diag) {
        /* looked at first: what is safe from others then stays it */
        _cleanup_(freep) char *why = NULL;
        bool guarded = guard && path_is_guarded(root, path, &why) > 0;
        char *data = NULL;
        size_t size = 0;
        int r = root_read(root, path, SOURCE_MAX_BYTES, &data, &size);
        if (r == -EFBIG)
                return diag_error_at(diag, r, CAUSE_LIMIT, &(Position){ .source = name }, NULL,
                                     "the file is past the limit of %u MiB for a configuration source",
                                     SOURCE_MAX_BYTES >> 20);
        if (r < 0)
                return diag_error_at(diag, r, CAUSE_SOURCE, &(Position){ .source = name }, NULL,
                                     "cannot be read as a configuration source: %s", strerror(-r));
        blobs_add(ret, (Position){ .source = keep_name(name), .line = 1 }, data, size);
        ret->items[ret->n - 1].guarded = guarded;
        return 0;
}

static bool is_drop_in(const Root *root, const char *path, const char *name) {
        _cleanup_(freep) char *lower = str_lower(name);
        _cleanup_(strv_freep) char **names = NULL;
        return (endswith(lower, ".yaml") || endswith(lower, ".yml") || endswith(lower, ".json")) &&
               root_list(root, path, &names) < 0;       /* a directory of such a name is none */
}

static int read_directory(const Root *root, const char *path, const char *name, bool guard, Blobs *ret,
                          Diag *diag) {
        _cleanup_(strv_freep) char **names = NULL;
        int r = root_list(root, path, &names);
        if (r < 0)
                return diag_error_at(diag, r, CAUSE_SOURCE, &(Position){ .source = name }, NULL,
                                     "cannot be listed as a configuration source: %s", strerror(-r));
        for (char **entry = names; entry && *entry; entry++) {
                const char *slash = endswith(name, "/") ? "" : "/";
                _cleanup_(freep) char *file = xasprintf("%s/%s", path, *entry),
                                      *shown = xasprintf("%s%s%s", name, slash, *entry);
                if (!is_drop_in(root, file, *entry))
                        continue;
                r = read_file(root, file, shown, guard, ret, diag);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_path(const Root *root, const char *path, bool guard, Blobs *ret, Diag *diag) {
        _cleanup_(freep) char *absolute = root_absolute(root, path);
        struct stat st = {};
        int fd = absolute ? root_open(root, absolute, O_PATH) : -ENOENT, r = fd;
        if (fd >= 0) {
                r = fstat(fd, &st) < 0 ? -errno : 0;
                close(fd);
        }
        if (!absolute || r < 0)
                return diag_error_at(diag, r, CAUSE_SOURCE, &(Position){ .source = path }, NULL,
                                     "cannot be opened as a configuration source%s%s: %s",
                                     root_is_host(root) ? "" : " below ",
                                     root_is_host(root) ? "" : root_path(root), strerror(-r));
        return S_ISDIR(st.st_mode) ? read_directory(root, absolute, path, guard, ret, diag)
                                   : read_file(root, absolute, path, guard, ret, diag);
}

static int read_uri(const Root *root, const char *uri, Imds *imds, bool guard, Blobs *ret, Diag *diag) {
        _cleanup_(freep) char *path = source_file_path(uri);
        if (source_is_imds(uri))
                return imds ? read_user_data(imds, ret, diag)
                            : diag_error(diag, -ENOTCONN, CAUSE_SOURCE,
                                         "%s: the metadata service is not asked in this mode", uri);
        if (path)
                return read_path(root, keep_name(path), guard, ret, diag);
        bool bare = !strchr(uri, ':') && *uri != '-' && *uri;
        return diag_error(diag, -EINVAL, CAUSE_USAGE,
                          "configuration source \"%s\" is neither imds://user-data nor file://PATH%s%s", uri,
                          bare ? ": did you mean file://" : "", bare ? uri : "");
}

int source_read(const Root *root, char *const *uris, Imds *imds, bool guard, Blobs *ret, Diag *diag) {
        Blobs blobs = {};
        for (; *uris; uris++) {
                int r = read_uri(root, *uris, imds, guard, &blobs, diag);
                if (r < 0) {
                        blobs_done(&blobs);
                        return r;
                }
        }
        *ret = blobs;
        return 0;
}
