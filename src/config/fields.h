/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside src/config only. One tree of rows says which keys a NodeConfig has, of which type, what they mean,
 * and where they go in struct Config; decode, merge, validate, bind and schema all walk it. A new key is a
 * new row in fields.c. */
#include "base/str.h"
#include "config/config.h"
#include "config/kubelet.h"

typedef enum FieldType {
        FIELD_MAP,              /* known keys: fields */
        FIELD_DICT,             /* any key; the values are as the one row in fields says */
        FIELD_LIST,             /* items as the one row in fields says */
        FIELD_FREE,             /* a map that kubelet or containerd reads */
        FIELD_IGNORED,          /* not looked at: metadata */
        FIELD_STRING,
        FIELD_BOOL,
        FIELD_INTEGER,
        FIELD_ENUM,
        _FIELD_TYPE_MAX,
} FieldType;

typedef enum FieldFlags {
        FIELD_APPEND    = 1 << 0,       /* list: a later document's items go
                                         * behind the earlier ones */
        FIELD_TOML      = 1 << 1,       /* string: merges as TOML */
        FIELD_OR_TEXT   = 1 << 2,       /* list: a scalar may stand instead, a short form */
        FIELD_ANY_CASE  = 1 << 3,       /* enum: compared without regard to case */
        FIELD_GATES     = 1 << 4,       /* dict: names outside fields are kept and warned about */
        FIELD_NO_NUMBER = 1 << 5,       /* string: no number or boolean, kept as text,
                                         * can be right; only the schema says so */
        FIELD_NEEDED    = 1 << 6,       /* in every document; what the
                                         * merged whole needs, validate.c says */
} FieldFlags;

typedef struct Field Field;
/* In the order of the rows of fields.c. */
struct Field {                          /* NOLINT(clang-analyzer-optin.performance.Padding) */
        const char *key;                /* NULL for the row of a dict's or a list's elements */
        FieldType type;
        const char *doc;                /* one line, in the schema */
        FieldFlags flags;
        const Field *fields;            /* behind the last one a row without key */
        const char *const *names;       /* enum: n_names, the default first;
                                         * that one may be NULL: "not said" */
        size_t n_names;
        int64_t min, max;               /* integer */
        const char *pattern;            /* string: for the schema; validate.c decides */
        const char *example;            /* what may stand there: a list, a map, a number or
                                         * a boolean as JSON; other text is a string's own */
        const char *since;              /* the version of this program that brought the key; NULL: it is
                                         * nodeadm's (awslabs/amazon-eks-ami, nodeadm/api/v1alpha1) */
        const char *fallback;           /* what holds when it is not said; a string's or an integer's text */
        size_t offset;                  /* in struct Config, for bind */
        /* into: the Config's member; never fails after validate */
        int (*bind)(const Field *f, const json_t *value, void *into);
};

extern const Field nodeconfig_fields[]; /* apiVersion, kind, metadata, spec */
extern const Field feature_gates[];     /* the known names */

const Field *fields_find(const Field *fields, const char *key);
/* The known key that is nearest to an unknown one: among its siblings, by what it means or how it is spelt,
 * or else the same key elsewhere. Text or NULL. */
char *fields_suggest(const Field *fields, const char *key);
int field_enum_index(const Field *f, const char *text);         /* -EINVAL */
char *field_enum_list(const Field *f);                          /* "RAID0, RAID10, Mount" */
const char *field_fallback(const Field *f);     /* the default as text, or NULL */
int64_t field_fallback_number(const Field *f);

/* ---- path.c: where something stands ---- */
/* key NULL: an item of a list */
typedef struct Path { const struct Path *up; const char *key; size_t index; } Path;
/* spec.kubelet.config, spec.containerd.config, spec.containerd.baseRuntimeSpec */
extern const Path kubelet_config_path, containerd_config_path, runtime_spec_path;
_malloc_ char *path_format(const Path *path);                   /* "spec.kubelet.flags[1]" */
/* Text that is no secret, for a message: in quotes, escaped, cut at 40 characters. */
_malloc_ char *text_quote(const char *text, size_t size);

