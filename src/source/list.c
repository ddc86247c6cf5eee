/* SPDX-License-Identifier: Apache-2.0
 * A list of sources, of the boot or of the image. A line is one, or "config-cache FILE". */
#include "source/source.h"

#include "base/root.h"
#include "base/str.h"

#include <errno.h>

#define LIST_LIMIT 65536
#define CACHE_WORD "config-cache "

void source_list_done(SourceList *l) {
        l->uris = strv_free(l->uris);
        free(l->cache);
        *l = (SourceList){};
}

static int take_line(const char *line, SourceList *list, Position at, Diag *diag) {
        _free_ char *text = str_strip(line), *path = source_file_path(text);
        if (!*text || *text == '#')
                return 0;
        if (startswith(text, CACHE_WORD)) {
                RENEW(list->cache, str_strip(text + strlen(CACHE_WORD)));
                return 0;
        }
        if (!source_is_imds(text) && (!path || streq(path, text)))
                return diag_error_at(diag, -EINVAL, CAUSE_SOURCE, &at, NULL,
                                     "cannot read \"%s\" as a source; write imds://user-data, file://PATH "
                                     "or \"config-cache FILE\"",
                                     text);
        strv_add(&list->uris, text);
        return 0;
}

int source_list_parse(const char *text, const char *path, SourceList *list, Diag *diag) {
        Position at = { .source = path };
        int r = 0;
        for (const char *p = text; r >= 0 && *p; p += strcspn(p, "\n"), p += *p == '\n') {
                _free_ char *line = xstrndup(p, strcspn(p, "\n"));
                at.line++;
                r = take_line(line, list, at, diag);
        }
        if (r >= 0 && !list->uris)
                r = diag_error_at(diag, -ENODATA, CAUSE_SOURCE, &(Position){ .source = path }, NULL,
                                  "names no source: add imds://user-data, or remove the file");
        return r;
}

/* 0 also where the file is missing. */
static int read_list(const Root *root, const char *path, SourceList *list, Diag *diag) {
        _free_ char *text = NULL, *why = NULL;
        const Position at = { .source = path };
        int r = root_read(root, path, LIST_LIMIT, &text, NULL);
        if (r == -ENOENT || r == -ENOTDIR)
                return 0;
        if (r < 0)
                return diag_error_at(diag, r, CAUSE_SOURCE, &at, NULL,
                                     "cannot be read as a list of sources: %s; name them with -c instead",
                                     strerror(-r));
        if (path_is_guarded(root, path, &why) == 0)
                return diag_error_at(diag, -EPERM, CAUSE_SOURCE, &at, NULL,
                                     "%s, so another user could choose the configuration of this node; run "
                                     "chown root and chmod go-w on it, or replace a symbolic link",
                                     why);
        list->from = path;
        return source_list_parse(text, path, list, diag);
}

int source_list_read(const Root *root, SourceList *ret, Diag *diag) {
        SourceList list = {};
        int r = read_list(root, SOURCES_OF_BOOT, &list, diag);
        if (r >= 0 && !list.from)
                r = read_list(root, SOURCES_OF_IMAGE, &list, diag);
        if (r < 0)
                source_list_done(&list);
        *ret = list;
        return r;
}

int source_list_record(const Root *root, char *const *uris, const char *cache) {
        _cleanup_(text_done) Text text = {};
        for (; uris && *uris; uris++)
                text_add(&text, "%s\n", *uris);
        if (cache)
                text_add(&text, CACHE_WORD "%s\n", cache);
        return root_replace_volatile(root, SOURCES_OF_BOOT, text.data ?: "", text.size, 0644);
}
