/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside src/doc only: builds the nodes of one document, from any syntax and without recursion. */
#include "doc/doc.h"

/* Hash table from text to a position in an array whose items begin with a const char * key. */
typedef struct Index { uint32_t *slots; size_t room, allocated; } Index;

typedef struct Anchor { const char *name; Node *node; size_t size; unsigned height; bool open; } Anchor;
typedef struct Pending { Node *key, *value; } Pending;
typedef struct Frame {                  /* an open list or map */
        Node *node, *key;               /* key: of a map, still without its value */
        size_t first, nodes, anchor;    /* its first pending member; nodes before it; its anchor + 1, or 0 */
        unsigned height;                /* of the highest member so far */
} Frame;

typedef struct Builder {
        Position at;                    /* of the blob; a Mark has the line of the source */
        Diag *diag;
        void *pool;
        Node *root;
        Frame *frames; size_t n_frames;
        Pending *pending; size_t n_pending;
        Anchor *anchors; size_t n_anchors;
        Index anchor_index, member_index;
        size_t nodes, alias_nodes;      /* so far, and those added by aliases */
        unsigned max_nodes;             /* 0: DOC_MAX_NODES */
        unsigned duplicates;
} Builder;
void builder_done(Builder *b);

/* In the order of the text. anchor may be NULL. A failure adds an error. */
_must_check_ _nonnull(1, 5) int builder_scalar(Builder *b, Mark at, bool plain, char block,
                                               const char *text, size_t n, const char *anchor);
_must_check_ _nonnull(1) int builder_open(Builder *b, NodeType type, Mark at, const char *anchor);
_must_check_ _nonnull_ int builder_close(Builder *b);
_must_check_ _nonnull_ int builder_alias(Builder *b, Mark at, const char *name);
/* Hands the complete document over; the builder is ready for the next one. */
_nonnull_ Document builder_take(Builder *b);

_nonnull(1) void documents_add(Documents *d, Document item);

/* Where a line begins, from 0; the end of the blob if it has fewer. */
_must_check_ _nonnull_ const char *blob_line(const Blob *blob, size_t line);
/* The likely mistake where libyaml reports problem, as a clause for the caller to free, or NULL. Lines and
 * columns count from 0; context: where the enclosing construct begins. */
_must_check_ _nonnull_ char *yaml_slip(const Blob *blob, const char *problem, size_t line, size_t column,
                                       size_t context, size_t context_column);
/* Exactly one JSON text (RFC 8259) → one document. -EBADMSG without a diagnostic: not JSON, but maybe YAML.
 * start: where the text begins, after a byte order mark. */
_must_check_ _nonnull_ int json_text_parse(const Blob *blob, size_t start, Document *ret, Diag *diag);
