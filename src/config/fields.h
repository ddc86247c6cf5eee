/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside src/config only. One tree of rows has all keys of a NodeConfig; decode, merge, validate, bind and
 * schema walk it. A new key is a new row in fields.c. */
#include "base/str.h"
#include "config/config.h"
#include "config/kubelet.h"

typedef enum FieldType {
        FIELD_MAP,              /* known keys: fields */
        FIELD_DICT,             /* any key; fields has one row for all values */
        FIELD_LIST,             /* fields has one row for all items */
        FIELD_FREE,             /* a map that kubelet or containerd reads */
        FIELD_IGNORED,          /* metadata */
        FIELD_STRING,
        FIELD_BOOL,
        FIELD_INTEGER,
        FIELD_ENUM,
        _FIELD_TYPE_MAX,
} FieldType;

typedef enum FieldFlags {
        FIELD_APPEND    = 1 << 0,       /* list: items of a later document follow the earlier ones */
        FIELD_TOML      = 1 << 1,       /* string: merges as TOML */
        FIELD_OR_TEXT   = 1 << 2,       /* list: or a scalar, as a short form */
        FIELD_ANY_CASE  = 1 << 3,       /* enum: in any case */
        FIELD_GATES     = 1 << 4,       /* dict: keeps names outside fields, with a warning */
        FIELD_NO_NUMBER = 1 << 5,       /* string: the schema refuses numbers and booleans */
        FIELD_NEEDED    = 1 << 6,       /* in every document; validate.c knows the needs of the whole */
} FieldFlags;

typedef struct Field Field;
struct Field {
        FieldType type;
        FieldFlags flags;
        char key[24];                   /* "": the row of elements of a dict or list */
        const Field *fields;            /* a keyless row ends them */
        const char (*names)[NAME_SIZE]; /* enum: the default first; it may be "" for "absent" */
        unsigned n_names;
        unsigned offset;                /* in struct Config, for bind */
        int min, max;                   /* integer */
        char since[8];                  /* the first version of nodestrap with the key; "": nodeadm has it
                                         * (awslabs/amazon-eks-ami, nodeadm/api/v1alpha1) */
        const char *fallback;           /* the default as text, of a string or an integer */
        /* into: the member of Config; never fails after config_validate() */
        void (*bind)(const Field *f, const json_t *value, void *into);
        /* For the schema alone (tests/helpers/schema-tool.c). The program would be 15 kB longer. */
#ifdef FIELD_TEXTS
#define DOC(text) text
        const char *doc;                /* one line */
        const char *pattern;            /* of a string; validate.c decides */
        const char *example;            /* JSON, or the text of a string itself */
#else
#define DOC(text) {}
        struct {} doc, pattern, example;
#endif
};

extern const Field nodeconfig_fields[]; /* apiVersion, kind, metadata, spec */
extern const Field feature_gates[];     /* the known names */

const Field *fields_find(const Field *fields, const char *key);
/* The known key nearest to an unknown one, a sibling or the same key elsewhere. New text or NULL. */
char *fields_suggest(const Field *fields, const char *key);
int field_enum_index(const Field *f, const char *text);         /* -EINVAL */
char *field_enum_list(const Field *f);                          /* "RAID0, RAID10, Mount" */
const char *field_fallback(const Field *f);     /* the default as text, or NULL */
int64_t field_fallback_number(const Field *f);

/* ---- path.c ---- */
/* key NULL: an item of a list */
typedef struct Path { const struct Path *up; const char *key; size_t index; } Path;
/* spec.kubelet.config, spec.containerd.config, spec.containerd.baseRuntimeSpec */
extern const Path kubelet_config_path, containerd_config_path, runtime_spec_path;
_malloc_ char *path_format(const Path *path);                   /* "spec.kubelet.flags[1]" */
_malloc_ char *path_key(const char *key);       /* as in a path: without user and password */
/* For a message, of a text that is not a secret: in quotes, escaped, cut at 40 characters. */
_malloc_ char *text_quote(const char *text, size_t size);

