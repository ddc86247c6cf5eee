/* SPDX-License-Identifier: Apache-2.0
 * Blobs → documents: removes outer layers, splits messages, parses YAML and JSON. Damage is an error only
 * in a text that is labelled as a NodeConfig, or clearly meant as one; another program reads the others. */
#include "source/source.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

typedef struct Cut { const char *s, *end; } Cut;

static void cut_blanks(Cut *c) {
        while (c->s < c->end && isblank((unsigned char)*c->s))
                c->s++;
}

static bool cut_text(Cut *c, const char *text) {
        size_t n = strlen(text);
        if ((size_t)(c->end - c->s) < n || memcmp(c->s, text, n) != 0)
                return false;
        c->s += n;
        return true;
}

static void cut_quote(Cut *c) {
        if (c->s < c->end && (*c->s == '"' || *c->s == '\''))
                c->s++;
}

static Cut cut_line(Cut *c) {
        const char *newline = memchr(c->s, '\n', (size_t)(c->end - c->s));
        Cut line = { c->s, newline ?: c->end };
        c->s = newline ? newline + 1 : c->end;
        if (line.end > line.s && line.end[-1] == '\r')
                line.end--;
        return line;
}

/* KEY: VALUE…, each with or without quotes. */
static bool is_pair(Cut c, const char *key, const char *value) {
        cut_quote(&c);
        if (!cut_text(&c, key))
                return false;
        cut_quote(&c);
        cut_blanks(&c);
        if (!cut_text(&c, ":"))
                return false;
        cut_blanks(&c);
        cut_quote(&c);
        return cut_text(&c, value);
}

static bool is_mark(Cut c) {
        return is_pair(c, "apiVersion", "node.eks.aws/") || is_pair(c, "kind", "NodeConfig");
}

/* The first line with YAML content, or an empty one. */
static Cut first_content(const Blob *b) {
        Cut c = { b->data, b->data + b->size };
        cut_text(&c, "\xef\xbb\xbf");
        while (c.s < c.end) {
                Cut line = cut_line(&c), text = line;
                cut_blanks(&text);
                if (cut_text(&text, "---"))
                        cut_blanks(&text);
                if (text.s < text.end && *text.s != '#' && *text.s != '%' && !cut_text(&text, "..."))
                        return line;
        }
        return (Cut){ c.end, c.end };
}

/* Does it begin with a key? A header of a damaged message does not count. */
static bool is_key_line(Cut line) {
        const char *colon = memchr(line.s, ':', (size_t)(line.end - line.s));
        size_t n = colon ? (size_t)(colon - line.s) : 0;
        if (n == 0 || (colon + 1 < line.end && !isblank((unsigned char)colon[1])))
                return false;
        while (n > 0 && isblank((unsigned char)line.s[n - 1]))
                n--;
        return n > 0 && !memchr(line.s, ' ', n) && !(n >= 5 && strncasecmp(line.s, "MIME-", 5) == 0) &&
               !(n >= 8 && strncasecmp(line.s, "Content-", 8) == 0);
}

/* Is bare text that does not parse meant as a NodeConfig? If so it begins as a map, and a top-level line, or
 * in JSON any place, has its kind or apiVersion. */
static bool is_meant(const Blob *b) {
        Cut rest = first_content(b), first = rest;
        cut_blanks(&first);
        size_t indent = (size_t)(first.s - rest.s);
        rest.end = b->data + b->size;
        if (first.s < rest.end && *first.s == '{') {
                for (; rest.s < rest.end; rest.s++)
                        if ((*rest.s == '"' || *rest.s == '\'') && is_mark(rest))
                                return true;
                return false;
        }
        if (cut_text(&first, "---"))
                cut_blanks(&first);
        if (!is_key_line(first) || is_mark(first))
                return is_key_line(first);
        while (rest.s < rest.end) {
                Cut line = cut_line(&rest), text = line;
                cut_blanks(&text);
                if ((size_t)(text.s - line.s) == indent && is_mark(text))
                        return true;
        }
        return false;
}

/* The kind of text by its first line, as cloud-init reads it
 * (https://cloudinit.readthedocs.io/en/latest/explanation/format.html); NULL: it may be ours. */
static const char *foreign_kind(const Blob *b) {
        static const struct { const char *begin, *kind; bool word; } table[] = {
                { "#!",                    "a script",                false },
                { "## template:",          "a template",              false },
                { "#cloud-config",         "a cloud-config",          true },
                { "#cloud-config-archive", "a cloud-config archive",  true },
                { "#cloud-config-jsonp",   "a cloud-config patch",    true },
                { "#cloud-boothook",       "a boot hook",             true },
                { "#include",              "an include file",      true },
                { "#include-once",         "an include file",      true },
                { "#part-handler",         "a part handler",          true },
                { "#upstart-job",          "an upstart job",          true },
        };
        Cut c = { b->data, b->data + b->size };
        cut_text(&c, "\xef\xbb\xbf");
        while (c.s < c.end && isspace((unsigned char)*c.s))
                c.s++;
        /* a NUL follows the data */
        return PICK(t, table, ARRAY_SIZE(table),
                    strncasecmp(c.s, t->begin, strlen(t->begin)) == 0 &&
                            (!t->word || !c.s[strlen(t->begin)] ||
                             isspace((unsigned char)c.s[strlen(t->begin)])), t->kind, NULL);
}

