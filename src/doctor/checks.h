/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Can this machine, or the image at --root, run the plans made for it? needs.c lists what their steps need,
 * look.c checks each need, versions.c and leftovers.c look for contradictions and leftovers. Everything here
 * reads files only, except daemons_ask(). */
#include "base/error.h"
#include "base/json.h"
#include "base/root.h"
#include "base/str.h"
#include "plan/plan.h"

DECLARE_STRING_TABLE(need_kind, NeedKind);      /* "program", … */

typedef struct Need {
        NeedKind kind;
        char *name;
        bool optional;          /* a boot works without it */
        Cause cause;            /* of a boot without it */
        char *step;             /* id of the first action that needs it; NULL: nodestrap itself */
        char **types;           /* instance types whose plans need it, in their order */
} Need;
typedef struct Needs { Need *items; size_t n; } Needs;
_nonnull_ void needs_of_plan(const Plan *plan, const char *type, Needs *needs);
/* The settings that cost GPUs time, as warnings; for a type with GPUs. */
_nonnull_ void needs_of_tuning(const Plan *plan, const char *type, Needs *needs);
/* NULL: not in the list. */
_nonnull_ const Need *needs_find(const Needs *needs, NeedKind kind, const char *name);
_nonnull_ void needs_done(Needs *n);

typedef enum CheckVerdict {
        CHECK_OK,
        CHECK_WARNING,          /* the boot works, perhaps not as you expect */
        CHECK_FAILED,           /* a boot of these types fails with the cause */
        CHECK_UNKNOWN,          /* the text says where to look instead */
        _CHECK_VERDICT_MAX, _CHECK_VERDICT_INVALID = -22,
} CheckVerdict;
DECLARE_STRING_TABLE(check_verdict, CheckVerdict);      /* "ok", "warning", "failed", "unknown" */

typedef struct Check {
        CheckVerdict verdict;
        char *code;             /* for pipelines: "program", "unit-masked"; the manual has a table */
        char *subject;          /* "mdadm", "nvidia-fabricmanager.service" */
        char *found;            /* "/usr/sbin/mdadm", "580.126.09"; NULL: nothing */
        char *text;             /* reason and advice; NULL if all is well */
        char *step;             /* of the plan, or NULL */
        Cause cause;            /* CAUSE_NONE unless CHECK_FAILED */
        char **types;           /* NULL: all */
} Check;
typedef struct Checks { Check *items; size_t n; } Checks;
/* Valid until the next call; the caller fills in what is NULL. Copies its strings; found may be NULL. */
_nonnull(1, 3, 4) Check *checks_add(Checks *checks, CheckVerdict verdict, const char *code,
                                    const char *subject, const char *found);
/* Sets the text; and step, cause and types from the need, if there is one. */
_nonnull(1, 3) Check *check_tell(Check *c, const Need *need, const char *format, ...) _printf_(3, 4);
/* Both in one: need may be NULL. */
#define TELL(checks, verdict, code, subject, found, need, ...)                                 \
        check_tell(checks_add(checks, verdict, code, subject, found), need, __VA_ARGS__)
_nonnull_ size_t checks_count(const Checks *checks, CheckVerdict verdict);
_nonnull_ void checks_done(Checks *c);
/* A new table, worst first. all: passed checks get rows, not just names. */
_malloc_ _nonnull_ char *checks_to_text(const Checks *checks, bool all);
/* A line above the table: "types       p5.48xlarge". */
_nonnull_ void facts_add(Text *t, const char *name, const char *value);
/* "p5.48xlarge and 11 more" */
_malloc_ char *types_text(char *const *types);
/* Sets a text from an image, escaped; nothing for NULL or "". */
_nonnull(1, 2) void json_set_shown(json_t *object, const char *key, const char *text);
/* A new reference. */
_must_check_ json_t *json_list_shown(char *const *texts);
/* A new reference. */
_must_check_ _nonnull_ json_t *checks_to_json(const Checks *checks);

/* An NVIDIA driver of the image, or of a tree that a boot may choose. */
typedef struct Driver {
        char *tree;             /* "/opt/nvidia/lts"; "" outside of trees */
        char *version;          /* "580.126.09" */
        char *where;            /* the file with the version; NULL: --driver-version */
        char *license;          /* of its modules: "NVIDIA" if proprietary; NULL: not known */
} Driver;

