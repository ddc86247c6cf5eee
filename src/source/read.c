/* SPDX-License-Identifier: Apache-2.0
 * Source URIs → their bytes, undecoded: imds://user-data, file://PATH for a file or for a directory with
 * *.yaml, *.yml and *.json, in the order of their names. SourceFlags add more. It reads a URI as net/url
 * of Go does for nodeadm (internal/configprovider/factory.go): the scheme in any case, escapes in the path,
 * no query and no fragment. */
#include "source/source.h"

#include "base/root.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Before unpacking: base64 adds a third to the 1 MiB, and a message has parts besides ours. */
#define SOURCE_MAX_BYTES (4u << 20)

/* The rest after a scheme and its colon; NULL: another scheme. */
static const char *after_scheme(const char *uri, const char *scheme) {
        size_t n = strlen(scheme);
        return strncasecmp(uri, scheme, n) == 0 && uri[n] == ':' ? uri + n + 1 : NULL;
}

bool source_is_imds(const char *uri) {
        return after_scheme(uri, "imds");
}

/* Without a scheme: a path with a colon must begin with a slash or a dot. */
static bool is_bare(const char *uri) {
        return *uri == '/' || *uri == '.' || (*uri && *uri != '-' && !strchr(uri, ':'));
}

/* file://a/b%20c?x#y → "a/b c"; invalid escapes stay. */
char *source_file_path(const char *uri) {
        const char *rest = after_scheme(uri, "file");
        if (is_bare(uri))
                return xstrdup(uri);
        if (!rest || rest[0] != '/')
                return NULL;
        rest += startswith(rest, "//") ? 2 : 0;
        _free_ char *raw = xstrndup(rest, strcspn(rest, "?#"));
        return *raw ? percent_decoded(raw) : NULL;
}

const char *source_keep_name(const char *name) {
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
        /* -ENOENT: an instance without user data */
        if (r < 0 && r != -ENOENT)
                return r;
        blobs_add(ret, (Position){ .source = "user-data", .line = 1 }, data ?: xstrdup(""), size);
        return 0;
}

/* r: the read result. Takes data. */
static int add_file(int r, const char *name, bool guarded, char *data, size_t size, Blobs *ret,
                    Diag *diag) {
        if (r == -EFBIG)
                return diag_error_in(diag, r, CAUSE_LIMIT, name,
                                     "the file exceeds the limit of %u MiB for a configuration source",
                                     SOURCE_MAX_BYTES >> 20);
        if (r < 0)
                return diag_error_in(diag, r, CAUSE_SOURCE, name,
                                     "cannot be read as a configuration source: %s", strerror(-r));
        blobs_add(ret, (Position){ .source = source_keep_name(name), .line = 1 }, data, size);
        ret->items[ret->n - 1].guarded = guarded;
        return 0;
}

static int skip_denied(const char *name, Diag *diag) {
        diag_warn_at(diag, "source-denied", &(Position){ .source = source_keep_name(name) }, NULL,
                     "this user cannot read it, so its settings are missing here; run this as root");
        return 0;
}

/* name: as the user typed it, for messages; path: below the root. */
static int read_file(const Root *root, const char *path, const char *name, SourceFlags flags, Blobs *ret,
                     Diag *diag) {
        /* before reading: a guarded file stays guarded */
        _free_ char *why = NULL;
        bool guarded = flags & SOURCE_GUARD && path_is_guarded(root, path, &why) > 0;
        char *data = NULL;
        size_t size = 0;
        int r = root_read(root, path, SOURCE_MAX_BYTES, &data, &size);
        return r == -EACCES && flags & SOURCE_PARTIAL ? skip_denied(name, diag)
                                                      : add_file(r, name, guarded, data, size, ret, diag);
}

/* The number of our own descriptor, or -1. Opening it again by its name may need more rights. */
static int descriptor_of(const char *path) {
        static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
        uint64_t n = STDIN_FILENO;
        bool own = streq(path, "/dev/stdin") ||
                   ANY(f, folders, ARRAY_SIZE(folders),
                       startswith(path, *f) && parse_u64(path + strlen(*f), &n) >= 0 && n <= INT_MAX);
        return own ? (int)n : -1;
}

/* Takes fd. */
static int read_stream(int fd, const char *name, Blobs *ret, Diag *diag) {
        char *data = NULL;
        size_t size = 0;
        int r = fd < 0 ? fd : fd_read(fd, SOURCE_MAX_BYTES, &data, &size);
        close_fd(&fd);
        return add_file(r, name, false, data, size, ret, diag);
}

static int read_descriptor(int own, const char *name, Blobs *ret, Diag *diag) {
        int fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
        return read_stream(fd < 0 ? -errno : fd, name, ret, diag);
}

static int refuse_stream(const char *name, Diag *diag) {
        return diag_error_in(diag, -EINVAL, CAUSE_USAGE, name,
                             "is a pipe or a descriptor, which may never end; write its content to a file. "
                             "nodestrap plan and nodestrap config check can read pipes, but not with "
                             "--root");
}

