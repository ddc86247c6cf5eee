/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* kubelet by version: its configuration file, its command line and its feature gates, out of
 * conf/kubelet-settings.csv, conf/kubelet-flags.csv and conf/feature-gates.csv. Each is one text,
 * packed. */
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include <stdbool.h>

/* The minor versions of Kubernetes that the tables are of. */
#define KUBELET_TABLES_FROM 28
#define KUBELET_TABLES_TO   37

extern const unsigned char kubelet_known_settings[], kubelet_known_flags[], kubelet_known_gates[];
extern const size_t kubelet_known_settings_size, kubelet_known_flags_size, kubelet_known_gates_size;

/* What kubelet finds in the kernel, or does not start: where protectKernelDefaults is on, as EKS has it. */
typedef struct Tunable { const char *path, *value; } Tunable;
extern const Tunable kubelet_tunables[];
extern const size_t n_kubelet_tunables;

/* type: as in the CSV, by one letter each; since: the first 1.N that has it, 0: all; limits: "" where none */
typedef struct KubeletSetting { char type; unsigned since; const char *name, *limits; } KubeletSetting;
_nonnull_ bool kubelet_setting_find(const char *name, KubeletSetting *ret);

/* From 1.from up to, not including, 1.until; 0: no end. key: of the configuration file, with dots; "" */
typedef struct KubeletFlag {
        const char *name, *key;
        unsigned from, until;
        bool deprecated;                /* by the newest of them */
} KubeletFlag;
/* name: as flags are written, "--max_pods=5"; false also where that is no flag but another one's value. */
_nonnull_ bool kubelet_flag_find(const char *name, KubeletFlag *ret);
/* "--max_pods=5" → "max-pods": kubelet takes underscores for hyphens. NULL when it is no flag. */
_must_check_ _nonnull_ char *kubelet_flag_name(const char *flag);
/* The nearest name; NULL. */
_nonnull_ const char *kubelet_flag_nearest(const char *name);
/* What a list of flags written for nodeadm means as an argument vector; kubelet-flags.c says how. A new
 * vector, or NULL. */
char **kubelet_words(char *const *flags);

/* A feature gate as kubelet 1.minor has it: its default, and whether it takes no other value. */
typedef struct KubeletGate { const char *name; bool on, locked; } KubeletGate;
/* false: that kubelet does not know it. minor: within KUBELET_TABLES_FROM and _TO. */
_nonnull_ bool kubelet_gate_find(const char *name, unsigned minor, KubeletGate *ret);
/* Known from 1.from up to, not including, 1.until; 0: no end. false: to none of the table. */
_nonnull_ bool kubelet_gate_versions(const char *name, unsigned *ret_from, unsigned *ret_until);
/* On (1) or off (0) with what gates (an object, or NULL) says. AllAlpha and AllBeta count. -1: not known, as
 * of a version that is not in the table. */
_nonnull(2) int kubelet_gate_state(const json_t *gates, const char *name, unsigned minor);
/* The nearest name of all versions; NULL. */
_nonnull_ const char *kubelet_gate_nearest(const char *name);
/* Does one of spec.kubelet.flags turn it off? */
_nonnull(2) bool kubelet_flags_turn_off(char *const *flags, const char *name);
/* Does kubelet of this version start with the gates of spec.kubelet.config and of spec.kubelet.flags? -EINVAL
 * with errors in diag, or 0, also where the version is not one of the tables. refuse false: warnings. */
_must_check_ _nonnull_ int kubelet_gate_check(const Config *config, const char *version, bool refuse,
                                              Diag *diag);
/* Of a label or a taint: a name with or without a domain before a slash, and a value that may be "" (k8s.io/
 * apimachinery pkg/util/validation). */
_nonnull_ bool kubelet_label_is_valid(const char *key, const char *value);
/* Flags over settings, an object of KubeletConfiguration, as kubelet merges them. A text of the type that the
 * file has becomes that type; another one stays text. Of flags without a key there it adds nodeLabels,
 * hostnameOverride, rootDirectory and ignoreEviction. words: as kubelet gets them. */
_nonnull(1) void kubelet_flags_merge(json_t *settings, char *const *words);
/* A Go duration: "1h30m", "0.5s" (pkg.go.dev/time#ParseDuration), in seconds. */
_nonnull_ bool kubelet_parse_duration(const char *s, double *ret);
/* Where the user gives a setting: "spec.kubelet.flags[2]", which wins, or "spec.kubelet.config.maxPods"; NULL
 * where not. */
_nonnull(3) char *kubelet_setting_path(const json_t *config, char *const *flags, const char *key);

/* ---- kubelet-rules.c ---- */
/* All that kubelet is given, and where it will run. */
typedef struct KubeletGiven {
        const json_t *all;              /* merged, by the keys of the configuration file */
        const json_t *user;             /* spec.kubelet.config; or NULL */
        char *const *flags;             /* spec.kubelet.flags */
        unsigned minor;                 /* of Kubernetes 1.N; 0: not known, and neither is what ours adds */
        unsigned cpus, nodes;           /* the machine's CPUs and NUMA nodes; 0: not known */
        bool whole;                     /* no other document comes to it */
        const char *key; Text *room;    /* of a rule: what it is about, and where its sentence is made */
} KubeletGiven;
/* path: of the user's setting that is told of; NULL: there is none of the user's. */
typedef void KubeletTell(void *context, const char *path, const char *fault);
/* Tells of each rule that they break; false where there is one. */
_nonnull(1, 2) bool kubelet_judge_together(const KubeletGiven *g, KubeletTell *tell, void *context);

/* ---- kubelet.c ---- */
/* The same, and of each value by itself. */
_nonnull(1, 2) bool kubelet_judge(const KubeletGiven *g, KubeletTell *tell, void *context);