/* lines: path → index into positions. failed: paths that could not be decoded. */
typedef struct Origins {
        json_t *lines;
        Position *positions;
        size_t n;
        json_t *failed;
        char toml_block;                /* of the TOML of one document, as in Node */
        unsigned toml_line;             /* on which it begins */
} Origins;
void origins_done(Origins *o);
void origins_add(Origins *o, const char *path, Position at);
/* Of path or a parent, or NULL. */
const Position *origins_find(const Origins *o, const char *path);
/* Of a line of the TOML, from 1, if its lines are those of the source; otherwise, and for 0, of all of it. */
Position origins_toml(const Origins *o, unsigned line);
#define TOML_PATH "spec.containerd.config"
void origins_fail(Origins *o, const char *path);
bool origins_failed(const Origins *o, const char *path);        /* at, above or below path */
/* Takes over everything from a later document; the items of list_path count on from shift. */
void origins_move(Origins *to, Origins *from, const char *list_path, size_t shift);

/* ---- decode.c ---- */
/* Is it of kind NodeConfig, or of a version of its API? */
bool document_is_ours(const Node *root);
/* One document → {"apiVersion", "kind", "spec"}, of the types that the table wants, without null. It leaves
 * out faulty values and adds them to diag and origins->failed. */
_nonnull_ json_t *document_decode(const Node *root, Position at, Origins *origins, Diag *diag);

/* ---- merge.c ---- */
typedef struct Merge {
        json_t *document;               /* so far */
        json_t *toml;                   /* spec.containerd.config as JSON; NULL: not given */
        json_t *toml_one;               /* as containerd 1 reads it; NULL: the same */
        bool toml_mixed;                /* from several documents: merge_finish() writes its text */
        bool partial;                   /* other documents follow */
        Origins origins;
} Merge;
void merge_done(Merge *m);
/* One more document over those before, by G1 to G5 of tests/userdata/README.md; takes both. */
_nonnull_ void merge_add(Merge *m, json_t *document, Origins *origins, Diag *diag);
_nonnull_ void merge_finish(Merge *m, Diag *diag);              /* writes the TOML text */

/* The value at "spec.kubelet.flags" so far, or NULL. */
_nonnull_ json_t *merge_find(const Merge *m, const char *path);
char **merge_flags(const Merge *m);             /* spec.kubelet.flags as a new vector */

/* ---- texts.c ---- */
/* Users send unrendered templates (harishvs/slinky_on_eks). */
#define AN_OPEN_PLACEHOLDER " an unfilled placeholder: render the user data (templatefile, Fn::Sub, envsubst)"
#define PLACEHOLDER         "contains" AN_OPEN_PLACEHOLDER

/* "${NAME}" or "{{ name }}" */
_nonnull_ bool has_placeholder(const char *text);
/* C0, DEL or C1, but for those of except. */
_nonnull_ bool has_control(const char *s, const char *except);
bool cidr_is_valid(const char *text);
/* Can a file system be mounted there: absolute, no "..", no folder of the system? */
_nonnull_ bool mount_path_is_valid(const char *path);
/* Does kubelet read it as one IP address? */
_nonnull_ bool kubelet_address_is_valid(const char *text);
int parse_page_size(const char *text, uint64_t *ret);           /* "2Mi" → bytes; a power of two; -EINVAL */

/* Adds an error, unless the path has one already. */
_nonnull_ void config_report(const Merge *m, Diag *diag, const char *path, const char *text);
_printf_(5, 6) void merge_warn(const Merge *m, Diag *diag, const char *code, const char *path,
                               const char *format, ...);
/* Is the word one of "a|b|c"? */
_nonnull_ bool word_is_among(const char *word, const char *list);
/* NULL, or a message in room. */
_nonnull_ const char *word_fault(const char *word, const char *list, Text *room);

/* ---- validate.c ---- */
/* All rules over the merged document; -EINVAL when one is broken. */
_must_check_ _nonnull_ int config_validate(const Merge *m, Diag *diag);

