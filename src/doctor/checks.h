/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Is this machine, or the image whose root directory is mounted somewhere, able to run the plans that are
 * made for it? Plans → Needs, what their steps will ask of the image, each once (needs.c) → a look at the
 * image for each (look.c), and at what contradicts each other or was left behind there (versions.c,
 * leftovers.c) → Checks, which a command prints. Nothing is run or changed, nobody is asked. */
#include "base/error.h"
#include "base/json.h"
#include "base/root.h"
#include "base/str.h"
#include "plan/plan.h"

DECLARE_STRING_TABLE(need_kind, NeedKind);      /* "program", … */

typedef struct Need {
        NeedKind kind;
        char *name;
        bool optional;          /* a boot without it goes on, with less */
        Cause cause;            /* that a boot without it ends with */
        char *step;             /* id of the first action that wants it; NULL: the program itself does */
        char **types;           /* instance types whose plans want it, in the order of the plans */
} Need;
typedef struct Needs { Need *items; size_t n; } Needs;
/* Adds what the plan for a machine of this type needs. */
_nonnull_ void needs_of_plan(const Plan *plan, const char *type, Needs *needs);
/* Is one of this kind and name among them? NULL: no. */
_nonnull_ const Need *needs_find(const Needs *needs, NeedKind kind, const char *name);
_nonnull_ void needs_done(Needs *n);

typedef enum CheckVerdict {
        CHECK_OK,
        CHECK_WARNING,          /* a boot goes on, but not as somebody may expect */
        CHECK_FAILED,           /* a boot of these types ends with the cause */
        CHECK_UNKNOWN,          /* cannot be told from here: what, and where it can */
        _CHECK_VERDICT_MAX, _CHECK_VERDICT_INVALID = -22,
} CheckVerdict;
DECLARE_STRING_TABLE(check_verdict, CheckVerdict);      /* "ok", "warning", "failed", "unknown" */

typedef struct Check {
        CheckVerdict verdict;
        char *code;             /* what pipelines go by: "program", "unit-masked"; one table of the manual
                                 * has them all */
        char *subject;          /* what was looked at: "mdadm", "nvidia-fabricmanager.service" */
        char *found;            /* what is there: "/usr/sbin/mdadm", "580.126.09"; NULL: nothing */
        char *text;             /* why it matters, and what to do; NULL where all is well */
        char *step;             /* of the plan, or NULL */
        Cause cause;            /* CHECK_FAILED: what a boot would say; else CAUSE_NONE */
        char **types;           /* whom it concerns; NULL: all */
} Check;
typedef struct Checks { Check *items; size_t n; } Checks;
/* The check is good until the next is added; the caller fills in what is NULL. Strings are copied; found may
 * be NULL. */
_nonnull(1, 3, 4) Check *checks_add(Checks *checks, CheckVerdict verdict, const char *code,
                                    const char *subject, const char *found);
/* Its sentence, as printf(3) makes it; step, cause and types of the need, where there is one. */
_nonnull(1, 3) Check *check_tell(Check *c, const Need *need, const char *format, ...) _printf_(3, 4);
_nonnull_ size_t checks_count(const Checks *checks, CheckVerdict verdict);
_nonnull_ void checks_done(Checks *c);
/* A table for people, worst first, and for machines; both new. In the table what is well is some lines of
 * names, unless all is to be told. */
_malloc_ _nonnull_ char *checks_to_text(const Checks *checks, bool all);
/* A line above that table, or some: "types       p5.48xlarge". */
_nonnull_ void facts_add(Text *t, const char *name, const char *value);
/* "p5.48xlarge and 11 more" */
_malloc_ char *types_text(char *const *types);
/* Sets a text out of an image, which need not be UTF-8, as the table has it; nothing for NULL or "". */
_nonnull(1, 2) void json_set_shown(json_t *object, const char *key, const char *text);
/* The same of several; a new reference. */
_must_check_ json_t *json_list_shown(char *const *texts);
/* a new reference */
_must_check_ _nonnull_ json_t *checks_to_json(const Checks *checks);

/* A driver of NVIDIA's that the image has: its own, or of a tree that a boot may choose. */
typedef struct Driver {
        char *tree;             /* "/opt/nvidia/lts"; "": none, it is the image's own */
        char *version;          /* "580.126.09" */
        char *where;            /* the file that says so; NULL: somebody else did */
        char *license;          /* of its modules, "NVIDIA" of the proprietary ones; NULL: not known */
} Driver;