/* Path → position of what stands there now, and the paths below which something could not be decoded. */
typedef struct Origins {
        json_t *lines;
        Position *positions;
        size_t n;
        json_t *failed;
        char toml_block;                /* how one document's TOML is written: as Node has it, */
        unsigned toml_line;             /* and on which line that begins */
} Origins;
void origins_done(Origins *o);
void origins_add(Origins *o, const char *path, Position at);
/* of it or of what it stands in; NULL */
const Position *origins_find(const Origins *o, const char *path);
void origins_fail(Origins *o, const char *path);
bool origins_failed(const Origins *o, const char *path);        /* at, above or below path */
/* Takes over everything from a later document; the items of list_path are counted on from shift. */
void origins_move(Origins *to, Origins *from, const char *list_path, size_t shift);

/* ---- decode.c ---- */
/* Is it of kind NodeConfig, or of a version of its API? */
bool document_is_ours(const Node *root);
/* One document → {"apiVersion", "kind", "spec"}, of the types that the table asks for, without null; what
 * is wrong goes into diag and origins->failed and is left out. */
_nonnull_ json_t *document_decode(const Node *root, Position at, Origins *origins, Diag *diag);

/* ---- merge.c ---- */
typedef struct Merge {
        json_t *document;               /* so far */
        json_t *toml;                   /* spec.containerd.config as JSON; NULL: not given */
        bool toml_mixed;                /* of more than one document: its text must be written anew */
        bool partial;                   /* other documents will come to it */
        Origins origins;
} Merge;
void merge_done(Merge *m);
/* One more document over those before, by G1 to G5 of tests/userdata/README.md; takes both. */
_nonnull_ void merge_add(Merge *m, json_t *document, Origins *origins, Diag *diag);
_nonnull_ void merge_finish(Merge *m, Diag *diag);              /* writes the TOML text */

/* ---- the merged document by path: path.c ---- */
/* What stands there so far: at "spec.kubelet.flags"; NULL. */
_nonnull_ json_t *merge_find(const Merge *m, const char *path);
char **merge_flags(const Merge *m);             /* spec.kubelet.flags as a new vector */

/* ---- texts.c ---- */
/* People send templates as they are (harishvs/slinky_on_eks). */
#define PLACEHOLDER "holds a placeholder that nobody filled in: the user data was not rendered " \
                    "(templatefile, Fn::Sub, envsubst)"

/* "${NAME}" and "{{ name }}", as templates have them. */
_nonnull_ bool has_placeholder(const char *text);
/* C0, DEL and C1, but for those of except. */
_nonnull_ bool has_control(const char *s, const char *except);
bool cidr_is_valid(const char *text);
/* Can a file system be mounted there: absolute, no "..", no folder of the system? */
_nonnull_ bool mount_path_is_valid(const char *path);
/* Does kubelet take it for one IP address? */
_nonnull_ bool kubelet_address_is_valid(const char *text);
int parse_page_size(const char *text, uint64_t *ret);           /* "2Mi" → bytes; a power of two; -EINVAL */

/* An error of the merged document, unless it was told of already. */
_nonnull_ void config_report(const Merge *m, Diag *diag, const char *path, const char *text);
/* A warning of what stands at the path. */
_printf_(5, 6) void merge_warn(const Merge *m, Diag *diag, const char *code, const char *path,
                               const char *format, ...);
/* Is the word one of "a|b|c"? */
_nonnull_ bool word_is_among(const char *word, const char *list);
/* NULL, or in room that it is none of them. */
_nonnull_ const char *word_fault(const char *word, const char *list, Text *room);

/* ---- validate.c ---- */
/* All rules over the merged document; -EINVAL when one is broken. */
_must_check_ _nonnull_ int config_validate(const Merge *m, Diag *diag);

