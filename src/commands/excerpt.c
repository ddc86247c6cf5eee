/* SPDX-License-Identifier: Apache-2.0
 * Findings of a file → lines as compilers write them, for editors, and below each the key with a mark
 * (https://www.gnu.org/prep/standards/html_node/Errors.html). A value may be a secret, and is not shown. */
#include "commands/run.h"
#include "commands/sources.h"

#include <ctype.h>

#define SHOWN 10u                       /* each line costs a scan of the file */
#define WIDTH 160u

static const char *find_line(const Blob *blob, unsigned line) {
        const char *at = blob->data;
        for (unsigned n = MAX(blob->at.line, 1u); n < line; n++) {
                at += strcspn(at, "\n");
                if (!*at++)
                        return NULL;
        }
        return at;
}

/* Length of "kubelet" in "kubelet: …"; 0: no plain key stands here */
static size_t key_span(const char *s) {
        size_t n = 0;
        while (isalnum((unsigned char)s[n]) || is_char_of(s[n], "_-./"))
                n++;
        return s[n] == ':' ? n : 0;
}

/* Are there only keys, brackets and dashes before column n? */
static bool is_structure(const char *line, size_t n) {
        size_t i = 0, size = 1;
        while (i < n && size > 0) {
                i += strspn(line + i, " -{[");
                size = i < n ? key_span(line + i) : 1;
                i += i < n ? size + 1 : 0;
        }
        return i == n;
}

/* "  instance: {localStorage: …" and a mark below the last key; blanks replace a value. NULL: no key. */
static char *mark_key(const char *line, unsigned column) {
        size_t before = column - 1, end = strcspn(line, "\r\n");
        for (size_t i = 0; i < before; i++)     /* a column is a character, and tabs have widths */
                if (i >= end || line[i] < ' ' || line[i] > '~')
                        return NULL;
        size_t n = key_span(line + before);
        if (n == 0 || before + n > WIDTH)
                return NULL;
        const char *rest = line + before + n + 1;
        bool more = rest[strspn(rest, " \r")] != '\n' && rest[strspn(rest, " \r")];
        return xasprintf("%*.*s%.*s:%s\n%*s\n", (int)before, is_structure(line, before) ? (int)before : 0,
                         line, (int)n, line + before, more ? " …" : "", (int)column, "^");
}

/* NULL: not in a NodeConfig, or not about a key. */
static char *excerpt_of(const Diagnostic *i, const Blobs *blobs) {
        _cleanup_(blobs_done) Blobs parts = {};
        _cleanup_(diag_done) Diag ignored = {};
        bool is_mime;
        const Blob *b = FIND(blob, blobs->items, blobs->n,
                             streq(blob->at.source, i->source) && i->line >= blob->at.line);
        if (b && i->part > 0)
                b = mime_split(b, NODECONFIG_TYPE, &parts, &is_mime, &ignored) < 0
                            ? NULL
                            : FIND(part, parts.items, parts.n, part->at.part == i->part);
        const char *line = b && i->path && i->column > 0 ? find_line(b, i->line) : NULL;
        return line && i->column > b->at.column ? mark_key(line, i->column - b->at.column) : NULL;
}

void findings_place(Run *run) {
        for (size_t n = 0; n < run->diag.n; n++) {
                Diagnostic *i = &run->diag.items[n];
                if (!i->source || i->line == 0)
                        continue;
                _free_ char *part = i->part > 0 ? xasprintf(": part %u", i->part) : xstrdup("");
                RENEW(i->where, xasprintf("%s:%u:%u: %s%s", i->source, i->line, MAX(i->column, 1u),
                                          i->warning ? "warning" : "error", part));
                i->excerpt = (n < SHOWN ? excerpt_of(i, &run->sources->blobs) : NULL) ?: xstrdup("");
        }
}
