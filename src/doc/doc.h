/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Bytes ⇄ documents: outer encodings, MIME messages, YAML, TOML, XML, expressions. It does not know
 * NodeConfig. "M1" in a comment is a rule of tests/userdata/README.md, which has cases for each. */
#include "base/error.h"
#include "base/macro.h"
#include "base/str.h"
#include <jansson.h>

/* Limits, so that no user data can take minutes or all memory (L1, L2). */
#define DOC_MAX_BYTES  (1u << 20)       /* unpacked, of the whole or of a part */
#define DOC_MAX_DEPTH  100u             /* of nested maps and lists */
#define DOC_MAX_NODES  10000u           /* of one user document, with its aliases expanded */
#define DOC_MAX_MIME   8u               /* of nested multiparts, with the message itself */

/* ---- bytes ---- */
typedef struct Blob {
        /* at.line: the line of the source on which data begins, from 1; at.column: how many characters of the
         * source precede each of its lines */
        Position at;
        char *data;             /* owned, a NUL after it */
        size_t size;
        unsigned max_nodes;     /* of one document; 0: DOC_MAX_NODES */
        bool unpacked;          /* doc_unpack() has been here */
        const char *choice;     /* of FILE#CHOICE, or NULL (source/wrapped.h) */
        bool guarded;           /* with SOURCE_GUARD: only root can change the file */
} Blob;
typedef struct Blobs { Blob *items; size_t n; } Blobs;
void blobs_add(Blobs *b, Position at, char *data, size_t size);        /* takes data */
void blobs_done(Blobs *b);

/* Undoes at most one layer of base64, then of gzip, by content (E1, E3, E4). In place, and only once. */
_must_check_ _nonnull_ int doc_unpack(Blob *blob, Diag *diag);
/* Padded base64 in the standard alphabet; -EINVAL for anything else. */
_must_check_ _nonnull_ int base64_decode(const char *text, size_t size, bool skip_line_ends, char **ret,
                                         size_t *ret_size);
_malloc_ char *base64_encode(const void *data, size_t size);

/* A packed table of cells; a NUL ends each, and another one the table. */
typedef struct Table { const unsigned char *packed; const size_t *size; const char *text; } Table;
/* Unpacks it once. */
_nonnull_ const char *table_text(Table *t);
/* The cell at *at, which then points to the next one. */
static inline const char *table_cell(const char **at) {
        const char *cell = *at;
        *at += strlen(cell) + 1;
        return cell;
}

/* Warning code for a part of another type that looks like a NodeConfig. */
#define MIME_NEAR "unread-part"
/* A message → its NodeConfig parts in order, without transfer encodings (M1 to M12, E2). Any other text
 * becomes one blob with at.part 0, and *ret_is_mime is false. at.part counts all leaves of the message from
 * 1. Damage in parts of other types is never an error. */
_must_check_ _nonnull_ int mime_split(const Blob *message, const char *content_type, Blobs *ret,
                                      bool *ret_is_mime, Diag *diag);
/* Where the closing delimiter of a multipart begins (a new part fits there), and its boundary, which the
 * caller frees. 1; 0: not a multipart; -EINVAL: no closing delimiter, or text after it. */
_must_check_ _nonnull_ int mime_find_end(const Blob *message, size_t *ret_at, char **ret_boundary);

/* ---- YAML ---- */
typedef enum NodeType { NODE_SCALAR, NODE_LIST, NODE_MAP } NodeType;
typedef struct Node Node;
/* In the source, both from 1, the column in decoded characters; 0: not known. */
typedef struct Mark { unsigned line, column; } Mark;
typedef struct Member { const char *key; Mark at; Node *value; } Member;
/* A scalar keeps its text, as its meaning depends on the place. Aliases may share nodes. */
struct Node {
        NodeType type;
        bool plain;             /* scalar: without quotes and !!str */
        char block;             /* scalar: '|' literal, with its text from the next source line on; '>'
                                 * folded; ' ' plain, on several lines; 0 */
        Mark at;
        size_t n;               /* scalar: bytes of text; list: items; map: members */
        union { const char *text; Node **items; Member *members; };
};
/* root is NULL for an empty document */
typedef struct Document { Position at; Node *root; void *pool; } Document;
typedef struct Documents {
        Document *items; size_t n;
        char *origin;           /* their sources, for messages: "user-data (empty), …"; owned, or NULL */
        char *unread;           /* why the first was not read: MIME_NEAR, or packed twice; owned, or NULL */
} Documents;
void documents_done(Documents *d);
_nonnull_ void documents_move(Documents *to, Documents *from);         /* empties from */