bool source_is_foreign(const Blob *blob) {
        return foreign_kind(blob);
}

/* Turns the errors of a text that is not ours into warnings. */
static void warn_not_yaml(Diag *found, Diag *diag) {
        for (size_t i = 0; i < found->n; i++) {
                Diagnostic *item = &found->items[i];
                if (item->warning)
                        continue;
                RENEW(item->text, xasprintf("ignored: nothing in it says that it is a NodeConfig, and it is "
                                            "not valid YAML: %s", item->text));
                item->warning = true;
                item->cause = CAUSE_NONE;
                item->code = xstrdup("not-yaml");
        }
        diag_move(diag, found);
}

/* The layer that a tool or a template has added once too often (E4), or NULL. */
static const char *packing(const Blob *b) {
        _free_ char *plain = NULL;
        size_t size = 0;
        if (b->size >= 2 && memcmp(b->data, "\x1f\x8b", 2) == 0)
                return "gzip";
        return base64_decode(b->data, b->size, true, &plain, &size) >= 0 && size > 0 ? "base64" : NULL;
}

/* notes: in case no document is found. */
static int decode_bare(const Blob *b, Documents *ret, Diag *diag, Diag *notes) {
        const char *kind = foreign_kind(b), *packed = packing(b);
        Documents documents = {};
        Diag found = {};
        if (kind) {
                diag_warn_at(notes, "foreign-data", &(Position){ .source = b->at.source }, NULL,
                             "the first line marks this as %s, so it is not read as a NodeConfig", kind);
                return 0;
        }
        if (packed) {
                ret->unread = ret->unread ?: xasprintf("%s: still %s after decoding; encode it only once",
                                                       b->at.source, packed);
                return 0;
        }
        int r = yaml_parse(b, &documents, &found);
        if (r < 0 && !is_meant(b)) {
                warn_not_yaml(&found, diag);
                return 0;
        }
        diag_move(diag, &found);
        documents_move(ret, &documents);
        return r;
}

static int decode_part(const Blob *b, Documents *ret, Diag *diag) {
        Documents documents = {};
        int r = yaml_parse(b, &documents, diag);
        for (size_t i = 0; i < documents.n; i++)
                if (documents.items[i].root->type != NODE_MAP)
                        r = diag_error_at(diag, -EBADMSG, CAUSE_SYNTAX, &documents.items[i].at, NULL,
                                          "this part is labelled as a NodeConfig, but its text is not a map "
                                          "of keys and values");
        if (r < 0)
                documents_done(&documents);
        else
                documents_move(ret, &documents);
        return r;
}

static int decode_blob(Blob *b, Documents *ret, Diag *diag, Diag *notes) {
        _cleanup_(blobs_done) Blobs parts = {};
        size_t told = diag->n;
        bool is_mime;
        int r = doc_unpack(b, diag) ?: mime_split(b, NODECONFIG_TYPE, &parts, &is_mime, diag);
        if (r < 0)
                return r;
        for (; told < diag->n; told++)
                if (diag->items[told].warning && streq(diag->items[told].code, MIME_NEAR) && !ret->unread)
                        ret->unread = xasprintf("%s: %s", diag->items[told].where, diag->items[told].text);
        for (size_t i = 0; i < parts.n; i++) {
                int k = is_mime ? decode_part(&parts.items[i], ret, diag)
                                : decode_bare(&parts.items[i], ret, diag, notes);
                r = r < 0 ? r : k;
        }
        return r;
}

#define ORIGINS_SHOWN 5

/* "user-data (empty), /etc/x.yaml (120 bytes)" */
static char *describe_sources(const Blobs *blobs) {
        Text t = {};
        for (size_t i = 0; i < blobs->n && i < ORIGINS_SHOWN; i++) {
                const Blob *b = &blobs->items[i];
                text_add(&t, b->size > 0 ? "%s%s (%zu bytes)" : "%s%s (empty)", i > 0 ? ", " : "",
                         b->at.source, b->size);
        }
        if (blobs->n > ORIGINS_SHOWN)
                text_add(&t, " and %zu more", blobs->n - ORIGINS_SHOWN);
        return text_take(&t);
}

int source_decode(Blobs *blobs, Documents *ret, Diag *diag) {
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag notes = {};
        int r = 0;
        documents.origin = describe_sources(blobs);
        for (size_t i = 0; i < blobs->n; i++) {
                int k = decode_blob(&blobs->items[i], &documents, diag, &notes);
                r = r < 0 ? r : k;
        }
        if (r < 0)
                return r;
        if (documents.n == 0)
                diag_move(diag, &notes);
        *ret = documents;
        documents = (Documents){};
        return 0;
}