static bool is_drop_in(const Root *root, const char *path, const char *name) {
        _free_ char *lower = str_lower(name);
        _strv_ char **names = NULL;
        return (endswith(lower, ".yaml") || endswith(lower, ".yml") || endswith(lower, ".json")) &&
               root_list(root, path, &names) < 0;       /* not a directory */
}

static int read_directory(const Root *root, const char *path, const char *name, SourceFlags flags, Blobs *ret,
                          Diag *diag) {
        _strv_ char **names = NULL;
        int r = root_list(root, path, &names);
        if (r == -EACCES && flags & SOURCE_PARTIAL)
                return skip_denied(name, diag);
        if (r < 0)
                return diag_error_in(diag, r, CAUSE_SOURCE, name,
                                     "cannot be read as a directory of configuration sources: %s",
                                     strerror(-r));
        STRV_FOREACH(entry, names) {
                const char *slash = endswith(name, "/") ? "" : "/";
                _free_ char *file = xasprintf("%s/%s", path, *entry),
                            *shown = xasprintf("%s%s%s", name, slash, *entry);
                if (!is_drop_in(root, file, *entry))
                        continue;
                r = read_file(root, file, shown, flags, ret, diag);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_path(const Root *root, const char *path, SourceFlags flags, Blobs *ret, Diag *diag) {
        _free_ char *absolute = root_absolute(root, path);
        struct stat st = {};
        bool streams = flags & SOURCE_STREAMS && root_is_host(root);
        int own = absolute && root_is_host(root) ? descriptor_of(absolute) : -1;
        if (own >= 0)
                return streams ? read_descriptor(own, path, ret, diag) : refuse_stream(path, diag);
        _cleanup_(close_fd) int fd = absolute ? root_open(root, absolute, O_PATH) : -ENOENT;
        int r = fd >= 0 && fstat(fd, &st) < 0 ? -errno : fd;
        if (r < 0)
                return diag_error_in(diag, r, CAUSE_SOURCE, path,
                                     "cannot be opened as a configuration source%s%s: %s",
                                     root_is_host(root) ? "" : " below ",
                                     root_is_host(root) ? "" : root_path(root), strerror(-r));
        if (S_ISFIFO(st.st_mode))
                return streams ? read_stream(root_open(root, absolute, O_RDONLY | O_NOCTTY), path, ret, diag)
                               : refuse_stream(path, diag);
        return S_ISDIR(st.st_mode) ? read_directory(root, absolute, path, flags, ret, diag)
                                   : read_file(root, absolute, path, flags, ret, diag);
}

/* FILE#CHOICE, unless a file has that name; returns CHOICE. */
static const char *cut_choice(const Root *root, const char *uri, char *path, bool bare) {
        const char *hash = strrchr(uri, '#');
        _free_ char *absolute = root_absolute(root, path);
        _cleanup_(close_fd) int fd = bare && hash && absolute ? root_open(root, absolute, O_PATH) : -ENOENT;
        if (bare && hash && fd < 0)
                path[strlen(path) - strlen(hash)] = 0;
        return hash && fd < 0 ? hash + 1 : NULL;
}

static int read_uri(const Root *root, const char *uri, Imds *imds, SourceFlags flags, Blobs *ret,
                    Diag *diag) {
        _free_ char *path = source_file_path(uri);
        bool bare = is_bare(uri);
        if (source_is_imds(uri))
                return imds ? read_user_data(imds, ret, diag)
                            : diag_error(diag, -ENOTCONN, CAUSE_SOURCE,
                                         "%s: this build does not ask the metadata service", uri);
        if (flags & SOURCE_BARE && streq(uri, "-"))
                return root_is_host(root) ? read_descriptor(STDIN_FILENO, "stdin", ret, diag)
                                          : refuse_stream("stdin", diag);
        if (path && (!bare || flags & SOURCE_BARE)) {
                const char *choice = cut_choice(root, uri, path, bare);
                int r = read_path(root, source_keep_name(path), flags, ret, diag);
                if (r >= 0 && choice && ret->n > 0)
                        ret->items[ret->n - 1].choice = source_keep_name(choice);
                return r;
        }
        int r = diag_error(diag, -EINVAL, CAUSE_USAGE,
                           "configuration source \"%s\" is neither imds://user-data nor file://PATH", uri);
        if (bare)
                diag_suggest(diag, "file://%s", uri);
        return r;
}

int source_read(const Root *root, char *const *uris, Imds *imds, SourceFlags flags, Blobs *ret, Diag *diag) {
        Blobs blobs = {};
        for (; *uris; uris++) {
                int r = read_uri(root, *uris, imds, flags, &blobs, diag);
                if (r < 0) {
                        blobs_done(&blobs);
                        return r;
                }
        }
        *ret = blobs;
        return 0;
}