/* The image below root. */
typedef struct Image {
        const Root *root;
        bool running;                   /* this kernel has booted root; false in a chroot(2) and for a
                                         * root mounted elsewhere */
        unsigned machine;               /* e_machine of its programs; 0: not known */
        char **kernels;                 /* in /lib/modules, sorted: "6.12.46-66.121.amzn2023.x86_64" */
        char *kernel;                   /* the one that boots; NULL: not known */
        char **trees;                   /* mirrors of /, one of which a boot of newer EKS images copies to
                                         * / (awslabs/amazon-eks-ami#2819): "/opt/nvidia/lts" */
        Driver *drivers; size_t n_drivers;      /* its own, or one of each tree */
        char *driver;                   /* "580.126.09", if they all have it; else NULL */
        char *kubelet, *containerd;     /* "1.34.2"; NULL: not known; the command sets them */
} Image;
/* Is root the system that this process runs on? */
_must_check_ _nonnull_ bool image_is_running(const Root *root);
/* All but kubelet and containerd. -ENOENT with CAUSE_USAGE if root has no programs. */
_must_check_ _nonnull_ int image_open(const Root *root, bool running, Image *ret, Diag *diag);
_nonnull_ void image_done(Image *i);
/* Keeps the driver of this version only; adds one if there is none. */
_nonnull_ void image_set_driver(Image *image, const char *version);
/* "580.126.09 or 595.45.04", the caller frees it; NULL: none is known. */
_must_check_ _nonnull_ char *image_drivers_text(const Image *image);
/* The instance types that the image serves, or the type of this machine: a new list. *ret_why says why
 * these; the caller frees it. */
_must_check_ _nonnull_ char **image_types(const Image *image, char **ret_why);
/* false if programs and type have different architectures. */
_nonnull_ bool image_serves(const Image *image, const char *type);
/* false if no NVIDIA driver of the image supports the GPUs of this type. */
_nonnull_ bool image_drives(const Image *image, const char *type);
/* "x86_64", "arm64", as in instance-types.csv; NULL for others. */
const char *machine_name(unsigned machine);
/* Does the name of the type promise instance stores?
 * https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html */
_nonnull_ bool type_has_stores(const char *type);
_nonnull_ void image_look(const Image *image, const Needs *needs, Checks *checks);
/* Compares versions: driver, modules, firmware, fabric manager, IMEX, toolkit, containerd, kubelet. */
_nonnull_ void image_compare(const Image *image, const Needs *needs, Checks *checks);
/* Makes our units mandatory, unless the units of nodeadm are enabled and call this program. */
_nonnull_ void image_settle(const Image *image, Needs *needs);
/* ---- ask.c ---- */
/* Of containerd and of kubelet. CHECK_FAILED: said quotes it, and may hold secrets; CHECK_UNKNOWN: said is
 * the reason. The caller frees it. */
typedef struct Asked { CheckVerdict verdict; char *said; } Asked;
/* As root: starts both with the planned files, isolated, for 20 s at most. An error: neither was started. */
_must_check_ _nonnull_ int daemons_ask(const Image *image, const Config *config, const Plan *plan,
                                       Asked ret[static 2], Diag *diag);

/* Warns of units that make kubelet or containerd read other files than the planned ones. */
_nonnull_ void units_warn(const Root *root, Diag *warnings);
/* Looks for what an image should not contain: two bootstrappers, an enabled kubelet, and state of a machine
 * or a node. */
_nonnull_ void image_search(const Image *image, Checks *checks);

/* ---- launch-template.c: without a machine ---- */
typedef struct Template {
        const Node *data;               /* LaunchTemplateData, or what Terraform makes of it */
        const char *source, *path;      /* its file, and the path of data there */
        bool terraform;                 /* lower-case keys; values not known before apply are missing */
        char *const *types;             /* instance types, or NULL */
        size_t user_data;               /* bytes without base64 */
        const Config *config;           /* its NodeConfig, or NULL */
} Template;
/* -EINVAL with a diagnostic: EC2 refuses it, or the boot fails for certain. Warns of anything else. */
_must_check_ _nonnull_ int template_check(const Template *t, Diag *diag);