/* ---- volumes.c ---- */
/* false, here and below: it has reported an error. */
_must_check_ _nonnull_ bool volumes_validate(const Merge *m, Diag *diag);

/* ---- sysctl.c ---- */
/* Refuses kernel settings that nodestrap or kubelet does not accept, or that are set twice. */
_must_check_ _nonnull_ bool sysctl_validate(const Merge *m, Diag *diag);

/* ---- conflict.c ---- */
/* Warns of valid settings with no effect, or with an unexpected one. */
_nonnull_ void conflicts_warn(const Merge *m, Diag *diag);
/* Of spec.cluster.certificateAuthority: not base64 of base64 of a certificate, not only a private key. */
_nonnull_ bool authority_is_encoded_once(const char *text);
_nonnull_ bool authority_is_public(const char *text);

/* ---- kubelet.c ---- */
/* Refuses values of spec.kubelet.config and flags that kubelet does not start with. */
_must_check_ _nonnull_ bool kubelet_validate(const Merge *m, Diag *diag);
/* Warns of keys and flags that kubelet does not know, that are deprecated, or that replace ours. */
_nonnull_ void kubelet_warn(const Merge *m, Diag *diag);

/* ---- kubelet-tables.c ---- */
/* Why kubelet refuses a value that is not null, or NULL; room holds a formatted text. */
_nonnull(1, 3) const char *kubelet_value_fault(const KubeletSetting *s, const json_t *value, Text *room);
/* The same of a member of a map. */
const char *kubelet_member_fault(const KubeletSetting *s, const char *key, const json_t *value);
/* The first row where *at is NULL; false after the last. */
_nonnull_ bool kubelet_setting_next(const char **at, KubeletSetting *ret);
_nonnull_ const char *kubelet_setting_nearest(const char *name);        /* NULL */

/* ---- kubelet-flags.c ---- */
/* Does a flag set this key of the configuration file? */
_must_check_ _nonnull_ bool kubelet_flags_set(const Merge *m, const char *key);
_must_check_ _nonnull_ bool kubelet_validate_flags(const Merge *m, Diag *diag);
_nonnull_ void kubelet_warn_of_flags(const Merge *m, Diag *diag);

/* ---- containerd-rules.c ---- */
/* Refuses values of spec.containerd with which no containerd starts, or that leave it without CRI. */
_must_check_ _nonnull_ bool containerd_validate(const Merge *m, Diag *diag);
/* Warns of keys that no containerd knows. */
_nonnull_ void containerd_warn(const Merge *m, Diag *diag);

/* ---- gates.c ---- */
/* Refuses a feature gate with a value that all kubelets of the table refuse. */
_must_check_ _nonnull_ bool gates_validate(const Merge *m, Diag *diag);
/* Warns of feature gates that no kubelet of the table knows, or that newer ones refuse. */
_nonnull_ void gates_warn(const Merge *m, Diag *diag);

/* ---- bind.c ---- */
_nonnull_ Config *config_bind(Merge *m);                        /* takes the origins */

/* ---- bind-values.c, volumes.c ---- */
void bind_authority(const Field *f, const json_t *value, void *into);
void bind_disabled_mounts(const Field *f, const json_t *value, void *into);
void bind_mount_path(const Field *f, const json_t *value, void *into);
void bind_volumes(const Field *f, const json_t *value, void *into);
void volumes_free(Volume *list, size_t n);
void bind_pages(const Field *f, const json_t *value, void *into);
void bind_environment(const Field *f, const json_t *value, void *into);
void bind_sysctl(const Field *f, const json_t *value, void *into);
void bind_mig(const Field *f, const json_t *value, void *into);
void bind_timespan(const Field *f, const json_t *value, void *into);
void bind_gates(const Field *f, const json_t *value, void *into);

extern const unsigned char config_schemas[];    /* packed: a line for each schema, the strict one last */
extern const size_t config_schemas_size;
static inline unsigned two_digits(const char *s) {
        return (unsigned)(s[0] - '0') * 10 + (unsigned)(s[1] - '0');
}
