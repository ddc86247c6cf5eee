/* SPDX-License-Identifier: Apache-2.0
 * Findings of a file → lines as compilers write them, by which editors find the place, and the line of the
 * file with a mark (https://www.gnu.org/prep/standards/html_node/Errors.html). YAML that is wrong has no tree
 * to ask for secrets. So keys are words here, and lines belong to lines. */
#include "commands/hide.h"
#include "commands/run.h"
#include "commands/sources.h"

#include "config/config.h"
#include "redact/mask.h"
#include "redact/secret.h"

#include <ctype.h>

#define SHOWN 10u                       /* lines of a file, each of which is looked for from its beginning */
#define WIDTH 160u

/* Is a word of the line the name of a secret? open: brackets that it leaves open. */
static bool names_secret(const char *line, size_t n, int *open) {
        bool secret = false;
        for (size_t i = 0, size; i < n; i += size + !size) {
                *open += is_char_of(line[i], "{[") - is_char_of(line[i], "}]");
                for (size = 0; isalnum((unsigned char)line[i + size]) || is_char_of(line[i + size], "_-");)
                        size++;
                _free_ char *word = xstrndup(line + i, size);
                secret |= key_is_secret(word, NULL) || streq(word, "environment");
        }
        return secret;
}

/* NULL: it is not there, or may be secret: it names a secret, or stands behind a line that does. There it is
 * indented more, an item of the list of that line, or in its bracket. */
static const char *find_line(const Blob *blob, unsigned line) {
        const char *at = blob->data;
        bool secret = false;
        size_t begin = 0;
        int open = 0;
        for (unsigned n = MAX(blob->at.line, 1u); n <= line; n++) {
                size_t size = strcspn(at, "\n"), indent = strspn(at, " \t\r");
                int more = 0;
                bool named = names_secret(at, size, &more), blank = indent >= size;
                if (open <= 0 && !blank && indent + (at[indent] == '-') <= begin)
                        secret = false;
                if (named && !secret) {
                        secret = true;
                        begin = indent;
                        open = 0;
                }
                open += more;
                if (n == line && !secret)
                        return at;
                if (!at[size])
                        break;
                at += size + 1;
        }
        return NULL;
}

/* The line and a mark below it; NULL: it may be secret, or belongs to no NodeConfig. */
static char *excerpt_of(const Diagnostic *i, const Blobs *blobs, Secrets *s) {
        _cleanup_(blobs_done) Blobs parts = {};
        _cleanup_(diag_done) Diag ignored = {};
        bool is_mime;
        const Blob *b = FIND(blob, blobs->items, blobs->n, streq(blob->at.source, i->source));
        if (b && i->part > 0)
                b = mime_split(b, NODECONFIG_TYPE, &parts, &is_mime, &ignored) < 0
                            ? NULL
                            : FIND(part, parts.items, parts.n, part->at.part == i->part);
        const char *at = b ? find_line(b, i->line) : NULL;
        size_t n = at ? strcspn(at, "\r\n") : 0, size;
        if (n > WIDTH || i->column == 0 || i->column > n || (i->code && streq(i->code, "not-yaml")))
                return NULL;
        _free_ char *line = xstrndup(at, n), *hidden = secrets_scrub(s, line, n, &size);
        if (!streq(hidden, line))
                return NULL;
        for (char *c = line; *c; c++)
                if (*c == '\t')
                        *c = ' ';       /* the mark stands below it, however wide a tab is */
                else if (*c < ' ' || *c == 0x7f)
                        return NULL;    /* one that a terminal obeys, or more than one byte */
        return xasprintf("%s\n%*s\n", line, (int)i->column, "^");
}

/* Without a column it is the first one. */
static char *place_of(const Diagnostic *i) {
        Text t = {};
        text_add(&t, "%s:%u:%u: %s", i->source, i->line, MAX(i->column, 1u),
                 i->warning ? "warning" : "error");
        if (i->part > 0)
                text_add(&t, ": part %u", i->part);
        return text_take(&t);
}

void findings_place(Run *run) {
        _cleanup_(secrets_done) Secrets s = {};
        if (run->config)
                json_decref(mask_config(&s, run->config->document));
        for (size_t n = 0; n < run->diag.n; n++) {
                Diagnostic *i = &run->diag.items[n];
                if (!i->source || i->line == 0)
                        continue;
                RENEW(i->where, place_of(i));
                i->excerpt = (n < SHOWN ? excerpt_of(i, &run->sources->blobs, &s) : NULL) ?: xstrdup("");
        }
}
