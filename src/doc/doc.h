/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Bytes ⇄ documents: outer encodings, messages with parts, YAML, TOML, XML, expressions. Knows no
 * NodeConfig. tests/userdata/README.md has the rules of user data one by one, each with cases; where a
 * comment below names one ("M1"), it is there. */
#include "base/error.h"
#include "base/macro.h"
#include "base/str.h"
#include <jansson.h>

/* Limits on every input, so that no user data can take all memory or minutes (L1, L2). */
#define DOC_MAX_BYTES  (1u << 20)       /* unpacked, of the whole or of a part */
#define DOC_MAX_DEPTH  100u             /* maps and lists in each other */
#define DOC_MAX_NODES  10000u           /* of one document of a user's, after its aliases are expanded */
#define DOC_MAX_MIME   8u               /* multiparts in each other, the message itself counted */

/* ---- bytes ---- */
typedef struct Blob {
        Position at;            /* source and part; at.line is the line of the
                                 * source on which data begins (1 at the start) */
        char *data;             /* owned, a NUL behind it */
        size_t size;
        unsigned max_nodes;     /* of one of its documents; 0: DOC_MAX_NODES */
        bool unpacked;          /* by doc_unpack(), which leaves it alone from then on */
        bool guarded;           /* asked for and true: a file that nobody but root can change */
} Blob;
typedef struct Blobs { Blob *items; size_t n; } Blobs;
void blobs_add(Blobs *b, Position at, char *data, size_t size);        /* takes data */
void blobs_done(Blobs *b);

/* Undoes at most one layer of base64, then at most one of gzip, each recognised by content (E1, E3, E4);
 * in place, and once: a second call changes nothing. */
_must_check_ _nonnull_ int doc_unpack(Blob *blob, Diag *diag);
/* Padded base64 in the standard alphabet; line ends are skipped where the flag says so. -EINVAL when it is
 * anything else. */
_must_check_ _nonnull_ int base64_decode(const char *text, size_t size, bool skip_line_ends, char **ret,
                                         size_t *ret_size);
_malloc_ char *base64_encode(const void *data, size_t size);

/* The code of a warning of a part whose type is not the one that is looked for, and may well be meant so. */
#define MIME_NEAR "unread-part"
/* A message → its NodeConfig parts in order, transfer encodings undone (M1 to M12, E2); anything that is
 * not a message is handed on whole as one blob. Parts are counted from 1 over all leaves of the message;
 * at.part is 0 for bare text. *ret_is_mime says which it was. Damage in parts of other types is never an
 * error. */
_must_check_ _nonnull_ int mime_split(const Blob *message, const char *content_type, Blobs *ret,
                                      bool *ret_is_mime, Diag *diag);
/* Where the closing delimiter of a multipart begins, and its boundary, the caller's: what is put in there is
 * a part more. 1; 0 where it is no multipart; -EINVAL where nothing closes it, or text stands behind. */
_must_check_ _nonnull_ int mime_find_end(const Blob *message, size_t *ret_at, char **ret_boundary);

/* ---- YAML ---- */
typedef enum NodeType { NODE_SCALAR, NODE_LIST, NODE_MAP } NodeType;
typedef struct Node Node;
/* In the source, both from 1, the column in characters of what was decoded; 0: not known. */
typedef struct Mark { unsigned line, column; } Mark;
typedef struct Member { const char *key; Mark at; Node *value; } Member;
/* What was written, before anybody decides what it means: a scalar keeps its text. Belongs to its Document;
 * aliases may share. */
struct Node {
        NodeType type;
        bool plain;             /* scalar: written without quotes and without a !!str tag */
        char block;             /* scalar: '|' literal, so that its lines are the source's, from the one
                                 * behind this; '>' folded; ' ' plain, on several lines; 0 */
        Mark at;
        size_t n;               /* scalar: bytes of text; list: items; map: members */
        union { const char *text; Node **items; Member *members; };
};
/* root is NULL for an empty document */
typedef struct Document { Position at; Node *root; void *pool; } Document;
typedef struct Documents {
        Document *items; size_t n;
        char *origin;           /* for a message that nothing was found: what they came
                                 * from, "user-data (empty), …"; owned, or NULL */
        char *unread;           /* the first MIME_NEAR, or what is packed twice, as a text, for the same;
                                 * owned, or NULL */
} Documents;
void documents_done(Documents *d);

