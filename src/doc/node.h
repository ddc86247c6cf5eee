/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Puts the nodes of one document together, whatever syntax they were read from. Keeps no C stack: depth is a
 * counter. Only the readers in this folder use it. */
#include "doc/doc.h"

/* Hash table from text to a position in somebody's array, whose items begin with a const char * key. */
typedef struct Index { uint32_t *slots; size_t room, allocated; } Index;

typedef struct Anchor { const char *name; Node *node; size_t size; unsigned height; bool open; } Anchor;
typedef struct Pending { Node *key, *value; } Pending;
typedef struct Frame {                  /* a list or a map that is not complete yet */
        Node *node, *key;               /* key: of a map, read and still without its value */
        size_t first, nodes, anchor;    /* first of its pending members; nodes before
                                         * it; its anchor's number + 1, or 0 */
        unsigned height;                /* of the highest member so far */
} Frame;

typedef struct Builder {
        Position at;                    /* of the blob; lines below are already those of the source */
        Diag *diag;
        void *pool;
        Node *root;
        Frame *frames; size_t n_frames;
        Pending *pending; size_t n_pending;
        Anchor *anchors; size_t n_anchors;
        Index anchor_index, member_index;
        size_t nodes, alias_nodes;      /* so far, and how many of them came by aliases */
        unsigned max_nodes;             /* 0: DOC_MAX_NODES */
        unsigned duplicates;
} Builder;
void builder_done(Builder *b);

/* In the order of the text. anchor may be NULL; block is as in Node. All leave a diagnostic when they
 * fail. */
_must_check_ _nonnull(1, 5) int builder_scalar(Builder *b, Mark at, bool plain, char block,
                                               const char *text, size_t n, const char *anchor);
_must_check_ _nonnull(1) int builder_open(Builder *b, NodeType type, Mark at, const char *anchor);
_must_check_ _nonnull_ int builder_close(Builder *b);
_must_check_ _nonnull_ int builder_alias(Builder *b, Mark at, const char *name);
/* Hands the complete document over and makes the builder ready for the next one of the stream. */
_nonnull_ Document builder_take(Builder *b);

_nonnull(1) void documents_add(Documents *d, Document item);

/* Where a line of the blob begins, counted from 0; its end where there are fewer. */
_must_check_ _nonnull_ const char *blob_line(const Blob *blob, size_t line);
/* What was most likely overlooked where libyaml says problem at that line and column, in a context that began
 * there (all from 0): a clause for a person, the caller's; NULL: nobody knows. */
_must_check_ _nonnull_ char *yaml_slip(const Blob *blob, const char *problem, size_t line, size_t column,
                                       size_t context, size_t context_column);
/* One JSON text (RFC 8259) and nothing else → one document. -EBADMSG, without a diagnostic, when it is not
 * JSON; then it may still be YAML. start is where the text begins in blob, behind a byte order mark. */
_must_check_ _nonnull_ int json_text_parse(const Blob *blob, size_t start, Document *ret, Diag *diag);