/* The image below root: what every look at it shares. */
typedef struct Image {
        const Root *root;
        bool running;                   /* root is this machine's, and this kernel runs: not where it is bound
                                         * somewhere, or is that of a chroot(2), to be looked at as the image
                                         * that it is about to become */
        unsigned machine;               /* e_machine of its programs (elf(5)); 0: not known */
        char **kernels;                 /* in /lib/modules, sorted: "6.12.46-66.121.amzn2023.x86_64" */
        char *kernel;                   /* of these the one that boots, or NULL where that cannot be told */
        char **trees;                   /* that become a part of / when it boots, each a mirror of it, one of
                                         * which newer images of EKS choose (awslabs/amazon-eks-ami#2819):
                                         * "/opt/nvidia/lts" */
        Driver *drivers; size_t n_drivers;      /* its own one, or that of each tree */
        char *driver;                   /* the version that all of them have, or NULL: "580.126.09" */
        char *kubelet, *containerd;     /* "1.34.2"; NULL: not known. image_open() leaves them to the command,
                                         * which is told of versions */
} Image;
/* Is it the machine that this process runs on? To be told by what root alone may look at. */
_must_check_ _nonnull_ bool image_is_running(const Root *root);
/* All but the versions of kubelet and containerd. A root without programs at all is -ENOENT with CAUSE_USAGE:
 * nobody's image. */
_must_check_ _nonnull_ int image_open(const Root *root, bool running, Image *ret, Diag *diag);
_nonnull_ void image_done(Image *i);
/* Its driver is of this version, and where it has several it is the one of them that is. */
_nonnull_ void image_set_driver(Image *image, const char *version);
/* "580.126.09 or 595.45.04": the caller's; NULL: none is known. */
_must_check_ _nonnull_ char *image_drivers_text(const Image *image);
/* The instance types that it claims to serve: a new list; *ret_why, the caller's, says why just these. This
 * machine's alone, where that is one. */
_must_check_ _nonnull_ char **image_types(const Image *image, char **ret_why);
/* Are its programs of the type's architecture, or is one of the two not known? */
_nonnull_ bool image_serves(const Image *image, const char *type);
/* Does one of NVIDIA's drivers of the image, where version or flavor is known, know this type's GPUs? */
_nonnull_ bool image_drives(const Image *image, const char *type);
/* "x86_64", "arm64", as the tables of instance types have them; NULL for others. */
const char *machine_name(unsigned machine);
/* Does the name of an instance type say that it has instance stores?
 * https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html */
_nonnull_ bool type_has_stores(const char *type);
/* Every need → one check or more. */
_nonnull_ void image_look(const Image *image, const Needs *needs, Checks *checks);
/* Do the versions go together: driver, its modules and firmware, fabric manager, IMEX, toolkit, containerd,
 * kubelet and what the plans ask of it? */
_nonnull_ void image_compare(const Image *image, const Needs *needs, Checks *checks);
/* Who sets up the node: where nodeadm's units are enabled and call this program, ours need not be; else
 * nobody but ours does, and the needs of them say so. */
_nonnull_ void image_settle(const Image *image, Needs *needs);
/* ---- ask.c ---- */
/* Of containerd and of kubelet: CHECK_OK, CHECK_FAILED and its own sentence, or CHECK_UNKNOWN and why; what
 * they say may hold secrets. The caller's. */
typedef struct Asked { CheckVerdict verdict; char *said; } Asked;
/* For root: starts those of this machine with the planned files, apart from it, for 20 s at most. An error
 * says that none was asked. */
_must_check_ _nonnull_ int daemons_ask(const Image *image, const Config *config, const Plan *plan,
                                       Asked ret[static 2], Diag *diag);

/* Warns of units by which kubelet or containerd reads other files than those that are written for it. */
_nonnull_ void units_warn(const Root *root, Diag *warnings);
/* What an image should not have when it is saved: two bootstrappers enabled, a baked CDI specification,
 * mdadm.conf and mount units of another machine, machine-id, our own state, an enabled kubelet. */
_nonnull_ void image_search(const Image *image, Checks *checks);