/* One stream → its documents in order (D1, D3 to D5, T2, T7, L1, L2): aliases and merge keys expanded,
 * of equal keys the last one kept and warned about, empty documents left out. Lines are those of the source
 * (blob->at.line + …). */
_must_check_ _nonnull_ int yaml_parse(const Blob *blob, Documents *ret, Diag *diag);
/* What YAML 1.1 makes of a scalar: null, boolean, integer, float or string as go-yaml resolves it; dates stay
 * text (T5). -EINVAL for what JSON cannot hold: infinity and NaN. */
_must_check_ _nonnull_ int yaml_resolve(const Node *scalar, json_t **ret);
/* A whole free-form subtree the same way; its keys are text (T2). */
_must_check_ _nonnull_ int yaml_to_json(const Node *node, json_t **ret);
const Node *node_get(const Node *map, const char *key);         /* NULL if it is not there or map is no map */
/* Null, or nothing at all: a document of that kind counts as empty. */
_nonnull_ bool node_is_null(const Node *n);

/* ---- TOML 1.0 ---- */
/* Text → a JSON object. On an error: -EINVAL, and *ret_line and *ret_why (static text) say where and what.
 * Dates, times, NaN and infinity are refused: JSON cannot hold them. */
_must_check_ _nonnull_ int toml_parse(const char *text, size_t size, json_t **ret, unsigned *ret_line,
                                      const char **ret_why);
/* The line of each key, by the address at which its table has it: json_object_iter_key(). */
typedef struct TomlLine { const char *key; unsigned line; } TomlLine;
typedef struct TomlLines { TomlLine *items; size_t n; } TomlLines;
void toml_lines_done(TomlLines *lines);
/* 1 is the first; 0: not known. */
_nonnull_ unsigned toml_line(const TomlLines *lines, const char *key);
/* The same, and where the keys stand. */
_must_check_ _nonnull(1, 3, 5, 6) int toml_parse_lines(const char *text, size_t size, json_t **ret,
                                                       TomlLines *lines, unsigned *ret_line,
                                                       const char **ret_why);
/* One value that stands without quotes and brackets: a number or a boolean; -EINVAL and *ret_why (static
 * text). */
_must_check_ _nonnull_ int toml_parse_word(const char *word, json_t **ret, const char **ret_why);
/* A JSON object → text that parses to the same; -EINVAL when it holds null, -E2BIG when it would be several
 * times as long as any document may be. In the bytes of go-toml v2: keys sorted, tables last. */
_must_check_ _nonnull_ int toml_format(const json_t *object, char **ret);
/* Deep merge as containerd merges its configuration files (G5): tables merge, everything else is replaced.
 * Changes into. */
_nonnull_ void json_merge_deep(json_t *into, const json_t *from);
/* The same by RFC 7386: a null takes a key away. */
_nonnull_ void json_merge_patch(json_t *into, const json_t *patch);

/* ---- XML ---- */
/* The texts of all elements at path ("DescribeInstancesResponse/reservationSet/item/…"), in order; -EBADMSG
 * if it is not XML. */
_must_check_ _nonnull_ int xml_texts(const char *text, size_t size, const char *path, char ***ret);

/* ---- expressions ---- */
typedef struct ExprVariable { const char *name; int64_t value; } ExprVariable;
/* CEL (github.com/google/cel-spec): evaluates text to an int; what CEL's int() takes (uint, double, a string
 * of digits) becomes one. On an error -EINVAL, *ret_why owned by the caller: "column 12: no such overload:
 * int + double", nothing of the text in it. kubelet.maxPodsExpression has these variables, all int,
 * and no functions beyond CEL's own (awslabs/amazon-eks-ami nodeadm/internal/kubelet/eni_max_pods.go):
 *   default_enis         interfaces that the default network card of the instance type can have
 *   ips_per_eni          IPv4 addresses that one interface can have
 *   max_pods             what the standard formula gives: default_enis * (ips_per_eni - 1) + 2
 *   vcpus                of the instance type
 *   physical_memory_mib  of the instance type (first called memory_mib)
 * nodeadm takes a result from 1 to 2147483647; on any other, or an error, it warns and uses max_pods. */
_must_check_ _nonnull_ int expr_evaluate(const char *text, const ExprVariable *variables, size_t n,
                                         int64_t *ret, char **ret_why);
