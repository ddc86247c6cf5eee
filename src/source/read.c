/* SPDX-License-Identifier: Apache-2.0
 * Source URIs → the bytes behind them, undecoded: imds://user-data, file://PATH for a file, or for a
 * directory, whose *.yaml, *.yml and *.json are taken in the order of their names, as drop-ins are. */
#include "source/source.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Before unpacking: base64 adds a third to what may be 1 MiB, and a message has other parts beside ours. */
#define SOURCE_MAX_BYTES (4u << 20)

bool source_is_imds(const char *uri) {
        return startswith(uri, "imds://");
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
static int read_file(const Root *root, const char *path, const char *name, Blobs *ret, Diag *diag) {
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
        return 0;
}

static bool is_drop_in(const char *name) {
        return name[0] != '.' &&
               (endswith(name, ".yaml") || endswith(name, ".yml") || endswith(name, ".json"));
}

static int read_directory(const Root *root, const char *path, const char *name, Blobs *ret, Diag *diag) {
        _cleanup_(strv_freep) char **names = NULL;
        int r = root_list(root, path, &names);
        if (r < 0)
                return diag_error_at(diag, r, CAUSE_SOURCE, &(Position){ .source = name }, NULL,
                                     "cannot be listed as a configuration source: %s", strerror(-r));
        for (char **entry = names; entry && *entry; entry++) {
                const char *slash = endswith(name, "/") ? "" : "/";
                _cleanup_(freep) char *file = xasprintf("%s/%s", path, *entry),
                                      *shown = xasprintf("%s%s%s", name, slash, *entry);
                if (!is_drop_in(*entry))
                        continue;
                r = read_file(root, file, shown, ret, diag);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_path(const Root *root, const char *path, Blobs *ret, Diag *diag) {
        _cleanup_(freep) char *absolute = root_absolute(root, path);
        struct stat st = {};
        int fd = absolute ? root_open(root, absolute, O_PATH) : -ENOENT, r = fd;
        if (fd >= 0) {
                r = fstat(fd, &st) < 0 ? -errno : 0;
                close(fd);
        }
        if (!absolute || r < 0)
                return diag_error_at(diag, r, CAUSE_SOURCE, &(Position){ .source = path }, NULL,
                                     "cannot be opened as a configuration source: %s", strerror(-r));
        return S_ISDIR(st.st_mode) ? read_directory(root, absolute, path, ret, diag)
                                   : read_file(root, absolute, path, ret, diag);
}

static int read_uri(const Root *root, const char *uri, Imds *imds, Blobs *ret, Diag *diag) {
        if (streq(uri, "imds://user-data"))
                return imds ? read_user_data(imds, ret, diag)
                            : diag_error(diag, -ENOTCONN, CAUSE_SOURCE,
                                         "%s: the metadata service is not asked in this mode", uri);
        if (startswith(uri, "file://") && uri[strlen("file://")])
                return read_path(root, uri + strlen("file://"), ret, diag);
        bool bare = !strstr(uri, "://") && *uri != '-' && *uri;
        return diag_error(diag, -EINVAL, CAUSE_USAGE,
                          "configuration source \"%s\" is neither imds://user-data nor file://PATH%s%s", uri,
                          bare ? ": did you mean file://" : "", bare ? uri : "");
}

int source_read(const Root *root, char *const *uris, Imds *imds, Blobs *ret, Diag *diag) {
        Blobs blobs = {};
        for (; *uris; uris++) {
                int r = read_uri(root, *uris, imds, &blobs, diag);
                if (r < 0) {
                        blobs_done(&blobs);
                        return r;
                }
        }
        *ret = blobs;
        return 0;
}
