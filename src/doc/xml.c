/* SPDX-License-Identifier: Apache-2.0
 * XML → the texts at one path, for answers of AWS Query APIs. It refuses a document type, and so
 * entities. */
#include "doc/doc.h"

#include "base/str.h"

#include <errno.h>
#include <expat.h>

typedef struct Walk {
        XML_Parser parser;
        const char *path;
        size_t depth;           /* elements that are open */
        size_t matched;         /* how many of them, from the outermost on, follow the path */
        size_t used;            /* bytes of the path for these */
        bool inside;            /* the innermost one is at the path */
        Text text;
        char **found; size_t n_found;
} Walk;
/* The length of the next component of the path if it is name, or 0. */
static size_t component_matches(const Walk *w, const char *name) {
        if (!w->path[w->used])
                return 0;               /* below the end of the path */
        const char *rest = w->path + w->used + (w->used > 0);
        size_t n = strcspn(rest, "/");
        return strlen(name) == n && strncmp(rest, name, n) == 0 ? n : 0;
}

static void XMLCALL element_begins(void *data, const XML_Char *name, const XML_Char **attributes _unused_) {
        Walk *w = data;
        size_t n = w->matched == w->depth ? component_matches(w, name) : 0;
        w->inside = false;
        w->depth++;
        if (n > 0) {
                w->matched++;
                w->used += n + (w->used > 0);
                w->inside = !w->path[w->used];
        }
        if (w->depth > DOC_MAX_DEPTH)
                XML_StopParser(w->parser, XML_FALSE);
}

static void XMLCALL element_ends(void *data, const XML_Char *name) {
        Walk *w = data;
        size_t n = strlen(name);
        if (w->matched == w->depth) {
                if (!w->path[w->used])
                        strv_push_at(&w->found, w->n_found++, text_take(&w->text));
                w->matched--;
                w->used -= n + (w->matched > 0);
        }
        w->depth--;
        w->inside = w->depth > 0 && w->matched == w->depth && !w->path[w->used];
}

static void XMLCALL characters(void *data, const XML_Char *text, int size) {
        Walk *w = data;
        if (w->inside)
                text_add_bytes(&w->text, text, (size_t)size);
}

static void XMLCALL doctype_begins(void *data, const XML_Char *name _unused_,
                                   const XML_Char *system_id _unused_, const XML_Char *public_id _unused_,
                                   int has_subset _unused_) {
        Walk *w = data;
        XML_StopParser(w->parser, XML_FALSE);
}

int xml_texts(const char *text, size_t size, const char *path, char ***ret) {
        Walk w = { .path = path };
        if (size > INT32_MAX)
                return -EBADMSG;
        w.parser = XML_ParserCreate(NULL);
        if (!w.parser)
                return -ENOMEM;
        XML_SetUserData(w.parser, &w);
        XML_SetElementHandler(w.parser, element_begins, element_ends);
        XML_SetCharacterDataHandler(w.parser, characters);
        XML_SetStartDoctypeDeclHandler(w.parser, doctype_begins);
        enum XML_Status status = XML_Parse(w.parser, text, (int)size, XML_TRUE);
        XML_ParserFree(w.parser);
        text_done(&w.text);
        if (status != XML_STATUS_OK) {
                strv_free(w.found);
                return -EBADMSG;
        }
        *ret = w.found;
        return 0;
}