/* ---- volumes.c ---- */
/* What the entries of spec.instance.storage.volumes say each and of each other; false: it was reported. */
_must_check_ _nonnull_ bool volumes_validate(const Merge *m, Diag *diag);

/* ---- sysctl.c ---- */
/* Kernel settings that are not ours to make, that kubelet does not start with, or that are said twice; false:
 * it was reported. */
_must_check_ _nonnull_ bool sysctl_validate(const Merge *m, Diag *diag);

/* ---- conflict.c ---- */
/* Warns of what is valid and has no effect, or another one than is meant. */
_nonnull_ void conflicts_warn(const Merge *m, Diag *diag);
/* Of spec.cluster.certificateAuthority: no base64 of base64 of a certificate, no private key alone. */
_nonnull_ bool authority_is_encoded_once(const char *text);
_nonnull_ bool authority_is_public(const char *text);

/* ---- kubelet.c ---- */
/* Values of spec.kubelet.config that kubelet does not start with; false: it was reported. */
_must_check_ _nonnull_ bool kubelet_validate(const Merge *m, Diag *diag);
/* Keys and flags that it does not know, flags that it calls deprecated or takes in place of ours. */
_nonnull_ void kubelet_warn(const Merge *m, Diag *diag);

/* ---- kubelet-tables.c ---- */
/* Of a value that is not null: what is wrong with it, or NULL; room is for a sentence that is made. */
_nonnull(1, 3) const char *kubelet_value_fault(const KubeletSetting *s, const json_t *value, Text *room);
/* The same of a member of a map. */
const char *kubelet_member_fault(const KubeletSetting *s, const char *key, const json_t *value);
/* The first one where *at is NULL; false behind the last. */
_nonnull_ bool kubelet_setting_next(const char **at, KubeletSetting *ret);
_nonnull_ const char *kubelet_setting_nearest(const char *name);        /* NULL */

/* ---- kubelet-flags.c ---- */
/* Does a flag set what this key of the configuration file does? */
_must_check_ _nonnull_ bool kubelet_flags_set(const Merge *m, const char *key);
_must_check_ _nonnull_ bool kubelet_validate_flags(const Merge *m, Diag *diag);
_nonnull_ void kubelet_warn_of_flags(const Merge *m, Diag *diag);

/* ---- containerd-validate.c ---- */
/* Values of spec.containerd that no containerd starts with, or that leave it without CRI; false: it was
 * reported. */
_must_check_ _nonnull_ bool containerd_validate(const Merge *m, Diag *diag);
/* Keys that none knows. */
_nonnull_ void containerd_warn(const Merge *m, Diag *diag);

/* ---- gates.c ---- */
/* A feature gate with a value that all kubelets of the table refuse; false: it was reported. */
_must_check_ _nonnull_ bool gates_validate(const Merge *m, Diag *diag);
/* Feature gates that no kubelet of the table knows, that newer ones do not know, or have locked. */
_nonnull_ void gates_warn(const Merge *m, Diag *diag);

/* ---- bind.c ---- */
_nonnull_ Config *config_bind(Merge *m);                        /* takes the origins */

/* ---- bind-values.c, volumes.c ---- */
int bind_authority(const Field *f, const json_t *value, void *into);
int bind_disabled_mounts(const Field *f, const json_t *value, void *into);
int bind_mount_path(const Field *f, const json_t *value, void *into);
int bind_volumes(const Field *f, const json_t *value, void *into);
void volumes_free(Volume *list, size_t n);
int bind_pages(const Field *f, const json_t *value, void *into);
int bind_environment(const Field *f, const json_t *value, void *into);
int bind_sysctl(const Field *f, const json_t *value, void *into);
int bind_mig(const Field *f, const json_t *value, void *into);
int bind_timespan(const Field *f, const json_t *value, void *into);
int bind_gates(const Field *f, const json_t *value, void *into);