/* One stream → its documents in order (D1, D3 to D5, T2, T7, L1, L2). Expands aliases and merge keys, keeps
 * the last of equal keys with a warning, and leaves out empty documents. Lines are those of the source. */
_must_check_ _nonnull_ int yaml_parse(const Blob *blob, Documents *ret, Diag *diag);
/* A scalar as go-yaml reads it; dates stay text (T5). -EINVAL: infinity and NaN, as JSON has none. */
_must_check_ _nonnull_ int yaml_resolve(const Node *scalar, json_t **ret);
/* The same for a subtree; its keys are text (T2). */
_must_check_ _nonnull_ int yaml_to_json(const Node *node, json_t **ret);
const Node *node_get(const Node *map, const char *key);         /* NULL: no key, or not a map */
/* Is it null, or empty? */
_nonnull_ bool node_is_null(const Node *n);

/* ---- TOML 1.0 ---- */
/* Text → a JSON object. -EINVAL with *ret_line and *ret_why (static text), also for dates, times, NaN and
 * infinity, which JSON cannot hold. */
_must_check_ _nonnull_ int toml_parse(const char *text, size_t size, json_t **ret, unsigned *ret_line,
                                      const char **ret_why);
/* The line of each key, by its address in the table: json_object_iter_key(). */
typedef struct TomlLine { const char *key; unsigned line; } TomlLine;
typedef struct TomlLines { TomlLine *items; size_t n; } TomlLines;
void toml_lines_done(TomlLines *lines);
/* 1 is the first; 0: not known. */
_nonnull_ unsigned toml_line(const TomlLines *lines, const char *key);
/* The same, with the lines of keys. */
_must_check_ _nonnull(1, 3, 5, 6) int toml_parse_lines(const char *text, size_t size, json_t **ret,
                                                       TomlLines *lines, unsigned *ret_line,
                                                       const char **ret_why);
/* A number or a boolean; -EINVAL and *ret_why (static text). */
_must_check_ _nonnull_ int toml_parse_word(const char *word, json_t **ret, const char **ret_why);
/* A JSON object → text that parses to the same, in the bytes of go-toml v2: keys sorted, tables last.
 * -EINVAL: it holds null; -E2BIG: several times DOC_MAX_BYTES. */
_must_check_ _nonnull_ int toml_format(const json_t *object, char **ret);
/* As containerd merges its configuration files (G5): tables merge, everything else is replaced. */
_nonnull_ void json_merge_deep(json_t *into, const json_t *from);
/* The same by RFC 7386: a null removes a key. */
_nonnull_ void json_merge_patch(json_t *into, const json_t *patch);

/* ---- XML ---- */
/* The texts of all elements at path ("DescribeInstancesResponse/item/…"), in order; -EBADMSG: not XML. */
_must_check_ _nonnull_ int xml_texts(const char *text, size_t size, const char *path, char ***ret);

/* ---- expressions ---- */
typedef struct ExprVariable { const char *name; int64_t value; } ExprVariable;
/* CEL (github.com/google/cel-spec): evaluates text to an int, or to a value that int() converts (uint,
 * double, a string of digits). -EINVAL with *ret_why for the caller to free: "column 12: no such overload:
 * int + double"; it quotes nothing. kubelet.maxPodsExpression has the functions of CEL and these variables,
 * all int (awslabs/amazon-eks-ami nodeadm/internal/kubelet/eni_max_pods.go):
 *   default_enis         interfaces that the default network card of the instance type can have
 *   ips_per_eni          IPv4 addresses that one interface can have
 *   max_pods             what the standard formula gives: default_enis * (ips_per_eni - 1) + 2
 *   vcpus                of the instance type
 *   physical_memory_mib  of the instance type (formerly memory_mib).
 * nodeadm takes a result from 1 to 2147483647; on any other, or an error, it warns and uses max_pods. */
_must_check_ _nonnull_ int expr_evaluate(const char *text, const ExprVariable *variables, size_t n,
                                         int64_t *ret, char **ret_why);
